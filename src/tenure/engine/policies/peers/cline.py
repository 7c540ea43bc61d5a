"""Cline's truncation: duplicate file reads first; if they save 30 %, nothing else; else half of the messages go, or three quarters.

cline/cline, src/core/context/context-management/ContextManager.ts: messages 0 and 1 always stay; `getNextTruncationRange` keeps about half
of the remaining pairs, or a quarter where half would still be too large; of a file that was read several times the latest read stays here
as there, the others point to it.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.policies.peers.shown import is_free, results, steps, weight
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.index import Span
from tenure.engine.record.objects import tool_name
from tenure.engine.view.action import Action, Shorten, Take

DUPLICATE: Final = (
    "[[NOTE] This file read has been removed to save space in the context window. Refer to the latest file read for the most up to "
    "date version of this file.]"
)
READS: Final = frozenset("read read_file readfile view".split())
FIRST_STEPS: Final = 1  # messages 0 and 1: the task and the first answer


class Cline(Struct, frozen=True, kw_only=True):
    """The rule says how much goes."""

    name: str = "cline"
    enough: float = 0.3  # of the view: duplicates that save as much are all that goes
    conduct: Conduct = Conduct(amount="all", naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Duplicate reads, then perhaps the oldest half or three quarters."""
        duplicates = list(self._duplicates(situation))
        for span in duplicates:
            yield Shorten(span=span.ordinal, how="dedupe", text=DUPLICATE)
        saved = sum(weight(situation, span) for span in duplicates)
        if saved >= self.enough * situation.view.tokens:
            return
        found = list(steps(situation).items())[FIRST_STEPS:]
        keeps_half = (situation.view.tokens - saved) // 2 <= situation.limit
        for number, places in found[: len(found) // 2 if keeps_half else len(found) * 3 // 4]:
            yield Take(how="prune", object=f"step:{number}", places=tuple(places))

    def _duplicates(self, situation: Situation) -> Iterator[Span]:
        latest: dict[str, int] = {}
        reads = [span for span in results(situation) if tool_name(span.tool) in READS and span.cue]
        for span in reads:
            latest[span.cue] = span.ordinal
        yield from (span for span in reads if latest[span.cue] != span.ordinal and is_free(situation, span))
