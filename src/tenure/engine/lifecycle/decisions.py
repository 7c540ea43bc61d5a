"""Deciding what is to happen before a call, for one session."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import GateRule
from tenure.engine.lifecycle.decision import DIGITS, Decision, Propose, Stay, Unmet
from tenure.engine.lifecycle.exhaustion import Exhaustion
from tenure.engine.lifecycle.fit import Rehearsal, rehearse
from tenure.engine.lifecycle.gate import (
    Removal,
    allowed_usd,
    best_start,
    first_look,
    is_allowed,
    is_worth_it,
    miss_rate,
    outlook_of,
    pays_now,
    priced,
)
from tenure.engine.lifecycle.held import Holders, free_of, parts
from tenure.engine.lifecycle.occasion import Occasion
from tenure.engine.lifecycle.state import SessionState
from tenure.engine.meter import figures
from tenure.engine.meter.tokens import FRAMING
from tenure.engine.policies.policy import Planned, Policy, chain
from tenure.engine.policies.situation import Situation
from tenure.engine.record.index import NONE
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.view.action import Action, Shorten, Take
from tenure.engine.view.edit import Commit, Moment, Price
from tenure.engine.view.laws import may_go
from tenure.engine.view.project import Projection

TURNS_WAITING: Final = 1  # turns of a person that a plan made elsewhere outlives


class _WaitingPlan(Struct, frozen=True, kw_only=True):
    """A plan that was made elsewhere and waits for its time."""

    policy: Planned
    reason: str
    price: Price
    tokens: int  # of the record when it was priced
    turns: int  # when it was made


class _NotedPolicy:
    """A policy whose actions are noted as they are asked for."""

    def __init__(self, policy: Policy) -> None:
        self.name, self.conduct, self._policy = policy.name, policy.conduct, policy
        self.actions: list[Action] = []

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Its actions."""
        for action in self._policy(situation):
            self.actions.append(action)
            yield action


class _Offer(Struct, frozen=True, kw_only=True):
    """The newest proposal, and the view that it makes of the present one."""

    commit: Commit
    view: Projection
    missed: bool = False  # the limit that called for it is passed all the same


