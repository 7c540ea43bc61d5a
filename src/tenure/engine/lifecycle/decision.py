"""What is to happen before a call, and why, in numbers and in words."""

from collections.abc import Iterable
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.gate import first_look, pays_now, priced
from tenure.engine.lifecycle.held import RESIDUES, Holders, free_of, parts
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
    chance = "" if price.p >= 1 else f" with a chance of {price.p:.0%}"
    rewritten = f"{money(price.broken_usd)} to write {price.s:,} tokens again that are cached{chance}"
    paid = [rewritten if price.p > 0 else "nothing, as the cache is cold"]
    for usd, what in ((price.g, "the plan"), (price.misses * price.recall, "recalls to be expected")):
        if usd > 0:
            paid.append(f"{money(usd)} for {what}")
    gain = f"{'gains' if price.gain_usd >= 0 else 'loses'} {money(abs(price.gain_usd))}"
    by = f" ({figures.ASSUMED}: by the price of another model)" if assumed else ""
    return f"it {spared} and costs {' and '.join(paid)}: {gain}{by}"


TURNS_WAITING: Final = 1  # turns of a person that a plan made elsewhere outlives
MOST_MISSES: Final = 4
PATIENCE: Final = 128  # times that a policy is asked in vain before it is asked more rarely
RETRY_SHARE: Final = 0.02  # a batch that fell short fires again only after this share of its limit has become free or new


class _WaitingPlan(Struct, frozen=True, kw_only=True):
    """A plan that was made elsewhere and waits for its time."""

    policy: Planned
    reason: str
    price: Price
    tokens: int  # of the record when it was priced
    turns: int  # when it was made


class _Spent(Struct, frozen=True, kw_only=True, gc=False):
    """When a policy last had nothing more to offer: asking again before something changes would change nothing."""

    length: int  # of the record
    tokens: int  # of the record
    commits: int  # once what it had offered was committed
    rewrites: int  # of what had been shown, at the same time
    releases: int  # of holds
    price: Price | None = None  # of what it offered and was not worth it then
    deferred: int = 0  # o200k tokens that it offered to a limit that forces, and that were too few
    free: int = 0  # o200k tokens that nothing but its own rule kept then
    wait: float = 0.0  # entries after which it is asked again although the limit cannot be met


class _Occasion(Struct, frozen=True, kw_only=True, gc=False):
    """The call that is to be made, what goes out beside the view, and the limit that it passes: ceiling and window force, a target is a matter of price."""

    moment: Moment
    at: str
    extra: int  # o200k tokens
    total: int  # provider tokens of all that goes out
    limit: int = 0  # provider tokens; 0: none is passed
    name: str = ""
    forced: bool = False


