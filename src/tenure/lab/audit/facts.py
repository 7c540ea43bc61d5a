"""What a session is, told from the lines of its replay."""

from typing import Final

from msgspec import Struct

from tenure.lab.audit.report import Session, Skips
from tenure.lab.events import CallLine, EntryLine, Line, Part, ReplayLine, SkippedLine

REASONS: Final = 40  # for which something was left out; the others are one
OTHER_REASONS: Final = "(for other reasons)"


class _Skip(Struct):
    line: int
    count: int = 0
    bytes: int = 0


class Facts:
    """What is known so far. Mutable."""

    def __init__(self, header: ReplayLine) -> None:
        self._header = header
        self._calls = self._entries = self._turns = self._tokens = self._prompt = 0
        self._usd = 0.0
        self._started = self._ended = ""
        self._skips: dict[str, _Skip] = {}

    def take(self, line: Line) -> None:
        """The next line."""
        match line:
            case EntryLine():
                self._entries += 1
                self._turns = max(self._turns, line.turn)
                self._tokens += sum(block.tokens or 0 for block in line.blocks)
                self._started = self._started or line.at
                self._ended = line.at or self._ended
            case CallLine():
                self._calls += 1
                self._report(line)
            case SkippedLine():
                self._skip(line)
            case _:
                return

    @property
    def session(self) -> Session:
        """All of it."""
        header = self._header
        file = header.sources[0]
        return Session(
            path=file.path,
            format=file.format,
            sha256=file.sha256,
            model=header.model,
            model_known=header.model_known,
            calls=self._calls,
            entries=self._entries,
            turns=self._turns,
            tokens=self._tokens,
            started=self._started,
            ended=self._ended,
            skipped=tuple(
                Skips(reason=reason, count=each.count, bytes=each.bytes, line=each.line) for reason, each in self._skips.items()
            ),
            prices=header.prices,
            head=header.head,
            reported=Part(tokens=self._prompt, usd=self._usd),
        )

    def _report(self, line: CallLine) -> None:
        told, prices = line.reported, self._header.prices
        if told is not None:
            self._prompt += told.uncached + told.cache_write + told.cache_read
            self._usd += told.uncached * prices.uncached + told.cache_write * prices.write + told.cache_read * prices.read

    def _skip(self, line: SkippedLine) -> None:
        known = line.reason in self._skips or len(self._skips) < REASONS
        found = self._skips.setdefault(line.reason if known else OTHER_REASONS, _Skip(line.line))
        found.count += 1
        found.bytes += line.bytes
