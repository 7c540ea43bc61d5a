"""The life of one conversation's window, as a state machine without I/O.

`append` takes messages in, `observe` learns from reported usage, `decide` says what is to happen before a call. What it decides takes effect
through `commit`, which the edge makes durable first. Nothing here reads a clock, a file or a socket.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import Final, Protocol, overload

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.admission import clips
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.calls import Calls
from tenure.engine.lifecycle.decision import DIGITS, Decision, Propose, Stay, Unmet
from tenure.engine.lifecycle.fit import Rehearsal, Residues, fit
from tenure.engine.lifecycle.gate import RECALL_OUTPUT, Outlook, Round, Rule, expected_calls, miss_rate, pays, price, repriced
from tenure.engine.lifecycle.held import Holders, free_of, parts
from tenure.engine.meter.figures import money
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.policies.chain import chain
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.planned import Planned
from tenure.engine.policies.policy import Conduct, Policy
from tenure.engine.policies.situation import Count, Read, Situation, no_texts, survey
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Block, Draft, Entry, Usage
from tenure.engine.record.index import Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.record.tools import Kinds
from tenure.engine.view.action import Action
from tenure.engine.view.edit import Act, Commit, Drop, Edit, Moment, Price
from tenure.engine.view.guard import (
    Guard,
    Hold,
    HoldKind,
    Holds,
    active_of,
    entries_under,
    faithful_guard,
    fresh_recalls,
    loop_start,
    opening_of,
    tail_of,
)
from tenure.engine.view.laws import may_go
from tenure.engine.view.pointers import needless
from tenure.engine.view.project import Projection, Row, View, changed_from
from tenure.engine.view.rules import Rules
from tenure.engine.view.undo import lawful, restored, undo

Weigh = Callable[[tuple[Block, ...]], tuple[int, ...]]
_TURNS_WAITING: Final = 1  # turns of a person that a plan made elsewhere outlives
_MOST_MISSES: Final = 4
RETRY_SHARE: Final = 0.02  # a batch that fell short fires again only after this share of its limit has become free or new


class Setup(Struct, frozen=True, kw_only=True):
    """What a session is held to; the same for all its life."""

    budget: Budget
    rules: Rules
    prices: Prices = DEFAULT
    policy: Policy | None = Cwl()  # None: nothing is ever evicted
    gate: Rule = Rule.PRICED
    calls_seen: tuple[int, ...] = ()  # by finished sessions, ascending: how long this one may last
    clip: Clip | None = None  # how large results are shown from their birth; None: whole
    tenant: str = ""
    faithful: bool = False  # a published rule is followed as it is: no human text, prologue, tail or hold is protected from it


class Placed(Struct, frozen=True, kw_only=True):
    """Messages in their places, and the commits that belong to them, not yet taken in."""

    entries: tuple[Entry, ...]
    commits: tuple[Commit, ...]


class _Spent(Struct, frozen=True, kw_only=True, gc=False):
    """When a policy last had nothing more to offer: asking again before something changes would change nothing."""

    length: int  # of the record
    tokens: int  # of the record
    commits: int  # once what it had offered was committed
    releases: int  # of holds
    price: Price | None = None  # of what it offered and was not worth it then
    deferred: int = 0  # o200k tokens that it offered to a limit that forces, and that were too few
    free: int = 0  # o200k tokens that nothing but its own rule kept then


class _Waiting(Struct, frozen=True, kw_only=True):
    """A plan that was made elsewhere and waits for its time."""

    policy: Planned
    reason: str
    price: Price
    tokens: int  # of the record when it was priced
    turns: int  # when it was made


class _Offer(Struct, frozen=True, kw_only=True):
    """The newest proposal, and the view it would make of the present one."""

    commit: Commit
    view: Projection
    missed: bool = False  # the limit that called for it is passed all the same


class CommitLog(Protocol):
    """The commits of a conversation in order, wherever the host keeps them: a list, or a store that is asked when they are wanted."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Commit]: ...

    @overload
    def __getitem__(self, place: int, /) -> Commit: ...

    @overload
    def __getitem__(self, place: slice, /) -> Sequence[Commit]: ...

    def append(self, commit: Commit, /) -> None:
        """Take in one that has been made durable."""
        ...


