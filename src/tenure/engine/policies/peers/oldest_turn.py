"""Oldest-turn: the oldest conversational spans go, the latest user turn stays.

Self-GC paper, Baselines: "chronologically folds the oldest conversational spans while preserving the latest user turn".
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.peers.shown import turns
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Take


class OldestTurn(Struct, frozen=True, kw_only=True):
    """Turn after turn, all but what its human said."""

    name: str = "oldest-turn"
    conduct: Conduct = Conduct(naming="descriptions")

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first; the latest turn never."""
        found = turns(situation)
        newest = max(found, default=0)
        for number, places in found.items():
            if number != newest:
                yield Take(how="prune", object=f"user:{number}" if number else "entry:0", places=tuple(places))
