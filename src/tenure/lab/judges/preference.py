"""The A/B judge: which of two plans at one cut keeps more of what really came.

Self-GC paper, Prompt Contracts (A/B judge contract, Listing 4). The paper asks once; here every pair is asked in both orders, since judges favour
a place: what holds in one order only is a tie, and how often that happens is reported.
"""

from typing import Literal

from msgspec import Struct, convert

from tenure.engine.record.entry import Count
from tenure.lab.judges.cases import Case
from tenure.lab.judges.contracts import AB, Unusable, answer_in
from tenure.lab.judges.request import ROOM, Candidate, CaseQuestion, request


class Preference(Struct, frozen=True, kw_only=True, tag="a-b", tag_field="judge"):
    """The judgement of two plans, in the letters of its question."""

    verdict: Literal["A_better", "B_better", "tie"]
    summary: str
    rationale: str
    stronger_aspects: tuple[str, ...]
    risks: tuple[str, ...]
    confidence: float  # 0 to 1


def ask(first: Case, second: Case, *, count: Count, room: int = ROOM) -> CaseQuestion:
    """The question with the first plan as A, in at most `room` o200k tokens. Both are of the same cut."""
    candidates = (Candidate(letter="A", case=first), Candidate(letter="B", case=second))
    return request(candidates, AB, count=count, room=room)


def read(reply: str) -> Preference | Unusable:
    """The verdict in a reply, or everything that keeps it from being one. Never raises."""
    answer = answer_in(reply, "verdict", AB)
    return answer if isinstance(answer, Unusable) else convert({**answer, "judge": "a-b"}, Preference)
