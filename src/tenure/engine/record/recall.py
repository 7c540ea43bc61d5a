"""Bringing back what left a view.

Pure: texts come from the record by entry number. An answer holds whole lines and is bounded; what it leaves out, it names with the words that
bring it. It is a copy, tied to its source by the index.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import (
    SPILL_CHARS,
    At,
    Block,
    Count,
    Entry,
    Media,
    Read,
    Spill,
    Text,
    ToolCall,
    ToolResult,
)
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.excerpt import Lines, Open, excerpt, lines_of, nowhere, part
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.record.objects import Handle, parse_handle
from tenure.engine.record.query import CAP, Query
from tenure.engine.record.quotation import enclosed, in_quotes
from tenure.engine.record.search import Hit, Hits, Nearest, Now, search
from tenure.errors import InputError

_LEAST_HASH: Final = 4  # hex digits of a spill's hash
LEAST: Final = 200  # tokens: below it, an answer could not even say what it leaves out
REPEATS: Final = 3  # the same recall that often, within NEAR replies, is said plainly
NEAR: Final = 10
STILL: Final = "[Still in your context"
LOADED: Final = 2  # blocks of a skill that nothing was said beside: its call and its result
_BACK: Final = (
    "Text cannot hold it: it comes beside this where the API takes media in results, in place when the user restores it"
)
_MEDIUM_PARTS: Final = 3  # of entry:40/1/2: entry, block, medium
_CALL_SHARE: Final = 0.2  # of the cap: what a call's arguments may take before its result
_NAMES_APART: Final = re.compile(r"[\s,;]+")
_NOTE: Final = 90  # tokens set aside for what is said around a search's hits

RECALL_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "what to bring back, such as read:12@3fa9; several apart by spaces"},
        "lines": {"type": "string", "description": "only these lines of it, such as 120-180, or 120- for all from there on"},
        "words": {"type": "string", "description": "find the texts that say most of these words; names in any spelling"},
        "path": {"type": "string", "description": "find calls about this file or folder, and texts that name it"},
        "pattern": {"type": "string", "description": "find lines that match this Python regular expression"},
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Original:
    """A record that handles may name: the conversation's own, or one that it was built from."""

    index: Index
    read: Read
    is_own: bool = True


Medium = Callable[[Entry, Media], bytes]  # the bytes of a medium of an entry

SHA_CHARS: Final = 12
# Those that a conversation was built from, nearest first; read only when its own record has no answer.
Sources = Callable[[], Iterable[Original]]


class _Passage(Struct, frozen=True, kw_only=True, gc=False):
    """What a handle stands for, to be read: a label, and the text whose lines are numbered."""

    handle: str  # as it is printed
    head: str
    body: str
    spill: Spill | None = None  # whose lines are meant, in place of `body`


def blocks_of(index: Index, handle: Handle) -> tuple[At, ...]:
    """Where an object's blocks lie, in record order. Raises InputError, naming what there is, when there is no such object."""
    places = tuple(_places(index, handle))
    if not places:
        raise InputError("handle", f"no object {handle.object!r} in this record", _near(index, handle))
    if handle.hash and not any(index.is_hash(entry, handle.hash) for entry, _ in places):
        right = index.handle(handle.object, places[0][0])
        raise InputError(
            "handle", f"{str(handle)!r} has the hash of another record", f"{right} for this record's {handle.object}"
        )
    return places


def handle_in(index: Index, text: str) -> Handle:
    """The handle in a text; the bare name of an episode is one. Raises InputError when it is neither."""
    return parse_handle(f"episode:{text.strip()}" if ":" not in text and index.graph.named(text) is not None else text)


def raw(index: Index, read: Read, text: str, *, medium: Medium | None = None) -> bytes:
    """The original bytes of a handle: a tool call's result, an entry's payload, else the texts of all its blocks, each with a newline.

    With `medium`, of an image or document its own bytes: of `entry:40/1`, of `entry:40/1/2`, the second beside a result's text, and of a result
    that is nothing else.
    """
    handle = handle_in(index, text)
    places = blocks_of(index, handle)
    if medium is not None and (found := _alone(handle, read(places[-1][0]), places)) is not None:
        return medium(read(places[-1][0]), found)
    if handle.kind == "entry":
        entry = read(places[0][0])
        return _bytes(entry, places[0]) if "/" in handle.name else entry.payload
    if handle.kind == "skill" and len(places) > LOADED:
        places = places[1:]  # what came, not what was asked
    elif handle.kind not in ("user", "step", "episode"):
        return _bytes(read(places[-1][0]), places[-1])
    return b"".join(_bytes(read(entry), (entry, block)) + b"\n" for entry, block in places)


