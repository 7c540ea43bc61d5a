"""The tool `grep`: lines by what they say."""

import re
from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.files import near
from tenure.agent.tools.glob import Globs, SearchEnd, depth_of, folder_of, globs, is_wanted, looks_below, newest, run_ripgrep
from tenure.agent.tools.ls import one_line
from tenure.agent.tools.tool import Here, ToolLimits, ToolOutcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind
from tenure.engine.record.visible import visible
from tenure.errors import InputError

MOST_BYTES: Final = 2 * 2**20  # of lines that are kept while the order of files is any
COLUMNS: Final = 500  # bytes of a line that are shown
_NAMED: Final = 10  # files that are no text, or hold keys
_LINE: Final = re.compile(rb"(\d+)([:-])")
_BREAK: Final = b"--"
_BINARY: Final = re.compile(rb": binary file matches \(found ")
_LINE_FEED: Final = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")  # in a pattern
_NARROWER: Final = "narrow the pattern, path or glob, or set limit"
_ERROR: Final = re.compile(r"^(?:error|PCRE2): (.+)$|^(compiled regex exceeds size limit.*)$", re.MULTILINE)
Mode = Literal["content", "files", "count"]
_MODES: Final[dict[Mode, list[str]]] = {
    "content": ["--line-number", f"--max-columns={COLUMNS}", "--max-columns-preview"],
    "files": ["-l"],
    "count": ["-c"],
}


class GrepArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class Grep(ArgumentTool[GrepArguments]):
    """Finds lines in files."""

    name = "grep"
    takes = GrepArguments
    kind = ToolKind.BULK
    description = (
        "Search file contents with ripgrep. Lines come as path:number:text, by path; with mode files the newest files first."
        f" At most {ToolLimits().found} unless limit says otherwise; the rest is counted. Files that .gitignore leaves out are not searched."
        " Look for a name here before you read files, and narrow by path or glob."
    )

    def _needs(self, given: GrepArguments, workspace: Workspace) -> Approval | None:
        return looks_below(self.name, given.path, given.glob, workspace)

    async def _run(self, given: GrepArguments, here: Here) -> ToolOutcome:
        return await _Grep(given, here).outcome()


