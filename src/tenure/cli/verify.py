"""`tenure verify`: check that a store holds what was written to it, and save what is sound of a damaged one."""

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from tenure.cli import words
from tenure.cli.options import argument, option
from tenure.errors import InputError, StoreError, way_out

if TYPE_CHECKING:
    from tenure.store.store import Store

DAMAGED: Final = 1  # exit code


class _Line(NamedTuple):
    """A conversation as it is listed."""

    id: str
    entries: int
    commits: int
    wrong: tuple[str, ...]


def verify(
    store: Annotated[str, argument("[STORE]", "A file, or a database's URL. Default: the agent's own store.")] = "",
    repair: Annotated[str, option("NEW", "Save what is sound into this new store, and list the rest.", "--repair")] = "",
) -> None:
    """Check every message, commit, usage report and pin of a store.

    The store is not changed. Exit codes: 0 all is as it was written, 1 something is damaged or cannot be read, 2 bad input.
    """
    from tenure.store.store import Store

    url, new = store_url(store, there=True), store_url(repair, there=False) if repair else ""
    console, count, damaged = words.screen(), 0, 0
    file = url.removeprefix("sqlite:///")
    advice = f"; {way_out(file)}"
    try:
        with Store(url, on_damage=_listed, read_only=True) as source:
            for line in _saved(source, new) if new else _checked(source):
                count, damaged = count + 1, damaged + bool(line.wrong)
                state = "damaged" if line.wrong else "sound"
                facts = f"{line.id}  {line.entries:,} messages, {line.commits:,} commits, {state}"
                for each in (facts, *(f"  {wrong.replace(advice, '')}" for wrong in line.wrong)):
                    console.print(words.plain(each), soft_wrap=True)
            console.print(
                words.plain(f"{count:,} conversations, {damaged:,} damaged{f'; saved to {repair}' * bool(repair)}"),
                soft_wrap=True,
            )
            if damaged and not repair:
                way = f"To save what is sound: tenure verify {shlex.quote(store or source.where)} --repair NEW.db"
                console.print(words.plain(way), soft_wrap=True)
    except StoreError as error:
        if advice not in str(error):
            raise
        if new.startswith("sqlite:///") and not count:
            Path(new.removeprefix("sqlite:///")).unlink(missing_ok=True)  # it is empty
        rest = f"; none of it can be saved so: use a copy, or what is found by `sqlite3 {shlex.quote(file)} .recover`"
        raise StoreError(str(error).replace(advice, rest)) from error
    if damaged:
        raise typer.Exit(DAMAGED)


def _checked(source: "Store") -> Iterator[_Line]:
    for sheet in source.mended_sheets():
        yield _Line(sheet.id, sheet.length, sheet.commits, tuple(source.wrongs(sheet.id)))


def _saved(source: "Store", new: str) -> Iterator[_Line]:
    from tenure.store.repair import repair
    from tenure.store.store import Store

    with Store(new) as target:
        if (kept := source.spills.folder) is not None and kept.is_dir() and target.spills.folder is not None:
            shutil.copytree(kept, target.spills.folder)
        for saved in repair(source, target):
            yield _Line(saved.id, saved.entries, saved.commits, saved.lost)


def store_url(store: str, *, there: bool) -> str:
    """The URL of a store. Raises InputError for a file that is not there, or is where a new one is to be."""
    if not store:
        from tenure.agent.access import state_folder
        from tenure.store.records import OWN_STORE

        store = str(state_folder(os.environ, Path.home()) / OWN_STORE)
    if "://" in store:
        return store
    if there and Path(store).exists() and not Path(store).is_file():
        raise InputError(store, "no regular file", "a store")
    if Path(store).exists() != there:
        raise InputError(store, "no such file" if there else "it is there already", "a store" if there else "a new file")
    return f"sqlite:///{Path(store).absolute()}"


def _listed(_: str) -> None:
    """A damaged row is listed with its conversation."""
