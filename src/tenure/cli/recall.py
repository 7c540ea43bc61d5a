"""`tenure recall`: bring back the original bytes of anything in a session, by the handle that a view prints."""

import sys
from typing import Annotated

import typer

from tenure.evals.loading import load, source
from tenure.meter.tokens import o200k
from tenure.record.recall import Query, answer, raw


def recall(
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION...", help="Session files, as they were replayed.")],
    handle: Annotated[str, typer.Argument(help="Such as read:12@3fa9, user:3, step:17, episode:locate-auth or entry:40.")],
    as_bytes: Annotated[bool, typer.Option("--raw", help="Exactly the original bytes, and nothing else.")] = False,
    lines: Annotated[str, typer.Option(help="Only these lines, such as 120-180.")] = "",
) -> None:
    """Print what a handle stands for.

    With --raw: of a tool call, its result as it was; of entry:N, the message's JSON as it was; of anything larger, its texts in order.
    """
    loaded = load([source(name) for name in sessions], o200k())
    if as_bytes:
        sys.stdout.buffer.write(raw(loaded.index, loaded.read, handle))
        sys.stdout.buffer.flush()
    else:
        typer.echo(answer(loaded.index, loaded.read, Query(handle=handle, lines=lines)))
