"""Where OpenHands keeps its conversations (an edge): a folder each, and in it a file for each event.

`conversations/ID/events/event-00012-….json` is how the SDK and the CLI write it, `sessions/ID/events/12.json` how OpenHands did before.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from tenure.errors import InputError
from tenure.logs.json_files import LONGEST_LINE
from tenure.logs.places.files import read_file
from tenure.logs.places.stored import StoredSession
from tenure.logs.salvage import DamagedJson, decode_with_source, utf8

EVENTS: Final = "events"

_NUMBER: Final = re.compile(r"\d+")
_any: Final = msgspec.json.Decoder(Raw)


def sessions(folder: Path) -> Iterator[StoredSession]:
    """The one conversation that a folder is. Raises InputError when it is none."""
    if not (events := count(folder)):
        raise _refused(folder)
    yield StoredSession(id="", updated=(folder / EVENTS).stat().st_mtime * 1000, messages=events)


def count(folder: Path) -> int:
    """How many events a conversation has; 0 for another folder."""
    return sum(_number(name) >= 0 for name in _names(folder))


def export(folder: Path) -> Iterator[bytes]:
    """A conversation as one array of its events, an event at a time. Raises InputError when there are none.

    An event that cannot be read leaves a stand-in that the reader reports.
    """
    names = sorted((name for name in _names(folder) if _number(name) >= 0), key=lambda name: (_number(name), name))
    if not names:
        raise _refused(folder)
    comma = b"[\n"
    for name in names:
        yield comma + (_read(folder / EVENTS / name) or msgspec.json.encode(f"damaged: {name}"))
        comma = b",\n"
    yield b"\n]\n"


def _refused(folder: Path) -> InputError:
    return InputError(str(folder), "found a directory", "a session file, or a conversation of OpenHands with its `events`")


def _names(folder: Path) -> list[str]:
    with suppress(OSError), os.scandir(folder / EVENTS) as entries:
        return [entry.name for entry in entries if entry.name.endswith(".json")]
    return []


def _number(name: str) -> int:
    """The place of an event in its conversation, -1 for another file."""
    found = _NUMBER.search(name) if name.startswith("event-") or name[0].isdigit() else None
    return int(found[0][:18]) if found else -1


def _read(path: Path) -> bytes:
    try:
        return decode_with_source(utf8(read_file(path, LONGEST_LINE)), _any)[2].strip()
    except (DamagedJson, InputError):
        return b""
