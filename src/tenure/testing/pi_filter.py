"""The published filter of pi-cwl, over pi's own messages: the reference that `tenure.engine.policies.cwl` is compared with.

`filter_messages` gives what Kiz8-Team/pi-cwl (at cd2ea3f, the CWL paper's reference [6]) gives, leftovers included.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import floor, isfinite
from typing import Any, Final, cast

from msgspec import Struct

from tenure.engine.policies.cwl import PI_LEVELS
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.view.action import TOOLS_OF_LEVEL, Level
from tenure.logs.pi_weights import IMAGE_UNITS, Json, stringified, tokens_of, units_of

THRESHOLD: Final = 80_000  # its default; the filter works when the total is above the threshold, not at it

PUBLISHED: Final = {  # what it calls its steps
    Level.REASONING: "thinking",
    Level.SEARCH: "search_tools",
    Level.COMMANDS: "bash_tools",
    Level.READS: "read_tools",
    Level.EPISODE: "entire_chunk",
}

Message = Mapping[str, Any]


def threshold_of(window: int, *, tokens: float | None = None, percent: float | None = None) -> int:
    """The threshold for a limit in tokens or in percent of the model's window; THRESHOLD without a limit, 0 for a limit that is none.

    A limit in tokens is not cut to the window. For a model without a window (0) it does not filter at all.
    """
    asked = tokens if tokens is not None else window * (percent / 100) if percent is not None else float(THRESHOLD)
    if not isfinite(asked) or asked <= 0:
        return 0
    return floor(asked) + (asked - floor(asked) >= 0.5)  # a half is rounded up


class FilterStep(Struct, frozen=True, kw_only=True):
    """What one level took from an episode; a level that took nothing is not a step."""

    level: Level
    tokens_before: int
    tokens_after: int
    messages: int  # assistant messages of which nothing was left; at the last level every message that went
    calls: int = 0  # different call ids
    results: int = 0
    thinking: int = 0
    tools: Mapping[str, int] = {}  # calls by tool
    paths: tuple[str, ...] = ()  # of `read` calls

    @property
    def name(self) -> str:
        """As it was published."""
        return PUBLISHED[self.level]


class Evicted(Struct, frozen=True, kw_only=True):
    """An episode that was touched, be it at one level only."""

    name: str
    type: EpisodeType
    whole: bool  # all of it went, and there was no user message among it
    steps: tuple[FilterStep, ...]


class Filtered(Struct, frozen=True, kw_only=True):
    """What the filter left: messages in order with their places in the input, and the episodes it touched in the order it did."""

    messages: tuple[Message, ...]
    positions: tuple[int, ...]
    tokens_before: int
    tokens_after: int
    evicted: tuple[Evicted, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the episodes touched."""
        return tuple(episode.name for episode in self.evicted)


def filter_messages(messages: Sequence[Message], threshold: int) -> Filtered:
    """What pi-cwl would send of pi's messages, in O(n log n) where episodes do not overlap. It keeps no state: each call begins with the whole history again.

    Whole messages leave, from the result of a delimiter's start to the result of its end, so calls may stay without results (bug B1) and
    results without calls (B2), and every evicted episode leaves the message that started it (B3): as published.
    """
    run = _Pass(messages, threshold)
    before = run.tokens
    evicted = tuple(run.evictions(_Chunks(messages)) if before > threshold else ())
    positions = run.positions()
    return Filtered(
        messages=tuple(run.message(at) for at in positions),
        positions=positions,
        tokens_before=before,
        tokens_after=run.tokens,
        evicted=evicted,
    )


def estimate(message: Message) -> int:
    """Tokens of a message as pi estimates them."""
    return tokens_of(sum(part.units for part in _parts(message)))


class _Chunk(Struct, frozen=True):
    """An episode between two delimiter results; `end` is None while it is open."""

    name: str
    type: EpisodeType
    dependencies: tuple[str, ...]
    start: int
    end: int | None = None