def media_of(index: Index, read: Read, arguments: str, reply: ToolAnswer) -> tuple[tuple[Entry, Media], ...]:
    """The media that a recorded call of `recall` names, each with its entry; none of a search, a refusal or an answer that still stands."""
    if reply.error or reply.text.startswith(STILL):
        return ()
    try:
        query = msgspec.json.decode(arguments or "{}", type=Query)
        handles = () if query.searches or query.lines else tuple(handle_in(index, each) for each in _handles(index, query))
        found = [(handle, at) for handle in handles for at in blocks_of(index, handle)]
    except (InputError, msgspec.DecodeError, RecursionError):
        return ()
    pairs: dict[str, tuple[Entry, Media]] = {}
    for handle, (n, block) in found:
        entry = read(n)
        for media in _named_media(handle, media_in(entry.blocks[block])) if handle.kind != "spill" else ():
            pairs.setdefault(media.sha256, (entry, media))
    return tuple(pairs.values())


def source_of(own: Original, sources: Sources, handle: str) -> Original:
    """The record that has what a handle names: its own first. Raises InputError, in the words of its own, when none has."""
    try:
        blocks_of(own.index, handle_in(own.index, handle))
    except InputError:
        for source in sources():
            with suppress(InputError):
                blocks_of(source.index, handle_in(source.index, handle))
                return source
        raise
    return own


def spilled(index: Index, read: Read, text: str) -> Spill | None:
    """The spill that a handle names; None for a handle of another kind. Raises InputError."""
    handle = parse_handle(text)
    return _spill(read(blocks_of(index, handle)[0][0]), handle) if handle.kind == "spill" else None


def answer(
    index: Index,
    read: Read,
    query: Query,
    *,
    count: Count | None = None,
    cap: int = CAP,
    now: Now | None = None,
    opened: Open = nowhere,
    sources: Sources = tuple,
    nearest: Nearest | None = None,
) -> str:
    """What the model gets for a recall, at most `cap` tokens of it by `count`; 0 is no cap, and without `count` an estimate errs high.

    Patterns are stopped after PATTERN_S seconds of the clock `now`; `opened` gives the bytes of spills. What the record does not have is looked
    for in its `sources`; with `nearest` words are looked for by their meaning too. Raises InputError for what cannot be found or understood.
    """
    meter = count or _estimate
    room = max(cap, LEAST) if cap else None
    own = Original(index, read)
    if query.searches:
        handles = _handles(index, query)
        for source in [source_of(own, sources, handles[0])] if handles else chain([own], _later(sources)):
            found = _searched(source, query, now, opened, nearest)
            if found.hits:
                return _listing(source, found, query, room, meter)
        unread = _unread(index, query)
        allowed = "; ".join(filter(None, ("other words, a part of the path, or a handle", unread)))
        raise InputError("recall", "nothing in the record matches", allowed)
    if not query.handles:
        raise InputError("recall", "nothing to look for", "a handle, a path, words or a pattern")
    return _brought(own, query, room, meter, opened, sources)


def _later(sources: Sources) -> Iterator[Original]:
    """The sources, which are asked for when they are wanted."""
    yield from sources()


def _searched(source: Original, query: Query, now: Now | None, opened: Open, nearest: Nearest | None) -> Hits:
    index, read = source.index, source.read
    handles = [handle_in(index, handle) for handle in _handles(index, query)]
    within = [at for handle in handles if handle.kind != "spill" for at in blocks_of(index, handle)] if handles else None
    spills = [_spill(read(blocks_of(index, handle)[0][0]), handle) for handle in handles if handle.kind == "spill"]
    if spills and not query.pattern:
        raise InputError(
            "recall", f"words or a path beside {spills[0].handle}", "a pattern, which is looked for in all of it, or lines"
        )
    if query.lines and (not spills or within):
        raise InputError("lines", "lines beside a search", "lines beside a handle alone, or beside a pattern and a spill:…")
    first = lines_of(query.lines) if query.lines else Lines()
    return search(index, read, query, within, now, opened=opened, spills=spills, lines=first, nearest=nearest)


