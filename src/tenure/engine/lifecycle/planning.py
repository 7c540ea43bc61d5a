"""Asking a model what may leave, and carrying out what it answers.

Sans I/O: `ask_…` makes what an edge sends to a model, `answer_…` takes the reply back. By then the conversation may have gone on, so the reply
is held against the session as it is now, and rehearsed and priced like any policy's plan. A reply that says nothing useful changes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from tenure.engine.lifecycle.budget import GateRule
from tenure.engine.lifecycle.decision import Decision, Stay
from tenure.engine.lifecycle.gate import AT_ONCE_SHARE, Outlook, Removal, best_start, outlook_of
from tenure.engine.lifecycle.session import Session
from tenure.engine.planners.handoff import request as handoff
from tenure.engine.planners.handoff.brief import brief, parsed
from tenure.engine.planners.handoff.facts import Quoted, facts_of
from tenure.engine.planners.handoff.sections import Refusal
from tenure.engine.planners.handoff.sections import read as read_brief
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.planners.selfgc.objects import objects_in
from tenure.engine.planners.selfgc.plan import RefusedTarget, actions_of, ask, screened
from tenure.engine.planners.selfgc.prompt import SCHEMA, Form, Stakes
from tenure.engine.planners.selfgc.reply import read
from tenure.engine.planners.selfgc.setting import PAPER, SelfGc
from tenure.engine.planners.selfgc.window import in_words
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Entry, Usage
from tenure.engine.view.action import Take
from tenure.engine.view.edit import Moment

OUTPUT_TOKENS: Final = 4_096  # what an answer may weigh
REPLY_TOKENS: Final = 400  # what it usually weighs
YIELD: Final = 0.75  # of what may be named, what a plan usually takes
_ASSUMED: Final = " whose price is assumed"


class Ask(Struct, frozen=True, kw_only=True):
    """What a model is to be asked; that of Self-GC goes behind the conversation as it was last sent, so that the provider's cache is read."""

    planner: Literal["selfgc", "handoff"]
    length: int  # of the record, and how often its view had been rewritten, when it was asked
    rewrites: int
    text: str
    window: str = ""  # the view in words, to go before the text; empty: the text goes behind the conversation itself
    system: str = ""
    schema: Mapping[str, Any] | None = None  # of the reply
    output_tokens: int = OUTPUT_TOKENS
    cut: int = 0  # of a handoff: the entry before which everything is handed off
    start: int = 0  # and the first that may be: what is before it stays
    transcript: str = ""  # of a handoff: what the reply is held against

    @property
    def messages(self) -> tuple[str, ...]:
        """What is said to the model, in order."""
        return (self.window, self.text) if self.window else (self.text,)


class PlannerReach(Struct, frozen=True, kw_only=True):
    """What the planner that is asked is like."""

    in_words: bool = False  # it cannot be asked behind the conversation's own request, and is told the window in words
    room: int = 0  # o200k tokens for these words; 0: as many as it takes
    form: Form = "tags"  # in which it answers
    is_replayed: bool = False  # the words stand for a request that live would have been read from the cache


BEHIND: Final = PlannerReach()


class Answered(Struct, frozen=True, kw_only=True):
    """What became of a reply: a decision about the plan in it, and everything of it that was refused, with reasons."""

    decision: Decision
    refused: tuple[RefusedTarget, ...] = ()
    summary: str = ""  # of a Self-GC plan: what the planner says of the conversation above
    is_usable: bool = True  # the reply was a plan or a brief, whatever became of it


def ask_selfgc(
    session: Session, *, aim: int = 0, reader: PlannerReach = BEHIND, at: str = "", only_if_worth: bool = False
) -> Ask | None:
    """The question to a Self-GC planner; None when nothing may be named.

    `aim`: o200k tokens worth freeing; 0: down to the floor, or a share that is worth a commit. `only_if_worth`: None as well where nothing that a
    planner could usually name would pay for asking, by the prices of the agent's own model.
    """
    situation, setting = session.situation(), _setting(session)
    outlook = outlook_of(session, at)
    stakes = Stakes(
        aim=aim or _aim(session),
        calls=outlook.calls,
        rewrite=outlook.warm * (outlook.write - outlook.read) / max(outlook.read, 1e-12),
    )
    text = ask(situation, read=situation.read, stakes=stakes, setting=setting, form=reader.form, in_words=reader.in_words)
    if not text:
        return None
    view = session.freeze() if reader.in_words else None
    window = "" if view is None else in_words(view, session.index, situation.read, session.count, room=reader.room)
    asked = Ask(
        planner="selfgc",
        length=session.length,
        rewrites=session.rewrites,
        text=text,
        window=window,
        schema=SCHEMA if reader.form == "json" else None,
    )
    if (
        only_if_worth
        and setting.bounded
        and not _is_worth_asking(session, situation, asked, outlook, is_cached=not window or reader.is_replayed)
    ):
        return None
    return asked


def _setting(session: Session) -> SelfGc:
    return PAPER if session.setup.gate is GateRule.SELFGC_PAPER else session.setup.selfgc


def _aim(session: Session) -> int:
    """O200k tokens that are worth freeing: down to the floor, and at least a share that pays at once."""
    budget, tokens = session.setup.budget, session.view.tokens
    return max(int(AT_ONCE_SHARE * tokens), tokens - int(budget.floor_of(budget.limit) / session.ratio))


