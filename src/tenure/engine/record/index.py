"""What the record contains, grown with it: turns, steps, tool spans, episodes, weights.

The core's one mutable value. Growing it is O(new blocks); policies read it and nothing rescans the record. It holds no text, so it
stays small while the record grows to any length; texts are read from the record by entry number.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import At, Block, Entry, Origin, Role, Spill, Thinking, ToolCall, ToolResult
from tenure.engine.record.episodes import Episode, EpisodeGraph, EpisodeType, ToolAnswer
from tenure.engine.record.inferred import InferredGraph
from tenure.engine.record.notes import Notes
from tenure.engine.record.objects import HASH_CHARS, tool_key, tool_name
from tenure.engine.record.query import RecallIndex
from tenure.engine.record.skills import Skills
from tenure.engine.record.tools import ACTS, Act, Kinds, ToolKind, cue_of, is_delimiter, is_reference, is_virtual

HASH_BYTES: Final = 8  # of an entry's id: enough for any handle, a quarter of the memory
NONE: Final = -1  # no span, no episode


class BlockFacts(Struct, frozen=True, gc=False):
    """The facts about one block that policies and laws need, in place of its text."""

    kind: str
    origin: Origin
    tokens: int
    span: int  # ordinal of the tool span it is part of, or NONE
    episode: int  # ordinal of the episode it lies in, or NONE: system prompt and human text outside declared episodes
    turn: int
    signed: bool


class EntryFacts(Struct, frozen=True, gc=False):
    """One entry: its blocks' facts and where it stands."""

    role: Role
    turn: int  # the human turn in force at its end; 0 before the first
    step: int  # the model reply it is or follows; 0 before the first
    blocks: tuple[BlockFacts, ...]
    at_rest: bool  # no call was waiting for its result before this entry: something may be inserted here
    reply: int  # the entry where the reply it is part of or follows starts: one reply may be logged as several entries in a row
    hash: bytes  # the first HASH_BYTES of the entry's id


class Span(Struct, gc=False):
    """One tool call and, once it is there, its result."""

    ordinal: int
    tool: str
    number: int  # the how-manieth call of its tool, from 1
    kind: ToolKind
    cue: str
    call: At  # (entry, block)
    episode: int
    result: At | None = None
    error: bool = False

    @property
    def object(self) -> str:
        """Its object id."""
        return f"{tool_key(self.tool)}:{self.number}"

    @property
    def blocks(self) -> tuple[At, ...]:
        """The call and its result."""
        return (self.call,) if self.result is None else (self.call, self.result)


class Answering(Struct, frozen=True, kw_only=True, gc=False):
    """A result that is about to be taken in, and the call that it answers."""

    result: At  # (entry, block)
    call: At
    tool: str
    handle: str  # of the call


class Turn(Struct, frozen=True, gc=False):
    """A human turn: where it starts. It lasts until the next one does."""

    number: int
    start: At


class Step(Struct, gc=False):
    """One model reply with the results that followed it."""

    entry: int  # where the reply starts
    calls: int = 0


