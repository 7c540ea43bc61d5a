"""The session as it was recorded: what it is, where its window went, and what each block of it cost over its lifetime.

A block is paid for by every call that carries it: once written (or sent anew, where nothing is cached), then read from the cache. A request
is read as far as it shares its start with the one before, so where a block stands decides what it costs there (meter/cache.py).

Results that stood in the window when nothing needed them there any more became so in one of three ways, of which the first to happen counts: the
file was changed (stale), its lines were read again (superseded), or the same bytes were shown again (duplicate). docs/audit.md has the definitions.
"""

from hashlib import sha256
from typing import Final

from msgspec import Struct, structs

from tenure.engine.meter.figures import first_line
from tenure.engine.record.objects import HASH_CHARS
from tenure.engine.record.tools import cue_of
from tenure.engine.view.edit import Drop, Replace, Restore
from tenure.lab.audit.files import FileAccess, access_of, lines_shown
from tenure.lab.audit.report import (
    REREADS,
    AuditWindow,
    OwnCompaction,
    Reread,
    Series,
    SessionFacts,
    Skips,
    Waste,
    Wasted,
    WindowRow,
    sum_of,
    table,
)
from tenure.lab.audit.runs import RECORDED, Places
from tenure.lab.bill import Watched
from tenure.lab.events import At, BlockLine, CallLine, CommitLine, EntryLine, HeadTokens, Part, ReplayLine, SkippedLine, fields_in
from tenure.lab.kinds import LABELS, kind_of_line

LABEL_CHARS: Final = 72
REASONS: Final = 40  # for which something was left out; the others are one
OTHER_REASONS: Final = "(for other reasons)"
HEAD: Final[At] = (-1, 0)  # stands before every block
LEAST: Final = 50  # tokens of a result that is counted as a duplicate: "ok" is said often
READ_AGAIN: Final = 0.5  # of a read's lines: less than that read again leaves it what it was
KEPT: Final = 256  # reads of one file that are watched at a time, the newest
WASTES: Final[tuple[Waste, ...]] = ("stale", "superseded", "duplicate")
_CUE_CHARS: Final = 72
_TURN: Final = "user:"
_TABLES: Final = ("by_kind", "by_tool", "by_path", "by_turn")  # in the order of a block's names in them


class CarriedBlock(Struct, gc=False):
    """A block with its names in the tables, and what carrying it came to so far."""

    names: tuple[str, ...] = ()
    is_call: bool = False
    size: int = 0  # as it came
    weight: int = 0  # as it is shown now
    calls: int = 0  # that carried it
    paid: int = 0  # tokens times those calls
    usd: float = 0.0
    since_call: int = 0  # up to where the above is settled
    since_rate: float = 0.0


