"""Why an object stands in the window as it does, and what the policy thinks of it.

Pure: a moment in, an account out. What the commits did is read from their edits; what the policy would do is asked of the policy itself.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.price import prices_for
from tenure.engine.policies.graph.policy import GraphPolicy
from tenure.engine.policies.graph.why import Judged, Reason, names_in, verdicts
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.objects import Handle, parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.view.action import LEVELS, Action, Level, Shorten, Strip, Take, Unstrip, at_level
from tenure.engine.view.edit import Drop, Insert, Replace, Restore
from tenure.engine.view.residue import start_of
from tenure.errors import InputError
from tenure.lab.events import HarmLine, fields_in
from tenure.lab.why.past import Moment, call_of

State = Literal["whole", "restored", "shortened", "in part", "gone"]
Coming = Literal["stays as it is", "is shortened", "leaves in part", "leaves", "comes back"]


class Thing(Struct, frozen=True, kw_only=True):
    """What an object is, and how old."""

    handle: str
    kind: str  # call, message, turn, step, episode, skill
    tool: str = ""
    about: str = ""
    failed: bool = False
    tokens: int  # in the record
    blocks: int
    lines: int  # of a call's result
    turn: int
    step: int
    age: int  # steps since
    call: int  # that made it, or before which it came


class Now(Struct, frozen=True, kw_only=True):
    """The moment that is asked about."""

    call: int  # the call that comes next, from 0
    calls: int
    is_end: bool
    view: int  # tokens
    head: int = 0  # tokens of system prompt and tools before it, as far as they are known
    ratio: float  # provider tokens to one of them
    limit: int  # provider tokens
    policy: str
    simulated: bool


class ResidueText(Struct, frozen=True, kw_only=True):
    """What stands in the view for something that left."""

    key: str
    text: str
    names_it: bool  # or a stretch in which it lies


class Appearance(Struct, frozen=True, kw_only=True):
    """How an object stands in the view."""

    state: State
    tokens: int
    shown: int  # blocks
    instead: str = ""  # the text in place of a result
    kept: tuple[str, ...] = ()  # lines of the result that it still shows
    names: tuple[str, ...] = ()  # that it lists beside them
    residues: tuple[ResidueText, ...] = ()


class Touch(Struct, frozen=True, kw_only=True):
    """A commit that changed an object."""

    commit: int
    before_call: int
    policy: str
    moment: str
    reason: str
    deed: str  # dropped, shortened, restored
    before: int  # tokens of the object
    after: int
    gain_usd: float | None = None  # of the whole commit, as the gate expected it; None where none was asked
    assumed: bool = False  # the money is by another model's price
    removed: int = 0  # provider tokens of the whole commit
    resent: int = 0  # provider tokens after the earliest change, of which the cache was broken


class Protection(Struct, frozen=True, kw_only=True):
    """Why no policy may touch something of an object."""

    reason: str
    text: str
    blocks: int
    every: bool  # all that is shown of it


class ExpectedNeed(Struct, frozen=True, kw_only=True):
    """What `graph` expects to be asked of an object, for each 1,000 tokens."""

    need: float
    median: float  # of the view's results
    rank: int  # 1: the first to go
    of: int
    results: int  # of which it is made up
    reasons: tuple[Reason, ...] = ()  # that count most
    least: str = ""  # of several, the handles of the ends
    most: str = ""


class Order(Struct, frozen=True, kw_only=True):
    """The object in a policy's order of actions, were a batch due now."""

    goal: int  # tokens that the view would come down to
    place: int  # of the first action that is about it; 0: none is
    of: int
    action: str = ""  # its name
    coming: Coming
    tokens: int  # of the object after it
    kept: tuple[str, ...] = ()  # lines of the result that would stay
    names: tuple[str, ...] = ()  # that would be listed beside them
    next_goal: int = 0
    next_coming: Coming = "stays as it is"
    next_to_go: tuple[str, ...] = ()  # lines that would leave with a quarter less room
    next_names: tuple[str, ...] = ()  # and names


class Within(Struct, frozen=True, kw_only=True):
    """The episode that an object lies in."""

    handle: str
    type: str
    is_declared: bool
    is_open: bool
    level: str  # of eviction that takes the object
    dependents: tuple[str, ...] = ()  # episodes still shown that build on it
    dependencies: tuple[str, ...] = ()


