"""The tool `ls`: what is in a folder."""

import os
import stat
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.files import kind_of, reason, suggestion
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind
from tenure.engine.record.visible import visible
from tenure.errors import InputError

MOST: Final = 1_000  # entries shown


class LsArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `ls`."""

    path: Annotated[str, Meta(description="the folder; the workspace when left out")] = "."


class Ls(ArgumentTool[LsArguments]):
    """Lists a folder."""

    name = "ls"
    takes = LsArguments
    kind = ToolKind.BULK
    description = (
        "List one folder: its folders, then its files with their sizes in bytes, hidden ones too. To find files by name use glob."
    )

    def _needs(self, given: LsArguments, workspace: Workspace) -> Approval | None:
        return looks(self.name, given.path, workspace)

    async def _run(self, given: LsArguments, here: Here) -> ToolOutcome:
        try:
            path = here.workspace.path(given.path)
            if path.is_dir() or not path.exists():
                return ToolOutcome(text=listing(path, here))
            why = f"{here.workspace.shown(path)} is {kind_of(path.stat().st_mode) or 'a file'}, not a folder"
        except FileNotFoundError:
            why = f"there is no folder {given.path}{suggestion(given.path, here.workspace)}"
        except OSError as error:
            why = f"{given.path}: {reason(error)}"
        return ToolOutcome(text=f"ls: {why}", error=True)


def looks(tool: str, path: str, workspace: Workspace) -> Approval | None:
    """What a look at a path needs: nothing, unless keys are kept there."""
    try:
        at = workspace.path(path)
    except InputError:
        return None
    if not workspace.is_secret(at):
        return None
    act = f"{tool} {workspace.shown(at)}"
    return Approval(tool=tool, act=CallEffect.OUTSIDE, summary=act, reason="keys or passwords are kept there", exact=act)


def listing(path: Path, here: Here) -> str:
    """The entries of a folder as lines. Raises OSError."""
    with os.scandir(path) as entries:
        names = sorted((not _is_folder(entry), entry.name) for entry in entries)
    bounds = here.workspace if here.workspace.holds(path) else None
    lines = [_line(path / name, is_folder=not last, bounds=bounds) for last, name in names[:MOST]]
    rest = [f"[{len(names) - MOST:,} more of {len(names):,}; glob finds by name]"] if len(names) > MOST else []
    return "\n".join([*lines, *rest]) or "[empty folder]"


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or leads to one; links in a circle lead nowhere."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _line(path: Path, *, is_folder: bool, bounds: Workspace | None) -> str:
    name = one_line(os.fsencode(path.name).decode("utf-8", "replace"))
    try:
        facts = path.lstat()
    except OSError:
        return f"{name} (gone)"
    if stat.S_ISLNK(facts.st_mode):
        target = one_line(os.fsencode(path.readlink()).decode("utf-8", "replace"))
        outside = "" if bounds is None or bounds.holds(path) else ", outside the workspace"
        return f"{name}{'/' * is_folder} -> {target}{outside}"
    kind = kind_of(facts.st_mode)
    return f"{name}/" if is_folder else f"{name} ({kind})" if kind else f"{name} {facts.st_size:,}"


def one_line(name: str) -> str:
    """A file's name, which may hold anything, as it can stand in a line."""
    return visible(name).replace("\n", "\u240a").replace("\t", "\u2409")
