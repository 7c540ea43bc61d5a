"""The A/B judge: which of two plans at one cut keeps more of what really came.

Self-GC paper, Prompt Contracts (A/B judge contract, Listing 4). The paper asks once; here every pair is asked in both orders, since judges favour
a place: what holds in one order only is a tie, and how often that happens is reported.
"""

from typing import Final, Literal

from msgspec import Struct

from tenure.engine.record.entry import Count
from tenure.lab.judges.cases import Case
from tenure.lab.judges.contracts import AB, PREFERENCES
from tenure.lab.judges.reply import Unusable, answer_in
from tenure.lab.judges.request import ROOM, Candidate, JudgeRequest, request

Side = Literal["A_better", "B_better", "tie"]
Better = Literal["first", "second", "tie"]

_OF: Final[dict[Side, Better]] = {"A_better": "first", "B_better": "second", "tie": "tie"}
_TURNED: Final[dict[Better, Better]] = {"first": "second", "second": "first", "tie": "tie"}


class Preference(Struct, frozen=True, kw_only=True, tag="a-b", tag_field="judge"):
    """What the judge says of two plans, in the letters of its question."""

    verdict: Side
    summary: str
    rationale: str
    stronger_aspects: tuple[str, ...]
    risks: tuple[str, ...]
    confidence: float  # 0 to 1


class Both(Struct, frozen=True, kw_only=True):
    """One pair of plans asked in both orders, told in the pair's own order."""

    forth: Better  # asked with the first as A
    back: Better  # asked with the second as A

    @property
    def better(self) -> Better:
        """Which is better: what both orders say, a tie where they do not agree."""
        return self.forth if self.forth == self.back else "tie"

    @property
    def flipped(self) -> bool:
        """Whether the orders contradict each other: each time the same letter was better."""
        return {self.forth, self.back} == {"first", "second"}


def ask(first: Case, second: Case, *, count: Count, room: int = ROOM) -> JudgeRequest:
    """The question with the first plan as A, in at most `room` o200k tokens. Both are of the same cut."""
    candidates = (Candidate(letter="A", case=first), Candidate(letter="B", case=second))
    return request(candidates, AB, count=count, room=room)


def read(reply: str) -> Preference | Unusable:
    """The verdict in a reply, or everything that keeps it from being one. Never raises."""
    found = answer_in(reply, "verdict")
    if isinstance(found, Unusable):
        return found
    said, problems = found
    chosen = said.choice("verdict", PREFERENCES)
    preference = Preference(
        verdict="A_better" if chosen == "A_better" else "B_better" if chosen == "B_better" else "tie",
        summary=said.text("summary"),
        rationale=said.text("rationale"),
        stronger_aspects=said.texts("stronger_aspects"),
        risks=said.texts("risks"),
        confidence=said.number("confidence", 0.0, 1.0),
    )
    return Unusable(problems=tuple(problems)) if problems else preference


def both(forth: Preference, back: Preference) -> Both:
    """Two verdicts as one; `back` was asked with the second plan as A."""
    return Both(forth=_OF[forth.verdict], back=_TURNED[_OF[back.verdict]])