class ObjectAccount(Struct, frozen=True, kw_only=True):
    """All that is known about one object at one moment."""

    thing: Thing
    now: Now
    standing: Appearance
    touched: tuple[Touch, ...]
    protected: tuple[Protection, ...]
    need: ExpectedNeed | None
    order: Order | None
    within: Within | None
    later: tuple[HarmLine, ...]  # steps that needed it once it had left, as the harm detector tells them
    recall: str  # the call
    command: str


_KINDS: Final = {"user": "turn", "step": "step", "episode": "episode", "skill": "skill", "entry": "message"}
_HELD: Final = {
    "human": "a person's own words",
    "prologue": "it belongs to the prologue: the system prompt, or by the paper's rule what came before the first mark",
    "tail": "it is among the newest exchanges (the tail)",
    "pin": "it is pinned",
    "hold": "the host holds it",
    "episode": "its episode is still open",
    "recall": "a recall has just brought it back",
    "notes": "the agent's own notes",
    "pair": "its call and its result only go together, and one of them may not go",
    "outside": "it lies in no step, so no policy names it",
}


def explain(moment: Moment, name: str, address: str = "SESSION") -> ObjectAccount:
    """The account of one object. Raises InputError, naming near ones, when the record has none of that name by then."""
    session = moment.session
    index = session.index
    handle = parse_handle(name)
    places = _places(moment, handle)
    printed = index.handle(handle.object, places[0][0])
    touched = tuple(_touches(moment, places))
    standing = _standing(session, places, handle.object, touched, moment.past.entries[places[-1][0]].blocks[places[-1][1]].text)
    return ObjectAccount(
        thing=_thing(moment, places, printed, handle.kind),
        now=_now(moment),
        standing=standing,
        touched=touched,
        protected=_protected(session, places),
        need=need_of(session, places),
        order=order_of(moment, places),
        within=_within(session, places),
        later=tuple(_later(moment, places, touched[0].before_call)) if touched else (),
        recall=f"recall(handle={json.dumps(printed)})",
        command=f"tenure recall {address} {shlex.quote(printed)}",
    )


def _places(moment: Moment, handle: Handle) -> tuple[At, ...]:
    """Where its blocks lie. Raises InputError for what is not there, or not yet."""
    index = moment.session.index
    try:
        return blocks_of(index, handle)
    except InputError:
        if moment.is_end:
            raise
    whole = Index(index.kinds)
    for entry in moment.past.entries:
        whole.grow(entry)
    first = call_of(whole, blocks_of(whole, handle)[0][0])
    raise InputError("--at-call", f"{moment.call}, when there was no {handle.object} yet", f"more than {first}")


def _touches(moment: Moment, places: tuple[At, ...]) -> Iterator[Touch]:
    """The commits that changed an object, in order, each with what it weighed before and after."""
    whole = {at: moment.session.index.block(at).tokens for at in places}
    shown = dict(whole)
    for commit in moment.session.commits:
        held = [at for at in places if at[0] < commit.entries]
        before = sum(shown[at] for at in held)
        deeds: dict[str, None] = {}
        for edit in commit.edits:
            match edit:
                case Drop(entry=entry, block=block) if (entry, block) in whole:
                    deed, weight = "dropped", 0
                case Replace(entry=entry, block=block) if (entry, block) in whole:
                    deed, weight = "shortened", edit.tokens
                case Restore(entry=entry, block=block) if (entry, block) in whole:
                    deed, weight = "restored", whole[entry, block]
                case _:
                    continue
            deeds[deed] = None
            shown[entry, block] = weight
        if deeds:
            price = commit.price
            yield Touch(
                **fields_in(commit, Touch, commit=commit.n),
                before_call=call_of(moment.session.index, commit.entries),
                deed=" and ".join(deeds),
                before=before,
                after=sum(shown[at] for at in held),
                gain_usd=price.gain_usd if price is not None else None,
                assumed=price is not None and not prices_for(moment.past.model).known,
                removed=price.d if price is not None else 0,
                resent=price.s if price is not None else 0,
            )


def _thing(moment: Moment, places: tuple[At, ...], printed: str, kind: str) -> Thing:
    index, entries = moment.session.index, moment.past.entries
    facts = index.block(places[0])
    is_call = kind not in _KINDS
    span = index.spans[facts.span] if facts.span != NONE else None
    start, last = places[0], places[-1]
    text = entries[last[0]].blocks[last[1]].text if is_call and index.block(last).kind == "tool_result" else ""
    first = entries[start[0]].blocks[start[1]].text
    return Thing(
        handle=printed,
        kind="call" if is_call else _KINDS[kind],
        tool=span.tool if span is not None else "",
        about=span.cue if span is not None else first[:400],
        failed=is_call and span is not None and span.error,
        tokens=sum(index.block(at).tokens for at in places),
        blocks=len(places),
        lines=text.count("\n") + 1 if text else 0,
        turn=facts.turn,
        step=(step := index.entries[start[0]].step),
        age=len(index.steps) - step,
        call=call_of(index, start[0]),
    )


