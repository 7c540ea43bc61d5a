"""What no policy may touch, and why."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.record.entry import At, Origin, Role
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.view.project import Projection

HoldKind = Literal["pin", "approval", "handle"]
Reason = Literal["human", "prologue", "tail", "pin", "hold", "episode", "recall", "notes"]

TAIL_EXCHANGES: Final = 4
TAIL_SHARE: Final = 0.2
ACTIVE_SHARE: Final = 0.5  # of the budget: an episode that is never ended does not hold all of it
RECALL_CALLS: Final = 3  # that what a recall brought back is shown to for certain
RECALL_SHARE: Final = 0.1  # of the budget, at most: all such results together


class Hold(Struct, frozen=True, kw_only=True, gc=False):
    """What the record cannot know and the host passes in: something that no policy may touch. Known by all but its `reason`."""

    object: str  # an object id or handle: read:12, user:3, step:17, episode:locate-auth, entry:40, entry:40/1
    kind: HoldKind = "pin"
    reason: str = ""


Key = tuple[str, int]
_RENAMED: Final = frozenset({"episode", "skill", "spill"})  # objects whose names a later one may bear


class Holds:
    """What the host holds, in the order in which it was held. Mutable: what a hold stands for is looked up once, as long as its name is its own."""

    def __init__(self) -> None:
        self.releases = 0  # how often something was let go
        self._holds: dict[tuple[str, HoldKind], Hold] = {}
        self._standing: dict[Key, Reason] = {}
        self._named: list[Hold] = []  # those looked up each time

    def __iter__(self) -> Iterator[Hold]:
        return iter(self._holds.values())

    def add(self, index: Index, hold: Hold) -> tuple[Key, ...]:
        """Hold an object; what it is known by. Raises InputError when the record has no such object. O(1)."""
        keys = held_keys(index, hold)
        if self._holds.pop((hold.object, hold.kind), None) is not None:
            self._named = [each for each in self._named if (each.object, each.kind) != (hold.object, hold.kind)]
        self._holds[hold.object, hold.kind] = hold
        if parse_handle(hold.object).kind in _RENAMED:
            self._named.append(hold)
        else:
            self._standing.update(dict.fromkeys(keys, _reason(hold)))
        return keys

    def put(self, index: Index, holds: Iterable[Hold]) -> None:
        """Hold these instead."""
        held, self.releases = tuple(holds), self.releases + 1
        self._holds, self._standing, self._named = {}, {}, []
        for hold in held:
            self.add(index, hold)

    def standing(self) -> Mapping[Key, Reason]:
        """What is held under names that stay, by key; it grows as more is held."""
        return self._standing

    def named(self, index: Index) -> Mapping[Key, Reason]:
        """What is held now under names that may be borne by another object later."""
        return {key: _reason(hold) for hold in self._named for key in held_keys(index, hold)}


def _reason(hold: Hold) -> Reason:
    return "pin" if hold.kind == "pin" else "hold"


class Guard:
    """Which blocks no policy touches, and why. O(1) a question; made once per decision.

    The prologue is the system prompt, and the human text before the first reply, which stays as all human text does. With `before_marks` it is
    everything before the first accepted mark (CWL paper, section 4.3): of the message that holds it, the blocks before it.
    """

    def __init__(
        self,
        index: Index,
        *,
        tail: frozenset[int],
        opening: frozenset[int] = frozenset(),
        holds: Holds | None = None,
        recalled: frozenset[int] = frozenset(),
        before_marks: bool = False,
        waived: bool = False,
        active_from: int = 0,
    ) -> None:
        self.index = index
        self.active_from = active_from  # the open episode stays from this entry on
        self.waived = waived  # human text and the open episode may go too
        self.tail = tail
        self._recalled = recalled
        self._opening = opening
        self._prologue: At = (index.first_delimiter if before_marks else None) or (0, 0)  # what lies before it stays
        self._holds = holds or Holds()
        self._held, self._named = self._holds.standing(), self._holds.named(index)

    @property
    def standing(self) -> object:
        """What it holds beside the record's end: equal as long as nothing older has changed hands, but for holds that came."""
        index = self.index
        return (
            self._opening,
            self._prologue,
            self._named,
            self._holds.releases,
            len(index.references),
            index.notes.span,
            self.waived,
        )

    @property
    def settled_until(self) -> int:
        """The entry before which nothing is held that may become free as the record grows. O(tail)."""
        index = self.index
        recalled = [index.spans[ordinal].call[0] for ordinal in self._recalled]
        active = self.index.graph.open
        episode = [max(self.active_from, active.start[0])] if active is not None else []
        return min((index.spoken, len(index), *self.tail, *recalled, *episode))

    def tied(self) -> Container[int]:
        """The entries of which more may be held than human text and the open episode: anything that asks for `why`."""
        if self._held or self._named:
            return range(len(self.index))
        notes = () if self.index.notes.span is None else (self.index.notes.span,)
        spans = [self.index.spans[ordinal] for ordinal in (*self._recalled, *notes, *self.index.references)]
        kept = [at[0] for span in spans for at in (span.call, span.result) if at is not None]
        return self.tail.union(self._opening, self.index.system, range(self._prologue[0] + 1), kept)

    def why(self, at: At) -> Reason | None:
        """Why a block may not be touched; None when it may."""
        index = self.index
        facts = index.block(at)
        if facts.origin is Origin.HUMAN and not self.waived:
            return "human"
        if at < self._prologue or at[0] in self._opening or index.entries[at[0]].role is Role.SYSTEM:
            return "prologue"
        if at[0] in self.tail:
            return "tail"
        if facts.episode != NONE and facts.episode == self.active() and at[0] >= self.active_from:
            return "episode"
        if facts.span in self._recalled:
            return "recall"
        if facts.span in index.references:
            return "hold"  # tools stand and fall with the result that declared them
        if facts.span == index.notes.span:
            return "notes"  # they are the agent's own, and hold whatever is waived
        if self._held or self._named:
            return self._held_why(at, facts.span, facts.episode, facts.turn)
        return None

    def why_for_good(self, at: At) -> Reason | None:
        """The same, but for reasoning right before the first mark: it goes when the mark that it led to does."""
        why = self.why(at)
        leads = at < self._prologue and at[0] == self._prologue[0]
        between = self.index.entries[at[0]].blocks[at[1] : self._prologue[1]] if leads else ()
        return None if between and all(fact.kind == "thinking" for fact in between) else why

    def active(self) -> int:
        """The open episode, which no policy touches from `active_from` on; NONE when there is none, or it may go."""
        active = self.index.graph.open
        return NONE if active is None or self.waived else active.ordinal

    def _held_why(self, at: At, span: int, episode: int, turn: int) -> Reason | None:
        keys = (("span", span), ("episode", episode), ("turn", turn), ("entry", at[0]), (f"block {at[1]}", at[0]))
        return next((held[key] for key in keys for held in (self._named, self._held) if key in held), None)


