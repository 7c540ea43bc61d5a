"""What ripgrep prints of matches, taken in as it comes. Pure."""

import re
from collections.abc import Callable
from heapq import nsmallest
from typing import Final, Literal

from tenure.agent.tools.glob import wanted
from tenure.agent.tools.globs import Globs
from tenure.engine.record.visible import visible

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