class _Chunks:
    """The episodes of one history, and those of them that may go. It goes by name: of two with one name, the second goes with the first."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._by_name: dict[str, list[_Chunk]] = {}
        dependents: dict[str, set[str]] = {}
        for chunk in _segments(messages):
            self._by_name.setdefault(chunk.name, []).append(chunk)
            for name in chunk.dependencies:
                dependents.setdefault(name, set()).add(chunk.name)
        self._waiting = Counter({name: len(names) for name, names in dependents.items()})
        self._evicted: set[str] = set()
        self._heap = [place for name in self._by_name if not self._waiting[name] for place in self._places(name)]
        heapify(self._heap)

    def next(self) -> _Chunk | None:
        """The oldest episode that is closed, was not touched yet, and whose dependents all were."""
        while self._heap:
            _, name, number = heappop(self._heap)
            if name not in self._evicted:
                return self._by_name[name][number]
        return None

    def evicted(self, name: str) -> None:
        """Unlock what episodes of that name depended on."""
        self._evicted.add(name)
        for dependency in {name for chunk in self._by_name[name] for name in chunk.dependencies}:
            self._waiting[dependency] -= 1
            if not self._waiting[dependency]:
                for place in self._places(dependency):
                    heappush(self._heap, place)

    def _places(self, name: str) -> Iterator[tuple[int, str, int]]:
        for number, chunk in enumerate(self._by_name.get(name, ())):
            if chunk.end is not None:
                yield chunk.start, name, number


def _segments(messages: Sequence[Message]) -> list[_Chunk]:
    """The episodes by start. Only a delimiter's successful results count; one that starts again leaves the first open for ever."""
    chunks: list[_Chunk] = []
    open_: dict[str, int] = {}
    for at, message in enumerate(messages):
        event = _event(message)
        if event is None:
            continue
        chunk = cast(Message, event.get("chunk") or {})
        name = str(chunk.get("name"))
        if event.get("action") == "start":
            open_[name] = len(chunks)
            type_ = EpisodeType.ACT if chunk.get("type") == "act" else EpisodeType.EXPL
            chunks.append(_Chunk(name, type_, tuple(map(str, chunk.get("dependencies") or ())), at))
        elif name in open_:
            number = open_.pop(name)
            started = chunks[number]
            chunks[number] = _Chunk(name, started.type, started.dependencies, started.start, at)
    return chunks


def _event(message: Message) -> Message | None:
    if message.get("role") != "toolResult" or message.get("toolName") != "delimiter":
        return None
    details = message.get("details")
    event = cast(Message, details).get("chunkEvent") if isinstance(details, Mapping) else None
    return cast(Message, event) if isinstance(event, Mapping) and event else None


class _Part(Struct, frozen=True):
    """One part of a message's content."""

    place: int
    units: int
    kind: str = ""
    tool: str = ""
    call_id: object = None
    path: str = ""


