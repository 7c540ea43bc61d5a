"""Sessions that were held before, to pick one from (an edge)."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import Origin
from tenure.store.records import Conversation, Records

LOOKED_AT: Final = 6  # entries in which the first words of a person are looked for
CHARS: Final = 200  # of them


class Earlier(Struct, frozen=True, kw_only=True):
    """One session, as a list shows it."""

    id: str
    created: str  # ISO 8601 in UTC
    title: str  # or what a person said first, in one line
    model: str
    entries: int
    forked_from: str = ""


def earlier(store: Records, folder: Path, most: int = 50) -> tuple[Earlier, ...]:
    """The newest sessions of a folder, newest first; those of sub-agents, and those in which nothing was said, are left out."""
    held = [sheet for sheet in store.conversations(str(folder.resolve())) if sheet.length and not sheet.is_part]
    return tuple(_earlier(store, sheet) for sheet in held[:most])


def _earlier(store: Records, sheet: Conversation) -> Earlier:
    return Earlier(
        id=sheet.id,
        created=sheet.created,
        title=sheet.title or _first_words(store, sheet),
        model=sheet.model,
        entries=sheet.length,
        forked_from=sheet.parent,
    )


def _first_words(store: Records, sheet: Conversation) -> str:
    for entry in store.entries(sheet.id, 0, min(LOOKED_AT, sheet.length)):
        for block in entry.blocks:
            if block.origin is Origin.HUMAN and block.text.strip():
                return " ".join(block.text[: 4 * CHARS].split())[:CHARS]
    return ""
