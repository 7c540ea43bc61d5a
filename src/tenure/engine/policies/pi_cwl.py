"""CWL as its public implementation does it.

pi-cwl (Kiz8-Team/pi-cwl at cd2ea3f, the CWL paper's reference [6]) departs from the paper: the oldest eligible episode of any kind goes
first, tools leave in three groups by name, nothing is left in an episode's place, and what lies in no episode is permanent.
`tenure.testing.pi_filter` is its filter to the letter, over its own messages.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.policies.cwl import Walk
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.view.action import Level, Strip, Unstrip
from tenure.engine.view.levels import levels_text

LEVELS: Final = {
    EpisodeType.EXPL: (Level.REASONING, Level.SEARCH, Level.COMMANDS, Level.READS, Level.EPISODE),
    EpisodeType.ACT: (Level.SEARCH, Level.COMMANDS, Level.READS, Level.EPISODE),
}


class PiCwl(Struct, frozen=True, kw_only=True):
    """pi-cwl's order and levels over our index.

    It differs where a view would break a law. An episode is its blocks, from the call that starts it to the result of the call that ends
    it: so no call loses its result (bug B1), no result its call (B2), no start stays behind (B3), and reasoning leaves together with
    the call it is bound to (B5). Human text in an episode stays whatever its role (deviation D5), as do holds and the open exchange.

    An expl that has left comes back when a later act names it (D6). pi-cwl looks at every call, we when the budget is passed, so it comes
    back then.
    """

    name: str = "pi-cwl"
    conduct: Conduct = Conduct(amount="limit", naming="nothing", tail_exchanges=0)

    @property
    def marks(self) -> str:
        """What leaves of marked work, and in which order."""
        return (
            "finished episodes leave: the oldest of either type, but an expl only once every act that depends on it has left; it comes "
            f"back when a later act names it. {levels_text(LEVELS)}. Work outside episodes never leaves."
        )

    def __call__(self, situation: Situation, /) -> Iterator[Strip | Unstrip]:
        """What is to come back, then one level after another of the oldest episode that may go."""
        returning, episodes = _missed(situation), situation.index.episodes
        yield from (Unstrip(episode=ordinal) for ordinal in sorted(returning))
        closed = (n for n in situation.free.keys() | returning if episodes[n].declared and episodes[n].closed)
        walk = Walk(situation, closed, rank=lambda _: 0)
        while (target := walk.next_target()) is not None:
            for level in LEVELS[target.type]:
                yield Strip(episode=target.ordinal, level=level)
            walk.evicted(target)


def _missed(situation: Situation) -> frozenset[int]:
    """The episodes that something alive depends on and of which something has left."""
    episodes = situation.index.episodes
    named = {expl for ordinal in situation.alive for expl in episodes[ordinal].dependencies}
    return frozenset(ordinal for ordinal in named if _has_gaps(situation, episodes[ordinal]))


def _has_gaps(situation: Situation, episode: Episode) -> bool:
    unfit = situation.rules.thinking == "prefix_bound"  # signed reasoning that left is no longer valid
    return any(
        facts.episode == episode.ordinal and not situation.view.shows(entry, number) and not (unfit and facts.signed)
        for entry in situation.index.entries_of(episode)
        for number, facts in enumerate(situation.index.entries[entry].blocks)
    )
