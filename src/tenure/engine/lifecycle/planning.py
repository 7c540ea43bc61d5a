"""Asking a model what may leave, and carrying out what it answers.

Sans I/O: `ask_…` makes what an edge sends to a model, `answer_…` takes the reply back. By then the conversation may have gone on, so the reply
is held against the session as it is now, and rehearsed and priced like any policy's plan. A reply that says nothing useful changes nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.clip import diff, table
from tenure.engine.clip.cut import cut as cut_text
from tenure.engine.lifecycle.decision import Decision, Stay
from tenure.engine.lifecycle.session import Session
from tenure.engine.planners.handoff import request as handoff
from tenure.engine.planners.handoff.brief import brief, parsed
from tenure.engine.planners.handoff.facts import Quoted, facts_of
from tenure.engine.planners.handoff.sections import Refusal
from tenure.engine.planners.handoff.sections import read as read_brief
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.planners.selfgc.objects import objects_in
from tenure.engine.planners.selfgc.plan import Fold, Mask, Planned, Refused, ask, screened
from tenure.engine.planners.selfgc.reply import read
from tenure.engine.policies.placeholder import trimmed
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Entry, ToolResult
from tenure.engine.record.recall import described, media_in
from tenure.engine.view.action import Action, Shorten, Take
from tenure.engine.view.edit import Insert, Moment

MASK_HEAD: Final = 200  # o200k tokens kept of a masked result's beginning
MASK_TAIL: Final = 300
_ASSUMED: Final = " whose price is assumed"
_EXACT: Final = (diff.fits, table.fits)  # shapes whose middle is not repetitive, however it looks
_TRACE: Final = re.compile(  # how stacks look in Python, on the JVM and in JavaScript, in Go, Rust and C#
    r"Traceback \(most recent call last\)|^[ \t]+at [^\n]{1,300}:\d+\)?[ \t]*$|^goroutine \d+ \[|panicked at |^Caused by: |^[ \t]+at [^\n]{1,300} in [^\n]{1,300}:line \d+",
    re.MULTILINE,
)


class Ask(Struct, frozen=True, kw_only=True):
    """What a model is to be asked. With `behind` it goes behind the conversation as it was last sent, so that the provider's cache is read."""

    planner: Literal["selfgc", "handoff"]
    length: int  # of the record, and how often its view had been rewritten, when it was asked
    rewrites: int
    text: str
    system: str = ""
    behind: bool = False
    output_tokens: int = 4_096
    cut: int = 0  # of a handoff: the entry before which everything is handed off
    transcript: str = ""  # of a handoff: what the reply is held against


class Answered(Struct, frozen=True, kw_only=True):
    """What became of a reply: a decision about the plan in it, and everything of it that was refused, with reasons."""

    decision: Decision
    refused: tuple[Refused, ...] = ()
    summary: str = ""  # of a Self-GC plan: what the planner says of the conversation above
    is_usable: bool = True  # the reply was a plan or a brief, whatever became of it


def ask_selfgc(session: Session, *, aim: int = 0) -> Ask | None:
    """The question to a Self-GC planner; None when nothing may be named."""
    situation = session.situation()
    request = ask(situation, read=situation.read, aim=aim, within_cut=True)
    if request is None:
        return None
    return Ask(
        planner="selfgc",
        length=session.length,
        rewrites=session.rewrites,
        text=request.text,
        behind=True,
        output_tokens=request.output_tokens,
    )


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
    plan = screened(proposed, objects_in(situation, read=situation.read, within_cut=True))
    actions, exact = _compiled(situation, plan.actions)
    if not proposed.targets:
        decision: Decision = Stay(reason="the planner names nothing" if proposed.found else "the reply holds no plan")
    else:
        reason = f"planned by a model{_ASSUMED * is_assumed}"
        decision = session.plan("selfgc", actions, reason=reason, moment=moment, at=at, planning_usd=planning_usd)
    return Answered(decision=decision, refused=(*plan.refused, *exact), summary=proposed.summary, is_usable=proposed.found)


def ask_handoff(session: Session, *, room: int = 100_000, focus: str = "", keep: int = handoff.KEEP_REPLIES) -> Ask | None:
    """The question to a summariser, in at most `room` o200k tokens; None when there is nothing new to hand off."""
    situation = session.situation()
    old = _standing(session)
    place = handoff.cut(session.index, keep=keep, tail=situation.guard.tail, since=old.before_entry if old else 0)
    if place is None:
        return None
    told = _shown(session, situation, old.before_entry if old else 0, place)
    request = handoff.ask(told, session.index, room=room, count=situation.count, previous=old.text if old else "", focus=focus)
    if request is None:
        return None
    return Ask(
        planner="handoff",
        length=session.length,
        rewrites=session.rewrites,
        text=request.user,
        system=request.system,
        output_tokens=request.output_tokens,
        cut=place,
        transcript=request.transcript.text,
    )


