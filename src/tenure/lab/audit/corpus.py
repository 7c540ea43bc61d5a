"""The audits of many sessions, one after another."""

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final

import msgspec

from tenure.engine.meter.tokens import Tokenizer
from tenure.errors import InputError
from tenure.lab.audit.audit import Asked, audit
from tenure.lab.audit.kept import Kept, key_of
from tenure.lab.audit.lines import AuditOutput
from tenure.lab.audit.report import Audit, Unread
from tenure.lab.events import spelled
from tenure.lab.loading import source
from tenure.lab.replay import Source

Note = Callable[[AuditOutput], None]

_encode: Final = msgspec.json.Encoder().encode


class Auditor:
    """Audits session after session in the same way: from what is kept where it can, and keeping what it makes.

    All lines go to `out` where there is one; `note` hears of each as it is made. Mutable only in what is kept.
    """

    def __init__(
        self, asked: Asked, tokenizer: Tokenizer, *, kept: Kept | None = None, fresh: bool = False, out: IO[bytes] | None = None
    ) -> None:
        self._asked, self._tokenizer = asked, tokenizer
        self._kept, self._fresh = kept, fresh
        self._out = out
        self.reused = 0

    def each(self, addresses: Iterable[str], note: Note) -> Iterator[Audit | Unread]:
        """What became of each session, in the order of the addresses."""
        for address in addresses:
            try:
                yield self._one(source(address), note)
            except InputError as error:
                allowed = f", expected {error.allowed}" if error.allowed else ""
                yield Unread(path=spelled(address), why=f"{error.found}{allowed}")

    def _one(self, one: Source, note: Note) -> Audit:
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

    def _made(self, one: Source, digest: str, note: Note, out: IO[bytes] | None) -> Audit:
        report: Audit | None = None
        for line in audit(one, self._asked, self._tokenizer, digest):
            if out is not None:
                out.write(_encode(line) + b"\n")
            note(line)
            if isinstance(line, Audit):
                report = line
        assert report is not None
        return report