class Recording:
    """What is known of a session from the lines of the replay that changes nothing. Mutable. O(changes), and O(what is written) for each call.

    `_rate` adds up what a token cost at each call where it is paid as most are; only where a request is read in part do the blocks behind
    that place pay the difference one by one. The recorded agent's own window holds nothing that was inserted.
    """

    def __init__(self, header: ReplayLine) -> None:
        self._header = header
        self._entries = self._turns = self._tokens = 0
        self._started = self._ended = ""
        self._reported = Part()  # prompts, as the log itself reports them
        self._skips: dict[str, Skips] = {}
        self._blocks: dict[At, CarriedBlock] = {HEAD: CarriedBlock()}  # in the order of the record
        self.calls = 0  # how many there were
        self._rate = 0.0
        self._rereads = Rereads(self)
        self._labels: dict[str, str] = {}  # what the human wrote first, by turn
        self._compactions: list[OwnCompaction] = []
        self.places = Places()

    def take(self, line: Watched) -> None:
        """The next line."""
        match line:
            case EntryLine():
                self._entry(line)
            case CommitLine():
                self._commit(line)
            case CallLine():
                self._call(line)
            case SkippedLine():
                reason = line.reason if line.reason in self._skips or len(self._skips) < REASONS else OTHER_REASONS
                known = self._skips.get(reason) or Skips(reason=reason, count=0, bytes=0, line=line.line)
                self._skips[reason] = structs.replace(known, count=known.count + 1, bytes=known.bytes + line.bytes)
            case _:
                return

    @property
    def head(self) -> HeadTokens:
        """What stands before the view in every request."""
        return self._header.head

    @property
    def session(self) -> SessionFacts:
        """What was audited."""
        return SessionFacts(
            **fields_in(self._header, SessionFacts),
            **structs.asdict(self._header.sources[0]),
            calls=self.calls,
            entries=self._entries,
            turns=self._turns,
            tokens=self._tokens,
            started=self._started,
            ended=self._ended,
            skipped=tuple(self._skips.values()),
            reported=self._reported,
        )

    def window(self, series: Series) -> AuditWindow:
        """Where it went; `series` is that of the same replay."""
        settled = {at: self.settled(at) for at in self._blocks}
        head = settled.pop(HEAD)
        rereads, wasted = self._rereads.finish()
        labels = LABELS | self._labels
        tables = {
            field: table(
                WindowRow(
                    name=block.names[place],
                    label=labels.get(block.names[place], "") if field in ("by_kind", "by_turn") else "",
                    objects=int(at[1] == 0 if field == "by_turn" else block.is_call or field == "by_kind"),
                    tokens=block.size,
                    paid=block.paid,
                    usd=block.usd,
                )
                for at, block in settled.items()
            )
            for place, field in enumerate(_TABLES)
        }
        return AuditWindow(
            **tables,
            head=WindowRow(name="head", objects=head.calls, tokens=head.weight, paid=head.paid, usd=head.usd),
            wasted=wasted,
            rereads=rereads,
            series=series,
            compactions=tuple(self._compactions),
        )

    def settled(self, at: At) -> CarriedBlock:
        """What carrying a block came to, up to now."""
        block = self._blocks[at]
        if block.weight:
            calls = self.calls - block.since_call
            block.calls += calls
            block.paid += block.weight * calls
            block.usd += block.weight * (self._rate - block.since_rate)
        block.since_call, block.since_rate = self.calls, self._rate
        return block

    def _entry(self, line: EntryLine) -> None:
        self._entries += 1
        self._turns = max(self._turns, line.turn)
        self._started, self._ended = self._started or line.at, line.at or self._ended
        for number, block in enumerate(line.blocks):
            tokens = block.tokens or 0
            self._tokens += tokens
            shown = CarriedBlock(size=tokens, weight=tokens, since_call=self.calls, since_rate=self._rate)
            self._blocks[line.entry, number] = shown
        self._rereads.entry(line)
        self.places.entry(line)
        for number, block in enumerate(line.blocks):
            carried = self._blocks[line.entry, number]
            carried.names, carried.is_call = self._names(block), block.kind == "tool_call"

    def _names(self, block: BlockLine) -> tuple[str, str, str, str]:
        """Its kind, tool, file and turn."""
        objects = block.objects or ()
        tool = block.name or ""
        turn = next((name for name in objects if name.startswith(_TURN)), "")
        if turn and turn not in self._labels and block.origin == "human" and (first := first_line(block.text or "", LABEL_CHARS)):
            self._labels[turn] = first
        path = self._rereads.access(objects[0]).path if tool and objects else ""
        return kind_of_line(block), tool, path, turn

    def _commit(self, line: CommitLine) -> None:
        """The recorded agent changed its window. A result that shows less than it did is not carried needlessly any more."""
        for edit in line.edits:
            if isinstance(edit, Drop | Replace | Restore):
                at = edit.entry, edit.block
                block = self.settled(at)
                after = edit.tokens if isinstance(edit, Replace) else block.size if isinstance(edit, Restore) else 0
                before, block.weight = block.weight, after
                if after < before:
                    self._rereads.shortened(at)
        if line.moment == RECORDED:
            self._compactions.append(OwnCompaction(**fields_in(line, OwnCompaction)))

    def _call(self, line: CallLine) -> None:
        """A request that carries all that is shown."""
        self.settled(HEAD).weight = line.head_tokens
        read, rest = self._rates(line)
        shared = line.shared_prefix_tokens if line.cache_read else 0
        self.calls += 1
        self._rate += read if shared else rest
        if shared and read != rest:
            self._pay_rest(line.view_tokens - shared, rest - read)
        if (found := line.reported) is not None:
            prices = self._header.prices
            usd = found.uncached * prices.uncached + found.cache_write * prices.write + found.cache_read * prices.read
            self._reported += Part(tokens=found.uncached + found.cache_write + found.cache_read, usd=usd)

    def _rates(self, line: CallLine) -> tuple[float, float]:
        """USD for an o200k token that is read, and for one that is not: so that all of a request comes to what the call was billed."""
        prices = self._header.prices
        read_usd, rest_usd = line.cache_read * prices.read, line.uncached * prices.uncached + line.cache_write * prices.write
        shared = line.shared_prefix_tokens if line.cache_read else 0
        rest = line.view_tokens - shared
        if not rest:  # what is rounded up belongs to what was read
            return (read_usd + rest_usd) / max(shared, 1), 0.0
        return read_usd / max(shared, 1), rest_usd / rest

    def _pay_rest(self, tokens: int, more: float) -> None:
        """The newest `tokens` of the request were not read."""
        for block in reversed(self._blocks.values()):
            if tokens <= 0:
                return
            weight = min(block.weight, tokens)
            block.usd += weight * more
            tokens -= weight


