"""What a harness brings back from a container: the outcome and the session, read on the host (an edge), and as the trajectory that it wants.

The trajectory is ATIF-v1.7, as `harbor.models.trajectories` of Harbor 0.25.0 takes it: forbidding unknown fields, steps counted from 1, results only of
calls of their step.
"""

import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Block, Entry, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult
from tenure.errors import InputError, StoreError
from tenure.lab.bench.harnesses.command import FOLDER
from tenure.lab.bench.outcome import FILE, STORE, TaskOutcome, read_outcome

TRAJECTORY: Final = "trajectory.json"
LOCK: Final = "in-use"
_SUMMARY: Final = tuple("task condition session ceiling first last reason why calls commits summaries recalls".split())
ATIF: Final = "ATIF-v1.7"
NAME: Final = "tenure"
_SOURCES: Final = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "agent"}

TrajectoryStep = dict[str, Any]


def own_version() -> str:
    """The version of this program."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "unknown"


def outcome_in(logs: Path) -> TaskOutcome | None:
    """What came of the task, from a harness's folder of logs; None where nothing did."""
    try:
        return read_outcome(logs / FOLDER / FILE)
    except InputError:
        return None


def write_trajectory(logs: Path, outcome: TaskOutcome) -> Path | None:
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


def summary_of(outcome: TaskOutcome) -> dict[str, Any]:
    """An outcome's figures, for a harness that keeps what it does not know."""
    return {name: getattr(outcome, name) for name in _SUMMARY}


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


def trajectory(
    entries: Sequence[Entry], spent: Mapping[int, Spent], *, session: str, model: str, version: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The entries as steps. `spent` has what was reported, by entry; `extra` goes with the whole."""
    steps: list[TrajectoryStep] = []
    open_calls: dict[str, TrajectoryStep] = {}
    for entry in entries:
        if entry.role is Role.TOOL or _only_results(entry):
            _answered(entry, open_calls, steps)
            continue
        step = _step(entry, spent.get(entry.n), model)
        steps.append(step)
        for call in step.get("tool_calls", ()):
            open_calls[call["tool_call_id"]] = step
        _answered(entry, open_calls, steps)
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
    found = [each for entry in entries if (each := spent.get(entry.n)) is not None]
    return {
        "schema_version": ATIF,
        "session_id": session,
        "agent": {"name": NAME, "version": version, "model_name": model},
        "steps": steps or [{"step_id": 1, "source": "user", "message": ""}],
        "final_metrics": {
            "total_prompt_tokens": sum(each.usage.prompt for each in found),
            "total_completion_tokens": sum(each.usage.output for each in found),
            "total_cached_tokens": sum(each.usage.cache_read for each in found),
            "total_cost_usd": sum((each.usd or 0.0 for each in found), 0.0),
            "total_steps": max(1, len(steps)),
        },
        "extra": dict(extra),
    }


def _step(entry: Entry, spent: Spent | None, model: str) -> TrajectoryStep:
    step: TrajectoryStep = {"step_id": 0, "source": _SOURCES.get(entry.role, "system"), "message": _words(entry.blocks)}
    if entry.at:
        step["timestamp"] = entry.at
    if entry.role is not Role.ASSISTANT:
        return step
    step["model_name"] = entry.model or model
    if thought := "\n".join(block.text for block in entry.blocks if isinstance(block, Thinking) and block.text):
        step["reasoning_content"] = thought
    if calls := [block for block in entry.blocks if isinstance(block, ToolCall)]:
        step["tool_calls"] = [
            {"tool_call_id": call.call_id, "function_name": call.name, "arguments": _arguments(call.arguments)} for call in calls
        ]
    if spent is not None:
        used = spent.usage
        step["metrics"] = {
            "prompt_tokens": used.prompt,
            "completion_tokens": used.output,
            "cached_tokens": used.cache_read,
            **({"cost_usd": spent.usd} if spent.usd is not None else {}),
            **({"extra": {"cache_write_tokens": used.cache_write}} if used.cache_write else {}),
        }
    return step


def _answered(entry: Entry, open_calls: dict[str, TrajectoryStep], steps: list[TrajectoryStep]) -> None:
    """Results go to the step that made the call; a result of no call stands at the newest step."""
    for block in entry.blocks:
        if not isinstance(block, ToolResult):
            continue
        step = open_calls.pop(block.call_id, None)
        result: dict[str, Any] = {"content": block.text}
        if step is not None:
            result["source_call_id"] = block.call_id
        elif steps:
            step = steps[-1]
        if step is not None:
            if block.error:
                result["extra"] = {"is_error": True}
            step.setdefault("observation", {"results": []})["results"].append(result)


def _only_results(entry: Entry) -> bool:
    return bool(entry.blocks) and all(isinstance(block, ToolResult) for block in entry.blocks)


def _words(blocks: Sequence[Block]) -> str:
    said = [block.text for block in blocks if isinstance(block, Text | Media | Opaque) and block.text]
    return "\n".join(said)


def _arguments(text: str) -> dict[str, Any]:
    """A call's arguments as an object, which is what the format takes; what is none stands under `raw`."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"raw": text}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {"raw": text}
