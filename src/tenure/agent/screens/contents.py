"""What the viewer lists: segments, turns, objects and calls, each with its state and what it was carried for."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from tenure.agent.screens.history import History
from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import At, Origin
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.record.tools import is_delimiter
from tenure.engine.view.edit import Commit, Drop, Insert, Replace, Restore
from tenure.engine.view.project import Projection
from tenure.errors import InputError

State = Literal["whole", "smaller", "gone"]
WORDS_CHARS: Final = 400  # of a person's words that are listed


class Carried(Struct, kw_only=True, gc=False):
    """The calls that were sent a block or an object, and its tokens in all of them together (o200k). Mutable while a session is played."""

    weight: int = 0  # tokens now
    since: int = 0  # the call from which on it weighs that
    calls: int = 0
    tokens: int = 0

    def weigh(self, weight: int, call: int) -> None:
        """It weighs something else from a call on."""
        if self.weight:
            self.calls += call - self.since
            self.tokens += self.weight * (call - self.since)
        self.weight, self.since = weight, call

    def usd(self, prices: Prices) -> float:
        """What it cost if it was written to the cache once, and read from it ever after."""
        if not self.calls:
            return 0.0
        once = self.tokens / self.calls
        return once * prices.write + (self.tokens - once) * prices.read


class CallView(Struct, frozen=True, kw_only=True, gc=False):
    """One call of the model: what it was sent, and what of that had changed since the call before."""

    call: int
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


def lifetime(index: Index, commits: Sequence[Commit]) -> Lifetime:
    """Play a session once more."""
    view, blocks, calls = Projection(index), dict[At, Carried](), list[CallView]()
    due = list(reversed(commits))

    def grow(length: int) -> None:
        for entry in range(view.length, length):
            for number, weight in enumerate(index.weights(entry)):
                blocks[entry, number] = Carried(weight=weight, since=len(calls))
            view.grow(entry)

    def advance(length: int) -> tuple[tuple[int, ...], int]:
        """Go on until the record has so many entries; the commits on the way, and the tokens they took."""
        made, left = list[int](), 0
        while due and due[-1].entries <= length:
            commit = due.pop()
            grow(commit.entries)
            before = view.tokens
            view.apply(commit.edits)
            left += before - view.tokens
            for edit in commit.edits:
                if isinstance(edit, Drop | Replace | Restore):
                    blocks[edit.entry, edit.block].weigh(view.weight(edit.entry, edit.block), len(calls))
            made.append(commit.n)
        grow(length)
        return tuple(made), left

    for step in index.steps:
        before = view.tokens
        made, left = advance(step.entry)
        turn, came = index.entries[step.entry].turn, view.tokens - before + left
        calls.append(CallView(call=len(calls), turn=turn, tokens=view.tokens, commits=made, came=came, left=left))
    advance(len(index))
    for carried in blocks.values():
        carried.weigh(0, len(calls))
    return Lifetime(blocks=blocks, calls=tuple(calls), now=view)


class ListedObject(Struct, frozen=True, kw_only=True, gc=False):
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

    @property
    def state(self) -> State:
        """How much of it the view has now."""
        return state_of(self.tokens, self.shown)


def state_of(tokens: int, shown: int) -> State:
    """How much of something is shown."""
    return "gone" if not shown else "smaller" if shown < tokens else "whole"


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
    turns: tuple[ListedObject, ...]  # the first, `user:0`, is what stands before a person's first word
    objects: tuple[ListedObject, ...]  # episodes, skills and tool calls, in record order


def lists(history: History) -> Lists:
    """List a session. O(record)."""
    life, turns = lifetime(history.index, history.commits), turn_blocks(history)
    acts = {act.object.partition("@")[0]: f"{act.kind} {act.level}".strip() for each in history.commits for act in each.actions}
    pinned = {hold.object.partition("@")[0] for hold in history.holds}

    def listed(objects: Iterable[tuple[str, str, Sequence[At]]]) -> Iterator[ListedObject]:
        index = history.index
        for object_, about, blocks in objects:
            start = blocks[0][0] if blocks else 0
            carried = [life.blocks[at] for at in blocks]
            yield ListedObject(
                object=object_,
                handle=index.handle(object_, start),
                about=about,
                entry=start,
                tokens=sum(index.block(at).tokens for at in blocks),
                shown=sum(life.now.weight(*at) for at in blocks),
                carried=Carried(
                    calls=max((each.calls for each in carried), default=0), tokens=sum(each.tokens for each in carried)
                ),
                how=acts.get(object_, ""),
                pinned=object_ in pinned,
            )

    by_entry = sorted(
        listed(_objects(history)), key=lambda each: (each.entry, not each.object.startswith(("episode:", "skill:")))
    )
    return Lists(
        life=life,
        segments=tuple(_segments(history, life, turns)),
        turns=tuple(listed(_turns(history, turns))),
        objects=tuple(by_entry),
    )


def turn_blocks(history: History) -> dict[int, list[At]]:
    """The blocks of every turn, in record order; a result belongs to the turn of its call, so that a turn keeps pairs whole."""
    index, blocks = history.index, defaultdict[int, list[At]](list)
    for entry, facts in enumerate(index.entries):
        for number, block in enumerate(facts.blocks):
            turn = block.turn if block.span == NONE else index.block(index.spans[block.span].call).turn
            blocks[turn].append((entry, number))
    return blocks


def is_brief(insert: Insert) -> bool:
    """Whether an inserted entry is a brief."""
    return insert.stands_for == "history"


def places(history: History, object_: str) -> tuple[At, ...]:
    """Where an object's blocks lie; none for what the record does not have."""
    if object_ == "user:0":
        return tuple(turn_blocks(history).get(0, ()))
    try:
        return blocks_of(history.index, parse_handle(object_))
    except InputError:
        return ()


