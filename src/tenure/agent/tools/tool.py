"""What a tool of the agent is: the one seam between the loop and everything it can do (an edge).

    tools = toolbox(...)                                  # tenure.agent.tools.toolbox
    tool = tools.find(call.name)                          # None: `await tools.run(...)` answers with near names
    approval = tool.needs(call.arguments, workspace)      # None: changes nothing, so it is free and may run beside others
    outcome = await tools.run(call.name, call.arguments, here)

`run` gives an ToolOutcome whatever the model sent: malformed arguments, a missing file, a time-out are results that say so. Only the
cancellation of the asyncio task travels out of it, and by then everything it started is gone. `here.cancel` is the gentle way: the tool
stops and answers with what it had.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.output import Output
from tenure.agent.tools.sandbox import CommandReach
from tenure.agent.workspace import Workspace
from tenure.apis.media import MediaSource
from tenure.engine.record.entry import Spill
from tenure.engine.record.tools import ToolKind


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """What came of a call, as its result tells the model. The bytes of `media` are in it, as `dialects.answers.answered` takes them."""

    text: str
    error: bool = False
    media: tuple[MediaSource, ...] = ()
    spill: Spill | None = None  # where `text` is not the whole output


class ToolLimits(Struct, frozen=True, kw_only=True):
    """How much a tool may give and take. A result goes into the record whole up to `output_bytes`; the window's own clip comes after."""

    output_bytes: int = 4_000_000  # of one result in the record; of a larger one the beginning, the end and a spill
    spill_bytes: int = 2**30  # of one output that is kept in a file
    spare_bytes: int = 2**28  # of a disk that are never taken
    line_chars: int = 2_000  # of one line of a file
    read_lines: int = 2_000  # of one read without a limit
    image_bytes: int = 3_750_000  # 5 MB in base64 is what providers take
    write_chars: int = 10_000_000
    found: int = 200  # paths or matches of one search
    search_s: float = 20.0
    command_s: float = 120.0  # unless the call says otherwise
    command_most_s: float = 600.0
    server_start_s: float = 10.0
    server_call_s: float = 60.0


def _unheard(chunk: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Here:
    """Where and how one call runs: made by the loop, one for each call."""

    workspace: Workspace
    call: str = ""  # the call's id, by which the record knows it
    reach: CommandReach = CommandReach.ANYWHERE  # how far a command may act, by who was asked; behind walls, where there are any
    part: Path | None = None  # the file where its output goes as it comes; None: nothing beyond the record's limit is kept
    environment: Mapping[str, str] = field(default_factory=dict[str, str])  # before it is scrubbed of keys
    limits: ToolLimits = field(default_factory=ToolLimits)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)  # set: stop now, and answer with what there is
    say: Callable[[str], None] = _unheard  # output as it comes, harmless to a terminal; never blocks
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep  # seconds; a test hands in another
    now: Callable[[], float] = time.monotonic  # seconds, for durations that are shown

    def output(self) -> Output:
        """What takes the call's output, as much of it as there may be."""
        limits = self.limits
        return Output(limits.output_bytes, part=self.part, most=limits.spill_bytes, spare=limits.spare_bytes)

    def outcome(self, text: str, *, error: bool = False, media: tuple[MediaSource, ...] = ()) -> ToolOutcome:
        """An outcome of any length, as the record takes it."""
        output = self.output()
        output.feed(text.encode("utf-8", "replace"))
        return ToolOutcome(text=output.text(), error=error, media=media, spill=output.spill)


class Tool(Protocol):
    """One thing the agent can do."""

    @property
    def name(self) -> str:
        """As the model calls it."""
        ...

    @property
    def description(self) -> str:
        """As the model reads it; the same all session long."""
        ...

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments; frozen, and rendered to the same bytes every time."""
        ...

    @property
    def kind(self) -> ToolKind:
        """What its results are worth once they are used."""
        ...

    def needs(self, arguments: str, workspace: Workspace, /) -> Approval | None:
        """What the call would change; None when nothing, or when its arguments cannot be read, so that `run` does nothing. Changes nothing itself."""
        ...

    async def run(self, arguments: str, here: Here, /) -> ToolOutcome:
        """Do it. Never raises but asyncio.CancelledError."""
        ...


class End(Enum):
    """How waiting ended."""

    DONE = "done"
    LATE = "late"
    CANCELLED = "cancelled"


async def wait_for(work: "asyncio.Future[Any]", here: Here, limit_s: float) -> End:
    """Wait for `work`, at most `limit_s` seconds and until the call is cancelled. `work` goes on if it is not done; that is the caller's."""
    late, stop = _task(here.wait(limit_s)), _task(here.cancel.wait())
    try:
        await asyncio.wait({work, late, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        late.cancel()
        stop.cancel()
    if work.done():
        return End.DONE
    return End.CANCELLED if here.cancel.is_set() else End.LATE


class Deadline:
    """For work that goes step by step: whether to go on. Use with `with`."""

    def __init__(self, here: Here, limit_s: float) -> None:
        self._cancel, self._late = here.cancel, _task(here.wait(limit_s))

    async def ends(self) -> bool:
        """Whether time is up or the call is cancelled; others have their turn meanwhile."""
        await asyncio.sleep(0)
        return self._late.done() or self._cancel.is_set()

    def __enter__(self) -> "Deadline":
        return self

    def __exit__(self, *_: object) -> None:
        self._late.cancel()


def _task(awaitable: Awaitable[object]) -> "asyncio.Future[object]":
    return asyncio.ensure_future(awaitable)
