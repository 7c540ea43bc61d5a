"""What people wrote down for any agent that works in a folder.

AGENTS.md, CLAUDE.md, AGENT.md and their `.local.md`, from the root or home down to the working folder: broad to narrow, since the later word
counts. Room is given the other way, nearest first, so that what is cut is the farthest. ("The context window is a resource you engineer",
instruction files; there it is the nearest that is lost first.)
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from tenure.agent.admission.place import NAMES, File, Place, framed, shown, unending
from tenure.agent.admission.wording import cut, wording

IN_HOME: Final = (".tenure", ".claude", ".agents")  # folders of home in which the same names are looked for
TAG: Final = "instructions"
FILE_CHARS: Final = 4_000  # of one file's text
TOTAL_CHARS: Final = 12_000  # of the section, headings and notes included
FILE_BYTES: Final = 65_536  # that are looked at: enough to tell a copy
LEAST_CHARS: Final = 200  # what is left of a file is worth its heading
LEFT_OUT_CHARS: Final = 700  # kept free to say what there was no room for
NAMED: Final = 3  # files that are named when they are left out


class Instructions(Struct, frozen=True, kw_only=True):
    """What one file says, for the folder it lies in."""

    path: PurePath
    text: str
    distance: int  # folders between the working folder and its own
    size: int  # bytes of the file
    whole: bool = True  # all of the file was looked at
    also: tuple[PurePath, ...] = ()  # farther files that say the same


class FoundInstructions(Struct, frozen=True, kw_only=True):
    """All instructions in sight, broad to narrow, each text once; and what could not be read."""

    instructions: tuple[Instructions, ...] = ()
    notices: tuple[str, ...] = ()


def find_instructions(start: Place) -> FoundInstructions:
    """What holds in a folder. Of equal texts the nearest is kept: it is cut last. Never raises."""
    notices: list[str] = []
    by_text: dict[str, Instructions] = {}
    for one in _all(start, notices):  # nearest first
        key = _normal(one.text)
        if not key or _only_points(key):
            continue
        first = by_text.setdefault(key, one)
        if first is not one:
            by_text[key] = Instructions(
                path=first.path,
                text=first.text,
                distance=first.distance,
                size=first.size,
                whole=first.whole,
                also=(*first.also, one.path),
            )
    return FoundInstructions(instructions=tuple(_broad_to_narrow(start, by_text.values())), notices=tuple(notices))


class Fitted(Struct, frozen=True, kw_only=True):
    """The section as the prompt has it, at most TOTAL_CHARS long, and which files it shows at least in part. Empty without any."""

    text: str = ""
    shown: tuple[PurePath, ...] = ()
    left_out: tuple[PurePath, ...] = ()


def fit_instructions(found: Iterable[Instructions]) -> Fitted:
    """The texts broad to narrow, as far as there is room, which is given to the nearest first."""
    every = list(found)
    if not every:
        return Fitted()
    parts: dict[PurePath, str] = {}
    room = TOTAL_CHARS - len(_HEADING) - LEFT_OUT_CHARS
    for one in _nearest_first(every):
        part = _part(one, room)
        if part:
            parts[one.path] = part
            room -= len(part)
        if part != _part(one, TOTAL_CHARS):
            break  # nothing farther stands where something nearer could not
    there = tuple(one.path for one in every if one.path in parts)
    left_out = tuple(one.path for one in every if one.path not in parts)
    return Fitted(text="".join([_HEADING, *_note(left_out), *map(parts.__getitem__, there)]), shown=there, left_out=left_out)


_HEADING: Final = (
    "# Instructions\n"
    "From files of this folder, those above it, and its user. Each holds for its folder and all below, one in a hidden folder of the home everywhere. "
    "Where two differ, the later one holds; what the user says holds over all of them."
)
_POINTS: Final = re.compile(r"@(?:\./)?([\w.]+)")


def _all(start: Place, notices: list[str]) -> Iterator[Instructions]:
    """Every file that says something, nearest folder first, in the order of NAMES within one."""
    seen: set[PurePath] = set()  # a working folder may be one of home's
    for distance, folder in enumerate(start.outward):
        own = (folder / name for name in NAMES)
        inner = (folder / place / name for place in IN_HOME for name in NAMES) if folder == start.home else ()
        for path in (path for path in (*own, *inner) if path not in seen):
            seen.add(path)
            one = _read(start, path, distance, notices)
            if one is not None:
                yield one


def _read(start: Place, path: PurePath, distance: int, notices: list[str]) -> Instructions | None:
    found = start.read(path, FILE_BYTES)
    if found is None:
        return None
    if not isinstance(found, File):
        notices.append(f"{shown(path)} is left out: {found.why}")
        return None
    whole = len(found.data) >= found.size
    words = wording(found.data, whole=whole)
    if words is None:
        notices.append(f"{shown(path)} is left out: it is not text")
        return None
    notices.extend(f"{shown(path)}: {oddity}" for oddity in words.oddities)
    return Instructions(path=path, text=unending(TAG, _trimmed(words.text)), distance=distance, size=found.size, whole=whole)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _normal(text: str) -> str:
    """The same for two texts that differ in blank space at line ends and in runs of blank lines."""
    return re.sub(r"\n{2,}", "\n\n", text).strip()


def _only_points(text: str) -> bool:
    """Whether a text says nothing but to read files that are read anyway (`@AGENTS.md`, as Claude Code has it)."""
    return all((found := _POINTS.fullmatch(line.strip())) and found[1] in NAMES for line in text.split("\n") if line.strip())


def _nearest_first(found: Iterable[Instructions]) -> list[Instructions]:
    order = {name: number for number, name in enumerate(NAMES)}
    return sorted(found, key=lambda one: (one.distance, len(one.path.parts), order[one.path.name], one.path))


def _broad_to_narrow(start: Place, found: Iterable[Instructions]) -> list[Instructions]:
    """The farthest folder first; a home that does not lie above comes last: its user's word counts more than a stranger's folder's."""
    apart = start.home != start.folder and start.home not in start.folder.parents
    last = len(start.outward) - 1
    return sorted(found, key=lambda one: (apart and one.distance == last, -one.distance))  # stable: NAMES within a folder


def _part(one: Instructions, room: int) -> str:
    """A file as it is shown, in at most `room` characters; empty when that is too little."""
    whole = framed(TAG, one.path, one.text, also=_also(one))
    if one.whole and len(one.text) <= FILE_CHARS and len(whole) <= room:
        return whole
    most = min(FILE_CHARS, room - _MARK_CHARS - len(framed(TAG, one.path, "", also=_also(one))))
    if most < LEAST_CHARS:
        return ""
    text = cut(one.text, most)
    size = f"{len(one.text):,} characters" if one.whole else f"{one.size:,} bytes"
    mark = f"[cut: the first {len(text):,} characters of {size}; read the file for the rest]"
    return framed(TAG, one.path, f"{text}\n{mark}", also=_also(one))


_MARK_CHARS: Final = 120


def _also(one: Instructions) -> str:
    if not one.also:
        return ""
    more = f" and {len(one.also) - NAMED} more" if len(one.also) > NAMED else ""
    return f"{', '.join(map(shown, one.also[:NAMED]))}{more}"


def _note(left_out: tuple[PurePath, ...]) -> Iterator[str]:
    if left_out:
        named = ", ".join(map(shown, left_out[-NAMED:]))
        more = f" and {len(left_out) - NAMED} more" if len(left_out) > NAMED else ""
        yield f"\n[no room for {named}{more}: read them when you work on what they are about]"
