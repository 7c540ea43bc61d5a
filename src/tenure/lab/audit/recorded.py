"""The session as it was recorded: what it is, and where its window went."""

from typing import Final

from msgspec import Struct, structs

from tenure.engine.meter.figures import first_line
from tenure.lab.audit.lifetimes import HEAD, Lifetimes
from tenure.lab.audit.report import Compaction, Row, Series, Session, Skips, Window
from tenure.lab.audit.rereads import Rereads
from tenure.lab.audit.runs import RECORDED, Places
from tenure.lab.audit.tables import Placed, table
from tenure.lab.events import BlockLine, CallLine, CommitLine, EntryLine, Line, Part, ReplayLine, SkippedLine
from tenure.lab.harm.holdings import Holdings
from tenure.lab.harm.passage import of_line
from tenure.lab.harm.use import Use, uses
from tenure.lab.harm.watch import Uses
from tenure.lab.kinds import LABELS, kind_of_line

LABEL_CHARS: Final = 72
REASONS: Final = 40  # for which something was left out; the others are one
OTHER_REASONS: Final = "(for other reasons)"
_TURN: Final = "user:"


class _Facts(Struct):
    """What is counted as the lines come."""

    calls: int = 0
    entries: int = 0
    turns: int = 0
    tokens: int = 0
    started: str = ""
    ended: str = ""


class Recording:
    """What is known of a session from the lines of the replay that changes nothing. Mutable."""

    def __init__(self, header: ReplayLine) -> None:
        self._header, self._facts = header, _Facts()
        self._prompt, self._usd = 0, 0.0  # as the log itself reports them
        self._skips: dict[str, Skips] = {}
        self._lifetimes = Lifetimes(header.prices)
        self._rereads = Rereads(self._lifetimes)
        self._placed: list[Placed] = []
        self._turns: dict[str, str] = {}  # what the human said first, by turn
        self._compactions: list[Compaction] = []
        self._holdings = Holdings()
        self._uses: list[Use] = []
        self._calls: dict[int, int] = {}
        self._places = Places(Uses((), self._calls, self._holdings))

    def take(self, line: Line) -> None:
        """The next line."""
        match line:
            case EntryLine():
                self._entry(line)
            case CommitLine():
                for change in self._lifetimes.commit(line):
                    self._rereads.changed(change)
                if line.moment == RECORDED:
                    names = ("before_call", "entries", "reason", "tokens_before", "tokens_after")
                    self._compactions.append(Compaction(**{name: getattr(line, name) for name in names}))
            case CallLine():
                self._lifetimes.call(line)
                self._facts.calls += 1
                if (reported := line.reported) is not None:
                    prices = self._header.prices
                    self._prompt += reported.uncached + reported.cache_write + reported.cache_read
                    self._usd += (
                        reported.uncached * prices.uncached
                        + reported.cache_write * prices.write
                        + reported.cache_read * prices.read
                    )
            case SkippedLine():
                reason = line.reason if line.reason in self._skips or len(self._skips) < REASONS else OTHER_REASONS
                known = self._skips.get(reason) or Skips(reason=reason, count=0, bytes=0, line=line.line)
                self._skips[reason] = structs.replace(known, count=known.count + 1, bytes=known.bytes + line.bytes)
            case _:
                return

    @property
    def session(self) -> Session:
        """What was audited."""
        header = self._header
        return Session(
            **structs.asdict(header.sources[0]),
            **structs.asdict(self._facts),
            model=header.model,
            model_known=header.model_known,
            skipped=tuple(self._skips.values()),
            prices=header.prices,
            head=header.head,
            reported=Part(tokens=self._prompt, usd=self._usd),
        )

    def places(self) -> Places:
        """Where needs and what held them can be looked up."""
        self._places.uses = Uses(tuple(self._uses), self._calls, self._holdings)
        return self._places

    def window(self, series: Series) -> Window:
        """Where it went; `series` is that of the same replay."""
        paid = dict(self._lifetimes.all())
        blocks = [(placed, paid[placed.at]) for placed in self._placed]
        head = self._lifetimes.paid(HEAD)
        rereads, wasted = self._rereads.finish()
        return Window(
            by_kind=table(blocks, lambda placed: placed.kind, lambda _: True, LABELS),
            by_tool=table(blocks, lambda placed: placed.tool, lambda placed: placed.counts),
            by_path=table(blocks, lambda placed: placed.path, lambda placed: placed.counts),
            by_turn=table(blocks, lambda placed: placed.turn, lambda placed: placed.begins, self._turns),
            head=Row(name="head", objects=head.calls, tokens=head.weight, paid=head.tokens, usd=head.usd),
            wasted=wasted,
            rereads=rereads,
            series=series,
            compactions=tuple(self._compactions),
        )

    def _entry(self, line: EntryLine) -> None:
        facts = self._facts
        facts.entries += 1
        facts.turns = max(facts.turns, line.turn)
        facts.tokens += sum(block.tokens or 0 for block in line.blocks)
        facts.started, facts.ended = facts.started or line.at, line.at or facts.ended
        self._lifetimes.entry(line)
        self._rereads.entry(line)
        self._places.entry(line)
        self._placed += [self._place(line, number, block) for number, block in enumerate(line.blocks)]
        message = of_line(line)
        if message.role == "assistant":
            self._calls[message.entry] = len(self._calls)
            self._uses += uses(message, self._holdings)
        self._holdings.take(message)

    def _place(self, line: EntryLine, number: int, block: BlockLine) -> Placed:
        objects = block.objects or ()
        tool = block.name or ""
        turn = next((name for name in objects if name.startswith(_TURN)), "")
        if turn and turn not in self._turns and block.origin == "human" and (first := first_line(block.text or "", LABEL_CHARS)):
            self._turns[turn] = first
        return Placed(
            at=(line.entry, number),
            tokens=block.tokens or 0,
            kind=kind_of_line(block),
            tool=tool,
            path=self._rereads.deed(objects[0]).path if tool and objects else "",
            turn=turn,
            counts=block.kind == "tool_call",
            begins=number == 0,
        )
