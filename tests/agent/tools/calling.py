"""A call of one tool in a folder of its own, from its arguments to its outcome."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.agent.tools.tool import Here, Tool, ToolLimits, ToolOutcome
from tenure.agent.workspace import Workspace


def workspace(folder: Path) -> Workspace:
    """A workspace in `folder`, with a home and a scratch folder beside it."""
    for name in ("ws", "home", "scratch"):
        (folder / name).mkdir(exist_ok=True)
    return Workspace(folder / "ws", home=folder / "home", scratch=folder / "scratch")


def here(where: Workspace, **settings: Any) -> Here:
    """A call's place; `limits` may be a dictionary."""
    limits = settings.pop("limits", {})
    environment = settings.pop("environment", {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(where.home)})
    return Here(workspace=where, call="call_1", limits=ToolLimits(**limits), environment=environment, **settings)


def called(tool: Tool, at: Workspace | Here, **arguments: Any) -> ToolOutcome:
    """What comes of a call."""
    place = at if isinstance(at, Here) else here(at)
    return asyncio.run(tool.run(json.dumps(arguments), place))


def told(tool: Tool, at: Workspace | Here, **arguments: Any) -> str:
    """The text of a call that succeeds."""
    outcome = called(tool, at, **arguments)
    assert not outcome.error, outcome.text
    return outcome.text


def refused(tool: Tool, at: Workspace | Here, **arguments: Any) -> str:
    """The text of a call that does not."""
    outcome = called(tool, at, **arguments)
    assert outcome.error, outcome.text
    return outcome.text


def stopped_after(seconds: float, tool: Tool, place: Here, **arguments: Any) -> ToolOutcome:
    """What comes of a call that the user stops."""

    async def run() -> ToolOutcome:
        asyncio.get_running_loop().call_later(seconds, place.cancel.set)
        return await tool.run(json.dumps(arguments), place)

    return asyncio.run(run())


def cut_off_after(seconds: float, tool: Tool, place: Here, **arguments: Any) -> None:
    """A call whose task is cancelled; that it is comes out of it."""

    async def run() -> None:
        task = asyncio.ensure_future(tool.run(json.dumps(arguments), place))
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def listening() -> tuple[list[str], Callable[[str], None]]:
    """What a call says as it goes on."""
    heard: list[str] = []
    return heard, heard.append


def at_once() -> Callable[[float], Any]:
    """Time that is up as soon as others had their turn."""

    async def wait(_seconds: float) -> None:
        await asyncio.sleep(0)

    return wait
