"""The graph of work in a view: episodes that the agent declared, and those inferred where it declared none, with what they depend on."""

from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct

from tenure.engine.policies.situation import Situation
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.inferred import NO_WORK


class WorkState(IntEnum):
    """How near a piece of work is to what goes on now, the nearest last."""

    CLOSED_ACT = 0
    USED = 1  # an expl all of whose acts are over
    UNUSED = 2  # an expl that no act was built on yet
    BASE = 3  # what the open work builds on
    OPEN = 4


class PieceOfWork(Struct, frozen=True, kw_only=True):
    """One piece of work: an episode, and the index's episodes that it is made of: itself where it is declared, else steps."""

    episode: Episode  # its ordinal and those it depends on are positions in `WorkGraph.works`
    members: tuple[int, ...]


class WorkGraph:
    """All work of which something is shown, by start. O(episodes shown)."""

    def __init__(self, situation: Situation) -> None:
        index = situation.index
        inferred: dict[int, list[int]] = {}
        declared: list[int] = []
        for ordinal in sorted(situation.alive - {NO_WORK}):
            episode = index.episodes[ordinal]
            if episode.declared:
                declared.append(ordinal)
            else:
                step = index.entries[episode.start[0]].step
                inferred.setdefault(index.inferred.of_step(step), []).append(ordinal)
        found: list[tuple[Episode, tuple[int, ...]]] = [(index.episodes[ordinal], (ordinal,)) for ordinal in declared]
        for number, members in inferred.items():
            if number == NO_WORK:  # words before the first call
                found += [(index.episodes[ordinal], (ordinal,)) for ordinal in members]
            else:
                found.append((index.inferred.episodes[number], tuple(members)))
        found.sort(key=lambda pair: index.episodes[pair[1][0]].start)
        places = {(episode.declared, episode.ordinal): place for place, (episode, _) in enumerate(found)}
        self.works: Sequence[PieceOfWork] = tuple(
            PieceOfWork(episode=_moved(episode, place, places), members=members) for place, (episode, members) in enumerate(found)
        )
        self._states = self._found_states()

    def state(self, ordinal: int) -> WorkState:
        """How near an episode of the index is to what goes on now."""
        return self._states.get(ordinal, WorkState.UNUSED)

    def _found_states(self) -> dict[int, WorkState]:
        works = self.works
        newest = next((work for work in reversed(works) if not work.episode.closed), works[-1] if works else None)
        bases = set(newest.episode.dependencies) if newest is not None else set[int]()
        states: dict[int, WorkState] = {}
        for work in works:
            episode = work.episode
            if work is newest:
                state = WorkState.OPEN
            elif episode.ordinal in bases:
                state = WorkState.BASE
            elif episode.type is EpisodeType.ACT:
                state = WorkState.CLOSED_ACT
            else:
                state = WorkState.USED if episode.dependents else WorkState.UNUSED
            states.update(dict.fromkeys(work.members, state))
        return states


def _moved(episode: Episode, place: int, places: dict[tuple[bool, int], int]) -> Episode:
    """An episode under its place among the work that is shown."""

    def shown(ordinals: Sequence[int]) -> tuple[int, ...]:
        return tuple(places[episode.declared, each] for each in ordinals if (episode.declared, each) in places)

    return Episode(
        ordinal=place,
        type=episode.type,
        declared=True,
        name=episode.name,
        start=episode.start,
        closed=episode.closed,
        end=episode.end,
        description=episode.description,
        dependencies=shown(episode.dependencies),
        dependents=shown(episode.dependents),
        turn=episode.turn,
    )
