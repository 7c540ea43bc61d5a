"""The tool `write`: a whole file."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.change import approval, difference
from tenure.agent.tools.files import TextFile, load_text, write_file
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.workspace import Workspace, sighted
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError


class WriteArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `write`."""

    path: Annotated[str, Meta(description="the file; folders on the way are made")]
    content: Annotated[str, Meta(description="all that it will hold")]


class Write(ArgumentTool[WriteArguments]):
    """Writes a file."""

    name = "write"
    takes = WriteArguments
    kind = ToolKind.DURABLE
    description = (
        "Write a whole file: a new one, or one that you have read and that has not changed since. To change a part of a file use edit."
        " Encoding, line ends and mode of a file that is there stay as they are."
    )

    def _needs(self, given: WriteArguments, workspace: Workspace) -> Approval | None:
        """Agreement, with the difference to look at; also where it cannot be done now, for by then it may be."""
        try:
            path = workspace.path(given.path)
        except InputError:
            return None
        shown = workspace.shown(path)
        try:
            before = load_text(path, shown).text
        except InputError:
            before = ""
        return approval(self.name, path, workspace, difference(before, given.content, shown))

    async def _run(self, given: WriteArguments, here: Here) -> ToolOutcome:
        workspace, content = here.workspace, given.content
        path = workspace.path(given.path)
        shown = workspace.shown(path)
        if len(content) > here.limits.write_chars:
            raise InputError(shown, f"{len(content):,} characters", f"at most {here.limits.write_chars:,}")
        before = _before(path, workspace)
        data, note = _data(content, before, shown)
        write_file(path, data, shown)
        workspace.wrote(path)
        if (sight := sighted(path)) is not None:
            workspace.see(path, sight)
        lines = content.count("\n") + (not content.endswith("\n") and bool(content))
        verb = "Overwrote" if before else "Wrote"
        return ToolOutcome(text=f"{verb} {shown}: {lines:,} line{'s' * (lines != 1)}, {len(data):,} bytes{note}.")


def _before(path: Path, workspace: Workspace) -> TextFile | None:
    """The file that would be overwritten; None when there is none. Raises InputError when it must be read first."""
    shown = workspace.shown(path)
    if path.is_dir():
        raise InputError(shown, "this is a folder", "a file")
    if not path.exists():
        return None
    why = workspace.unseen(path)
    if why == "was not read":
        raise InputError(shown, "it exists, and you have not read it in this session", "it to be read first, or edit")
    if why:
        raise InputError(shown, "it has changed since you read it", "it to be read again first")
    try:
        return load_text(path, shown)
    except InputError:  # an image that was looked at, and will be a text
        return TextFile(text="")


def _data(content: str, before: TextFile | None, shown: str) -> tuple[bytes, str]:
    if before is None:
        return content.encode(), ""
    new = structs.replace(before, text=content)
    try:
        return new.written(shown), ", with CRLF line ends as before" if new.crlf else ""
    except InputError:
        return content.encode(), f", as UTF-8: {before.encoding.codec} cannot hold all of it"
