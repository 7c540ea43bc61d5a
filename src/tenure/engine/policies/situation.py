"""What a policy is shown."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tenure.engine.record.entry import At, Count, Entry, Origin, Read
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.view.action import Level, layers
from tenure.engine.view.guard import Guard
from tenure.engine.view.project import Projection, Row
from tenure.engine.view.rules import Rules
from tenure.errors import InputError


def no_texts(entry: int) -> Entry:
    """For a host that gives policies no texts. Raises InputError."""
    raise InputError("policy", f"needs the text of entry {entry}", "a session that was given a way to read its record")


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """Everything a policy may look at. `view` is read only."""

    index: Index
    view: Projection
    rules: Rules
    guard: Guard
    count: Count
    free: dict[int, list[At]] = field(default_factory=dict[int, list[At]])  # episode -> shown blocks that may go, in order
    held: dict[int, list[At]] = field(
        default_factory=dict[int, list[At]]
    )  # episode -> shown blocks that may not go, human text apart
    alive: frozenset[int] = frozenset()  # episodes of which something is shown: those not fully evicted
    read: Read = no_texts
    limit: int = 0  # the limit in force in o200k tokens; 0 where none is known
    window: int = 0  # what the view may weigh at all: the model's window, or a ceiling below it, in o200k tokens
    goal: int = 0  # what the view is to weigh when the policy is done; 0 where that is not known
    _free_places: dict[int, frozenset[At]] = field(default_factory=dict[int, frozenset[At]])
    _layers: dict[int, dict[Level, list[At]]] = field(default_factory=dict[int, dict[Level, list[At]]])

    def is_free(self, at: At) -> bool:
        """Whether a shown block may go, and what it cannot go without."""
        episode = self.index.block(at).episode
        places = self._free_places.get(episode)
        if places is None:
            places = self._free_places[episode] = frozenset(self.free.get(episode, ()))
        return at in places

    def layers(self, episode: int) -> dict[Level, list[At]]:
        """The blocks of an episode that may go, by the level that drops them; those that only the last level drops are left out."""
        found = self._layers.get(episode)
        if found is None:
            found = self._layers[episode] = layers(self.index, self.free.get(episode, ()))
        return found


def survey(
    index: Index,
    view: Projection,
    rules: Rules,
    guard: Guard,
    count: Count,
    *,
    read: Read = no_texts,
    limit: int = 0,
    window: int = 0,
    goal: int = 0,
    rows: Iterable[Row] | None = None,
) -> Situation:
    """The situation now, or only as far as it is about `rows`. One pass over the view, none over the record.

    What holds a call holds its result: they only go together.
    """
    free: dict[int, list[At]] = {}
    held: dict[int, list[At]] = {}
    tied = guard.tied()
    active, since = guard.active(), guard.active_from
    for row in view.rows() if rows is None else rows:
        entry = row.entry
        facts = index.entries[entry].blocks
        is_tied = entry in tied
        for block in row.blocks:
            fact = facts[block]
            if (fact.episode == NONE or fact.origin is Origin.HUMAN) and not guard.waived:
                continue
            pair = index.spans[fact.span] if fact.span != NONE else None
            if pair is None:
                at: At = (entry, block)
                other = at
            elif fact.kind == "tool_call":
                at, other = pair.call, pair.result
            else:
                at, other = pair.result or (entry, block), pair.call
            may_go = guard.why(at) is None if is_tied else active == NONE or fact.episode != active or entry < since
            if may_go and pair is not None:
                if other is None:
                    may_go = _is_interrupted(index, pair)
                elif other[0] in tied:
                    may_go = guard.why(other) is None
                elif since:  # else a pair is on one side
                    may_go = other[0] < since or index.block(other).episode != active
            (free if may_go else held).setdefault(fact.episode, []).append(at)
    return Situation(
        index=index,
        view=view,
        rules=rules,
        guard=guard,
        count=count,
        free=free,
        held=held,
        alive=frozenset(free.keys() | held.keys()),
        read=read,
        limit=limit,
        window=window,
        goal=goal,
    )


def _is_interrupted(index: Index, span: Span) -> bool:
    """Whether a call that has no result will get none: a human spoke since. Until then it holds itself."""
    return index.entries[span.call[0]].turn < len(index.turns)
