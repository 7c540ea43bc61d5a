"""Results that stood in the window when nothing needed them there any more.

Three ways to become so, of which the first to happen counts: its file was changed (stale), its lines were read again (superseded), or the same
bytes were shown again (duplicate). docs/audit.md has the definitions.
"""

from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.figures import first_line
from tenure.engine.record.objects import HASH_CHARS
from tenure.engine.record.tools import cue_of
from tenure.lab.audit.files import FileAccess, access_of, lines_shown
from tenure.lab.audit.lifetimes import Lifetimes
from tenure.lab.audit.report import REREADS, Reread, Waste, Wasted
from tenure.lab.audit.runs import Change
from tenure.lab.events import At, BlockLine, EntryLine

LEAST: Final = 50  # tokens of a result that is counted as a duplicate: "ok" is said often
READ_AGAIN: Final = 0.5  # of a read's lines: less than that read again leaves it what it was
KEPT: Final = 256  # reads of one file that are watched at a time, the newest
WASTES: Final[tuple[Waste, ...]] = ("stale", "superseded", "duplicate")

_CUE_CHARS: Final = 72


class _WatchedCall(Struct, frozen=True):
    """A call that waits for its result, or has it."""

    object: str
    handle: str
    deed: FileAccess
    cue: str


class _WatchedResult(Struct, frozen=True):
    """A result that stands in the window."""

    at: At
    call: _WatchedCall
    digest: bytes
    tokens: int
    lines: range  # of the file


class Rereads:
    """The needless results of a session, as its lines come. Mutable. O(length of results), and O(results of one file) for each."""

    def __init__(self, lifetimes: Lifetimes) -> None:
        self._lifetimes = lifetimes
        self._calls: dict[str, _WatchedCall] = {}  # by object
        self._needed: dict[At, _WatchedResult] = {}
        self._by_path: dict[str, dict[At, _WatchedResult]] = {}
        self._by_digest: dict[bytes, _WatchedResult] = {}
        self._open: dict[At, Reread] = {}  # with what they had come to when they became so
        self._done: list[Reread] = []

    def entry(self, line: EntryLine) -> None:
        """A message that was said; `lifetimes` has it already."""
        for number, block in enumerate(line.blocks):
            if block.kind == "tool_call" and block.objects:
                self._call(line, block, block.objects[0])
            elif block.kind == "tool_result" and block.name and block.objects and not block.error:
                self._result((line.entry, number), block, block.objects[0])

    def changed(self, change: Change) -> None:
        """A result that shows less than it did is not carried needlessly any more."""
        key, before, after = change
        if not isinstance(key, str) and after < before:
            self._forget(key)
            self._close(key)

    def finish(self) -> tuple[tuple[Reread, ...], tuple[Wasted, ...]]:
        """All of them, the dearest first, as many as a report lists; and what they come to."""
        for at in list(self._open):
            self._close(at)
        found = sorted((each for each in self._done if each.calls), key=lambda each: (-each.usd, -each.paid, each.entry))
        sums = {how: Wasted(how=how, objects=0, tokens=0, paid=0, usd=0.0) for how in WASTES}
        for each in found:
            sums[each.how] += Wasted(how=each.how, objects=1, tokens=each.tokens, paid=each.paid, usd=each.usd)
        return tuple(found[:REREADS]), tuple(sums.values())

    def deed(self, object_: str) -> FileAccess:
        """What a call did."""
        return self._calls[object_].deed if object_ in self._calls else FileAccess()

    def _call(self, line: EntryLine, block: BlockLine, object_: str) -> None:
        arguments = block.text or ""
        deed = access_of(str(block.name), arguments)
        cue = deed.path or first_line(cue_of(arguments), _CUE_CHARS)
        self._calls[object_] = _WatchedCall(object_, f"{object_}@{line.id[:HASH_CHARS]}", deed, cue)

    def _result(self, at: At, block: BlockLine, object_: str) -> None:
        call = self._calls.get(object_)
        if call is None:
            return
        for path in call.deed.changes:
            for each in list(self._by_path.get(path, {}).values()):
                self._needless("stale", each, call, at, each.tokens)
        text = block.text or ""
        digest = sha256(text.encode()).digest()
        shown = _WatchedResult(at, call, digest, block.tokens or 0, lines_shown(text, call.deed.shows))
        self._again(shown)
        self._needed[at] = shown
        if shown.tokens >= LEAST:
            self._by_digest[shown.digest] = shown
        if call.deed.shows is not None:
            reads = self._by_path.setdefault(call.deed.path, {})
            reads[at] = shown
            if len(reads) > KEPT:
                del reads[next(iter(reads))]

    def _again(self, new: _WatchedResult) -> None:
        """What a result shows that stood there already."""
        same = self._by_digest.get(new.digest)
        if same is not None and same.at in self._needed:
            self._needless("duplicate", same, new.call, new.at, same.tokens)
        if new.call.deed.shows is None:
            return
        for old in list(self._by_path.get(new.call.deed.path, {}).values()):
            lines = min(old.lines.stop, new.lines.stop) - max(old.lines.start, new.lines.start)
            if lines >= READ_AGAIN * len(old.lines):
                part = old.tokens * lines // len(old.lines)
                self._needless("superseded", old, new.call, new.at, part)

    def _needless(self, how: Waste, old: _WatchedResult, by: _WatchedCall, by_at: At, tokens: int) -> None:
        self._forget(old.at)
        self._open[old.at] = Reread(
            how=how,
            object=old.call.object,
            handle=old.call.handle,
            path=old.call.cue,
            entry=old.at[0],
            tokens=tokens,
            of=old.tokens,
            by=by.object,
            by_entry=by_at[0],
            before_call=self._lifetimes.calls,
            calls=0,
            paid=0,
            usd=self._lifetimes.paid(old.at).usd,
        )

    def _forget(self, at: At) -> None:
        shown = self._needed.pop(at, None)
        if shown is not None and shown.call.deed.shows is not None:
            self._by_path.get(shown.call.deed.path, {}).pop(at, None)

    def _close(self, at: At) -> None:
        found = self._open.pop(at, None)
        if found is not None:
            calls = self._lifetimes.calls - found.before_call
            usd = (self._lifetimes.paid(at).usd - found.usd) * found.tokens / found.of if found.of else 0.0
            self._done.append(replace(found, calls=calls, paid=found.tokens * calls, usd=usd))
