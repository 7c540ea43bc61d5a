"""Chats as plain files of messages, and what is printed of a session."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType


def exchange(call_id: str, name: str, arguments: object, text: str) -> list[dict[str, Any]]:
    """A reply that makes one call, and the call's result."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text},
    ]


def chat_file(path: Path, messages: Sequence[dict[str, Any]], **more: str) -> Path:
    """A file of these messages; with `more` beside them, such as a model."""
    path.write_text(json.dumps({**more, "messages": messages} if more else messages), encoding="utf-8")
    return path


def drawn(width: int, *parts: RenderableType) -> str:
    """What a console of that width prints, without the spaces at the ends of lines."""
    console = Console(width=width, file=io.StringIO(), highlight=False, color_system=None)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def quiet_console() -> Console:
    """A console that nobody sees."""
    return Console(file=io.StringIO())
