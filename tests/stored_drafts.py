"""Messages as a store of our own."""

from collections.abc import Iterable
from pathlib import Path

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import Tokenizer, weigh
from tenure.engine.record.entry import Draft
from tenure.store.records import Conversation
from tenure.store.store import Store


def store_drafts(path: Path, drafts: Iterable[Draft], tokenizer: Tokenizer) -> None:
    """Keep messages as the one conversation of a new store."""
    rules = rules_for("", "", "")
    setup = Setup(budget=Budget(), rules=rules, policy=None)
    session = Session(setup, weigh=lambda blocks: weigh(blocks, tokenizer, rules.media), count=tokenizer)
    with Store(f"sqlite:///{path}") as store:
        held = store.create(Conversation(id="session", title=path.stem))
        store.append(held.id, [entry for draft in drafts for entry in session.append(draft).entries])