def _now(moment: Moment) -> Now:
    session = moment.session
    policy = session.setup.policy
    return Now(
        call=moment.call,
        calls=moment.calls,
        is_end=moment.is_end,
        view=session.view.tokens,
        head=moment.past.head,
        ratio=session.ratio,
        limit=session.setup.budget.limit,
        policy=policy.name if policy is not None else "none",
        simulated=moment.past.simulated,
    )


def _standing(session: Session, places: tuple[At, ...], object_: str, touched: tuple[Touch, ...], text: str) -> Appearance:
    view = session.view
    shown = [at for at in places if view.shows(*at)]
    replaced = {at: instead for at in shown if (instead := view.instead(*at)) is not None}
    if not shown:
        state = "gone"
    elif len(shown) < len(places):
        state = "in part"
    elif replaced:
        state = "shortened"
    else:
        state = "restored" if touched and touched[-1].deed == "restored" else "whole"
    instead = replaced[places[-1]].text if places[-1] in replaced else ""
    return Appearance(
        state=state,
        tokens=sum(view.weight(*at) for at in places),
        shown=len(shown),
        instead=instead,
        kept=kept_lines(text, instead) if instead else (),
        names=names_in(instead),
        residues=tuple(_residues(session, places, object_)) if len(shown) < len(places) or replaced else (),
    )


def _residues(session: Session, places: tuple[At, ...], object_: str) -> Iterator[ResidueText]:
    """What stands for it: what names it or something that it lies in, else the stretch around it."""
    index, view = session.index, session.view
    names = {object_, *(each for at in places for each in index.objects_of(at))}
    around: Insert | None = None
    for insert in view.inserts:
        routes = [parse_handle(route).object for route in insert.routes]
        if not names.isdisjoint(routes):
            yield ResidueText(key=insert.key, text=insert.text, names_it=True)
            return
        starts = sorted(start_of(index, route) for route in insert.routes)
        if around is None and starts and starts[0] <= places[0] <= starts[-1]:
            around = insert
    if around is not None:
        yield ResidueText(key=around.key, text=around.text, names_it=False)


def _protected(session: Session, places: tuple[At, ...]) -> tuple[Protection, ...]:
    situation = session.situation()
    shown = [at for at in places if session.view.shows(*at)]
    counts: dict[str, int] = {}
    for at in shown:
        why = situation.guard.why(at)
        if why is None and not situation.is_free(at):
            why = "outside" if session.index.block(at).episode == NONE else "pair"
        if why is not None:
            counts[why] = counts.get(why, 0) + 1
    held = {
        hold.object: own
        for hold in session.holds
        if (own := len({*shown}.intersection(blocks_of(session.index, parse_handle(hold.object)))))
    }
    if set(counts) > {"pair"}:
        counts.pop("pair", None)  # the one that may not go says why
    for kind in ("pin", "hold"):
        counts.pop(kind, None)  # told by the object that is held
    every = sum(counts.values()) == len(shown)
    told = [
        Protection(reason=why, text=_HELD[why], blocks=count, every=every or count == len(shown)) for why, count in counts.items()
    ]
    for hold in session.holds:
        if own := held.get(hold.object, 0):
            why = "pin" if hold.kind == "pin" else "hold"
            said = f"{_HELD[why]}{f': {hold.reason}' if hold.reason else ''}"
            told.append(Protection(reason=why, text=said, blocks=own, every=own == len(shown)))
    return tuple(told)


def _within(session: Session, places: tuple[At, ...]) -> Within | None:
    index = session.index
    ordinals = {index.block(at).episode for at in places} - {NONE}
    if len(ordinals) != 1:
        return None
    episode = index.episodes[ordinals.pop()]
    alive = session.situation().alive
    level = next((level for level in LEVELS[episode.type] if at_level(index, places[-1], level)), "")
    return Within(
        handle=index.handle(episode.object, episode.start[0]),
        type=str(episode.type),
        is_declared=episode.declared,
        is_open=not episode.closed,
        level=str(level),
        dependents=_handles(index, (each for each in episode.dependents if each in alive)),
        dependencies=_handles(index, iter(episode.dependencies)),
    )


def _handles(index: Index, ordinals: Iterator[int]) -> tuple[str, ...]:
    return tuple(index.handle(index.episodes[each].object, index.episodes[each].start[0]) for each in ordinals)


