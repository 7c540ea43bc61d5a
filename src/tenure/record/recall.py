"""Bringing back what left a view. Promise: nothing is lost: whatever was evicted comes back byte for byte, by handle.

Pure: texts come from the record by entry number. A search reads the record's calls first and its texts only when asked for words.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from tenure.errors import InputError
from tenure.record.entry import Entry, Text, Thinking, ToolCall, ToolResult
from tenure.record.episodes import Episode
from tenure.record.index import HASH_BYTES, Index, Span
from tenure.record.objects import Handle, parse_handle

At = tuple[int, int]
Read = Callable[[int], Entry]

MATCHES: Final = 20  # of a search
LINE_CHARS: Final = 200  # of one matching line

RECALL_DESCRIPTION: Final = (
    "Bring back something that left your context, exactly as it was. Give a handle that you see in the conversation "
    "(read:12@3fa9, user:3, step:17, episode:locate-auth), or search for it by path, words or pattern; "
    "lines (such as 120-180) limits what comes back."
)

RECALL_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "what to bring back, such as read:12@3fa9"},
        "path": {"type": "string", "description": "find calls about this file or folder"},
        "words": {"type": "string", "description": "find where all these words stand"},
        "pattern": {"type": "string", "description": "find lines that match this regular expression"},
        "lines": {"type": "string", "description": "only these lines of the handle's text, such as 120-180"},
    },
    "additionalProperties": False,
}


class Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to recall: a handle, perhaps with lines, or one way to search."""

    handle: str = ""
    path: str = ""
    words: str = ""
    pattern: str = ""
    lines: str = ""


class Found(Struct, frozen=True, kw_only=True):
    """A place that a search found: the handle that brings it back, and why it matched."""

    handle: str
    shown: str


def blocks_of(index: Index, handle: Handle) -> tuple[At, ...]:
    """Where an object's blocks lie, in record order. Raises InputError, naming what there is, when there is no such object."""
    places = tuple(_places(index, handle))
    if not places:
        raise InputError("handle", f"no object {handle.object!r} in this record", _near(index, handle))
    if handle.hash and not any(index.entries[entry].hash.hex().startswith(handle.hash[: 2 * HASH_BYTES]) for entry, _ in places):
        right = index.handle(handle.object, places[0][0])
        raise InputError(
            "handle", f"{str(handle)!r} has the hash of another record", f"{right} for this record's {handle.object}"
        )
    return places


def raw(index: Index, read: Read, text: str) -> bytes:
    """The original bytes of a handle: a tool call's result, an entry's payload, else the texts of all its blocks, each with a newline."""
    handle = parse_handle(text)
    places = blocks_of(index, handle)
    if handle.kind == "entry":
        entry = read(places[0][0])
        return _bytes(entry, places[0]) if "/" in handle.name else entry.payload
    if handle.kind not in ("user", "step", "episode"):
        return _bytes(read(places[-1][0]), places[-1])
    return b"".join(_bytes(read(entry), (entry, block)) + b"\n" for entry, block in places)


def shown(index: Index, read: Read, text: str, lines: str = "") -> str:
    """What a handle stands for, to be read: each block under a line that says what it is."""
    handle = parse_handle(text)
    places = blocks_of(index, handle)
    if lines:
        return _lines(raw(index, read, text).decode(), lines)
    parts = [f"{_label(index, read(entry), (entry, block))}\n{read(entry).blocks[block].text}" for entry, block in places]
    return "\n\n".join(parts)


def search(index: Index, read: Read, query: Query) -> tuple[Found, ...]:
    """Where the record speaks of a path, of all words or of a pattern, newest first. Raises InputError for a bad pattern."""
    if query.path:
        spans = (span for span in reversed(index.spans) if query.path in span.cue)
        return tuple(_found_call(index, span) for span, _ in zip(spans, range(MATCHES), strict=False))
    matches = _matcher(query)
    found: list[Found] = []
    for number in reversed(range(len(index))):
        entry = read(number)
        for block, part in enumerate(entry.blocks):
            if line := matches(part.text):
                found.append(Found(handle=_handle_at(index, (number, block)), shown=line))
        if len(found) >= MATCHES:
            break
    return tuple(found[:MATCHES])


def answer(index: Index, read: Read, query: Query) -> str:
    """What the model gets for a recall. Raises InputError for what cannot be found or understood."""
    if query.handle:
        return shown(index, read, query.handle, query.lines)
    if not (query.path or query.words.strip() or query.pattern):
        raise InputError("recall", "nothing to look for", "a handle, a path, words or a pattern")
    found = search(index, read, query)
    if not found:
        raise InputError("recall", "nothing in the record matches", "other words, a part of the path, or a handle")
    return "\n".join(f"{each.handle}: {each.shown}" for each in found)


