"""Cases judged one after another; verdicts that were given are kept in a file, so that what was paid for is not paid for twice.

JSON lines, appended as they come. A verdict is known by what was quoted to the judge (`key`), the version of the contract and the model's name; a
change of any of them is another question. Failures are noted too, and asked again. One process writes to a file at a time.

Asking a model for a verdict.

A reply that cannot be read is asked for again once, with what was wrong with it, in the same conversation, so that the provider's cache of the
question is read. A second one that cannot be read is a failure.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Generic, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.price import prices_for
from tenure.engine.record.entry import Count, Draft, Origin, Role, Text, Usage
from tenure.engine.record.visible import json_of
from tenure.errors import Failure, InputError, ModelError, StoreError, TenureError
from tenure.lab.events import Sum, fields_in
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.cases import Case, CaseFacts, CaseNeed
from tenure.lab.judges.contracts import Unusable, whole
from tenure.lab.judges.no_impact import NoImpact
from tenure.lab.judges.preference import Preference
from tenure.lab.judges.request import ROOM, CaseQuestion
from tenure.models.question import Model, Question

QUOTED_CHARS: Final = 8_000  # of a reply that is shown to its own model again

A = TypeVar("A")


class JudgeCost(Sum, frozen=True, kw_only=True):
    """What asking took, as far as providers reported it."""

    questions: int = 0
    usage: Usage = Usage()
    usd: float = 0.0
    unreported: int = 0  # answers without usage
    unpriced: int = 0  # answers whose price nobody lists


class NoVerdict(Struct, frozen=True, kw_only=True):
    """Why there is no verdict."""

    kind: Failure
    why: str


class Judgement(Struct, Generic[A], frozen=True, kw_only=True):
    """What came of one question: a verdict, or a failure in place of it."""

    verdict: A | None = None
    failure: NoVerdict | None = None
    spent: JudgeCost = JudgeCost()
    earlier: JudgeCost = JudgeCost()  # when the verdict was given that is remembered
    repaired: bool = False  # the first reply could not be read


def ask(model: Model, question: Question, read: Callable[[str], A | Unusable]) -> Judgement[A]:
    """Ask, and once more where the reply cannot be read. Raises InputError for a question that cannot be put to this model."""
    spent = JudgeCost()
    problem: Unusable | None = None
    for is_repair in (False, True):
        reply, cost = _reply(model, question)
        spent += cost
        verdict = reply if isinstance(reply, NoVerdict) else read(reply)
        if isinstance(verdict, NoVerdict):
            return Judgement(failure=verdict, spent=spent, repaired=is_repair)
        if not isinstance(verdict, Unusable):
            return Judgement(verdict=verdict, spent=spent, repaired=is_repair)
        question, problem = _again(question, str(reply), verdict), verdict
    failure = NoVerdict(kind=Failure.BAD_REPLY, why=f"no verdict in two replies: {problem}")
    return Judgement(failure=failure, spent=spent, repaired=True)


def _reply(model: Model, question: Question) -> tuple[str | NoVerdict, JudgeCost]:
    """One reply, usable or not, or the failure instead of it, and its cost."""
    try:
        answer = model(question)
    except ModelError as failed:
        # A bad reply is complete, and perhaps readable all the same.
        reply = failed.said if failed.kind is Failure.BAD_REPLY else NoVerdict(kind=failed.kind, why=whole(str(failed)))
        is_free = (
            failed.kind is Failure.WAITING and failed.usage is None and failed.cost_usd is None
        )  # in a batch: nobody was asked yet
        return reply, JudgeCost() if is_free else _spent(failed.usage, failed.cost_usd, "")
    except TenureError:
        raise
    except OSError as failed:  # a broken connection of a callable that is no model of ours
        return NoVerdict(kind=Failure.UNAVAILABLE, why=whole(str(failed))), JudgeCost(questions=1, unreported=1, unpriced=1)
    return answer.text, _spent(answer.usage, answer.cost_usd, answer.model)


def _spent(usage: Usage | None, usd: float | None, model: str) -> JudgeCost:
    if usd is None and usage is not None and model:
        listed = prices_for(model)
        usd = listed.cost_usd(usage) if listed.known else None
    return JudgeCost(
        questions=1, usage=usage or Usage(), usd=usd or 0.0, unreported=int(usage is None), unpriced=int(usd is None)
    )


def _again(question: Question, reply: str, problems: Unusable) -> Question:
    """The same question with the reply behind it, and what is wrong with that."""
    quoted = whole(reply.strip()[:QUOTED_CHARS])
    words = f"Your reply could not be used: {problems}. Answer the same question again with the whole corrected JSON object, and nothing else."
    draft = Draft(role=Role.ASSISTANT, blocks=(Text(text=quoted, origin=Origin.MODEL),))
    return replace(question, messages=(*question.messages, *((draft,) if quoted else ()), words))


LONGEST: Final = 1_000_000  # bytes of a line; no verdict is as long
IN_A_ROW: Final = 3  # failures after which nobody is asked any more
NOT_ASKED: Final = "not asked after "

V = TypeVar("V", NoImpact, Preference)


class BookLine(Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every line of a file of verdicts has."""

    key: str
    contract: str
    model: str


