"""`tenure sessions`: the sessions that the tools on this machine left, newest first. Nothing is written."""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from subprocess import list2cmdline
from typing import Annotated, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tenure.cli import words
from tenure.cli.options import argument, flag, option
from tenure.engine.record.visible import visible_json
from tenure.errors import InputError
from tenure.logs.detect import READERS
from tenure.logs.places.first_sight import Glimpse, glimpse
from tenure.logs.places.folders import holds
from tenure.logs.places.here import here
from tenure.logs.places.known_places import PLACES, FoundSession, below, looked_in, usual_places

LIMIT: Final = 20
WIDE: Final = 120  # columns from which there is room for the project too
HEADER: Final = ("when", "ago", "tool", "size", "agents", "project", "about")
RIGHT: Final = frozenset({1, 3, 4})
TOOLS: Final = tuple(dict.fromkeys([*(place.tool for place in PLACES), *(reader.name for reader in READERS)]))
_PROJECT: Final = 32  # columns for it, at most
# From how many seconds on an age is in a unit, and how many one of it has.
_AGES: Final = (
    (365 * 86_400, 365 * 86_400, "y"),
    (61 * 86_400, 30.44 * 86_400, "mo"),
    (2 * 86_400, 86_400, "d"),
    (7_200, 3_600, "h"),
    (60, 60, "min"),
    (float("-inf"), 1, "s"),
)


class ListedSession(NamedTuple):
    """A session, and what is seen of it at its start."""

    found: FoundSession
    about: Glimpse


def sessions(
    folders: Annotated[list[Path] | None, argument("FOLDER...", "Search these folders instead of the usual places.")] = None,
    tool: Annotated[str, option("NAME", "Only sessions of this tool, such as codex.")] = "",
    newest: Annotated[int, option("N", "Show this many.", min=1)] = LIMIT,
    every: Annotated[bool, flag("--all", "Show all of them.")] = False,
    as_json: Annotated[bool, flag("--json", "Print one JSON object per line and session.")] = False,
) -> None:
    """List the agent sessions on this machine, newest first.

    Looks where each tool keeps its sessions, in the current folder too. Nothing is opened but the start of what is shown.
    """
    if tool and tool not in TOOLS:
        raise InputError("--tool", f"unknown tool {tool!r}", "one of " + ", ".join(TOOLS))
    where = here()
    found = below(folders) if folders else usual_places(where, tool)
    shown = islice(seen(found, tool), None if every else newest)
    if as_json:
        for row in shown:
            sys.stdout.buffer.write(visible_json(json.dumps(_fields(row)).encode()) + b"\n")
            sys.stdout.flush()  # whoever has seen enough is noticed before the next file is opened
        return
    rows, console = list(shown), words.screen()
    if not rows:
        nothing({"": folders} if folders else looked_in(where, tool), tool, where.home, console)
        return
    rest = found[found.index(rows[-1].found) + 1 :]  # as far as it is known without opening it
    more = f"{'Up to ' * any(not each.tool for each in rest)}{len(rest):,} more with --all. " if rest else ""
    listing(rows, more, datetime.now().astimezone(), where.home, console)


def seen(found: Iterable[FoundSession], tool: str = "") -> Iterator[ListedSession]:
    """The sessions with what they are about; what is none by its content is passed over."""
    for each in found:
        if (about := glimpse(each)) is not None and tool in ("", about.tool):
            yield ListedSession(each, about)


def _fields(row: ListedSession) -> dict[str, str | int | None]:
    """A session for scripts; `json.dumps` escapes names that are not Unicode so that Python reads them back."""
    found, about = row
    return {
        "tool": about.tool,
        "address": found.address,
        "path": str(found.path),
        "id": found.id or None,
        "size": found.size or None,
        "messages": found.messages or None,
        "agents": about.agents,
        "modified": found.modified.isoformat().replace("+00:00", "Z"),
        "project": about.project or None,
        "words": words.first_line(about.words, 400) or None,
    }


