"""The published filter of pi-cwl, over pi's own messages.

`filter_messages` gives what Kiz8-Team/pi-cwl (at cd2ea3f, the CWL paper's reference [6]) gives, leftovers included; `weigh_like_pi` counts
as it counts. `tenure.engine.policies.pi_cwl` is the same order and the same levels over our index.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from heapq import heapify, heappop, heappush
from math import floor, isfinite
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from tenure.engine.policies.pi_cwl import LEVELS
from tenure.engine.record.entry import Block, Media, Opaque, Origin, Text, ToolCall, ToolResult
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.view.action import Level
from tenure.engine.view.levels import TOOLS_OF_LEVEL
from tenure.logs.pi import BRANCHED, COMPACTED

THRESHOLD: Final = 80_000  # its default; the filter works when the total is above the threshold, not at it

PUBLISHED: Final = {  # what it calls its steps
    Level.REASONING: "thinking",
    Level.SEARCH: "search_tools",
    Level.COMMANDS: "bash_tools",
    Level.READS: "read_tools",
    Level.EPISODE: "entire_chunk",
}

UNITS_PER_TOKEN: Final = 4  # UTF-16 units
IMAGE_UNITS: Final = 4_800  # of an image in a tool result or a custom message; a user's image counts nothing

Message = Mapping[str, Any]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def threshold_of(window: int, *, tokens: float | None = None, percent: float | None = None) -> int:
    """The threshold for a limit in tokens or in percent of the model's window; THRESHOLD without a limit, 0 for a limit that is none.

    A limit in tokens is not cut to the window. For a model without a window (0) it does not filter at all.
    """
    asked = tokens if tokens is not None else window * (percent / 100) if percent is not None else float(THRESHOLD)
    if not isfinite(asked) or asked <= 0:
        return 0
    return floor(asked) + (asked - floor(asked) >= 0.5)  # a half is rounded up


class Step(Struct, frozen=True, kw_only=True):
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
    steps: tuple[Step, ...]


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
    """What pi-cwl would send of pi's messages, in O(n log n). It keeps no state: each call begins with the whole history again.

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
    return _tokens(sum(part.units for part in _parts(message)))


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
    """One run over one history. Users' messages never leave; all others are found through links that skip what has left."""

    def __init__(self, messages: Sequence[Message], threshold: int) -> None:
        self._messages = messages
        self._threshold = threshold
        self._roles = [str(message.get("role")) for message in messages]
        self._content = [list(_parts(message)) for message in messages]
        self._weights = [_tokens(sum(part.units for part in parts)) for parts in self._content]
        self.tokens = sum(self._weights)
        self._users = [at for at, role in enumerate(self._roles) if role == "user"]
        self._onward = [at + (role == "user") for at, role in enumerate([*self._roles, ""])]
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
        return tuple(at for at, role in enumerate(self._roles) if role == "user" or self._stands(at))

    def message(self, at: int) -> Message:
        """A message that is left, with the content that is."""
        if at not in self._changed:
            return self._messages[at]
        content = self._messages[at]["content"]
        return {**self._messages[at], "content": [content[part.place] for part in self._content[at]]}

    def _evict(self, chunk: _Chunk) -> Evicted:
        """One level after the other while its first message stands: another episode, or a call with the same id, may take it along."""
        steps: list[Step] = []
        whole = False
        for level in LEVELS[chunk.type]:
            if not self._stands(chunk.start):
                break
            whole = level is Level.EPISODE and not self._has_user(chunk)
            step = self._remove(chunk) if level is Level.EPISODE else self._strip(chunk, level)
            if step.messages or step.calls or step.results or step.thinking:
                steps.append(step)
            if self.tokens <= self._threshold:
                break
        return Evicted(name=chunk.name, type=chunk.type, whole=whole, steps=tuple(steps))

    def _strip(self, chunk: _Chunk, level: Level) -> Step:
        before, empty = self.tokens, 0
        gone: list[_Part] = []
        for at in self._standing(chunk):
            if self._roles[at] == "assistant":
                taken = [part for part in self._content[at] if _goes(part, level)]
                empty += self._lift(at, level, taken)
                gone += taken
        calls = [part for part in gone if part.kind == "toolCall"]
        ids = {part.call_id for part in calls}
        return Step(
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

    def _remove(self, chunk: _Chunk) -> Step:
        before = self.tokens
        messages = sum(self._drop(at) for at in self._standing(chunk))
        return Step(level=Level.EPISODE, messages=messages, tokens_before=before, tokens_after=self.tokens)

    def _lift(self, at: int, level: Level, taken: list[_Part]) -> bool:
        """Take the parts of a level out of a message; it goes with its last part, and before a level of tools also if it never had one."""
        left = [part for part in self._content[at] if not _goes(part, level)]
        if not left and (taken or level is not Level.REASONING):
            return self._drop(at)
        if taken:
            self._changed.add(at)
            self._content[at] = left
            self._weigh(at, _tokens(sum(part.units for part in left)))
        return False

    def _drop(self, at: int) -> bool:
        if not self._stands(at):
            return False
        self._onward[at] = at + 1
        self._weigh(at, 0)
        return True

    def _weigh(self, at: int, tokens: int) -> None:
        self.tokens += tokens - self._weights[at]
        self._weights[at] = tokens

    def _standing(self, chunk: _Chunk) -> Iterator[int]:
        """What is left of an episode, users' messages apart."""
        end = self._end(chunk)
        at = self._from(chunk.start)
        while at <= end:
            yield at
            at = self._from(at + 1)

    def _end(self, chunk: _Chunk) -> int:
        """Its last message; its first when the last is gone."""
        return chunk.end if chunk.end is not None and self._stands(chunk.end) else chunk.start

    def _stands(self, at: int) -> bool:
        return self._onward[at] == at

    def _from(self, at: int) -> int:
        """The first message at or after `at` that stands; the links it followed become shorter."""
        onward = self._onward
        while onward[at] != at:
            onward[at] = onward[onward[at]]
            at = onward[at]
        return at

    def _has_user(self, chunk: _Chunk) -> bool:
        return bisect_left(self._users, chunk.start) < bisect_right(self._users, self._end(chunk))


def _goes(part: _Part, level: Level) -> bool:
    if level is Level.REASONING:
        return part.kind == "thinking"
    return part.kind == "toolCall" and part.tool in TOOLS_OF_LEVEL[level]


def _tokens(units: int) -> int:
    return -(-units // UNITS_PER_TOKEN)


def _parts(message: Message) -> Iterator[_Part]:
    """The parts of a message, weighed in UTF-16 units by what its role makes of them."""
    role, content = message.get("role"), message.get("content")
    match role:
        case "bashExecution":
            yield _Part(0, _length(message.get("command")) + _length(message.get("output")))
        case "branchSummary" | "compactionSummary":
            yield _Part(0, _length(message.get("summary")))
        case "assistant" if not isinstance(content, str):
            for place, part in enumerate(cast(Sequence[Message], content or ())):
                yield _spoken(place, part)
        case "user" | "custom" | "toolResult":
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else cast(Sequence[Message], content or ())
            for place, part in enumerate(parts):
                image = part.get("type") == "image" and role != "user"
                yield _Part(place, IMAGE_UNITS if image else _length(part.get("text")) if part.get("type") == "text" else 0)
        case _:
            return


def _spoken(place: int, part: Message) -> _Part:
    match part.get("type"):
        case "toolCall":
            arguments = cast("Json", part.get("arguments"))
            path = arguments.get("path") if isinstance(arguments, dict) and part.get("name") == "read" else ""
            return _Part(
                place,
                _length(part.get("name")) + stringified(arguments),
                kind="toolCall",
                tool=str(part.get("name")),
                call_id=part.get("id"),
                path=path if isinstance(path, str) else "",
            )
        case "text" | "thinking" as kind:
            return _Part(place, _length(part.get(kind)), kind=kind)
        case _:
            return _Part(place, 0)


def _length(text: object) -> int:
    """A text's UTF-16 units; nothing for what is no text."""
    if not isinstance(text, str):
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def stringified(value: Json) -> int:
    """UTF-16 units of a value as JavaScript's `JSON.stringify` writes it. The order of keys does not matter for that."""
    units = 0
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                units += _quoted(text)
            case bool(truth):
                units += 4 if truth else 5
            case int(number) | float(number):
                units += len(javascript_number(number))
            case list() as elements:
                units += len(elements) + (1 if elements else 2)
                waiting += elements
            case dict() as fields:
                units += 2 * len(fields) + (1 if fields else 2) + sum(map(_quoted, fields))
                waiting += fields.values()
            case None:
                units += 4
    return units


_LONE: Final = re.compile("[\ud800-\udfff]")


def _quoted(text: str) -> int:
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii():
        return len(quoted)
    wide = quoted.encode("utf-16-le", "surrogatepass")  # two halves that meet are one character
    lone = _LONE.findall(wide.decode("utf-16-le", "surrogatepass"))
    return len(wide) // 2 + 5 * len(lone)  # a lone half is escaped


def javascript_number(number: float) -> str:
    """A number as JavaScript writes it in JSON. All its numbers are doubles; what is none of them is null."""
    try:
        value = float(number)
    except OverflowError:
        return "null"
    if not isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign, places, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, places))
    point = len(digits) + int(exponent)  # how many of the digits stand before the point
    return "-" * sign + _positional(digits, point) if -6 < point <= 21 else "-" * sign + _scientific(digits, point - 1)