class Decisions:
    """Decides for one session. Mutable: it knows its newest offer, the plan that waits, and what came of the last offers."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._waiting: _WaitingPlan | None = None
        self._spent: _Spent | None = None
        self._offer: tuple[Commit, Projection] | None = None  # the newest proposal, and the view it would make of the present one
        self._offer_missed = False  # the limit that called for it is passed all the same
        self._misses = 0  # forced commits in a row that missed their limit all the same
        self._vain = 0  # times that a policy had nothing to offer to a limit that forces
        self._holders = Holders()

    @property
    def waiting(self) -> Planned | None:
        """The plan that waits for its time."""
        return None if self._waiting is None else self._waiting.policy

    def view_after(self, commit: Commit) -> Projection | None:
        """The view that a commit makes of the present one, where it was proposed for that."""
        offer = self._offer
        return offer[1] if offer is not None and offer[0] is commit and commit.entries == self._session.length else None

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
        policy = self._session.setup.policy
        call = self._call(moment, extra, at)
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
        if self._spent is not None and self._is_spent(self._spent, call):
            price = self._spent.price
            return self._unmet(call, call.total) if call.forced else self._stay(self._why_waiting(price), price)
        return self._propose(policy, call)

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
            self._waiting = _WaitingPlan(policy=policy, reason=reason, price=price, tokens=index.tokens, turns=len(index.turns))
            return self._stay(self._why_waiting(price), price)
        return self._offered(rehearsal, view, price, name, moment, reason, forced=forced)

    def _call(self, moment: Moment, extra: int, at: str) -> _Occasion:
        session, budget = self._session, self._session.setup.budget
        call = _Occasion(moment=moment, at=at, extra=extra, total=session.provider(session.view.tokens + extra))
        for name, tokens in (("ceiling", budget.ceiling), ("window", budget.window), ("target", budget.target)):
            if tokens is not None and call.total > tokens:
                return replace(call, limit=tokens, name=name, forced=name != "target")
        return call

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
        plan = waiting.policy
        decision = session.plan(
            plan.name, plan.actions, reason=waiting.reason, moment=call.moment, at=call.at, planning_usd=price.g
        )
        if self._waiting is not None:
            self._waiting = replace(self._waiting, turns=waiting.turns)
        return decision if isinstance(decision, Propose) else None

    def _propose(self, policy: Policy, call: _Occasion) -> Decision:
        session, budget = self._session, self._session.setup.budget
        goal = call.limit if policy.conduct.amount == "limit" else budget.floor_of(call.limit)
        if budget.target is not None:
            goal = min(goal, budget.target)  # once the prefix breaks, the target is not to break it again
        bound = int(call.limit / session.ratio) - call.extra if call.forced else None
        rehearsal, view = session.fitted(policy, int(goal / session.ratio) - call.extra, bound)
        after = session.provider(rehearsal.tokens_after + call.extra)
        may_wait = after > call.limit or not call.forced  # one that forces and is met may be met again
        is_futile = rehearsal.exhausted and may_wait and self._is_little(session.provider(rehearsal.saved), after, call)
        if not rehearsal.edits or rehearsal.saved <= 0 or is_futile:
            self._vain += call.forced
            self._is_over(deferred=max(0, rehearsal.saved))
            return self._short(call, "nothing is free to leave")
        if touched := self._touched(view):  # the guard keeps policies from it; nothing is proposed that proves it wrong
            return self._short(call, f"{policy.name} would touch {touched}, which is held")
        if rehearsal.exhausted and may_wait:
            self._is_over(is_offered=True)
        first = self._waiting if call.forced else None  # it goes first, so it is paid for here
        price = priced(session, rehearsal, call.at, first.price.g if first else 0.0)
        if not call.forced and not pays_now(session, price, call.total, call.moment, call.at):
            self._is_over(price=price)  # priced again before every call
            return self._stay(self._why_waiting(price), price)
        why = f"{call.total - call.limit:,} tokens over the {call.name} of {call.limit:,}"
        if first is not None and first.price.g > 0:
            why += f", begun with what was {first.reason}"
        proposal = self._offered(rehearsal, view, price, policy.name, call.moment, why, forced=call.forced)
        if not call.forced or after <= call.limit:
            return proposal
        self._offer_missed = True
        return self._unmet(call, after, proposal)

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

    def _is_spent(self, spent: _Spent, call: _Occasion) -> bool:
        """Whether nothing has changed since the policy last had nothing more to offer; without force a little change is not enough.

        What it offered and was not worth it then is looked at again when by a first look it is worth it now.
        """
        session = self._session
        if spent.rewrites != session.rewrites or spent.releases != session.releases:
            return False
        if spent.commits != len(session.commits) and self._vain < PATIENCE:
            return False
        if spent.price is not None:
            price = first_look(session, spent.price, spent.tokens, call.at)
            if call.forced or pays_now(session, price, call.total, call.moment, call.at):
                return False
        if session.length == spent.length:
            return True
        if call.forced:
            return self._frees_little(spent, call)
        return session.provider(session.index.tokens - spent.tokens) < call.limit * RETRY_SHARE

    def _frees_little(self, spent: _Spent, call: _Occasion) -> bool:
        """Whether what became free since could neither meet a limit that forces nor be worth breaking the cache. O(what is new and the tail).

        A policy may have a rule of its own for what is old enough, so it is asked again after some entries in any case; after ever more of them
        where it was often asked in vain, and the limit could not be met by all that is free together.
        """
        session, held = self._session, self._held()
        free = free_of(held)
        most = session.provider(free + held[RESIDUES])
        is_hopeless = self._vain >= PATIENCE and call.total - most > call.limit
        if is_hopeless and self._is_little(most, call.total - most, call):
            return True
        if session.length - spent.length >= (spent.wait if is_hopeless else session.view.height * RETRY_SHARE):
            return False
        freed = session.provider(spent.deferred + max(0, free - spent.free))
        return call.total - freed > call.limit and self._is_little(freed, call.total - freed * is_hopeless, call)

    def _is_little(self, saved: int, after: int, call: _Occasion) -> bool:
        """Whether it is next to nothing beside the limit, and beside a view that cannot meet it."""
        return saved < max(call.limit, after) * RETRY_SHARE * 2**self._misses

    def _is_over(self, *, is_offered: bool = False, price: Price | None = None, deferred: int = 0) -> None:
        session, before = self._session, self._spent
        again = before is not None and before.rewrites == session.rewrites  # in vain since the same commit
        self._spent = _Spent(
            length=session.length,
            tokens=session.index.tokens,
            commits=len(session.commits) + is_offered,
            rewrites=session.rewrites + is_offered,
            releases=session.releases,
            price=price,
            deferred=deferred,
            free=0 if is_offered else free_of(self._held()),
            wait=max(session.view.height * RETRY_SHARE, 2 * before.wait if before is not None and again else 0),
        )

    def _short(self, call: _Occasion, reason: str) -> Decision:
        """Nothing can be done: said of a limit that can wait, and surfaced of one that forces."""
        return self._unmet(call, call.total) if call.forced else Stay(reason=reason)

    def _stay(self, reason: str, price: Price | None) -> Stay:
        return Stay(reason=reason, price=price, assumed=self._assumed)

    def _why_waiting(self, price: Price | None) -> str:
        if price is None:
            return "nothing new is free to leave"
        if price.gain_usd <= 0:
            return f"would cost {figures.money(-price.gain_usd, assumed=self._assumed, digits=DIGITS)} more than it saves"
        return "a plan waits for its time"

    def _unmet(self, call: _Occasion, tokens: int, proposal: Propose | None = None) -> Unmet:
        session, spent = self._session, self._spent
        held, deferred = self._held(proposal), 0
        if proposal is None and spent is not None:
            news = max(0, free_of(held) - spent.free) if self._vain >= PATIENCE else 0  # that was not worth asking for
            deferred = spent.deferred + news
        weights = parts(held, head=call.extra, has_policy=session.setup.policy is not None, deferred=deferred)
        sums = [session.provider(stop) for stop in accumulate(weights.values(), initial=0)]  # rounded so, the parts add up
        shares = {name: stop - start for name, start, stop in zip(weights, sums, sums[1:], strict=False)}
        return Unmet(tokens=tokens, limit=call.limit, held_by=shares, proposal=proposal)

    def _held(self, proposal: Propose | None = None) -> dict[str, int]:
        """O200k tokens of the view by what holds them; of the view that a proposal would make, from scratch."""
        session, view, holders = self._session, self._session.view, self._holders
        if proposal is not None:
            view, holders = view.copy(), Holders()
            view.apply(proposal.commit.edits)
        guard = session.guard()

        def about(rows: Iterable[Row]) -> Situation:
            return survey(session.index, view, session.setup.rules, guard, session.count, rows=rows)

        return holders.held_by(view, guard, session.rewrites, about)

    @property
    def _assumed(self) -> bool:
        """Whether the prices are of a model that stands in."""
        return not self._session.setup.prices.known