def listing(rows: Sequence[ListedSession], more: str, now: datetime, home: Path, console: Console) -> None:
    """Two lines for each: what it is, cut to the screen, and its address, never cut."""
    cells = [_cells(row, now, home, wide=console.width >= WIDE) for row in rows]
    kept = [n for n, _ in enumerate(HEADER) if any(line[n] for line in cells)]
    widths = {n: max(cell_len(line[n]) for line in (HEADER, *cells)) for n in kept}
    for number, line in enumerate((HEADER, *cells)):
        text = Text("  ".join([*(_set(line[n], widths[n], right=n in RIGHT) for n in kept[:-1]), line[kept[-1]]]))
        text.truncate(console.width, overflow="ellipsis")
        console.print(text, style="dim" if number == 0 else None, no_wrap=True, crop=False)
        if number:
            console.print(Text(f"  {address(rows[number - 1].found, home)}", style="dim"), soft_wrap=True)
    console.print(Text(f"{more}Take an address to show, replay or recall.", style="dim"), soft_wrap=True)


def _cells(row: ListedSession, now: datetime, home: Path, *, wide: bool) -> tuple[str, ...]:
    found, about = row
    at = found.modified.astimezone(now.tzinfo)
    project = words.plain(short(about.project, home))
    return (
        at.strftime("%d %b %H:%M" if at.year == now.year else "%d %b  %Y"),
        age((now - found.modified).total_seconds()),
        about.tool,
        size(found),
        str(about.agents or ""),
        (project if len(project) <= _PROJECT else "…" + project[1 - _PROJECT :]) if wide else "",
        words.first_line(about.words, 400) or ("" if wide else project) or "–",
    )


def _set(cell: str, width: int, *, right: bool) -> str:
    room = " " * (width - cell_len(cell))
    return room + cell if right else cell + room


def nothing(places: Mapping[str, Sequence[Path]], tool: str, home: Path, console: Console) -> None:
    """That there is none, and where it was looked for."""
    console.print(f"No session{f' of {tool}' if tool else ''} found. Looked in", soft_wrap=True)
    for name, folders in places.items():
        first = sorted(folders, key=lambda folder: not holds(folder.exists))[:2]
        more = len(folders) - len(first)
        rest = f", and {words.several(more, 'more folder')}" if more else ""
        listed = ", ".join(words.plain(short(str(each), home)) for each in first)
        console.print(f"  {name}{': ' * bool(name)}{listed}{rest}", soft_wrap=True)
    console.print("To look below a folder of your own: tenure sessions FOLDER", soft_wrap=True)


def address(found: FoundSession, home: Path) -> str:
    """The address as a shell takes it: short where that is plain, quoted where it has to be."""

    def quoted(path: str) -> str:
        return shlex.quote(path) if os.sep == "/" else list2cmdline([path])

    path = short(str(found.path), home)
    start, path = ("~/", path[2:]) if path.startswith("~/") else ("", path)
    return words.plain(start + quoted(path) + (f"#{quoted(found.id)}" if found.id else ""))


def short(path: str, home: Path) -> str:
    """A path with `~` for the home folder, where shells know that sign."""
    inside = path.removeprefix(str(home))
    return f"~{inside}" if os.sep == "/" and inside.startswith("/") and inside != path else path


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    of_one, unit = next((of_one, unit) for start, of_one, unit in _AGES if seconds >= start)
    return f"{max(0, int(seconds / of_one))} {unit}"


def size(found: FoundSession) -> str:
    """Of a file its bytes, of what lies in a store its messages."""
    if not found.size:
        return f"{found.messages:,} msg" if found.messages else ""
    for scale, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if found.size >= scale:
            count = found.size / scale
            return f"{count:.1f} {unit}" if count < 10 else f"{count:.0f} {unit}"
    return f"{found.size} B"