class _Grep:
    """One search."""

    def __init__(self, given: GrepArguments, here: Here) -> None:
        self._given, self._here = given, here
        workspace = here.workspace
        target = folder_of(given.path, "", workspace)
        self._pattern: Globs | None = None
        if target.is_dir():
            self._pattern = globs(given.glob) if given.glob else None
            self._folder = folder_of(given.path, self._pattern.folder if self._pattern else "", workspace)
            self._file = ""
        elif target.is_file():
            self._folder, self._file = target.parent, target.name
        else:
            names = near(target, workspace)
            hint = f"one that there is: {', '.join(names)}" if names else "a file or folder that there is"
            raise InputError("path", f"there is no {workspace.shown(target)} to search", hint)
        if "\0" in given.pattern:
            raise InputError("pattern", "a NUL", "text")
        self._limit = given.limit or here.limits.found
        self._matches = self._new_matches()

    async def outcome(self) -> ToolOutcome:
        """Search, and say what was found."""
        if not self._folder.is_dir():
            return ToolOutcome(text=self._none())
        search = await self._searched()
        if search.enough:  # far too much: a second look in the order of paths ends as soon as the limit is reached
            self._matches = self._new_matches(self._limit)
            search = await self._searched("--sort=path")
        matches = self._matches
        if search.errors and not matches.files:
            raise InputError("pattern", _explained(search.errors), "a regular expression, or literal")
        withheld = [f"[left out, since keys or passwords are kept there: {self._named(matches.withheld)}]"] * bool(
            matches.withheld
        )
        if not matches.files and not matches.binary:
            first = f"[{search.cut_short}]" if search.cut_short else self._none()
            return ToolOutcome(text="\n".join([first, *withheld]), error=bool(search.cut_short))
        match self._given.mode:
            case "content":
                lines, note = self._content()
                note = f"there is more than the first {self._limit:,}: {_NARROWER}" if search.enough else note
            case "files":
                lines, note = await self._files()
            case "count":
                lines, note = self._counts()
        binary = f"no text, but it matches too: {self._named(matches.binary)}" if matches.binary else ""
        notes = [f"[{each}]" for each in (note, binary, search.cut_short) if each]
        return ToolOutcome(text="\n".join([*lines, *notes, *withheld]))

    def _new_matches(self, most: int = 0) -> "_Matches":
        hidden, secret = self._given.hidden or bool(self._file), None if self._file else self._is_secret
        return _Matches(self._pattern, hidden=hidden, mode=self._given.mode, most=most, secret=secret)

    def _is_secret(self, path: str) -> bool:
        return self._here.workspace.is_secret(self._folder / path)

    async def _searched(self, *order: str) -> SearchEnd:
        given = self._given
        spans = given.multiline or _LINE_FEED.search(given.pattern)
        names = self._pattern.names if self._pattern else ""
        arguments = [
            *(*order, "--null", "--no-heading", "--with-filename", "--crlf", "--engine=auto", *_MODES[given.mode]),
            *([f"--context={given.context}"] if given.context and given.mode == "content" else []),
            *(["--ignore-case"] if given.ignore_case else []),
            *(["--fixed-strings"] if given.literal else []),
            *(["--multiline"] if spans else []),
            *(["--multiline-dotall"] if given.multiline else []),
            *([f"--type-add=wanted:{names}", "--type=wanted"] if names else []),
            *(*depth_of(self._pattern), f"--regexp={given.pattern}", "--", self._file or "./"),
        ]
        return await run_ripgrep(arguments, self._folder, self._here, self._matches.take, hidden=given.hidden)

    def _content(self) -> tuple[list[str], str]:
        """Matching lines up to the limit and the room, file by file; and how many are left."""
        room, left = self._here.limits.output_bytes, self._limit
        files = self._matches.files
        shown: list[str] = []
        for n, path in enumerate(_by_path(files, self._limit + 1)):
            lines, count = files[path].shown(self._shown(path), left, room)
            shown += lines
            left -= count
            room -= sum(map(len, lines)) + len(lines)
            if count < files[path].count:
                rest, where = self._matches.count - (self._limit - left), len(files) - n
                return shown, f"{rest:,} more matching lines, in {where:,} file{'s' * (where > 1)}: {_NARROWER}"
        return shown, ""

    async def _files(self) -> tuple[list[str], str]:
        files = list(self._matches.files)
        rest = len(files) - self._limit
        note = f"{rest:,} more of {len(files):,} files: {_NARROWER}" if rest > 0 else ""
        return [self._shown(path) for path in await newest(self._folder, files, self._limit)], note

    def _counts(self) -> tuple[list[str], str]:
        files = self._matches.files
        rest = len(files) - self._limit
        total = f"{self._matches.count:,} matching lines in {len(files):,} files" if len(files) > 1 else ""
        lines = [f"{self._shown(path)}:{files[path].count}" for path in _by_path(files, self._limit)]
        return lines, total + (f", of which {rest:,} are not shown" if rest > 0 else "")

    def _named(self, paths: Iterable[str]) -> str:
        names = sorted(set(paths))
        return ", ".join(map(self._shown, names[:_NAMED])) + (", …" if len(names) > _NAMED else "")

    def _shown(self, path: str) -> str:
        return one_line(self._here.workspace.shown(self._folder / path))

    def _none(self) -> str:
        where = self._here.workspace.shown(self._folder / self._file)
        among = f" in files {self._given.glob}" if self._given.glob else ""
        place = f" in {where}" if where != "." else ""
        left_out = "" if self._file else f" ({'ignored' if self._given.hidden else 'hidden and ignored'} files are not searched)"
        return f"no match for {self._given.pattern!r}{among}{place}{left_out}"


def _explained(errors: str) -> str:
    """What ripgrep has against a pattern, in a line: of its two engines the one that all patterns are for, and the one for the rest."""
    causes = [one or other for one, other in _ERROR.findall(errors)]
    return "; ".join(dict.fromkeys(causes)) if causes else errors.removeprefix("rg: ").partition("\n\n")[0]