def _segments(history: History, life: Lifetime, turns: dict[int, list[At]]) -> Iterator[Segment]:
    index = history.index
    standing = {insert.key for insert in life.now.inserts}
    bounds = {number: (blocks[0][0], blocks[-1][0] + 1) for number, blocks in turns.items() if number}
    cuts = [cut for commit in history.commits for cut in _cuts(commit)]
    first = 0
    for stop, title, key, text in (*cuts, (len(index), "live tail", "", "")):
        if stop <= first and title != "live tail":
            continue
        touching = {
            number: first <= start and end <= stop for number, (start, end) in bounds.items() if start < stop and first < end
        }
        yield Segment(
            start=first,
            stop=stop,
            title=title,
            tokens=sum(sum(index.weights(entry)) for entry in range(first, stop)),
            shown=sum(row.tokens for entry in range(first, stop) if (row := life.now.row(entry)) is not None),
            key=key if key in standing else "",
            text=text,
            turns=tuple(number for number, whole in touching.items() if whole),
            parts=tuple(number for number, whole in touching.items() if not whole),
        )
        first = stop


def _cuts(commit: Commit) -> Iterator[tuple[int, str, str, str]]:
    """Where a commit ends a stretch: a brief, or a compaction that the recorded agent made."""
    for edit in commit.edits:
        if isinstance(edit, Insert) and is_brief(edit):
            yield edit.before_entry, f"brief (commit {commit.n})", edit.key, edit.text
    if commit.moment == "recorded":
        gone = [edit.entry for edit in commit.edits if isinstance(edit, Drop)]
        if gone:
            yield max(gone) + 1, f"compacted by its agent: {commit.reason}", "", ""


def _turns(history: History, blocks: dict[int, list[At]]) -> Iterator[tuple[str, str, Sequence[At]]]:
    if 0 in blocks:
        yield "user:0", "(before a person's first word)", blocks[0]
    for turn in history.index.turns:
        entry, start = history.read(turn.start[0]), turn.start[1]
        words = (block.text[:WORDS_CHARS] for block in entry.blocks[start:] if block.origin is Origin.HUMAN)
        yield f"user:{turn.number}", next(words, ""), blocks[turn.number]


def _objects(history: History) -> Iterator[tuple[str, str, Sequence[At]]]:
    index = history.index
    of_episode: dict[int, list[At]] = defaultdict(list)
    for entry, facts in enumerate(index.entries):
        for number, block in enumerate(facts.blocks):
            of_episode[block.episode].append((entry, number))
    for episode in index.episodes:
        if episode.declared:
            builds = ", ".join(index.episodes[each].name for each in episode.dependencies)
            about = episode.description or (f"on {builds}" if builds else "") or ("" if episode.closed else "open")
            yield episode.object, f"{episode.type} {about}", of_episode[episode.ordinal]
    for name in index.skills.names:
        loads = index.skills.loads(name)
        times = f" {len(loads)} times" if len(loads) > 1 else ""
        yield f"skill:{name}", f"loaded{times}, last by {index.spans[loads[-1].span].object}", places(history, f"skill:{name}")
    for span in index.spans:
        if not is_delimiter(span.tool):
            yield span.object, span.cue, [span.call, *([span.result] if span.result is not None else [])]
