"""`tenure run`, and `tenure` without a command: the agent, without a screen or in the terminal interface.

Standard output has the answer, or with `--json` every event, one a line; progress is on standard error.
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
from msgspec.structs import replace

import tenure
from tenure.cli.main import is_interactive, talk
from tenure.cli.options import (
    Fields,
    Light,
    PermissionOptions,
    SessionOptions,
    WindowOptions,
    fields_of,
    flag,
    option,
    settings_of,
)
from tenure.engine.record.visible import visible_json
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.agent.events import Reason
    from tenure.agent.session import Agent
    from tenure.agent.settings import Settings

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


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tenure {tenure.__version__}")
        raise typer.Exit


def interactive(
    context: typer.Context,
    *,
    session: SessionOptions,
    may: PermissionOptions,
    helper: Annotated[
        str, option("MODEL", "The model that writes session titles. Default: --model.", envvar="TENURE_HELPER")
    ] = "",
    window: WindowOptions,
    light: Light = False,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """A terminal agent and tools that manage an LLM agent's context window.

    `tenure` alone opens the agent. `tenure run "TASK"` does one task without a screen.
    """
    if (command := context.invoked_subcommand) is not None:
        for parameter in context.command.params:  # in front of a command options would have no effect
            source = context.get_parameter_source(parameter.name or "")
            if source is not None and source.name == "COMMANDLINE":
                option = parameter.opts[0]
                raise InputError(option, f"before the command {command!r}", f"it behind: tenure {command} {option} …")
        return
    if not is_interactive():
        typer.echo(context.get_help())
        raise typer.Exit(2)  # wrong usage, as it is for any command that lacks something
    settings = settings_of(context, session, may, window)
    if code := talk(replace(settings, helper=helper or settings.helper), light=light or settings.theme == "light"):
        raise typer.Exit(code)


def run(
    context: typer.Context,
    *,
    task: Annotated[str, typer.Argument(help="What to do; - reads it from standard input. Piped text is added to it.")] = "",
    session: SessionOptions,
    cwd: Annotated[Path | None, option("FOLDER", "The folder to work in. Default: this one.")] = None,
    may: PermissionOptions,
    image: Annotated[list[Path] | None, option("FILE", "Show the model an image or PDF; may be repeated.")] = None,
    window: WindowOptions,
    no_episodes: Annotated[bool, flag("--no-episodes", "Do not let the agent mark episodes.")] = False,
    fields: Fields = "",
    max_steps: Annotated[int, option("N", "Limit of model calls; 0: none.", min=0)] = 0,
    max_usd: Annotated[float, option("USD", "Limit of money, sub-agents included; 0: none.", min=0)] = 0.0,
    max_tokens: Annotated[int, option("TOKENS", "Limit of tokens, prompts and replies added up; 0: none.", min=0)] = 0,
    spill: Annotated[int, option("MB", "Limit of one tool output kept beside the store.", min=0)] = 1_024,
    json: Annotated[bool, flag("--json", "Print every event as a JSON object, one per line.")] = False,
    quiet: Annotated[bool, flag("--quiet", "Print the answer only.", "-q")] = False,
) -> None:
    """Give the agent one task and wait for its answer.

    The answer goes to standard output, progress to standard error.

    Exit codes: 0 done, 1 failed or refused, 2 bad input, 3 a limit was reached, 4 a call needs approval (see --approve), 130 cancelled.
    """
    settings = settings_of(context, session, may, window, folder=cwd)
    words = task_of(task)
    if not words and not image and not (session.go_on or session.resume):
        raise InputError("task", "nothing to do", "some words, - for standard input, or --continue")
    usual = settings.allowance
    settings = replace(
        settings,
        spill=spill * 2**20,
        alone=True,
        allowance=replace(usual, steps=max_steps or usual.steps, usd=max_usd or usual.usd, tokens=max_tokens or usual.tokens),
        fields=fields_of(fields),
        episodes=settings.episodes and not no_episodes,
    )
    raise typer.Exit(asyncio.run(_turn(settings, words, tuple(image or ()), json=json, quiet=quiet)))


def task_of(task: str) -> str:
    """The task in words: the argument, and what is piped in. Raises InputError for more than a task can hold."""
    if task == STDIN:
        return _standard_input()
    piped = _standard_input() if _is_piped(patient=bool(task)) else ""
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


def _standard_input() -> str:
    data = sys.stdin.buffer.read(MOST_STDIN + 1)
    if len(data) > MOST_STDIN:
        raise InputError("standard input", f"more than {MOST_STDIN:,} bytes", "a task; name a file instead")
    return data.decode("utf-8", "replace").replace("\0", "\ufffd").strip()


async def _turn(settings: "Settings", task: str, images: tuple[Path, ...], *, json: bool, quiet: bool) -> int:
    """One turn, printed as it goes; the exit code."""
    from tenure.agent.events import TurnDone, as_json
    from tenure.agent.session import Agent
    from tenure.cli.run_screen import Teller

    agent = await Agent.open(settings)
    teller = Teller(sys.stdout, sys.stderr, quiet=quiet, live=sys.stdout.isatty() and not quiet)
    code = EXIT["failed"]
    stop_on_signals(agent)
    try:
        async for event in agent.run(task, images=images):
            if json:
                sys.stdout.write(visible_json(as_json(event)).decode("utf-8", "replace") + "\n")
                sys.stdout.flush()
            else:
                teller.tell(event)
            code = EXIT[event.reason] if isinstance(event, TurnDone) else code
    finally:
        await agent.close()
    return code


def stop_on_signals(agent: "Agent") -> None:
    """Ctrl-C, or a polite request to end, stops the turn and leaves a valid record; the second time tools are not waited for, the third nothing."""
    steps = iter((agent.cancel, agent.abandon))
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError, ValueError):  # another system, or not the main thread
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the last: its terminal is gone
            loop.add_signal_handler(number, lambda: next(steps, lambda: os._exit(EXIT["cancelled"]))())
