"""`tenure rewind`: list the changes that a session made to files, and put the files back as they were before one of them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tenure.cli import words
from tenure.cli.options import StoreAt, argument
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.agent.snapshots import Rewound, Snapshots

SHOWN = 20  # files that are named one by one


def rewind(
    session: Annotated[str, argument("SESSION", "The session's id, or its start; `tenure sessions` lists them.")],
    number: Annotated[
        str, argument("[NUMBER or user:3]", "Which change, or which turn or message; without it changes are listed.")
    ] = "",
    store: StoreAt = "",
) -> None:
    """Undo what a session did to the files of its folder.

    Without a number, list the changes. With one, put the files back as they were before that change; the conversation stays. What the files are
    now is kept first and listed as a change too, so that this can be undone. With a turn, put the files back as they were before it, and go on from there in a fork.
    """
    from tenure.agent.opening import store_url
    from tenure.agent.screens.contents import lists
    from tenure.agent.screens.history import of_address
    from tenure.agent.screens.tree import start_of
    from tenure.agent.settings import Settings, World
    from tenure.agent.snapshots import Snapshots
    from tenure.cli.context import fork_at
    from tenure.engine.meter.tokens import o200k
    from tenure.store.records import utc_now
    from tenure.store.spills import SUFFIX
    from tenure.store.store import Store

    url = store_url(Settings(folder=Path.cwd(), store=store), World())
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        raise InputError(url.removeprefix("sqlite:///"), "no such file", "a store")
    with Store(url) as source:
        found = [sheet for sheet in source.conversations(None) if sheet.id.startswith(session)]
        spills = source.spills.folder
    if len(found) != 1 or not session:
        raise InputError("session", f"{session!r} begins the ids of {len(found)} sessions", "one; `tenure sessions` lists them")
    if spills is None:
        raise InputError("rewind", "a store that is no file", "the file of a store")
    sheet, console = found[0], words.screen()
    kept = Snapshots(Snapshots.beside(spills, spills), Path(sheet.tenant), sheet.id, environment=os.environ, now=utc_now)
    if number.isdecimal() or not number:
        for line in _undone(kept.rewind(int(number))) if number else _changes(kept):
            console.print(words.plain(line), soft_wrap=True)
        return
    path = str(spills).removesuffix(SUFFIX)
    history = of_address(f"{path}#{sheet.id}", o200k())
    entries, _ = start_of(history, lists(history), number)
    if (change := kept.since(entries)) and (done := kept.rewind(change, entries=sheet.length)):
        for line in _undone(done):
            console.print(words.plain(line), soft_wrap=True)
    else:
        console.print("No file has changed since.")
    fork = fork_at(path, sheet, entries)
    console.print(f"tenure --resume {fork[:8]} goes on from there, before {number}", soft_wrap=True)


def _changes(kept: "Snapshots") -> Iterator[str]:
    listed = kept.listed()
    if not listed:
        yield "No change of a file is kept of this session."
    for each in listed:
        message = f"  ({each.message})" if each.message else ""
        yield f"{each.number:>4}  {each.time[:19].replace('T', ' ')}  before {each.cause}{message}"


def _undone(done: "Rewound") -> Iterator[str]:
    parts = (("written", done.written), ("removed", done.removed), ("left as it is: no copy of it is kept", done.left))
    for label, names in parts:
        yield from (f"{label}  {name}" for name in names[:SHOWN])
        if len(names) > SHOWN:
            yield f"{label}  and {len(names) - SHOWN:,} more"
    if not any(names for _, names in parts):
        yield "The files are as they were before that change."
