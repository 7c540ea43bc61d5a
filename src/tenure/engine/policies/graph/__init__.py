"""The default: eviction by the graph of work and by what was learned of reuse. See policy.py."""

from tenure.engine.policies.graph.policy import GraphPolicy

__all__ = ["GraphPolicy"]
