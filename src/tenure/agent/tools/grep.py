"""The tool `grep`: lines by what they say."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import parsed, readable, schema_of
from tenure.agent.tools.files import near
from tenure.agent.tools.glob import depth_of, folder_of, looks_below, newest
from tenure.agent.tools.globs import Globs, globs
from tenure.agent.tools.hits import Hits, Mode
from tenure.agent.tools.ls import one_line
from tenure.agent.tools.ripgrep import Search, cut_short, searched
from tenure.agent.tools.tool import Here, Limits, Outcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError

COLUMNS: Final = 500  # bytes of a line that are shown
_BINARIES: Final = 10  # named
_LINE_FEED: Final = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")  # in a pattern
_NARROWER: Final = "narrow the pattern, path or glob, or set limit"
_ERROR: Final = re.compile(r"^(?:error|PCRE2): (.+)$|^(compiled regex exceeds size limit.*)$", re.MULTILINE)


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `grep`."""

    pattern: Annotated[str, Meta(description="a regular expression, as ripgrep reads it", min_length=1)]
    path: Annotated[str, Meta(description="the file or folder to search; the workspace when left out")] = "."
    glob: Annotated[str, Meta(description="only in files such as *.py or src/**/*.ts; !*.min.js leaves some out")] | None = None
    mode: Annotated[Mode, Meta(description="matching lines, only the files' names, or counts by file")] = "content"
    context: Annotated[int, Meta(description="lines around each match", ge=0, le=50)] = 0
    ignore_case: bool = False
    literal: Annotated[bool, Meta(description="the pattern is plain text")] = False
    multiline: Annotated[bool, Meta(description="matches may span lines, . matches line ends")] = False
    hidden: Annotated[bool, Meta(description="also in hidden files")] = False
    limit: Annotated[int, Meta(description="how many lines or files", ge=1)] | None = None


class Grep:
    """Finds lines in files."""

    name = "grep"
    kind = ToolKind.BULK

    def __init__(self, *, limits: Limits | None = None) -> None:
        """`limits` only words the description."""
        limits = limits or Limits()
        self.schema: Mapping[str, Any] = schema_of(Asked)
        self.description = (
            "Search file contents with ripgrep. Lines come as path:number:text, by path; with mode files the newest files first."
            f" At most {limits.found} unless limit says otherwise; the rest is counted. Files that .gitignore leaves out are not searched."
            " Look for a name here before you read files, and narrow by path or glob."
        )

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:
        """Nothing, unless it looks where keys are kept."""
        asked = readable(Asked, arguments)
        return looks_below(self.name, asked.path, asked.glob, workspace) if asked else None

    async def run(self, arguments: str, here: Here) -> Outcome:
        """What was found."""
        asked = parsed(Asked, arguments, self.name)
        if isinstance(asked, Outcome):
            return asked
        try:
            return await _Grep(asked, here).outcome()
        except InputError as error:
            return Outcome(text=f"grep: {error}", error=True)


