"""Sequences of tasks that depend on each other (CWL paper, section 6.5), each a folder of `examples/sequences`.

`sequence.yaml` has the tasks and what a model that solves them would say, `project/` the files they start from, `checks/TASK.py` the program that is run in
the folder after a task and ends with 0 when it is solved.
"""

import shutil
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert

from tenure.engine.record.tools import DELIMITER
from tenure.errors import InputError
from tenure.examples import example
from tenure.models.scripted import Script, read_yaml, script_of

FOLDER: Final = "sequences"


class Step(Struct, frozen=True, kw_only=True):
    """A task of a sequence."""

    name: str
    words: str


class Sequence(Struct, frozen=True, kw_only=True):
    """A little project, tasks on it, and the script of a model that solves them."""

    stands_for: str  # what the paper ran
    ceiling: int  # provider tokens; small, as the project is
    model: str  # as whom the script is billed
    dialect: str
    steps: tuple[Step, ...]
    replies: tuple[dict[str, Any], ...]
    folder: Path

    @property
    def name(self) -> str:
        """By which the command line knows it."""
        return self.folder.name

    def check(self, step: Step) -> Path:
        """The program that decides whether a task is solved."""
        return self.folder / "checks" / f"{step.name}.py"

    def lay_out(self, folder: Path) -> None:
        """Copy the project into an empty folder."""
        shutil.copytree(self.folder / "project", folder, dirs_exist_ok=True)

    def script(self, *, episodes: bool) -> Script:
        """What a model says. Without `episodes` it is not offered `delimiter`: those calls are left out, and replies that had nothing else."""
        replies = self.replies if episodes else [reply for each in self.replies if (reply := _without_marks(each))]
        return script_of({"model": self.model, "dialect": self.dialect, "replies": list(replies)}, self.name)


def sequence_names() -> tuple[str, ...]:
    """The sequences there are."""
    return tuple(sorted(path.parent.name for path in example(FOLDER).glob("*/sequence.yaml")))


def sequence_named(name: str) -> Sequence:
    """The sequence of that name. Raises InputError, naming those there are."""
    if name not in sequence_names():
        raise InputError("sequence", repr(name), "one of " + ", ".join(sequence_names()))
    folder = example(FOLDER) / name
    return convert(
        {**read_yaml(folder / "sequence.yaml"), "folder": str(folder)}, Sequence, dec_hook=lambda kind, text: kind(text)
    )


def _without_marks(reply: dict[str, Any]) -> dict[str, Any]:
    calls = [call for call in reply.get("calls", ()) if call["name"] != DELIMITER]
    return {**reply, "calls": calls} if calls or reply.get("text") else {}
