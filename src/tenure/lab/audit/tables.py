"""Where a window went, as tables; and all sessions of an audit together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from tenure.lab.audit.lifetimes import Paid
from tenure.lab.audit.report import ROWS, Audit, PolicyTotal, Row, Run, Table, Total, Unread, Wasted
from tenure.lab.events import At, Bill

REST: Final = "(others)"


class Placed(Struct, frozen=True, gc=False):
    """A block: what it weighed when it came in, and the row of each table that it is counted in."""

    at: At
    tokens: int
    kind: str
    tool: str
    path: str
    turn: str
    counts: bool  # as an object of its tool and its path: a call, not its result
    begins: bool  # as one of its turn: the first block of an entry


class _Sum(Struct):
    objects: int = 0
    tokens: int = 0
    paid: int = 0
    usd: float = 0.0


def table(
    blocks: Iterable[tuple[Placed, Paid]],
    name: Callable[[Placed], str],
    counts: Callable[[Placed], bool],
    labels: Mapping[str, str] | None = None,
) -> Table:
    """The blocks by what `name` says of them; those of which `counts` is true are its objects."""
    sums: dict[str, _Sum] = {}
    for placed, paid in blocks:
        found = sums.setdefault(name(placed), _Sum())
        found.objects += counts(placed)
        found.tokens += placed.tokens
        found.paid += paid.tokens
        found.usd += paid.usd
    total = sum(each.paid for each in sums.values())
    rows = [
        Row(
            name=key,
            label=(labels or {}).get(key, ""),
            objects=each.objects,
            tokens=each.tokens,
            paid=each.paid,
            usd=each.usd,
            share=each.paid / total if total else 0.0,
        )
        for key, each in sums.items()
    ]
    return bounded(sorted(rows, key=_most_carried))


def bounded(rows: Sequence[Row]) -> Table:
    """As many rows as a report has, the rest as one."""
    rest = rows[ROWS:]
    return Table(rows=tuple(rows[:ROWS]), merged=len(rest), rest=one_row(REST, rest) if rest else None)


def together(tables: Iterable[Table]) -> Table:
    """The tables of several sessions as one: rows of one name are one."""
    found = list(tables)
    by_name: dict[str, list[Row]] = {}
    for row in (row for each in found for row in each.rows):
        by_name.setdefault(row.name, []).append(row)
    rests = [each.rest for each in found if each.rest is not None]
    total = sum(row.paid for each in found for row in (*each.rows, *([each.rest] if each.rest else [])))
    rows = sorted((_shared(one_row(name, rows), total) for name, rows in by_name.items()), key=_most_carried)
    rests += rows[ROWS:]
    return Table(
        rows=tuple(rows[:ROWS]),
        merged=sum(each.merged for each in found) + len(rows[ROWS:]),
        rest=_shared(one_row(REST, rests), total) if rests else None,
    )


def one_row(name: str, rows: Sequence[Row]) -> Row:
    """Several rows as one of that name. They are not none."""
    return Row(
        name=name,
        label=rows[0].label if name != REST else "",
        objects=sum(row.objects for row in rows),
        tokens=sum(row.tokens for row in rows),
        paid=sum(row.paid for row in rows),
        usd=sum(row.usd for row in rows),
        share=sum(row.share for row in rows),
    )


def _shared(row: Row, total: int) -> Row:
    return structs.replace(row, share=row.paid / total if total else 0.0)


def _most_carried(row: Row) -> tuple[int, float, int, str]:
    return -row.paid, -row.usd, -row.tokens, row.name


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
