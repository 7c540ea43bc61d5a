"""The models that help a conversation: planner, summariser, digest."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import MsgspecError, Struct, convert, to_builtins

from tenure.engine.lifecycle.automatic import Automatic, Role, planning_limit
from tenure.engine.lifecycle.decision import Stay
from tenure.engine.lifecycle.session import Placed, Session
from tenure.engine.meter.figures import first_line
from tenure.engine.meter.ledger import CallRole, Spent
from tenure.engine.meter.price import prices_for
from tenure.engine.record.entry import Count, Read, Usage
from tenure.engine.view.edit import Moment
from tenure.errors import Failure, InputError, ModelError, TenureError
from tenure.models.question import Answer, Model, Question, continues, form_of, room_of
from tenure.models.request import forked

if TYPE_CHECKING:  # loaded when a model is asked: their patterns take longer than all the rest
    from tenure.engine.lifecycle.planning import Answered, Ask

DIGEST_S: Final = 60.0  # that one digest may take; a message is not stored before


class Helpers(Struct, frozen=True, kw_only=True):
    """Who is asked without anybody's word; None is not."""

    planner: Model | None = None
    in_background: bool = False  # nothing waits for the planner: its answer is taken up with the first request after it has come
    summariser: Model | None = None
    middle_out: bool = False  # the first exchange stays as it is when history is handed off
    digest: Model | None = None
    digest_above: int = 8_000  # o200k tokens of a clipped result


class BackgroundAnswer:
    """A model's answer that is on its way, in a thread of its own. Mutable: it comes."""

    def __init__(self, model: Model, question: Question) -> None:
        """Ask now."""
        self._outcome: Answer | TenureError | None = None
        self._thread = Thread(target=self._ask, args=(model, question), daemon=True, name="tenure-planner")
        self._thread.start()

    @property
    def has_come(self) -> bool:
        """Whether it is there, or never will be."""
        return not self._thread.is_alive()

    def taken(self) -> Answer:
        """The answer, waited for. Raises what the model raised."""
        self._thread.join()
        if isinstance(self._outcome, Answer):
            return self._outcome
        raise self._outcome or ModelError(Failure.UNAVAILABLE, "the planner's thread ended without an answer")

    def _ask(self, model: Model, question: Question) -> None:
        try:
            self._outcome = _called(model, question, None)
        except TenureError as error:
            self._outcome = error


