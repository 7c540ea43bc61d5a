"""Structured context eviction.

"Beyond Compaction: Structured Context Eviction for Long-Horizon Agents" (the CWL paper), sections 4.2 to 4.4 and Algorithm 1: act
episodes before expl episodes, an expl only when every act that depends on it has left, oldest first, and in each episode the least
destructive level first. The budget is checked again after every action by the loop that all policies share.

`Cwl.paper()` is exactly the paper. Ours differs, each in a setting of its own: an expl that no act has used yet goes last; batches go
down to the budget's floor; what leaves is named by bounded residues; the newest exchanges are left alone.

`PiCwl` is the paper as its public implementation has it. pi-cwl (Kiz8-Team/pi-cwl at cd2ea3f, the paper's reference [6]) departs from it: the
oldest eligible episode of any kind goes first, tools leave in three groups by name, nothing is left in an episode's place, and what lies in no
episode is permanent. `tenure.testing.pi_filter` is its filter to the letter, over its own messages.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct

from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.policies.work import WorkGraph
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.view.action import LEVELS, Level, Strip, Unstrip, levels_text


class Cwl(Struct, frozen=True, kw_only=True):
    """The policy; each field is one departure from the paper. A pass costs O(view + evicted · log evicted)."""

    name: str = "cwl"
    unused_last: bool = True  # an expl that no act has used yet goes after all others
    yields: bool = True  # when a limit could not be kept otherwise, what open work builds on gives up output; never its marks
    conduct: Conduct = Conduct()

    @classmethod
    def paper(cls) -> "Cwl":
        """No departure at all: one smallest step at a time, descriptions only, no tail but the exchange that is open."""
        return cls(
            name="cwl-paper",
            unused_last=False,
            yields=False,
            conduct=Conduct(amount="limit", naming="descriptions", tail_exchanges=0, before_marks=True),
        )

    @property
    def marks(self) -> str:
        """What leaves of marked work, and in which order."""
        last = "; an expl that no act has used goes last" if self.unused_last else ""
        yielding = (
            " When all that is not enough, an expl that is still built on and the older part of the open episode give up their output."
            if self.yields
            else ""
        )
        return (
            "finished episodes leave: the oldest act, else the oldest expl, and an expl only once every act that depends on it has "
            f"left{last}. {levels_text(LEVELS)}. Work outside episodes counts as expl episodes of one step each.{yielding}"
        )

    def __call__(self, situation: Situation, /) -> Iterator[Strip]:
        """Algorithm 1, one action at a time."""
        episodes = situation.index.episodes
        walk = Walk(episodes, situation.free, self.rank, alive=situation.alive, held=situation.held)
        while (target := walk.next_target()) is not None:
            for level in LEVELS[target.type]:
                yield Strip(episode=target.ordinal, level=level)
            walk.evicted(target)
        for locked in walk.locked() if self.yields else ():
            for level in LEVELS[locked.type][:-1]:
                yield Strip(episode=locked.ordinal, level=level, reluctant=True)

    def rank(self, episode: Episode) -> int:
        """What goes first: an act, an expl that was used, one that was not yet."""
        if episode.type is EpisodeType.ACT:
            return 0
        return 2 if self.unused_last and episode.declared and not episode.dependents else 1


class CwlInferred(Struct, frozen=True, kw_only=True):
    """Algorithm 1 over the work that was inferred where the agent declared none: a step leaves with the piece of work it is part of."""

    name: str = "cwl-inferred"
    conduct: Conduct = Conduct()

    @property
    def marks(self) -> str:
        """What leaves of marked work, and in which order."""
        return f"{Cwl().marks} Where nothing is marked, it is inferred which steps belong together."

    def __call__(self, situation: Situation, /) -> Iterator[Strip]:
        """One level of a piece of work after another; then what open work builds on gives up output, as `cwl` has it."""
        works = WorkGraph(situation).works
        held = {work.episode.ordinal for work in works if any(ordinal in situation.held for ordinal in work.members)}
        walk = Walk([work.episode for work in works], range(len(works)), Cwl().rank, alive=set(range(len(works))), held=held)
        while (target := walk.next_target()) is not None:
            for level in LEVELS[target.type]:
                for ordinal in works[target.ordinal].members:
                    yield Strip(episode=ordinal, level=level)
            walk.evicted(target)
        yield from Cwl()(situation)


class Walk:
    """The candidates of one pass: closed, not prologue, not active, all dependents fully evicted (Algorithm 1, line 2)."""

    def __init__(
        self,
        episodes: Sequence[Episode],
        candidates: Iterable[int],
        rank: Callable[[Episode], int],
        *,
        alive: Set[int],
        held: Container[int],
    ) -> None:
        """`candidates` are ordinals of episodes; those of the least rank go first, and of them the oldest."""
        self._episodes, self._rank, self._held = episodes, rank, held
        self._waiting = {ordinal: len(alive & set(self._episodes[ordinal].dependents)) for ordinal in candidates}
        self._heap = [self._place(ordinal) for ordinal, left in self._waiting.items() if left == 0 and self._closed(ordinal)]
        heapify(self._heap)

    def next_target(self) -> Episode | None:
        """The oldest of the eligible episodes that rank first (line 6)."""
        return self._episodes[heappop(self._heap)[1]] if self._heap else None

    def evicted(self, target: Episode) -> None:
        """Unlock what `target` depended on; an episode of which something is held stays, and holds its dependencies."""
        if target.ordinal in self._held:
            return
        for ordinal in target.dependencies:
            if ordinal in self._waiting:
                self._waiting[ordinal] -= 1
                if self._waiting[ordinal] == 0 and self._closed(ordinal):
                    heappush(self._heap, self._place(ordinal))

    def locked(self) -> list[Episode]:
        """The closed episodes that something shown still builds on, oldest first; last the open one, of which the older part may go."""
        waiting = sorted(ordinal for ordinal, left in self._waiting.items() if left and self._closed(ordinal))
        active = [ordinal for ordinal in self._waiting if not self._closed(ordinal)]
        return [self._episodes[ordinal] for ordinal in (*waiting, *active)]

    def _closed(self, ordinal: int) -> bool:
        return self._episodes[ordinal].closed

    def _place(self, ordinal: int) -> tuple[int, int]:
        return self._rank(self._episodes[ordinal]), ordinal  # ordinals follow the order of starts


PI_LEVELS: Final = {
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
            f"back when a later act names it. {levels_text(PI_LEVELS)}. Work outside episodes never leaves."
        )

    def __call__(self, situation: Situation, /) -> Iterator[Strip | Unstrip]:
        """What is to come back, then one level after another of the oldest episode that may go."""
        returning, episodes = _missed(situation), situation.index.episodes
        yield from (Unstrip(episode=ordinal) for ordinal in sorted(returning))
        closed = (n for n in situation.free.keys() | returning if episodes[n].declared and episodes[n].closed)
        walk = Walk(episodes, closed, rank=lambda _: 0, alive=situation.alive, held=situation.held)
        while (target := walk.next_target()) is not None:
            for level in PI_LEVELS[target.type]:
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
