"""`tenure forget`: delete a conversation from a store of our own for good."""

from typing import Annotated

import typer

from tenure.cli import words
from tenure.cli.options import argument, flag
from tenure.errors import InputError
from tenure.lab.loading import own_address, own_store
from tenure.store.records import descendants


def forget(
    conversation: Annotated[
        str, argument("STORE#ID", "A conversation in a store of Tenure's own, as `tenure sessions` prints it.")
    ],
    yes: Annotated[bool, flag("--yes", "Do not ask.")] = False,
) -> None:
    """Delete a conversation for good: messages, commits, usage, pins, and outputs in files that nothing else refers to.

    What was forked or built from it goes too, since that shares or copies its messages. Deleted pages of an SQLite file are overwritten. Copies that the
    agent made of your project's files before it changed them stay (tenure rewind).
    """
    question, path, id_ = forgettable(conversation)
    if not yes:
        typer.confirm(question, abort=True, err=True)
    words.screen().print(words.plain(forgotten(path, id_)), soft_wrap=True)


def forgettable(address: str) -> tuple[str, str, str]:
    """What to ask a person first, the store and the conversation. Raises InputError for what is not in a store of our own."""
    own = own_address(address)
    if own is None or not own[1]:
        raise InputError(
            "forget", repr(address), "STORE#ID, a conversation in a store of Tenure's own: files of other tools are theirs"
        )
    with own_store(*own) as (store, sheet):
        every = store.conversations(None)
    more = len(descendants(sheet.id, [(each.id, each.parent) for each in every])) - 1
    made = f" and {words.several(more, 'conversation')} made from it" if more else ""
    title = words.first_line(sheet.title, 60)
    about = f" ({title})" if title else ""
    return (
        f"Delete {sheet.id}{about} with {words.several(sheet.length, 'message')}{made} from {own[0]} for good?",
        own[0],
        sheet.id,
    )


def forgotten(path: str, id_: str) -> str:
    """Delete it; what was deleted, in a sentence."""
    from tenure.store.store import Store

    with Store(f"sqlite:///{path}") as store:
        gone = store.forget(id_)
    return f"Deleted {words.several(len(gone), 'conversation')}: {', '.join(reversed(gone[-10:]))}"
