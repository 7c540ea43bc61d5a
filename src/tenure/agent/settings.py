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
from msgspec.structs import replace

from tenure.agent.approval import Mode
from tenure.agent.catalogue import ModelChoice
from tenure.agent.tools.sandbox import Means
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError
from tenure.models.hosts import LOCAL, Service
from tenure.models.speaker import Speaker
from tenure.store.records import Now, Records, utc_now

SETTINGS_FILE: Final = "settings.toml"  # in the user's configuration folder, and in `.tenure` of a project
MIDDLE_OUT: Final = "middle-out"
DEPTH: Final = 1  # agents below the first: those it hands a part of its task to, and no more
CHILD_TOKENS: Final = 1_000_000  # that one sub-agent may process, prompts counted at every call
CHILD_STEPS: Final = 60


class Allowance(Struct, frozen=True, kw_only=True):
    """What a session may use while it is open, sub-agents included; 0 is no limit. Looked at before every call of the model."""

    steps: int = 0  # calls of the model, of one turn
    usd: float = 0.0
    tokens: int = 0  # provider tokens processed: of all prompts, cached or not, and of all replies


class WindowLimits(Struct, frozen=True, kw_only=True):
    """The limits of the window as a person writes them: `80k`, or `50%` of the model's window (a floor's is of the limit). Empty: not given."""

    target: str = ""
    ceiling: str = ""
    floor: str = ""
    window: str = ""  # the model's own, less room for a reply, unless it is given

    def budget(self, window: int) -> Budget | None:
        """The budget for a model of that window, in provider tokens; None where nothing was given. Raises InputError for nonsense."""
        if self == WindowLimits():
            return None
        limits = {name: getattr(self, name) or None for name in ("target", "ceiling", "floor")}
        return Budget.parse(**limits, window=self.window or window)


class Settings(Struct, frozen=True, kw_only=True):
    """What a person decides about a session. Empty means the usual; `tenure.agent.settings_file` has the names that people use."""

    folder: Path
    model: str = ""  # such as `openai:gpt-5`; empty: that of the session that goes on, where that was held
    base_url: str = ""  # empty: the model's own
    resume: str = ""  # the id of a session, or its start
    newest: bool = False  # go on with the newest session of this folder
    store: str = ""  # URL; empty: in the user's state folder
    budget: Budget | None = None  # its window is bounded by the model's; None: by `limits`
    limits: WindowLimits = WindowLimits()  # not given: the usual, or the resumed session's
    policy: str = ""  # by name; empty: that of the session that goes on, or the usual
    compat: str = ""  # a published version of `cwl` instead of a policy
    gate: str = ""  # as `policy`
    cache_life: str = ""  # as `policy`
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
    helper: str = ""  # the model that finds titles, and does what is left to a helper, as `model`; empty: the session's own
    summariser: str = ""  # the model that writes briefs; this and the next two: a model, or a word of `helper.ROLES`
    handoff_at: str = "85%"  # of the window, or tokens of a prompt, at which history is handed off; 0: never
    handoff: str = ""  # what a brief stands for: all of earlier history, or the middle
    planner: str = ""  # the model that plans what leaves (Self-GC)
    digest: str = ""  # the model that says what a very large result holds
    digest_above: int = 8_000  # o200k tokens of such a result
    embeddings: str = ""  # by which history is searched by meaning: minilm, or a model of an endpoint; empty: by words
    look_back: bool = False  # tell the model at each prompt what left and fits it
    notes: bool | None = None  # it may write down what it must not lose; None: as `policy`
    work: str = ""  # a user's own words in place of ours on how to work
    theme: str = ""  # of the terminal interface: dark or light
    notices: tuple[str, ...] = ()  # to be told at the start: what is wrong in a file of settings

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

    def as_held(self) -> "Settings":
        """The same without what a stored session has of its own: the model, where it is, and everything that its window is held to."""
        usual = Settings(folder=self.folder)
        return replace(self, **{name: getattr(usual, name) for name in KEPT})


KEPT: Final = ("model", "base_url", "budget", "limits", "policy", "compat", "gate", "cache_life", "clip", "notes")


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
