"""Finding what shows a text."""

from tenure.engine.record.entry import Read, Thinking, ToolResult
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Insert
from tenure.engine.view.project import View
from tenure.errors import InputError


def object_showing(text: str, view: View, index: Index, read: Read) -> str:
    """The newest block of a view that shows a text, as an object. Raises InputError when none does."""
    insert: Insert | None = None
    for line in reversed(view.lines if text else ()):
        if isinstance(line, Insert):
            insert = line if insert is None and text in line.text else insert
            continue
        blocks, instead = read(line.entry).blocks, dict(line.replaced)
        for number in reversed(line.blocks):
            block = blocks[number]
            shown = instead[number].text if number in instead else block.text
            if text not in shown or isinstance(block, Thinking):  # reasoning goes when what it led to does
                continue
            if (
                not isinstance(block, ToolResult) or index.block((line.entry, number)).span != NONE
            ):  # one that answers no call is sent to nobody
                return f"entry:{line.entry}/{number}"
    if insert is not None:
        names = " or ".join(insert.routes) or "what it is about"
        raise InputError(
            "pin", f"{text!r}, which stands only in words put in place of what left", f"an object: restore and pin {names}"
        )
    raise InputError("pin", repr(text), "an object, or a text that one message or result of the view shows")
