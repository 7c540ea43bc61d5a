"""A sequence of tasks that depend on each other, on files that are laid out for it (CWL paper, section 6.5)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tenure.models.scripted import Script, parse_script

SCRIPTED: Final = {"model": "claude-sonnet-4-5", "dialect": "anthropic"}  # as whom the sample script is billed
DELIMITER: Final = "delimiter"


class Step(Struct, frozen=True, kw_only=True):
    """A task of a sequence. `check` is a Python program that is run in the folder and ends with 0 when the task is solved."""

    name: str
    words: str
    check: str


class Sequence(Struct, frozen=True, kw_only=True):
    """A little project, tasks on it, and what a model that solves them would say."""

    name: str
    stands_for: str  # what the paper ran
    files: Mapping[str, str]
    steps: tuple[Step, ...]
    replies: tuple[dict[str, Any], ...]
    ceiling: int  # provider tokens; small, as the project is

    def lay_out(self, folder: Path) -> None:
        """Write the project into an empty folder."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def script(self, *, episodes: bool) -> Script:
        """The sample script. A model that is not offered `delimiter` does not call it: without episodes those calls are left out."""
        told = self.replies if episodes else tuple(filter(_says, map(_plain, self.replies)))
        return parse_script(json.dumps({**SCRIPTED, "replies": told}), self.name)


def call(tool: str, /, **arguments: object) -> dict[str, Any]:
    """A call in a script."""
    return {"name": tool, "arguments": arguments}


def says(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    """A reply in a script."""
    return {"text": text, "calls": list(calls)}


def begin(name: str, *dependencies: str) -> dict[str, Any]:
    """The call that begins an episode: an act where it depends on something."""
    kind: dict[str, object] = {"type": "act", "dependencies": list(dependencies)} if dependencies else {"type": "expl"}
    return call(DELIMITER, action="start", name=name, **kind)


def end(description: str = "") -> dict[str, Any]:
    """The call that ends one."""
    return call(DELIMITER, action="end", **({"description": description} if description else {}))


def _plain(reply: dict[str, Any]) -> dict[str, Any]:
    return {**reply, "calls": [each for each in reply["calls"] if each["name"] != DELIMITER]}


def _says(reply: dict[str, Any]) -> bool:
    return bool(reply["calls"] or reply["text"])
