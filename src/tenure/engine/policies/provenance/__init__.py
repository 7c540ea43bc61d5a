"""Eviction by provenance: no annotation, no model. See policy.py."""

from tenure.engine.policies.provenance.policy import Provenance

__all__ = ["Provenance"]
