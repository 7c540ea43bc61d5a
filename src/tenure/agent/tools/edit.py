"""The tool `edit`: a part of a file for another."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, structs

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import parsed, readable, schema_of
from tenure.agent.tools.change import approval, difference
from tenure.agent.tools.files import near
from tenure.agent.tools.miss import lines_of, missed, several
from tenure.agent.tools.text_file import TextFile, loaded, stored
from tenure.agent.tools.tool import Here, Outcome
from tenure.agent.workspace import Workspace, sighted
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError

MOST: Final = 100  # replacements in one call


class Replacement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One text for another."""

    old: Annotated[str, Meta(description="as it stands in the file, with its indentation")]
    new: Annotated[str, Meta(description="what takes its place")]
    replace_all: Annotated[bool, Meta(description="wherever it stands, rather than once")] = False


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `edit`."""

    path: Annotated[str, Meta(description="the file")]
    old: Annotated[str, Meta(description="as it stands in the file, with its indentation, and only once")] | None = None
    new: Annotated[str, Meta(description="what takes its place")] | None = None
    replace_all: Annotated[bool, Meta(description="wherever it stands")] = False
    edits: Annotated[tuple[Replacement, ...], Meta(description="several at once instead, one after another: all or none")] = ()

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """What is to be replaced, in order. Raises InputError when that is not clear."""
        alone = self.old is not None or self.new is not None
        if alone and self.edits:
            raise InputError("edit", "both old and new and edits", "one of the two")
        if self.edits:
            if len(self.edits) > MOST:
                raise InputError("edits", f"{len(self.edits)} of them", f"at most {MOST}")
            return self.edits
        if self.old is None or self.new is None:
            raise InputError("edit", "no " + ("new" if self.old is not None else "old"), "old and new, or edits")
        return (Replacement(old=self.old, new=self.new, replace_all=self.replace_all),)


class Edit:
    """Replaces text in a file."""

    name = "edit"
    kind = ToolKind.DURABLE
    description = (
        "Replace text in a file: old, which must stand there exactly and only once, by new; or several with edits, all or none. Copy old from"
        " what you read, without line numbers, and only as much as makes it unique."
    )

    def __init__(self) -> None:
        self.schema: Mapping[str, Any] = schema_of(Asked)

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:
        """Agreement, with the differences to look at; also where it cannot be done now, for by then it may be."""
        asked = readable(Asked, arguments)
        if asked is None:
            return None
        try:
            path, replacements = workspace.path(asked.path), asked.replacements
        except InputError:
            return None
        return approval(self.name, path, workspace, _preview(path, replacements, workspace.shown(path)))

    async def run(self, arguments: str, here: Here) -> Outcome:
        """Where it was replaced."""
        asked = parsed(Asked, arguments, self.name)
        if isinstance(asked, Outcome):
            return asked
        try:
            return _edited(here.workspace.path(asked.path), asked.replacements, here)
        except InputError as error:
            return Outcome(text=f"edit: {error}{_hint(asked, here.workspace)}", error=True)


def _edited(path: Path, replacements: Sequence[Replacement], here: Here) -> Outcome:
    workspace = here.workspace
    shown = workspace.shown(path)
    file = loaded(path, shown)
    unseen = workspace.unseen(path)
    text, places = file.text, list[str]()
    for n, replacement in enumerate(replacements, 1):
        where = f"{shown}, edit {n} of {len(replacements)}" if len(replacements) > 1 else shown
        text, place = replaced(text, _in_style(replacement, file), where)
        places.append(place)
    data = structs.replace(file, text=text).written(shown)
    stored(path, data, shown)
    workspace.wrote(path)
    if not unseen and (sight := sighted(path)) is not None:
        workspace.see(path, sight)
    note = " It had changed since you read it: other parts of it may be new to you." if unseen == "changed" else ""
    return Outcome(text=f"Edited {shown}: {'; '.join(places)}.{note}")


def replaced(text: str, replacement: Replacement, where: str) -> tuple[str, str]:
    """The text with one replacement made, and where that was. Raises InputError that helps, and nothing is changed then."""
    old, new = replacement.old, replacement.new
    if not old:
        raise InputError(where, "old is empty", "a text that stands in the file; write makes or replaces a whole file")
    if old == new:
        raise InputError(where, "old and new are the same", "a change")
    lines = lines_of(text, old)
    if not lines:
        raise InputError(where, f"old is not in it: {missed(text, old)}")
    if len(lines) == 1:
        return text.replace(old, new, 1), f"line {lines[0]}"
    count = text.count(old)
    if not replacement.replace_all:
        raise InputError(where, f"old is not unique: {several(lines, max(count, len(lines)))}")
    return text.replace(old, new), f"{count:,} places, the first at line {lines[0]}"


def _in_style(replacement: Replacement, file: TextFile) -> Replacement:
    """The replacement with the line ends that the text is edited with."""
    if not file.crlf or ("\r" not in replacement.old and "\r" not in replacement.new):
        return replacement
    return structs.replace(replacement, old=replacement.old.replace("\r\n", "\n"), new=replacement.new.replace("\r\n", "\n"))


def _preview(path: Path, replacements: Sequence[Replacement], shown: str) -> str:
    """The differences that it would make; what cannot be made is shown as it was asked for."""
    try:
        file = loaded(path, shown)
    except InputError as error:
        return f"It cannot be done as things are: {error}"
    text, hunks = file.text, list[str]()
    for replacement in replacements:
        try:
            after, _ = replaced(text, _in_style(replacement, file), shown)
        except InputError as error:
            return "\n".join([*hunks, f"It cannot be done as things are: {error}"])
        hunks.append(difference(text, after, shown))
        text = after
    return "\n".join(hunks)


def _hint(asked: Asked, workspace: Workspace) -> str:
    try:
        path = workspace.path(asked.path)
    except InputError:
        return ""
    names = [] if path.exists() else near(path, workspace)
    return f". Did you mean {', '.join(names)}?" if names else ""
