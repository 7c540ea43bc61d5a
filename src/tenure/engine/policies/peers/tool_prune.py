"""Tool-prune: tool outputs go under pressure, oldest first, each with its call.

Self-GC paper, Baselines: "greedily removes tool outputs under token pressure".
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.peers.shown import is_free, results
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Take


class ToolPrune(Struct, frozen=True, kw_only=True):
    """One call with its result at a time."""

    name: str = "tool-prune"
    conduct: Conduct = Conduct(naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first."""
        for span in results(situation):
            if is_free(situation, span) and span.result is not None:
                yield Take(how="prune", object=span.object, places=(span.call, span.result))
