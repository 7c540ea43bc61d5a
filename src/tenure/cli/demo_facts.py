"""What the demo says of a session, found in its record. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, cast

from msgspec import Struct

from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.figures import first_line
from tenure.engine.record.episodes import Episode

BETWEEN: Final = "between episodes"  # calls and words that lie in none that was declared

# The arguments that say what a call is about, by tool; of others what the record's own cue says.
_ABOUT: Final[Mapping[str, Sequence[str]]] = {
    "bash": ("command",),
    "grep": ("pattern", "path"),
    "recall": ("handle", "words", "path", "pattern"),
}


class Remains(Struct, frozen=True, kw_only=True):
    """An episode in the window: o200k tokens in the record, and of those in the view."""

    name: str
    whole: int
    shown: int
    found: bool = False  # it ended with what it had found, which stays longest


def remains(session: Session) -> tuple[Remains, ...]:
    """The declared episodes that are closed, in order, and all undeclared ones as one. One pass over the index."""
    found = [_remains(session, episode) for episode in session.index.episodes if episode.declared and episode.closed]
    beside = [_remains(session, episode) for episode in session.index.episodes if not episode.declared]
    if not beside:
        return tuple(found)
    return (*found, Remains(name=BETWEEN, whole=sum(each.whole for each in beside), shown=sum(each.shown for each in beside)))


def _remains(session: Session, episode: Episode) -> Remains:
    whole = shown = 0
    for n in session.index.entries_of(episode):
        for number, block in enumerate(session.index.entries[n].blocks):
            if block.episode == episode.ordinal:
                whole += block.tokens
                shown += session.view.weight(n, number)
    return Remains(name=episode.name, whole=whole, shown=shown, found=bool(episode.description))


def arguments_of(text: str) -> dict[str, object]:
    """The arguments of a call; none where they are no JSON object."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return {}
    return cast(dict[str, object], found) if isinstance(found, dict) else {}


def about(tool: str, arguments: str, summary: str, width: int) -> str:
    """What a call is about, in one line."""
    given = arguments_of(arguments)
    said = " ".join(str(given[name]) for name in _ABOUT.get(tool, ()) if given.get(name) not in (None, "", "."))
    if not said and summary.startswith(tool):
        said = summary[len(tool) :].strip()
    offset, limit = given.get("offset"), given.get("limit")
    if tool == "read" and isinstance(offset, int) and isinstance(limit, int):
        said += f", lines {offset} to {offset + limit - 1}"
    return first_line(f"{tool} {said}".strip(), width)


class Returned(Struct, frozen=True, kw_only=True):
    """A file's lines that a recall brought back, all of them as they were read and as they are on the disk."""

    source: str  # the object
    path: str
    first: int
    last: int
    size: int  # bytes
    digest: str  # SHA-256 of those bytes, hex


def returned(source: str, read: str, brought: str, path: str, disk: bytes) -> Returned | None:
    """What came back of a read file; None unless every line is what `read` had said then and what `disk` holds now."""
    if read not in brought:
        return None
    lines = list(_numbered(read))
    if not lines or [n for n, _ in lines] != list(range(lines[0][0], lines[-1][0] + 1)):
        return None
    first, last = lines[0][0], lines[-1][0]
    there = b"\n".join(disk.split(b"\n")[first - 1 : last])
    if "\n".join(line for _, line in lines).encode() != there:
        return None
    return Returned(source=source, path=path, first=first, last=last, size=len(there), digest=sha256(there).hexdigest())


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a result of `read`, each behind its number and a tab."""
    for line in text.split("\n"):
        number, tab, rest = line.partition("\t")
        if tab and number.isdecimal():
            yield int(number), rest