def _unread(index: Index, query: Query) -> str:
    """What a search did not look into."""
    unread = len(index.spills) if not query.pattern and not query.handles else 0
    return f"{unread:,} outputs kept as spill:… are searched by pattern only" if unread else ""


def respond(
    index: Index,
    read: Read,
    span: Span,
    arguments: str,
    *,
    stands: Callable[[At], bool],
    count: Count | None = None,
    cap: int = CAP,
    now: Now | None = None,
    opened: Open = nowhere,
    sources: Sources = tuple,
    nearest: Nearest | None = None,
) -> ToolAnswer:
    """The answer to a recorded call of `recall`, be it a refusal. Never raises InputError.

    When the same answer still `stands` in the view, whole and as it was, it is pointed to instead; asking the same again and again is said.
    """
    try:
        query = msgspec.json.decode(arguments or "{}", type=Query)
        text = answer(index, read, query, count=count, cap=cap, now=now, opened=opened, sources=sources, nearest=nearest)
        reply = ToolAnswer(text=text)
    except (InputError, msgspec.DecodeError, RecursionError) as error:
        reply = ToolAnswer(text=f"recall: {error}", error=True)
    return _not_again(index, read, span, reply, stands)


def _not_again(index: Index, read: Read, span: Span, reply: ToolAnswer, stands: Callable[[At], bool]) -> ToolAnswer:
    same = list(_same(index, span))
    step = index.entries[span.call[0]].step
    near = 1 + sum(step - index.entries[each.call[0]].step <= NEAR for each in same)
    for each in same:
        if each.result is None or each.error or reply.error or not stands(each.result):
            continue
        if not read(each.result[0]).blocks[each.result[1]].text.startswith(reply.text):
            continue  # a pointer itself, or the record has grown since
        ago = step - index.entries[each.call[0]].step
        first = reply.text.split("\n", 1)[0][:80]
        text = f"{STILL}: the same recall was answered {ago} replies ago, and nothing has changed. It begins: {first}]"
        reply = ToolAnswer(text=text) if len(text) < len(reply.text) else reply
        break
    if near < REPEATS:
        return reply
    plain = f"You have now asked for exactly this {near} times within {NEAR} replies, and the answer is the same each time"
    return ToolAnswer(text=f"{reply.text}\n\n[{plain}. Work with it, or ask for something else.]", error=reply.error)


def _same(index: Index, span: Span) -> Iterator[Span]:
    """Earlier recalls that asked the same, newest first."""
    own = index.recalls.get(span.ordinal)
    for ordinal in reversed(index.recalls):
        if own is not None and ordinal < span.ordinal and index.recalls[ordinal].key == own.key:
            yield index.spans[ordinal]


