"""The tool `grep`: lines by what they say."""

import re
from collections.abc import Callable
from heapq import nsmallest
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.files import near
from tenure.agent.tools.glob import Globs, depth_of, folder_of, globs, looks_below, newest, wanted
from tenure.agent.tools.ls import one_line
from tenure.agent.tools.ripgrep import Search, cut_short, searched
from tenure.agent.tools.tool import Here, Limits, Outcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind
from tenure.engine.record.visible import visible
from tenure.errors import InputError

MOST_BYTES: Final = 2 * 2**20  # of lines that are kept while the order of files is any
_LINE: Final = re.compile(rb"(\d+)([:-])")
_BREAK: Final = b"--"
_BINARY: Final = re.compile(rb": binary file matches \(found ")
Mode = Literal["content", "files", "count"]


class FileHits:
    """The lines of one file, in order: number, whether it matches, text; None between groups. Mutable."""

    __slots__ = ("lines", "matches")

    def __init__(self) -> None:
        self.lines: list[tuple[int, bool, bytes] | None] = []
        self.matches = 0

    def shown(self, path: str, most: int, room: int) -> tuple[list[str], int]:
        """As many matching lines as fit, with their context, and how many they are."""
        lines: list[str] = []
        matches = 0
        for line in self.lines:
            if line is None:
                lines.append("--")
                continue
            number, is_match, raw = line
            if is_match and matches >= most:
                break
            sign = ":" if is_match else "-"
            text = f"{path}{sign}{number}{sign}{visible(raw.decode('utf-8', 'replace').removesuffix(chr(13)))}"
            room -= len(text) + 1
            if room < 0:
                break
            matches += is_match
            lines.append(text)
        while lines and lines[-1] == "--":
            lines.pop()
        return lines, matches


class Hits:
    """All that was found, by path. Mutable."""

    def __init__(
        self, pattern: Globs | None, *, hidden: bool, mode: Mode, most: int = 0, secret: Callable[[str], bool] | None = None
    ) -> None:
        """With `most`, files come in the order of their paths, and after so many matches there are enough. Of files that are `secret` nothing is kept."""
        self.files: dict[str, FileHits] = {}
        self.matches = 0
        self.binary: list[str] = []  # files that are no text and match
        self.withheld: list[str] = []  # files that match and are secret
        self._pattern, self._hidden, self._mode, self._most, self._secret = pattern, hidden, mode, most, secret
        self._end = b"\0" if mode == "files" else b"\n"
        self._rest = b""
        self._bytes = 0
        self._at: tuple[bytes, FileHits | None] = (b"", None)  # the file that is being told of, None when it is not wanted

    def take(self, chunk: bytes) -> bool:
        """Take more; whether that is enough."""
        *whole, self._rest = (self._rest + chunk).split(self._end)
        carried = b""  # of a path that has a line feed in it
        for line in whole:
            if self._mode == "files":
                self._file(line)
            elif b"\0" in line:
                path, _, said = (carried + line.removesuffix(b"\r")).partition(b"\0")
                carried = b""
                self._line(self._file(path), said)
            elif line.rstrip(b"\r") == _BREAK and not carried:
                self._break()
            elif binary := _BINARY.search(line):
                self._note(line[: binary.start()])
            else:
                carried += line + b"\n"
        self._rest = carried + self._rest
        if self._most:
            return self.matches > self._most
        return self._mode == "content" and self._bytes > MOST_BYTES

    def by_path(self, most: int) -> list[tuple[str, FileHits]]:
        """The first files in the order in which ripgrep sorts them: folder by folder."""
        return nsmallest(most, self.files.items(), key=lambda item: item[0].split("/"))

    def _file(self, path: bytes) -> FileHits | None:
        """Where the hits of a file go; None when nobody wants them."""
        if self._at[0] != path:
            name = path.decode("utf-8", "surrogateescape").removeprefix("./")
            file = self.files.setdefault(name, FileHits()) if self._is_wanted(name) else None
            self._at = (path, file)
        return self._at[1]

    def _line(self, file: FileHits | None, said: bytes) -> None:
        if file is None:
            return
        if self._mode == "count":
            file.matches = int(said) if said.isdigit() else 0
            self.matches += file.matches
        elif found := _LINE.match(said):
            is_match = found[2] == b":"
            file.lines.append((int(found[1]), is_match, said[found.end() :]))
            file.matches += is_match
            self.matches += is_match
            self._bytes += len(said)

    def _note(self, path: bytes) -> None:
        name = path.decode("utf-8", "surrogateescape").removeprefix("./")
        if self._is_wanted(name):
            self.binary.append(name)

    def _is_wanted(self, name: str) -> bool:
        if not wanted(name, self._pattern, hidden=self._hidden):
            return False
        if self._secret is not None and self._secret(name):
            self.withheld.append(name)
            return False
        return True

    def _break(self) -> None:
        file = self._at[1]
        if file is not None and file.lines and file.lines[-1] is not None:
            file.lines.append(None)


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


class Grep(ArgumentTool[Asked]):
    """Finds lines in files."""

    name = "grep"
    takes = Asked
    kind = ToolKind.BULK

    def __init__(self, *, limits: Limits | None = None) -> None:
        """`limits` only words the description."""
        limits = limits or Limits()
        self.description = (
            "Search file contents with ripgrep. Lines come as path:number:text, by path; with mode files the newest files first."
            f" At most {limits.found} unless limit says otherwise; the rest is counted. Files that .gitignore leaves out are not searched."
            " Look for a name here before you read files, and narrow by path or glob."
        )

    def _needs(self, asked: Asked, workspace: Workspace) -> Approval | None:
        """Nothing, unless it looks where keys are kept."""
        return looks_below(self.name, asked.path, asked.glob, workspace)

    async def _run(self, asked: Asked, here: Here) -> Outcome:
        """What was found."""
        return await _Grep(asked, here).outcome()


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
