"""Marks beside a recorded session: `delimiter` calls for agents that knew no such tool, as files of JSON lines (an edge).

One line for each reply that makes such calls:

    {"session": name, "sha256": of the unpacked file, "call": k, "entry": n, "entry_sha256": hash, "calls": [{"action": "start", ...}, ...]}

Reply `call` (from 0 on, as a replay numbers calls) makes these calls behind its words and before its other calls, and gets the protocol's own answers.
`entry` and `entry_sha256` say which record entry it was and what that entry's payload hashed to; they are checked where a reader still numbers entries so.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.tokens import FRAMING, Tokenizer
from tenure.engine.record.chain import neutral_payload
from tenure.engine.record.entry import NEUTRAL, Block, Draft, Role, ToolCall, ToolResult, Usage
from tenure.engine.record.episodes import EpisodeGraph
from tenure.engine.record.tools import DELIMITER
from tenure.errors import InputError
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten

SUFFIX: Final = ".jsonl"
_CALL: Final = "mark-"  # how the ids of its calls begin


class Mark(Struct, frozen=True, kw_only=True):
    """The delimiter calls of one reply."""

    session: str
    sha256: str
    call: int
    entry: int
    entry_sha256: str
    calls: tuple[dict[str, Any], ...]
    where: str = ""  # its file and line


class MarkBook:
    """Marks by the session that they are for."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self._by_sha: dict[str, list[Mark]] = {}
        self._by_name: dict[str, Mark] = {}
        for mark in marks:
            self._by_sha.setdefault(mark.sha256, []).append(mark)
            self._by_name.setdefault(mark.session, mark)
        for each in self._by_sha.values():
            each.sort(key=lambda mark: mark.call)
            for first, second in pairwise(each):
                if first.call == second.call:
                    raise InputError(
                        second.where, f"call {second.call} is marked twice", f"one line for each call (see {first.where})"
                    )

    @property
    def sha256(self) -> str:
        """Of all of them."""
        return sha256(msgspec.json.encode([each for _, each in sorted(self._by_sha.items())])).hexdigest()

    @property
    def sessions(self) -> frozenset[str]:
        """Hashes of the sessions that have marks."""
        return frozenset(self._by_sha)

    def of(self, session: SessionSource) -> tuple[Mark, ...]:
        """The marks of a session; none for one that has none. Raises InputError where they are for another version of it."""
        digest = session.sha256()
        if digest in self._by_sha:
            return tuple(self._by_sha[digest])
        name = PurePath(session.path).name.partition(".")[0]
        if (mark := self._by_name.get(name)) is not None:
            raise InputError(mark.where, f"marks of {name} with sha256 {mark.sha256[:12]}", f"those of this file, {digest[:12]}")
        return ()

    def on(self, sessions: Sequence[SessionSource], count: Tokenizer) -> list[SessionSource]:
        """The sessions with their marks. Raises InputError when none of them has any."""
        found = [(one, self.of(one)) for one in sessions]
        if not any(marks for _, marks in found):
            named = ", ".join(sorted(self._by_name)[:3])
            raise InputError("--marks", f"marks of {named or 'no session'}", "marks of a session that is given")
        return [marked(one, marks, count) if marks else one for one, marks in found]


def marks_in(paths: Iterable[str | Path]) -> MarkBook:
    """The marks of files, and of all files of folders. Raises InputError with the line that holds none."""
    return MarkBook(mark for path in paths for file in _files(Path(path)) for mark in _lines(file))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(each for each in path.iterdir() if each.suffix == SUFFIX)
    return [path]


def _lines(path: Path) -> Iterator[Mark]:
    try:
        body = path.read_bytes()
    except OSError as error:
        raise InputError(
            str(path), f"cannot be read ({error.strerror or error})", "a file of marks, or a folder of them"
        ) from error
    for number, line in enumerate(body.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield replace(msgspec.json.decode(line, type=Mark), where=f"{path}:{number}")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}:{number}", f"no mark ({error})", "session, sha256, call, entry, entry_sha256 and calls"
            ) from error


def marked(session: SessionSource, marks: Sequence[Mark], count: Tokenizer) -> SessionSource:
    """The session as its agent would have run it with the tool: its calls, their answers, and what they weigh in the reports.

    Reading it raises InputError when a mark is for a call that is not there, or for another entry.
    """
    return replace(session.changed(lambda events: _marked(events, marks, count)), is_marked=True)