class _Grep:
    """One search."""

    def __init__(self, asked: Asked, here: Here) -> None:
        self._asked, self._here = asked, here
        workspace = here.workspace
        target = folder_of(asked.path, "", workspace)
        self._pattern: Globs | None = None
        if target.is_dir():
            self._pattern = globs(asked.glob) if asked.glob else None
            self._folder = folder_of(asked.path, self._pattern.folder if self._pattern else "", workspace)
            self._file = ""
        elif target.is_file():
            self._folder, self._file = target.parent, target.name
        else:
            names = near(target, workspace)
            hint = f"one that there is: {', '.join(names)}" if names else "a file or folder that there is"
            raise InputError("path", f"there is no {workspace.shown(target)} to search", hint)
        if "\0" in asked.pattern:
            raise InputError("pattern", "a NUL", "text")
        self._limit = asked.limit or here.limits.found
        self._hits = self._new_hits()

    async def outcome(self) -> Outcome:
        """Search, and say what was found."""
        if not self._folder.is_dir():
            return Outcome(text=self._none())
        search = await self._searched()
        if search.enough:  # far too much: a second look in the order of paths ends as soon as the limit is reached
            self._hits = self._new_hits(self._limit)
            search = await self._searched("--sort=path")
        if search.errors and not self._hits.files:
            raise InputError("pattern", _explained(search.errors), "a regular expression, or literal")
        if not self._hits.files and not self._hits.binary:
            why = cut_short(search, self._here)
            return Outcome(text="\n".join([f"[{why}]" if why else self._none(), *self._withheld()]), error=bool(why))
        match self._asked.mode:
            case "content":
                lines, note = self._content()
                note = f"there is more than the first {self._limit:,}: {_NARROWER}" if search.enough else note
            case "files":
                lines, note = await self._files()
            case "count":
                lines, note = self._counts()
        notes = [note] * bool(note) + self._ends(search)
        return Outcome(text="\n".join([*lines, *(f"[{each}]" for each in notes), *self._withheld()]))

    def _new_hits(self, most: int = 0) -> Hits:
        hidden, secret = self._asked.hidden or bool(self._file), None if self._file else self._is_secret
        return Hits(self._pattern, hidden=hidden, mode=self._asked.mode, most=most, secret=secret)

    def _is_secret(self, path: str) -> bool:
        return self._here.workspace.is_secret(self._folder / path)

    async def _searched(self, *order: str) -> Search:
        arguments = [*order, *self._arguments()]
        return await searched(arguments, self._folder, self._here, self._hits.take, hidden=self._asked.hidden)

    def _arguments(self) -> list[str]:
        asked = self._asked
        how = {
            "content": ["--line-number", f"--max-columns={COLUMNS}", "--max-columns-preview"],
            "files": ["-l"],
            "count": ["-c"],
        }[asked.mode]
        given = [
            *("--null", "--no-heading", "--with-filename", "--crlf", "--engine=auto"),
            *how,
            *([f"--context={asked.context}"] if asked.context and asked.mode == "content" else []),
            *(["--ignore-case"] if asked.ignore_case else []),
            *(["--fixed-strings"] if asked.literal else []),
            *(["--multiline"] if asked.multiline or _LINE_FEED.search(asked.pattern) else []),
            *(["--multiline-dotall"] if asked.multiline else []),
        ]
        names = self._pattern.names if self._pattern else ""
        only = [f"--type-add=wanted:{names}", "--type=wanted"] if names else []
        return [*given, *only, *depth_of(self._pattern), f"--regexp={asked.pattern}", "--", self._file or "./"]

    def _content(self) -> tuple[list[str], str]:
        """Matching lines up to the limit and the room, file by file; and how many are left."""
        room, left = self._here.limits.output_bytes, self._limit
        shown: list[str] = []
        for n, (path, file) in enumerate(self._hits.by_path(self._limit + 1)):
            lines, matches = file.shown(one_line(self._shown(path)), left, room)
            shown += lines
            left -= matches
            room -= sum(map(len, lines)) + len(lines)
            if matches < file.matches:
                rest, where = self._hits.matches - (self._limit - left), len(self._hits.files) - n
                return shown, f"{rest:,} more matching lines, in {where:,} file{'s' * (where > 1)}: {_NARROWER}"
        return shown, ""

    async def _files(self) -> tuple[list[str], str]:
        lines = [one_line(self._shown(path)) for path in await newest(self._folder, list(self._hits.files), self._limit)]
        rest = len(self._hits.files) - self._limit
        return lines, f"{rest:,} more of {len(self._hits.files):,} files: {_NARROWER}" if rest > 0 else ""

    def _counts(self) -> tuple[list[str], str]:
        lines = [f"{one_line(self._shown(path))}:{file.matches}" for path, file in self._hits.by_path(self._limit)]
        count = len(self._hits.files)
        rest = count - self._limit
        total = f"{self._hits.matches:,} matching lines in {count:,} files" if count > 1 else ""
        return lines, total + (f", of which {rest:,} are not shown" if rest > 0 else "")

    def _ends(self, search: Search) -> list[str]:
        """What is to be said of files that are no text, and of a search that was stopped."""
        binary = sorted(self._hits.binary)
        named = ", ".join(one_line(self._shown(path)) for path in binary[:_BINARIES]) + (", …" if len(binary) > _BINARIES else "")
        stopped = cut_short(search, self._here)
        return [note for note in (f"no text, but it matches too: {named}" if binary else "", stopped) if note]

    def _withheld(self) -> list[str]:
        """What is to be said of files that match and are not shown; to look at one of them by its path asks."""
        names = [one_line(self._shown(path)) for path in sorted(set(self._hits.withheld))]
        more = ", …" if len(names) > _BINARIES else ""
        return [f"[left out, since keys or passwords are kept there: {', '.join(names[:_BINARIES])}{more}]"] if names else []

    def _shown(self, path: str) -> str:
        return self._here.workspace.shown(self._folder / path)

    def _none(self) -> str:
        where = self._here.workspace.shown(self._folder / self._file)
        among = f" in files {self._asked.glob}" if self._asked.glob else ""
        place = f" in {where}" if where != "." else ""
        left_out = "" if self._file else f" ({'ignored' if self._asked.hidden else 'hidden and ignored'} files are not searched)"
        return f"no match for {self._asked.pattern!r}{among}{place}{left_out}"


def _explained(errors: str) -> str:
    """What ripgrep has against a pattern, in a line: of its two engines the one that all patterns are for, and the one for the rest."""
    found = [one or other for one, other in _ERROR.findall(errors)]
    return "; ".join(dict.fromkeys(found)) if found else errors.removeprefix("rg: ").partition("\n\n")[0]