class _Pass:
    """One run over one history. Users' messages never leave."""

    def __init__(self, messages: Sequence[Message], threshold: int) -> None:
        self._messages = messages
        self._threshold = threshold
        self._roles = [str(message.get("role")) for message in messages]
        self._content = [list(_parts(message)) for message in messages]
        self._weights = [tokens_of(sum(part.units for part in parts)) for parts in self._content]
        self.tokens = sum(self._weights)
        self._gone: set[int] = set()
        self._changed: set[int] = set()
        self._results: dict[object, list[int]] = {}
        for at, role in enumerate(self._roles):
            if role == "toolResult":
                self._results.setdefault(messages[at].get("toolCallId"), []).append(at)

    def evictions(self, chunks: _Chunks) -> Iterator[Evicted]:
        """Take episodes until the total is not above the threshold."""
        while self.tokens > self._threshold and (chunk := chunks.next()) is not None:
            yield self._evict(chunk)
            chunks.evicted(chunk.name)

    def positions(self) -> tuple[int, ...]:
        """Places of the messages that are left."""
        return tuple(at for at in range(len(self._messages)) if at not in self._gone)

    def message(self, at: int) -> Message:
        """A message that is left, with the content that is."""
        if at not in self._changed:
            return self._messages[at]
        content = self._messages[at]["content"]
        return {**self._messages[at], "content": [content[part.place] for part in self._content[at]]}

    def _evict(self, chunk: _Chunk) -> Evicted:
        """One level after the other while its first message stands: another episode, or a call with the same id, may take it along."""
        steps: list[FilterStep] = []
        whole = False
        for level in PI_LEVELS[chunk.type]:
            if not self._stands(chunk.start):
                break
            whole = level is Level.EPISODE and "user" not in self._roles[chunk.start : self._end(chunk)]
            step = self._remove(chunk) if level is Level.EPISODE else self._strip(chunk, level)
            if step.messages or step.calls or step.results or step.thinking:
                steps.append(step)
            if self.tokens <= self._threshold:
                break
        return Evicted(name=chunk.name, type=chunk.type, whole=whole, steps=tuple(steps))

    def _strip(self, chunk: _Chunk, level: Level) -> FilterStep:
        before, empty = self.tokens, 0
        gone: list[_Part] = []
        for at in self._standing(chunk):
            if self._roles[at] == "assistant":
                taken = [part for part in self._content[at] if _goes(part, level)]
                empty += self._lift(at, level, taken)
                gone += taken
        calls = [part for part in gone if part.kind == "toolCall"]
        ids = {part.call_id for part in calls}
        return FilterStep(
            level=level,
            messages=empty,
            calls=len(ids),
            results=sum(self._drop(at) for call_id in ids for at in self._results.pop(call_id, ())),
            thinking=len(gone) - len(calls),
            tools=Counter(part.tool for part in calls),
            paths=tuple(part.path for part in calls if part.path),
            tokens_before=before,
            tokens_after=self.tokens,
        )

    def _remove(self, chunk: _Chunk) -> FilterStep:
        before = self.tokens
        messages = sum(self._drop(at) for at in self._standing(chunk))
        return FilterStep(level=Level.EPISODE, messages=messages, tokens_before=before, tokens_after=self.tokens)

    def _lift(self, at: int, level: Level, taken: list[_Part]) -> bool:
        """Take the parts of a level out of a message; it goes with its last part, and before a level of tools also if it never had one."""
        left = [part for part in self._content[at] if not _goes(part, level)]
        if not left and (taken or level is not Level.REASONING):
            return self._drop(at)
        if taken:
            self._changed.add(at)
            self._content[at] = left
            self._weigh(at, tokens_of(sum(part.units for part in left)))
        return False

    def _drop(self, at: int) -> bool:
        if not self._stands(at):
            return False
        self._gone.add(at)
        self._weigh(at, 0)
        return True

    def _weigh(self, at: int, tokens: int) -> None:
        self.tokens += tokens - self._weights[at]
        self._weights[at] = tokens

    def _standing(self, chunk: _Chunk) -> Iterator[int]:
        """What is left of an episode, users' messages apart."""
        return filter(self._stands, range(chunk.start, self._end(chunk) + 1))

    def _end(self, chunk: _Chunk) -> int:
        """Its last message; its first when the last is gone."""
        return chunk.end if chunk.end is not None and self._stands(chunk.end) else chunk.start

    def _stands(self, at: int) -> bool:
        return self._roles[at] != "user" and at not in self._gone


def _goes(part: _Part, level: Level) -> bool:
    if level is Level.REASONING:
        return part.kind == "thinking"
    return part.kind == "toolCall" and part.tool in TOOLS_OF_LEVEL[level]


def _parts(message: Message) -> Iterator[_Part]:
    """The parts of a message, weighed in UTF-16 units by what its role makes of them."""
    role, content = message.get("role"), message.get("content")
    match role:
        case "bashExecution":
            yield _Part(0, units_of(message.get("command")) + units_of(message.get("output")))
        case "branchSummary" | "compactionSummary":
            yield _Part(0, units_of(message.get("summary")))
        case "assistant" if not isinstance(content, str):
            for place, part in enumerate(cast(Sequence[Message], content or ())):
                yield _spoken(place, part)
        case "user" | "custom" | "toolResult":
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else cast(Sequence[Message], content or ())
            for place, part in enumerate(parts):
                image = part.get("type") == "image" and role != "user"
                yield _Part(place, IMAGE_UNITS if image else units_of(part.get("text")) if part.get("type") == "text" else 0)
        case _:
            return


def _spoken(place: int, part: Message) -> _Part:
    match part.get("type"):
        case "toolCall":
            arguments = cast("Json", part.get("arguments"))
            path = arguments.get("path") if isinstance(arguments, dict) and part.get("name") == "read" else ""
            return _Part(
                place,
                units_of(part.get("name")) + stringified(arguments),
                kind="toolCall",
                tool=str(part.get("name")),
                call_id=part.get("id"),
                path=path if isinstance(path, str) else "",
            )
        case "text" | "thinking" as kind:
            return _Part(place, units_of(part.get(kind)), kind=kind)
        case _:
            return _Part(place, 0)
