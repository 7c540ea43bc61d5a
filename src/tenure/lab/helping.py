"""The models that a replay asks (an edge: they are called): a Self-GC planner, a summariser.

They are asked when a live conversation would ask them, and what they answer is rehearsed, priced and held to the laws as it would be there.
There is no request of the recorded agent's to stand behind, so a planner is told the window in words, the calls under the names of its index.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from tenure.engine.lifecycle.automatic import Automatic, OfWindow, Role, Threshold, planning_limit
from tenure.engine.lifecycle.decision import Decision, Stay
from tenure.engine.lifecycle.planning import Answered, Ask, PlannerReach, answer_handoff, answer_selfgc, ask_handoff, ask_selfgc
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.price import prices_for
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.planners.selfgc.plan import RefusedTarget
from tenure.engine.record.entry import Read, Usage
from tenure.errors import Failure, ModelError, TenureError

if TYPE_CHECKING:  # wanted only by those who hand in a model
    from tenure.models.question import Model, Question

Who = Literal["selfgc", "handoff"]
_ROLES: Final[Mapping[Who, Role]] = {"selfgc": "planner", "handoff": "summariser"}
_SPEAKERS: Final = {"selfgc": "the planner", "handoff": "the summariser"}


class Helped(Struct, frozen=True, kw_only=True):
    """What became of one question: a decision about the answer, what of it was refused, and what asking cost."""

    who: Who
    decision: Decision
    refused: tuple[RefusedTarget, ...] = ()
    usd: float = 0.0
    assumed: bool = False  # the money is by another model's price


class Helping:
    """Asks when it is due, and says what became of it. Mutable: it knows when it asked last. The session is only read."""

    def __init__(
        self,
        session: Session,
        *,
        planner: "Model | None",
        summariser: "Model | None",
        handoff_at: Threshold | None = None,
        read: Read,
        count: Tokenizer,
    ) -> None:
        self._session, self._planner, self._summariser = session, planner, summariser
        self._automatic = Automatic(threshold=OfWindow() if handoff_at is None else handoff_at)
        self._read, self._count = read, count

    def reported(self, prompt: int) -> None:
        """A call was answered; its prompt in provider tokens, 0 for no report."""
        self._automatic = self._automatic.after_report(prompt)

    def due(self, *, extra: int, at: str) -> Iterator[Helped]:
        """What comes of those who are to be asked now. Each answer is to be carried out before the next is asked for.

        `extra` is what goes out beside the view, in o200k tokens.
        """
        session = self._session
        budget = session.setup.budget
        record = int(session.index.tokens * session.ratio)
        if self._summariser is not None and self._automatic.handoff_is_due(budget.window, record):
            self._automatic = self._automatic.after_handoff(record)
            yield from self._handed_off(self._summariser, at)
        total = int((session.view.tokens + extra) * session.ratio)
        limit = planning_limit(budget, session.setup.gate)
        if self._planner is not None and self._automatic.plan_is_due(total, limit, record):
            self._automatic = self._automatic.after_plan(record)
            yield from self._collected(self._planner, at)

    def _collected(self, planner: "Model", at: str) -> Iterator[Helped]:
        from tenure.models.question import Question, form_of

        reader = PlannerReach(in_words=True, form=form_of(planner), is_replayed=True)
        asked = ask_selfgc(self._session, reader=reader, at=at, only_if_worth=True)
        if asked is None:
            return
        question = Question(messages=asked.messages, max_output=asked.output_tokens, schema=asked.schema)

        def answer(reply: str, usd: float) -> Answered:
            return answer_selfgc(self._session, asked, reply, moment="before-call", at=at, planning_usd=usd)

        yield self._answered("selfgc", planner, asked, question, self._session.view.tokens, answer)

    def _handed_off(self, summariser: "Model", at: str) -> Iterator[Helped]:
        from tenure.models.question import Question

        asked = ask_handoff(self._session)
        if asked is None:
            return
        question = Question(messages=(asked.text,), system=asked.system, max_output=asked.output_tokens)

        def answer(reply: str, usd: float) -> Answered:
            return answer_handoff(self._session, asked, reply, moment="before-call", at=at, planning_usd=usd)

        yield self._answered("handoff", summariser, asked, question, 0, answer)

    def _answered(
        self, who: Who, model: "Model", asked: Ask, question: "Question", behind: int, answer: Callable[[str, float], Answered]
    ) -> Helped:
        try:
            said = model(question)
        except (TenureError, OSError) as failed:  # OSError: a broken connection of a callable that is no model of ours
            waits = isinstance(failed, ModelError) and failed.kind is Failure.WAITING  # in a batch: no failure of the model
            self._automatic = self._automatic if waits else self._automatic.after_answer(_ROLES[who], failed=True)
            usd, assumed = self._spent(failed)
            reason = f"{_SPEAKERS[who]} failed: {failed}"
            return Helped(who=who, decision=Stay(reason=reason), usd=usd, assumed=assumed)
        if said.cost_usd is not None:
            usd, assumed = said.cost_usd, False
        elif said.usage is not None:
            usd, assumed = self._priced(said.model, said.usage)
        else:
            usd, assumed = self._simulated(asked, behind, said.text), not self._session.setup.prices.known
        told = answer(said.text, usd)
        self._automatic = self._automatic.after_answer(_ROLES[who], failed=not told.is_usable)
        return Helped(who=who, decision=told.decision, refused=told.refused, usd=usd, assumed=assumed)

    def _simulated(self, asked: Ask, behind: int, reply: str) -> float:
        """What a helper of the agent's own model would have cost, whose question is put `behind` a cached request of so many o200k tokens.

        The rest of a replay's bill is simulated in the same way; a helper that was free would make plans look better than they are.
        """
        ratio = self._session.ratio
        usage = Usage(
            uncached=int((self._count(asked.text) + self._count(asked.system)) * ratio),
            cache_read=int(behind * ratio),
            output=int(self._count(reply) * ratio),
        )
        return self._session.setup.prices.cost_usd(usage)

    def _priced(self, model: str, usage: Usage) -> tuple[float, bool]:
        """What it cost, and whether that is assumed: a model that nobody lists is priced as the agent's own."""
        listed = prices_for(model)
        return (listed if listed.known else self._session.setup.prices).cost_usd(usage), not listed.known

    def _spent(self, failed: Exception) -> tuple[float, bool]:
        """What a failure is known to have cost, and whether that is assumed."""
        if not isinstance(failed, ModelError):
            return 0.0, False
        if failed.cost_usd is not None:
            return failed.cost_usd, False
        return self._priced("", failed.usage) if failed.usage is not None else (0.0, False)