def _positional(digits: str, point: int) -> str:
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def _scientific(digits: str, exponent: int) -> str:
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{exponent:+d}"


# How pi shows a model what it counts without these words: a command that the user ran, and the summaries of its session files.
_RAN: Final = re.compile(
    r"Ran `(?P<command>.*?)`\n(?:```\n(?P<output>.*)\n```|\(no output\))"
    r"(?:\n\n\(command cancelled\)|\n\nCommand exited with code -?\d+)?(?:\n\n\[Output truncated\. Full output: [^\n]*\])?",
    re.DOTALL,
)
_SUMMARIES: Final = tuple(tuple(frame.split("{}")) for frame in (COMPACTED, BRANCHED))


def weigh_like_pi(blocks: Sequence[Block]) -> tuple[int, ...]:
    """Tokens of each block so that they add up to pi's estimate of the message; the first takes the rounding.

    The parts of a result's text are joined in our blocks, so each part but the first counts one unit more than in pi.
    """
    if not blocks:
        return ()
    units = [_units(block) for block in blocks]
    rest = [each // UNITS_PER_TOKEN for each in units[1:]]
    return (_tokens(sum(units)) - sum(rest), *rest)


def _units(block: Block) -> int:
    match block:
        case Text(text=text, origin=origin):
            return _length(text) - _framing(text, origin)
        case ToolCall(name=name, arguments=arguments):
            return _length(name) + _arguments(arguments)
        case ToolResult(text=text, media=media):
            return _length(text) + IMAGE_UNITS * len(media)
        case Media(origin=origin):
            return IMAGE_UNITS if origin is Origin.HARNESS else 0
        case Opaque():
            return 0
        case _:
            return _length(block.text)


def _arguments(text: str) -> int:
    try:
        return stringified(json.loads(text))
    except (ValueError, RecursionError):
        return _length(text)


def _framing(text: str, origin: Origin) -> int:
    """UTF-16 units of the words around a text that pi counts without them."""
    if origin is Origin.HUMAN and (found := _RAN.fullmatch(text)):
        return _length(text) - _length(found["command"]) - _length(found["output"])
    if origin is Origin.HARNESS:
        for head, tail in _SUMMARIES:
            if text.startswith(head) and text.endswith(tail) and len(text) >= len(head) + len(tail):
                return len(head) + len(tail)
    return 0
