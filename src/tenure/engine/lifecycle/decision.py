"""What is to happen before a call, and why, in numbers and in words."""

from collections.abc import Iterable
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.held import Holders, free_of, parts
from tenure.engine.lifecycle.pricing import Waiting, first_look, pays_now, priced
from tenure.engine.meter import figures
from tenure.engine.policies.policy import Planned, Policy, chain
from tenure.engine.policies.situation import Situation, survey
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.view.action import Action
from tenure.engine.view.edit import Commit, Moment, Price
from tenure.engine.view.laws import may_go
from tenure.engine.view.project import Projection, Row

if TYPE_CHECKING:
    from tenure.engine.lifecycle.session import Session

DIGITS: Final = 4  # of sums below a dollar: single commits are small


class Stay(Struct, frozen=True, kw_only=True):
    """Nothing is to happen, and why; with a `price` there is a plan that waits."""

    reason: str
    price: Price | None = None
    assumed: bool = False  # the price is of a model that stands in

    def __str__(self) -> str:
        """One line."""
        if self.price is None:
            return f"nothing leaves: {self.reason}"
        why = "" if self.price.gain_usd <= 0 else f"{self.reason}; "  # else the account says it
        return f"nothing leaves yet: {why}{account(self.price, assumed=self.assumed)}"


class Propose(Struct, frozen=True, kw_only=True):
    """A commit that should be made durable and then taken in with `commit`."""

    commit: Commit
    rehearsal: Rehearsal
    assumed: bool = False  # the price is of a model that stands in

    def __str__(self) -> str:
        """One line."""
        commit = self.commit
        tokens = commit.tokens_before - commit.tokens_after
        what = f"{commit.policy} takes {tokens:,} tokens: {commit.reason}"
        return what if commit.price is None else f"{what}; {account(commit.price, assumed=self.assumed)}"


class Unmet(Struct, frozen=True, kw_only=True):
    """A limit that is not met: what the view weighs, and what holds every token of it (`lifecycle.held`), in provider tokens."""

    tokens: int
    limit: int
    held_by: dict[str, int]
    proposal: Propose | None = None  # what can be done all the same

    @property
    def shortfall(self) -> int:
        """Tokens above the limit."""
        return self.tokens - self.limit

    def __str__(self) -> str:
        """One line."""
        holders = sorted(((tokens, name) for name, tokens in self.held_by.items() if tokens > 0), reverse=True)
        held = ", ".join(f"{name.replace('_', ' ')} {tokens:,}" for tokens, name in holders)
        done = f" although {self.proposal}" if self.proposal is not None else ""
        return f"{self.tokens:,} tokens, {self.shortfall:,} above the limit of {self.limit:,}{done}; held by {held}"


Decision = Stay | Propose | Unmet


def account(price: Price, *, assumed: bool) -> str:
    """How a gain comes about: what is spared, what is paid for it, and what is left of it. `assumed`: by the prices of another model."""
    money = partial(figures.money, assumed=assumed, digits=DIGITS)
    calls = f"{price.n:,.0f} more calls"
    spared = f"spares {money(price.spared_usd)} over {calls}"
    paid = [
        f"{money(price.broken_usd)} to write {price.s:,} tokens again that {_held(price.p)}"
        if price.p > 0
        else "nothing, as the cache is cold",
        *([f"{money(price.g)} for the plan"] if price.g > 0 else ()),
        *([f"{money(price.misses * price.recall)} for recalls to be expected"] if price.misses * price.recall > 0 else ()),
    ]
    gain = f"{'gains' if price.gain_usd >= 0 else 'loses'} {money(abs(price.gain_usd))}"
    by = f" ({figures.ASSUMED}: by the price of another model)" if assumed else ""
    return f"it {spared} and costs {' and '.join(paid)}: {gain}{by}"


def _held(chance: float) -> str:
    return "are cached" if chance >= 1 else f"are cached with a chance of {chance:.0%}"


TURNS_WAITING: Final = 1  # turns of a person that a plan made elsewhere outlives
MOST_MISSES: Final = 4
RETRY_SHARE: Final = 0.02  # a batch that fell short fires again only after this share of its limit has become free or new


class _Spent(Struct, frozen=True, kw_only=True, gc=False):
    """When a policy last had nothing more to offer: asking again before something changes would change nothing."""

    length: int  # of the record
    tokens: int  # of the record
    commits: int  # once what it had offered was committed
    releases: int  # of holds
    price: Price | None = None  # of what it offered and was not worth it then
    deferred: int = 0  # o200k tokens that it offered to a limit that forces, and that were too few
    free: int = 0  # o200k tokens that nothing but its own rule kept then


