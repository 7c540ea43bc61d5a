"""Playing the demo: a folder with the little project, the script and a store of its own; the agent on it; its audit; or a session's replay."""

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from textwrap import wrap
from typing import Final

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from tenure.agent import tour
from tenure.agent.approval import Mode
from tenure.agent.events import Requested, Retrying
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.agent.tools.glob import program as ripgrep_program
from tenure.apis.reply import Delta, WholeReply
from tenure.cli import words
from tenure.cli.audit import NOWHERE, audit
from tenure.cli.demo_screen import WIDEST, DemoScreen, Pace
from tenure.cli.options import DEFAULT_LIMIT, LimitOptions
from tenure.cli.replay import play as play_replay
from tenure.cli.replay import report
from tenure.engine.lifecycle.budget import Budget, parse_tokens
from tenure.engine.meter import statement
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import DEFAULT, policy_named
from tenure.engine.policies.cwl import Cwl
from tenure.errors import InputError
from tenure.lab.loading import load, source
from tenure.lab.replay import Options
from tenure.lab.source import SessionSource
from tenure.logs.places.here import here
from tenure.logs.places.known_places import usual_places
from tenure.logs.places.tenure_store import sessions
from tenure.models.scripted import ScriptedSpeaker, read_script
from tenure.models.speaker import Speaker

PREFIX: Final = "tenure-demo-"
INTERRUPTED: Final = 130  # exit code, as shells have it
COMMITS: Final = 2  # fewer are no demo of eviction
TRIED: Final = 20  # newest sessions looked at before making one
FEWEST_REPLIES: Final = 8  # a shorter session has nothing to show
FLOOR: Final = 8_000  # tokens; a smaller ceiling is all prologue and tail
_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "TMPDIR", "TZ")  # of the environment
_INTRODUCTION: Final = (
    "One session, {tasks} tasks, and a window of {ceiling:,} tokens: small, so that it fills while you watch. The model follows a script, so no key "
    "and no network is needed. All else is real: the agent, its tools, the files, what leaves the window, what comes back, and the bill at the "
    "prices of {model}.",
    "An episode is a stretch of work that the agent marks: it explores, or it acts on what was explored. When the window is full, episodes that are "
    "done leave it. The record keeps every byte, and the agent can recall it.",
)
_AUDIT: Final = (
    "The session is played again under each policy, this one's beside others: how far the window fills, what leaves, what of it was needed "
    "later (routed: a residue says how to get it back; lost: nothing does), and the bill beside that of evicting nothing."
)


class Stage(Struct, frozen=True, kw_only=True):
    """The folder of a demo: the project that the agent works on, its session, and the model's script."""

    folder: Path

    @property
    def project(self) -> Path:
        """What the agent works on."""
        return self.folder / "project"

    @property
    def store(self) -> Path:
        """The session, once it was played."""
        return self.folder / "demo.db"

    @property
    def script(self) -> Path:
        """What the model says."""
        return self.folder / "script.yaml"


def set_up(folder: Path | None) -> Stage:
    """The stage, in a new folder among the temporary ones unless one is named. Raises InputError for one that holds anything, and without ripgrep."""
    ripgrep_program()
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            "--folder", f"{str(folder)!r} is there and holds something", "an empty or a new folder: the demo writes into it"
        )
    stage = Stage(folder=(Path(tempfile.mkdtemp(prefix=PREFIX)) if folder is None else folder).resolve())
    stage.project.mkdir(parents=True)
    tour.read_tour().lay_out(stage.project)
    shutil.copyfile(tour.FILE, stage.script)
    return stage


class _PacedSpeaker:
    """A model that begins to answer only when all that came before has been shown. Mutable. Belongs to one event loop."""

    def __init__(self, inner: Speaker) -> None:
        self.name, self.dialect = inner.name, inner.dialect
        self._inner, self._shown = inner, asyncio.Event()

    def go_on(self) -> None:
        """All is shown: let it answer."""
        self._shown.set()

    async def speak(self, body: bytes, /) -> AsyncGenerator[Delta | WholeReply, None]:
        """The next reply, once it may come."""
        await self._shown.wait()
        self._shown.clear()
        async for piece in self._inner.speak(body):
            yield piece

    async def warm(self) -> None:
        """What the inner one needs."""
        await self._inner.warm()

    async def close(self) -> None:
        """Close the inner one."""
        await self._inner.close()


