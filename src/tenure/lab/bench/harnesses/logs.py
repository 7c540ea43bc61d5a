"""What a harness brings back from a container: the outcome and the session, read on the host (an edge)."""

import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import InputError, StoreError
from tenure.lab.bench.harnesses.command import FOLDER
from tenure.lab.bench.harnesses.trajectory import NAME, trajectory
from tenure.lab.bench.outcome import FILE, STORE, Outcome, read_outcome

TRAJECTORY: Final = "trajectory.json"
LOCK: Final = "in-use"


def own_version() -> str:
    """The version of this program."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "unknown"


def outcome_in(logs: Path) -> Outcome | None:
    """What came of the task, from a harness's folder of logs; None where nothing did."""
    try:
        return read_outcome(logs / FOLDER / FILE)
    except InputError:
        return None


def write_trajectory(logs: Path, outcome: Outcome) -> Path | None:
    """Tell the task as an ATIF trajectory beside the logs; None where its session is not there, or cannot be read."""
    from tenure.store.store import Store

    file = logs / FOLDER / STORE
    if not file.is_file():
        return None
    try:
        with Store(f"sqlite:///{file}", read_only=True) as store:
            entries = tuple(store.entries(outcome.session, outcome.first, None))
            spent = {each.n: each.spent for each in store.usages(outcome.session)}
    except (InputError, StoreError):
        return None
    steps = trajectory(
        entries, spent, session=outcome.session, model=outcome.model, version=own_version(), extra=summary_of(outcome)
    )
    path = logs / TRAJECTORY
    path.write_bytes(msgspec.json.format(msgspec.json.encode(steps), indent=1))
    return path


def summary_of(outcome: Outcome) -> dict[str, Any]:
    """An outcome's figures, for a harness that keeps what it does not know."""
    kept = (
        "task",
        "condition",
        "session",
        "ceiling",
        "first",
        "last",
        "reason",
        "why",
        "calls",
        "commits",
        "summaries",
        "recalls",
    )
    return {name: getattr(outcome, name) for name in kept}


@contextmanager
def held(folder: Path) -> Generator[Path]:
    """A session's folder on the host, for one task at a time. Raises InputError while another has it: tasks of one session cannot overlap."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / LOCK
    try:
        lock.touch(exist_ok=False)
    except FileExistsError as error:
        raise InputError(
            str(folder),
            "another task is using this session",
            f"one at a time (-n 1), or {LOCK} to be removed where that one was killed",
        ) from error
    try:
        yield folder
    finally:
        lock.unlink(missing_ok=True)


def kept(folder: Path, fetch: Callable[[Path], object]) -> None:
    """Bring a session's files into its folder, whole or not at all: `fetch` fills a new folder beside it."""
    fresh = Path(tempfile.mkdtemp(prefix="session-", dir=folder))
    try:
        fetch(fresh)
        take(folder, fresh)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def take(folder: Path, fresh: Path) -> None:
    """Put the files of a session that were brought into `fresh` in the place of those in `folder`."""
    if not (fresh / STORE).is_file():
        return
    for stale in session_files(folder):
        stale.unlink()
    for path in session_files(fresh):
        path.replace(folder / path.name)


def session_files(folder: Path) -> list[Path]:
    """A session's store, and what SQLite keeps beside it until it is closed."""
    return sorted(path for path in folder.glob(f"{STORE}*") if path.is_file())
