"""`tenure bench`: the agent on benchmarks: sequences of ours, tasks of others' harnesses, and what N runs came to."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from tenure.cli.options import SESSION_HELP, STDOUT, BaseUrl, Fields, Model, argument, fields_of, flag, flat, option, output
from tenure.engine.lifecycle.budget import parse_tokens
from tenure.engine.record.visible import json_of, visible
from tenure.errors import InputError
from tenure.logs.places.files import read_file

if TYPE_CHECKING:
    from rich.console import Console

    from tenure.lab.bench.outcome import TaskOutcome
    from tenure.lab.bench.play import BenchTask, PlaySetup

T = TypeVar("T")
LARGEST_TASK: Final = 16 * 2**20  # bytes of its words
SAMPLE: Final = "sample"
CONDITIONS: Final = ("cwl", "compaction", "none")
FAILED: Final = 1
SCRIPTED: Final = (
    "The model followed a script, so that what was solved is the script's doing, and every run is the same: this shows that the benchmark works, and"
    " what the windows cost for the same words. It says nothing of how well a model does under either condition."
)

bench = typer.Typer(name="bench", help="Run benchmarks and report their results.", no_args_is_help=True, rich_markup_mode="rich")

Json = Annotated[str, option("FILE", "Write the report as JSON (- for standard output).", "--json")]


MaxSteps = Annotated[int, option("N", "Limit of model calls for one task; 0: none.", min=0)]
MaxUsd = Annotated[float, option("USD", "Limit of money for one task; 0: none.", min=0)]
Sandbox = Annotated[bool, flag("--sandbox", "Run commands in a sandbox (bubblewrap).")]


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """How a task is played."""

    base_url: BaseUrl = ""
    condition: Annotated[str, option("NAME", "How the window is managed: cwl, compaction, none or a policy.")] = "cwl"
    ceiling: Annotated[
        str, option("TOKENS", "Tokens of the window, such as 80k; under compaction, where a summary is written.")
    ] = "80k"
    max_steps: MaxSteps = 0
    max_usd: MaxUsd = 0.0
    fields: Fields = ""
    sandbox: Sandbox = False

    def setup(self, model: str) -> "PlaySetup":
        """How the agent is set up for it. Raises InputError for settings that cannot be."""
        from tenure.lab.bench.play import PlaySetup, condition_named

        return PlaySetup(
            model=model,
            condition=condition_named(self.condition),
            ceiling=parse_tokens("--ceiling", self.ceiling, of=None),
            base_url=self.base_url,
            most_calls=self.max_steps,
            most_usd=self.max_usd,
            sandbox=self.sandbox,
            fields=fields_of(self.fields),
        )


@bench.command()
def sequences(
    names: Annotated[
        list[str] | None,
        argument("NAME...", "canvas, hashes, kernel (default: these), canvas-long, hashes-long or kernel-long."),
    ] = None,
    model: Annotated[
        str, option("MODEL", "As for `tenure run`; sample plays a script and needs no key.", "--model", "-m")
    ] = SAMPLE,
    base_url: BaseUrl = "",
    condition: Annotated[list[str] | None, option("NAME", "May be repeated. Default: cwl, compaction and none.")] = None,
    runs: Annotated[int, option("N", "Run each this many times.", min=1)] = 1,
    ceiling: Annotated[str, option("TOKENS", "Tokens of the window. Default: each sequence's own.")] = "",
    max_steps: MaxSteps = 100,
    max_usd: MaxUsd = 0.0,
    fields: Fields = "",
    sandbox: Sandbox = False,
    repository: Annotated[
        Path | None, option("FOLDER", "Source files of long sequences. Default: Python's standard library.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Write sessions and outcomes to this new folder.")] = Path("bench-sequences"),
    json: Json = "",
) -> None:
    """Play the sequences of dependent tasks (CWL paper, section 6.5) under several conditions, and compare.

    The agent runs alone and every call of it is approved: with a real model use --sandbox, or a machine that may be lost.
    """
    from tenure.cli.bench_screen import line_of_run, line_of_task
    from tenure.lab.bench.long_sequence import SHAPES, long_sequence
    from tenure.lab.bench.sequence import run, sequence_named, sequence_names

    source = repository or Path(os.__file__).parent
    chosen = [long_sequence(name, source) if name in SHAPES else sequence_named(name) for name in names or sequence_names()]
    if out.exists() and any(out.iterdir()):
        raise InputError("--out", f"{str(out)!r} is not empty", "a new folder")
    played: list[tuple[Path, str]] = []
    for sequence in chosen:
        for name in condition or CONDITIONS:
            setup = PlayOptions(
                base_url=base_url,
                condition=name,
                ceiling=ceiling or str(sequence.ceiling),
                max_steps=max_steps,
                max_usd=max_usd,
                fields=fields,
                sandbox=sandbox,
            ).setup(model)
            for number in range(1, runs + 1):
                _print_aside(line_of_run(sequence.name, name, number, runs))
                folder = out / sequence.name / name / f"run-{number}"
                played.append((folder, sequence.name))
                asyncio.run(
                    run(
                        sequence,
                        setup,
                        folder,
                        on_task=lambda step, outcome, checked: _print_aside(line_of_task(step, outcome, checked)),
                    )
                )
    notes = [SCRIPTED] if model == SAMPLE or model.startswith("scripted:") else []
    notes.append(f"The sessions stay: tenure context {played[-1][0] / 'session.db'} looks into the last one.")
    _report(played, json, notes)


@bench.command()
def report(
    folders: Annotated[list[Path], argument("FOLDER...", "One folder per run, as a harness left it.")],
    benchmark: Annotated[str, option("NAME", "The benchmark's name. Default: the name of the parent folder.")] = "",
    resolved: Annotated[Path | None, option("FILE", "SWE-bench's report of solved instances.")] = None,
    json: Json = "",
) -> None:
    """Report the results of runs: mean and spread by condition, and how well the agent marked episodes."""
    _report([(folder, benchmark or Path(os.path.realpath(folder)).parent.name) for folder in folders], json, (), resolved)


@bench.command()
def measure(
    addresses: Annotated[list[str], argument("SESSION...", SESSION_HELP)],
    json: Json = "",
) -> None:
    """Measure the episode marks of stored sessions: overhead, wrong types, missing dependencies, repeated exploration."""
    from tenure.cli.bench_screen import marks_of
    from tenure.engine.meter.tokens import o200k
    from tenure.lab.bench.run_folders import measure_stored

    _put([(address, measure_stored(address, o200k())) for address in addresses], json, marks_of)


@bench.command()
@flat
def task(
    *,
    words: Annotated[Path, option("FILE", "A text file with the task.")],
    folder: Annotated[Path, option("FOLDER", "Write session and outcome here; a session found there is continued.")],
    model: Model,
    name: Annotated[str, option("NAME", "The task's name in reports.", "--task")] = "task",
    session: Annotated[str, option("ID", "The conversation's id.")] = "tenure",
    cwd: Annotated[Path | None, option("FOLDER", "The folder to work in.")] = None,
    options: PlayOptions,
) -> None:
    """Play one task of a benchmark, as harness adapters do in a container. Every call is approved.

    Exit codes: 0 the agent came to an end, 1 the model or the provider failed, 2 bad input, 130 stopped from outside.
    """
    from tenure.lab.bench.play import BenchTask

    setup = options.setup(model)
    text = read_file(words, LARGEST_TASK).decode("utf-8", "replace").replace("\0", "\ufffd")
    if not text.strip():
        raise InputError(str(words), "nothing to do", "a task in words")
    given = BenchTask(name=name, words=text, folder=(cwd or Path.cwd()).resolve())
    outcome = asyncio.run(_play(given, folder, session, setup))
    raise typer.Exit({"failed": FAILED, "cancelled": 130}.get(outcome.reason, 0))


@bench.command()
@flat
def swe_bench(
    *,
    instances: Annotated[Path, argument("FILE", "The dataset: JSON lines or one list.")],
    repositories: Annotated[Path, option("FOLDER", "Clones of the repositories, named owner__name.")],
    model: Model,
    only: Annotated[list[str] | None, option("ID", "Only this instance; may be repeated.")] = None,
    one_session: Annotated[bool, flag("--one-session", "Play all instances in one session.")] = False,
    options: PlayOptions,
    out: Annotated[
        Path, option("FOLDER", "Write predictions, sessions and workspaces here; an earlier run is continued.")
    ] = Path("swe-bench"),
) -> None:
    """Play instances of SWE-bench and write predictions for its harness."""
    from tenure.cli.bench_screen import line_of_instance
    from tenure.lab.bench.harnesses.swe_bench import PREDICTIONS, instances_in, predict

    wanted = [each for each in instances_in(instances) if not only or each.instance_id in only]
    setup = options.setup(model)
    out.mkdir(parents=True, exist_ok=True)
    asyncio.run(
        predict(
            wanted,
            setup,
            repositories,
            out,
            together=one_session,
            report=lambda instance, outcome, prediction: _print_aside(
                line_of_instance(instance.instance_id, outcome, prediction.model_patch)
            ),
        )
    )
    sys.stdout.write(visible(f"{out / PREDICTIONS}\n"))


async def _play(task: "BenchTask", folder: Path, session: str, setup: "PlaySetup") -> "TaskOutcome":
    """One task, its events printed on standard error, its outcome written as it goes."""
    from tenure.agent.settings import World
    from tenure.cli.run import stop_on_signals
    from tenure.cli.run_screen import Teller
    from tenure.lab.bench.outcome import FILE, STORE, write_outcome
    from tenure.lab.bench.play import play
    from tenure.store.store import Store

    folder.mkdir(parents=True, exist_ok=True)
    outcome = await play(
        task,
        setup,
        session,
        World(store=Store(f"sqlite:///{(folder / STORE).resolve()}")),
        on_event=Teller(sys.stdout, sys.stderr, quiet=False, live=False).tell,
        progress=lambda outcome: write_outcome(outcome, folder / FILE),
        on_open=stop_on_signals,
    )
    write_outcome(outcome, folder / FILE)
    return outcome


def _print_aside(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _report(folders: Sequence[tuple[Path, str]], json: str, notes: Iterable[str], resolved: Path | None = None) -> None:
    """Gather the runs and print their report."""
    from tenure.cli.bench_screen import tables
    from tenure.engine.meter.tokens import o200k
    from tenure.lab.bench.run_folders import report_of

    _put(report_of(folders, o200k(), notes, resolved=resolved), json, tables)


def _put(value: T, json: str, show: "Callable[[T, Console], None]") -> None:
    """Print a value as a table, or write it as JSON."""
    import msgspec

    from tenure.cli import words

    with output(json) as out:
        if out is not None:
            out.write(msgspec.json.format(json_of(value), indent=1) + b"\n")
    if json != STDOUT:
        show(value, words.screen())
