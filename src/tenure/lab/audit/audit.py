"""The audit of a session, and of many: where its window went, and what each policy would have done to it.

A session is read once. It is played as it was recorded, then once for each policy; what its steps used is found once for all of them. Finished
audits are kept, so that a corpus can be interrupted and gone on with.
"""

import gzip
import os
import shutil
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from time import time
from typing import IO, Final, TypeVar, cast

import msgspec
from msgspec import Struct, structs

import tenure
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies import UNBOUNDED, policy_named
from tenure.engine.record.entry import Draft
from tenure.engine.record.visible import json_of
from tenure.errors import InputError
from tenure.lab.audit.recorded import Recording
from tenure.lab.audit.report import VERSION, Audit, AuditLine, AuditOutput, PolicyRun, RunLine, UnreadSession
from tenure.lab.audit.runs import Playback
from tenure.lab.bill import Billing, accounted
from tenure.lab.events import BudgetLine, EntryLine, HeadTokens, ReplayLine, SkippedLine, SourceFile, fields_in, spelled
from tenure.lab.harm.watch import Watch
from tenure.lab.kept import PART, appearing, prune
from tenure.lab.loading import source
from tenure.lab.marks import MarkBook, marked
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Skipped

ENDLESS: Final = Budget(window=10**12)  # of the recorded agent's own window, whose limits were its own


class AuditRequest(Struct, frozen=True, kw_only=True):
    """What to audit for. `policies` are names, without "none", which is always there."""

    policies: tuple[str, ...]
    budget: Budget
    model: str = ""  # empty: as the log says
    head_tokens: int | None = None  # o200k; None: what the log's own reports reveal
    marks: str = ""  # hash of the marks that are read beside the sessions

    def options(self, policy: str, head: int | HeadTokens | None) -> Options:
        """How to replay one policy."""
        budget = ENDLESS if policy == UNBOUNDED else self.budget
        return Options(budget=budget, policy=policy_named(policy), model=self.model, head=head)


def audit(source: SessionSource, asked: AuditRequest, tokenizer: Tokenizer, sha256: str | None = None) -> Iterator[AuditOutput]:
    """The lines of a session's audit, the last of which is its report. Raises InputError when the session cannot be read."""
    format_, events = _events_of(source)
    file = SourceFile(path=spelled(source.path), format=format_, sha256=source.sha256() if sha256 is None else sha256)
    recording: Recording | None = None
    runs: list[PolicyRun] = []
    for policy in (UNBOUNDED, *asked.policies):
        known = recording.head if recording is not None else asked.head_tokens
        lines = replay([_held(source, file, events)], asked.options(policy, known), tokenizer)
        header = next(lines)
        assert isinstance(header, ReplayLine)
        later: list[AuditOutput] = [RunLine(**structs.asdict(header))]
        if recording is None:
            yield AuditLine(
                **fields_in(header, AuditLine, version=VERSION, budget=BudgetLine.of(asked.budget), model=asked.model),
                source=file,
                policies=(UNBOUNDED, *asked.policies),
            )
            recording = Recording(header)
        else:
            yield later.pop()
        # Entries come first, once for all runs, so that the little that the first run has besides waits. No uses are known in it: nobody needs
        # what the recorded agent took away itself.
        playback, billing = Playback(header), Billing()
        lines = accounted(chain((header,), lines), Watch(recording.places.uses), billing)
        next(lines)
        for line in lines:
            playback.take(line)
            if not runs:
                recording.take(line)
            if isinstance(line, EntryLine | SkippedLine) is not bool(runs):
                yield line
            elif not runs:
                later.append(line)
        yield from later
        runs.append(playback.run(billing.bill, recording.places))
    assert recording is not None
    yield Audit(session=recording.session, window=recording.window(runs[0].series), runs=tuple(runs))


def _events_of(source: SessionSource) -> tuple[str, list[Event]]:
    """The format and the events of a source. Raises InputError when it cannot be read, or holds no message."""
    format_, read = source.events()
    events = list(read)
    if not any(isinstance(event, Draft) for event in events):
        lost = next((event for event in events if isinstance(event, Skipped)), None)
        why = "" if lost is None else f" (left out: line {lost.line}: {lost.reason})"
        raise InputError(spelled(source.path), f"a session without a message{why}", "at least one")
    return format_, events


def _held(source: SessionSource, file: SourceFile, events: list[Event]) -> SessionSource:
    """For one replay. It takes its messages from memory, and what it then reads to see that nothing is lost from the file."""
    readings: Iterator[Callable[[], tuple[str, Iterator[Event]]]] = iter([lambda: (file.format, iter(events))])
    return structs.replace(source, path=file.path, events=lambda: next(readings, source.events)(), sha256=lambda: file.sha256)


Note = Callable[[AuditOutput], None]
T = TypeVar("T")

MOST: Final = 2_000  # files of a folder of audits
REPORT: Final = ".report.gz"
LINES: Final = ".lines.gz"
PART_S: Final = 86_400.0  # seconds after which nobody is writing a file any more
_LEVEL: Final = 3  # of packing
_decode: Final = msgspec.json.Decoder(Audit).decode


