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
from tenure.lab.judges.reply import Unusable, whole
from tenure.models.question import Model, Question

QUOTED_CHARS: Final = 8_000  # of a reply that is shown to its own model again

V = TypeVar("V")


class Spent(Struct, frozen=True, kw_only=True):
    """What asking took, as far as providers reported it."""

    questions: int = 0
    usage: Usage = Usage()
    usd: float = 0.0
    unreported: int = 0  # answers without usage
    unpriced: int = 0  # answers whose price nobody lists

    def __add__(self, other: "Spent") -> "Spent":
        """Both together."""
        mine, theirs = self.usage, other.usage
        return Spent(
            questions=self.questions + other.questions,
            usage=Usage(
                uncached=mine.uncached + theirs.uncached,
                cache_write=mine.cache_write + theirs.cache_write,
                cache_read=mine.cache_read + theirs.cache_read,
                output=mine.output + theirs.output,
            ),
            usd=self.usd + other.usd,
            unreported=self.unreported + other.unreported,
            unpriced=self.unpriced + other.unpriced,
        )


class Failed(Struct, frozen=True, kw_only=True):
    """Why there is no verdict."""

    kind: Failure
    why: str


class Told(Struct, Generic[V], frozen=True, kw_only=True):
    """What came of one question."""

    outcome: V | Failed
    spent: Spent = Spent()
    earlier: Spent = Spent()  # when the verdict was given that is remembered
    repaired: bool = False  # the first reply could not be read


def tell(model: Model, question: Question, read: Callable[[str], V | Unusable]) -> Told[V]:
    """Ask, and once more where the reply cannot be read. Raises InputError for a question that cannot be put to this model."""
    first = _said(model, question)
    verdict = _read(first, read)
    if not isinstance(verdict, Unusable):
        return Told(outcome=verdict, spent=first.spent)
    second = _said(model, _again(question, first.text, verdict))
    again = _read(second, read)
    spent = first.spent + second.spent
    if isinstance(again, Unusable):
        again = Failed(kind=Failure.BAD_REPLY, why=f"no verdict in two replies: {again}")
    return Told(outcome=again, spent=spent, repaired=True)


class _Said(Struct, frozen=True, kw_only=True):
    """One reply, usable or not, or the failure instead of it."""

    text: str = ""
    failure: Failed | None = None
    spent: Spent


def _read(said: _Said, read: Callable[[str], V | Unusable]) -> V | Unusable | Failed:
    return said.failure if said.failure is not None else read(said.text)


def _said(model: Model, question: Question) -> _Said:
    try:
        answer = model(question)
    except ModelError as failed:
        spent = _spent(failed.usage, failed.cost_usd, "")
        if failed.kind is Failure.BAD_REPLY:  # complete, and perhaps readable all the same
            return _Said(text=failed.said, spent=spent)
        return _Said(failure=Failed(kind=failed.kind, why=whole(str(failed))), spent=spent)
    except TenureError:
        raise
    except OSError as failed:  # a broken connection of a callable that is no model of ours
        return _Said(
            failure=Failed(kind=Failure.UNAVAILABLE, why=whole(str(failed))), spent=Spent(questions=1, unreported=1, unpriced=1)
        )
    return _Said(text=answer.text, spent=_spent(answer.usage, answer.cost_usd, answer.model))


def _spent(usage: Usage | None, usd: float | None, model: str) -> Spent:
    if usd is None and usage is not None and model:
        listed = prices_for(model)
        usd = listed.cost_usd(usage) if listed.known else None
    return Spent(questions=1, usage=usage or Usage(), usd=usd or 0.0, unreported=int(usage is None), unpriced=int(usd is None))


def _again(question: Question, said: str, problems: Unusable) -> Question:
    """The same question with the reply behind it, and what is wrong with that."""
    quoted = whole(said.strip()[:QUOTED_CHARS])
    words = f"Your reply could not be used: {problems}. Answer the same question again with the whole corrected JSON object, and nothing else."
    reply = Draft(role=Role.ASSISTANT, blocks=(Text(text=quoted, origin=Origin.MODEL),))
    return replace(question, messages=(*question.messages, *((reply,) if quoted else ()), words))
