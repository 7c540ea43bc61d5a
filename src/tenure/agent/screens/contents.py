"""What the viewer lists: segments, turns and objects, each with its state and what it was carried for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from tenure.agent.screens.history import History
from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import At, Entry, Origin
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.record.tools import is_delimiter
from tenure.engine.view.edit import Commit, Drop, Insert, Remove, Replace, Restore
from tenure.engine.view.project import Projection
from tenure.errors import InputError

State = Literal["whole", "smaller", "gone"]
SAID_CHARS: Final = 400


class Carried(Struct, frozen=True, kw_only=True, gc=False):
    """Of one block: the calls that were sent it, and their tokens together (o200k)."""

    calls: int = 0
    tokens: int = 0

    def plus(self, other: "Carried") -> "Carried":
        """Of two blocks of one object: as many calls as the one that was carried longest."""
        return Carried(calls=max(self.calls, other.calls), tokens=self.tokens + other.tokens)

    def usd(self, prices: Prices) -> float:
        """What it cost if it was written to the cache once, and read from it ever after."""
        if not self.calls:
            return 0.0
        once = self.tokens / self.calls
        return once * prices.write + (self.tokens - once) * prices.read


class _Count:
    """One block: what it weighs now and since which call, and what it was carried for until then."""

    __slots__ = ("calls", "since", "tokens", "weight")

    def __init__(self, weight: int, since: int) -> None:
        self.weight, self.since, self.calls, self.tokens = weight, since, 0, 0

    def weigh(self, weight: int, call: int) -> None:
        if self.weight:
            self.calls += call - self.since
            self.tokens += self.weight * (call - self.since)
        self.weight, self.since = weight, call


class CallView(Struct, frozen=True, kw_only=True, gc=False):
    """One call of the model: what it was sent, and what of that had changed since the call before."""

    call: int
    entry: int  # of the answer
    turn: int
    tokens: int  # o200k, of the view
    commits: tuple[int, ...]  # made since the call before
    came: int  # tokens of entries that came since
    left: int  # tokens that commits took since, net


class Lifetime(Struct, frozen=True, kw_only=True):
    """What all blocks were carried for, what every call saw, and the view as it is now."""

    blocks: dict[At, Carried]
    calls: tuple[CallView, ...]
    now: Projection


class _Play:
    """A session in the middle of being played again. Mutable."""

    def __init__(self, index: Index, commits: Sequence[Commit]) -> None:
        self.view = Projection(index)
        self.counts: dict[At, _Count] = {}
        self.calls: list[CallView] = []
        self._index = index
        self._due = list(reversed(commits))

    def to(self, length: int) -> tuple[tuple[int, ...], int]:
        """Go on until the record has so many entries; the commits on the way, and the tokens they took."""
        made: list[int] = []
        left = 0
        while self._due and self._due[-1].entries <= length:
            commit = self._due.pop()
            self._grow(commit.entries)
            before = self.view.tokens
            self.view.apply(commit.edits)
            left += before - self.view.tokens
            for at in _touched(commit):
                self.counts[at].weigh(self.view.weight(*at), len(self.calls))
            made.append(commit.n)
        self._grow(length)
        return tuple(made), left

    def call(self, entry: int) -> None:
        """The model is asked, and answers with an entry."""
        before = self.view.tokens
        commits, left = self.to(entry)
        tokens, turn = self.view.tokens, self._index.entries[entry].turn
        came = tokens - before + left
        self.calls.append(
            CallView(call=len(self.calls), entry=entry, turn=turn, tokens=tokens, commits=commits, came=came, left=left)
        )

    def _grow(self, length: int) -> None:
        for entry in range(self.view.length, length):
            for number, weight in enumerate(self._index.weights(entry)):
                self.counts[entry, number] = _Count(weight, len(self.calls))
            self.view.grow(entry)


def lifetime(index: Index, commits: Sequence[Commit]) -> Lifetime:
    """Play a session once more."""
    play = _Play(index, commits)
    for step in index.steps:
        play.call(step.entry)
    play.to(len(index))
    for count in play.counts.values():
        count.weigh(0, len(play.calls))
    carried = {at: Carried(calls=count.calls, tokens=count.tokens) for at, count in play.counts.items()}
    return Lifetime(blocks=carried, calls=tuple(play.calls), now=play.view)


def _touched(commit: Commit) -> Iterator[At]:
    for edit in commit.edits:
        match edit:
            case Drop(entry=entry, block=block) | Replace(entry=entry, block=block) | Restore(entry=entry, block=block):
                yield entry, block
            case Insert() | Remove():
                pass


class Listed(Struct, frozen=True, kw_only=True, gc=False):
    """An object of the record. `how` is the action that last touched it: `clear`, `strip intermediate`; empty for none."""

    object: str
    handle: str
    about: str
    entry: int  # where it starts
    tokens: int  # o200k, as recorded
    shown: int  # as the view has it now
    carried: Carried
    how: str = ""
    pinned: bool = False
    turn: int = 0

    @property
    def state(self) -> State:
        """How much of it the view has now."""
        return "gone" if not self.shown else "smaller" if self.shown < self.tokens else "whole"


class Segment(Struct, frozen=True, kw_only=True, gc=False):
    """A stretch of the record: what a brief stands for, what a compaction took, or the live tail, which has no end."""

    start: int  # the first entry
    stop: int
    title: str
    tokens: int
    shown: int
    key: str = ""  # of the brief's inserted entry, while it stands
    text: str = ""  # of the brief
    turns: tuple[int, ...] = ()  # that lie in it wholly
    parts: tuple[int, ...] = ()  # of which a part lies in it


class Lists(Struct, frozen=True, kw_only=True):
    """Everything the viewer lists, and what it was made of."""

    life: Lifetime
    segments: tuple[Segment, ...]
    turns: tuple[Listed, ...]  # the first, `user:0`, is what stands before a person's first word
    objects: tuple[Listed, ...]  # episodes, skills and tool calls, in record order


def lists(history: History) -> Lists:
    """List a session. O(record)."""
    life = lifetime(history.index, history.commits)
    return Lists(
        life=life,
        segments=tuple(_segments(history, life)),
        turns=tuple(_turns(history, life)),
        objects=tuple(
            sorted(_objects(history, life), key=lambda each: (each.entry, not each.object.startswith(("episode:", "skill:"))))
        ),
    )


def turn_of(history: History, at: At) -> int:
    """The turn a block belongs to; a result belongs to that of its call, so that a turn keeps pairs whole."""
    index = history.index
    facts = index.block(at)
    return facts.turn if facts.span == NONE else index.block(index.spans[facts.span].call).turn


def turn_blocks(history: History) -> dict[int, list[At]]:
    """The blocks of every turn, in record order."""
    found: dict[int, list[At]] = defaultdict(list)
    for entry, facts in enumerate(history.index.entries):
        for number in range(len(facts.blocks)):
            found[turn_of(history, (entry, number))].append((entry, number))
    return found


def words_of(entry: Entry, start: int = 0, origin: Origin = Origin.HUMAN) -> str:
    """The first words of somebody in an entry."""
    return next((block.text[:SAID_CHARS] for block in entry.blocks[start:] if block.origin is origin), "")


def is_brief(insert: Insert) -> bool:
    """Whether an inserted entry is a brief."""
    return insert.stands_for == "history"


def _segments(history: History, life: Lifetime) -> Iterator[Segment]:
    index = history.index
    standing = {insert.key: insert for insert in life.now.inserts}
    bounds = {number: (blocks[0][0], blocks[-1][0] + 1) for number, blocks in turn_blocks(history).items() if number}
    first = 0

    def segment(stop: int, title: str, key: str = "", text: str = "") -> Segment:
        return Segment(
            start=first,
            stop=stop,
            title=title,
            tokens=sum(sum(index.weights(entry)) for entry in range(first, stop)),
            shown=sum(row.tokens for entry in range(first, stop) if (row := life.now.row(entry)) is not None),
            key=key if key in standing else "",
            text=text,
            turns=tuple(number for number, (start, end) in bounds.items() if first <= start and end <= stop),
            parts=tuple(
                number
                for number, (start, end) in bounds.items()
                if start < stop and first < end and not (first <= start and end <= stop)
            ),
        )

    for commit in history.commits:
        for stop, title, key, text in _cuts(commit):
            if stop > first:
                yield segment(stop, title, key, text)
                first = stop
    yield segment(len(index), "live tail")


def _cuts(commit: Commit) -> Iterator[tuple[int, str, str, str]]:
    """Where a commit ends a stretch: a brief, or a compaction that the recorded agent made."""
    for edit in commit.edits:
        if isinstance(edit, Insert) and is_brief(edit):
            yield edit.before_entry, f"brief (commit {commit.n})", edit.key, edit.text
    if commit.moment == "recorded":
        gone = [edit.entry for edit in commit.edits if isinstance(edit, Drop)]
        if gone:
            yield max(gone) + 1, f"compacted by its agent: {commit.reason}", "", ""


def _turns(history: History, life: Lifetime) -> Iterator[Listed]:
    index, blocks = history.index, turn_blocks(history)
    acts, pinned = _acts(history), _pinned(history)
    if 0 in blocks:
        yield _listed(history, life, "user:0", "(before a person's first word)", blocks[0], acts, pinned)
    for turn in index.turns:
        about = words_of(history.read(turn.start[0]), turn.start[1])
        yield _listed(history, life, f"user:{turn.number}", about, blocks[turn.number], acts, pinned)


def _objects(history: History, life: Lifetime) -> Iterator[Listed]:
    index, acts, pinned = history.index, _acts(history), _pinned(history)
    of_episode: dict[int, list[At]] = defaultdict(list)
    for entry, facts in enumerate(index.entries):
        for number, block in enumerate(facts.blocks):
            of_episode[block.episode].append((entry, number))
    for episode in index.episodes:
        if episode.declared:
            builds = ", ".join(index.episodes[each].name for each in episode.dependencies)
            about = episode.description or (f"on {builds}" if builds else "") or ("" if episode.closed else "open")
            yield _listed(
                history, life, episode.object, f"{episode.type} {about}", of_episode[episode.ordinal], acts, pinned, episode.turn
            )
    for name in index.skills.names:
        loads = index.skills.loads(name)
        times = f" {len(loads)} times" if len(loads) > 1 else ""
        blocks = places(history, f"skill:{name}")
        about = f"loaded{times}, last by {index.spans[loads[-1].span].object}"
        turn = index.block(index.spans[loads[-1].span].call).turn
        yield _listed(history, life, f"skill:{name}", about, blocks, acts, pinned, turn)
    for span in index.spans:
        if not is_delimiter(span.tool):
            blocks = [span.call, *([span.result] if span.result is not None else [])]
            yield _listed(history, life, span.object, span.cue, blocks, acts, pinned, index.block(span.call).turn)


def _listed(
    history: History,
    life: Lifetime,
    object_: str,
    about: str,
    blocks: Sequence[At],
    acts: Mapping[str, str],
    pinned: frozenset[str],
    turn: int = 0,
) -> Listed:
    index = history.index
    carried = Carried()
    for at in blocks:
        carried = carried.plus(life.blocks[at])
    start = blocks[0][0] if blocks else 0
    return Listed(
        object=object_,
        handle=index.handle(object_, start),
        about=about,
        entry=start,
        tokens=sum(index.block(at).tokens for at in blocks),
        shown=sum(life.now.weight(*at) for at in blocks),
        carried=carried,
        how=acts.get(object_, ""),
        pinned=object_ in pinned,
        turn=turn or int(object_.partition(":")[2]) if object_.startswith("user:") else turn,
    )


def _acts(history: History) -> dict[str, str]:
    """What was last done to every object that an action named."""
    last: dict[str, str] = {}
    for commit in history.commits:
        for act in commit.actions:
            last[act.object.partition("@")[0]] = f"{act.kind} {act.level}".strip()
    return last


def _pinned(history: History) -> frozenset[str]:
    return frozenset(hold.object.partition("@")[0] for hold in history.holds)


def places(history: History, object_: str) -> tuple[At, ...]:
    """Where an object's blocks lie; none for what the record does not have."""
    if object_ == "user:0":
        return tuple(turn_blocks(history).get(0, ()))
    try:
        return blocks_of(history.index, parse_handle(object_))
    except InputError:
        return ()