class Decisions:
    """Decides for one session, whose state it only reads. Mutable: it knows its newest offer, and the plan that waits."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._waiting: _WaitingPlan | None = None
        self._rest: Planned | None = None  # of the plan whose best part is the newest proposal
        self._offer: _Offer | None = None
        self._holders = Holders(state)
        self._exhaustion = Exhaustion(state, self._holders)

    @property
    def waiting(self) -> Planned | None:
        """The plan that waits for its time."""
        return None if self._waiting is None else self._waiting.policy

    def decide_on(self, call: Occasion) -> Decision:
        """What is to happen now. O(1) within budget."""
        policy = self._state.setup.policy
        within = f"{call.total:,} tokens are within the limit"
        if not call.limit and self._waiting is None:
            return Stay(reason=within)
        if not call.forced and (due := self._due(call)) is not None:
            return due
        if not call.limit:
            return self._stay(within, self._waiting.price if self._waiting else None)
        if call.forced and self._waiting is not None:  # a plan that waits goes first
            policy = self._waiting.policy if policy is None else chain(self._waiting.policy, policy)
        if policy is None:
            return self._short(call, f"{call.total:,} tokens are above the target, and there is no policy")
        if self._exhaustion.lasts(call):
            price = self._exhaustion.price
            return self._unmet(call, call.total) if call.forced else self._stay(self._why_waiting(price), price)
        return self._propose(policy, call)

    def plan(
        self, name: str, actions: Iterable[Action], *, reason: str, moment: Moment, forced: bool, at: str, planning_usd: float
    ) -> Decision:
        """What becomes of actions that were planned elsewhere: proposed when they pay, or when `forced`; nothing changes yet."""
        state = self._state
        policy = Planned(name=name, actions=tuple(actions))
        may_part = state.setup.gate is not GateRule.SELFGC_PAPER and state.setup.selfgc.by_part and not forced
        part = self._best_part(policy, at) if may_part else None
        if part is not None:
            rehearsal, view = rehearse(state, part, 0, None)
            price, head = self._price(rehearsal, at, planning_usd)
            if rehearsal.saved > 0 and price.gain_usd > 0 and not _touched(state, view):
                self._rest = replace(policy, actions=tuple(each for each in policy.actions if each not in part.actions))
                return self._offered(rehearsal, view, price, name, moment, reason, forced=False, head=head)
        rehearsal, view = rehearse(state, policy, 0, None)
        if not rehearsal.edits or rehearsal.saved <= 0:
            return Stay(reason="nothing of the plan may leave now")
        if touched := _touched(state, view):
            return Stay(reason=f"the plan would touch {touched}, which is held")
        price, head = self._price(rehearsal, at, planning_usd)
        if not forced and not pays_now(state, price, state.provider(state.view.tokens), moment, at):
            index = state.index
            self._waiting = _WaitingPlan(policy=policy, reason=reason, price=price, tokens=index.tokens, turns=len(index.turns))
            return self._stay(self._why_waiting(price), price)
        return self._offered(rehearsal, view, price, name, moment, reason, forced=forced, head=head)

    def view_after(self, commit: Commit) -> Projection | None:
        """The view that a commit makes of the present one, where it was proposed for that."""
        offer = self._offer
        return offer.view if offer is not None and offer.commit is commit and commit.entries == self._state.length else None

    def committed(self, commit: Commit, *, proposed: bool) -> None:
        """Note that the session took a commit in; `proposed` for the view of the newest offer."""
        if self._waiting is not None and self._waiting.policy.name in commit.policy.split("+"):
            self._waiting = None
        if proposed and self._rest is not None and self._rest.name == commit.policy and commit.price is not None:
            self._waiting = self._left_over(self._rest, commit)
        self._rest = None
        self._exhaustion.committed(missed=self._offer.missed if proposed and self._offer is not None else None)
        self._offer = None

    def note_held(self, entries: set[int]) -> None:
        """Note that of these entries more is held than was."""
        self._holders.look_again(entries)
        rows = [row for row in map(self._state.view.row, entries) if row is not None]
        self._exhaustion.keep(sum(row.tokens for row in rows))

    def _best_part(self, plan: Planned, at: str) -> Planned | None:
        """The part of a plan that gains most by itself; None where that is all of it, or nothing."""
        state = self._state
        outlook, miss = outlook_of(state, at), miss_rate(len(state.index.recalls), state.removed)
        removals = [self._removal(action) for action in plan.actions]
        most = allowed_usd(state, at) if state.setup.gate is GateRule.BOUNDED else inf
        gain, behind = best_start(outlook, [each for each in removals if each is not None], miss=miss, most_usd=most)
        if gain <= 0:
            return None
        chosen = tuple(
            action
            for action, each in zip(plan.actions, removals, strict=True)
            if each is not None and each.behind <= behind and is_worth_it(outlook, each, miss=miss)
        )
        return replace(plan, actions=chosen) if len(chosen) < len(plan.actions) else None

    def _left_over(self, plan: Planned, commit: Commit) -> _WaitingPlan | None:
        """What a plan still holds when its best part was carried out: it waits, its asking paid for."""
        assert commit.price is not None
        removals = [each for each in map(self._removal, plan.actions) if each is not None and each.tokens > 0]
        if not removals:
            return None
        index, tokens = self._state.index, sum(each.tokens for each in removals)
        price = replace(commit.price, gain_usd=0.0, d=tokens, s=max(each.behind for each in removals) - tokens, g=0.0)
        return _WaitingPlan(policy=plan, reason=commit.reason, price=price, tokens=index.tokens, turns=len(index.turns))

    def _removal(self, action: Action) -> Removal | None:
        """What an action takes out of the view, as far as that is known without a rehearsal. O(what it names)."""
        state, view, index = self._state, self._state.view, self._state.index
        match action:
            case Take(places=places, pointer=pointer, before_entry=before):
                shown = [at for at in places if view.shows(*at)]
                first = min([at[0] for at in shown] + [before] * bool(pointer), default=0)
                tokens = sum(view.weight(*at) for at in shown) - (state.count(pointer) + FRAMING if pointer else 0)
            case Shorten(span=span, at=at, text=text, part=part) if span != NONE or at is not None:
                place = at or (index.spans[span].call if part == "arguments" else index.spans[span].result)
                if place is None or not view.shows(*place):
                    return None
                first, tokens = place[0], view.weight(*place) - state.count(text)
            case _:
                return None
        return Removal(tokens=state.provider(tokens), behind=state.provider(view.tokens - view.tokens_before(first)))

    def _due(self, call: Occasion) -> Decision | None:
        """A plan that waited and whose time has come; a first look at its price is O(1)."""
        waiting, state = self._waiting, self._state
        if waiting is None:
            return None
        if len(state.index.turns) - waiting.turns > TURNS_WAITING:
            self._waiting = None
            return None
        price = first_look(state, waiting.price, waiting.tokens, call.at)
        self._waiting = replace(waiting, price=price, tokens=state.index.tokens)
        if not pays_now(state, price, call.total, call.moment, call.at):
            return None
        self._waiting = None  # carried out now, or priced anew
        plan = waiting.policy
        decision = self.plan(
            plan.name, plan.actions, reason=waiting.reason, moment=call.moment, forced=False, at=call.at, planning_usd=price.g
        )
        if self._waiting is not None:
            self._waiting = replace(self._waiting, turns=waiting.turns)
        return decision if isinstance(decision, Propose) else None

    def _propose(self, policy: Policy, call: Occasion) -> Decision:
        state, budget = self._state, self._state.setup.budget
        goal = call.limit if policy.conduct.amount == "limit" else state.floor_of(call.limit, policy.conduct)
        if budget.target is not None:
            goal = min(goal, budget.target)  # once the prefix breaks, the target is not to break it again
        bound = int(call.limit / state.ratio) - call.extra if call.forced else None
        noted = _NotedPolicy(policy)
        rehearsal, view = rehearse(state, noted, int(goal / state.ratio) - call.extra, bound)
        after = state.provider(rehearsal.tokens_after + call.extra)
        may_wait = after > call.limit or not call.forced  # one that forces and is met may be met again
        is_little = self._exhaustion.is_little(state.provider(rehearsal.saved), after, call)
        if not rehearsal.edits or rehearsal.saved <= 0 or (rehearsal.exhausted and may_wait and is_little):
            self._exhaustion.note_vain(max(0, rehearsal.saved), forced=call.forced)
            return self._short(call, "nothing is free to leave")
        if touched := _touched(state, view):  # the guard keeps policies from it; nothing is proposed that proves it wrong
            return self._short(call, f"{policy.name} would touch {touched}, which is held")
        if rehearsal.exhausted and may_wait:
            self._exhaustion.note(is_offered=True)
        first = self._waiting if call.forced else None  # it goes first, so it is paid for here
        price, head = self._price(rehearsal, call.at, first.price.g if first else 0.0)
        if not (call.forced or call.by_share or pays_now(state, price, call.total, call.moment, call.at)):
            proposal = self._part_of(noted, call)
            self._exhaustion.note(price=price, is_offered=proposal is not None)  # priced again before every call
            return proposal or self._stay(self._why_waiting(price), price)
        why = f"{call.total - call.limit:,} tokens over the {call.name} of {call.limit:,}"
        if first is not None and first.price.g > 0:
            why += f", begun with what was {first.reason}"
        missed = call.forced and after > call.limit
        proposal = self._offered(
            rehearsal, view, price, policy.name, call.moment, why, forced=call.forced, missed=missed, head=head
        )
        return self._unmet(call, after, proposal) if missed else proposal

    def _price(self, rehearsal: Rehearsal, at: str, planning_usd: float) -> tuple[Price, int]:
        """The price of a rehearsed plan, and the o200k tokens of the head that change with it: by a bounded gate only where that may be paid as well."""
        state = self._state
        stake = state.head_at_stake
        price = priced(state, rehearsal, at, planning_usd, head=stake)
        if not stake or state.setup.gate is not GateRule.BOUNDED or is_allowed(state, price, at):
            return price, stake
        return priced(state, rehearsal, at, planning_usd), 0

    def _part_of(self, policy: "_NotedPolicy", call: Occasion) -> Propose | None:
        """What is worth it of a policy's plan that may not be paid as a whole: the part behind some place."""
        state = self._state
        if state.setup.gate is not GateRule.BOUNDED:
            return None
        plan = Planned(name=policy.name, actions=tuple(policy.actions), conduct=replace(policy.conduct, amount="all"))
        part = self._best_part(plan, call.at)
        if part is None:
            return None
        rehearsal, view = rehearse(state, part, 0, None)
        price, head = self._price(rehearsal, call.at, 0.0)
        if _touched(state, view) or not pays_now(state, price, call.total, call.moment, call.at):
            return None
        why = f"{call.total - call.limit:,} tokens over the {call.name} of {call.limit:,}; the newest part of a plan"
        return self._offered(rehearsal, view, price, policy.name, call.moment, why, forced=False, head=head)

    def _offered(
        self,
        rehearsal: Rehearsal,
        view: Projection,
        price: Price,
        name: str,
        moment: Moment,
        reason: str,
        *,
        forced: bool,
        head: int,
        missed: bool = False,
    ) -> Propose:
        state = self._state
        commit = Commit(
            n=len(state.commits),
            entries=state.length,
            policy=name,
            moment=moment,
            reason=reason,
            forced=forced,
            head=head,
            tokens_before=rehearsal.tokens_before,
            tokens_after=rehearsal.tokens_after,
            ratio=state.ratio,
            actions=rehearsal.actions,
            edits=rehearsal.edits,
            price=price,
        )
        self._offer = _Offer(commit=commit, view=view, missed=missed)
        return Propose(commit=commit, rehearsal=rehearsal, assumed=self._assumed)

    def _short(self, call: Occasion, reason: str) -> Decision:
        """Nothing can be done: said of a limit that can wait, and surfaced of one that forces."""
        return self._unmet(call, call.total) if call.forced else Stay(reason=reason)

    def _stay(self, reason: str, price: Price | None) -> Stay:
        return Stay(reason=reason, price=price, assumed=self._assumed)

    def _why_waiting(self, price: Price | None) -> str:
        if price is None:
            return "nothing new is free to leave"
        if price.gain_usd <= 0:
            return f"would cost {figures.money(-price.gain_usd, assumed=self._assumed, digits=DIGITS)} more than it saves"
        lost = figures.money(price.lost_usd, assumed=self._assumed, digits=DIGITS)
        return f"would lose {lost} if the session ended now" if price.lost_usd > 0 else "a plan waits for its time"

    def _unmet(self, call: Occasion, tokens: int, proposal: Propose | None = None) -> Unmet:
        state = self._state
        if proposal is None:
            held = self._holders.weigh()
            deferred = self._exhaustion.deferred(free_of(held))
        else:
            held, deferred = Holders(state, after=proposal.commit).weigh(), 0
        weights = parts(held, head=call.extra, has_policy=state.setup.policy is not None, deferred=deferred)
        sums = [state.provider(stop) for stop in accumulate(weights.values(), initial=0)]  # rounded so, the parts add up
        shares = {name: stop - start for name, start, stop in zip(weights, sums, sums[1:], strict=False)}
        return Unmet(tokens=tokens, limit=call.limit, held_by=shares, proposal=proposal)

    @property
    def _assumed(self) -> bool:
        """Whether the prices are of a model that stands in."""
        return not self._state.setup.prices.known


def _touched(state: SessionState, after: Projection) -> str:
    """A held object of which a view would show less, or otherwise, than the present one; empty when there is none. O(what is held)."""
    view, index = state.view, state.index
    for hold in state.holds if not state.setup.faithful else ():
        for at in blocks_of(index, parse_handle(hold.object)):
            if view.shows(*at) and not (after.shows(*at) and view.instead(*at) == after.instead(*at)):
                is_reasoning = index.block(at).kind == "thinking"
                if not (is_reasoning and may_go(index, after.row(at[0]), at, state.setup.rules)):
                    return hold.object
    return ""
