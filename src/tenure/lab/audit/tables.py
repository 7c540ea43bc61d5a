"""Sums of an audit: rows by name as tables of bounded length, and all sessions of an audit together."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from tenure.lab.audit.report import ROWS, Audit, PolicyRun, PolicyTotal, Total, UnreadSession, Wasted, WindowRow, WindowTable
from tenure.lab.events import Bill

REST: Final = "(others)"


def table(rows: Iterable[WindowRow], rests: Sequence[WindowRow] = (), merged: int = 0) -> WindowTable:
    """Rows of one name as one, those that cost most first, and as many as a report has; the others are one, with the `merged` that `rests` are."""
    by_name: dict[str, list[WindowRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    sums = [one_row(name, each) for name, each in by_name.items()]
    total = sum(row.paid for row in (*sums, *rests))
    sums.sort(key=lambda row: (-row.paid, -row.usd, -row.tokens, row.name))
    rest = [*rests, *sums[ROWS:]]
    return WindowTable(
        rows=tuple(_shared(row, total) for row in sums[:ROWS]),
        merged=merged + len(sums[ROWS:]),
        rest=_shared(one_row(REST, rest), total) if rest else None,
    )


def together(tables: Iterable[WindowTable]) -> WindowTable:
    """The tables of several sessions as one: rows of one name are one."""
    found = list(tables)
    rests = [each.rest for each in found if each.rest is not None]
    return table((row for each in found for row in each.rows), rests, sum(each.merged for each in found))


def one_row(name: str, rows: Sequence[WindowRow]) -> WindowRow:
    """Several rows as one of that name. They are not none."""
    return WindowRow(
        name=name,
        label=rows[0].label if name != REST else "",
        objects=sum(row.objects for row in rows),
        tokens=sum(row.tokens for row in rows),
        paid=sum(row.paid for row in rows),
        usd=sum(row.usd for row in rows),
        share=sum(row.share for row in rows),
    )


def _shared(row: WindowRow, total: int) -> WindowRow:
    return replace(row, share=row.paid / total if total else 0.0)


class Totals:
    """The sums of the sessions so far. Mutable; it keeps no session."""

    def __init__(self) -> None:
        self._total = Total(
            sessions=0,
            calls=0,
            entries=0,
            tokens=0,
            by_kind=WindowTable(),
            by_tool=WindowTable(),
            wasted=(),
            runs=(),
            unread=(),
            assumed=0,
        )
        self._wasted: dict[str, Wasted] = {}
        self._runs: dict[str, PolicyTotal] = {}

    def take(self, audit: Audit) -> None:
        """One session more."""
        session, window, total = audit.session, audit.window, self._total
        self._total = replace(
            total,
            sessions=total.sessions + 1,
            calls=total.calls + session.calls,
            entries=total.entries + session.entries,
            tokens=total.tokens + session.tokens,
            by_kind=together((total.by_kind, window.by_kind)),
            by_tool=together((total.by_tool, window.by_tool)),
            assumed=total.assumed + session.is_assumed,
        )
        for wasted in window.wasted:
            known = self._wasted.get(wasted.how)
            self._wasted[wasted.how] = wasted if known is None else known + wasted
        for run in audit.runs:
            self._runs[run.policy] = _added(self._runs.get(run.policy), run, audit.runs[0].bill.total_usd)

    def total(self, unread: Sequence[UnreadSession] = ()) -> Total:
        """All of them."""
        return replace(self._total, wasted=tuple(self._wasted.values()), runs=tuple(self._runs.values()), unread=tuple(unread))


def _added(known: PolicyTotal | None, run: PolicyRun, none_usd: float) -> PolicyTotal:
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