class Session:
    """One conversation: record facts, view and commits. Mutable; every change is an append or a commit."""

    def __init__(
        self,
        setup: Setup,
        *,
        weigh: Weigh,
        count: Count,
        kinds: Kinds | None = None,
        log: CommitLog | None = None,
        read: Read = no_texts,
    ) -> None:
        self.setup = setup
        self.index = Index(kinds)
        self.view = Projection(self.index)
        self.commits: CommitLog = [] if log is None else log
        self._holds = Holds()
        self.ratio = 1.0
        self.calls = Calls()
        self._chain = Chain(setup.tenant)
        self._weigh = weigh
        self._count = count
        self._read = read
        self.rewrites = 0  # commits that changed what had been shown; clips at birth do not
        self._removed = 0  # objects that policies and plans took
        self._spent: _Spent | None = None
        self._misses = 0  # forced commits in a row that missed their limit all the same
        self._waiting: _Waiting | None = None
        self._offer: _Offer | None = None
        self._holders = Holders()

    @property
    def length(self) -> int:
        """Entries in the record."""
        return len(self.index)

    @property
    def holds(self) -> tuple[Hold, ...]:
        """What the host holds, in the order in which it was held."""
        return tuple(self._holds)

    @holds.setter
    def holds(self, holds: Iterable[Hold]) -> None:
        self._holds.put(self.index, holds)

    @property
    def waiting(self) -> Planned | None:
        """The plan that waits for its time."""
        return None if self._waiting is None else self._waiting.policy

    def propose(self, drafts: Iterable[Draft]) -> "Placed":
        """Place messages without taking them in, so that an edge can store them first. Its commits belong into the same transaction."""
        chain = self._chain.ahead()
        entries = tuple(chain.place(draft, self._weigh(draft.blocks)) for draft in drafts)
        return Placed(entries=entries, commits=tuple(self._admission(entries)))

    def accept(self, placed: "Placed") -> None:
        """Take in what was placed."""
        for entry in placed.entries:
            self._chain.take(entry)
            self._take_in(entry)
        for commit in placed.commits:
            self.commit(commit)

    def append(self, draft: Draft) -> "Placed":
        """Place a message and take it in."""
        placed = self.propose((draft,))
        self.accept(placed)
        return placed

    def follow(self, entry: Entry) -> None:
        """Take in an entry that was placed before, as when a session is opened again. Raises ValueError if it does not follow."""
        if wrong := self._chain.follow(entry):
            raise ValueError(wrong)
        self._take_in(entry)

    def commit(self, commit: Commit) -> None:
        """Take a commit in; it must be the next one."""
        if commit.n != len(self.commits):
            raise ValueError(f"commit {commit.n} cannot follow {len(self.commits)} commits")
        self._break(commit.edits)
        if self._offer is not None and self._offer.commit is commit:
            self.view = self._offer.view
            # Ever more must come before the prefix is broken in vain again.
            self._misses = min(self._misses + 1, _MOST_MISSES) if self._offer.missed else 0
        else:
            self.view.apply(commit.edits)
        self.rewrites += commit.moment != "admission"
        if commit.price is not None:  # of a policy or a plan
            self._removed += len(commit.actions)
        if self._waiting is not None and self._waiting.policy.name in commit.policy.split("+"):
            self._waiting = None
        self._offer = None
        self.commits.append(commit)
        if self._spent is not None and self._spent.commits == len(self.commits):
            self._spent = replace(self._spent, free=free_of(self._held()))

    def undone(self, number: int) -> Commit:
        """The commit that puts back what commit `number` changed, not yet taken in. Raises InputError for a commit that does not exist."""
        rules, start = self.setup.rules, loop_start(self.index)
        edits = lawful(undo(tuple(self.commits), number, self.length, self.index), self.view, self.index, rules, start)
        return self._by_hand("undo", f"undo of commit {number}", edits)

    def restored(self, object_: str) -> Commit | None:
        """The commit that shows an object whole again where it stood, not yet taken in; None when it is shown whole.

        On the user's word: the view may become larger, and the next limit that is passed may take it again unless it is held. Raises InputError
        when the record has no such object.
        """
        places = blocks_of(self.index, parse_handle(object_))
        wanted = restored(places, self.view)
        if not wanted:
            return None
        shown = self.view.copy()
        shown.apply(wanted)
        wanted = (*wanted, *needless(self.index, shown))
        edits = lawful(wanted, self.view, self.index, self.setup.rules, loop_start(self.index))
        return self._by_hand("restore", f"restore of {object_}", edits, (Act(kind="restore", object=object_),))

    def _by_hand(self, name: str, reason: str, edits: tuple[Edit, ...], actions: tuple[Act, ...] = ()) -> Commit:
        after = self.view.copy()
        after.apply(edits)
        return Commit(
            n=len(self.commits),
            entries=self.length,
            policy=name,
            moment="manual",
            reason=reason,
            tokens_before=self.view.tokens,
            tokens_after=after.tokens,
            ratio=self.ratio,
            actions=actions,
            edits=edits,
        )

    def hold(self, hold: Hold) -> None:
        """Keep an object from being touched. Raises InputError when the record has no such object."""
        entries = {entry for key in self._holds.add(self.index, hold) for entry in entries_under(self.index, key)}
        self._holders.look_again(entries)
        if self._spent is not None:  # what it kept free is less by this
            rows = [row for row in map(self.view.row, entries) if row is not None]
            self._spent = replace(self._spent, free=max(0, self._spent.free - sum(row.tokens for row in rows)))

    def release(self, object_: str, kind: HoldKind = "pin") -> None:
        """Let go of what is held."""
        self.holds = tuple(hold for hold in self._holds if (hold.object, hold.kind) != (object_, kind))

    def send(self, *, head: str = "", head_tokens: int = 0, at: str = "") -> None:
        """Learn that the view goes out now, behind a head (anything that tells heads apart)."""
        self.calls = self.calls.sent(view=self.view.tokens, head=head, head_tokens=head_tokens, at=at)

    def observe(self, *, at: str = "", ratio: float | None = None, usage: Usage | None = None) -> None:
        """Learn that a call was answered: when, the provider's tokens per o200k token where they are known, and what it reported.

        When it did not read what it should have, `calls.warmth.collapse` says so.
        """
        if ratio is not None:
            self.ratio = ratio
        self.calls = self.calls.answered(at=at, usage=usage, ratio=self.ratio, prices=self.setup.prices)

    def guard(self, *, governed: bool = False) -> Guard:
        """What no policy may touch now; with `governed` what none might if the session were not faithful."""
        if self.setup.faithful and not governed:
            return faithful_guard(self.index, self.view)
        conduct = self.setup.policy.conduct if self.setup.policy else Conduct()
        exchanges, before_marks = conduct.tail_exchanges, conduct.before_marks
        limit = int(self.setup.budget.limit / self.ratio)
        tail, opening = tail_of(self.index, self.view, limit, exchanges), opening_of(self.index, self.view)
        if not exchanges:  # the paper knows no recall, and an open episode stays whole
            return Guard(self.index, tail=tail, opening=opening, holds=self._holds, before_marks=before_marks)
        return Guard(
            self.index,
            tail=tail,
            opening=opening,
            holds=self._holds,
            recalled=fresh_recalls(self.index, self.view, limit),
            before_marks=before_marks,
            active_from=active_of(self.index, self.view, limit),
        )

    def situation(self, *, goal: int = 0) -> Situation:
        """What a policy is shown now that is to bring the view to `goal` o200k tokens. One pass over the view."""
        limit = int(self.setup.budget.limit / self.ratio)
        return survey(self.index, self.view, self.setup.rules, self.guard(), self._count, read=self._read, limit=limit, goal=goal)

    def decide(self, moment: Moment = "before-call", *, extra: int = 0, at: str = "") -> Decision:
        """What is to happen now. `extra` is what goes out beside the view (head, notes) in o200k tokens. O(1) within budget."""
        total = self._provider(self.view.tokens + extra)
        limit, forced = self._limit_passed(total)
        if limit is None and self._waiting is None:
            return Stay(reason=f"{total:,} tokens are within the limit")
        now = self._round(total, moment, at)
        if not forced and (due := self._due(moment, now, at)) is not None:
            return due
        if limit is None:
            return Stay(
                reason=f"{total:,} tokens are within the limit",
                price=self._waiting.price if self._waiting else None,
                assumed=self._assumed,
            )
        if (policy := self._acting(forced=forced)) is None:
            free = Stay(reason=f"{total:,} tokens are above the target, and there is no policy")
            return self._unmet(total, limit, extra, None) if forced else free
        if self._is_spent(limit, now, at, forced=forced):
            held = self._spent.price if self._spent is not None else None
            return (
                self._unmet(total, limit, extra, None)
                if forced
                else Stay(reason=_stays(held, assumed=self._assumed), price=held, assumed=self._assumed)
            )
        return self._plan(policy, moment, now, limit, extra, at, forced=forced)

    def rehearse(self, policy: Policy, target: int, *, limit: int | None = None) -> Rehearsal:
        """What a policy would do to bring the view to `target` o200k tokens, reluctantly down to `limit`; nothing changes."""
        return self._fitted(policy, target, limit)[0]

    def plan(
        self,
        name: str,
        actions: Iterable[Action],
        *,
        reason: str,
        moment: Moment = "manual",
        forced: bool = False,
        at: str = "",
        planning_usd: float = 0.0,
    ) -> Decision:
        """What becomes of actions that were planned elsewhere: proposed when they pay, or when `forced`; nothing changes yet.

        A plan whose time has not come waits: `decide` prices it again at every boundary, and a limit that forces begins with it. The next plan
        takes its place, and at the second turn of a person after it was made it is forgotten.
        """
        policy = Planned(name=name, actions=tuple(actions))
        rehearsal, view = self._fitted(policy, 0, None)
        if not rehearsal.edits or rehearsal.saved <= 0:
            return Stay(reason="nothing of the plan may leave now")
        if touched := self._touched(view):
            return Stay(reason=f"the plan would touch {touched}, which is held")
        priced = self._priced(rehearsal, at, planning_usd)
        if not forced and not pays(self.setup.gate, priced, self._round(self._provider(self.view.tokens), moment, at)):
            self._waiting = _Waiting(
                policy=policy, reason=reason, price=priced, tokens=self.index.tokens, turns=len(self.index.turns)
            )
            return Stay(reason=_stays(priced, assumed=self._assumed), price=priced, assumed=self._assumed)
        return self._offered(rehearsal, view, priced, name, moment, reason, forced=forced)

    def freeze(self) -> View:
        """The view now."""
        return self.view.freeze()

    def _fitted(self, policy: Policy, target: int, limit: int | None) -> tuple[Rehearsal, Projection]:
        conduct = policy.conduct
        residues = Residues.of(self.setup.budget.limit, lines=conduct.lines, descriptions=conduct.descriptions)
        return fit(self.situation(goal=target), policy, target, residues, f"r{len(self.commits)}.", limit=limit)

    def _acting(self, *, forced: bool) -> Policy | None:
        """What decides what leaves: under force a plan that waits goes first."""
        policy = self.setup.policy
        if not forced or self._waiting is None:
            return policy
        return self._waiting.policy if policy is None else chain(self._waiting.policy, policy)

    def _due(self, moment: Moment, now: Round, at: str) -> Decision | None:
        """A plan that waited and whose time has come; a first look at its price is O(1)."""
        waiting = self._waiting
        if waiting is None:
            return None
        if len(self.index.turns) - waiting.turns > _TURNS_WAITING:
            self._waiting = None
            return None
        first = self._look(waiting.price, waiting.tokens, at)
        self._waiting = replace(waiting, price=first, tokens=self.index.tokens)
        if not pays(self.setup.gate, first, now):
            return None
        self._waiting = None  # carried out now, or priced anew
        decision = self.plan(
            waiting.policy.name, waiting.policy.actions, reason=waiting.reason, moment=moment, at=at, planning_usd=waiting.price.g
        )
        if self._waiting is not None:
            self._waiting = replace(self._waiting, turns=waiting.turns)
        return decision if isinstance(decision, Propose) else None

    def _plan(self, policy: Policy, moment: Moment, now: Round, limit: int, extra: int, at: str, *, forced: bool) -> Decision:
        budget, total = self.setup.budget, now.tokens
        goal = budget.floor_of(limit) if policy.conduct.batch else limit
        if budget.target is not None:
            goal = min(goal, budget.target)  # once the prefix breaks, the target is not to break it again
        bound = int(limit / self.ratio) - extra if forced else None
        rehearsal, view = self._fitted(policy, int(goal / self.ratio) - extra, bound)
        after = self._provider(rehearsal.tokens_after + extra)
        if not rehearsal.edits or rehearsal.saved <= 0 or self._is_futile(rehearsal, after, limit, forced=forced):
            self._is_over(commits=len(self.commits), deferred=max(0, rehearsal.saved))
            return self._unmet(total, limit, extra, None) if forced else Stay(reason="nothing is free to leave")
        if touched := self._touched(view):  # the guard keeps policies from it; nothing is proposed that proves it wrong
            why = f"{policy.name} would touch {touched}, which is held"
            return self._unmet(total, limit, extra, None) if forced else Stay(reason=why)
        if rehearsal.exhausted and (after > limit or not forced):  # one that forces and is met may be met again
            self._is_over(commits=len(self.commits) + 1)
        planning = self._waiting.price.g if forced and self._waiting is not None else 0.0  # it goes first, so it is paid for here
        priced = self._priced(rehearsal, at, planning)
        if not forced and not pays(self.setup.gate, priced, now):
            self._is_over(commits=len(self.commits), price=priced)  # priced again before every call
            return Stay(reason=_stays(priced, assumed=self._assumed), price=priced, assumed=self._assumed)
        why = f"{total - limit:,} tokens over the {self._limit_name(limit, forced=forced)} of {limit:,}"
        if planning > 0 and self._waiting is not None:
            why += f", begun with what was {self._waiting.reason}"
        proposal = self._offered(rehearsal, view, priced, policy.name, moment, why, forced=forced)
        if not forced or after <= limit:
            return proposal
        self._offer = _Offer(commit=proposal.commit, view=view, missed=True)
        return self._unmet(after, limit, extra, proposal)

    def _touched(self, after: Projection) -> str:
        """A held object of which a view would show less, or otherwise, than this one does; empty when there is none. O(what is held)."""
        for hold in self._holds if not self.setup.faithful else ():
            for at in blocks_of(self.index, parse_handle(hold.object)):
                if self.view.shows(*at) and not (after.shows(*at) and self.view.instead(*at) == after.instead(*at)):
                    is_reasoning = self.index.block(at).kind == "thinking"
                    if not (is_reasoning and may_go(self.index, after.row(at[0]), at, self.setup.rules)):
                        return hold.object
        return ""

    def _is_futile(self, rehearsal: Rehearsal, after: int, limit: int, *, forced: bool) -> bool:
        """Whether a plan would break the cache for next to nothing: it misses its limit all the same, or a limit that can wait."""
        little = self._is_little(self._provider(rehearsal.saved), after, limit)
        return little and rehearsal.exhausted and (after > limit or not forced)

    def _priced(self, rehearsal: Rehearsal, at: str, planning_usd: float = 0.0) -> Price:
        objects = len(rehearsal.actions)
        back = self._provider(rehearsal.saved) / max(1, objects)  # what a recall brings
        outlook = self._outlook(at)
        asking = self._provider(self.view.tokens) * outlook.read + RECALL_OUTPUT * self.setup.prices.output
        return price(
            replace(outlook, recall=asking + back * outlook.write),
            removed=self._provider(rehearsal.saved),
            suffix=max(0, self._provider(rehearsal.tokens_after - self._kept(rehearsal.changed_from))),
            misses=objects * miss_rate(len(self.index.recalls), self._removed),
            planning=planning_usd,
        )

    def _look(self, old: Price, tokens: int, at: str) -> Price:
        """A price brought up to date without a rehearsal."""
        return repriced(old, replace(self._outlook(at), recall=old.recall), grown=self._provider(self.index.tokens - tokens))

    def _outlook(self, at: str) -> Outlook:
        prices, warmth = self.setup.prices, self.calls.warmth
        write, read = warmth.rates(prices)
        return Outlook(
            calls=expected_calls(len(self.index.steps), self.setup.calls_seen),
            warm=warmth.chance(self.calls.idle_s(at), prices),
            write=write,
            read=read,
        )

    def _round(self, total: int, moment: Moment, at: str) -> Round:
        cold = self.calls.warmth.chance(self.calls.idle_s(at), self.setup.prices) <= 0
        return Round(tokens=total, is_cold=cold, at_boundary=moment == "task-boundary" or self._is_new_turn())

    def _is_new_turn(self) -> bool:
        """Whether a person spoke since the newest reply."""
        turns, steps = self.index.turns, self.index.steps
        return bool(turns) and (not steps or turns[-1].start[0] > steps[-1].entry)

    def _kept(self, first: int) -> int:
        """O200k tokens of the view before a record entry."""
        return sum(row.tokens for row in takewhile(lambda row: row.entry < first, self.view.rows()))

    def _break(self, edits: Iterable[Edit]) -> None:
        """What was sent last stands only up to the first change."""
        if self.calls.standing:
            first = changed_from(self.view, edits)
            if first < self.view.length:  # else it is of what is new
                self.calls = self.calls.broken(self._kept(first))

    def _offered(
        self,
        rehearsal: Rehearsal,
        view: Projection,
        priced: Price,
        name: str,
        moment: Moment,
        reason: str,
        *,
        forced: bool,
    ) -> Propose:
        commit = Commit(
            n=len(self.commits),
            entries=self.length,
            policy=name,
            moment=moment,
            reason=reason,
            forced=forced,
            tokens_before=rehearsal.tokens_before,
            tokens_after=rehearsal.tokens_after,
            ratio=self.ratio,
            actions=rehearsal.actions,
            edits=rehearsal.edits,
            price=priced,
        )
        self._offer = _Offer(commit=commit, view=view)
        return Propose(commit=commit, rehearsal=rehearsal, assumed=self._assumed)

    def _is_spent(self, limit: int, now: Round, at: str, *, forced: bool) -> bool:
        """Whether nothing has changed since the policy last had nothing more to offer; without force a little change is not enough.

        What it offered and was not worth it then is looked at again when by a first look it is worth it now.
        """
        spent = self._spent
        if spent is None or spent.commits != len(self.commits) or spent.releases != self._holds.releases:
            return False
        if forced and spent.price is not None:
            return False
        if spent.price is not None and pays(self.setup.gate, self._look(spent.price, spent.tokens, at), now):
            return False
        if self.length == spent.length:
            return True
        if forced:
            return self._frees_little(spent, now.tokens, limit)
        return self._provider(self.index.tokens - spent.tokens) < limit * RETRY_SHARE

    def _frees_little(self, spent: _Spent, total: int, limit: int) -> bool:
        """Whether what became free since could neither meet a limit that forces nor be worth breaking the cache. O(what is new and the tail).

        A policy may have a rule of its own for what is old enough, so it is asked again after some entries in any case.
        """
        if self.length - spent.length >= self.view.height * RETRY_SHARE:
            return False
        freed = self._provider(spent.deferred + max(0, free_of(self._held()) - spent.free))
        return total - freed > limit and self._is_little(freed, total, limit)

    def _is_little(self, saved: int, after: int, limit: int) -> bool:
        """Whether it is next to nothing beside the limit, and beside a view that cannot meet it."""
        return saved < max(limit, after) * RETRY_SHARE * 2**self._misses

    def _is_over(self, *, commits: int, price: Price | None = None, deferred: int = 0) -> None:
        self._spent = _Spent(
            length=self.length,
            tokens=self.index.tokens,
            commits=commits,
            releases=self._holds.releases,
            price=price,
            deferred=deferred,
            free=free_of(self._held()) if commits == len(self.commits) else 0,
        )

    def _limit_passed(self, total: int) -> tuple[int | None, bool]:
        """The limit that `total` is above, and whether it forces: ceiling and window do, a target is a matter of price."""
        budget = self.setup.budget
        if budget.ceiling is not None and total > budget.ceiling:
            return budget.ceiling, True
        if total > budget.window:
            return budget.window, True
        return (budget.target, False) if budget.target is not None and total > budget.target else (None, False)

    def _limit_name(self, limit: int, *, forced: bool) -> str:
        if not forced:
            return "target"
        return "ceiling" if limit == self.setup.budget.ceiling else "window"

    def _unmet(self, tokens: int, limit: int, extra: int, proposal: Propose | None) -> Unmet:
        deferred = self._spent.deferred if proposal is None and self._spent is not None else 0
        found = parts(self._held(proposal), head=extra, has_policy=self.setup.policy is not None, deferred=deferred)
        sums = [self._provider(stop) for stop in accumulate(found.values(), initial=0)]  # rounded so, the parts add up
        held = {name: stop - start for name, start, stop in zip(found, sums, sums[1:], strict=False)}
        return Unmet(tokens=tokens, limit=limit, held_by=held, proposal=proposal)

    def _held(self, proposal: Propose | None = None) -> dict[str, int]:
        """O200k tokens of the view by what holds them; of the view that a proposal would make, from scratch."""
        view, holders = self.view, self._holders
        if proposal is not None:
            view, holders = self.view.copy(), Holders()
            view.apply(proposal.commit.edits)
        guard = self.guard()

        def about(rows: Iterable[Row]) -> Situation:
            return survey(self.index, view, self.setup.rules, guard, self._count, rows=rows)

        return holders.held_by(view, guard, len(self.commits), about)

    def _take_in(self, entry: Entry) -> None:
        self.index.grow(entry)
        self.view.grow(entry.n)
        self._offer = None

    def _admission(self, entries: Sequence[Entry]) -> Iterator[Commit]:
        """What of the messages is shown otherwise from their birth on: at most one commit for each reason."""
        late = self._late_results(entries)
        tokens = self.view.tokens + sum(sum(entry.tokens) for entry in entries)
        number = len(self.commits)
        if late:
            gone = sum(entries[edit.entry - self.length].tokens[edit.block] for edit in late)
            yield self._admitted(number, entries, "a late result of a call that was evicted", tokens, tokens - gone, edits=late)
            number, tokens = number + 1, tokens - gone
        if self.setup.clip is None:
            return
        dropped = {(edit.entry, edit.block) for edit in late}
        found = [pair for pair in clips(self.index, entries, self.setup.clip, self._count) if pair[0].result not in dropped]
        if found:
            saved = sum(entries[edit.entry - self.length].tokens[edit.block] - edit.tokens for _, edit in found)
            reason = f"{len(found)} result{'s' * (len(found) > 1)} of more than {self.setup.clip.above:,} tokens"
            acts = tuple(Act(kind="clip", object=answering.handle.partition("@")[0]) for answering, _ in found)
            edits = tuple(edit for _, edit in found)
            yield self._admitted(number, entries, reason, tokens, tokens - saved, edits=edits, actions=acts)

    def _late_results(self, entries: Sequence[Entry]) -> tuple[Drop, ...]:
        """A result whose call has left the view (it came late) cannot stand there alone: it leaves at birth."""
        return tuple(
            Drop(entry=each.result[0], block=each.result[1])
            for each in self.index.answers_in(entries)
            if each.call[0] < self.length and not self.view.shows(*each.call)
        )

    def _admitted(
        self,
        number: int,
        entries: Sequence[Entry],
        reason: str,
        before: int,
        after: int,
        *,
        edits: tuple[Edit, ...],
        actions: tuple[Act, ...] = (),
    ) -> Commit:
        return Commit(
            n=number,
            entries=self.length + len(entries),
            policy="admission",
            moment="admission",
            reason=reason,
            tokens_before=before,
            tokens_after=after,
            ratio=self.ratio,
            actions=actions,
            edits=edits,
        )

    def _provider(self, tokens: int) -> int:
        return int(tokens * self.ratio)

    @property
    def _assumed(self) -> bool:
        """Whether the prices are of a model that stands in."""
        return not self.setup.prices.known


def _stays(priced: Price | None, *, assumed: bool) -> str:
    """Why a plan waits."""
    if priced is None:
        return "nothing new is free to leave"
    if priced.gain_usd <= 0:
        return f"would cost {money(-priced.gain_usd, assumed=assumed, digits=DIGITS)} more than it saves"
    return "a plan waits for its time"
