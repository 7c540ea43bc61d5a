"""A session as it is read, and an engine's session to put it into."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec import Struct, structs

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import Tokenizer, weigh
from tenure.engine.policies.peers import Peer
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft
from tenure.lab.events import SourceFile, spelled
from tenure.logs.reader import Event

DEFAULT_MODEL: Final = "claude-sonnet-4-5"  # where a log names none
_PEEK: Final = 64  # messages looked ahead for the model's name, and for how long its requests were to be cached


class SessionSource(Struct, frozen=True):
    """A session: its name, and how to read it, as often as asked. `events` gives the format's name and what a reader yields."""

    path: str
    events: Callable[[], tuple[str, Iterator[Event]]]
    sha256: Callable[[], str] = lambda: ""  # of the unpacked bytes
    tenant: Callable[[], str] = lambda: ""  # whose record it is, with which its chain of hashes begins
    is_marked: bool = False  # its agent is offered `delimiter` beside its own tools

    def changed(self, change: Callable[[Iterator[Event]], Iterator[Event]]) -> "SessionSource":
        """The session with a change to what is read of it."""

        def events() -> tuple[str, Iterator[Event]]:
            name, found = self.events()
            return name, change(found)

        return structs.replace(self, events=events)


class Reading:
    """One source as it is read: peeked at for its model, and how long its prompts were to be cached."""

    def __init__(self, source: SessionSource, number: int = 0) -> None:
        self.source, self.number = source, number
        self.format, events = source.events()
        peeked: list[Event] = []
        self.model = self.cache_life = ""
        for event in events:
            peeked.append(event)
            if isinstance(event, Draft):
                self.model, self.cache_life = self.model or event.model, self.cache_life or event.cache_life
            if (self.model and self.cache_life) or len(peeked) >= _PEEK:
                break
        self.events = chain(peeked, events)

    @property
    def file(self) -> SourceFile:
        """As the replay's header names it."""
        return SourceFile(path=spelled(self.source.path), format=self.format, sha256=self.source.sha256())


def session_for(
    model: str, count: Tokenizer, *, budget: Budget | None = None, policy: Policy | None = None, tenant: str = "", **more: Any
) -> Session:
    """A session without entries, by the rules of a model."""
    rules = rules_for("", model, "")
    setup = Setup(budget=budget or Budget(), rules=rules, policy=policy, tenant=tenant)
    return Session(setup, weigh=partial(weigh, tokenizer=count, media=rules.media), count=count, **more)


def settings_of(policy: Policy | None) -> dict[str, str | int | float | bool | None]:
    """What a policy is set to, as far as it is plain values."""
    if policy is None:
        return {}
    own = policy.settings if isinstance(policy, Peer) else structs.asdict(policy) if isinstance(policy, Struct) else {}
    conduct = policy.conduct
    every = own | {
        "batch": conduct.amount != "limit",
        "escalates": not conduct.by_level,
        "lines": conduct.naming == "lines",
        "whole": conduct.amount == "all",
        "descriptions": conduct.naming != "nothing",
        "tail_exchanges": conduct.tail_exchanges,
        "before_marks": conduct.before_marks,
    }
    return {name: value for name, value in every.items() if name != "name" and isinstance(value, str | int | float | bool)}