def _brought(own: Original, query: Query, room: int | None, count: Count, opened: Open, sources: Sources) -> str:
    """What handles stand for, one after the other, until the room is used up."""
    handles = _handles(own.index, query)
    wanted = lines_of(query.lines) if query.lines else Lines()
    parts: list[str] = []
    failures: list[InputError] = []
    spent = 0
    for place, handle in enumerate(handles):
        try:
            of = source_of(own, sources, handle)
            passage = _passage(of.index, of.read, handle, int(room * _CALL_SHARE) if room else None, count)
            head = passage.head if not query.lines else f"[{passage.handle}, lines {wanted}]\n" * (len(handles) > 1)
            rest = handles[place + 1 :]
            left = None if room is None else room - spent - count(head) - _reserve(passage, rest, query.lines, count)
            if left is not None and left < min(LEAST // 4, count(passage.body)) and parts:
                parts.append(_left_out(handles[place:], query.lines))
                break
            space = None if left is None else max(1, left)
            whole = passage.spill
            cut = part(whole, opened(whole), wanted, space, count) if whole else excerpt(passage.body, wanted, space, count)
        except InputError as error:
            failures.append(error)
            parts.append(f"[{error}]")
            continue
        if cut.left is not None:
            parts.append(head + cut.text + "\n" + _goes_on(passage.handle, cut.left, cut.total, rest, query.lines))
            break
        parts.append(head + cut.text)
        spent += count(parts[-1]) + 1
    if len(failures) == len(handles):
        raise failures[0]
    return "\n\n".join(parts)


def _handles(index: Index, query: Query) -> tuple[str, ...]:
    """What is to be brought back; bare names of episodes may stand apart by spaces or commas too."""
    found: dict[str, None] = {}
    for text in query.handles:
        names = [text] if ":" in text or index.graph.named(text) else _NAMES_APART.split(text)
        found |= dict.fromkeys(names if all(map(index.graph.named, names)) else [text])
    return tuple(found)


def _goes_on(handle: str, left: Lines, total: int, rest: Sequence[str], lines: str) -> str:
    start = f"line {left.first} from character {left.char} on, and lines" if left.char > 1 else "lines"
    first = left.first + (left.char > 1)
    missing = f"{start} {first}-{left.last}" if first <= left.last else start.removesuffix(", and lines")
    text = f'[left out: {missing} of {total}. Go on with: recall handle="{handle}" lines="{left}"]'
    return f"{text}\n{_left_out(rest, lines)}" if rest else text


def _reserve(passage: _Passage, rest: Sequence[str], lines: str, count: Count) -> int:
    """Tokens to set aside for saying what was left out, whatever it will be."""
    total = passage.spill.lines if passage.spill else passage.body.count("\n") + 1
    widest = Lines(first=max(1, total - 1), char=len(passage.body) + 1, last=total)
    return count(_goes_on(passage.handle, widest, total, rest, lines)) + 2


def _left_out(handles: Sequence[str], lines: str) -> str:
    where = f' lines="{lines}"' if lines else ""
    return f'[left out wholly: {len(handles)} of the handles. Go on with: recall handle="{" ".join(handles)}"{where}]'


def _passage(index: Index, read: Read, text: str, room: int | None, count: Count) -> _Passage:
    """A handle's label and text. Of a call with its result, the lines are the result's; of anything larger, those of all its blocks."""
    handle = handle_in(index, text)
    places = blocks_of(index, handle)
    entry = read(places[0][0])
    printed = index.handle(handle.object, places[0][0])
    if handle.kind == "spill":
        spill = _spill(entry, handle)
        return _Passage(handle=spill.handle, head=f"[{spill.handle}: {_extent(spill)}]\n", body="", spill=spill)
    if _names_medium(handle):
        (media,) = _named_media(handle, media_in(entry.blocks[places[0][1]]))
        return _Passage(handle=printed, head=f"[{handle.object}: {described(media)}. {_BACK}]\n", body=media.text)
    if handle.kind == "entry" and "/" in handle.name:
        return _Passage(handle=printed, head=_label(index, entry, places[0]) + "\n", body=entry.blocks[places[0][1]].text)
    if handle.kind in ("user", "step", "episode", "entry") or len(places) > LOADED:
        if handle.kind != "entry":  # what was recalled within it is a copy
            places = tuple(at for at in places if index.block(at).span not in index.recalls) or places
        episode = index.graph.named(handle.name) if handle.kind == "episode" else None
        finding = episode is not None and episode.description  # first: the end of an answer is where it is cut
        head = f"[{printed}, which found: {in_quotes(enclosed(finding))}]\n\n" if finding else ""
        return _Passage(handle=printed, head=head, body="\n\n".join(_parts(index, read, places)))
    label = _label(index, entry, places[0])
    call = entry.blocks[places[0][1]]
    if len(places) == 1:
        return _Passage(handle=printed, head=f"{label}, which has no result\n", body=call.text)
    shown = excerpt(call.text, Lines(), room, count)
    here = f"entry:{places[0][0]}/{places[0][1]}"
    note = f"\n{_goes_on(here, shown.left, shown.total, (), '')}" if shown.left is not None else ""
    answered = read(places[1][0])
    result = _label(index, answered, places[1])
    return _Passage(handle=printed, head=f"{label}\n{shown.text}{note}\n\n{result}\n", body=answered.blocks[places[1][1]].text)


def _parts(index: Index, read: Read, places: Iterable[At]) -> Iterator[str]:
    held: Entry | None = None
    for at in places:
        if held is None or held.n != at[0]:
            held = read(at[0])
        yield f"{_label(index, held, at)}\n{held.blocks[at[1]].text}"


def _listing(source: Original, hits: Hits, query: Query, room: int | None, count: Count) -> str:
    """What a search found, a line each."""
    every = [_line(source, hit) for hit in hits.hits]
    shown = excerpt("\n".join(every), Lines(), None if room is None else room - _NOTE, count).text
    rows = shown.split("\n")
    more = hits.more + len(every) - len(rows)
    order = "best first" if query.words.strip() and not query.pattern else "newest first"
    notes = [each for each in (hits.note, _unread(source.index, query)) if each]
    notes += [f"{more:,} more {hits.what} matched: narrow the search, or add a handle or path"] if more else []
    notes += ['a line in its place: recall handle="…" lines="…"'] if not more else []
    return "\n".join([f"{len(rows)} {hits.what}, {order}:", *rows, f"[{'; '.join(notes)}]"])


def _line(source: Original, hit: Hit) -> str:
    """A hit with the handle and line by which it can be had."""
    index = source.index
    facts = index.block(hit.at)
    here = f"entry:{hit.at[0]}/{hit.at[1]}"
    here = here if source.is_own else index.handle(here, hit.at[0])
    line = f"line {hit.line}" if hit.char == 1 else f"line {hit.line}@{hit.char}"
    if hit.spill:
        return f"{hit.spill} {line}: {hit.shown}"
    if facts.span == NONE:
        return f"{here} {line}: {hit.shown}"
    span = index.spans[facts.span]
    handle = index.handle(span.object, span.call[0])
    return f"{handle} {line}: {hit.shown}" if facts.kind == "tool_result" else f"{handle} (its call, {here} {line}): {hit.shown}"


def _estimate(text: str) -> int:
    """Tokens of a text, hardly ever less than there are."""
    return len(text.encode("utf-8", "surrogatepass")) // 2 + 1 if text else 0


def _places(index: Index, handle: Handle) -> Iterator[At]:
    name = handle.name
    match handle.kind:
        case "user":
            number = int(name) if name.isdecimal() else 0
            if 0 < number <= len(index.turns):
                stop = index.turns[number].start if number < len(index.turns) else (len(index), 0)
                yield from _between(index, index.turns[number - 1].start, stop)
        case "episode" | "step":
            named = [index.graph.named(name)] if handle.kind == "episode" else index.implicit(name)
            for episode in filter(None, named):
                for entry in index.entries_of(episode):
                    facts = enumerate(index.entries[entry].blocks)
                    yield from ((entry, block) for block, fact in facts if fact.episode == episode.ordinal)
        case "entry":  # 40, 40/1 or 40/1/2, whose last number tells the block's media apart
            parts = name.split("/")
            if len(parts) <= _MEDIUM_PARTS and all(part.isdecimal() for part in parts) and int(parts[0]) < len(index):
                blocks = range(len(index.entries[int(parts[0])].blocks))
                yield from ((int(parts[0]), block) for block in blocks if len(parts) == 1 or block == int(parts[1]))
        case "skill":  # what its last load brought; with the hash of an earlier load, what that one did
            if loads := index.skills.loads(name):
                hashed = (load for load in reversed(loads) if index.is_hash(index.spans[load.span].call[0], handle.hash))
                load = next(hashed, loads[-1])
                yield from (*index.spans[load.span].blocks, *load.said)
        case "spill":
            if len(name) >= _LEAST_HASH:
                yield from (at for sha256, at in index.spills.items() if sha256.startswith(name))
        case _:
            if (span := index.span_of(handle.object)) is not None:
                yield from span.blocks


def _between(index: Index, start: At, stop: At) -> Iterator[At]:
    for entry in range(start[0], min(stop[0] + 1, len(index))):
        places = ((entry, block) for block in range(len(index.entries[entry].blocks)))
        yield from (at for at in places if start <= at < stop)


def _alone(handle: Handle, entry: Entry, places: Sequence[At]) -> Media | None:
    """The medium that a handle stands for, when it stands for nothing else."""
    block = entry.blocks[places[-1][1]]
    found = media_in(block)
    if _names_medium(handle):
        return next(iter(_named_media(handle, found)), None)
    is_block = handle.kind == "entry" and "/" in handle.name
    if len(found) != 1 or handle.kind in ("user", "step", "episode") or (handle.kind == "entry" and not is_block):
        return None
    return found[0] if isinstance(block, Media) or not block.text else None


def _spill(entry: Entry, handle: Handle) -> Spill:
    every = (block.spill for block in entry.blocks if isinstance(block, ToolResult))
    return next(each for each in every if isinstance(each, Spill) and each.sha256.startswith(handle.name))


def _extent(spill: Spill) -> str:
    if spill.size == spill.of_size:
        return f"an output of {spill.size:,} bytes, {spill.lines:,} lines"
    return (
        f"the first {spill.size:,} bytes ({spill.lines:,} lines) of an output of {spill.of_size:,} bytes; the rest was not kept"
    )


def _names_medium(handle: Handle) -> bool:
    return handle.kind == "entry" and handle.name.count("/") == _MEDIUM_PARTS - 1


def _named_media(handle: Handle, media: tuple[Media, ...]) -> tuple[Media, ...]:
    """Of a block's media the one that the handle names, if it names one. Raises InputError when there is no such medium."""
    if not _names_medium(handle):
        return media
    number = int(handle.name.rpartition("/")[2])
    if not 0 < number <= len(media):
        raise InputError(
            "handle", f"no medium {number} in {handle.object.rpartition('/')[0]}", f"1 to {len(media)}" if media else ""
        )
    return (media[number - 1],)


def _bytes(entry: Entry, at: At) -> bytes:
    return entry.blocks[at[1]].text.encode("utf-8", "surrogatepass")


def _label(index: Index, entry: Entry, at: At) -> str:
    block = entry.blocks[at[1]]
    match block:
        case ToolCall(name=name):
            return f"[{index.handle(index.spans[index.block(at).span].object, at[0])}: call of {name}]"
        case ToolResult(media=media):
            return f"[result, with {'; '.join(addressed(*at, media))}. {_BACK}]" if media else "[result]"
        case Media():
            return f"[{block.origin}: {described(block)}. {_BACK}]"
        case Text():
            return f"[{block.origin}]"
        case _:
            return f"[{index.block(at).kind}]"


def _near(index: Index, handle: Handle) -> str:
    """What a person who mistyped a handle may have meant."""
    match handle.kind:
        case "episode":
            names = get_close_matches(handle.name, [e.name for e in index.episodes if e.declared], n=3, cutoff=0.4)
            return "one of the episodes " + ", ".join(f"episode:{name}" for name in names) if names else "a declared episode"
        case "skill":
            skills = ", ".join(f"skill:{name}" for name in index.skills.nearest(handle.name))
            return f"one of the skills that were loaded: {skills or 'there is none yet'}"
        case "spill":
            spills = ", ".join([f"spill:{sha256[:SPILL_CHARS]}" for sha256 in index.spills][-12:])
            return f"one of {spills}" if spills else "a handle of another kind: no output of this record is kept in a file"
        case "user" | "step" | "entry" as kind:
            first, last = {"user": (1, len(index.turns)), "step": (1, len(index.steps)), "entry": (0, len(index) - 1)}[kind]
            return f"{kind}:{first} to {kind}:{last}"
        case _:
            tool = handle.object.rpartition(":")[0]
            if calls := index.calls_between(tool, (0, 0), (len(index), 0)):
                return f"{tool}:1 to {tool}:{calls}"
            return "a tool that was called: " + (", ".join(sorted(index.tools)[:12]) or "there is none yet")


def media_in(block: Block) -> tuple[Media, ...]:
    """The media of a block: of a result those beside its text."""
    match block:
        case Media():
            return (block,)
        case ToolResult(media=media):
            return media
        case _:
            return ()


def described(media: Media) -> str:
    """What is known of a medium: type, dimensions or pages, size, hash."""
    facts = [media.media_type or "an image or document"]
    facts += [f"{media.width}x{media.height}"] if media.width else []
    facts += [f"{media.pages} page{'s' * (media.pages > 1)}"] if media.pages else []
    facts += [f"{media.size:,} bytes"] if media.size else ["known by its address only"]
    return " ".join([", ".join(facts), f"(sha256 {media.sha256[:SHA_CHARS]})"])


def addressed(entry: int, block: int, media: tuple[Media, ...]) -> Iterator[str]:
    """Each medium of a block with the handle that brings it alone."""
    for number, medium in enumerate(media, 1):
        yield f"entry:{entry}/{block}/{number} {described(medium)}"