class HelperModels:
    """Asks, and says what became of it; what it cost is noted. Mutable: it knows when it asked last. The session is only read."""

    def __init__(
        self,
        session: Session,
        helpers: Helpers,
        automatic: Automatic,
        *,
        rules: Mapping[str, str] | None,
        read: Read,
        count: Count,
        note: Callable[[Spent], None],
        clock: Callable[[], str],
    ) -> None:
        self._session, self._helpers, self._automatic = session, helpers, automatic
        self._rules = None if rules is None else dict(rules)
        self._read, self._count, self._note, self._clock = read, count, note, clock
        self._running: Callable[[], Answered | None] | None = None  # takes up a plan that is on its way
        self._coming: BackgroundAnswer | None = None

    def reported(self, prompt: int) -> None:
        """A call was answered; its prompt, in tokens as the provider reports them, 0 for no report."""
        self._automatic = self._automatic.after_report(prompt)

    def due(self, prefix: Callable[[], bytes] | None, *, head_tokens: int, queued: bool) -> "Iterator[Answered | Stay]":
        """What comes of those who are to be asked now. Each answer is to be carried out before the next is asked for.

        One that fails is told of, and is not asked again for the same. A planner is only asked behind a request (`prefix` gives it): it would plan
        blindly.
        """
        session, helpers = self._session, self._helpers
        record = int(session.index.tokens * session.ratio)
        if helpers.summariser is not None and self._automatic.handoff_is_due(
            session.setup.budget.window, record=record, queued=queued
        ):
            self._automatic = self._automatic.after_handoff(record)
            yield from self._tried(partial(self.handoff, helpers.summariser, moment="before-call"), "summariser")
        if self._coming is not None and self._coming.has_come and self._running is not None:
            take, self._running, self._coming = self._running, None, None
            yield from self._tried(take, "planner")
        total = int((session.view.tokens + head_tokens) * session.ratio)
        limit = planning_limit(session.setup.budget, session.setup.gate)
        if helpers.planner is None or prefix is None or self._coming is not None:
            return
        if self._automatic.plan_is_due(total, limit, record):
            self._automatic = self._automatic.after_plan(record)
            collect = partial(self.collect, helpers.planner, prefix(), moment="before-call", only_if_worth=True)
            yield from self._tried(collect, "planner")

    def collect(
        self, model: Model, prefix: bytes | None, *, aim: int = 0, moment: Moment = "manual", only_if_worth: bool = False
    ) -> "Answered | None":
        """A Self-GC plan. Raises ModelError when the model fails.

        It is asked for behind the request that was sent last (`prefix`), where the model can go on from it; another model is told the window in words.
        """
        from tenure.engine.lifecycle.planning import BEHIND, PlannerReach, answer_selfgc, ask_selfgc

        behind = forked(prefix) if prefix is not None and continues(model, prefix) else b""
        reader = (
            BEHIND if behind else PlannerReach(in_words=True, room=int(room_of(model) / self._session.ratio), form=form_of(model))
        )
        at = self._clock()
        request = ask_selfgc(self._session, aim=aim, reader=reader, at=at, only_if_worth=only_if_worth)
        if request is None:
            return None
        question = Question(messages=request.messages, max_output=request.output_tokens, prefix=behind, schema=request.schema)
        tokens = self._session.view.tokens if behind else 0

        def take(answer_of: Callable[[], Answer]) -> "Answered":
            answer = noted_answer("planner", model, answer_of, self._note)
            usd, is_assumed = self._cost(model, answer, request, behind=tokens)
            return answer_selfgc(
                self._session, request, answer.text, moment=moment, at=self._clock(), planning_usd=usd, is_assumed=is_assumed
            )

        if only_if_worth and self._helpers.in_background:
            self._coming = BackgroundAnswer(model, question)
            self._running = partial(take, self._coming.taken)
            return None
        return take(partial(_called, model, question, None))

    def handoff(
        self,
        model: Model,
        *,
        focus: str = "",
        room: int = 100_000,
        rules: Mapping[str, str] | None = None,
        moment: Moment = "manual",
    ) -> "Answered | None":
        """A brief of earlier history; `rules` are kept for the next one. Raises ModelError when the model fails."""
        from tenure.engine.lifecycle.planning import answer_handoff, ask_handoff
        from tenure.engine.planners.handoff.facts import Quoted

        self._rules = self._rules if rules is None else dict(rules)
        request = ask_handoff(self._session, room=room, focus=focus, middle_out=self._helpers.middle_out)
        if request is None:
            return None
        question = Question(messages=(request.text,), system=request.system, max_output=request.output_tokens)
        answer = paid_answer("summariser", model, question, self._note)
        usd, is_assumed = self._cost(model, answer, request)
        quoted = None if self._rules is None else [Quoted(label=label, text=text) for label, text in self._rules.items()]
        return answer_handoff(
            self._session,
            request,
            answer.text,
            rules=quoted,
            moment=moment,
            at=self._clock(),
            planning_usd=usd,
            is_assumed=is_assumed,
        )

    def digested(self, placed: Placed) -> Placed:
        """The messages with a digest beside each clip that a model gives one for. A model that fails leaves the plain clip."""
        if self._helpers.digest is None:
            return placed
        from tenure.engine.lifecycle.digest import answer_digest, ask_digests

        above = self._helpers.digest_above
        for request in ask_digests(self._session.index, placed, self._read, self._count, above=above):
            self._automatic, is_due = self._automatic.digest_is_due()
            if not is_due:
                continue
            stop = monotonic() + DIGEST_S
            question = Question(messages=(request.text,), system=request.system, max_output=request.output_tokens)
            try:
                answer = paid_answer(
                    "digest", self._helpers.digest, question, self._note, cancel=lambda stop=stop: monotonic() > stop
                )
            except (ModelError, InputError):
                self._automatic = self._automatic.after_answer("digest", failed=True)
                continue
            self._automatic = self._automatic.after_answer("digest", failed=False)
            placed = answer_digest(placed, request, answer.text, self._count, by=answer.model)
        return placed

    def _tried(self, ask: "Callable[[], Answered | None]", role: Role) -> "Iterator[Answered | Stay]":
        try:
            answered = ask()
        except (ModelError, InputError) as failed:
            self._automatic = self._automatic.after_answer(role, failed=True)
            yield Stay(reason=f"the {role} failed: {failed}")
        else:
            if answered is not None:
                self._automatic = self._automatic.after_answer(role, failed=not answered.is_usable)
                yield answered

    def _cost(self, model: Model, answer: Answer, request: "Ask", *, behind: int = 0) -> tuple[float, bool]:
        """What an answer cost in USD, and whether that is assumed: at list price, a mid-size model's where there is none, of usage as counted."""
        if answer.cost_usd is not None:
            return answer.cost_usd, False
        usage = answer.usage or Usage(
            uncached=self._provider(sum(map(self._count, (*request.messages, request.system)))),
            cache_read=self._provider(behind),
            output=self._provider(self._count(answer.text)),
        )
        return prices_for(answer.model or _name_of(model)).cost_usd(usage), True

    def _provider(self, tokens: int) -> int:
        return int(tokens * self._session.ratio)


