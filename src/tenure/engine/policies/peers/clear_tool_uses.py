"""Clearing of tool uses, as Anthropic's API and LangChain do it: all but the newest three results, oldest first.

Anthropic, context editing, strategy clear_tool_uses_20250919 (beta context-management-2025-06-27): trigger 100,000 input tokens, keep 3,
clear_at_least none, exclude_tools, clear_tool_inputs false. LangChain's ClearToolUsesEdit has the same numbers and "[cleared]".
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.peers.shown import is_free, results, weight
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.objects import tool_name
from tenure.engine.view.action import Shorten


class ClearToolUses(Struct, frozen=True, kw_only=True):
    """The rule says how much goes. `trigger` and `at_least` in o200k tokens of the view."""

    name: str = "clear-tool-uses"
    trigger: int = 100_000
    keep: int = 3
    at_least: int = 0
    exclude: frozenset[str] = frozenset()
    placeholder: str = "[Tool result cleared to save context]"
    conduct: Conduct = Conduct(amount="all", naming="descriptions")

    @classmethod
    def langchain(cls) -> "ClearToolUses":
        """LangChain's ContextEditingMiddleware with its default edit."""
        return cls(name="langchain-clearing", placeholder="[cleared]")

    def __call__(self, situation: Situation, /) -> Iterator[Shorten]:
        """All but the newest, or nothing below the trigger or where it would save too little."""
        if situation.view.tokens < self.trigger:
            return
        found = results(situation)
        old = found[: max(0, len(found) - self.keep)]
        chosen = [span for span in old if tool_name(span.tool) not in self.exclude and is_free(situation, span)]
        if sum(weight(situation, span) for span in chosen) >= self.at_least:
            for span in chosen:
                yield Shorten(span=span.ordinal, how="clear", text=self.placeholder)
