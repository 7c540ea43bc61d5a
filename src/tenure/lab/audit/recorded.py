"""The session as it was recorded: what it is, and where its window went."""

from typing import Final

from tenure.engine.meter.figures import first_line
from tenure.lab.audit.facts import Facts
from tenure.lab.audit.harms import Places, Placing
from tenure.lab.audit.lifetimes import HEAD, Lifetimes
from tenure.lab.audit.removals import RECORDED
from tenure.lab.audit.report import Compaction, Row, Series, Session, Window
from tenure.lab.audit.rereads import Rereads
from tenure.lab.audit.tables import Placed, table
from tenure.lab.events import BlockLine, CallLine, CommitLine, EntryLine, Line, ReplayLine
from tenure.lab.harm.holdings import Holdings
from tenure.lab.harm.passage import of_line
from tenure.lab.harm.use import Use, uses
from tenure.lab.harm.watch import Uses
from tenure.lab.kinds import LABELS, kind_of_line

LABEL_CHARS: Final = 72
_TURN: Final = "user:"


class Recording:
    """What is known of a session from the lines of the replay that changes nothing. Mutable."""

    def __init__(self, header: ReplayLine) -> None:
        self._lifetimes = Lifetimes(header.prices)
        self._rereads = Rereads(self._lifetimes)
        self._facts = Facts(header)
        self._placing = Placing()
        self._placed: list[Placed] = []
        self._turns: dict[str, str] = {}  # what the human said first, by turn
        self._compactions: list[Compaction] = []
        self._holdings = Holdings()
        self._uses: list[Use] = []
        self._calls: dict[int, int] = {}

    def take(self, line: Line) -> None:
        """The next line."""
        self._facts.take(line)
        match line:
            case EntryLine():
                self._entry(line)
            case CommitLine():
                for change in self._lifetimes.commit(line):
                    self._rereads.changed(change)
                if line.moment == RECORDED:
                    self._compactions.append(_compaction(line))
            case CallLine():
                self._lifetimes.call(line)
            case _:
                return

    @property
    def session(self) -> Session:
        """What was audited."""
        return self._facts.session

    def places(self) -> Places:
        """Where needs and what held them can be looked up."""
        return self._placing.places(Uses(tuple(self._uses), self._calls, self._holdings))

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
        self._lifetimes.entry(line)
        self._rereads.entry(line)
        self._placing.entry(line)
        for number, block in enumerate(line.blocks):
            self._placed.append(self._place(line, number, block))
        message = of_line(line)
        if message.role == "assistant":
            self._calls[message.entry] = len(self._calls)
            self._uses += uses(message, self._holdings)
        self._holdings.take(message)

    def _place(self, line: EntryLine, number: int, block: BlockLine) -> Placed:
        objects = block.objects or ()
        tool = block.name or ""
        turn = next((name for name in objects if name.startswith(_TURN)), "")
        if turn and turn not in self._turns and block.origin == "human" and (said := first_line(block.text or "", LABEL_CHARS)):
            self._turns[turn] = said
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


def _compaction(line: CommitLine) -> Compaction:
    return Compaction(
        before_call=line.before_call,
        entries=line.entries,
        reason=line.reason,
        tokens_before=line.tokens_before,
        tokens_after=line.tokens_after,
    )
