"""The session as it was recorded: what it is, and where its window went."""

from typing import Final

from msgspec import structs

from tenure.engine.meter.figures import first_line
from tenure.lab.audit.lifetimes import HEAD, Lifetimes
from tenure.lab.audit.report import AuditWindow, OwnCompaction, Series, SessionFacts, Skips, WindowRow
from tenure.lab.audit.rereads import Rereads
from tenure.lab.audit.runs import RECORDED, Places
from tenure.lab.audit.tables import table
from tenure.lab.bill import Watched
from tenure.lab.events import At, BlockLine, CallLine, CommitLine, EntryLine, HeadTokens, Part, ReplayLine, SkippedLine
from tenure.lab.kinds import LABELS, kind_of_line

LABEL_CHARS: Final = 72
REASONS: Final = 40  # for which something was left out; the others are one
OTHER_REASONS: Final = "(for other reasons)"
_TURN: Final = "user:"
_COMPACTION: Final = ("before_call", "entries", "reason", "tokens_before", "tokens_after")

_TABLES: Final = ("by_kind", "by_tool", "by_path", "by_turn")  # in the order of a block's names in them


class Recording:
    """What is known of a session from the lines of the replay that changes nothing. Mutable."""

    def __init__(self, header: ReplayLine) -> None:
        self._header = header
        self._entries = self._turns = self._tokens = 0
        self._started = self._ended = ""
        self._reported = Part()  # prompts, as the log itself reports them
        self._skips: dict[str, Skips] = {}
        self._lifetimes = Lifetimes(header.prices)
        self._rereads = Rereads(self._lifetimes)
        self._blocks: list[tuple[At, int, tuple[str, ...], bool]] = []  # place, tokens, names in the tables, whether it is a call
        self._labels: dict[str, str] = {}  # what the human wrote first, by turn
        self._compactions: list[OwnCompaction] = []
        self.places = Places()

    def take(self, line: Watched) -> None:
        """The next line."""
        match line:
            case EntryLine():
                self._entry(line)
            case CommitLine():
                for change in self._lifetimes.commit(line):
                    self._rereads.changed(change)
                if line.moment == RECORDED:
                    self._compactions.append(OwnCompaction(**{name: getattr(line, name) for name in _COMPACTION}))
            case CallLine():
                self._lifetimes.call(line)
                if (found := line.reported) is not None:
                    prices = self._header.prices
                    usd = found.uncached * prices.uncached + found.cache_write * prices.write + found.cache_read * prices.read
                    self._reported += Part(tokens=found.uncached + found.cache_write + found.cache_read, usd=usd)
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
        header = self._header
        return SessionFacts(
            **structs.asdict(header.sources[0]),
            model=header.model,
            model_known=header.model_known,
            calls=self._lifetimes.calls,
            entries=self._entries,
            turns=self._turns,
            tokens=self._tokens,
            started=self._started,
            ended=self._ended,
            skipped=tuple(self._skips.values()),
            prices=header.prices,
            head=header.head,
            reported=self._reported,
        )

    def window(self, series: Series) -> AuditWindow:
        """Where it went; `series` is that of the same replay."""
        paid = dict(self._lifetimes.all())
        head = self._lifetimes.paid(HEAD)
        rereads, wasted = self._rereads.finish()
        labels = LABELS | self._labels
        tables = {
            field: table(
                WindowRow(
                    name=names[place],
                    label=labels.get(names[place], "") if field in ("by_kind", "by_turn") else "",
                    objects=int(at[1] == 0 if field == "by_turn" else is_call or field == "by_kind"),
                    tokens=tokens,
                    paid=paid[at].tokens,
                    usd=paid[at].usd,
                )
                for at, tokens, names, is_call in self._blocks
            )
            for place, field in enumerate(_TABLES)
        }
        return AuditWindow(
            **tables,
            head=WindowRow(name="head", objects=head.calls, tokens=head.weight, paid=head.tokens, usd=head.usd),
            wasted=wasted,
            rereads=rereads,
            series=series,
            compactions=tuple(self._compactions),
        )

    def _entry(self, line: EntryLine) -> None:
        self._entries += 1
        self._turns = max(self._turns, line.turn)
        self._tokens += sum(block.tokens or 0 for block in line.blocks)
        self._started, self._ended = self._started or line.at, line.at or self._ended
        self._lifetimes.entry(line)
        self._rereads.entry(line)
        self.places.entry(line)
        for number, block in enumerate(line.blocks):
            self._block((line.entry, number), block)

    def _block(self, at: At, block: BlockLine) -> None:
        objects = block.objects or ()
        tool = block.name or ""
        turn = next((name for name in objects if name.startswith(_TURN)), "")
        if turn and turn not in self._labels and block.origin == "human" and (first := first_line(block.text or "", LABEL_CHARS)):
            self._labels[turn] = first
        path = self._rereads.deed(objects[0]).path if tool and objects else ""
        names = kind_of_line(block), tool, path, turn
        self._blocks.append((at, block.tokens or 0, names, block.kind == "tool_call"))
