"""What people wrote down for any agent that works in a folder: instructions, and the page of one folder.

AGENTS.md, CLAUDE.md, AGENT.md and their `.local.md`, from the root or home down to the working folder: broad to narrow, since the later word
counts. Room is given the other way, nearest first, so that what is cut is the farthest. ("The context window is a resource you engineer",
instruction files; there it is the nearest that is lost first.) SCOPE.md is for whoever works in exactly its folder: nothing of it is merged from
above or below (ibid., context attached to a place).
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Final

from msgspec import Struct, structs

from tenure.agent.admission.place import NAMES, Closed, Place, framed, shown, unending
from tenure.agent.admission.wording import cut, front

IN_HOME: Final = (".tenure", ".claude", ".agents")  # folders of home in which the same names are looked for
TAG: Final = "instructions"
FILE_CHARS: Final = 4_000  # of one file's text
TOTAL_CHARS: Final = 12_000  # of the section, headings and notes included
FILE_BYTES: Final = 65_536  # that are looked at: enough to tell a copy
LEAST_CHARS: Final = 200  # what is left of a file is worth its heading
LEFT_OUT_CHARS: Final = 700  # kept free to say what there was no room for
NAMED: Final = 3  # files that are named when they are left out
NESTED_CHARS: Final = 8_000  # of what is said at once of folders that work comes to
SCOPE: Final = "SCOPE.md"
SCOPE_CHARS: Final = 8_000

_MARK_CHARS: Final = 120
_HEADING: Final = (
    "# Instructions\n"
    "From files of this folder, those above it, and its user. Each holds for its folder and all below, one in a hidden folder of the home everywhere. "
    "Where two differ, the later one holds; what the user says holds over all of them."
)
_NESTED: Final = "# Instructions of folders that you have come to\nEach holds for its folder and all below; what the user says holds over all of them."
_POINTS: Final = re.compile(r"@(?:\./)?([\w.]+)")


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


class FittedInstructions(Struct, frozen=True, kw_only=True):
    """The section as the prompt has it, at most TOTAL_CHARS long, and which files it shows at least in part. Empty without any."""

    text: str = ""
    shown: tuple[PurePath, ...] = ()
    left_out: tuple[PurePath, ...] = ()


def find_instructions(start: Place) -> FoundInstructions:
    """What holds in a folder. Of equal texts the nearest is kept: it is cut last. Never raises."""
    notices: list[str] = []
    by_text: dict[str, Instructions] = {}
    for one in _all(start, notices):  # nearest first
        key = re.sub(r"\n{2,}", "\n\n", one.text).strip()  # the same for texts that differ in runs of blank lines
        if not key or _only_points(key):
            continue
        first = by_text.setdefault(key, one)
        if first is not one:
            by_text[key] = structs.replace(first, also=(*first.also, one.path))
    # The farthest folder first; a home that does not lie above comes last: its user's word counts more than a stranger's folder's.
    is_apart = start.home != start.folder and start.home not in start.folder.parents
    last = len(start.outward) - 1
    # Stable: those of a folder stay in the order of NAMES.
    order = sorted(by_text.values(), key=lambda one: (is_apart and one.distance == last, -one.distance))
    return FoundInstructions(instructions=tuple(order), notices=tuple(notices))


def fit_instructions(found: Iterable[Instructions]) -> FittedInstructions:
    """The texts broad to narrow, as far as there is room, which is given to the nearest first."""
    every = list(found)
    if not every:
        return FittedInstructions()
    parts: dict[PurePath, str] = {}
    room = TOTAL_CHARS - len(_HEADING) - LEFT_OUT_CHARS
    for one in sorted(every, key=lambda one: (one.distance, len(one.path.parts), NAMES.index(one.path.name), one.path)):
        part = _part(one, room)
        if part:
            parts[one.path] = part
            room -= len(part)
        if part != _part(one, TOTAL_CHARS):
            break  # nothing farther stands where something nearer could not
    there = tuple(one.path for one in every if one.path in parts)
    left_out = tuple(one.path for one in every if one.path not in parts)
    note = f"\n[no room for {_listed(left_out, last=True)}: read them when you work on what they are about]" if left_out else ""
    return FittedInstructions(text="".join([_HEADING, note, *map(parts.__getitem__, there)]), shown=there, left_out=left_out)


class NestedInstructions:
    """What holds in folders below the working folder, each said once, when work goes there. Mutable: it knows where work has been."""

    def __init__(self, start: Place) -> None:
        self._start, self._seen = start, {start.folder}

    def reached(self, paths: Iterable[PurePath]) -> FittedInstructions:
        """What holds where these files are, and was not said yet; as it is said. Never raises."""
        found: list[Instructions] = []
        for folder in (folder for path in paths for folder in self._below(path)):
            self._seen.add(folder)
            read = _read(self._start, [folder / name for name in NAMES], 0, [])
            found += [one for one in read if one.text and not _only_points(one.text)]
        parts = {one.path: _part(one, NESTED_CHARS // len(found)) for one in found}
        parts = {path: part for path, part in parts.items() if part}
        return FittedInstructions(text="".join([_NESTED, *parts.values()]) if parts else "", shown=tuple(parts))

    def _below(self, path: PurePath) -> Iterator[PurePath]:
        """The folders from below the working folder down to a file's own where work has not been, broad to narrow."""
        within = [folder for folder in reversed(path.parents) if self._start.folder in folder.parents]
        return (folder for folder in within if folder not in self._seen)