class _Limit(Struct, frozen=True, kw_only=True, gc=False):
    """The limit that is passed: ceiling and window force, a target is a matter of price."""

    name: str
    tokens: int
    forced: bool


class _Occasion(Struct, frozen=True, kw_only=True, gc=False):
    """The call that is to be made: when, and what goes out beside the view."""

    moment: Moment
    at: str
    extra: int  # o200k tokens
    total: int  # provider tokens of all that goes out


class Decisions:
    """Decides for one session. Mutable: it knows its newest offer, the plan that waits, and what came of the last offers."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._waiting: Waiting | None = None
        self._spent: _Spent | None = None
        self._offer: tuple[Commit, Projection] | None = None  # the newest proposal, and the view it would make of the present one
        self._offer_missed = False  # the limit that called for it is passed all the same
        self._misses = 0  # forced commits in a row that missed their limit all the same
        self._holders = Holders()

    @property
    def waiting(self) -> Planned | None:
        """The plan that waits for its time."""
        return None if self._waiting is None else self._waiting.policy

    def view_after(self, commit: Commit) -> Projection | None:
        """The view that a commit makes of the present one, where it was proposed for that."""
        known = self._offer is not None and self._offer[0] is commit and commit.entries == self._session.length
        return self._offer[1] if known and self._offer is not None else None

    def committed(self, commit: Commit, *, proposed: bool) -> None:
        """Note that the session took a commit in; `proposed` for the view of the newest offer."""
        if proposed:  # ever more must come before the prefix is broken in vain again
            self._misses = min(self._misses + 1, MOST_MISSES) if self._offer_missed else 0
        if self._waiting is not None and self._waiting.policy.name in commit.policy.split("+"):
            self._waiting = None
        self._offer = None
        if self._spent is not None and self._spent.commits == len(self._session.commits):
            self._spent = replace(self._spent, free=free_of(self._held()))

    def held(self, entries: set[int]) -> None:
        """Note that of these entries more is held than was."""
        self._holders.look_again(entries)
        if self._spent is not None:  # what it kept free is less by this
            rows = [row for row in map(self._session.view.row, entries) if row is not None]
            self._spent = replace(self._spent, free=max(0, self._spent.free - sum(row.tokens for row in rows)))

    def decide(self, moment: Moment, *, extra: int, at: str) -> Decision:
        """What is to happen now. O(1) within budget."""
        session = self._session
        total = session.provider(session.view.tokens + extra)
        limit = self._limit_passed(total)
        within = f"{total:,} tokens are within the limit"
        if limit is None and self._waiting is None:
            return Stay(reason=within)
        call = _Occasion(moment=moment, at=at, extra=extra, total=total)
        forced = limit is not None and limit.forced
        if not forced and (due := self._due(call)) is not None:
            return due
        if limit is None:
            return self._stay(within, self._waiting.price if self._waiting else None)
        policy = session.setup.policy
        if forced and self._waiting is not None:  # a plan that waits goes first
            policy = self._waiting.policy if policy is None else chain(self._waiting.policy, policy)
        if policy is None:
            return self._short(call, limit, f"{total:,} tokens are above the target, and there is no policy")
        if self._is_spent(limit, call):
            price = self._spent.price if self._spent is not None else None
            return self._unmet(total, limit, extra) if forced else self._stay(self._why_waiting(price), price)
        return self._propose(policy, call, limit)

    def plan(
        self, name: str, actions: Iterable[Action], *, reason: str, moment: Moment, forced: bool, at: str, planning_usd: float
    ) -> Decision:
        """What becomes of actions that were planned elsewhere: proposed when they pay, or when `forced`; nothing changes yet."""
        session = self._session
        policy = Planned(name=name, actions=tuple(actions))
        rehearsal, view = session.fitted(policy, 0, None)
        if not rehearsal.edits or rehearsal.saved <= 0:
            return Stay(reason="nothing of the plan may leave now")
        if touched := self._touched(view):
            return Stay(reason=f"the plan would touch {touched}, which is held")
        price = priced(session, rehearsal, at, planning_usd)
        if not forced and not pays_now(session, price, session.provider(session.view.tokens), moment, at):
            index = session.index
            self._waiting = Waiting(policy=policy, reason=reason, price=price, tokens=index.tokens, turns=len(index.turns))
            return self._stay(self._why_waiting(price), price)
        return self._offered(rehearsal, view, price, name, moment, reason, forced=forced)

    def _due(self, call: _Occasion) -> Decision | None:
        """A plan that waited and whose time has come; a first look at its price is O(1)."""
        waiting, session = self._waiting, self._session
        if waiting is None:
            return None
        if len(session.index.turns) - waiting.turns > TURNS_WAITING:
            self._waiting = None
            return None
        price = first_look(session, waiting.price, waiting.tokens, call.at)
        self._waiting = replace(waiting, price=price, tokens=session.index.tokens)
        if not pays_now(session, price, call.total, call.moment, call.at):
            return None
        self._waiting = None  # carried out now, or priced anew
        policy = waiting.policy
        decision = session.plan(
            policy.name, policy.actions, reason=waiting.reason, moment=call.moment, at=call.at, planning_usd=price.g
        )
        if self._waiting is not None:
            self._waiting = replace(self._waiting, turns=waiting.turns)
        return decision if isinstance(decision, Propose) else None

    def _propose(self, policy: Policy, call: _Occasion, limit: _Limit) -> Decision:
        session, budget, forced = self._session, self._session.setup.budget, limit.forced
        goal = limit.tokens if policy.conduct.amount == "limit" else budget.floor_of(limit.tokens)
        if budget.target is not None:
            goal = min(goal, budget.target)  # once the prefix breaks, the target is not to break it again
        bound = int(limit.tokens / session.ratio) - call.extra if forced else None
        rehearsal, view = session.fitted(policy, int(goal / session.ratio) - call.extra, bound)
        after = session.provider(rehearsal.tokens_after + call.extra)
        if not rehearsal.edits or rehearsal.saved <= 0 or self._is_futile(rehearsal, after, limit):
            self._is_over(commits=len(session.commits), deferred=max(0, rehearsal.saved))
            return self._short(call, limit, "nothing is free to leave")
        if touched := self._touched(view):  # the guard keeps policies from it; nothing is proposed that proves it wrong
            return self._short(call, limit, f"{policy.name} would touch {touched}, which is held")
        if rehearsal.exhausted and (after > limit.tokens or not forced):  # one that forces and is met may be met again
            self._is_over(commits=len(session.commits) + 1)
        first = self._waiting if forced else None  # it goes first, so it is paid for here
        price = priced(session, rehearsal, call.at, first.price.g if first else 0.0)
        if not forced and not pays_now(session, price, call.total, call.moment, call.at):
            self._is_over(commits=len(session.commits), price=price)  # priced again before every call
            return self._stay(self._why_waiting(price), price)
        why = f"{call.total - limit.tokens:,} tokens over the {limit.name} of {limit.tokens:,}"
        if first is not None and first.price.g > 0:
            why += f", begun with what was {first.reason}"
        proposal = self._offered(rehearsal, view, price, policy.name, call.moment, why, forced=forced)
        if not forced or after <= limit.tokens:
            return proposal
        self._offer_missed = True
        return self._unmet(after, limit, call.extra, proposal)

    def _offered(
        self, rehearsal: Rehearsal, view: Projection, price: Price, name: str, moment: Moment, reason: str, *, forced: bool
    ) -> Propose:
        session = self._session
        commit = Commit(
            n=len(session.commits),
            entries=session.length,
            policy=name,
            moment=moment,
            reason=reason,
            forced=forced,
            tokens_before=rehearsal.tokens_before,
            tokens_after=rehearsal.tokens_after,
            ratio=session.ratio,
            actions=rehearsal.actions,
            edits=rehearsal.edits,
            price=price,
        )
        self._offer, self._offer_missed = (commit, view), False
        return Propose(commit=commit, rehearsal=rehearsal, assumed=self._assumed)

    def _touched(self, after: Projection) -> str:
        """A held object of which a view would show less, or otherwise, than this one does; empty when there is none. O(what is held)."""
        session, view, index = self._session, self._session.view, self._session.index
        for hold in session.holds if not session.setup.faithful else ():
            for at in blocks_of(index, parse_handle(hold.object)):
                if view.shows(*at) and not (after.shows(*at) and view.instead(*at) == after.instead(*at)):
                    is_reasoning = index.block(at).kind == "thinking"
                    if not (is_reasoning and may_go(index, after.row(at[0]), at, session.setup.rules)):
                        return hold.object
        return ""

    def _is_futile(self, rehearsal: Rehearsal, after: int, limit: _Limit) -> bool:
        """Whether a plan would break the cache for next to nothing: it misses its limit all the same, or a limit that can wait."""
        little = self._is_little(self._session.provider(rehearsal.saved), after, limit)
        return little and rehearsal.exhausted and (after > limit.tokens or not limit.forced)

    def _is_spent(self, limit: _Limit, call: _Occasion) -> bool:
        """Whether nothing has changed since the policy last had nothing more to offer; without force a little change is not enough.

        What it offered and was not worth it then is looked at again when by a first look it is worth it now.
        """
        spent, session = self._spent, self._session
        if spent is None or spent.commits != len(session.commits) or spent.releases != session.releases:
            return False
        if spent.price is not None:
            if limit.forced:
                return False
            if pays_now(session, first_look(session, spent.price, spent.tokens, call.at), call.total, call.moment, call.at):
                return False
        if session.length == spent.length:
            return True
        if limit.forced:
            return self._frees_little(spent, call.total, limit)
        return session.provider(session.index.tokens - spent.tokens) < limit.tokens * RETRY_SHARE

    def _frees_little(self, spent: _Spent, total: int, limit: _Limit) -> bool:
        """Whether what became free since could neither meet a limit that forces nor be worth breaking the cache. O(what is new and the tail).

        A policy may have a rule of its own for what is old enough, so it is asked again after some entries in any case.
        """
        session = self._session
        if session.length - spent.length >= session.view.height * RETRY_SHARE:
            return False
        freed = session.provider(spent.deferred + max(0, free_of(self._held()) - spent.free))
        return total - freed > limit.tokens and self._is_little(freed, total, limit)

    def _is_little(self, saved: int, after: int, limit: _Limit) -> bool:
        """Whether it is next to nothing beside the limit, and beside a view that cannot meet it."""
        return saved < max(limit.tokens, after) * RETRY_SHARE * 2**self._misses

    def _is_over(self, *, commits: int, price: Price | None = None, deferred: int = 0) -> None:
        session = self._session
        self._spent = _Spent(
            length=session.length,
            tokens=session.index.tokens,
            commits=commits,
            releases=session.releases,
            price=price,
            deferred=deferred,
            free=free_of(self._held()) if commits == len(session.commits) else 0,
        )

    def _limit_passed(self, total: int) -> _Limit | None:
        """The limit that `total` is above."""
        budget = self._session.setup.budget
        for name, tokens in (("ceiling", budget.ceiling), ("window", budget.window), ("target", budget.target)):
            if tokens is not None and total > tokens:
                return _Limit(name=name, tokens=tokens, forced=name != "target")
        return None

    def _short(self, call: _Occasion, limit: _Limit, reason: str) -> Decision:
        """Nothing can be done: said of a limit that can wait, and surfaced of one that forces."""
        return self._unmet(call.total, limit, call.extra) if limit.forced else Stay(reason=reason)

    def _stay(self, reason: str, price: Price | None) -> Stay:
        return Stay(reason=reason, price=price, assumed=self._assumed)

    def _why_waiting(self, price: Price | None) -> str:
        if price is None:
            return "nothing new is free to leave"
        if price.gain_usd <= 0:
            return f"would cost {figures.money(-price.gain_usd, assumed=self._assumed, digits=DIGITS)} more than it saves"
        return "a plan waits for its time"

    def _unmet(self, tokens: int, limit: _Limit, extra: int, proposal: Propose | None = None) -> Unmet:
        session = self._session
        deferred = self._spent.deferred if proposal is None and self._spent is not None else 0
        weights = parts(self._held(proposal), head=extra, has_policy=session.setup.policy is not None, deferred=deferred)
        sums = [session.provider(stop) for stop in accumulate(weights.values(), initial=0)]  # rounded so, the parts add up
        held = {name: stop - start for name, start, stop in zip(weights, sums, sums[1:], strict=False)}
        return Unmet(tokens=tokens, limit=limit.tokens, held_by=held, proposal=proposal)

    def _held(self, proposal: Propose | None = None) -> dict[str, int]:
        """O200k tokens of the view by what holds them; of the view that a proposal would make, from scratch."""
        session, view, holders = self._session, self._session.view, self._holders
        if proposal is not None:
            view, holders = view.copy(), Holders()
            view.apply(proposal.commit.edits)
        guard = session.guard()

        def about(rows: Iterable[Row]) -> Situation:
            return survey(session.index, view, session.setup.rules, guard, session.count, rows=rows)

        return holders.held_by(view, guard, len(session.commits), about)

    @property
    def _assumed(self) -> bool:
        """Whether the prices are of a model that stands in."""
        return not self._session.setup.prices.known
