"""What one session knows: its record's facts, its view, its commits, what is held, and what was sent. It decides nothing."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, overload

from msgspec import Struct

from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.budget import Budget, GateRule
from tenure.engine.lifecycle.gate import Outlay
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.meter.warmth import SentCalls
from tenure.engine.planners.selfgc.setting import OURS, SelfGc
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.policy import Conduct, Policy
from tenure.engine.policies.situation import Situation, no_texts, survey
from tenure.engine.record.entry import Count, Read
from tenure.engine.record.index import Index
from tenure.engine.record.tools import Kinds
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Guard, Hold, Holds, faithful_guard, governed_guard
from tenure.engine.view.project import Projection, View, changed_from
from tenure.engine.view.rules import Rules


class Setup(Struct, frozen=True, kw_only=True):
    """What a session is held to; the same for all its life."""

    budget: Budget
    rules: Rules
    prices: Prices = DEFAULT
    policy: Policy | None = Cwl()  # None: nothing is ever evicted
    gate: GateRule = GateRule.PRICED
    selfgc: SelfGc = OURS  # how a Self-GC planner's plans are asked for and carried out; by the paper's rule it is `PAPER`
    calls_seen: tuple[int, ...] = ()  # by finished sessions, ascending: how long this one may last
    clip: Clip | None = None  # how large results are clipped when they are appended; None: not at all
    tenant: str = ""
    faithful: bool = False  # a published rule is followed as it is: no human text, prologue, tail or hold is protected from it


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


class SessionState:
    """One conversation's facts. Mutable; every change is an append or a commit."""

    def __init__(
        self,
        setup: Setup,
        *,
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
        self._stem: int = 0  # the first entry at or after which the newest commit changed what had been shown,
        self._ended: int = 0  # and the entries of the first request behind that commit; 0: none has gone out
        self._marked: list[
            int
        ] = []  # entries in front of which requests before that one marked the cache, and nothing changed since; ascending
        self.rewrites = 0  # commits that changed what had been shown; clips at admission do not
        self.removed = 0  # objects that policies and plans took
        self.head_at_stake = 0  # o200k tokens in front of the view that a commit may change as well, such as by a tool that is offered from then on
        self.is_head_changed = False  # whether one did
        self.beside = 0  # o200k tokens that went out beside the view last
        self.outlay = Outlay()
        self._read = read
        self._holds = Holds()

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

    def change(self, commit: Commit, after: Projection | None) -> None:
        """Take a commit in, which must be the next one; `after` is the view that it makes, where that is known."""
        if commit.n != len(self.commits):
            raise ValueError(f"commit {commit.n} cannot follow {len(self.commits)} commits")
        first = changed_from(self.view, commit.edits)
        if self.calls.standing and first < self.view.length:  # what was sent last stands only up to the first change
            self.calls = self.calls.after_change(self.view.tokens_before(self.read_until(first)))
        if commit.moment != "admission":
            self._break_prefix(first, with_head=commit.head > 0)
        if after is None:
            self.view.apply(commit.edits)
        else:
            self.view = after
        self.rewrites += commit.moment != "admission"
        self.is_head_changed |= commit.head > 0
        if commit.price is not None:  # of a policy or a plan
            self.removed += len(commit.actions)
            self.outlay = self.outlay.after_commit(commit.price)
        self.commits.append(commit)

    @property
    def stem(self) -> int:
        """The entry in front of which a request is worth a cache marker: where the newest commit changed what had been shown first.

        In the request that goes out with that commit the last place in front of it that a request before marked, so that it is read from the cache.
        """
        return self._marked[-1] if self._marked and not self._ended else self._stem

    def read_until(self, first: int) -> int:
        """Up to which entry a provider finds its prefix again when the view changes from `first` on: with markers, up to the last one that stands."""
        if not self.setup.rules.cache_markers:
            return first
        if self._ended and first >= self._ended:
            return first  # a request ended there
        if self._ended and first >= self._stem:
            return self._stem
        place = bisect_right(self._marked, first)
        return self._marked[place - 1] if place else 0

    def _break_prefix(self, first: int, *, with_head: bool) -> None:
        """Note that a commit changes the view from an entry on."""
        until = self.read_until(first)
        first = min(first, self._stem) if not self._ended and len(self.commits) else first
        del self._marked[0 if with_head else bisect_right(self._marked, first) :]
        if not with_head and until and until <= first and (not self._marked or self._marked[-1] < until):
            self._marked.append(until)
        self._stem, self._ended = first, 0

    def note_call(self) -> None:
        """Note that a reply to a request with all that is in the record comes now."""
        self._ended = self._ended or self.length
        self.outlay = self.outlay.after_call(self.view.tokens, self.index.tokens, self.beside)

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

    def floor_of(self, limit: int, conduct: Conduct) -> int:
        """How far down a batch goes now that was called for by `limit`, in provider tokens."""
        turns, view = self.index.turns, self.view
        deepens = conduct.deepens and turns and view.tokens
        return self.setup.budget.floor_of(limit, view.tokens_before(turns[-1].start[0]) / view.tokens if deepens else 0.0)

    def situation(self, *, goal: int = 0) -> Situation:
        """What a policy is shown now that is to bring the view to `goal` o200k tokens. One pass over the view."""
        budget = self.setup.budget
        limit, window = (int(tokens / self.ratio) for tokens in (budget.limit, budget.room))
        return survey(
            self.index,
            self.view,
            self.setup.rules,
            self.guard(),
            self.count,
            read=self._read,
            limit=limit,
            window=window,
            goal=goal,
        )

    def freeze(self) -> View:
        """The view now."""
        return self.view.freeze()
