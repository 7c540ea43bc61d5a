"""Observation masking: all but the newest observations are replaced by a line, reasoning and actions stay.

"The Complexity Trap: Simple Observation Masking Is as Efficient as LLM Summarization for Agent Context Management" (arXiv 2508.21433):
a rolling window of the newest M = 10 observations.
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.peers.shown import is_free, results
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import ToolResult
from tenure.engine.view.action import Shorten


class ObservationMasking(Struct, frozen=True, kw_only=True):
    """The rule says how much goes: everything behind the window."""

    name: str = "observation-masking"
    window: int = 10  # newest observations that stay
    conduct: Conduct = Conduct(amount="all", naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Shorten]:
        """Oldest first."""
        found = results(situation)
        for span in found[: max(0, len(found) - self.window)]:
            if is_free(situation, span) and span.result is not None:
                block = situation.read(span.result[0]).blocks[span.result[1]]
                lines = block.text.count("\n") + 1 if isinstance(block, ToolResult) else 0
                yield Shorten(span=span.ordinal, how="mask", text=f"Previous {lines} lines omitted for brevity.")