def faithful_guard(index: Index, view: Projection) -> Guard:
    """For a published rule that is followed as it is: nothing is protected but what no request is valid without.

    That is the system prompt, the message of the user's role that a view opens with, and what the model has not answered yet. O(tail).
    """
    opening = next((row.entry for row in view.rows() if index.entries[row.entry].role is not Role.SYSTEM), None)
    start = index.spoken if index.in_loop else index.steps[-1].entry + 1 if index.steps else 0
    return Guard(
        index,
        tail=frozenset(range(start, len(index))),
        opening=frozenset(index.system if opening is None else (opening, *index.system)),
        waived=True,
    )


def governed_guard(
    index: Index,
    view: Projection,
    limit: int,
    *,
    exchanges: int = TAIL_EXCHANGES,
    holds: Holds | None = None,
    before_marks: bool = False,
) -> Guard:
    """What is protected under a limit of o200k tokens. Without a tail, as in the paper, no recall is, and an open episode stays whole. O(tail)."""
    return Guard(
        index,
        tail=tail_of(index, view, limit, exchanges),
        opening=opening_of(index, view),
        holds=holds,
        recalled=fresh_recalls(index, view, limit) if exchanges else frozenset(),
        before_marks=before_marks,
        active_from=active_of(index, view, limit) if exchanges else 0,
    )


