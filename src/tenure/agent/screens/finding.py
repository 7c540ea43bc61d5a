"""Plain search in a record, whatever the view shows."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from tenure.agent.screens import clean
from tenure.agent.screens.history import History
from tenure.engine.record.entry import At

MOST: Final = 500
_BEFORE: Final = 40  # characters shown before a match
_SHOWN: Final = 240


class Found(Struct, frozen=True, kw_only=True, gc=False):
    """A block that holds the words, with the first place of them."""

    at: At
    words: str


def find(history: History, words: str) -> tuple[Found, ...]:
    """The newest blocks that hold the words, letter case aside, oldest first."""
    wanted = " ".join(words.split()).casefold()
    return tuple(reversed(list(islice(_found(history, wanted), MOST)))) if wanted else ()


def _found(history: History, wanted: str) -> Iterator[Found]:
    for entry in range(len(history.index) - 1, -1, -1):
        for number, block in reversed(list(enumerate(history.read(entry).blocks))):
            place = block.text.casefold().find(wanted)
            if place >= 0:
                start = max(0, place - _BEFORE)
                yield Found(at=(entry, number), words=clean.line(block.text[start : start + _SHOWN]))