def answer_handoff(
    session: Session,
    asked: Ask,
    reply: str,
    *,
    finished: bool | None = None,
    rules: Iterable[Quoted] | None = None,
    pinned: Iterable[Quoted] = (),
    moment: Moment = "manual",
    at: str = "",
    planning_usd: float = 0.0,
    is_assumed: bool = False,
) -> Answered:
    """The brief in place of what came before the cut. `rules` None: those of the brief before. A reply that is no brief, or not worth its room, leaves everything as it was."""
    if stale := _stale(session, asked):
        return Answered(decision=Stay(reason=stale))
    sections = read_brief(reply, transcript=asked.transcript, finished=finished)
    if isinstance(sections, Refusal):
        why = f"no brief: {sections.reason}{f' ({sections.detail})' if sections.detail else ''}"
        return Answered(decision=Stay(reason=why), is_usable=False)
    situation, old = session.situation(), _standing(session)
    earlier = parsed(old.text) if old else None
    since = old.before_entry if old else 0
    entries = list(_shown(session, situation, since, session.length))
    told = earlier.facts if earlier else None
    if rules is None:
        rules = told.rules if told else ()
    facts = facts_of(session.index, entries, cut=asked.cut, earlier=told, rules=rules, pinned=pinned)
    places = tuple((row.entry, block) for row in session.view.rows() if row.entry < asked.cut for block in row.blocks)
    action = Take(
        how="brief",
        object=f"entry:{asked.cut}",
        places=places,
        pointer=brief(sections, facts),
        before_entry=asked.cut,
        inserted=True,
    )
    # A person asked, or a limit did: what it costs is said, and does not stop it.
    decision = session.plan(
        "handoff",
        (action,),
        reason=f"history handed off{' by a model' * is_assumed}{_ASSUMED * is_assumed}",
        moment=moment,
        forced=True,
        at=at,
        planning_usd=planning_usd,
    )
    return Answered(decision=decision)


def _stale(session: Session, asked: Ask) -> str:
    """Why an answer comes too late; empty when it does not."""
    if asked.length > session.length:
        return "the question was asked of a longer conversation"
    return "" if asked.rewrites == session.rewrites else "the window changed since the question was asked"


def _standing(session: Session) -> Insert | None:
    """The brief that stands now."""
    return next((insert for insert in session.view.inserts if insert.text.startswith(OPENING)), None)


def _shown(session: Session, situation: Situation, start: int, stop: int) -> Iterator[Entry]:
    return (situation.read(row.entry) for row in session.view.rows() if start <= row.entry < stop)


def _compiled(situation: Situation, planned: Sequence[Planned]) -> tuple[tuple[Action, ...], tuple[Refused, ...]]:
    """A plan's actions in the engine's words; masks of what must stay exact are refused."""
    actions: list[Action] = []
    refused: list[Refused] = []
    for each in planned:
        match each:
            case Fold(object=found, pointer=pointer):
                actions.append(
                    Take(
                        how="fold",
                        object=found.id,
                        places=found.places,
                        pointer=pointer.text,
                        before_entry=pointer.before_entry,
                        routes=pointer.handles,
                    )
                )
            case Mask(object=found):
                masked = _masked(situation, each)
                if isinstance(masked, str):
                    refused.append(Refused(object=found.id, action="mask", why=masked))
                else:
                    actions.append(masked)
            case _:
                actions.append(Take(how="prune", object=each.object.id, places=each.object.places))
    return tuple(actions), tuple(refused)


def _masked(situation: Situation, mask: Mask) -> Shorten | str:
    """The result with its middle left out, or why that would lose something exact (DESIGN.md, actions: mask)."""
    entry, number = mask.result
    block = situation.read(entry).blocks[number]
    text = block.text if isinstance(block, ToolResult) else ""
    handle = mask.object.handle
    seen = "; ".join(map(described, media_in(block)))
    beside = f"[left out: {seen}; recall {handle} says how it comes back]" if seen else ""
    is_exact = _TRACE.search(text) is not None or any(fits(text.split("\n")) for fits in _EXACT)
    start, end, left_out = cut_text(text, MASK_HEAD, MASK_TAIL, situation.count)
    if is_exact and not beside:
        return "its middle is a table, a trace or a diff, which is not repetitive"
    if not left_out and not beside:
        return "is too short to be masked"
    shown = text if is_exact or not left_out else f"{start}\n{trimmed(handle, left_out)}\n{end}"
    span = situation.index.block(mask.result).span
    return Shorten(span=span, how="mask", text="\n".join(filter(None, (shown, beside))), routes=(handle,))
