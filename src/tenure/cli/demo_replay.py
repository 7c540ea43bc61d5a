"""What `tenure demo --replay` shows: your newest recorded session under a budget, without a model, a key or a network."""

import asyncio
from typing import Final

import typer
from rich.console import Console

from tenure.cli.asked import DEFAULT_CEILING
from tenure.cli.replay import Run, play, report
from tenure.engine.lifecycle.budget import Budget, parse_tokens
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import DEFAULT, policy_named
from tenure.engine.policies.cwl import Cwl
from tenure.errors import InputError
from tenure.lab.loading import load, source
from tenure.lab.replay import Options, Source
from tenure.logs.places.here import Surroundings, here
from tenure.logs.places.places import usual_places

TRIED: Final = 20  # newest sessions looked at before making one
FEWEST_REPLIES: Final = 8  # a shorter session has nothing to show
FLOOR: Final = 8_000  # tokens; a smaller ceiling is all prologue and tail


def replay_newest(console: Console, *, sample: bool) -> None:
    """Replay the newest agent session, or with `sample` one made on the spot, and show what would have left its window."""
    chosen = (None if sample else _newest(here(), console)) or _made(console, asked=sample)
    ceiling = _ceiling(chosen)
    options = Options(budget=Budget(ceiling=ceiling), policy=Cwl() if _is_marked(chosen) else policy_named(DEFAULT))
    run = play([chosen], (chosen.path,), options, console)
    console.print(report(run))
    console.print(_next(run, chosen.path), soft_wrap=True)
    if run.summary and run.summary.violations:
        raise typer.Exit(1)


def _newest(where: Surroundings, console: Console) -> Source | None:
    """The newest session in the usual places that can be read and is long enough; nothing is written to it."""
    for found, _ in zip(usual_places(where), range(TRIED), strict=False):
        try:
            chosen = source(found.address)
            loaded = load([chosen], o200k())
        except InputError:
            continue  # someone else's file in a format of tomorrow: the next one will do
        if len(loaded.index.steps) >= FEWEST_REPLIES and loaded.index.tokens >= 2 * FLOOR:
            console.print(f"Replaying your newest {found.tool} session, read only: {found.address}", soft_wrap=True)
            return chosen
    return None


def _made(console: Console, *, asked: bool) -> Source:
    """The session of the demo, played now; it stays, so that it can be looked into afterwards."""
    from tenure.cli.demo_stage import play_unseen, set_up

    why = "" if asked else "No agent's session long enough was found in the usual places (tenure sessions). "
    console.print(
        f"{why}A session is made now: the scripted agent of `tenure demo` works on a small project, and marks its episodes."
    )
    stage = set_up(None)
    with console.status("working …"):
        asyncio.run(play_unseen(stage))
    return source(str(stage.store))


def _ceiling(chosen: Source) -> int:
    """The default ceiling; for a session that never comes near it, half of what it weighs."""
    usual = parse_tokens("ceiling", DEFAULT_CEILING, of=None)
    weight = load([chosen], o200k()).index.tokens
    return usual if weight > 1.5 * usual else max(FLOOR, weight // 2)


def _is_marked(chosen: Source) -> bool:
    """Whether the agent marked episodes: then the policy that reads the marks is the one to show."""
    return any(episode.declared for episode in load([chosen], o200k()).index.episodes)


def _next(run: Run, path: str) -> str:
    """What to try next."""
    lines = [
        "",
        "No model was asked and nothing is lost: the record keeps all that left. Next:",
        f"  tenure show {path}",
        f"  tenure replay {path} --ceiling 50k --json out.jsonl",
    ]
    if run.recallable:
        lines.append(f"  tenure recall {path} {run.recallable}")
    return "\n".join(lines)
