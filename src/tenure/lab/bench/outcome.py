"""What came of one task, as a file that lies beside the session's store.

Written by whoever runs the agent, in a container or not, and read by the report. Readers ignore fields that they do not know.
"""

from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.agent.events import Reason
from tenure.engine.record.entry import Usage
from tenure.errors import InputError

FILE: Final = "outcome.json"
STORE: Final = "session.db"
VERSION: Final = 1
LARGEST: Final = 10_000_000  # bytes


class NeedTally(Struct, frozen=True, kw_only=True):
    """Exact lines that a task needed, by where they were when they were needed; those of edits apart, which need lines in a row."""

    visible: int = 0
    routed: int = 0  # one recall away
    lost: int = 0  # looked for again
    edits: int = 0
    edits_gone: int = 0  # not in a row in the request

    def plus(self, place: Literal["visible", "routed", "lost"], *, is_edit: bool) -> "NeedTally":
        """With one more need."""
        counted = replace(self, **{place: getattr(self, place) + 1})
        return replace(counted, edits=self.edits + 1, edits_gone=self.edits_gone + (place != "visible")) if is_edit else counted


class TaskOutcome(Struct, frozen=True, kw_only=True):
    """One task in one session. Sums are of this task alone, sub-agents and summaries included; `first` and `last` are entries of the record."""

    version: int = VERSION
    task: str
    condition: str
    model: str
    session: str  # the conversation's id in the store
    store: str = STORE  # the store's file, from this one's folder
    ceiling: int = 0  # provider tokens
    first: int = 0  # the first entry of this task
    last: int = 0  # one behind its newest
    reason: Reason = "failed"
    why: str = ""
    text: str = ""  # the model's last words
    calls: int = 0  # of the model, the agent's own
    usage: Usage = Usage()
    usd: float = 0.0
    unpriced: int = 0  # calls whose money is not known, and not in the sum
    seconds: float = 0.0
    commits: int = 0  # views that were changed
    summaries: int = 0  # compactions that came about
    recalls: int = 0
    needs: NeedTally | None = None  # where the model of the benchmark keeps count
    solved: bool | None = None  # as a check of ours says; None: a harness decides


def write_outcome(outcome: TaskOutcome, path: Path) -> None:
    """Write it whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(outcome), indent=1) + b"\n")
    beside.replace(path)


def read_outcome(path: Path) -> TaskOutcome:
    """The outcome in a file. Raises InputError for what is none."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(str(path), "more than 10 MB", "an outcome")
        return msgspec.json.decode(path.read_bytes(), type=TaskOutcome)
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(str(path), f"is no outcome of a task ({error})", "what a benchmark wrote") from error
