"""All sessions of an audit together."""

from collections.abc import Sequence

from tenure.lab.audit.report import Audit, PolicyTotal, Run, Table, Total, Unread, Wasted
from tenure.lab.audit.tables import together
from tenure.lab.events import Bill


class Totals:
    """What the sessions so far come to. Mutable; it keeps no session."""

    def __init__(self) -> None:
        self._sessions = self._calls = self._entries = self._tokens = self._assumed = 0
        self._by_kind, self._by_tool = Table(), Table()
        self._wasted: dict[str, Wasted] = {}
        self._runs: dict[str, PolicyTotal] = {}

    def take(self, audit: Audit) -> None:
        """One session more."""
        session, window = audit.session, audit.window
        self._sessions += 1
        self._calls += session.calls
        self._entries += session.entries
        self._tokens += session.tokens
        self._assumed += session.is_assumed
        self._by_kind = together((self._by_kind, window.by_kind))
        self._by_tool = together((self._by_tool, window.by_tool))
        for wasted in window.wasted:
            known = self._wasted.get(wasted.how)
            self._wasted[wasted.how] = _both(known, wasted) if known is not None else wasted
        for run in audit.runs:
            self._runs[run.policy] = _with(self._runs.get(run.policy), run, audit.runs[0].bill.total_usd)

    def total(self, unread: Sequence[Unread] = ()) -> Total:
        """All of them."""
        return Total(
            sessions=self._sessions,
            calls=self._calls,
            entries=self._entries,
            tokens=self._tokens,
            by_kind=self._by_kind,
            by_tool=self._by_tool,
            wasted=tuple(self._wasted.values()),
            runs=tuple(self._runs.values()),
            unread=tuple(unread),
            assumed=self._assumed,
        )


def _both(one: Wasted, other: Wasted) -> Wasted:
    return Wasted(
        how=one.how,
        objects=one.objects + other.objects,
        tokens=one.tokens + other.tokens,
        paid=one.paid + other.paid,
        usd=one.usd + other.usd,
    )


def _with(known: PolicyTotal | None, run: Run, none_usd: float) -> PolicyTotal:
    before = known or PolicyTotal(
        policy=run.policy, bill=Bill(), commits=0, left=0, visible=0, routed=0, lost=0, peak=0, unmet=0, violations=0, dearer=0
    )
    return PolicyTotal(
        policy=run.policy,
        bill=before.bill + run.bill,
        commits=before.commits + run.commits_made,
        left=before.left + run.left,
        visible=before.visible + run.harms.visible,
        routed=before.routed + run.harms.routed,
        lost=before.lost + run.harms.lost,
        peak=max(before.peak, run.peak),
        unmet=before.unmet + bool(run.unmet),
        violations=before.violations + len(run.violations),
        dearer=before.dearer + (run.bill.total_usd > none_usd),
    )
