"""The no-impact judge: does what is left at a cut still support what really came.

Self-GC paper, Metrics and Prompt Contracts (judge contract, Listing 3). `ask` makes the question, `read` holds a reply to the schema; nothing here
asks a model.
"""

from collections.abc import Collection
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.record.entry import Count
from tenure.engine.record.objects import parse_handle
from tenure.errors import InputError
from tenure.lab.events import Category
from tenure.lab.judges.cases import Case
from tenure.lab.judges.contracts import DIMENSIONS, GRADES, NO_IMPACT, STANDS
from tenure.lab.judges.reply import Reply, Unusable, answer_in
from tenure.lab.judges.request import ROOM, Candidate, JudgeRequest, request

SCORES: Final = (0.0, 5.0)
_CATEGORIES: Final = tuple(category.value for category in Category)


class Dependency(Struct, frozen=True, kw_only=True, gc=False):
    """Something exact that a later step uses, and where the judge finds it."""

    what: str
    used_by: str
    stands: Literal["visible", "recoverable", "lost"]
    object: str = ""


class Dimension(Struct, frozen=True, kw_only=True, gc=False):
    """One of the four marks of the paper's schema."""

    name: str
    score: float  # 0 to 5
    verdict: Literal["pass", "warn", "fail"]


class Culprit(Struct, frozen=True, kw_only=True, gc=False):
    """The worst loss."""

    target_id: str
    category: Category
    missing: str


class Verdict(Struct, frozen=True, kw_only=True, tag="no-impact", tag_field="judge"):
    """What the judge says of one plan. `doubts` are what it said that does not fit the question and changes nothing."""

    valid: bool  # no impact: nothing that the future uses is lost
    uncertain: bool
    overall_score: float  # 0 to 5
    summary: str
    dimensions: tuple[Dimension, ...]
    culprit: Culprit | None
    dependencies: tuple[Dependency, ...]
    doubts: tuple[str, ...] = ()


def ask(case: Case, *, count: Count, room: int = ROOM) -> JudgeRequest:
    """The question about a case, in at most `room` o200k tokens."""
    return request((Candidate(letter="", case=case),), NO_IMPACT, count=count, room=room)


def read(reply: str, objects: Collection[str] = ()) -> Verdict | Unusable:
    """The verdict in a reply, or everything that keeps it from being one. `objects` are those that it may name. Never raises."""
    found = answer_in(reply, "valid")
    if isinstance(found, Unusable):
        return found
    said, problems = found
    valid, uncertain, score, summary = (
        said.flag("valid"),
        said.flag("uncertain"),
        said.number("overall_score", *SCORES),
        said.text("summary"),
    )
    marks = said.inner("dimension_scores")
    dimensions = tuple(_dimension(name, marks.inner(name)) for name in DIMENSIONS)
    dependencies = tuple(map(_dependency, said.each("dependencies")))
    blamed = said.perhaps("failure_culprit")
    culprit = _culprit(blamed) if blamed is not None and not valid else None
    lost = sum(each.stands == "lost" for each in dependencies)
    if not problems:
        problems += _contradictions(valid=valid, blamed=blamed is not None, lost=lost)
    if problems:
        return Unusable(problems=tuple(problems))
    return Verdict(
        valid=valid,
        uncertain=uncertain,
        overall_score=score,
        summary=summary,
        dimensions=dimensions,
        culprit=culprit,
        dependencies=dependencies,
        doubts=_doubts(culprit, objects),
    )


def _dimension(name: str, said: Reply) -> Dimension:
    grade = said.choice("verdict", GRADES)
    return Dimension(
        name=name,
        score=said.number("score", *SCORES),
        verdict="fail" if grade == "fail" else "warn" if grade == "warn" else "pass",
    )


def _dependency(said: Reply) -> Dependency:
    stands = said.choice("stands", STANDS)
    return Dependency(
        what=said.text("what"),
        used_by=said.text("used_by", needed=False),
        stands="lost" if stands == "lost" else "recoverable" if stands == "recoverable" else "visible",
        object=said.text("object", needed=False),
    )


def _culprit(said: Reply) -> Culprit:
    category = said.choice("category", _CATEGORIES)
    return Culprit(
        target_id=said.text("target_id"),
        category=Category(category) if category else Category.EVIDENCE,
        missing=said.text("missing", needed=False),
    )


def _contradictions(*, valid: bool, blamed: bool, lost: int) -> list[str]:
    """What cannot be true together; a judge that says both has not decided."""
    if valid and blamed:
        return ["failure_culprit: found an object beside valid true, expected null"]
    if valid and lost:
        return [f"valid: found true beside {lost} lost dependencies, expected false, or none that is lost"]
    if not valid and not blamed:
        return ["failure_culprit: found null beside valid false, expected target_id, category and missing"]
    if not valid and not lost:
        return ["valid: found false without a lost dependency, expected true, or the dependency that is lost"]
    return []


def _doubts(culprit: Culprit | None, objects: Collection[str]) -> tuple[str, ...]:
    if culprit is None or not objects:
        return ()
    try:
        named = parse_handle(culprit.target_id).object
    except InputError:
        return (f"{culprit.target_id!r} is no object's name",)
    return () if named in objects else (f"{named!r} is nothing that the plan removed",)
