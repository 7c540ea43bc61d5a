"""Budgets swept, and what becomes of published claims on the same sessions."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from tenure.lab.evidence.figures.curves import Axis, Plot, Series, curves
from tenure.lab.evidence.origins import origin
from tenure.lab.evidence.page import NOTHING, Drawn, Section, Table, change, decimal, percent, tokens, usd
from tenure.lab.evidence.sections.money import missed
from tenure.lab.protocols.claims import Figure, Tested
from tenure.lab.protocols.sweep import CEILINGS, WINDOW, Protocol, SweepRow

NAME: Final = "sweep"
TITLES: Final[dict[Protocol, str]] = {"accumulating": "one accumulating session", "isolated": "each session alone"}
SHOWS: Final = (
    "What it shows: the same sessions under ceilings from 50k to 267k tokens (of which 80k are about 30 %, as in the CWL paper) and without any, and "
    "whether what was published about such budgets holds for these recordings at these prices. What it does not show: the authors ran a live "
    "agent, which can take another path when something is gone; here the path is the recorded one, and what would have been missed on it stands "
    "beside the bill."
)
DRAWN: Final = "brief"  # of compactions; what others come to is in the table
_CEILED: Final = tuple(float(ceiling) for ceiling in CEILINGS if ceiling is not None)


def section(rows: Sequence[SweepRow], claims: Iterable[Tested], swept: Sequence[str]) -> Section:
    """The section; of other policies than `swept` there is but one ceiling. `claims` are what the rows say of what was published."""
    mine = [row for row in rows if row.policy in (*swept, "none", "compaction")]
    parts: list[Drawn | Table | str] = []
    for protocol, title in TITLES.items():
        found = [row for row in mine if row.protocol == protocol]
        if found:
            parts += [_figure(found, protocol, title), _table(found, title)]
    verdicts = [each for each in claims if each.policy in swept]
    parts += [
        _claims(verdicts, protocol, title) for protocol, title in TITLES.items() if any(v.protocol == protocol for v in verdicts)
    ]
    parts.append(_because([each for each in verdicts if each.policy == "cwl"]))
    return Section(
        name=NAME,
        title="Budget sweep, and published claims",
        lead=f"{len(swept)} policies under {len(_CEILED)} ceilings and none, whole sessions and the accumulating one.",
        shows=SHOWS,
        parts=tuple(parts),
        rows=_written(mine, verdicts),
    )


def _figure(rows: Sequence[SweepRow], protocol: Protocol, title: str) -> Drawn:
    free = next((row.measured for row in rows if row.policy == "none"), None)
    x = Axis(title="ceiling, tokens", say=lambda value: tokens(int(value)), named=_CEILED, by_factor=True)
    bill = Axis(title="USD", say=lambda value: f"{value:,g}", by_factor=True)
    needs = Axis(title="per 100 calls", say=lambda value: decimal(value, 0 if value >= 10 or value == 0 else 1))
    shows = f"Budget sweep, {title}"
    note = f"Without any limit: {usd(free.bill.total_usd)}, nothing missed." if free else ""
    plots = (
        Plot(title="bill", x=x, y=bill, series=_series(rows, of_bill=True)),
        Plot(title="needs missed", x=x, y=needs, series=_series(rows, of_bill=False)),
    )
    return Drawn(f"sweep-{protocol}", shows, curves(shows, note, plots))


def _series(rows: Sequence[SweepRow], *, of_bill: bool) -> tuple[Series, ...]:
    by_name: dict[str, list[SweepRow]] = {}
    for row in rows:
        if row.ceiling is not None and row.variant in ("", DRAWN):
            by_name.setdefault(_named(row), []).append(row)
    dashes = {"ours": 0, "peer": 0, "bound": 0}
    found: list[Series] = []
    for name, mine in by_name.items():
        whose = origin(name).whose
        values = [(float(row.ceiling or 0), row.measured.bill.total_usd if of_bill else missed(row.measured)) for row in mine]
        found.append(
            Series(name=name, points=tuple(sorted(values)), ink="ours" if whose == "ours" else "peer", dash=dashes[whose] % 3)
        )
        dashes[whose] += 1
    return tuple(found)


def _named(row: SweepRow) -> str:
    return f"{row.policy}, {row.variant}" if row.variant else row.policy


def _table(rows: Sequence[SweepRow], title: str) -> Table:
    free = next((row.measured.bill.total_usd for row in rows if row.policy == "none"), 0.0)
    widest = {_named(row): row.measured.bill.total_usd for row in rows if row.ceiling == WINDOW}
    by_name: dict[str, list[SweepRow]] = {}
    for row in rows:
        by_name.setdefault(_named(row), []).append(row)
    return Table(
        title=title[0].upper() + title[1:],
        head=(
            ":policy",
            "ceiling",
            "bill",
            "against 267k",
            "against none",
            "recalls",
            "routed",
            "lost",
            "missed per 100 calls",
        ),
        rows=tuple(
            (
                name,
                tokens(row.ceiling),
                usd(row.measured.bill.total_usd),
                change(row.measured.bill.total_usd, widest[name]) if name in widest else NOTHING,
                change(row.measured.bill.total_usd, free),
                usd(row.measured.bill.recall.usd),
                f"{row.measured.misses.routed:,}",
                f"{row.measured.misses.lost:,}",
                decimal(missed(row.measured)),
            )
            for name, found in by_name.items()
            for row in sorted(found, key=lambda each: each.ceiling or 0)
        ),
    )


def _claims(verdicts: Sequence[Tested], protocol: Protocol, title: str) -> Table:
    mine = {(each.claim, each.policy): each for each in verdicts if each.protocol == protocol}
    policies = dict.fromkeys(policy for _, policy in mine)
    claims = {each.claim: each for each in mine.values()}
    return Table(
        title=f"Published claims, {title}",
        head=(":claim", ":where", *(f":{policy}" for policy in policies)),
        rows=tuple(
            (
                each.says,
                each.origin,
                *(mine[claim, policy].verdict if (claim, policy) in mine else NOTHING for policy in policies),
            )
            for claim, each in claims.items()
        ),
    )


def _because(verdicts: Sequence[Tested]) -> Table:
    return Table(
        title="What the verdicts on `cwl` rest on",
        head=(":claim", ":in", ":verdict", ":because", ":figures"),
        rows=tuple(
            (each.claim, TITLES[each.protocol], each.verdict, each.because, "; ".join(map(_said, each.figures)))
            for each in verdicts
        ),
    )


def _said(figure: Figure) -> str:
    match figure.unit:
        case "share":
            value = percent(figure.value)
        case "times":
            value = f"{figure.value:.2f}"
        case "usd":
            value = usd(figure.value)
        case "tokens" | "count":
            value = f"{figure.value:,.0f}"
    return f"{figure.name} {value}"


def _written(rows: Sequence[SweepRow], verdicts: Sequence[Tested]) -> bytes:
    """A JSON line for each row, without its parts, and one for each verdict."""
    encode = msgspec.json.Encoder().encode
    lines = [encode(msgspec.structs.replace(row, parts=())) for row in rows] + [encode(each) for each in verdicts]
    return b"".join(line + b"\n" for line in lines)
