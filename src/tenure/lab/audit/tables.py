"""Where a window went, as tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from tenure.lab.audit.lifetimes import Paid
from tenure.lab.audit.report import ROWS, Row, Table
from tenure.lab.events import At

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