class Index:
    """All facts about a record, by entry number. `grow` is its only way to change."""

    def __init__(self, kinds: Kinds | None = None, own: Mapping[str, int] | None = None) -> None:
        """`own` are the host's tools that have names of ours, each with the entry from which on they are the host's."""
        self.kinds = kinds or Kinds()
        self.own = dict(own or {})
        self.entries: list[EntryFacts] = []
        self.spans: list[Span] = []
        self.turns: list[Turn] = []
        self.steps: list[Step] = []
        self.episodes: list[Episode] = []
        self.graph = EpisodeGraph(self.episodes)
        self.answers: dict[At, ToolAnswer] = {}  # of delimiter calls and refused parts, by (entry, block)
        self.recalls, self.skills, self.notes = RecallIndex(), Skills(), Notes()
        self.inferred = InferredGraph()
        self.references: set[int] = set()  # ordinals of calls that brought tools: what they answered declares them
        self.system: set[int] = set()  # entries of the system's role
        self.spills: dict[str, At] = {}  # by the hash of the file: the result that refers to it
        self.tokens = 0  # of the whole record
        self._numbers: dict[str, int] = {}
        self._by_number: dict[str, list[int]] = {}
        self.reply = 0  # the entry where the newest reply starts
        self.spoken = 0  # the entry where the newest reply starts that says or calls anything
        self._loop = 0  # the entry where the open call/result loop starts: after the newest reply that made no calls
        self._reply_calls = 0  # calls of the newest reply
        self._said = True  # whether it says or calls anything
        self._was_in_loop = False  # before it
        self._unanswered = 0  # those of them that have no result yet
        self._newest_calls: dict[str, int] = {}  # spans by call id
        self._waiting: dict[str, list[int]] = {}  # open spans by call id, oldest first
        self._implicit: Episode | None = None
        self._implicit_place = (0, 0)  # its step and turn

    def __len__(self) -> int:
        return len(self.entries)

    def grow(self, entry: Entry) -> EntryFacts:
        """Take in the next entry. Calls beside a delimiter belong to an episode by position, a result to its call's."""
        if entry.n != len(self.entries):
            raise ValueError(f"entry {entry.n} cannot follow {len(self.entries)} entries")
        if entry.role is Role.ASSISTANT and (not self.entries or self.entries[-1].role is not Role.ASSISTANT):
            self._begin_reply(entry.n)
        at_rest = not self._unanswered
        if entry.role is Role.SYSTEM:
            self.system.add(entry.n)
        if entry.role is Role.ASSISTANT:
            self.steps.append(Step(entry=entry.n))
            self.inferred.add_step(len(self.steps))
        if entry.role is Role.ASSISTANT and not self._said:
            self._said = any(block.text.strip() for block in entry.blocks if not isinstance(block, Thinking))
            self.spoken = self.reply if self._said else self.spoken
        blocks = tuple(
            self._facts(block, (entry.n, number), entry.tokens[number], entry.role) for number, block in enumerate(entry.blocks)
        )
        self.tokens += sum(entry.tokens)
        start = bytes.fromhex(entry.id[: 2 * HASH_BYTES])
        facts = EntryFacts(entry.role, len(self.turns), len(self.steps), blocks, at_rest, self.reply, start)
        self.entries.append(facts)
        return facts

    def tool(self, name: str, entry: int) -> str:
        """The tool that a call in `entry` is of. A host's own of a name of ours is told from it by another: `recall_tool:1` is no recall."""
        return name if entry < self.own.get(name, entry + 1) else f"{name}_tool"

    def again(self, own: Mapping[str, int], entries: Iterable[Entry]) -> None:
        """Take the record in anew, with these tools the host's own."""
        self.__init__(self.kinds, own)
        for entry in entries:
            self.grow(entry)

    def weights(self, entry: int) -> tuple[int, ...]:
        """Tokens of each block of an entry."""
        return tuple([facts.tokens for facts in self.entries[entry].blocks])

    def weight(self, entry: int, block: int) -> int:
        """Tokens of one block of an entry."""
        return self.entries[entry].blocks[block].tokens

    def block(self, at: At) -> BlockFacts:
        """The facts of one block."""
        return self.entries[at[0]].blocks[at[1]]

    def span(self, tool: str, number: int) -> Span | None:
        """The `number`-th call of a tool, named as objects name it."""
        ordinals = self._by_number.get(tool, ())
        return self.spans[ordinals[number - 1]] if 0 < number <= len(ordinals) else None

    def span_of(self, object_: str) -> Span | None:
        """The call that is an object, such as `read:12`; None for other objects."""
        tool, _, number = object_.rpartition(":")
        return self.span(tool, int(number)) if number.isdecimal() else None

    def sources(self, span: Span) -> Iterator[Span]:
        """The calls that a call stands for: itself, or of a recall the calls whose results it brought back."""
        recalled = self.recalls.get(span.ordinal)
        if recalled is None:
            yield span
            return
        for object_ in recalled.sources:
            yield from [source] if (source := self.span_of(object_)) else []

    def entries_of(self, episode: Episode) -> range:
        """The entries in which blocks of an episode may lie: from its start to the last result of a call made in it."""
        start = episode.start[0]
        if episode.declared:
            if episode.end is None:
                return range(start, len(self))
            stop = episode.end[0] + 1
        else:
            place = bisect_right(self.steps, start, key=lambda step: step.entry)
            stop = self.steps[place].entry if place < len(self.steps) else len(self)
        late = [s.result[0] + 1 for s in self.spans_in(start, stop) if s.result is not None]
        return range(start, max([stop, *late]))

    def spans_in(self, start: int, stop: int) -> Iterator[Span]:
        """The calls made in the entries from `start` up to `stop`."""
        place = bisect_left(self.spans, (start, 0), key=lambda span: span.call)
        while place < len(self.spans) and self.spans[place].call[0] < stop:
            yield self.spans[place]
            place += 1

    @property
    def tools(self) -> Iterable[str]:
        """The tools called so far, as objects name them."""
        return self._by_number.keys()

    def calls_between(self, tool: str, start: At, stop: At) -> int:
        """How many calls of a tool were made from one block on and before another. O(log calls)."""
        ordinals = self._by_number.get(tool, [])
        first, last = (bisect_left(ordinals, at, key=lambda ordinal: self.spans[ordinal].call) for at in (start, stop))
        return last - first

    def implicit(self, name: str) -> list[Episode]:
        """The implicit episode of that name (`17` of `step:17`), as a list of one or none."""
        number = name.partition(".")[0]
        if not number.isdecimal() or not int(number) <= len(self.steps):
            return []
        entry = self.steps[int(number) - 1].entry if int(number) else 0
        place = bisect_left(self.episodes, (entry, 0), key=lambda episode: episode.start)
        for episode in self.episodes[place : place + 8]:
            if not episode.declared and episode.name == name:
                return [episode]
        return []

    def hash_of(self, entry: int) -> str:
        """The hash part of a handle whose object starts in `entry`."""
        return self.entries[entry].hash.hex()[:HASH_CHARS]

    def is_hash(self, entry: int, start: str) -> bool:
        """Whether an entry's hash starts so, as far as it is known here."""
        return self.entries[entry].hash.hex().startswith(start[: 2 * HASH_BYTES])

    def handle(self, object_: str, entry: int) -> str:
        """How an object that starts in `entry` is printed."""
        return f"{object_}@{self.hash_of(entry)}"

    def objects_of(self, at: At) -> Iterator[str]:
        """The ids of the objects a block is part of: its tool span, its episode, its turn."""
        facts = self.block(at)
        if facts.span != NONE:
            yield self.spans[facts.span].object
        if facts.episode != NONE:
            yield self.episodes[facts.episode].object
        if facts.turn:
            yield f"user:{facts.turn}"

    @property
    def first_delimiter(self) -> At | None:
        """The block of the first accepted delimiter start."""
        return self.graph.first_start

    @property
    def waiting(self) -> int:
        """How many calls have no result yet, be they interrupted."""
        return sum(map(len, self._waiting.values()))

    @property
    def in_loop(self) -> bool:
        """Whether the newest reply made calls, so that the next one goes on where it left off.

        A reply of reasoning alone, cut short, is never sent again: what was before it goes on.
        """
        return self._reply_calls > 0 or (not self._said and self._was_in_loop)

    @property
    def loop_start(self) -> int:
        """Where the open call/result loop starts: after the newest reply that made no calls; the record's end when no loop is open.

        Human words among results do not end a loop: they reach the provider in the same message.
        """
        return self._loop if self.in_loop else len(self)

    def answers_in(self, entries: Iterable[Entry]) -> Iterator["Answering"]:
        """The results in entries that are to follow, each with the call that it answers, in the record or among them."""
        waiting: dict[str, list[At]] = {}
        numbers: dict[str, int] = {}
        made: dict[At, tuple[str, str]] = {}  # calls among the entries: tool and handle
        for entry in entries:
            for number, block in enumerate(entry.blocks):
                if not isinstance(block, ToolCall | ToolResult):
                    continue
                if block.call_id not in waiting:
                    waiting[block.call_id] = [self.spans[ordinal].call for ordinal in self._waiting.get(block.call_id, ())]
                calls = waiting[block.call_id]
                if isinstance(block, ToolCall):
                    tool = self.tool(block.name, entry.n)
                    key = tool_key(tool)
                    numbers[key] = numbers.get(key, self._numbers.get(key, 0)) + 1
                    made[entry.n, number] = tool, f"{key}:{numbers[key]}@{entry.id[:HASH_CHARS]}"
                    calls.append((entry.n, number))
                elif calls:
                    call = calls.pop(_answered(calls))
                    tool, handle = made.get(call) or self._called(call)
                    yield Answering(result=(entry.n, number), call=call, tool=tool, handle=handle)

    def _called(self, call: At) -> tuple[str, str]:
        span = self.spans[self.block(call).span]
        return span.tool, self.handle(span.object, call[0])

    def is_late(self, span: Span) -> bool:
        """Whether the result came when the model had gone on without it, and had been told that there is none."""
        return span.result is not None and self.entries[span.result[0]].reply != self.entries[span.call[0]].reply

    def _begin_reply(self, entry: int) -> None:
        """The model speaks again: what has no result by now was interrupted."""
        self._was_in_loop = self.in_loop
        self.skills.end_reply()
        self.notes.end_reply()
        if not self._was_in_loop:
            self._loop = entry
        self.reply, self._reply_calls, self._unanswered, self._said = entry, 0, 0, False

    def _facts(self, block: Block, at: At, tokens: int, role: Role) -> BlockFacts:
        span, episode = NONE, NONE
        signed = False
        if block.origin is Origin.HUMAN and role is Role.USER:
            self._human(at)
        match block:
            case ToolCall():
                episode = self._call_episode(block, at)
                span = self._open_span(block, at, episode)
            case ToolResult(spill=spill):
                if isinstance(spill, Spill):
                    self.spills[spill.sha256] = at
                span = self._close_span(block, at)
                episode = self.spans[span].episode if span != NONE else self._current(at, block.origin, role)
            case Thinking():
                signed = block.signed
                episode = self._current(at, block.origin, role)
            case _:
                episode = self._current(at, block.origin, role)
                if block.origin is Origin.HARNESS:
                    self.skills.add_words(at, block.text)
        return BlockFacts(kind_of(block), block.origin, tokens, span, episode, len(self.turns), signed)

    def _human(self, at: At) -> None:
        last = self.turns[-1] if self.turns else None
        if last is None or self._model_spoke_since(last):
            self.turns.append(Turn(len(self.turns) + 1, at))

    def _model_spoke_since(self, turn: Turn) -> bool:
        return bool(self.steps) and self.steps[-1].entry >= turn.start[0]

    def _call_episode(self, call: ToolCall, at: At) -> int:
        if ACTS.get(tool_name(call.name)) is Act.AGENT:
            part = self.graph.delegate(call.arguments, at, len(self.turns), self._printed)
            if isinstance(part, Episode):
                return part.ordinal
            self.answers |= {at: part} if part is not None else {}
        if not is_delimiter(self.tool(call.name, at[0])):
            return self._current(at, call.origin, Role.ASSISTANT)
        before = self.graph.open
        self.answers[at] = self.graph.apply(call.arguments, at, len(self.turns), self._printed)
        return before.ordinal if before is not None else self._current(at, call.origin, Role.ASSISTANT)

    def _printed(self, episode: Episode) -> str:
        """An episode's handle; without its hash while the message is taken in that it starts in."""
        return self.handle(episode.object, episode.start[0]) if episode.start[0] < len(self) else episode.object

    def _current(self, at: At, origin: Origin, role: Role) -> int:
        if self.graph.open is not None:
            return self.graph.open.ordinal
        if role is Role.SYSTEM or origin is Origin.HUMAN:
            return NONE
        return self._step_episode(at)

    def _step_episode(self, at: At) -> int:
        """The implicit episode of the present step, made when its first unannotated block comes."""
        place = (len(self.steps), len(self.turns))
        present = self._implicit
        if present is None or self._implicit_place != place:
            within = present is not None and self._implicit_place[0] == place[0]  # a human turn began within the step
            present = self._implicit = Episode(
                ordinal=len(self.episodes),
                type=EpisodeType.EXPL,
                declared=False,
                name=f"{place[0]}.{place[1]}" if within else str(place[0]),
                start=at,
                closed=True,  # what keeps the newest steps is the tail
                turn=place[1],
            )
            self._implicit_place = place
            self.episodes.append(present)
        return present.ordinal

    def called(self, call_id: str) -> Span | None:
        """The newest call of that id."""
        ordinal = self._newest_calls.get(call_id)
        return None if ordinal is None else self.spans[ordinal]

    def _open_span(self, call: ToolCall, at: At, episode: int) -> int:
        tool = self.tool(call.name, at[0])
        key = tool_key(tool)
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        kind = self.kinds.of(tool) if tool == call.name else self.kinds.declared(call.name)
        span = Span(len(self.spans), tool, number, kind, cue_of(call.arguments), at, episode)
        self.spans.append(span)
        self._by_number.setdefault(key, []).append(span.ordinal)
        if self.graph.open is None and not is_virtual(tool) and not self.episodes[episode].declared:
            self.inferred.add_call(span, len(self.steps), len(self.turns))
        self.recalls.add_call(self, span, call.arguments)
        self.skills.add_call(span, call.arguments)
        self.notes.add_call(span, call.arguments)
        self._waiting.setdefault(call.call_id, []).append(span.ordinal)
        self._newest_calls[call.call_id] = span.ordinal
        self._reply_calls += 1
        self._unanswered += 1
        if self.steps:
            self.steps[-1].calls += 1
        return span.ordinal

    def _close_span(self, result: ToolResult, at: At) -> int:
        waiting = self._waiting.get(result.call_id)
        if not waiting:
            return NONE
        span = self.spans[waiting.pop(_answered([self.spans[ordinal].call for ordinal in waiting]))]
        if not waiting:
            del self._waiting[result.call_id]
        span.result, span.error = at, result.error
        self.graph.end_part(span.call, result.text)
        self.skills.add_result(span, at, result)
        self.notes.add_result(span, result)
        if is_reference(result.text):
            self.references.add(span.ordinal)
        if span.call[0] >= self.reply:
            self._unanswered -= 1
        return span.ordinal


def _answered(calls: list[At]) -> int:
    """Which of several unanswered calls of one id a result answers: the oldest of the newest message, as `chain.Pairing` has it."""
    place = len(calls) - 1
    while place and calls[place - 1][0] == calls[-1][0]:
        place -= 1
    return place


def kind_of(block: Block) -> str:
    """The block's kind as REPLAY.md names it."""
    return str(block.__struct_config__.tag)


def index_of(entries: Iterable[Entry]) -> Index:
    """The index of a whole record."""
    index = Index()
    for entry in entries:
        index.grow(entry)
    return index
