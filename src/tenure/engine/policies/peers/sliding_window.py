"""Sliding window: the oldest exchanges go until the rest fits, as in most chat frameworks (LangChain `trim_messages`, Strands).

The system prompt stays; cut between exchanges, so that no result is left without its call.
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.peers.shown import steps
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Take


class SlidingWindow(Struct, frozen=True, kw_only=True):
    """One reply with its results at a time."""

    name: str = "sliding-window"
    conduct: Conduct = Conduct(naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first."""
        for number, places in steps(situation).items():
            yield Take(how="prune", object=f"step:{number}", places=tuple(places))
