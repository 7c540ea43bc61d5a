"""OpenCode's prune: outputs of tools older than the newest 40,000 tokens of them are cleared, when that saves 20,000.

anomalyco/opencode, packages/opencode/src/session/compaction.ts: walks backwards, skips the newest two user turns, protects PRUNE_PROTECT
tokens of tool output, clears the rest if more than PRUNE_MINIMUM would go; the output of the skill tool never.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.policies.peers.shown import is_free, results, weight
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.index import Span
from tenure.engine.record.objects import tool_name
from tenure.engine.view.action import Shorten

CLEARED: Final = "[Old tool result content cleared]"
PROTECTED_TOOLS: Final = frozenset({"skill"})


class OpencodePrune(Struct, frozen=True, kw_only=True):
    """The rule says how much goes. Sizes in o200k tokens; OpenCode's own are characters / 4."""

    name: str = "opencode-prune"
    protect: int = 40_000
    minimum: int = 20_000
    turns: int = 2
    conduct: Conduct = Conduct(amount="all", naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Shorten]:
        """All that is old enough, or nothing."""
        newest = situation.index.turns[-self.turns :]
        stop = newest[0].start[0] if len(newest) == self.turns else 0
        seen, chosen = 0, list[Span]()
        for span in reversed(results(situation)):
            if span.call[0] >= stop or tool_name(span.tool) in PROTECTED_TOOLS:
                continue
            seen += weight(situation, span)
            if seen > self.protect and is_free(situation, span):
                chosen.append(span)
        if sum(weight(situation, span) for span in chosen) > self.minimum:
            for span in reversed(chosen):
                yield Shorten(span=span.ordinal, how="clear", text=CLEARED)
