"""The ledger and the gauge of a session, kept as it goes on.

They follow from what is stored - entries, commits, reports, calls of helper models - in that order: a host tells of each as it happens, and
`reopen` tells of all again.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

from msgspec.structs import replace

from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.gauge import Gauge, Reported, gauge
from tenure.engine.meter.ledger import Ledger, Spent, opened
from tenure.engine.meter.price import prices_for
from tenure.engine.meter.ratio import is_credible
from tenure.engine.record.entry import Block, Entry, Role, ToolCall, Usage
from tenure.engine.record.index import NONE
from tenure.engine.record.query import query_of
from tenure.engine.record.tools import is_recall
from tenure.engine.view.edit import Commit
from tenure.engine.view.project import changed_from


class Accounts:
    """What one session's calls cost, and how full its window is. Mutable; the session is only read."""

    def __init__(self, session: Session, *, model: str = "", provider: str = "", life: str = "") -> None:
        """`model` is meant where a report names none, `provider` is whose prices hold, `life` how long it is asked to keep a prefix."""
        self.ledger: Ledger = opened(session.setup.budget.window)
        self.reported: Reported | None = None
        self._broken = (-1, 0)  # entries when the newest commit was made, and those that a provider found again
        self._session, self._model, self._provider, self._life = session, model, provider, life
        self._prices = cache(partial(prices_for, provider=provider, life=life))

    def priced(self, spent: Spent) -> Spent:
        """A call of the agent with its model and, at list price, its money, where these are known."""
        named = replace(spent, model=spent.model or self._model)
        if named.usd is not None:
            return named
        listed = prices_for(named.model, self._provider, prompt=spent.usage.prompt, life=self._life)
        return replace(named, usd=listed.cost_usd(spent.usage)) if listed.known else named

    def believes(self, usage: Usage, *, head: int | None) -> bool:
        """Whether the prompt of what is shown behind a head of `head` o200k tokens can be as large as was reported."""
        counted = self._session.view.tokens + (head or 0)
        return usage.prompt > 0 and is_credible(usage.prompt, counted, self._session.setup.budget.window)

    def add_call(self, spent: Spent, blocks: Iterable[Block], *, head: int | None = None, own: bool = True) -> None:
        """A call of the agent, told before its reply of `blocks` is taken in. `head` in o200k tokens; not `own`: another conversation's."""
        shown, whole = self._session.view.tokens, self._session.index.tokens
        if own:
            spent = self.priced(spent)
            prices, fetches = self._prices(spent.model), self._fetches(blocks, self._session.length)
            self.ledger = self.ledger.after_call(spent, shown=shown, whole=whole, prices=prices, fetching=fetches)
        if self.believes(spent.usage, head=head):
            self.reported = Reported(prompt=spent.usage.prompt, counted=shown, head=head)
        elif spent.usage.prompt and self.reported is not None:
            self.reported = replace(self.reported, is_stale=True)

    def add_entry(self, entry: Entry, *, own: bool = True) -> None:
        """An entry was taken in: what of it is a recall or its answer. Not `own`: another conversation's."""
        index = self._session.index
        if entry.role is Role.ASSISTANT and self._fetches(entry.blocks, entry.n):
            self.ledger = self.ledger.after_fetching(sum(entry.tokens))
            return
        for facts in index.entries[entry.n].blocks:
            if facts.span == NONE or facts.span not in index.recalls:
                continue
            if facts.kind == "tool_result" and own:
                self.ledger = self.ledger.after_answer(facts.tokens)
            else:
                self.ledger = self.ledger.after_fetching(facts.tokens)

    def add_commit(self, commit: Commit) -> None:
        """A commit, told before it is taken in. One at admission changes only what was never sent. O(view)."""
        session = self._session
        if commit.moment == "admission":
            self.ledger = self.ledger.after_commit(None)
            return
        first = changed_from(session.view, commit.edits)
        now = session.length, session.read_until(first)
        is_broken = self._broken[0] == now[0] and self._broken[1] <= now[1]  # already, for the next call, and nothing more stands
        self._broken = self._broken if is_broken else now
        stands = -1 if commit.head else None if is_broken else session.view.tokens_before(now[1])
        self.ledger = self.ledger.after_commit(stands)
        if self.reported is not None and session.view.tokens_before(first) < self.reported.counted:
            self.reported = replace(self.reported, is_stale=True)

    def add_helper_call(self, spent: Spent) -> None:
        """A call of a helper model; one of unknown price is held against what eviction saved at an assumed one."""
        self.ledger = self.ledger.after_helper_call(spent, assumed_usd=prices_for(spent.model).cost_usd(spent.usage))

    def gauge(self, *, head: int | None) -> Gauge:
        """How full the window is. `head` in o200k tokens, None before it is known."""
        session = self._session
        ratio = session.ratio if self.reported is None else self.ledger.compared.ratio.value
        budget = session.setup.budget
        return gauge(self.reported, counted=session.view.tokens, head=head, ratio=ratio, limit=budget.limit, window=budget.window)

    def _fetches(self, blocks: Iterable[Block], entry: int) -> bool:
        """Whether a reply asks for recalls and for nothing else, so that the call would not have been made had nothing left."""
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        tool = self._session.index.tool
        return bool(calls) and all(is_recall(tool(call.name, entry)) and query_of(call.arguments) is not None for call in calls)


def reopen(
    session: Session,
    accounts: Accounts,
    entries: Iterable[Entry],
    commits: Sequence[Commit],
    reports: Mapping[int, Spent],
    helped: Iterable[Spent],
    *,
    forked_at: int = 0,
) -> None:
    """Take everything in again as it happened. `reports` are by the entry that answered; those below `forked_at` were paid elsewhere."""
    waiting = deque(commits)

    def carry_out(length: int | None) -> None:
        """The commits made when the record was at most so long; None: all that are left."""
        while waiting and (length is None or waiting[0].entries <= length):
            commit = waiting.popleft()
            accounts.add_commit(commit)
            session.commit(commit)
            session.ratio = commit.ratio

    for entry in entries:
        carry_out(entry.n)
        if entry.n in reports:
            accounts.add_call(reports[entry.n], entry.blocks, own=entry.n >= forked_at)
        session.follow(entry)
        accounts.add_entry(entry, own=entry.n >= forked_at)
    carry_out(None)
    for each in helped:
        accounts.add_helper_call(each)
