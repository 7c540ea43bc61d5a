"""One eviction pass far over budget: ours beside those of peers, on the same transcripts, in one run.

The target is a tenth of the transcript. Peers are installed on first use into a separate environment, `bench/.venv-peers`, and
measured there by `peer_side/measure.py`; one that does not install is skipped, and the output says so. Ours comes from
`eviction.ours(drafts) -> seconds`, which takes the drafts of one transcript and times one pass down to the same target.
"""

import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import Draft
from transcripts import SIZES, episodes, tokens

HERE: Final = Path(__file__).parent
VENV: Final = HERE / ".venv-peers"
PYTHON: Final = VENV / ("Scripts" if sys.platform == "win32" else "bin") / "python"
TIMEOUT_S: Final = 60


class Peer(Struct, frozen=True, kw_only=True):
    """A package and those of its rules that need no model."""

    package: str
    rules: tuple[tuple[str, str], ...]  # as in peer_side/measure.py, and as printed


PEERS: Final = (
    Peer(
        package="langchain",
        rules=(
            ("langchain_clear", "ContextEditing"),
            ("langchain_clear_at_least", "ContextEditing, clear_at_least"),
            ("langchain_trim", "trim_messages"),
        ),
    ),
    Peer(package="haystack-ai", rules=(("haystack_prune", "ToolResultPruning"),)),
    Peer(package="pydantic-ai-harness", rules=(("harness_tiers", "clear, then slide"),)),
    Peer(package="strands-agents", rules=(("strands_window", "sliding window"),)),
)


class Figure(Struct, frozen=True):
    """What one pass took and left."""

    seconds: float
    tokens: int

    def __str__(self) -> str:
        return f"{self.seconds * 1000:>10,.1f} ms {self.tokens:>9,}"


def main() -> None:
    """Print the table."""
    transcripts = [tuple(episodes(size)) for size in SIZES]
    print("time of one pass to a tenth, and tokens (characters / 4) left\n")
    _print_row("", "", (f"{size:,} messages".rjust(23) for size in SIZES))
    _print_row("", "target", (f"{tokens(drafts) // 10:>23,}" for drafts in transcripts))
    _print_ours(transcripts)
    for peer in PEERS:
        if problem := _install(peer.package):
            print(f"{peer.package}: skipped, it does not install here ({problem})")
            continue
        for rule, label in peer.rules:
            _print_row(f"{peer.package} {_version(peer.package)}", label, _measured(rule, transcripts))


def _print_row(name: str, rule: str, cells: Iterator[str]) -> None:
    print(f"{name:<27} {rule:<31}", end="")
    for cell in cells:
        print(f" {cell:>23}", end="", flush=True)
    print()


def _print_ours(transcripts: list[tuple[Draft, ...]]) -> None:
    try:
        ours = import_module("eviction").ours
    except ImportError:
        print("tenure: engine benchmark not found")
        return
    _print_row("tenure", "", (f"{ours(drafts) * 1000:,.1f} ms" for drafts in transcripts))


def _install(package: str) -> str:
    """Install once; returns why it could not, or nothing."""
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    if _version(package):
        return ""
    done = _run([PYTHON, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--retries", "1", package])
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def _version(package: str) -> str:
    return _run([PYTHON, "-c", f"from importlib.metadata import version; print(version({package!r}))"]).stdout.strip()


def _measured(rule: str, transcripts: list[tuple[Draft, ...]]) -> Iterator[str]:
    """One cell per size; once a rule has run out of time, larger sizes are not tried."""
    for drafts in transcripts:
        command = [PYTHON, HERE / "peer_side" / "measure.py", rule, tokens(drafts) // 10]
        try:
            done = _run(command, msgspec.json.encode(drafts).decode(), TIMEOUT_S)
        except subprocess.TimeoutExpired:
            yield f"over {TIMEOUT_S} s"
            return
        yield _cell(done)


def _cell(done: "subprocess.CompletedProcess[str]") -> str:
    if done.returncode:
        return "failed: " + done.stderr.strip().rpartition("\n")[2][:40]
    return str(msgspec.convert(json.loads(done.stdout), Figure))


def _run(command: list[object], stdin: str = "", timeout_s: float | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*map(str, command)], input=stdin, capture_output=True, encoding="utf-8", timeout=timeout_s, check=False
    )


if __name__ == "__main__":
    main()
