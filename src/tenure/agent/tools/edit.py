"""The tool `edit`: a part of a file for another."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct, structs

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.change import approval, difference
from tenure.agent.tools.files import TextFile, load_text, suggestion, write_file
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.workspace import Workspace, sighted
from tenure.engine.record.tools import ToolKind
from tenure.engine.record.visible import visible
from tenure.errors import InputError

MOST: Final = 100  # replacements in one call


class Replacement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One text for another."""

    old: Annotated[str, Meta(description="as it stands in the file, with its indentation")]
    new: Annotated[str, Meta(description="what takes its place")]
    replace_all: Annotated[bool, Meta(description="wherever it stands, rather than once")] = False


class EditArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `edit`."""

    path: Annotated[str, Meta(description="the file")]
    old: Annotated[str, Meta(description="as it stands in the file, with its indentation, and only once")] | None = None
    new: Annotated[str, Meta(description="what takes its place")] | None = None
    replace_all: Annotated[bool, Meta(description="wherever it stands")] = False
    edits: Annotated[tuple[Replacement, ...], Meta(description="several at once instead, one after another: all or none")] = ()

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """What is to be replaced, in order. Raises InputError when that is not clear."""
        if self.edits:
            if self.old is not None or self.new is not None:
                raise InputError("edit", "both old and new and edits", "one of the two")
            if len(self.edits) > MOST:
                raise InputError("edits", f"{len(self.edits)} of them", f"at most {MOST}")
            return self.edits
        if self.old is None or self.new is None:
            raise InputError("edit", "no " + ("new" if self.old is not None else "old"), "old and new, or edits")
        return (Replacement(old=self.old, new=self.new, replace_all=self.replace_all),)


class Edit(ArgumentTool[EditArguments]):
    """Replaces text in a file."""

    name = "edit"
    takes = EditArguments
    kind = ToolKind.DURABLE
    description = (
        "Replace text in a file: old, which must stand there exactly and only once, by new; or several with edits, all or none. Copy old from"
        " what you read, without line numbers, and only as much as makes it unique."
    )

    def _needs(self, given: EditArguments, workspace: Workspace) -> Approval | None:
        """Agreement, with the differences to look at; also where it cannot be done now, for by then it may be."""
        try:
            path, replacements = workspace.path(given.path), given.replacements
        except InputError:
            return None
        shown, hunks = workspace.shown(path), list[str]()
        try:
            file = load_text(path, shown)
            text = file.text
            for replacement in replacements:
                after, _ = replace_text(text, _in_style(replacement, file), shown)
                hunks.append(difference(text, after, shown))
                text = after
        except InputError as error:
            hunks.append(f"It cannot be done as things are: {error}")
        return approval(self.name, path, workspace, "\n".join(hunks))

    async def _run(self, given: EditArguments, here: Here) -> ToolOutcome:
        workspace = here.workspace
        path, replacements = workspace.path(given.path), given.replacements
        shown = workspace.shown(path)
        file = load_text(path, shown)
        unseen = workspace.unseen(path)
        text, places = file.text, list[str]()
        for n, replacement in enumerate(replacements, 1):
            where = f"{shown}, edit {n} of {len(replacements)}" if len(replacements) > 1 else shown
            text, place = replace_text(text, _in_style(replacement, file), where)
            places.append(place)
        write_file(path, structs.replace(file, text=text).written(shown), shown)
        workspace.wrote(path)
        if not unseen and (sight := sighted(path)) is not None:
            workspace.see(path, sight)
        note = " It had changed since you read it: other parts of it may be new to you." if unseen == "changed" else ""
        return ToolOutcome(text=f"Edited {shown}: {'; '.join(places)}.{note}")

    def _hint(self, given: EditArguments, here: Here) -> str:
        return suggestion(given.path, here.workspace)


def replace_text(text: str, replacement: Replacement, where: str) -> tuple[str, str]:
    """The text with one replacement made, and where that was. Raises InputError that helps, and nothing is changed then."""
    old, new = replacement.old, replacement.new
    if not old:
        raise InputError(where, "old is empty", "a text that stands in the file; write makes or replaces a whole file")
    if old == new:
        raise InputError(where, "old and new are the same", "a change")
    lines = lines_of(text, old)
    if not lines:
        raise InputError(where, f"old is not in it: {explain_miss(text, old)}")
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


_SHOWN: Final = 12  # lines of the file
_LINE_CHARS: Final = 300  # characters of each
_COMMON: Final = 50  # times that a line stands in a file, from which on it tells nothing
_PLACES: Final = 20  # line numbers named
_LARGEST: Final = 2_000_000  # characters of a file in which more is looked for than the text itself
_LINES: Final = 2_000  # of the wanted text, by which a place is looked for

_NUMBERED: Final = re.compile(r"^[^\S\n]*+\d++(?:\t|→|\| ?|: )", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")
_BLANKS: Final = re.compile(r"\s+")
_ALIKE: Final = str.maketrans({
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", None),
})  # fmt: skip


def _signs(line: str) -> str:
    return line if line.isascii() else unicodedata.normalize("NFKC", line).translate(_ALIKE)


# What may be different, by name, and how a line looks without it. The least comes first.
_DIFFERENCES: Final[Sequence[tuple[str, Callable[[str], str]]]] = (
    ("spaces at the ends of lines", str.rstrip),
    ("indentation (tabs, spaces, or how deep)", str.strip),
    ("quotes, dashes or other signs that look alike", lambda line: _signs(line).rstrip()),
    ("quotes or signs that look alike, and indentation", lambda line: _signs(line).strip()),
    ("spaces within lines", lambda line: _BLANKS.sub(" ", _signs(line)).strip()),
    ("upper and lower case", lambda line: _BLANKS.sub(" ", _signs(line)).strip().casefold()),
)


def lines_of(text: str, wanted: str) -> list[int]:
    """The lines on which a text begins, from 1, be it within itself; at most one more than are named."""
    found: list[int] = []
    at = line = 0
    counted = 0
    while len(found) <= _PLACES and (at := text.find(wanted, at)) >= 0:
        line += text.count("\n", counted, at)
        counted = at
        found.append(line + 1)
        at += 1
    return found


def several(lines: Sequence[int], count: int) -> str:
    """That a text is there more than once, and where."""
    named = ", ".join(map(str, dict.fromkeys(lines[:_PLACES]))) + (" and more" if len(lines) > _PLACES else "")
    return f"it is there {count:,} times, at lines {named}: give more lines around the one that is meant, or set replace_all"


def explain_miss(text: str, wanted: str) -> str:
    """What a person would say who looked for `wanted` and did not find it."""
    reasons = _reasons(text, wanted) if len(text) <= _LARGEST else ()
    return next(filter(None, reasons), "nothing like it is there: read the file, or grep for a word of it")


def _reasons(text: str, wanted: str) -> Iterator[str]:
    if "\r" in wanted and wanted.replace("\r\n", "\n") in text:
        yield "your text has CRLF line ends, and the file has LF"
    bare = _NUMBERED.sub("", wanted)
    if bare != wanted and bare.strip() and bare in text:
        yield "your text begins its lines with the line numbers of a listing: leave them out"
    if (shown := visible(text)) != text and wanted in shown:
        yield "the file has control characters there, which are shown as signs like \u241b: change it with a program"
    rows, lines = text.split("\n"), wanted.strip("\n").split("\n")
    if not wanted.strip():
        return
    for name, plain in _DIFFERENCES:
        if at := _run(rows, lines, plain):
            yield f"the same stands at {_places(at, len(lines))} but for {name}. The file has there:\n{_excerpt(rows, at[0], len(lines))}"
    if "\\n" in wanted and (unescaped := wanted.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')) in text:
        yield f"your text is escaped once too often: it is there, at line {text[: text.index(unescaped)].count(chr(10)) + 1}, with real line feeds"
    if at_joined := _joined(rows, wanted):
        yield f"the same words stand from line {at_joined} on, broken into other lines:\n{_excerpt(rows, at_joined, max(3, len(lines)))}"
    yield _nearest(rows, lines)


def _run(rows: Sequence[str], lines: Sequence[str], plain: Callable[[str], str]) -> list[int]:
    """Where lines stand one after another, once both are made plain: numbers from 1, at most three."""
    wanted = "\n" + "\n".join(map(plain, lines)) + "\n"
    if not wanted.strip():
        return []
    text = "\n" + "\n".join(map(plain, rows)) + "\n"
    found: list[int] = []
    at = -1
    while len(found) < 3 and (at := text.find(wanted, at + 1)) >= 0:
        found.append(text.count("\n", 0, at) + 1)
    return found


def _joined(rows: Sequence[str], wanted: str) -> int:
    """The line from which on the file has the same words, whatever lies between them; 0 when it has not."""
    words = " ".join(wanted.split())
    text = " ".join("\n".join(rows).split())
    at = text.find(words)
    if at < 0 or not words:
        return 0
    before = len(text[:at].split())
    for number, row in enumerate(rows, 1):
        before -= len(row.split())
        if before < 0:
            return number
    return 0


def _nearest(rows: Sequence[str], lines: Sequence[str]) -> str:
    """The place that most of the lines point to, or else the line that shares most words with the longest of them."""
    places: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        if key := row.strip():
            places.setdefault(key, []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(lines[:_LINES]):
        known = places.get(line.strip(), [])
        if len(known) <= _COMMON:
            votes.update(number - offset for number in known)
    if votes:
        start, agreed = max(votes.items(), key=lambda item: (item[1], -item[0]))
        first = max(0, start)
        return (
            f"nearest are lines {first + 1} to {min(len(rows), start + len(lines))}, where {agreed} of {len(lines)} lines are the same:\n"
            + _excerpt(rows, first + 1, len(lines))
        )
    words = set(_WORD.findall(max(lines, key=len)[: _LINE_CHARS * 4]))
    best, number = max(
        ((len(words & set(_WORD.findall(row[: _LINE_CHARS * 4]))), -n) for n, row in enumerate(rows)), default=(0, 0)
    )
    if not words or best * 2 < len(words):
        return ""
    return f"nearest is line {1 - number}:\n{_excerpt(rows, 1 - number, 1)}"


def _places(found: Sequence[int], count: int) -> str:
    if len(found) == 1:
        return f"line {found[0]}" if count == 1 else f"lines {found[0]} to {found[0] + count - 1}"
    return "lines " + ", ".join(map(str, found)) + (" and perhaps more" if len(found) == 3 else "")


def _excerpt(rows: Sequence[str], first: int, count: int) -> str:
    shown = rows[first - 1 : first - 1 + min(count, _SHOWN)]
    more = f"\n[{count - _SHOWN} more lines]" if count > _SHOWN else ""
    return (
        "\n".join(f"{first + n}\t{visible(row[:_LINE_CHARS])}{'…' * (len(row) > _LINE_CHARS)}" for n, row in enumerate(shown))
        + more
    )