def paid_answer(
    role: CallRole,
    model: Model,
    question: Question,
    note: Callable[[Spent], None],
    *,
    cancel: Callable[[], bool] | None = None,
) -> Answer:
    """A helper model's answer, its cost noted. Raises ModelError for whatever a host's callable does."""
    return noted_answer(role, model, partial(_called, model, question, cancel), note)


def noted_answer(role: CallRole, model: Model, answer_of: Callable[[], Answer], note: Callable[[Spent], None]) -> Answer:
    """An answer, its cost noted; so is what a failure is known to have cost."""
    try:
        answer = answer_of()
    except ModelError as failure:
        if failure.usage is not None or failure.cost_usd is not None:
            note(Spent(role=role, model=_name_of(model), usage=failure.usage or Usage(), usd=failure.cost_usd))
        raise
    note(Spent(role=role, model=answer.model or _name_of(model), usage=answer.usage or Usage(), usd=answer.cost_usd))
    return answer


def _called(model: Model, question: Question, cancel: Callable[[], bool] | None) -> Answer:
    """What a callable of the host answers; whatever else it raises or returns is a ModelError."""
    try:
        returned: object = model(question) if cancel is None else model(question, cancel=cancel)
    except (ModelError, InputError):
        raise
    except Exception as error:
        raise ModelError(Failure.UNAVAILABLE, first_line(f"{type(error).__name__}: {_words(error)}", 200)) from error
    if not isinstance(returned, Answer) or not isinstance(returned.text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a host's own callable
        raise ModelError(Failure.BAD_REPLY, f"it returned a {type(returned).__name__}, expected an Answer with a text")
    try:
        answer = convert(to_builtins(returned), Answer)
    except (MsgspecError, TypeError, ValueError) as error:
        raise ModelError(Failure.BAD_REPLY, f"it returned an Answer that is none: {_words(error)}") from error
    if answer.cost_usd is not None and not 0 <= answer.cost_usd < inf:
        raise ModelError(Failure.BAD_REPLY, f"it returned an Answer that cost {answer.cost_usd} USD")
    return answer


def _words(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # a host's own error, which cannot say what it is
        return "it does not say why"


def _name_of(model: object) -> str:
    """What a model is called by whoever handed it in; empty when it has no name."""
    try:
        name = getattr(model, "name", "")
    except Exception:  # a host's own object
        return ""
    return name if isinstance(name, str) else ""
