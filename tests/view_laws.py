"""What tests ask of every view beside the laws of `tenure.engine.view.laws`."""

from collections.abc import Iterator

from tenure.engine.record.entry import Origin
from tenure.engine.record.index import Index
from tenure.engine.view.project import Row, View


def notes_readable(view: View, index: Index) -> Iterator[str]:
    """The agent's notes stand in the view as its newest call left them, whole, in the call's own result."""
    span = index.notes.span
    if span is None:
        if index.notes.text:
            yield "there are notes that no result holds"
        return
    at = index.spans[span].result
    row = next((line for line in view.lines if isinstance(line, Row) and at is not None and line.entry == at[0]), None)
    if at is None or row is None or not row.shows(at[1]) or row.instead(at[1]) is not None:
        yield f"the notes as {index.spans[span].object} left them are not shown whole"


def human_text(view: View, index: Index) -> list[tuple[int, int]]:
    """Where a view shows human text as the record has it."""
    return [
        (line.entry, block)
        for line in view.lines
        if isinstance(line, Row)
        for block in line.blocks
        if index.block((line.entry, block)).origin is Origin.HUMAN and block not in dict(line.replaced)
    ]