def tail_of(index: Index, view: Projection, limit: int, exchanges: int = TAIL_EXCHANGES) -> frozenset[int]:
    """The entries of the open exchange and of the newest completed ones, these at most TAIL_SHARE of `limit` o200k tokens.

    An exchange is open until the model has seen its results. O(tail).
    """
    if not index.steps:
        return frozenset()
    entries: set[int] = set()
    last = index.steps[-1]
    newest = index.turns[-1].start[0] if index.turns else -1
    is_open = last.calls > 0 or newest <= last.entry  # the model has not answered these results yet
    stop = len(index)
    spent = 0
    for number, step in enumerate(reversed(index.steps)):
        span = range(step.entry, stop)
        stop = step.entry
        if number == 0 and is_open:
            entries.update(span)
            continue
        if number - is_open >= exchanges:
            break
        rows = [row for row in map(view.row, span) if row is not None]
        spent += sum(row.tokens for row in rows)
        if spent > limit * TAIL_SHARE:
            break
        entries.update(row.entry for row in rows)
    return frozenset(entries)


def active_of(index: Index, view: Projection, limit: int) -> int:
    """The entry from which on the open episode stays: its newest part, of ACTIVE_SHARE of `limit` o200k tokens. O(its rows).

    An agent that forgets to end what it started would hold its whole window with it for good.
    """
    active = index.graph.open
    if active is None:
        return 0
    spent = 0
    for row in view.rows_from(active.start[0]):
        spent += row.tokens
        if spent > limit * ACTIVE_SHARE:
            return row.entry + 1
    return 0


def fresh_recalls(index: Index, view: Projection, limit: int) -> frozenset[int]:
    """The spans of recalls that fewer than RECALL_CALLS replies have seen, the newest that weigh RECALL_SHARE of `limit` o200k tokens together.

    O(replies looked at, recalls made in them).
    """
    start, replies = len(index), 0
    for step in reversed(index.steps):
        if (reply := index.entries[step.entry].reply) < start:
            start, replies = reply, replies + 1
            if replies == RECALL_CALLS:
                break
    fresh: set[int] = set()
    spent = 0.0
    for ordinal in reversed(index.recalls):
        span = index.spans[ordinal]
        if span.call[0] < start:
            break
        spent += sum(view.weight(*at) for at in (span.call, span.result) if at is not None and view.shows(*at))
        if spent > limit * RECALL_SHARE:
            break
        fresh.add(ordinal)
    return frozenset(fresh)


def opening_of(index: Index, view: Projection) -> frozenset[int]:
    """The entry that a view must open with where no human spoke before the first reply: no provider takes one that opens with a reply.

    O(entries before the first reply that is shown).
    """
    first: int | None = None
    for row in view.rows():
        facts = index.entries[row.entry]
        if facts.role is Role.ASSISTANT:
            break
        if facts.role is Role.SYSTEM:
            continue
        if any(facts.blocks[number].origin is Origin.HUMAN for number in row.blocks):
            return frozenset()
        first = row.entry if first is None and facts.role is Role.USER else first
    return frozenset(() if first is None else (first,))


def entries_under(index: Index, key: Key) -> set[int]:
    """The entries with blocks that a key stands for, and those of the calls and results that these go with."""
    kind, number = key
    if kind == "span":
        spans, entries = [index.spans[number]], set[int]()
    else:
        entries = set(_range_of(index, kind, number))
        spans = [index.spans[facts.span] for entry in entries for facts in index.entries[entry].blocks if facts.span != NONE]
    return entries.union(at[0] for span in spans for at in (span.call, span.result) if at is not None)


def _range_of(index: Index, kind: str, number: int) -> range:
    if kind == "turn":
        start, stop = (
            index.turns[number - 1].start[0],
            index.turns[number].start[0] + 1 if number < len(index.turns) else len(index),
        )
        return range(start, stop)
    return index.entries_of(index.episodes[number]) if kind == "episode" else range(number, number + 1)


def held_keys(index: Index, hold: Hold) -> tuple[Key, ...]:
    """What a hold is known by in the index. Raises InputError when the record has no such object."""
    handle = parse_handle(hold.object)
    places = blocks_of(index, handle)
    match handle.kind:
        case "user":
            return (("turn", int(handle.name)),)
        case "entry":
            entry, block = places[0]
            is_alone = (
                "/" in handle.name and index.block((entry, block)).kind != "opaque"
            )  # a tool that the provider ran: call and result
            return ((f"block {block}" if is_alone else "entry", entry),)
        case "skill":  # the load in force; what the harness said with it has no call of its own
            said = dict.fromkeys(("entry", entry) for entry, block in places if index.block((entry, block)).span == NONE)
            return ("span", index.block(places[0]).span), *said
        case "episode" | "step":
            return (("episode", index.block(places[0]).episode),)
        case _:
            return (("span", index.block(places[0]).span),)
