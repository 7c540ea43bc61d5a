"""The no-impact judge: does what is left at a cut still support what really came.

Self-GC paper, Metrics and Prompt Contracts (judge contract, Listing 3). `ask` makes the question, `read` holds a reply to the schema; nothing here
asks a model.
"""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct, convert

from tenure.engine.record.entry import Count
from tenure.engine.record.objects import parse_handle
from tenure.errors import InputError
from tenure.lab.events import Category
from tenure.lab.judges.cases import Case
from tenure.lab.judges.contracts import NO_IMPACT, Unusable, answer_in
from tenure.lab.judges.request import ROOM, Candidate, CaseQuestion, request


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


class NoImpact(Struct, frozen=True, kw_only=True, tag="no-impact", tag_field="judge"):
    """The judgement of one plan. `doubts` are what the judge wrote that does not fit the question and changes nothing."""

    valid: bool  # no impact: nothing that the future uses is lost
    uncertain: bool
    overall_score: float  # 0 to 5
    summary: str
    dimensions: tuple[Dimension, ...]
    culprit: Culprit | None
    dependencies: tuple[Dependency, ...]
    doubts: tuple[str, ...] = ()


def ask(case: Case, *, count: Count, room: int = ROOM) -> CaseQuestion:
    """The question about a case, in at most `room` o200k tokens."""
    return request((Candidate(letter="", case=case),), NO_IMPACT, count=count, room=room)


def read(reply: str, objects: Collection[str] = ()) -> NoImpact | Unusable:
    """The verdict in a reply, or everything that keeps it from being one. `objects` are those that it may name. Never raises."""
    answer = answer_in(reply, "valid", NO_IMPACT)
    if isinstance(answer, Unusable):
        return answer
    culprit, marks = answer.pop("failure_culprit"), answer.pop("dimension_scores")
    lost = sum(each["stands"] == "lost" for each in answer["dependencies"])
    problem = _contradiction(valid=answer["valid"], blamed=culprit is not None, lost=lost)
    if problem:
        return Unusable(problems=(problem,))
    dimensions = [{"name": name, **mark} for name, mark in marks.items()]
    doubts = _doubts(culprit["target_id"], objects) if culprit is not None and objects else ()
    return convert({**answer, "judge": "no-impact", "dimensions": dimensions, "culprit": culprit, "doubts": doubts}, NoImpact)


def _contradiction(*, valid: bool, blamed: bool, lost: int) -> str:
    """What cannot be true together: a judge that answers both has not decided."""
    if valid and blamed:
        return "failure_culprit: found an object beside valid true, expected null"
    if valid and lost:
        return f"valid: found true beside {lost} lost dependencies, expected false, or none that is lost"
    if not valid and not blamed:
        return "failure_culprit: found null beside valid false, expected target_id, category and missing"
    if not valid and not lost:
        return "valid: found false without a lost dependency, expected true, or the dependency that is lost"
    return ""


def _doubts(target: str, objects: Collection[str]) -> tuple[str, ...]:
    try:
        named = parse_handle(target).object
    except InputError:
        return (f"{target!r} is no object's name",)
    return () if named in objects else (f"{named!r} is nothing that the plan removed",)
