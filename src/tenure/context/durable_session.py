"""A session of which every change is stored before it takes effect (an edge: it reads and writes the store)."""

from functools import partial

from msgspec.structs import replace

from tenure.context.entries import RecentEntries, StoredLog
from tenure.engine.lifecycle.accounts import Accounts, reopen
from tenure.engine.lifecycle.decision import Decision, Propose, Unmet
from tenure.engine.lifecycle.session import Placed, Session, Setup, Weigh
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.lifecycle.undo import restored, undone
from tenure.engine.meter.gauge import Gauge
from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Count, Entry, Usage
from tenure.engine.record.tools import Kinds
from tenure.engine.view.edit import Commit, Drop
from tenure.engine.view.guard import Hold, HoldKind
from tenure.store.records import Conversation, Records
from tenure.store.soundness import damage_in, encoded, sound_holds


class DurableSession:
    """One conversation: its session, its accounts, and what was sent last. Mutable."""

    def __init__(
        self, store: Records, sheet: Conversation, terms: Terms, setup: Setup, *, weigh: Weigh, count: Count, kinds: Kinds
    ) -> None:
        self.id, self.terms, self.head = (
            sheet.id,
            terms,
            ("", 0),
        )  # of the newest request: its head's JSON, and the tokens of that
        self.sent = 0  # o200k tokens of the newest request; 0 before there was one
        self.store, self._sheet = store, sheet
        self.session = Session(setup, weigh=weigh, count=count, kinds=kinds, log=StoredLog(store, sheet.id), read=self.entry)
        self.session.index.own.update(terms.tools)
        self.accounts = Accounts(self.session, model=sheet.model, provider=terms.provider, life=terms.cache_life)
        self._recent = RecentEntries(partial(store.entries, sheet.id), lambda n: self.session.view.row(n) is not None)

    @property
    def gauge(self) -> Gauge:
        """How full the window is, in provider tokens of the limit in force."""
        return self.accounts.gauge(head=self._sent_head)

    def entry(self, n: int) -> Entry:
        """An entry of the record."""
        return self._recent.entry(n)

    def believes(self, usage: Usage) -> bool:
        """Whether the newest request can have had as large a prompt as was reported."""
        return self.accounts.believes(usage, head=self._sent_head)

    def resume(self) -> bool:
        """Take in what the store has of it; whether any of that was sent or changed before. Raises Damaged for what does not follow."""
        store, session = self.store, self.session
        reports = {each.n: each.spent for each in store.usages(self.id)}
        forked_at, commits = self._sheet.forked_at, store.commits(self.id)
        with damage_in(store, self.id):
            reopen(session, self.accounts, store.entries(self.id), commits, reports, store.asides(self.id), forked_at=forked_at)
        session.observe(at=max((spent.at for spent in reports.values()), default=""))
        session.holds = sound_holds(store, self.id, session.index)
        notes = session.index.notes.span
        if notes is not None:  # a fork of an older version inherited commits that were made when newer notes stood
            self.restore(session.index.spans[notes].object)
        return bool(reports) or bool(commits)

    def catch_up(self) -> None:
        """Take in what another process has stored since. Raises Damaged for what does not follow."""
        store, session = self.store, self.session
        sheet = store.conversation(self.id)
        if (sheet.length, sheet.commits) == (session.length, len(session.commits)):
            return
        reports = {each.n: each.spent for each in store.usages(self.id) if each.n >= session.length}
        commits = store.commits(self.id)[len(session.commits) :]
        with damage_in(store, self.id):
            reopen(
                session, self.accounts, store.entries(self.id, session.length), commits, reports, (), forked_at=sheet.forked_at
            )

    def accept(self, placed: Placed, reply: Spent | None = None) -> None:
        """Take in messages that were placed; `reply` is what the call cost whose reply they are."""
        self.store.append(self.id, placed.entries, placed.commits)
        if reply is not None:
            self.accounts.add_call(reply, placed.entries[0].blocks, head=self._sent_head)
        self.session.accept(placed)
        for entry in placed.entries:
            self.accounts.add_entry(entry)
        for commit in placed.commits:
            self.accounts.add_commit(commit)
        self._recent.take(placed.entries)

    def report(self, spent: Spent, usage: Usage) -> None:
        """Store what a provider reported of the call whose reply was accepted last."""
        self.store.observe(self.id, self.session.length - 1, usage, spent.model, spent.at, spent.usd)

    def note(self, spent: Spent) -> None:
        """Take in what a helper model cost."""
        self.store.note(self.id, spent)
        self.accounts.add_helper_call(spent)

    def send(self, *, beside: int, at: str) -> None:
        """Note that the view goes out now, behind the head, with `beside` o200k tokens of notes."""
        self.sent = self.session.view.tokens + self.head[1] + beside
        self.session.send(head=self.head[0], head_tokens=self.head[1], at=at)

    def carry_out(self, decision: Decision) -> Decision:
        """Commit what a decision proposes, if it does."""
        proposal = decision.proposal if isinstance(decision, Unmet) else decision
        if isinstance(proposal, Propose):
            self.commit(proposal.commit)
        return decision

    def commit(self, commit: Commit) -> None:
        """Take a commit in; it must be the next one."""
        self.store.commit(self.id, commit)
        self.accounts.add_commit(commit)
        self.session.commit(commit)
        self._recent.changed(edit.entry for edit in commit.edits if isinstance(edit, Drop))

    def undo(self, number: int) -> Commit:
        """Put back what a commit changed. Raises InputError for one that does not exist."""
        commit = undone(self.session, number)
        self.commit(commit)
        return commit

    def restore(self, object_: str) -> Commit | None:
        """Show an object whole again; None when it is. Raises InputError when the record has no such object."""
        commit = restored(self.session, object_)
        if commit is not None:
            self.commit(commit)
        return commit

    def hold(self, hold: Hold) -> None:
        """Keep an object as it is shown. Raises InputError for what is not there."""
        self.session.hold(hold)
        self.store.hold(self.id, hold)

    def release(self, object_: str, kind: HoldKind) -> bool:
        """Let go of what is held; False when it was not."""
        is_held = self.store.release(self.id, Hold(kind=kind, object=object_))
        self.session.release(object_, kind)
        return is_held

    def keep_tools(self, tools: dict[str, int], *, since: int) -> None:
        """Keep which tools of ours' names are the host's own, each with the entry from which on; `since` 0: as if they had always been."""
        session = self.session
        self.terms = replace(self.terms, tools=tools)
        self.store.hold_to(replace(self._sheet, terms=encoded(self.terms)))
        if since:
            session.index.own.update(tools)
        else:
            session.index.again(tools, self.store.entries(self.id))
            session.holds = session.holds  # under the names that objects have now

    @property
    def _sent_head(self) -> int | None:
        """O200k tokens of the head that was sent; None before one was."""
        return self.head[1] if self.sent else None
