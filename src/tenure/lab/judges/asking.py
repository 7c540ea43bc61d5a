"""Asking a model for a verdict.

A reply that cannot be read is asked for again once, with what was wrong with it, in the same conversation, so that the provider's cache of the
question is read. A second one that cannot be read is a failure.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.price import prices_for
from tenure.engine.record.entry import Draft, Origin, Role, Text, Usage
from tenure.errors import Failure, ModelError, TenureError
from tenure.lab.events import Sum
from tenure.lab.judges.reply import Unusable, whole
from tenure.models.question import Model, Question

QUOTED_CHARS: Final = 8_000  # of a reply that is shown to its own model again

V = TypeVar("V")


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


class Judgement(Struct, Generic[V], frozen=True, kw_only=True):
    """What came of one question: a verdict, or a failure in place of it."""

    verdict: V | None = None
    failure: NoVerdict | None = None
    spent: JudgeCost = JudgeCost()
    earlier: JudgeCost = JudgeCost()  # when the verdict was given that is remembered
    repaired: bool = False  # the first reply could not be read


def ask(model: Model, question: Question, read: Callable[[str], V | Unusable]) -> Judgement[V]:
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
