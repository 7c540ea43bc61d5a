"""`tenure demo`: the agent at work in a small window, on real files, without a model, a key or a network."""

import asyncio
import os
import shlex
import shutil
import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from tenure.cli import words
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.agent.session import Agent
    from tenure.cli.demo_screen import Screen, Seen
    from tenure.cli.demo_stage import Stage

INTERRUPTED: Final = 130  # exit code, as shells have it
COMMITS: Final = 2  # fewer are no demo of eviction
_INTRODUCED: Final = (
    "One session, {tasks} tasks, and a window of {ceiling:,} tokens: small, so that it fills while you watch. The model follows a script, so no key "
    "and no network is needed. All else is real: the agent, its tools, the files, what leaves the window, what comes back, and the bill at the "
    "prices of {model}.",
    "An episode is a stretch of work that the agent marks: it explores, or it acts on what was explored. When the window is full, episodes that are "
    "done leave it. The record keeps every byte, and the agent can recall it.",
)


def demo(
    replay: Annotated[
        bool, typer.Option("--replay", help="Replay your own newest agent session instead; it is only read.")
    ] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Replay the demo's own session instead.")] = False,
    fast: Annotated[bool, typer.Option("--fast", help="Print without pauses.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="An empty folder to work in. Default: a new temporary folder, which is kept."),
    ] = None,
) -> None:
    """Watch an agent do six small tasks in a small window: what fills it, what leaves, what comes back, what it costs.

    Needs no key and no network, and touches none of your sessions.

    Exit codes: 0 done, 1 something went wrong, 2 bad input, 130 interrupted.
    """
    console = words.screen()
    if replay or sample:
        from tenure.cli.demo_replay import replay_newest

        if fast or folder is not None:
            raise InputError("--replay", "--fast or --folder beside it", "one or the other: they are of the agent's demo")
        replay_newest(console, sample=sample)
        return
    from tenure.cli.demo_stage import set_up

    stage = set_up(folder)
    try:
        seen = asyncio.run(_played(stage, console, slow=console.is_terminal and not fast))
    except KeyboardInterrupt:
        console.print(f"\ninterrupted; what was played so far is kept: {stage.folder}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
    limits = _limits(seen)
    troubles = [*seen.troubles, *_audited(stage, limits, console)]
    if troubles:
        console.print()
        for trouble in troubles:
            console.print(f"The demo failed: {words.first_line(trouble, 300)}", style="red", soft_wrap=True)
        raise typer.Exit(1)
    _next(stage, limits, console)


async def _played(stage: "Stage", console: Console, *, slow: bool) -> "Seen":
    """All tasks, told, and what they came to."""
    from tenure.agent.events import Requested, Retrying
    from tenure.agent.tour import read_tour
    from tenure.cli.demo_screen import Pace, Screen
    from tenure.cli.demo_stage import cast

    tasks = read_tour().tasks
    agent, model = await cast(stage)
    pace = Pace(word=0.013, line=0.08, moment=1.1, wait=asyncio.sleep) if slow else Pace()
    screen = Screen(console, pace, stage.project, lambda: agent.context.session)
    try:
        _introduce(screen, stage, console, model.name)
        await pace.rest(2 * pace.moment)
        for number, task in enumerate(tasks, start=1):
            await screen.task(number, len(tasks), task)
            async for event in agent.run(task):
                await screen.tell(event)
                if isinstance(event, Requested | Retrying):
                    model.go_on()
        _summed(agent, screen.seen, screen.width, console)
        await pace.rest(pace.moment)
        return screen.seen
    finally:
        await agent.close()


def _introduce(screen: "Screen", stage: "Stage", console: Console, model: str) -> None:
    from tenure.agent.tour import read_tour

    console.print(Text("Tenure: an agent whose window is managed", style="bold"))
    for paragraph in _INTRODUCED:
        console.print()
        said = paragraph.format(tasks=len(read_tour().tasks), ceiling=read_tour().ceiling, model=model)
        console.print("\n".join(wrap(said, screen.width)))
    console.print()
    console.print(f"It works in {stage.project}", soft_wrap=True)


def _summed(agent: "Agent", seen: "Seen", width: int, console: Console) -> None:
    """What it came to; what is not as it should be joins the troubles."""
    from tenure.engine.meter import statement

    context, ledger = agent.context, agent.ledger
    index = context.session.index
    wrong = context.store.verify(agent.id)
    if wrong:
        seen.troubles.append(f"the record is damaged: {wrong}")
    if seen.commits < COMMITS:
        seen.troubles.append(f"{seen.commits} commits, expected at least {COMMITS}")
    if not seen.returned:
        seen.troubles.append("nothing that left came back")
    facts = (
        (
            "record",
            f"{index.tokens:,} tokens in {len(index):,} messages" + ("" if wrong else ", every hash checked: nothing is lost"),
        ),
        (
            "window",
            f"the largest request had {seen.largest:,} tokens; with nothing evicted it would have had {ledger.savings.peak:,}",
        ),
        ("bill", statement.line(ledger)),
    )
    _heading("what it came to", width, console)
    for label, fact in facts:
        for number, line in enumerate(wrap(fact, width - 8)):
            console.print(Text.assemble((label.ljust(8) if not number else " " * 8, "dim"), line))


def _limits(seen: "Seen") -> tuple[str, str, str]:
    """The session's ceiling and floor, and what stood before its view: with these an audit is of the same window."""
    from tenure.agent.tour import read_tour

    budget = read_tour().budget

    return str(budget.limit), str(budget.floor_of(budget.limit)), str(seen.head)


def _audited(stage: "Stage", limits: tuple[str, str, str], console: Console) -> list[str]:
    """The audit of the session that was just played, as the command prints it; what was wrong with it."""
    from tenure.cli.audit import NOWHERE, audit
    from tenure.cli.demo_screen import WIDEST

    width = min(console.width, WIDEST)
    ceiling, floor, head = limits
    _heading("the audit of this very session", width, console)
    said = (
        "The session is played again under each policy, this one's beside others: how far the window fills, what leaves, what of it was needed "
        "later (routed: a residue says how to get it back; lost: nothing does), and the bill beside that of evicting nothing."
    )
    console.print("\n".join(wrap(said, width)))
    console.print()
    try:
        audit([str(stage.store)], ceiling=ceiling, floor=floor, head_tokens=head, keep=NOWHERE)
    except typer.Exit as done:
        return [f"the audit ended with exit code {done.exit_code}"] if done.exit_code else []
    return []


def _heading(text: str, width: int, console: Console) -> None:
    head = f"━━ {text} "
    console.print()
    console.print(Text(head + "━" * (width - len(head)), style="bold"), no_wrap=True)


def _next(stage: "Stage", limits: tuple[str, str, str], console: Console) -> None:
    """What to try next, as it can be copied into a shell."""
    from tenure.agent.tour import read_tour
    from tenure.cli.demo_screen import WIDEST
    from tenure.logs.places.tenure_store import sessions

    conversation = next(sessions(stage.store)).id
    store, page, model = (
        shlex.quote(str(each)) for each in (stage.store, stage.folder / "audit.html", f"scripted:{stage.script}")
    )
    ceiling, floor, head = limits
    tenure = _program()
    commands = (
        ("look at the window at any call, and at what left before it", [tenure, "context", store]),
        (
            "the audit as a page",
            [tenure, "audit", store, f"--ceiling {ceiling}", f"--floor {floor}", f"--head-tokens {head}", f"--html {page}"],
        ),
        (
            "go on with the session; with a key, --model anthropic:NAME or openai:NAME does without the script",
            [
                tenure,
                "run",
                shlex.quote(read_tour().more),
                f"--resume {conversation}",
                f"--store {store}",
                f"--model {model}",
                "--approve all",
            ],
        ),
    )
    width = min(console.width, WIDEST)
    _heading("next", width, console)
    for what, parts in commands:
        for line in wrap(what, width - 2):
            console.print(Text(f"# {line}", style="dim"))
        console.print(_command(parts, width), soft_wrap=True)


def _program() -> str:
    """How this program is called again: by its name where a shell finds it, else as it was called now."""
    called = sys.argv[0] if sys.argv else ""
    return "tenure" if shutil.which("tenure") or not os.access(called, os.X_OK) else shlex.quote(called)


def _command(parts: list[str], width: int) -> str:
    """A command in lines that a shell takes for one."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 > width:
            lines.append(f"  {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines)