def _places(index: Index, handle: Handle) -> Iterator[At]:
    match handle.kind:
        case "user":
            yield from _turn(index, handle.name)
        case "episode":
            found = index.graph.named(handle.name)
            yield from _episode(index, [found] if found else [])
        case "step":
            yield from _episode(index, index.implicit(handle.name))
        case "entry":
            yield from _entry(index, handle.name)
        case _:
            tool, _, number = handle.object.rpartition(":")
            span = index.span(tool, int(number)) if number.isdecimal() else None
            if span is not None:
                yield span.call
                yield from [span.result] if span.result else []


def _turn(index: Index, name: str) -> Iterator[At]:
    number = int(name) if name.isdecimal() else 0
    if not 0 < number <= len(index.turns):
        return
    start = index.turns[number - 1].start
    stop = index.turns[number].start if number < len(index.turns) else (len(index), 0)
    for entry in range(start[0], min(stop[0] + 1, len(index))):
        for block in range(len(index.entries[entry].blocks)):
            if start <= (entry, block) < stop:
                yield entry, block


def _episode(index: Index, episodes: Sequence[Episode]) -> Iterator[At]:
    for episode in episodes:
        for entry in index.entries_of(episode):
            for block, facts in enumerate(index.entries[entry].blocks):
                if facts.episode == episode.ordinal:
                    yield entry, block


def _entry(index: Index, name: str) -> Iterator[At]:
    number, _, block = name.partition("/")
    if not number.isdecimal() or int(number) >= len(index) or (block and not block.isdecimal()):
        return
    blocks = range(len(index.entries[int(number)].blocks))
    yield from ((int(number), each) for each in blocks if not block or each == int(block))


def _bytes(entry: Entry, at: At) -> bytes:
    return entry.blocks[at[1]].text.encode("utf-8", "surrogatepass")


def _lines(text: str, wanted: str) -> str:
    found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", wanted)
    every = text.split("\n")
    if not found or not 1 <= int(found[1]) <= len(every) or int(found[2] or found[1]) < int(found[1]):
        raise InputError("lines", repr(wanted), f"a range such as 1-40, within the {len(every)} lines there are")
    return "\n".join(every[int(found[1]) - 1 : int(found[2] or found[1])])


def _label(index: Index, entry: Entry, at: At) -> str:
    block = entry.blocks[at[1]]
    match block:
        case ToolCall(name=name):
            return f"[{index.handle(index.spans[index.block(at).span].object, at[0])}: call of {name}]"
        case ToolResult():
            return "[result]"
        case Thinking():
            return "[thinking]"
        case Text():
            return f"[{block.origin}]"
        case _:
            return f"[{index.block(at).kind}]"


def _handle_at(index: Index, at: At) -> str:
    objects = list(index.objects_of(at))
    return (
        index.handle(objects[0], index.spans[index.block(at).span].call[0])
        if index.block(at).span >= 0
        else f"entry:{at[0]}/{at[1]}"
    )


def _found_call(index: Index, span: Span) -> Found:
    return Found(handle=index.handle(span.object, span.call[0]), shown=span.cue)


def _matcher(query: Query) -> Callable[[str], str]:
    if query.pattern:
        try:
            pattern = re.compile(query.pattern)
        except re.error as error:
            raise InputError("pattern", f"{query.pattern!r} is no regular expression ({error})") from error
        return lambda text: _line_with(text, found.start()) if (found := pattern.search(text)) else ""
    words = [word.casefold() for word in query.words.split()]
    return lambda text: _line_with(text, low.find(words[0])) if all(word in (low := text.casefold()) for word in words) else ""


def _line_with(text: str, place: int) -> str:
    start = text.rfind("\n", 0, place) + 1
    stop = text.find("\n", place)
    line = text[start : stop if stop >= 0 else len(text)].strip()
    return line[:LINE_CHARS] or text[:LINE_CHARS].strip()


def _near(index: Index, handle: Handle) -> str:
    """What a person who mistyped a handle may have meant."""
    names: Iterable[str]
    if handle.kind == "episode":
        names = get_close_matches(handle.name, [e.name for e in index.episodes if e.declared], n=3, cutoff=0.4)
        return "one of the episodes " + ", ".join(f"episode:{name}" for name in names) if names else "a declared episode"
    if handle.kind in ("user", "step", "entry"):
        most = {"user": len(index.turns), "step": len(index.steps), "entry": len(index) - 1}[handle.kind]
        return f"{handle.kind}:{'0' if handle.kind == 'entry' else '1'} to {handle.kind}:{most}"
    tool = handle.object.rpartition(":")[0]
    calls = index.calls_between(tool, (0, 0), (len(index), 0))
    return (
        f"{tool}:1 to {tool}:{calls}"
        if calls
        else "a tool that was called: " + (", ".join(sorted(index.tools)[:12]) or "there is none yet")
    )
