"""`tenure run`: the agent without a screen, for a shell, a script or a benchmark.

Standard output has the answer, or with `--json` every event, one a line; what happens on the way is told on standard error.
"""

import asyncio
import os
import select
import signal
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tenure.cli.asked import (
    AllowOutside,
    Approve,
    BaseUrl,
    Continue,
    Fields,
    FollowLinks,
    Limit,
    Mcp,
    Model,
    ModelWindow,
    NoSnapshots,
    PolicyName,
    Resume,
    SandboxOn,
    StoreAt,
    Target,
    model_of,
)
from tenure.engine.record.visible import visible_json
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.agent.events import Reason, TurnDone
    from tenure.agent.session import Agent
    from tenure.agent.settings import Settings
    from tenure.engine.lifecycle.budget import Budget

STDIN: Final = "-"
MOST_STDIN: Final = 10_000_000  # bytes of a task
STDIN_S: Final = 1.0  # that a pipe may take to bring its first byte, where a task is given beside it

# Why a turn ended -> the exit code; whatever cannot be read or understood is 2, as everywhere.
EXIT: Final[Mapping["Reason", int]] = {
    "done": 0,
    "failed": 1,
    "refused": 1,
    "cut short": 1,
    "step limit": 3,
    "money limit": 3,
    "token limit": 3,
    "stuck": 3,
    "needs approval": 4,
    "cancelled": 130,
}


def run(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="What to do; - reads it from standard input. Piped text is added to it.")] = "",
    model: Model = "",
    base_url: BaseUrl = "",
    go_on: Continue = False,
    resume: Resume = "",
    store: StoreAt = "",
    cwd: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The folder to work in. Default: this one.")] = None,
    approve: Approve = "ask",
    sandbox: SandboxOn = False,
    network: Annotated[bool, typer.Option("--network", help="Allow the network in the sandbox.")] = False,
    allow_outside: AllowOutside = False,
    no_snapshots: NoSnapshots = False,
    follow_links: FollowLinks = False,
    mcp: Mcp = None,
    image: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Show the model an image or PDF; may be repeated.")
    ] = None,
    policy: PolicyName = "",
    target: Target = "",
    ceiling: Limit = "",
    window: ModelWindow = "",
    no_episodes: Annotated[bool, typer.Option("--no-episodes", help="Do not let the agent mark episodes.")] = False,
    fields: Fields = "",
    max_steps: Annotated[int, typer.Option(min=0, metavar="N", help="Limit of model calls; 0: none.")] = 0,
    max_usd: Annotated[float, typer.Option(min=0, metavar="USD", help="Limit of money, sub-agents included; 0: none.")] = 0.0,
    max_tokens: Annotated[
        int, typer.Option(min=0, metavar="TOKENS", help="Limit of tokens, prompts and replies added up; 0: none.")
    ] = 0,
    spill: Annotated[int, typer.Option(min=0, metavar="MB", help="Limit of one tool output kept beside the store.")] = 1_024,
    json: Annotated[bool, typer.Option("--json", help="Print every event as a JSON object, one per line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only.")] = False,
) -> None:
    """Give the agent one task and wait for its answer.

    The answer goes to standard output, progress to standard error.

    Exit codes: 0 done, 1 failed or refused, 2 bad input, 3 a limit was reached, 4 a call needs approval (see --approve), 130 cancelled.
    """
    from tenure.agent.approval import Mode
    from tenure.agent.settings import Allowance, Settings

    if approve not in tuple(Mode):
        raise InputError("--approve", repr(approve), ", ".join(Mode))
    model = model_of(context, model, going_on=bool(go_on or resume))
    words = task_of(task)
    if not words and not image and not (go_on or resume):
        raise InputError("task", "nothing to do", "some words, - for standard input, or --continue")
    settings = Settings(
        folder=cwd or Path.cwd(),
        model=model,
        base_url=base_url,
        resume=resume,
        newest=go_on,
        store=store,
        spill=spill * 2**20,
        budget=budget_of(model, base_url, target, ceiling, window),
        policy=policy,
        mode=Mode(approve),
        alone=True,
        allowance=Allowance(steps=max_steps, usd=max_usd, tokens=max_tokens),
        sandbox=sandbox,
        network=network,
        allow_outside=allow_outside,
        snapshots=not no_snapshots,
        follow_links=follow_links,
        servers=mcp,
        episodes=not no_episodes,
        fields=fields_of(fields),
    )
    raise typer.Exit(asyncio.run(_played(settings, words, tuple(image or ()), json=json, quiet=quiet)))


def budget_of(model: str, base_url: str, target: str, ceiling: str, window: str) -> "Budget | None":
    """The budget of the options; None when there are none. A share is of the model's window unless one is given. Raises InputError."""
    from tenure.agent.catalogue import chosen
    from tenure.engine.lifecycle.budget import Budget

    if not (target or ceiling or window):
        return None
    if not window and model:
        choice = chosen(model, base_url=base_url)
        window = str(choice.window - choice.reserve)
    return Budget.parse(target=target or None, ceiling=ceiling or None, window=window or None)


def fields_of(text: str) -> dict[str, object]:
    """Settings given as a JSON object. Raises InputError for what is none."""
    from tenure.apis.json_text import load, object_of

    return dict(object_of(load(text, "--fields"), "--fields")) if text.strip() else {}


def task_of(task: str) -> str:
    """The task in words: the argument, and what is piped in. Raises InputError for more than a task can hold."""
    if task == STDIN:
        return _text(_read())
    piped = _text(_read()) if _is_piped(patient=bool(task)) else ""
    return "\n\n".join(filter(None, (task, piped)))


def _is_piped(*, patient: bool) -> bool:
    """Whether text comes in. A pipe that somebody only forgot to close is not waited for, where there is a task already."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
        if stat.S_ISREG(kind):
            return True
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            return False
        return not patient or bool(select.select([sys.stdin], [], [], STDIN_S)[0])
    except (OSError, ValueError, AttributeError):
        return False


def _read() -> bytes:
    data = sys.stdin.buffer.read(MOST_STDIN + 1)
    if len(data) > MOST_STDIN:
        raise InputError("standard input", f"more than {MOST_STDIN:,} bytes", "a task; name a file instead")
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd").strip()


async def _played(settings: "Settings", task: str, images: tuple[Path, ...], *, json: bool, quiet: bool) -> int:
    """One turn, told as it goes; the exit code."""
    from tenure.agent.events import TurnDone, as_json
    from tenure.agent.session import Agent
    from tenure.cli.run_screen import Teller

    agent = await Agent.open(settings)
    teller = Teller(sys.stdout, sys.stderr, quiet=quiet, live=sys.stdout.isatty() and not quiet)
    done: TurnDone | None = None
    _listen(agent)
    try:
        async for event in agent.run(task, images=images):
            if json:
                sys.stdout.write(visible_json(as_json(event)).decode("utf-8", "replace") + "\n")
                sys.stdout.flush()
            else:
                teller.tell(event)
            done = event if isinstance(event, TurnDone) else done
    finally:
        await agent.close()
    return _code(done)


def _code(done: "TurnDone | None") -> int:
    return EXIT[done.reason] if done is not None else EXIT["failed"]


def _listen(agent: "Agent") -> None:
    """Ctrl-C, or a polite request to end, stops the turn and leaves a valid record; the second time tools are not waited for, the third nothing."""
    asked = 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        match asked:
            case 1:
                agent.cancel()
            case 2:
                agent.abandon()
            case _:
                os._exit(EXIT["cancelled"])

    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError, ValueError):  # another system, or not the main thread
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the last: its terminal is gone
            loop.add_signal_handler(number, stop)
