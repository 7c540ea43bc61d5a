"""Whose every policy is: what tables and charts group by, and the source that each row cites."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.policies import COMPAT, PEERS, POLICIES, UNBOUNDED
from tenure.engine.policies.policy import Policy

Whose = Literal["ours", "peer", "bound"]

CWL: Final = "CWL paper"
SELF_GC: Final = "Self-GC paper, Baselines"

# Every policy there is, by the name that its rows carry.
ALL: Final[Mapping[str, Policy]] = MappingProxyType(
    {policy.name: policy for policy in (*POLICIES.values(), *COMPAT.values(), *PEERS.values())}
)


class Origin(Struct, frozen=True):
    """Where a row comes from; `bound` is what no policy can do, because it knows the future, or does nothing."""

    whose: Whose
    source: str


# By the first word of a row's name: `compaction at 80k` is compaction's. What is not here is an oracle, which knows the future (`views.sql`).
KNOWN: Final[Mapping[str, Origin]] = MappingProxyType(
    {
        "cwl": Origin("ours", f"{CWL}, sections 4.2 to 4.4, with our settings"),
        "tiered": Origin("ours", "tiered context text"),
        "provenance": Origin("ours", "this project"),
        "cwl-paper": Origin("peer", f"{CWL}, Algorithm 1, to the letter"),
        "pi-cwl": Origin("peer", "Kiz8-Team/pi-cwl at cd2ea3f"),
        "oldest-turn": Origin("peer", SELF_GC),
        "tool-prune": Origin("peer", SELF_GC),
        "tool-mask-prune": Origin("peer", SELF_GC),
        "hybrid": Origin("peer", SELF_GC),
        "observation-masking": Origin("peer", "The Complexity Trap, arXiv 2508.21433"),
        "sliding-window": Origin("peer", "LangChain trim_messages, Strands"),
        "opencode-prune": Origin("peer", "anomalyco/opencode, session/compaction.ts"),
        "cline": Origin("peer", "cline/cline, ContextManager.ts"),
        "clear-tool-uses": Origin("peer", "Anthropic, clear_tool_uses_20250919"),
        "langchain-clearing": Origin("peer", "LangChain, ContextEditingMiddleware"),
        "discard-75": Origin("peer", "DeepSeek-V3.2 report, search agent"),
        "discard-all": Origin("peer", "DeepSeek-V3.2 report, search agent"),
        "compaction": Origin("peer", "summary compaction, as agents do it"),
        UNBOUNDED: Origin("bound", "no eviction"),
        "each": Origin("bound", "no eviction, no earlier task"),
    }
)
PLACES: Final[Mapping[Whose, int]] = MappingProxyType({"bound": 0, "ours": 1, "peer": 2})  # in tables: bounds first