class VerdictLine(BookLine, frozen=True, kw_only=True, tag="verdict"):
    """A verdict on one plan."""

    facts: CaseFacts
    verdict: NoImpact
    spent: JudgeCost
    repaired: bool = False


class PreferenceLine(BookLine, frozen=True, kw_only=True, tag="preference"):
    """A verdict on two plans, `first` being candidate A."""

    first: CaseFacts
    second: CaseFacts
    verdict: Preference
    spent: JudgeCost
    repaired: bool = False


class FailedLine(BookLine, frozen=True, kw_only=True, tag="failed"):
    """A question that got no verdict."""

    failure: NoVerdict
    spent: JudgeCost


_decode: Final = msgspec.json.Decoder(VerdictLine | PreferenceLine | FailedLine).decode


class Book:
    """Verdicts by question, with a file behind them or none. Mutable; use it as a context."""

    def __init__(self, path: str = "") -> None:
        """Read what the file holds. Raises InputError when it cannot be read; one that does not exist is begun with the first verdict."""
        self.path = path
        self.unread = 0  # lines that are no verdicts, such as one that was cut off
        self._lines: dict[tuple[str, str, str], VerdictLine | PreferenceLine] = {}
        self._file: IO[bytes] | None = None
        for raw in _lines_of(path) if path else ():
            try:
                self._take(_decode(raw))
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                self.unread += 1

    def __enter__(self) -> "Book":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, key: str, contract: str, model: str) -> VerdictLine | PreferenceLine | None:
        """The verdict that was given to this question."""
        return self._lines.get((key, contract, model))

    def add(self, line: VerdictLine | PreferenceLine | FailedLine) -> None:
        """Take a line in, and write it before anything else happens. Raises StoreError when it cannot be written."""
        self._take(line)
        if not self.path:
            return
        try:
            if self._file is None:
                self._file = _opened(Path(self.path))
            self._file.write(json_of(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written ({error.strerror or error})") from error

    def _take(self, line: VerdictLine | PreferenceLine | FailedLine) -> None:
        if not isinstance(line, FailedLine):
            self._lines[line.key, line.contract, line.model] = line


def _lines_of(path: str) -> Iterator[bytes]:
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(path, "found no file", "a file of verdicts, or a path for one")
        with Path(path).open("rb") as file:
            while raw := file.readline(LONGEST):
                if raw.strip():
                    yield raw
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(path, str(getattr(error, "strerror", "") or error), "a file of verdicts, or a path for one") from error


def _opened(path: Path) -> IO[bytes]:
    """The file at its end, on a line of its own: the last one may have been cut off."""
    file = path.open("ab+")
    if file.tell():
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file


class Judge(Struct, frozen=True, kw_only=True):
    """Who judges, and with how much room for a question."""

    model: Model
    name: str  # by which verdicts are known
    count: Count
    room: int = ROOM


class PlanOutcome(Struct, frozen=True, kw_only=True, tag="judged", tag_field="type"):
    """What became of one case: a verdict or a failure, beside what the mechanical detector finds."""

    facts: CaseFacts
    key: str
    contract: str
    tokens: int  # o200k, of the question
    shortened: int
    left_out: int
    lost: tuple[CaseNeed, ...]  # by the detector, as far as the question shows the use and what was removed
    hidden: int  # by the detector, lost and not to be seen in the question
    verdict: NoImpact | None = None
    failure: NoVerdict | None = None
    spent: JudgeCost = JudgeCost()  # now
    earlier: JudgeCost = JudgeCost()  # when the verdict was given that the book held
    repaired: bool = False


class PairOutcome(Struct, frozen=True, kw_only=True, tag="compared", tag_field="type"):
    """What became of a pair of plans at one cut, asked in both orders. Of controls, `first` is the one that has to pass."""

    first: CaseFacts
    second: CaseFacts
    keys: tuple[str, str]
    contract: str
    forth: Preference | None = None
    back: Preference | None = None  # asked with `second` as A
    failure: NoVerdict | None = None
    spent: JudgeCost = JudgeCost()
    earlier: JudgeCost = JudgeCost()


Outcome = PlanOutcome | PairOutcome


class Forecast(Struct, frozen=True, kw_only=True):
    """What one case would be asked with."""

    facts: CaseFacts
    tokens: int  # o200k, of the question
    remembered: bool


def run(cases: Iterable[Case], judge: Judge, book: Book, *, against: tuple[str, str] | None = None) -> Iterator[Outcome]:
    """Every case judged, in order.

    With two policies to hold `against` each other, the A/B judge is asked where their verdicts differ, and of every pair of controls. After
    IN_A_ROW failures in a row, or one that will happen again until somebody changes something, nobody is asked any more; the cases that
    are left are failures that say so. Verdicts that the book holds are taken from there.
    """
    asker = _Asker(judge, book)
    for _, group in groupby(cases, key=lambda case: (case.facts.source, case.facts.cut)):
        found: list[tuple[Case, PlanOutcome]] = []
        for case in group:
            outcome = asker.plan(case)
            found.append((case, outcome))
            yield outcome
        for pair in _pairs(found, against) if against is not None else ():
            yield asker.pair(*pair)


def foreseen(cases: Iterable[Case], judge: Judge, book: Book) -> Iterator[Forecast]:
    """What would be asked, case by case; nobody is asked."""
    for case in cases:
        request = no_impact.ask(case, count=judge.count, room=judge.room)
        is_known = book.line(request.key, request.contract, judge.name) is not None
        yield Forecast(facts=case.facts, tokens=request.tokens, remembered=is_known)


def _pairs(found: Sequence[tuple[Case, PlanOutcome]], against: tuple[str, str]) -> Iterator[tuple[Case, Case]]:
    """The plans of a cut to hold against each other."""
    plans = {case.facts.policy: (case, outcome.verdict) for case, outcome in found if not case.facts.control}
    controls = {case.facts.control: case for case, _ in found if case.facts.control}
    if against[0] in plans and against[1] in plans:
        (first, one), (second, other) = plans[against[0]], plans[against[1]]
        if one is not None and other is not None and one.valid != other.valid:
            yield first, second
    if "unused" in controls and "needed" in controls:
        yield controls["unused"], controls["needed"]


class _Asker:
    """Asks, remembers, and stops asking when it is of no use. Mutable."""

    def __init__(self, judge: Judge, book: Book) -> None:
        self._judge, self._book = judge, book
        self._failures = 0  # in a row
        self._over = ""  # why nobody is asked any more

    def plan(self, case: Case) -> PlanOutcome:
        request = no_impact.ask(case, count=self._judge.count, room=self._judge.room)
        lost = tuple(need for need in request.in_sight if need.stands == "lost")
        judgement = self._judgement(request, lambda reply: no_impact.read(reply, request.objects), VerdictLine, facts=case.facts)
        return PlanOutcome(
            **fields_in(request, PlanOutcome),
            facts=case.facts,
            lost=lost,
            hidden=sum(need.stands == "lost" for need in case.needs) - len(lost),
            **msgspec.structs.asdict(judgement),
        )

    def pair(self, first: Case, second: Case) -> PairOutcome:
        (forth_key, contract, forth), (back_key, _, back) = self._preferred(first, second), self._preferred(second, first)
        return PairOutcome(
            first=first.facts,
            second=second.facts,
            keys=(forth_key, back_key),
            contract=contract,
            forth=forth.verdict,
            back=back.verdict,
            failure=forth.failure or back.failure,
            spent=forth.spent + back.spent,
            earlier=forth.earlier + back.earlier,
        )

    def _preferred(self, first: Case, second: Case) -> tuple[str, str, Judgement[Preference]]:
        request = preference.ask(first, second, count=self._judge.count, room=self._judge.room)
        judgement = self._judgement(request, preference.read, PreferenceLine, first=first.facts, second=second.facts)
        return request.key, request.contract, judgement

    def _judgement(
        self,
        request: CaseQuestion,
        read: Callable[[str], V | Unusable],
        line: Callable[..., VerdictLine | PreferenceLine],
        **facts: CaseFacts,
    ) -> Judgement[V]:
        """The verdict that the book holds, or that the model gives now; none any more after too many failures."""
        question = {"key": request.key, "contract": request.contract, "model": self._judge.name}
        held = self._book.line(**question)
        if held is not None:
            return Judgement(verdict=cast(V, held.verdict), earlier=held.spent, repaired=held.repaired)
        if self._over:
            return Judgement(failure=NoVerdict(kind=Failure.CANCELLED, why=f"{NOT_ASKED}{self._over}"))
        judgement = ask(self._judge.model, request.question, read)
        verdict, failure, spent = judgement.verdict, judgement.failure, judgement.spent
        if failure is not None and failure.kind is Failure.WAITING:  # asked in a batch, and listed there
            return judgement
        self._failures = self._failures + 1 if failure is not None else 0
        if failure is None:
            self._book.add(line(**question, **facts, verdict=verdict, spent=spent, repaired=judgement.repaired))
            return judgement
        if failure.kind is Failure.NOT_ACCEPTED or self._failures >= IN_A_ROW:
            self._over = f"{self._failures} failure{'s' * (self._failures > 1)} in a row ({failure.why})"
        self._book.add(FailedLine(**question, failure=failure, spent=spent))
        return judgement