def _later(moment: Moment, places: tuple[At, ...], since: int) -> Iterator[HarmLine]:
    """What steps from call `since` on needed that lay in it too, in the order of the calls."""
    own = set(places)
    for need in moment.past.needs:
        if need.call >= since and need.part != "thinking" and not own.isdisjoint(need.held):
            yield need


REASONS: Final = 3  # that are told
_SHARE: Final = 0.6  # of a view that is small already: what a batch is supposed to leave of it
_LESS: Final = 0.75  # of a goal: what is supposed to ask what goes next


def need_of(session: Session, places: Sequence[At]) -> ExpectedNeed | None:
    """What `graph` expects to be asked of it; None under another policy, and of what it may not shorten."""
    policy = session.setup.policy
    if not isinstance(policy, GraphPolicy):
        return None
    every = verdicts(session.situation(), frozenset(places), policy.weights)
    wanted = set(places)
    own = [judged for judged in every.judged if judged.at in wanted]
    if not own:
        return None
    tokens = sum(max(1, judged.tokens) for judged in own)
    need = sum(judged.need * max(1, judged.tokens) for judged in own) / tokens
    return ExpectedNeed(
        need=need,
        median=every.median,
        rank=1 + next(number for number, each in enumerate(every.judged) if each.at == own[0].at)
        if len(own) == 1
        else 1 + sum(judged.need < need for judged in every.judged),
        of=len(every.judged),
        results=len(own),
        reasons=own[0].reasons[:REASONS] if len(own) == 1 else (),
        least=_named(session, own[0]) if len(own) > 1 else "",
        most=_named(session, own[-1]) if len(own) > 1 else "",
    )


def order_of(moment: Moment, places: tuple[At, ...]) -> Order | None:
    """What the policy would do with it were a batch due now; None without a policy, and of what is not shown at all."""
    session = moment.session
    policy = session.setup.policy
    if policy is None or not any(session.view.shows(*at) for at in places):
        return None
    goal = _goal(session, policy.conduct, moment.past.head)
    situation = session.situation(goal=goal)
    actions = list(policy(situation))
    place = next((number for number, action in enumerate(actions, 1) if _concerns(situation, action, places)), 0)
    less = int(goal * _LESS)
    (coming, tokens, kept, names), (later, _, later_kept, later_names) = (
        _outcome(moment, session.rehearse(policy, each, limit=each), places) for each in (goal, less)
    )
    return Order(
        goal=goal,
        place=place,
        of=len(actions),
        action=_called(actions[place - 1]) if place else "",
        coming=coming,
        tokens=tokens,
        kept=kept,
        names=names,
        next_goal=less,
        next_coming=later,
        next_to_go=tuple(line for line in kept if line not in set(later_kept)),
        next_names=tuple(name for name in names if later == "leaves" or name not in set(later_names)),
    )


def _outcome(moment: Moment, plan: Rehearsal, places: tuple[At, ...]) -> tuple[Coming, int, tuple[str, ...], tuple[str, ...]]:
    """What a rehearsal makes of an object: what comes of it, its tokens, and the lines and names of the result that stay."""
    after = moment.session.view.copy()
    after.apply(plan.edits)
    edits = {
        type(edit) for edit in plan.edits if isinstance(edit, Drop | Replace | Restore) and (edit.entry, edit.block) in places
    }
    coming: Coming = "stays as it is"
    if edits and not any(after.shows(*place) for place in places):
        return "leaves", 0, (), ()
    if edits:
        coming = "leaves in part" if Drop in edits else "is shortened" if Replace in edits else "comes back"
    entry, block = places[-1]
    text = moment.past.entries[entry].blocks[block].text
    instead = after.instead(entry, block)
    kept = kept_lines(text, text if instead is None else instead.text) if after.shows(entry, block) else ()
    return coming, sum(after.weight(*at) for at in places), kept, names_in(instead.text) if instead is not None else ()


def kept_lines(text: str, shown: str) -> tuple[str, ...]:
    """The lines of a text that what is shown in its place still has, in order. Linear."""
    own = set(text.split("\n"))
    return tuple(line for line in shown.split("\n") if line.strip() and line in own)


def _goal(session: Session, conduct: Conduct, head: int) -> int:
    """O200k tokens that a batch would bring the view to, which goes out behind a head."""
    floor = int(session.floor_of(session.setup.budget.limit, conduct) / session.ratio) - head
    return max(1, min(floor, int(session.view.tokens * _SHARE)))


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
