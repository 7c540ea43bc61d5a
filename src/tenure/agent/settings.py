"""How a session is to be held, as one value, and the world around it."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tenure.agent.approval import Mode
from tenure.agent.catalogue import ModelChoice
from tenure.agent.tools.sandbox import Means
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError
from tenure.models.hosts import LOCAL, Service
from tenure.models.speaker import Speaker
from tenure.store.records import Now, Records, utc_now

DEPTH: Final = 1  # agents below the first: those it hands a part of its task to, and no more
CHILD_TOKENS: Final = 1_000_000  # that one sub-agent may process, prompts counted at every call
CHILD_STEPS: Final = 60


class Allowance(Struct, frozen=True, kw_only=True):
    """What a session may use while it is open, sub-agents included; 0 is no limit. Looked at before every call of the model."""

    steps: int = 0  # calls of the model, of one turn
    usd: float = 0.0
    tokens: int = 0  # provider tokens processed: of all prompts, cached or not, and of all replies


class Settings(Struct, frozen=True, kw_only=True):
    """What a person decides about a session. Empty means the usual."""

    folder: Path
    model: str = ""  # such as `openai:gpt-5`; empty: that of the session that goes on, where that was held
    base_url: str = ""  # empty: the model's own
    resume: str = ""  # the id of a session, or its start
    newest: bool = False  # go on with the newest session of this folder
    store: str = ""  # URL; empty: in the user's state folder
    budget: Budget | None = None  # its window is bounded by the model's; None: the usual, or the resumed session's
    policy: str = ""  # by name; empty: that of the session that goes on, or the usual
    clip: int | None = None  # o200k tokens; 0: results are shown whole; None: as `policy`
    spill: int = 2**30  # bytes of one output that are kept beside the store, where it is too large for the record
    mode: Mode = Mode.ASK
    alone: bool = False  # nobody is there to ask
    allowance: Allowance = Allowance()
    sandbox: bool = False
    network: bool = False  # in the sandbox
    allow_outside: bool = False  # commands that were allowed may change files outside the folder, in every mode
    snapshots: bool = True  # keep a copy of the files before each change, so that it can be undone
    follow_links: bool = False  # of instruction files and skills, out of the folder
    servers: Path | None = None  # a file of MCP servers
    output: int = 0  # tokens of one reply; 0: as much as the model takes, within reason
    fields: Mapping[str, Any] = {}  # that go with every request as they are, such as {"reasoning": {"effort": "low"}}
    depth: int = DEPTH
    episodes: bool = True  # the agent marks episodes
    helper: str = ""  # the model that finds titles, as `model`; empty: the session's own
    notes: bool | None = None  # it may write down what it must not lose; None: as `policy`
    work: str = ""  # a user's own words in place of ours on how to work

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.resume and self.newest:
            raise InputError("session", "both a session to resume and the newest", "one of the two")
        limits = (
            self.allowance.steps,
            self.allowance.usd,
            self.allowance.tokens,
            self.output,
            self.clip or 0,
            self.spill,
            self.depth,
        )
        if min(limits) < 0:
            raise InputError("limit", "a number below 0", "0 for none, or more")
        if taken := sorted({"messages", "input", "model", "stream", "tools"} & set(self.fields)):
            raise InputError("fields", f"{taken[0]!r}, which the session sets itself", "further settings of the provider's API")


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """All that a session takes from outside: time, chance, the environment; a test hands in others."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    home: Path = field(default_factory=Path.home)
    today: date | None = field(default_factory=date.today)
    now: Now = utc_now
    seconds: Callable[[], float] = time.monotonic  # for durations
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random  # from 0 to 1, to spread attempts
    speaker: Callable[[ModelChoice], Speaker] | None = None  # None: the official SDKs, or a script
    local: tuple[Service, ...] = LOCAL  # servers of this machine that are asked for models, where no other is to be had
    store: Records | None = None  # None: as the settings say
    tokens: Callable[[str], int] | None = None  # None: o200k
    walls: Means | None = None  # what makes walls around commands; None: what works here
