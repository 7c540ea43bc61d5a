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

from tenure.errors import InputError
from tenure.logs.places.stored import StoredSession, json_file, listed

EVENTS: Final = "events"

_NAME: Final = re.compile(r"(?:event-\D*|(?=\d))(\d+).*\.json", re.DOTALL)


def sessions(folder: Path) -> Iterator[StoredSession]:
    """The one conversation that a folder is. Raises InputError when it is none."""
    if not (events := count(folder)):
        raise _refusal(folder)
    yield StoredSession(id="", updated=(folder / EVENTS).stat().st_mtime * 1000, messages=events)


def count(folder: Path) -> int:
    """How many events a conversation has; 0 for another folder."""
    return len(_events(folder))


def export(folder: Path) -> Iterator[bytes]:
    """A conversation as one array of its events, an event at a time. Raises InputError when there are none.

    An event that cannot be read leaves a stand-in that the reader reports.
    """
    names = sorted(_events(folder))
    if not names:
        raise _refusal(folder)
    return listed(b"", (json_file(folder / EVENTS / name) or msgspec.json.encode(f"damaged: {name}") for _, name in names), b"\n")


def _refusal(folder: Path) -> InputError:
    return InputError(str(folder), "found a directory", "a session file, or a conversation of OpenHands with its `events`")


def _events(folder: Path) -> list[tuple[int, str]]:
    """The place of each event in its conversation, and its file."""
    with suppress(OSError), os.scandir(folder / EVENTS) as entries:
        return [(int(found[1][:18]), entry.name) for entry in entries if (found := _NAME.fullmatch(entry.name))]
    return []