async def play(stage: Stage, console: Console | None = None, pace: Pace | None = None) -> DemoScreen | None:
    """Play all tasks; with a console they are shown, and the screen holds what there was to see."""
    script, show = read_script(stage.script), tour.read_tour()
    # The script's own pace does not hold: whoever shows it, paces it.
    model = _PacedSpeaker(ScriptedSpeaker(replace(script, playing=replace(script.playing, pace_s=0.0))))
    settings = Settings(
        folder=stage.project,
        model=f"scripted:{stage.script}",
        store=f"sqlite:///{stage.store}",
        budget=show.budget,
        policy=show.policy,
        mode=Mode.ALL,
        alone=True,
    )
    # The agent's commands see little, and the Python that runs this, wherever it is.
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    path = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), passed_on.get("PATH", os.defpath))))
    environment = passed_on | {"PATH": path, "HOME": str(stage.folder), "PYTHONDONTWRITEBYTECODE": "1"}
    world = World(environment=environment, home=stage.folder, today=None, speaker=lambda _: model)
    agent = await Agent.open(settings, world)
    screen = DemoScreen(console, pace or Pace(), stage.project, lambda: agent.context.session) if console is not None else None
    try:
        if screen is not None:
            await screen.introduce(
                "Tenure: an agent whose window is managed",
                [text.format(tasks=len(show.tasks), ceiling=show.ceiling, model=model.name) for text in _INTRODUCTION],
            )
        for number, task in enumerate(show.tasks, start=1):
            if screen is not None:
                await screen.task(number, len(show.tasks), task)
            async for event in agent.run(task):
                if screen is not None:
                    await screen.tell(event)
                if isinstance(event, Requested | Retrying):
                    model.go_on()
        if screen is not None:
            await screen.sum_up(_sums(agent, screen))
    finally:
        await agent.close()
    return screen


def _sums(agent: Agent, screen: DemoScreen) -> list[tuple[str, str]]:
    """What the demo came to; what is not as it should be joins the troubles."""
    ledger, index, seen = agent.ledger, agent.context.session.index, screen.seen
    wrong = agent.context.store.verify(agent.id)
    if wrong:
        seen.troubles.append(f"the record is damaged: {wrong}")
    if seen.commits < COMMITS:
        seen.troubles.append(f"{seen.commits} commits, expected at least {COMMITS}")
    if not seen.returned:
        seen.troubles.append("nothing that left came back")
    record = f"{index.tokens:,} tokens in {len(index):,} messages" + ("" if wrong else ", every hash checked: nothing is lost")
    peak = f"the largest request had {seen.largest:,} tokens; with nothing evicted it would have had {ledger.savings.peak:,}"
    return [("record", record), ("window", peak), ("bill", statement.line(ledger))]


