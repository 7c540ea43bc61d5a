"""Verdicts that were given, kept in a file, so that what was paid for is not paid for twice.

JSON lines, appended as they come. A verdict is known by what was quoted to the judge (`key`), the version of the contract and the model's name; a
change of any of them is another question. Failures are noted too, and asked again. One process writes to a file at a time.
"""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Final

import msgspec
from msgspec import Struct

from tenure.errors import InputError, StoreError
from tenure.lab.judges.asking import Failed, Spent
from tenure.lab.judges.case import Facts
from tenure.lab.judges.no_impact import Verdict
from tenure.lab.judges.preference import Preference

LONGEST: Final = 1_000_000  # bytes of a line; no verdict is as long


class VerdictLine(Struct, frozen=True, kw_only=True, tag="verdict", tag_field="type"):
    """A verdict on one plan."""

    key: str
    contract: str
    model: str
    facts: Facts
    verdict: Verdict
    spent: Spent
    repaired: bool = False


class PreferenceLine(Struct, frozen=True, kw_only=True, tag="preference", tag_field="type"):
    """A verdict on two plans, `first` being candidate A."""

    key: str
    contract: str
    model: str
    first: Facts
    second: Facts
    verdict: Preference
    spent: Spent
    repaired: bool = False


class FailedLine(Struct, frozen=True, kw_only=True, tag="failed", tag_field="type"):
    """A question that got no verdict."""

    key: str
    contract: str
    model: str
    failure: Failed
    spent: Spent


Line = VerdictLine | PreferenceLine | FailedLine
_Key = tuple[str, str, str]


class Book:
    """Verdicts by question, with a file behind them or none. Mutable; use it as a context."""

    def __init__(self, path: str = "") -> None:
        """Read what the file holds. Raises InputError when it cannot be read; one that does not exist is begun with the first verdict."""
        self.path = path
        self.unread = 0  # lines that are no verdicts, such as one that was cut off
        self._lines: dict[_Key, VerdictLine | PreferenceLine] = {}
        self._file: IO[bytes] | None = None
        self._encode = msgspec.json.Encoder().encode
        for line in _read(path) if path else ():
            if line is None:
                self.unread += 1
            elif not isinstance(line, FailedLine):
                self._lines[_key(line)] = line

    def __enter__(self) -> "Book":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return len(self._lines)

    def verdict(self, key: str, contract: str, model: str) -> VerdictLine | None:
        """The verdict on one plan that was given to this question."""
        found = self._lines.get((key, contract, model))
        return found if isinstance(found, VerdictLine) else None

    def preference(self, key: str, contract: str, model: str) -> PreferenceLine | None:
        """The verdict on two plans that was given to this question."""
        found = self._lines.get((key, contract, model))
        return found if isinstance(found, PreferenceLine) else None

    def add(self, line: Line) -> None:
        """Take a line in, and write it before anything else happens. Raises StoreError when it cannot be written."""
        if not isinstance(line, FailedLine):
            self._lines[_key(line)] = line
        if not self.path:
            return
        try:
            if self._file is None:
                self._file = _opened(Path(self.path))
            self._file.write(self._encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written ({error.strerror or error})") from error


def _key(line: VerdictLine | PreferenceLine) -> _Key:
    return line.key, line.contract, line.model


def _read(path: str) -> Iterator[Line | None]:
    decoder = msgspec.json.Decoder[Line](Line)
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(path, "found no file", "a file of verdicts, or a path for one")
        with Path(path).open("rb") as file:
            while raw := file.readline(LONGEST):
                if raw.strip():
                    yield _decoded(decoder, raw)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(path, str(getattr(error, "strerror", "") or error), "a file of verdicts, or a path for one") from error


def _decoded(decoder: msgspec.json.Decoder[Line], raw: bytes) -> Line | None:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _opened(path: Path) -> IO[bytes]:
    """The file at its end, on a line of its own: the last one may have been cut off."""
    file = path.open("ab+")
    if file.tell():
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file
