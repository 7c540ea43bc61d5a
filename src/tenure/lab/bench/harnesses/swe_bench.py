"""SWE-bench: instances in, predictions out; its own harness judges them (an edge: it runs git and the agent).

    python -m swebench.harness.run_evaluation --predictions_path predictions.jsonl --dataset_name … --run_id …

Predictions are lines of `instance_id`, `model_name_or_path` and `model_patch` (swebench 5.0.2, `swebench/harness/utils.py` and `reporting.py`). Each
instance is a snapshot of its commit without the history behind or before it, so that nobody finds the answer in a later commit.
"""

import asyncio
import dataclasses
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.agent.settings import World
from tenure.errors import InputError
from tenure.lab.bench.outcome import FILE, STORE, TaskOutcome, write_outcome
from tenure.lab.bench.play import BenchTask, PlaySetup, play
from tenure.store.store import Store

PREDICTIONS: Final = "predictions.jsonl"
GIT_S: Final = 600.0
LARGEST: Final = 2_000_000_000  # bytes of a file of instances
WORDS: Final = """\
Resolve this issue in the repository that you are in. Find the cause and mend it in the code; do not change tests unless the issue asks for it. \
Packages may not be installed, so that not everything can be run.

<issue>
{problem}
</issue>"""
_WHO: Final = (
    "-c",
    "user.name=tenure",
    "-c",
    "user.email=tenure@localhost",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "core.hooksPath=/dev/null",
)


class Instance(Struct, frozen=True, kw_only=True):
    """One issue. Other fields of a dataset are not looked at: the patch and the tests are the answer."""

    instance_id: str
    repo: str
    base_commit: str
    problem_statement: str


class Prediction(Struct, frozen=True, kw_only=True):
    """What SWE-bench's harness takes."""

    instance_id: str
    model_name_or_path: str
    model_patch: str


def instances_in(path: Path) -> tuple[Instance, ...]:
    """The instances of a dataset's file: JSON lines, or one list. Raises InputError naming the line that is none."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(str(path), "more than 2 GB", "a dataset of instances")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})") from error
    if data.lstrip()[:1] == b"[":
        return _decoded(data, list[Instance], str(path))
    lines = [(n, line) for n, line in enumerate(data.splitlines(), 1) if line.strip()]
    return tuple(_decoded(line, Instance, f"{path}:{n}") for n, line in lines)


def resolved_in(path: Path) -> frozenset[str]:
    """The instances that SWE-bench's report calls resolved. Raises InputError for what is no report."""
    try:
        found = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(str(path), f"is no JSON ({error})", "a report of SWE-bench's harness") from error
    ids = cast(dict[str, Any], found).get("resolved_ids") if isinstance(found, dict) else None
    if not isinstance(ids, list):
        raise InputError(str(path), "has no resolved_ids", "a report of SWE-bench's harness")
    return frozenset(map(str, cast(list[object], ids)))


async def predict(
    instances: Sequence[Instance],
    setup: PlaySetup,
    repositories: Path,
    folder: Path,
    world: World | None = None,
    *,
    together: bool = False,
    report: Callable[[Instance, TaskOutcome, Prediction], object] | None = None,
) -> tuple[Prediction, ...]:
    """Play every instance and write its prediction, into `folder`; `together` in one session over all. What has a prediction already is passed over.

    `repositories` holds clones, `owner__name` each. Raises InputError for a repository or commit that is not there.
    """
    done = {each.instance_id: each for each in _predictions(folder / PREDICTIONS)}
    for instance in instances:
        if instance.instance_id in done:
            continue
        place = folder / "workspaces" / instance.instance_id
        base = await asyncio.to_thread(snapshot, repositories, instance, place)
        within = folder / instance.instance_id
        within.mkdir(parents=True, exist_ok=True)
        store = folder / STORE if together else within / STORE
        outcome = await play(
            BenchTask(name=instance.instance_id, words=WORDS.format(problem=instance.problem_statement), folder=place),
            setup,
            "swe-bench" if together else instance.instance_id,
            dataclasses.replace(world or World(), store=Store(f"sqlite:///{store}")),
        )
        outcome = replace(outcome, store=os.path.relpath(store, within))
        write_outcome(outcome, within / FILE)
        patch = await asyncio.to_thread(patch_since, base, place)
        prediction = Prediction(instance_id=instance.instance_id, model_name_or_path=_name(setup), model_patch=patch)
        with (folder / PREDICTIONS).open("ab") as file:
            file.write(msgspec.json.encode(prediction) + b"\n")
        done[instance.instance_id] = prediction
        if report is not None:
            report(instance, outcome, prediction)
    return tuple(done[each.instance_id] for each in instances)


def snapshot(repositories: Path, instance: Instance, place: Path) -> str:
    """Lay out an instance's commit in a new folder, as a repository of one commit; its id."""
    source = repositories / instance.repo.replace("/", "__")
    if not source.is_dir():
        raise InputError(str(source), "no such repository", f"a clone of {instance.repo}")
    if place.exists() and any(place.iterdir()):
        raise InputError(str(place), "is not empty", "a new folder: a task was broken off there, remove it to begin again")
    place.mkdir(parents=True, exist_ok=True)
    index = {"GIT_INDEX_FILE": str(place.parent / f"{place.name}.index")}
    _git(source, "read-tree", instance.base_commit, more=index)
    _git(source, f"--work-tree={place.resolve()}", "checkout-index", "--all", "--force", more=index)
    Path(index["GIT_INDEX_FILE"]).unlink(missing_ok=True)
    _git(place, "init", "--quiet")
    _git(place, "add", "--all", "--force")
    _git(place, *_WHO, "commit", "--quiet", "--allow-empty", "--message", "as it was")
    return _git(place, "rev-parse", "HEAD").strip()


def patch_since(base: str, place: Path) -> str:
    """All that changed since a commit, committed or not, new files included, as `git apply` takes it."""
    _git(place, "add", "--all")
    return _git(place, "diff", "--cached", "--binary", "--no-color", "--no-ext-diff", base)


def _predictions(path: Path) -> Iterator[Prediction]:
    if path.is_file():
        for n, line in enumerate(path.read_bytes().splitlines(), 1):
            if line.strip():
                yield _decoded(line, Prediction, f"{path}:{n}")


def _name(setup: PlaySetup) -> str:
    """By which results name the run: the harness makes folders of it."""
    return f"tenure-{setup.condition.name}-{setup.model}".replace(":", "-").replace("/", "-")


def _decoded(data: bytes, kind: Any, where: str) -> Any:
    try:
        found = msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(where, str(error), "instance_id, repo, base_commit and problem_statement, or a prediction") from error
    return tuple(cast(list[Any], found)) if isinstance(found, list) else found


def _git(folder: Path, *arguments: str, more: dict[str, str] | None = None) -> str:
    """What git prints. Raises InputError with its own words."""
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", **(more or {})}
    try:
        done = subprocess.run(  # noqa: S603 - git, on the user's own repositories
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - whichever git the user has
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(str(folder), f"git cannot be run ({error})", "git on the path") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(str(folder), f"git {arguments[0]}: {said[-1] if said else 'failed'}", "a repository with that commit")
    return done.stdout.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()
