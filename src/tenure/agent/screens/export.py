"""Writing a whole record to a file."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from tenure.agent.screens import clean
from tenure.apis import APIS, COMMON
from tenure.context import Context
from tenure.engine.record.entry import NEUTRAL, Entry, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.view.piece import Piece
from tenure.errors import InputError


def export(context: Context, path: Path, dialect: str) -> int:
    """Write the record, and say how many entries: `.md` to read, `.json` as messages of an API. Raises InputError; never overwrites."""
    if path.suffix not in (".md", ".json"):
        raise InputError(str(path), f"the ending {path.suffix!r}", ".md to read, .json as messages")
    entries = list(context.store.entries(context.conversation))
    text = "".join(_markdown(entries)) if path.suffix == ".md" else _messages(entries, dialect)
    try:
        with path.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror or error})", "a file that is not there yet") from error
    return len(entries)


def _messages(entries: list[Entry], dialect: str) -> str:
    """All messages as the API takes them, system prompts among them where it has a role for them."""
    written = APIS.get(dialect) or APIS[COMMON]
    pieces = [
        Piece(
            role=entry.role,
            blocks=entry.blocks,
            dialect=entry.dialect if entry.dialect != NEUTRAL else "",
            payload=entry.payload if entry.dialect != NEUTRAL else b"",
            kept=tuple(range(len(entry.blocks))),
        )
        for entry in entries
        if not (written.system_apart and entry.role is Role.SYSTEM)
    ]
    messages = [msgspec.Raw(message) for message in written.render(pieces)]
    return msgspec.json.format(msgspec.json.encode(messages), indent=1).decode("utf-8", "replace")


def _markdown(entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        for block in entry.blocks:
            text = clean.text(block.text, 10_000_000)
            match block:
                case Text(origin=Origin.HUMAN):
                    yield f"## Person\n\n{text}\n\n"
                case Text(origin=Origin.MODEL):
                    yield f"{text}\n\n"
                case Thinking():
                    yield f"> {text.replace(chr(10), chr(10) + '> ')}\n\n" if text else ""
                case ToolCall(name=name):
                    yield f"### {clean.line(name)}\n\n{_fenced(text)}"
                case ToolResult():
                    yield _fenced(text)
                case _:
                    yield f"## {entry.role}\n\n{text}\n\n" if text else ""


def _fenced(text: str) -> str:
    """A block of code whose fence is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}\n\n"