def _is_worth_asking(session: Session, situation: Situation, asked: Ask, outlook: Outlook, *, is_cached: bool) -> bool:
    """Whether what a planner may name could pay for asking, if it took the usual share of it."""
    objects = objects_in(situation, within_cut=not _setting(session).keep_last_turn)
    removals = [
        Removal(tokens=session.provider(int(each.tokens * YIELD)), behind=session.provider(each.behind))
        for each in objects
        if each.why is None and each.kind != "turn"
    ]
    prices, words = session.setup.prices, session.count(asked.text)
    usage = Usage(
        uncached=session.provider(words + (0 if is_cached else session.count(asked.window))),
        cache_read=session.provider(session.view.tokens) if is_cached else 0,
        output=session.provider(REPLY_TOKENS),
    )
    return best_start(outlook, removals)[0] > prices.cost_usd(usage)


def answer_selfgc(
    session: Session,
    asked: Ask,
    reply: str,
    *,
    moment: Moment = "manual",
    at: str = "",
    planning_usd: float = 0.0,
    is_assumed: bool = False,
) -> Answered:
    """What of the plan may be done now, and whether it pays. Never raises for what the reply holds.

    `is_assumed`: what planning cost is not known, and `planning_usd` is what a model of usual price would have cost.
    """
    if stale := _stale(session, asked):
        return Answered(decision=Stay(reason=stale))
    situation = session.situation()
    proposed = read(reply)
    setting = _setting(session)
    plan = screened(proposed, objects_in(situation, read=situation.read, within_cut=not setting.keep_last_turn))
    actions, exact = actions_of(situation, plan.choices, in_place=setting.in_place)
    if not proposed.targets:
        decision: Decision = Stay(reason="the planner names nothing" if proposed.has_plan else "the reply holds no plan")
    else:
        reason = f"planned by a model{_ASSUMED * is_assumed}"
        decision = session.plan("selfgc", actions, reason=reason, moment=moment, at=at, planning_usd=planning_usd)
    return Answered(decision=decision, refused=(*plan.refused, *exact), summary=proposed.summary, is_usable=proposed.has_plan)


def ask_handoff(
    session: Session, *, room: int = 100_000, focus: str = "", keep: int = handoff.KEEP_REPLIES, middle_out: bool = False
) -> Ask | None:
    """The question to a summariser, in at most `room` o200k tokens; None when there is nothing new to hand off.

    `middle_out`: the first exchange stays as it is, and at least MIDDLE_OUT_KEEP replies at the end.
    """
    situation = session.situation()
    start = handoff.first_exchange(session.index) if middle_out else 0
    keep = max(keep, handoff.MIDDLE_OUT_KEEP) if middle_out else keep
    since, previous = _standing(session)
    since = max(since, start)
    place = handoff.cut(session.index, keep=keep, tail=situation.guard.tail, since=since)
    if place is None:
        return None
    entries = _shown(session, situation, since, place)
    request = handoff.ask(entries, session.index, room=room, count=situation.count, previous=previous, focus=focus)
    if request is None:
        return None
    return Ask(
        planner="handoff",
        length=session.length,
        rewrites=session.rewrites,
        text=request.user,
        system=handoff.SYSTEM,
        cut=place,
        start=start,
        transcript=request.transcript,
    )


def answer_handoff(
    session: Session,
    asked: Ask,
    reply: str,
    *,
    rules: Iterable[Quoted] | None = None,
    moment: Moment = "manual",
    at: str = "",
    planning_usd: float = 0.0,
    is_assumed: bool = False,
) -> Answered:
    """The brief in place of what came before the cut. `rules` None: those of the brief before. A reply that is no brief, or not worth its room, leaves everything as it was."""
    if stale := _stale(session, asked):
        return Answered(decision=Stay(reason=stale))
    sections = read_brief(reply, transcript=asked.transcript)
    if isinstance(sections, Refusal):
        why = f"no brief: {sections.reason}{f' ({sections.detail})' if sections.detail else ''}"
        return Answered(decision=Stay(reason=why), is_usable=False)
    situation = session.situation()
    since, previous = _standing(session)
    earlier = parsed(previous)
    known = earlier.facts if earlier else None
    if rules is None:
        rules = known.rules if known else ()
    entries = _shown(session, situation, max(since, asked.start), session.length)
    facts = facts_of(session.index, entries, cut=asked.cut, earlier=known, rules=rules)
    action = Take(
        how="brief",
        object=f"entry:{asked.cut}",
        places=tuple(
            (row.entry, block) for row in session.view.rows() if asked.start <= row.entry < asked.cut for block in row.blocks
        ),
        pointer=brief(sections, facts),
        before_entry=asked.cut,
        inserted=True,
    )
    # A person asked, or a limit did: what it costs is said, and does not stop it.
    reason = f"history handed off{' by a model' * is_assumed}{_ASSUMED * is_assumed}"
    decision = session.plan("handoff", (action,), reason=reason, moment=moment, forced=True, at=at, planning_usd=planning_usd)
    return Answered(decision=decision)


def _stale(session: Session, asked: Ask) -> str:
    """Why an answer comes too late; empty when it does not."""
    if asked.length > session.length:
        return "the question was asked of a longer conversation"
    return "" if asked.rewrites == session.rewrites else "the window changed since the question was asked"


def _standing(session: Session) -> tuple[int, str]:
    """The entry before which the newest brief stands, and its text; 0 and empty without one."""
    for insert in session.view.inserts:
        if insert.text.startswith(OPENING):
            return insert.before_entry, insert.text
    return 0, ""


def _shown(session: Session, situation: Situation, start: int, stop: int) -> Iterator[Entry]:
    return (situation.read(row.entry) for row in session.view.rows() if start <= row.entry < stop)
