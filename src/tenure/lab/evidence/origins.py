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


class SourceOrigin(Struct, frozen=True):
    """Where a row comes from; `bound` is what no policy can do, because it knows the future, or does nothing."""

    whose: Whose
    source: str


# By the first word of a row's name: `compaction at 80k` is compaction's. What is not here is an oracle, which knows the future (`views.sql`).
KNOWN: Final[Mapping[str, SourceOrigin]] = MappingProxyType(
    {
        "cwl": SourceOrigin("ours", f"{CWL}, sections 4.2 to 4.4, with our settings"),
        "cwl-inferred": SourceOrigin("ours", f"{CWL}, Algorithm 1, over inferred work"),
        "tiered": SourceOrigin("ours", "tiered context text"),
        "graph": SourceOrigin("ours", "this project"),
        "cwl-paper": SourceOrigin("peer", f"{CWL}, Algorithm 1, to the letter"),
        "pi-cwl": SourceOrigin("peer", "Kiz8-Team/pi-cwl at cd2ea3f"),
        "oldest-turn": SourceOrigin("peer", SELF_GC),
        "tool-prune": SourceOrigin("peer", SELF_GC),
        "tool-mask-prune": SourceOrigin("peer", SELF_GC),
        "hybrid": SourceOrigin("peer", SELF_GC),
        "observation-masking": SourceOrigin("peer", "The Complexity Trap, arXiv 2508.21433"),
        "sliding-window": SourceOrigin("peer", "LangChain trim_messages, Strands"),
        "opencode-prune": SourceOrigin("peer", "anomalyco/opencode, session/compaction.ts"),
        "cline": SourceOrigin("peer", "cline/cline, ContextManager.ts"),
        "cline-75-50": SourceOrigin("peer", "cline/cline, ContextManager.ts"),
        "clear-tool-uses": SourceOrigin("peer", "Anthropic, clear_tool_uses_20250919"),
        "langchain-clearing": SourceOrigin("peer", "LangChain, ContextEditingMiddleware"),
        "discard-75": SourceOrigin("peer", "DeepSeek-V3.2 report, search agent"),
        "discard-all": SourceOrigin("peer", "DeepSeek-V3.2 report, search agent"),
        "compaction": SourceOrigin("peer", "summary compaction, as agents do it"),
        UNBOUNDED: SourceOrigin("bound", "no eviction"),
        "each": SourceOrigin("bound", "no eviction, no earlier task"),
    }
)
PLACES: Final[Mapping[Whose, int]] = MappingProxyType({"bound": 0, "ours": 1, "peer": 2})  # in tables: bounds first
