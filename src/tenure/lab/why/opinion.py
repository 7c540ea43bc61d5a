"""What the policy thinks of an object: the need that it expects, and what it would do were a batch due."""

from collections.abc import Sequence
from typing import Final

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.session import Session
from tenure.engine.policies.provenance.policy import Provenance
from tenure.engine.policies.provenance.why import Judged, names_in, verdicts
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At
from tenure.engine.record.index import NONE
from tenure.engine.view.action import Action, Level, Shorten, Strip, Take, Unstrip
from tenure.engine.view.edit import Drop, Replace, Restore
from tenure.engine.view.levels import at_level
from tenure.lab.why.account import Because, Coming, Need, Order
from tenure.lab.why.past import Moment

REASONS: Final = 3  # that are told
_SHARE: Final = 0.6  # of a view that is small already: what a batch is supposed to leave of it
_LESS: Final = 0.75  # of a goal: what is supposed to ask what goes next


def need_of(session: Session, places: Sequence[At]) -> Need | None:
    """What `provenance` expects to be asked of it; None under another policy, and of what it may not shorten."""
    policy = session.setup.policy
    if not isinstance(policy, Provenance):
        return None
    every = verdicts(session.situation(), frozenset(places), policy.weights)
    wanted = set(places)
    own = [judged for judged in every.judged if judged.at in wanted]
    if not own:
        return None
    tokens = sum(max(1, judged.tokens) for judged in own)
    need = sum(judged.need * max(1, judged.tokens) for judged in own) / tokens
    return Need(
        need=need,
        median=every.median,
        rank=1 + _before(every.judged, own[0]) if len(own) == 1 else 1 + sum(judged.need < need for judged in every.judged),
        of=len(every.judged),
        results=len(own),
        reasons=tuple(
            Because(name=reason.name, text=reason.text, weight=reason.weight)
            for reason in (own[0].reasons[:REASONS] if len(own) == 1 else ())
        ),
        least=_named(session, own[0]) if len(own) > 1 else "",
        most=_named(session, own[-1]) if len(own) > 1 else "",
    )


def order_of(moment: Moment, places: tuple[At, ...]) -> Order | None:
    """What the policy would do with it were a batch due now; None without a policy, and of what is not shown at all."""
    session = moment.session
    policy = session.setup.policy
    if policy is None or not any(session.view.shows(*at) for at in places):
        return None
    goal = _goal(session, moment.past.head)
    situation = session.situation(goal=goal)
    actions = list(policy(situation))
    place = next((number for number, action in enumerate(actions, 1) if _concerns(situation, action, places)), 0)
    now, later = (_outcome(moment, session.rehearse(policy, each, limit=each), places) for each in (goal, int(goal * _LESS)))
    return Order(
        goal=goal,
        place=place,
        of=len(actions),
        action=_called(actions[place - 1]) if place else "",
        coming=now.coming,
        tokens=now.tokens,
        kept=now.kept,
        names=now.names,
        next_goal=int(goal * _LESS),
        next_coming=later.coming,
        next_to_go=_lost(now.kept, later.kept),
        next_names=_lost(now.names, later.names) if later.coming != "leaves" else now.names,
    )


class _Outcome:
    """What a rehearsal makes of an object."""

    def __init__(self, coming: Coming, tokens: int = 0, kept: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> None:
        self.coming: Coming = coming
        self.tokens, self.kept, self.names = tokens, kept, names


def _outcome(moment: Moment, plan: Rehearsal, places: tuple[At, ...]) -> _Outcome:
    view = moment.session.view
    after = view.copy()
    after.apply(plan.edits)
    own = set(places)
    edits = [edit for edit in plan.edits if isinstance(edit, Drop | Replace | Restore) and (edit.entry, edit.block) in own]
    coming: Coming
    if not edits:
        coming = "stays as it is"
    elif not any(after.shows(*place) for place in places):
        return _Outcome("leaves")
    elif any(isinstance(edit, Drop) for edit in edits):
        coming = "leaves in part"
    else:
        coming = "is shortened" if any(isinstance(edit, Replace) for edit in edits) else "comes back"
    entry, block = places[-1]
    text = moment.past.entries[entry].blocks[block].text
    instead = after.instead(entry, block)
    shown = text if instead is None else instead.text
    kept = kept_lines(text, shown) if after.shows(entry, block) else ()
    return _Outcome(coming, sum(after.weight(*at) for at in places), kept, names_in(shown) if instead is not None else ())


def kept_lines(text: str, shown: str) -> tuple[str, ...]:
    """The lines of a text that what is shown in its place still has, in order. Linear."""
    own = set(text.split("\n"))
    return tuple(line for line in shown.split("\n") if line.strip() and line in own)


def _goal(session: Session, head: int) -> int:
    """O200k tokens that a batch would bring the view to, which goes out behind a head."""
    budget = session.setup.budget
    floor = int(budget.floor_of(budget.limit) / session.ratio) - head
    return max(1, min(floor, int(session.view.tokens * _SHARE)))


def _before(judged: Sequence[Judged], one: Judged) -> int:
    return next(number for number, each in enumerate(judged) if each.at == one.at)


def _named(session: Session, judged: Judged) -> str:
    index = session.index
    span = index.block(judged.at).span
    if span == NONE:
        return index.handle(f"entry:{judged.at[0]}/{judged.at[1]}", judged.at[0])
    found = index.spans[span]
    return index.handle(found.object, found.call[0])


def _concerns(situation: Situation, action: Action, places: tuple[At, ...]) -> bool:
    """Whether an action would take or shorten anything of an object."""
    index, own = situation.index, frozenset(places)
    match action:
        case Strip(episode=episode, level=level):
            return any(at in own and at_level(index, at, level) for at in situation.free.get(episode, ()))
        case Shorten(at=at, span=span):
            if at is not None:
                return at in own
            return index.spans[span].result in own or (action.part == "arguments" and index.spans[span].call in own)
        case Take(places=taken):
            return not own.isdisjoint(taken)
        case Unstrip():
            return False


def _called(action: Action) -> str:
    match action:
        case Strip(level=Level.EPISODE):
            return "take the whole step"
        case Strip(level=level):
            return f"strip the step's {level}"
        case Shorten():
            return "shorten it"
        case Take(how=how):
            return f"{how} it"
        case Unstrip():
            return "bring it back"


def _lost(now: Sequence[str], later: Sequence[str]) -> tuple[str, ...]:
    kept = set(later)
    return tuple(line for line in now if line not in kept)