class _WatchedCall(Struct, frozen=True):
    """A call that waits for its result, or has it."""

    object: str
    handle: str
    access: FileAccess
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

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._calls: dict[str, _WatchedCall] = {}  # by object
        self._needed: dict[At, _WatchedResult] = {}
        self._by_path: dict[str, dict[At, _WatchedResult]] = {}
        self._by_digest: dict[bytes, _WatchedResult] = {}
        self._open: dict[At, Reread] = {}  # with what they had come to when they became so
        self._done: list[Reread] = []

    def entry(self, line: EntryLine) -> None:
        """A message that was said; the recording has it already."""
        for number, block in enumerate(line.blocks):
            if block.kind == "tool_call" and block.objects:
                self._call(line, block, block.objects[0])
            elif block.kind == "tool_result" and block.name and block.objects and not block.error:
                self._result((line.entry, number), block, block.objects[0])

    def shortened(self, at: At) -> None:
        """A result shows less than it did."""
        self._forget(at)
        self._close(at)

    def finish(self) -> tuple[tuple[Reread, ...], tuple[Wasted, ...]]:
        """All of them, the dearest first, as many as a report lists; and what they come to."""
        for at in list(self._open):
            self._close(at)
        found = sorted((each for each in self._done if each.calls), key=lambda each: (-each.usd, -each.paid, each.entry))
        wasted = (
            sum_of((Wasted(how=how), *(Wasted(**fields_in(each, Wasted), objects=1) for each in found if each.how == how)))
            for how in WASTES
        )
        return tuple(found[:REREADS]), tuple(wasted)

    def access(self, object_: str) -> FileAccess:
        """What a call did to files."""
        return self._calls[object_].access if object_ in self._calls else FileAccess()

    def _call(self, line: EntryLine, block: BlockLine, object_: str) -> None:
        arguments = block.text or ""
        access = access_of(str(block.name), arguments)
        cue = access.path or first_line(cue_of(arguments), _CUE_CHARS)
        self._calls[object_] = _WatchedCall(object_, f"{object_}@{line.id[:HASH_CHARS]}", access, cue)

    def _result(self, at: At, block: BlockLine, object_: str) -> None:
        call = self._calls.get(object_)
        if call is None:
            return
        for path in call.access.changes:
            for each in list(self._by_path.get(path, {}).values()):
                self._needless("stale", each, call, at, each.tokens)
        text = block.text or ""
        digest = sha256(text.encode()).digest()
        shown = _WatchedResult(at, call, digest, block.tokens or 0, lines_shown(text, call.access.shows))
        self._again(shown)
        self._needed[at] = shown
        if shown.tokens >= LEAST:
            self._by_digest[shown.digest] = shown
        if call.access.shows is not None:
            reads = self._by_path.setdefault(call.access.path, {})
            reads[at] = shown
            if len(reads) > KEPT:
                del reads[next(iter(reads))]

    def _again(self, new: _WatchedResult) -> None:
        """What a result shows that stood there already."""
        same = self._by_digest.get(new.digest)
        if same is not None and same.at in self._needed:
            self._needless("duplicate", same, new.call, new.at, same.tokens)
        if new.call.access.shows is None:
            return
        for old in list(self._by_path.get(new.call.access.path, {}).values()):
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
            before_call=self._recording.calls,
            calls=0,
            paid=0,
            usd=self._recording.settled(old.at).usd,
        )

    def _forget(self, at: At) -> None:
        shown = self._needed.pop(at, None)
        if shown is not None and shown.call.access.shows is not None:
            self._by_path.get(shown.call.access.path, {}).pop(at, None)

    def _close(self, at: At) -> None:
        found = self._open.pop(at, None)
        if found is not None:
            calls = self._recording.calls - found.before_call
            usd = (self._recording.settled(at).usd - found.usd) * found.tokens / found.of if found.of else 0.0
            self._done.append(structs.replace(found, calls=calls, paid=found.tokens * calls, usd=usd))
