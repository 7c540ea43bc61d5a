"""What became of the plans and briefs of a replay's models, in a line each."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from tenure.cli import words
from tenure.lab.events import PlanLine

WHY_CHARS: Final = 120


class Helped(Struct, kw_only=True):
    """Answers of one kind of model, counted as their lines come."""

    asked: int = 0
    committed: int = 0  # at once
    carried_out: int = 0  # after a wait
    expired: int = 0  # after a wait
    dropped: int = 0  # at once
    waits: bool = False  # one does now
    usd: float = 0.0
    assumed: bool = False  # by another model's price, at least once
    refused: Counter[str] = field(default_factory=Counter[str])  # objects of plans, by reason
    why: str = ""  # the first answer that came to nothing, or the first failure

    def note(self, line: PlanLine) -> None:
        """Take in what became of an answer: now, or of the one that waited."""
        if line.asked:
            self.asked, self.usd = self.asked + 1, self.usd + line.usd
            self.assumed = self.assumed or line.assumed
            self.refused = self.refused + Counter(each["why"] for each in line.refused)
            self.committed += line.outcome == "committed"
            self.dropped += line.outcome == "dropped"
            self.waits = self.waits or line.outcome == "pending"
            if line.outcome == "dropped":
                self.why = self.why or line.reason
        elif self.waits:
            self.waits = False
            self.carried_out += line.outcome == "committed"
            self.expired += line.outcome == "dropped"


def plans(helped: Helped) -> str:
    """How many plans were asked for, and what became of them; empty when no planner was asked."""
    counts = (
        (helped.committed, "committed at once"),
        (helped.carried_out, "committed after a wait"),
        (int(helped.waits), "waiting"),
        (helped.expired, "given up after a wait"),
        (helped.dropped, "dropped"),
    )
    return _told(helped, counts) + _refused(helped)


def briefs(helped: Helped) -> str:
    """How many briefs were asked for, and what became of them; empty when no summariser was asked."""
    return _told(helped, ((helped.committed, "committed"), (helped.dropped, "dropped")))


def _told(helped: Helped, counts: Iterable[tuple[int, str]]) -> str:
    if not helped.asked:
        return ""
    why = f" ({words.first_line(helped.why, WHY_CHARS)})" if helped.why else ""
    return f"{helped.asked} asked for: {', '.join(f'{count} {what}' for count, what in counts if count)}{why}"


def of_it(*helped: Helped) -> str:
    """What of a bill was for asking."""
    asked = [each for each in helped if each.asked]
    if not asked:
        return ""
    amount = words.money(sum(each.usd for each in asked), assumed=any(each.assumed for each in asked))
    return f"; {amount} of it for asking models"


def _refused(helped: Helped) -> str:
    """How many objects were refused, and the commonest reason."""
    if not helped.refused:
        return ""
    total = helped.refused.total()
    why, count = helped.refused.most_common(1)[0]
    every = "" if count == total else f", {count} of them"
    return f'; {total} object{"s" * (total > 1)} refused{every} as "{words.first_line(why, WHY_CHARS)}"'
