"""The life of one conversation's window, as a state machine without I/O.

`append` takes messages in, `observe` learns from reported usage, `decide` says what is to happen before a call. What it decides takes effect
through `commit`, which the edge makes durable first. Nothing here reads a clock, a file or a socket.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, overload

from msgspec import Struct

from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.admission import admission
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Decision, Decisions
from tenure.engine.lifecycle.fit import Rehearsal, fit
from tenure.engine.lifecycle.gate import Rule
from tenure.engine.lifecycle.residues import Residues
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.meter.warmth import SentCalls
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.policy import Conduct, Planned, Policy
from tenure.engine.policies.situation import Situation, no_texts, survey
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Block, Count, Draft, Entry, Read, Usage
from tenure.engine.record.index import Index
from tenure.engine.record.tools import Kinds
from tenure.engine.view.action import Action
from tenure.engine.view.edit import Commit, Moment
from tenure.engine.view.guard import Guard, Hold, HoldKind, Holds, entries_under, faithful_guard, governed_guard
from tenure.engine.view.project import Projection, View, changed_from
from tenure.engine.view.rules import Rules

Weigh = Callable[[tuple[Block, ...]], tuple[int, ...]]


class Setup(Struct, frozen=True, kw_only=True):
    """What a session is held to; the same for all its life."""

    budget: Budget
    rules: Rules
    prices: Prices = DEFAULT
    policy: Policy | None = Cwl()  # None: nothing is ever evicted
    gate: Rule = Rule.PRICED
    calls_seen: tuple[int, ...] = ()  # by finished sessions, ascending: how long this one may last
    clip: Clip | None = None  # how large results are clipped when they are appended; None: not at all
    tenant: str = ""
    faithful: bool = False  # a published rule is followed as it is: no human text, prologue, tail or hold is protected from it


class Placed(Struct, frozen=True, kw_only=True):
    """Messages in their places, and the commits that belong to them, not yet taken in."""

    entries: tuple[Entry, ...]
    commits: tuple[Commit, ...]


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
        self.ratio = 1.0
        self.calls = SentCalls()
        self.count = count
        self.rewrites = 0  # commits that changed what had been shown; clips at admission do not
        self.removed = 0  # objects that policies and plans took
        self._chain = Chain(setup.tenant)
        self._weigh = weigh
        self._read = read
        self._holds = Holds()
        self._decisions = Decisions(self)

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
    def releases(self) -> int:
        """How often something was let go."""
        return self._holds.releases

    @property
    def waiting(self) -> Planned | None:
        """The plan that waits for its time."""
        return self._decisions.waiting

    def propose(self, drafts: Iterable[Draft]) -> Placed:
        """Place messages without taking them in, so that an edge can store them first. Its commits belong into the same transaction."""
        chain = self._chain.ahead()
        entries = tuple(chain.place(draft, self._weigh(draft.blocks)) for draft in drafts)
        return Placed(entries=entries, commits=tuple(admission(self, entries, self.count)))

    def accept(self, placed: Placed) -> None:
        """Take in what was placed."""
        for entry in placed.entries:
            self._chain.take(entry)
            self._take_in(entry)
        for commit in placed.commits:
            self.commit(commit)

    def append(self, draft: Draft) -> Placed:
        """Place a message and take it in."""
        placed = self.propose((draft,))
        self.accept(placed)
        return placed

    def follow(self, entry: Entry) -> None:
        """Take in an entry that was placed before, as when a session is opened again. Raises ValueError if it does not follow."""
        if wrong := self._chain.follow(entry):
            raise ValueError(wrong)
        self._take_in(entry)

    def _take_in(self, entry: Entry) -> None:
        self.index.grow(entry)
        self.view.grow(entry.n)

    def commit(self, commit: Commit) -> None:
        """Take a commit in; it must be the next one."""
        if commit.n != len(self.commits):
            raise ValueError(f"commit {commit.n} cannot follow {len(self.commits)} commits")
        if self.calls.standing:  # what was sent last stands only up to the first change
            first = changed_from(self.view, commit.edits)
            if first < self.view.length:  # else it is of what is new
                self.calls = self.calls.broken(self.view.tokens_before(first))
        after = self._decisions.view_after(commit)
        if after is None:
            self.view.apply(commit.edits)
        else:
            self.view = after
        self.rewrites += commit.moment != "admission"
        if commit.price is not None:  # of a policy or a plan
            self.removed += len(commit.actions)
        self.commits.append(commit)
        self._decisions.committed(commit, proposed=after is not None)

    def hold(self, hold: Hold) -> None:
        """Keep an object from being touched. Raises InputError when the record has no such object."""
        keys = self._holds.add(self.index, hold)
        self._decisions.held({entry for key in keys for entry in entries_under(self.index, key)})

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

    def provider(self, tokens: int) -> int:
        """O200k tokens in the provider's."""
        return int(tokens * self.ratio)

    def guard(self, *, governed: bool = False) -> Guard:
        """What no policy may touch now; with `governed` what none might if the session were not faithful."""
        index, view = self.index, self.view
        if self.setup.faithful and not governed:
            return faithful_guard(index, view)
        conduct = self.setup.policy.conduct if self.setup.policy else Conduct()
        return governed_guard(
            index,
            view,
            int(self.setup.budget.limit / self.ratio),
            exchanges=conduct.tail_exchanges,
            holds=self._holds,
            before_marks=conduct.before_marks,
        )

    def situation(self, *, goal: int = 0) -> Situation:
        """What a policy is shown now that is to bring the view to `goal` o200k tokens. One pass over the view."""
        limit = int(self.setup.budget.limit / self.ratio)
        return survey(self.index, self.view, self.setup.rules, self.guard(), self.count, read=self._read, limit=limit, goal=goal)

    def decide(self, moment: Moment = "before-call", *, extra: int = 0, at: str = "") -> Decision:
        """What is to happen now. `extra` is what goes out beside the view (head, notes) in o200k tokens. O(1) within budget."""
        return self._decisions.decide(moment, extra=extra, at=at)

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
        return self._decisions.plan(name, actions, reason=reason, moment=moment, forced=forced, at=at, planning_usd=planning_usd)

    def rehearse(self, policy: Policy, target: int, *, limit: int | None = None) -> Rehearsal:
        """What a policy would do to bring the view to `target` o200k tokens, reluctantly down to `limit`; nothing changes."""
        return self.fitted(policy, target, limit)[0]

    def fitted(self, policy: Policy, target: int, limit: int | None) -> tuple[Rehearsal, Projection]:
        """The same, and the view it would make."""
        residues = Residues.of(self.setup.budget.limit, policy.conduct.naming)
        return fit(self.situation(goal=target), policy, target, residues, f"{len(self.commits)}.", limit=limit)

    def freeze(self) -> View:
        """The view now."""
        return self.view.freeze()
