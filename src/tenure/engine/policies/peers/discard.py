"""Discard-75 % and discard-all: the oldest three quarters of the tool calls with their results leave, or all of them.

DeepSeek-V3.2 report, context management of the search agent: "Discard-75%" drops the first 75 % of the tool call history, "Discard-all"
resets the context by dropping all of it, when usage passes a large share of the window.
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.peers.shown import is_free, results
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Take


class Discard(Struct, frozen=True, kw_only=True):
    """The rule says how much goes: the oldest `share` (0 to 1) of the calls."""

    name: str = "discard-75"
    share: float = 0.75
    conduct: Conduct = Conduct(amount="all", naming="descriptions")

    @classmethod
    def every(cls) -> "Discard":
        """Discard-all."""
        return cls(name="discard-all", share=1.0)

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first."""
        found = results(situation)
        for span in found[: int(len(found) * self.share)]:
            if is_free(situation, span) and span.result is not None:
                yield Take(how="prune", object=span.object, places=(span.call, span.result))
