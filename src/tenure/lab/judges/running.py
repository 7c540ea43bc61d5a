"""Cases judged one after another."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, Generic, TypeVar

from msgspec import Struct

from tenure.engine.record.entry import Count
from tenure.errors import Failure
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.asking import Failed, Spent, tell
from tenure.lab.judges.book import Book, FailedLine, PreferenceLine, VerdictLine
from tenure.lab.judges.case import Case, Facts, Need
from tenure.lab.judges.no_impact import Verdict
from tenure.lab.judges.preference import Both, Preference, both
from tenure.lab.judges.reply import Unusable
from tenure.lab.judges.request import ROOM, JudgeRequest
from tenure.models.question import Model

IN_A_ROW: Final = 3  # failures after which nobody is asked any more
NOT_ASKED: Final = "not asked after "

V = TypeVar("V")


class Judge(Struct, frozen=True, kw_only=True):
    """Who judges, and with how much room for a question."""

    model: Model
    name: str  # by which verdicts are known
    count: Count
    room: int = ROOM


class Judged(Struct, frozen=True, kw_only=True, tag="judged", tag_field="type"):
    """What became of one case: a verdict or a failure, beside what the mechanical detector finds."""

    facts: Facts
    key: str
    contract: str
    tokens: int  # o200k, of the question
    shortened: int
    left_out: int
    lost: tuple[Need, ...]  # by the detector, as far as the question shows the use and what was removed
    hidden: int  # by the detector, lost and not to be seen in the question
    verdict: Verdict | None = None
    failure: Failed | None = None
    spent: Spent = Spent()  # now
    earlier: Spent = Spent()  # when the verdict was given that the book held
    repaired: bool = False


class Compared(Struct, frozen=True, kw_only=True, tag="compared", tag_field="type"):
    """What became of a pair of plans at one cut, asked in both orders. Of controls, `first` is the one that has to pass."""

    first: Facts
    second: Facts
    keys: tuple[str, str]
    contract: str
    forth: Preference | None = None
    back: Preference | None = None  # asked with `second` as A
    failure: Failed | None = None
    spent: Spent = Spent()
    earlier: Spent = Spent()

    @property
    def both(self) -> Both | None:
        """What both orders come to; None where one of them has no verdict."""
        return both(self.forth, self.back) if self.forth is not None and self.back is not None else None


Outcome = Judged | Compared


class Foreseen(Struct, frozen=True, kw_only=True):
    """What one case would be asked with."""

    facts: Facts
    tokens: int  # o200k, of the question
    remembered: bool


def run(cases: Iterable[Case], judge: Judge, book: Book, *, against: tuple[str, str] | None = None) -> Iterator[Outcome]:
    """Every case judged, in order.

    With two policies to hold `against` each other, the A/B judge is asked where their verdicts differ, and of every pair of controls. After IN_A_ROW failures in a row, or one that will happen again until somebody changes something, nobody is asked any more; the cases that
    are left are failures that say so. Verdicts that the book holds are taken from there.
    """
    asker = _Asker(judge, book)
    for _, group in groupby(cases, key=lambda case: (case.facts.source, case.facts.cut)):
        found: list[tuple[Case, Judged]] = []
        for case in group:
            outcome = asker.judged(case)
            found.append((case, outcome))
            yield outcome
        for pair in _pairs(found, against) if against is not None else ():
            yield asker.compared(*pair)


def foreseen(cases: Iterable[Case], judge: Judge, book: Book) -> Iterator[Foreseen]:
    """What would be asked, case by case; nobody is asked."""
    for case in cases:
        request = no_impact.ask(case, count=judge.count, room=judge.room)
        held = book.verdict(request.key, request.contract, judge.name)
        yield Foreseen(facts=case.facts, tokens=request.tokens, remembered=held is not None)


def _pairs(found: Sequence[tuple[Case, Judged]], against: tuple[str, str]) -> Iterator[tuple[Case, Case]]:
    """The plans of a cut to hold against each other."""
    plans = {case.facts.policy: (case, judged) for case, judged in found if not case.facts.control}
    controls = {case.facts.control: case for case, _ in found if case.facts.control}
    if against[0] in plans and against[1] in plans:
        (first, one), (second, other) = plans[against[0]], plans[against[1]]
        if one.verdict is not None and other.verdict is not None and one.verdict.valid != other.verdict.valid:
            yield first, second
    if "unused" in controls and "needed" in controls:
        yield controls["unused"], controls["needed"]


class _Asker:
    """Asks, remembers, and stops asking when it is of no use. Mutable."""

    def __init__(self, judge: Judge, book: Book) -> None:
        self._judge, self._book = judge, book
        self._failures = 0  # in a row
        self._over = ""  # why nobody is asked any more

    def judged(self, case: Case) -> Judged:
        judge, book = self._judge, self._book
        request = no_impact.ask(case, count=judge.count, room=judge.room)
        lost = tuple(need for need in request.in_sight if need.stands == "lost")
        held = book.verdict(request.key, request.contract, judge.name)
        given = _remembered(held.verdict, held.spent, repaired=held.repaired) if held is not None else None
        if given is None:
            given = self._given(request, lambda reply: no_impact.read(reply, request.objects))
            if isinstance(given.outcome, Verdict):
                line = VerdictLine(
                    key=request.key,
                    contract=request.contract,
                    model=judge.name,
                    facts=case.facts,
                    verdict=given.outcome,
                    spent=given.spent,
                    repaired=given.repaired,
                )
                book.add(line)
        return Judged(
            facts=case.facts,
            key=request.key,
            contract=request.contract,
            tokens=request.tokens,
            shortened=request.shortened,
            left_out=request.left_out,
            lost=lost,
            hidden=sum(need.stands == "lost" for need in case.needs) - len(lost),
            verdict=given.outcome if isinstance(given.outcome, Verdict) else None,
            failure=given.outcome if isinstance(given.outcome, Failed) else None,
            spent=given.spent,
            earlier=given.earlier,
            repaired=given.repaired,
        )

    def compared(self, first: Case, second: Case) -> Compared:
        (forth_request, forth), (back_request, back) = self._preferred(first, second), self._preferred(second, first)
        failures = [each.outcome for each in (forth, back) if isinstance(each.outcome, Failed)]
        return Compared(
            first=first.facts,
            second=second.facts,
            keys=(forth_request.key, back_request.key),
            contract=forth_request.contract,
            forth=forth.outcome if isinstance(forth.outcome, Preference) else None,
            back=back.outcome if isinstance(back.outcome, Preference) else None,
            failure=failures[0] if failures else None,
            spent=forth.spent + back.spent,
            earlier=forth.earlier + back.earlier,
        )

    def _preferred(self, first: Case, second: Case) -> "tuple[JudgeRequest, _Given[Preference]]":
        judge, book = self._judge, self._book
        request = preference.ask(first, second, count=judge.count, room=judge.room)
        held = book.preference(request.key, request.contract, judge.name)
        if held is not None:
            return request, _remembered(held.verdict, held.spent, repaired=held.repaired)
        given = self._given(request, preference.read)
        if isinstance(given.outcome, Preference):
            line = PreferenceLine(
                key=request.key,
                contract=request.contract,
                model=judge.name,
                first=first.facts,
                second=second.facts,
                verdict=given.outcome,
                spent=given.spent,
                repaired=given.repaired,
            )
            book.add(line)
        return request, given

    def _given(self, request: JudgeRequest, read: Callable[[str], V | Unusable]) -> "_Given[V]":
        """What the model says now; nothing any more after too many failures."""
        if self._over:
            return _Given(outcome=Failed(kind=Failure.CANCELLED, why=f"{NOT_ASKED}{self._over}"))
        told = tell(self._judge.model, request.question, read)
        failure = told.outcome if isinstance(told.outcome, Failed) else None
        self._failures = self._failures + 1 if failure is not None else 0
        if failure is not None:
            if failure.kind is Failure.NOT_ACCEPTED or self._failures >= IN_A_ROW:
                self._over = f"{self._failures} failure{'s' * (self._failures > 1)} in a row ({failure.why})"
            line = FailedLine(
                key=request.key, contract=request.contract, model=self._judge.name, failure=failure, spent=told.spent
            )
            self._book.add(line)
        return _Given(outcome=told.outcome, spent=told.spent, repaired=told.repaired)


class _Given(Struct, Generic[V], frozen=True, kw_only=True):
    """What came of one question."""

    outcome: V | Failed
    spent: Spent = Spent()
    earlier: Spent = Spent()
    repaired: bool = False


def _remembered(verdict: V, spent: Spent, *, repaired: bool) -> _Given[V]:
    return _Given(outcome=verdict, earlier=spent, repaired=repaired)
