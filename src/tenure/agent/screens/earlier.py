"""The end of a session that goes on, as it is shown at its start."""

from collections.abc import Iterator
from typing import Final

import msgspec

from tenure.agent.events import CallDone, CallStarted
from tenure.agent.screens.pieces import CallPiece, Piece, Words, begins, ends, note, said
from tenure.context import Context
from tenure.engine.record.entry import Entry, Origin, Role, Text, ToolCall, ToolResult
from tenure.engine.record.index import NONE, Index

ENTRIES: Final = 60  # that are shown
TYPED: Final = 100  # of a person's words, for the history of the prompt


class _Marked(msgspec.Struct):
    """What a delimiter's arguments say."""

    action: str = ""
    name: str = ""
    type: str = ""
    description: str = ""


def earlier(context: Context) -> Iterator[Piece]:
    """The newest entries as pieces."""
    index = context.session.index
    start = max(0, len(index) - ENTRIES)
    if start:
        yield note(f"{start:,} earlier entries: /context shows them")
    calls: dict[int, CallPiece] = {}
    for entry in context.store.entries(context.conversation, start):
        yield from _pieces(index, entry, calls)


def typed(context: Context) -> list[str]:
    """What the person said lately, oldest first."""
    turns = context.session.index.turns[-TYPED:]
    entries = (context.store.entry(context.conversation, turn.start[0]) for turn in turns)
    return [block.text for entry in entries for block in entry.blocks if block.origin is Origin.HUMAN][-TYPED:]


def _pieces(index: Index, entry: Entry, calls: dict[int, CallPiece]) -> Iterator[Piece]:
    for number, block in enumerate(entry.blocks):
        span = index.block((entry.n, number)).span
        match block:
            case Text(text=text, origin=Origin.HUMAN):
                yield said(text)
            case Text(text=text, origin=Origin.MODEL) if text.strip():
                yield Words(text)
            case ToolCall(name="delimiter", arguments=arguments):
                yield from _boundary(arguments)
            case ToolCall(call_id=call, name=name, arguments=arguments):
                summary = index.spans[span].cue if span != NONE else ""
                calls[span] = CallPiece(CallStarted(call=call, tool=name, summary=summary, arguments=arguments))
                yield calls[span]
            case ToolResult(text=text, error=error) if span in calls:
                made = index.spans[span]
                tokens = index.block((entry.n, number)).tokens
                handle = index.handle(made.object, made.call[0])
                outcome = "error" if error else "done"
                calls[span].finish(
                    CallDone(call="", tool=made.tool, text=text, outcome=outcome, handle=handle, tokens=tokens, shown=tokens)
                )
            case Text(text=text) if entry.role is Role.ASSISTANT and text.strip():
                yield note(text)
            case _:
                pass


def _boundary(arguments: str) -> Iterator[Piece]:
    try:
        marked = msgspec.json.decode(arguments, type=_Marked)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    if marked.action == "start":
        yield begins(f"{marked.type} {marked.name}")
    elif marked.action == "end":
        yield ends(f"ended: {marked.description}" if marked.description else "ended")
