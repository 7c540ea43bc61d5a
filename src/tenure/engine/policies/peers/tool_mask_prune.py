"""Tool-mask+prune: tool spans of low signal are masked first, then tool outputs go; and hybrid, which ends with the oldest turns.

Self-GC paper, Baselines: one "first masks low-signal tool spans and then prunes remaining tool outputs", the other "combines chronological
turn folding with tool-output pruning". What is of low signal the paper leaves open: here the enumerable output of searches and listings
(CWL paper, section 4.4: bulk).
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.peers.oldest_turn import OldestTurn
from tenure.engine.policies.peers.shown import is_free, results
from tenure.engine.policies.peers.tool_prune import ToolPrune
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.tools import ToolKind
from tenure.engine.view.action import Action, Shorten

MASK = "[output masked]"


class ToolMaskPrune(Struct, frozen=True, kw_only=True):
    """Masks, then prunes."""

    name: str = "tool-mask-prune"
    conduct: Conduct = Conduct(naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Searches and listings first, then every call, oldest first."""
        for span in results(situation):
            if span.kind is ToolKind.BULK and is_free(situation, span):
                yield Shorten(span=span.ordinal, how="mask", text=MASK)
        yield from ToolPrune()(situation)


class Hybrid(Struct, frozen=True, kw_only=True):
    """Prunes tool outputs, then takes the oldest turns."""

    name: str = "hybrid"
    conduct: Conduct = Conduct(naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Oldest first in both."""
        yield from ToolPrune()(situation)
        yield from OldestTurn()(situation)