def play_demo(folder: Path | None, console: Console, *, slow: bool) -> None:
    """The whole demo: the tasks, the session's audit, and what to try next. Raises typer.Exit where something went wrong."""
    stage = set_up(folder)
    pace = Pace(word=0.013, line=0.08, moment=1.1, wait=asyncio.sleep) if slow else Pace()
    try:
        screen = asyncio.run(play(stage, console, pace))
    except KeyboardInterrupt:
        console.print(f"\ninterrupted; what was played so far is kept: {stage.folder}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
    assert screen is not None
    budget, head = tour.read_tour().budget, str(screen.seen.head)
    # With the session's own limits and head an audit is of the same window.
    limits = LimitOptions(ceiling=str(budget.limit), floor=str(budget.floor_of(budget.limit)))
    troubles = screen.seen.troubles
    screen.heading("the audit of this very session")
    console.print("\n".join(wrap(_AUDIT, screen.width)))
    console.print()
    try:
        audit(sessions=[str(stage.store)], limits=limits, head_tokens=head, keep=NOWHERE)
    except typer.Exit as done:
        troubles += [f"the audit ended with exit code {done.exit_code}"] if done.exit_code else []
    if troubles:
        console.print()
        for trouble in troubles:
            console.print(f"The demo failed: {words.first_line(trouble, 300)}", style="red", soft_wrap=True)
        raise typer.Exit(1)
    screen.heading("next")
    _print_commands(stage, limits, head, console)


def _print_commands(stage: Stage, limits: LimitOptions, head: str, console: Console) -> None:
    """What to try next, as it can be copied into a shell."""
    conversation = next(sessions(stage.store)).id
    store, page, model = (
        shlex.quote(str(each)) for each in (stage.store, stage.folder / "audit.html", f"scripted:{stage.script}")
    )
    called = sys.argv[0] if sys.argv else ""  # by its name where a shell finds it, else as it was called now
    tenure = "tenure" if shutil.which("tenure") or not os.access(called, os.X_OK) else shlex.quote(called)
    audited = [f"--ceiling {limits.ceiling}", f"--floor {limits.floor}", f"--head-tokens {head}", f"--html {page}"]
    resumed = [f"--resume {conversation}", f"--store {store}", f"--model {model}", "--approve all"]
    width = min(console.width, WIDEST)
    for what, parts in (
        ("look at the window at any call, and at what left before it", [tenure, "context", store]),
        ("the audit as a page", [tenure, "audit", store, *audited]),
        (
            "go on with the session; with a key, --model anthropic:NAME or openai:NAME does without the script",
            [tenure, "run", shlex.quote(tour.read_tour().more), *resumed],
        ),
    ):
        for line in wrap(what, width - 2):
            console.print(Text(f"# {line}", style="dim"))
        lines = parts[:1]
        for part in parts[1:]:
            if len(lines[-1]) + len(part) + 3 > width:
                lines.append(f"  {part}")
            else:
                lines[-1] += f" {part}"
        console.print(" \\\n".join(lines), soft_wrap=True)


def replay_newest(console: Console, *, sample: bool) -> None:
    """Replay the newest agent session, or with `sample` one made on the spot, and show what would have left its window."""
    chosen = (None if sample else _newest(console)) or _made(console, sample=sample)
    index = load([chosen], o200k()).index
    usual = parse_tokens("ceiling", DEFAULT_LIMIT, of=None)
    # A session that never comes near the usual ceiling gets half of what it weighs.
    ceiling = usual if index.tokens > 1.5 * usual else max(FLOOR, index.tokens // 2)
    policy = Cwl() if any(episode.declared for episode in index.episodes) else policy_named(DEFAULT)
    run = play_replay([chosen], (chosen.path,), Options(budget=Budget(ceiling=ceiling), policy=policy), console)
    console.print(report(run))
    console.print("\nNo model was asked and nothing is lost: the record keeps all that left. Next:", soft_wrap=True)
    commands = [f"show {chosen.path}", f"replay {chosen.path} --ceiling 50k --json out.jsonl"]
    for command in [*commands, *([f"recall {chosen.path} {run.recallable}"] if run.recallable else [])]:
        console.print(f"  tenure {command}", soft_wrap=True)
    if run.end.violations:
        raise typer.Exit(1)


def _newest(console: Console) -> SessionSource | None:
    """The newest session in the usual places that can be read and is long enough; nothing is written to it."""
    for found, _ in zip(usual_places(here()), range(TRIED), strict=False):
        try:
            chosen = source(found.address)
            loaded = load([chosen], o200k())
        except InputError:
            continue  # someone else's file in a format of tomorrow: the next one will do
        if len(loaded.index.steps) >= FEWEST_REPLIES and loaded.index.tokens >= 2 * FLOOR:
            console.print(f"Replaying your newest {found.tool} session, read only: {found.address}", soft_wrap=True)
            return chosen
    return None


def _made(console: Console, *, sample: bool) -> SessionSource:
    """The session of the demo, played now; it stays, so that it can be looked into afterwards."""
    why = "" if sample else "No agent's session long enough was found in the usual places (tenure sessions). "
    console.print(
        f"{why}A session is made now: the scripted agent of `tenure demo` works on a small project, and marks its episodes."
    )
    stage = set_up(None)
    with console.status("working …"):
        asyncio.run(play(stage))
    return source(str(stage.store))
