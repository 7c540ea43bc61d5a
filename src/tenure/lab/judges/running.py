"""Cases judged one after another; verdicts that were given are kept in a file, so that what was paid for is not paid for twice.

JSON lines, appended as they come. A verdict is known by what was quoted to the judge (`key`), the version of the contract and the model's name; a
change of any of them is another question. Failures are noted too, and asked again. One process writes to a file at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import Count
from tenure.errors import Failure, InputError, StoreError
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.asking import Failed, Spent, Told, tell
from tenure.lab.judges.cases import Case, Facts, Need
from tenure.lab.judges.no_impact import Verdict
from tenure.lab.judges.preference import Both, Preference, both
from tenure.lab.judges.reply import Unusable
from tenure.lab.judges.request import ROOM, JudgeRequest
from tenure.models.question import Model

LONGEST: Final = 1_000_000  # bytes of a line; no verdict is as long


class VerdictLine(Struct, frozen=True, kw_only=True, tag="verdict", tag_field="type"):
    """A verdict on one plan."""

    key: str
    contract: str
    model: str
    facts: Facts
    verdict: Verdict
    spent: Spent
    repaired: bool = False


class PreferenceLine(Struct, frozen=True, kw_only=True, tag="preference", tag_field="type"):
    """A verdict on two plans, `first` being candidate A."""

    key: str
    contract: str
    model: str
    first: Facts
    second: Facts
    verdict: Preference
    spent: Spent
    repaired: bool = False


class FailedLine(Struct, frozen=True, kw_only=True, tag="failed", tag_field="type"):
    """A question that got no verdict."""

    key: str
    contract: str
    model: str
    failure: Failed
    spent: Spent


Line = VerdictLine | PreferenceLine | FailedLine
_Key = tuple[str, str, str]


class Book:
    """Verdicts by question, with a file behind them or none. Mutable; use it as a context."""

    def __init__(self, path: str = "") -> None:
        """Read what the file holds. Raises InputError when it cannot be read; one that does not exist is begun with the first verdict."""
        self.path = path
        self.unread = 0  # lines that are no verdicts, such as one that was cut off
        self._lines: dict[_Key, VerdictLine | PreferenceLine] = {}
        self._file: IO[bytes] | None = None
        self._encode = msgspec.json.Encoder().encode
        for line in _read(path) if path else ():
            if line is None:
                self.unread += 1
            elif not isinstance(line, FailedLine):
                self._lines[_key(line)] = line

    def __enter__(self) -> "Book":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return len(self._lines)

    def verdict(self, key: str, contract: str, model: str) -> VerdictLine | None:
        """The verdict on one plan that was given to this question."""
        found = self._lines.get((key, contract, model))
        return found if isinstance(found, VerdictLine) else None

    def preference(self, key: str, contract: str, model: str) -> PreferenceLine | None:
        """The verdict on two plans that was given to this question."""
        found = self._lines.get((key, contract, model))
        return found if isinstance(found, PreferenceLine) else None

    def add(self, line: Line) -> None:
        """Take a line in, and write it before anything else happens. Raises StoreError when it cannot be written."""
        if not isinstance(line, FailedLine):
            self._lines[_key(line)] = line
        if not self.path:
            return
        try:
            if self._file is None:
                self._file = _opened(Path(self.path))
            self._file.write(self._encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written ({error.strerror or error})") from error


def _key(line: VerdictLine | PreferenceLine) -> _Key:
    return line.key, line.contract, line.model


def _read(path: str) -> Iterator[Line | None]:
    decoder = msgspec.json.Decoder[Line](Line)
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(path, "found no file", "a file of verdicts, or a path for one")
        with Path(path).open("rb") as file:
            while raw := file.readline(LONGEST):
                if raw.strip():
                    yield _decoded(decoder, raw)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(path, str(getattr(error, "strerror", "") or error), "a file of verdicts, or a path for one") from error


def _decoded(decoder: msgspec.json.Decoder[Line], raw: bytes) -> Line | None:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _opened(path: Path) -> IO[bytes]:
    """The file at its end, on a line of its own: the last one may have been cut off."""
    file = path.open("ab+")
    if file.tell():
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file


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
        request = no_impact.ask(case, count=self._judge.count, room=self._judge.room)
        lost = tuple(need for need in request.in_sight if need.stands == "lost")
        held = self._book.verdict(request.key, request.contract, self._judge.name)
        answer = (
            Told(outcome=held.verdict, earlier=held.spent, repaired=held.repaired)
            if held is not None
            else self._asked(request, lambda reply: no_impact.read(reply, request.objects))
        )
        verdict, failure = _either(answer)
        if verdict is not None and held is None:
            known = self._known(request, answer)
            self._book.add(VerdictLine(**known, facts=case.facts, verdict=verdict))
        return Judged(
            facts=case.facts,
            key=request.key,
            contract=request.contract,
            tokens=request.tokens,
            shortened=request.shortened,
            left_out=request.left_out,
            lost=lost,
            hidden=sum(need.stands == "lost" for need in case.needs) - len(lost),
            verdict=verdict,
            failure=failure,
            spent=answer.spent,
            earlier=answer.earlier,
            repaired=answer.repaired,
        )

    def compared(self, first: Case, second: Case) -> Compared:
        (forth_request, forth), (back_request, back) = self._preferred(first, second), self._preferred(second, first)
        (forth_verdict, forth_failure), (back_verdict, back_failure) = _either(forth), _either(back)
        return Compared(
            first=first.facts,
            second=second.facts,
            keys=(forth_request.key, back_request.key),
            contract=forth_request.contract,
            forth=forth_verdict,
            back=back_verdict,
            failure=forth_failure or back_failure,
            spent=forth.spent + back.spent,
            earlier=forth.earlier + back.earlier,
        )

    def _preferred(self, first: Case, second: Case) -> tuple[JudgeRequest, Told[Preference]]:
        request = preference.ask(first, second, count=self._judge.count, room=self._judge.room)
        held = self._book.preference(request.key, request.contract, self._judge.name)
        if held is not None:
            return request, Told(outcome=held.verdict, earlier=held.spent, repaired=held.repaired)
        answer = self._asked(request, preference.read)
        verdict, _ = _either(answer)
        if verdict is not None:
            known = self._known(request, answer)
            self._book.add(PreferenceLine(**known, first=first.facts, second=second.facts, verdict=verdict))
        return request, answer

    def _known(self, request: JudgeRequest, answer: Told[V]) -> dict[str, Any]:
        """What every line of a verdict has."""
        question = {"key": request.key, "contract": request.contract, "model": self._judge.name}
        return {**question, "spent": answer.spent, "repaired": answer.repaired}

    def _asked(self, request: JudgeRequest, read: Callable[[str], V | Unusable]) -> Told[V]:
        """What the model says now; nothing any more after too many failures."""
        if self._over:
            return Told(outcome=Failed(kind=Failure.CANCELLED, why=f"{NOT_ASKED}{self._over}"))
        answer = tell(self._judge.model, request.question, read)
        failure = answer.outcome if isinstance(answer.outcome, Failed) else None
        self._failures = self._failures + 1 if failure is not None else 0
        if failure is not None:
            if failure.kind is Failure.NOT_ACCEPTED or self._failures >= IN_A_ROW:
                self._over = f"{self._failures} failure{'s' * (self._failures > 1)} in a row ({failure.why})"
            question = {"key": request.key, "contract": request.contract, "model": self._judge.name}
            self._book.add(FailedLine(**question, failure=failure, spent=answer.spent))
        return answer


def _either(answer: Told[V]) -> tuple[V | None, Failed | None]:
    """The verdict, or the failure instead of it."""
    return (None, answer.outcome) if isinstance(answer.outcome, Failed) else (answer.outcome, None)
