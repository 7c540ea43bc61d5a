"""The conversations in a store of our own, told without opening it as one (an edge): that would bring an old one up to date."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import Origin
from tenure.errors import InputError
from tenure.logs.places.sqlite_file import MAGIC, reading, refuse_no_file
from tenure.logs.places.stored import StoredSession
from tenure.store.records import PART

_OF_USER: Final = "SELECT coalesce(blocks, payload) FROM entry WHERE conversation = ? AND role = 'user' ORDER BY n LIMIT 5"


DAMAGED: Final = "damaged"  # how the title begins of what cannot be read


class _TenureStoreSheet(Struct, frozen=True, gc=False):
    id: str
    title: str
    length: int
    created: str
    tenant: str


class _TenureStoreBlock(Struct, frozen=True, gc=False):
    origin: str = ""
    text: str = ""


def sessions(path: Path) -> Iterator[StoredSession]:
    """The conversations, newest first; the newest was written to when the file was. Raises InputError for what is no store of ours."""
    refuse_no_file(path)
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(str(path), "found another kind of file", "a store of Tenure's")
    with reading(path) as rows:
        if not rows.columns("tenure_version"):
            raise InputError(str(path), "found another program's database", "a store of Tenure's")
        try:
            held = rows.select("SELECT id, title, length, created, tenant FROM conversation ORDER BY created DESC, id DESC")
        except InputError as error:
            yield StoredSession(id="", title=f"{DAMAGED}: {error.found}")
            return
    updated = 0.0
    for row in held:
        try:
            sheet = msgspec.convert(
                dict(zip(_TenureStoreSheet.__struct_fields__, map(_text, row), strict=True)), _TenureStoreSheet
            )
        except msgspec.ValidationError as error:
            yield StoredSession(id=str(_text(row[0])), title=f"{DAMAGED}: {error}", updated=updated)
            continue
        named = sheet.title if sheet.title != path.stem else ""  # which says no more than the path does
        project = sheet.tenant if Path(sheet.tenant).is_absolute() else ""  # the folder of an agent's session
        if not named.startswith(PART) and sheet.length:
            yield StoredSession(id=sheet.id, title=named, updated=updated, messages=sheet.length, project=project)
        updated = _milliseconds(sheet.created)


def first_words(path: Path, conversation: str) -> str:
    """What a human said first, empty when nobody did early on."""
    with suppress(InputError, OSError), reading(path) as rows:
        for (blocks,) in rows.select(_OF_USER, conversation):
            with suppress(msgspec.MsgspecError, ValueError):
                for block in msgspec.json.decode(blocks, type=list[_TenureStoreBlock]):
                    if block.origin == Origin.HUMAN and block.text.strip():
                        return block.text
    return ""


def _text(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _milliseconds(at: str) -> float:
    """When a conversation began, which is when the one before it had ended, as far as the store says."""
    try:
        return datetime.fromisoformat(at).timestamp() * 1000
    except ValueError:
        return 0.0