def scope_section(start: Place) -> str | Closed:
    """The page of the place's own folder as the prompt has it: its body, frontmatter removed. Empty when there is none, or nothing in it."""
    page = start.text(start.folder / SCOPE, FILE_BYTES)
    if page is None or isinstance(page, Closed):
        return page or ""
    body = unending("scope", front(page.text).body.strip())
    if not body:
        return ""
    kept = cut(body, SCOPE_CHARS)
    is_whole = page.whole and kept == body
    rest = "" if is_whole else f"\n[cut: the first {len(kept):,} characters; read {SCOPE} for the rest]"
    return f"# This folder{framed('scope', start.folder / SCOPE, kept + rest)}"


def _all(start: Place, notices: list[str]) -> Iterator[Instructions]:
    """Every file that says something, nearest folder first, in the order of NAMES within one."""
    seen: set[PurePath] = set()  # a working folder may be one of home's
    for distance, folder in enumerate(start.outward):
        own = (folder / name for name in NAMES)
        inner = (folder / place / name for place in IN_HOME for name in NAMES) if folder == start.home else ()
        paths = [path for path in (*own, *inner) if path not in seen]
        seen.update(paths)
        yield from _read(start, paths, distance, notices)


def _read(start: Place, paths: Iterable[PurePath], distance: int, notices: list[str]) -> Iterator[Instructions]:
    for path in paths:
        file = start.text(path, FILE_BYTES)
        if isinstance(file, Closed):
            notices.append(f"{shown(path)} is left out: {file.why}")
        elif file is not None:
            notices.extend(f"{shown(path)}: {oddity}" for oddity in file.oddities)
            text = "\n".join(line.rstrip() for line in file.text.split("\n")).strip("\n")
            yield Instructions(path=path, text=unending(TAG, text), distance=distance, size=file.size, whole=file.whole)


def _only_points(text: str) -> bool:
    """Whether a text says nothing but to read files that are read anyway (`@AGENTS.md`, as Claude Code has it)."""
    return all((found := _POINTS.fullmatch(line.strip())) and found[1] in NAMES for line in text.split("\n") if line.strip())


def _part(one: Instructions, room: int) -> str:
    """A file as it is shown, in at most `room` characters; empty when that is too little."""
    also = _listed(one.also)
    whole = framed(TAG, one.path, one.text, also=also)
    if one.whole and len(one.text) <= FILE_CHARS and len(whole) <= room:
        return whole
    most = min(FILE_CHARS, room - _MARK_CHARS - len(framed(TAG, one.path, "", also=also)))
    if most < LEAST_CHARS:
        return ""
    text = cut(one.text, most)
    size = f"{len(one.text):,} characters" if one.whole else f"{one.size:,} bytes"
    mark = f"[cut: the first {len(text):,} characters of {size}; read the file for the rest]"
    return framed(TAG, one.path, f"{text}\n{mark}", also=also)


def _listed(paths: tuple[PurePath, ...], *, last: bool = False) -> str:
    """The first paths, or the last, and how many more there are."""
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(map(shown, paths[-NAMED:] if last else paths[:NAMED])) + more
