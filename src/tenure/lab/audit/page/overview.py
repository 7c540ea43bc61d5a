"""Several sessions at once: each policy over all of them, and each of them."""

from collections.abc import Sequence

from tenure.engine.meter.figures import ASSUMED
from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.page.figures import bar, change, tokens, usd
from tenure.lab.audit.page.markup import Html, el, join, line
from tenure.lab.audit.page.session import PARTS, name_of, parts_of, title_of
from tenure.lab.audit.page.tables import Cell, Column, figure, table, text
from tenure.lab.audit.report import Audit, Run
from tenure.lab.events import Bill


def overview(audits: Sequence[Audit], ids: Sequence[str]) -> Html:
    """The sums by policy, and a table of sessions that links to each."""
    policies = tuple(dict.fromkeys(run.policy for audit in audits for run in audit.runs))
    return el(
        "section",
        el("h2", "All sessions together"),
        _assumed(audits),
        _together(audits, policies),
        el("h2", "Session by session"),
        el(
            "p",
            "Under each policy: the change of the bill against the recorded window, and how many needs were missed, lost and routed together.",
            class_="lead",
        ),
        _sessions(audits, ids, policies),
        id="overview",
    )


def _together(audits: Sequence[Audit], policies: Sequence[str]) -> Html:
    runs = {policy: [run for audit in audits for run in audit.runs if run.policy == policy] for policy in policies}
    bills = {policy: sum((run.bill for run in found), Bill()) for policy, found in runs.items()}
    assumed = any(audit.session.is_assumed for audit in audits)
    whole = max((bill.total_usd for bill in bills.values()), default=0.0)
    recorded = {policy: sum(_recorded_usd(audit) for audit in audits if _run_of(audit, policy)) for policy in policies}
    columns = [
        Column(name="policy", class_="policy"),
        Column(name="bill", class_="wide"),
        Column(name="in all", class_="n"),
        Column(name="change", class_="n"),
        *(Column(name=name, class_="n", swatch=class_) for name, class_ in PARTS),
        Column(name="tokens that left", class_="n"),
        Column(name="lost", class_="n", swatch="v-lost"),
        Column(name="routed", class_="n", swatch="v-routed"),
        Column(name="sessions", class_="n"),
    ]
    return table(
        "Each policy over all sessions",
        columns,
        [_sum_row(policy, runs[policy], bills[policy], whole, recorded[policy], assumed=assumed) for policy in policies],
        fold=False,
    )


def _assumed(audits: Sequence[Audit]) -> Html | None:
    """Of how many sessions the money is by another model's price."""
    count = sum(audit.session.is_assumed for audit in audits)
    if not count:
        return None
    said = f"{ASSUMED}: in {count:,} of the sessions a mid-size model's price stands in for one that nobody lists."
    return el("p", said, class_="lead")


def _sum_row(policy: str, runs: Sequence[Run], bill: Bill, whole: float, recorded: float, *, assumed: bool) -> Sequence[Cell]:
    """One policy; `recorded` is the bill of the same sessions as they were recorded."""
    parts = parts_of(bill)
    drawn = bar([(class_, part.usd) for (_, class_), part in zip(PARTS, parts, strict=True)], whole)
    lost, routed, left = (
        sum(amounts) for amounts in zip(*((run.harms.lost, run.harms.routed, run.left) for run in runs), strict=True)
    )
    return [
        text(name_of(policy), name=True),
        Cell(shown=drawn, value=f"{bill.total_usd:.6g}"),
        figure(usd(bill.total_usd, assumed=assumed), bill.total_usd),
        figure(change(bill.total_usd, recorded) if policy != UNBOUNDED else "", bill.total_usd - recorded),
        *(figure(usd(part.usd, assumed=assumed), part.usd) for part in parts),
        figure(tokens(left), left),
        figure(f"{lost:,}" if policy != UNBOUNDED else "", lost),
        figure(f"{routed:,}" if policy != UNBOUNDED else "", routed),
        figure(f"{len(runs):,}", len(runs)),
    ]


def _sessions(audits: Sequence[Audit], ids: Sequence[str], policies: Sequence[str]) -> Html:
    others = [policy for policy in policies if policy != UNBOUNDED]
    columns = [
        Column(name="session", class_="words"),
        Column(name="format"),
        Column(name="calls", class_="n"),
        Column(name="tokens", class_="n"),
        Column(name="largest request", class_="n"),
        Column(name="bill", class_="n"),
        *(Column(name=line(policy, 40), class_="n") for policy in others),
    ]
    rows = [
        [
            Cell(shown=el("a", title_of(audit.session), href=f"#{id_}", class_="clip"), is_name=True),
            text(audit.session.format, 40),
            figure(f"{audit.session.calls:,}", audit.session.calls),
            figure(tokens(audit.session.tokens), audit.session.tokens),
            *_session_figures(audit, others),
        ]
        for audit, id_ in zip(audits, ids, strict=True)
    ]
    return table("Sessions", columns, rows, fold=False)


def _session_figures(audit: Audit, others: Sequence[str]) -> list[Cell]:
    none, recorded = _run_of(audit, UNBOUNDED), _recorded_usd(audit)
    amount = usd(recorded, assumed=audit.session.is_assumed) if none else ""
    cells = [figure(tokens(none.peak) if none else "", none.peak if none else 0), figure(amount, recorded)]
    for policy in others:
        run = _run_of(audit, policy)
        if run is None:
            cells.append(figure("", 0))
        else:
            missed = run.harms.lost + run.harms.routed
            cells.append(
                figure(
                    change(run.bill.total_usd, recorded), run.bill.total_usd - recorded, f"{missed:,} missed" if missed else ""
                )
            )
    return cells


def _run_of(audit: Audit, policy: str) -> Run | None:
    return next((run for run in audit.runs if run.policy == policy), None)


def _recorded_usd(audit: Audit) -> float:
    none = _run_of(audit, UNBOUNDED)
    return none.bill.total_usd if none else 0.0


def together_line(audits: Sequence[Audit]) -> Html:
    """What was audited, in a line."""
    calls = sum(audit.session.calls for audit in audits)
    size = sum(audit.session.tokens for audit in audits)
    return join(
        [el("h1", f"Audit of {len(audits):,} sessions"), el("p", f"{calls:,} calls, {tokens(size)} tokens.", class_="path")]
    )