def _marked(events: Iterator[Event], marks: Sequence[Mark], count: Tokenizer) -> Iterator[Event]:
    waiting = {mark.call: mark for mark in marks}
    graph = EpisodeGraph([])
    answers: tuple[ToolResult, ...] = ()  # of the reply before
    places: list[int] = []  # of the session's own drafts among all
    added = call = turn = length = 0
    for event in events:
        if isinstance(event, Rewritten):
            yield _moved(event, places, length)
            continue
        if not isinstance(event, Draft):
            yield event
            continue
        if answers:
            if event.role is Role.USER and any(isinstance(block, ToolResult) for block in event.blocks):
                event = replace(event, blocks=(*answers, *event.blocks), dialect=NEUTRAL, payload=b"")
            else:
                yield Draft(role=Role.TOOL, blocks=answers, at=event.at, source=event.source)
                length += 1
            answers = ()
        turn += event.role is Role.USER
        if event.role is Role.ASSISTANT:
            mark = waiting.pop(call, None)
            if mark is not None:
                _check(mark, event, len(places))
                calls = tuple(_call(mark, number) for number in range(len(mark.calls)))
                answers = tuple(_answer(each, graph, (length, 0), turn) for each in calls)
                weight = sum(count(each.text) + FRAMING for each in calls)
                event = _with(event, calls, added, weight)
                added += weight + sum(count(each.text) + FRAMING for each in answers)
            elif event.usage is not None and added:
                event = replace(event, usage=_seen(event.usage, added))
            call += 1
        places.append(length)
        length += 1
        yield event
    if answers:
        yield Draft(role=Role.TOOL, blocks=answers)
    if waiting:
        mark = waiting[min(waiting)]
        raise InputError(mark.where, f"a mark for call {mark.call}", f"one of the session's {call} calls, from 0 on")


def _check(mark: Mark, draft: Draft, entry: int) -> None:
    found = sha256(draft.payload or neutral_payload(draft.blocks)).hexdigest()
    if mark.entry == entry and mark.entry_sha256 != found:
        raise InputError(mark.where, f"entry {entry} with hash {mark.entry_sha256[:12]}", f"the hash of that entry, {found[:12]}")


def _call(mark: Mark, number: int) -> ToolCall:
    arguments = msgspec.json.encode(mark.calls[number]).decode()
    return ToolCall(call_id=f"{_CALL}{mark.call}-{number}", name=DELIMITER, arguments=arguments)


def _answer(call: ToolCall, graph: EpisodeGraph, at: tuple[int, int], turn: int) -> ToolResult:
    answer = graph.apply(call.arguments, at, turn)
    return ToolResult(call_id=call.call_id, text=answer.text, error=answer.error)


def _with(draft: Draft, calls: tuple[ToolCall, ...], added: int, weight: int) -> Draft:
    """A reply that makes these calls behind its words."""
    first = next((number for number, block in enumerate(draft.blocks) if isinstance(block, ToolCall)), len(draft.blocks))
    blocks: tuple[Block, ...] = (*draft.blocks[:first], *calls, *draft.blocks[first:])
    usage = draft.usage and _seen(replace(draft.usage, output=draft.usage.output + weight * bool(draft.usage.output)), added)
    return replace(draft, blocks=blocks, dialect=NEUTRAL, payload=b"", usage=usage)


def _seen(usage: Usage, added: int) -> Usage:
    """What would have been reported with so much more in the prompt, nearly all of it seen before."""
    return replace(usage, cache_read=usage.cache_read + added * bool(usage.prompt))


def is_mark(block: Block) -> bool:
    """Whether a block is a call that marks made, or its answer."""
    return isinstance(block, ToolCall | ToolResult) and block.call_id.startswith(_CALL)


def _moved(event: Rewritten, places: Sequence[int], length: int) -> Rewritten:
    """A compaction in the numbers of all drafts."""

    def place(number: int) -> int:
        return places[number] if number < len(places) else length

    return replace(event, drop_before=place(event.drop_before) if event.drop_before else 0, kept=tuple(map(place, event.kept)))
