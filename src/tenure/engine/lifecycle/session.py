"""The life of one conversation's window, as a state machine without I/O.

`append` takes messages in, `observe` learns from reported usage, `decide` says what is to happen before a call. What it decides takes effect
through `commit`, which the edge makes durable first. Nothing here reads a clock, a file or a socket.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

from tenure.engine.lifecycle.admission import admission
from tenure.engine.lifecycle.decision import Decision, Stay
from tenure.engine.lifecycle.decisions import Decisions
from tenure.engine.lifecycle.fit import Rehearsal, rehearse
from tenure.engine.lifecycle.occasion import occasion_of
from tenure.engine.lifecycle.state import CommitLog, SessionState, Setup
from tenure.engine.policies.policy import Planned, Policy
from tenure.engine.policies.situation import no_texts
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Block, Count, Draft, Entry, Read, Role, Usage
from tenure.engine.record.tools import Kinds
from tenure.engine.view.action import Action
from tenure.engine.view.edit import Commit, Moment
from tenure.engine.view.guard import Hold, HoldKind, entries_under

__all__ = ["Placed", "Session", "Setup", "Weigh"]

Weigh = Callable[[tuple[Block, ...]], tuple[int, ...]]


class Placed(Struct, frozen=True, kw_only=True):
    """Messages in their places, and the commits that belong to them, not yet taken in."""

    entries: tuple[Entry, ...]
    commits: tuple[Commit, ...]


class Session(SessionState):
    """One conversation that grows, decides and changes: the state, and what may be done with it."""

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
        super().__init__(setup, count=count, kinds=kinds, log=log, read=read)
        self._chain = Chain(setup.tenant)
        self._weigh = weigh
        self._decisions = Decisions(self)

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
        if entry.role is Role.ASSISTANT:
            self.note_call()
        self.index.grow(entry)
        self.view.grow(entry.n)

    def commit(self, commit: Commit) -> None:
        """Take a commit in; it must be the next one."""
        after = self._decisions.view_after(commit)
        self.change(commit, after)
        self._decisions.committed(commit, proposed=after is not None)

    def hold(self, hold: Hold) -> None:
        """Keep an object from being touched. Raises InputError when the record has no such object."""
        keys = self._holds.add(self.index, hold)
        self._decisions.note_held({entry for key in keys for entry in entries_under(self.index, key)})

    def release(self, object_: str, kind: HoldKind = "pin") -> None:
        """Let go of what is held."""
        self.holds = tuple(hold for hold in self._holds if (hold.object, hold.kind) != (object_, kind))

    def send(self, *, head: str = "", head_tokens: int = 0, at: str = "") -> None:
        """Learn that the view goes out now, behind a head (anything that tells heads apart)."""
        self.calls = self.calls.after_request(view=self.view.tokens, head=head, head_tokens=head_tokens, at=at)

    def observe(self, *, at: str = "", ratio: float | None = None, usage: Usage | None = None) -> None:
        """Learn that a call was answered: when, the provider's tokens per o200k token where they are known, and what it reported.

        When it did not read what it should have, `calls.warmth.collapse` says so.
        """
        if ratio is not None:
            self.ratio = ratio
        self.calls = self.calls.after_answer(at=at, usage=usage, ratio=self.ratio, prices=self.setup.prices)

    def decide(self, moment: Moment = "before-call", *, extra: int = 0, at: str = "", only_forced: bool = False) -> Decision:
        """What is to happen now. `extra` is what goes out beside the view (head, notes) in o200k tokens. O(1) within budget.

        With `only_forced` no policy is asked unless a limit forces: the host asks again when nobody waits.
        """
        self.beside = extra
        call = occasion_of(self, moment, extra=extra, at=at)
        if only_forced and call.limit and not call.forced:
            return Stay(reason=f"{call.total:,} tokens are above the {call.name}, which is seen to behind the next reply")
        return self._decisions.decide_on(call)

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
        return rehearse(self, policy, target, limit)[0]