def _by_path(files: Iterable[str], most: int) -> list[str]:
    """The first files in the order in which ripgrep sorts them: folder by folder."""
    return nsmallest(most, files, key=lambda path: path.split("/"))


class _FileMatches:
    """The lines of one file, in order: number, whether it matches, text; None between groups. Mutable."""

    __slots__ = ("count", "lines")

    def __init__(self) -> None:
        self.lines: list[tuple[int, bool, bytes] | None] = []
        self.count = 0

    def shown(self, path: str, most: int, room: int) -> tuple[list[str], int]:
        """As many matching lines as fit, with their context, and how many they are."""
        lines: list[str] = []
        count = 0
        for line in self.lines:
            if line is None:
                lines.append("--")
                continue
            number, is_match, raw = line
            if is_match and count >= most:
                break
            sign = ":" if is_match else "-"
            text = f"{path}{sign}{number}{sign}{visible(raw.decode('utf-8', 'replace').removesuffix(chr(13)))}"
            room -= len(text) + 1
            if room < 0:
                break
            count += is_match
            lines.append(text)
        while lines and lines[-1] == "--":
            lines.pop()
        return lines, count


class _Matches:
    """All that was found, by path. Mutable."""

    def __init__(
        self, pattern: Globs | None, *, hidden: bool, mode: Mode, most: int, secret: Callable[[str], bool] | None
    ) -> None:
        """With `most`, files come in the order of their paths, and after so many matches there are enough. Of files that are `secret` nothing is kept."""
        self.files: dict[str, _FileMatches] = {}
        self.count = 0
        self.binary: list[str] = []  # files that are no text and match
        self.withheld: list[str] = []  # files that match and are secret
        self._pattern, self._hidden, self._mode, self._most, self._secret = pattern, hidden, mode, most, secret
        self._end = b"\0" if mode == "files" else b"\n"
        self._rest = b""
        self._bytes = 0
        self._at: tuple[bytes, _FileMatches | None] = (b"", None)  # the file that is being told of, None when it is not wanted

    def take(self, chunk: bytes) -> bool:
        """Take more; whether that is enough."""
        *whole, self._rest = (self._rest + chunk).split(self._end)
        carried = b""  # of a path that has a line feed in it
        for line in whole:
            if self._mode == "files":
                self._file(line)
            elif b"\0" in line:
                path, _, text = (carried + line.removesuffix(b"\r")).partition(b"\0")
                carried = b""
                self._line(self._file(path), text)
            elif line.rstrip(b"\r") == _BREAK and not carried:
                if (file := self._at[1]) is not None and file.lines and file.lines[-1] is not None:
                    file.lines.append(None)
            elif binary := _BINARY.search(line):
                name = _name(line[: binary.start()])
                self.binary += [name] if self._is_wanted(name) else []
            else:
                carried += line + b"\n"
        self._rest = carried + self._rest
        return self.count > self._most if self._most else self._mode == "content" and self._bytes > MOST_BYTES

    def _file(self, path: bytes) -> _FileMatches | None:
        """Where the matches of a file go; None when nobody wants them."""
        if self._at[0] != path:
            name = _name(path)
            self._at = (path, self.files.setdefault(name, _FileMatches()) if self._is_wanted(name) else None)
        return self._at[1]

    def _line(self, file: _FileMatches | None, text: bytes) -> None:
        if file is None:
            return
        if self._mode == "count":
            file.count = int(text) if text.isdigit() else 0
            self.count += file.count
        elif head := _LINE.match(text):
            is_match = head[2] == b":"
            file.lines.append((int(head[1]), is_match, text[head.end() :]))
            file.count += is_match
            self.count += is_match
            self._bytes += len(text)

    def _is_wanted(self, name: str) -> bool:
        if not is_wanted(name, self._pattern, hidden=self._hidden):
            return False
        is_secret = self._secret is not None and self._secret(name)
        self.withheld += [name] if is_secret else []
        return not is_secret


def _name(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape").removeprefix("./")