class AuditCache:
    """Finished audits in a folder of packed files: of each session and what was asked of it the report, and all lines where they were wanted.

    They are the user's alone, since they hold what sessions say. Raises OSError when the folder cannot be made; a file in it that cannot be read
    is told in `damaged`, and is made again.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self.damaged: list[Path] = []

    def report(self, key: str) -> Audit | None:
        """The report of that key."""
        return self._read(key + REPORT, lambda file: _decode(file.read()))

    def has_lines(self, key: str) -> bool:
        """Whether the lines of that key are there, whole."""
        return self._read(key + LINES, _size) is not None

    def copy_lines(self, key: str, out: IO[bytes]) -> None:
        """Write the lines of that key."""
        with gzip.open(self._folder / (key + LINES), "rb") as file:
            shutil.copyfileobj(file, out, 2**20)

    @contextmanager
    def lines(self, key: str) -> Generator[IO[bytes]]:
        """A file for the lines of that key, which is there once all are written."""
        with self._packed(key + LINES) as file:
            yield file

    def keep(self, key: str, report: Audit) -> None:
        """Keep a report."""
        with self._packed(key + REPORT) as file:
            file.write(json_of(report))

    def prune(self, most: int = MOST) -> None:
        """Let go of what was longest not asked for, and of what audits that were killed left half written."""
        prune(self._folder, "*.gz", most)
        prune(self._folder, f".*{PART}", MOST, before=time() - PART_S)

    def _read(self, name: str, read: Callable[[IO[bytes]], T]) -> T | None:
        path = self._folder / name
        try:
            with gzip.open(path, "rb") as file:
                found = read(cast(IO[bytes], file))
            os.utime(path)  # asked for just now
        except FileNotFoundError:
            return None
        except (OSError, EOFError, zlib.error, msgspec.MsgspecError, UnicodeError):
            self.damaged.append(path)
            return None
        return found

    @contextmanager
    def _packed(self, name: str) -> Generator[IO[bytes]]:
        with appearing(self._folder / name) as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
            yield cast(IO[bytes], packed)


def _size(file: IO[bytes]) -> int:
    """How long a file is. Raises EOFError for nothing: an empty file is an archive too."""
    size = 0
    while chunk := file.read(2**20):
        size += len(chunk)
    if not size:
        raise EOFError
    return size


class Auditor:
    """Audits session after session in the same way: from what is kept where it can, and keeping what it makes.

    All lines go to `out` where there is one; `note` hears of each as it is made. Mutable only in what is kept.
    """

    def __init__(
        self,
        asked: AuditRequest,
        tokenizer: Tokenizer,
        *,
        kept: AuditCache | None = None,
        fresh: bool = False,
        out: IO[bytes] | None = None,
        marks: MarkBook | None = None,
    ) -> None:
        self._marks = marks
        self._asked, self._tokenizer = asked, tokenizer
        self._kept, self._fresh = kept, fresh
        self._out = out
        self.reused = 0

    def each(self, addresses: Iterable[str], note: Note) -> Iterator[Audit | UnreadSession]:
        """What became of each session, in the order of the addresses."""
        for address in addresses:
            try:
                yield self._one(self._opened(address), note)
            except InputError as error:
                allowed = f", expected {error.allowed}" if error.allowed else ""
                yield UnreadSession(path=spelled(address), why=f"{error.found}{allowed}")

    def _opened(self, address: str) -> SessionSource:
        """A session, with its marks where it has any."""
        one = source(address)
        marks = self._marks.of(one) if self._marks is not None else ()
        return marked(one, marks, self._tokenizer) if marks else one

    def _one(self, one: SessionSource, note: Note) -> Audit:
        next(one.events()[1], None)  # what is no session is refused before all its bytes are read for their digest
        digest = one.sha256()
        kept = self._kept if digest else None  # a store of our own has no bytes to know it by
        if kept is None:
            return self._made(one, digest, note, self._out)
        key = key_of(one.path, digest, self._asked)
        known = None if self._fresh else kept.report(key)
        if known is not None and (self._out is None or kept.has_lines(key)):
            self.reused += 1
            report = known
        elif self._out is None:
            report = self._made(one, digest, note, None)
        else:
            with kept.lines(key) as spool:
                report = self._made(one, digest, note, spool)
        if self._out is not None:
            kept.copy_lines(key, self._out)
        if report is not known and one.sha256() == digest:  # not of a session that went on meanwhile
            kept.keep(key, report)
        return report

    def _made(self, one: SessionSource, digest: str, note: Note, out: IO[bytes] | None) -> Audit:
        report: Audit | None = None
        for line in audit(one, self._asked, self._tokenizer, digest):
            if out is not None:
                out.write(json_of(line) + b"\n")
            note(line)
            if isinstance(line, Audit):
                report = line
        assert report is not None
        return report


KEPT: Final = 2  # of what is kept: a report of another one is made again, though its readers would not mind


def key_of(address: str, digest: str, asked: AuditRequest) -> str:
    """By what an audit is found again: the session's bytes and address, what was asked, and who audited."""
    return sha256(json_of((VERSION, KEPT, tenure.__version__, spelled(address), digest, asked))).hexdigest()[:40]
