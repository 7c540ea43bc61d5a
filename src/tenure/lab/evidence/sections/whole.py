"""Each session alone, whole, under a budget: its bill, and what its own later steps missed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tenure.lab.events import IsolatedRun, Measured
from tenure.lab.evidence.figures.rows import Bar, Cells, Panel, Point, rows
from tenure.lab.evidence.jobs import CEILING
from tenure.lab.evidence.origins import SUBJECT, origin
from tenure.lab.evidence.page import (
    NOTHING,
    Drawn,
    Goal,
    Section,
    Table,
    change,
    count,
    decimal,
    percent,
    several,
    shared,
    tokens,
    usd,
)
from tenure.lab.evidence.sections.money import HARMS, as_bar, missed, overruns, parts_of, per_hundred
from tenure.lab.evidence.sections.ranked import as_rows, ranked
from tenure.lab.intervals import wilson
from tenure.lab.protocols.measured import added

NAME: Final = "whole"
SHOWS: Final = (
    "What it shows: the simulated bill of whole sessions under one ceiling, recalls of what was missed and can be recalled included, and how many "
    "later uses of a session's own text met something that had left. What it does not show: how the agent would have gone on. Prices are list "
    "prices of one model, caching is strict prefix caching with the times of the logs, every request opens with the same head, and "
    "what recorded agents did to their own windows is left out, so that every policy starts from the same record."
)


class _Row(Struct, frozen=True):
    """A policy over all sessions that the budget touches."""

    policy: str
    all: Measured
    unharmed: int  # sessions in which nothing was missed


def section(runs: Sequence[IsolatedRun], groups: Mapping[str, frozenset[str]], ceiling: int = CEILING) -> Section:
    """The section; `groups` are names of sessions by what their group is called."""
    free = {run.source: run.measured for run in runs if run.policy == "none"}
    touched = frozenset(name for name, found in free.items() if found.peak_view_tokens > ceiling)
    mine = [run for run in runs if run.source in touched and (run.budget.ceiling == ceiling or run.policy == "none")]
    found = _found(mine)
    lead = (
        f"{count(len(touched))} of {several(len(free), 'session')} pass {tokens(ceiling)} tokens, head included; the others are the same under "
        "every policy and are left out."
    )
    parts: list[Drawn | Table | str] = []
    if found:
        parts += [_figure(found, lead, ceiling), _table(found), _grouped(mine, groups)]
    gentle = [run for run in runs if run.budget.target is not None]
    if gentle:
        parts.append(_hands_off(gentle, free))
    return Section(
        name=NAME,
        title="Whole sessions under a budget",
        lead=lead,
        shows=SHOWS,
        parts=tuple(parts),
        rows=written(runs),
        goals=_goals([run for run in gentle if run.policy == SUBJECT], free),
    )


def _found(runs: Iterable[IsolatedRun]) -> list[_Row]:
    by_policy: dict[str, list[Measured]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, []).append(run.measured)
    every = (_Row(policy, added(several), sum(not one.misses.missed for one in several)) for policy, several in by_policy.items())
    return ranked(every, lambda row: row.policy, lambda row: row.all.bill.total_usd, _over)


def _over(row: _Row) -> bool:
    return overruns(row.all)


def _figure(found: Sequence[_Row], lead: str, ceiling: int) -> Drawn:
    parts = parts_of(tuple(row.all.bill for row in found))

    def cells(row: _Row) -> Cells:
        sure = wilson(row.unharmed, row.all.sessions)
        needs = row.all.misses
        return (
            as_bar(row.all.bill, parts),
            Bar((per_hundred(needs.routed, row.all), per_hundred(needs.lost, row.all))),
            Point(row.unharmed / row.all.sessions, sure.low, sure.high),
        )

    shows = f"Whole sessions under a ceiling of {tokens(ceiling)}"
    svg = rows(
        shows,
        f"{lead} Lines are Wilson 95 % intervals. Last, hollow: over the ceiling at a quarter of the calls or more.",
        (
            Panel(title="bill, USD", say=_dollars, inks=tuple((ink, name) for ink, name, _ in parts), weight=1.25),
            Panel(title="needs missed per 100 calls", say=_one, inks=HARMS),
            Panel(title="sessions with nothing missed", say=percent, top=1.0),
        ),
        as_rows(found, lambda row: row.policy, cells, _over),
    )
    return Drawn(f"whole-{tokens(ceiling)}", shows, svg)


def _dollars(amount: float) -> str:
    return f"{amount:,.0f}"


def _one(value: float) -> str:
    return decimal(value, 1)


def _table(found: Sequence[_Row]) -> Table:
    free = next((row.all.bill.total_usd for row in found if row.policy == "none"), 0.0)
    return Table(
        title="All sessions that pass it",
        head=(
            ":policy",
            ":source",
            "bill",
            "against none",
            "of it recalls",
            "were lost needs fetched again",
            "commits",
            "prefix breaks",
            "calls over the limit",
            "routed",
            "lost",
            "missed per 100 calls",
            "nothing missed (95 %)",
        ),
        rows=tuple(
            (
                row.policy,
                origin(row.policy).source,
                usd(row.all.bill.total_usd),
                change(row.all.bill.total_usd, free),
                usd(row.all.bill.recall.usd),
                usd(row.all.usd_again),
                count(row.all.commits),
                count(row.all.prefix_breaks),
                count(row.all.unmet),
                count(row.all.misses.routed),
                count(row.all.misses.lost),
                decimal(missed(row.all)),
                shared(row.unharmed, row.all.sessions),
            )
            for row in found
        ),
        note="*were lost needs fetched again*: the bill if each lost need had been read or run again. *calls over the limit*: nothing that was left "
        "to take would have brought the request under it; rules of others that act at thresholds of their own are over it often.",
    )


def _grouped(runs: Sequence[IsolatedRun], groups: Mapping[str, frozenset[str]]) -> Table:
    by_group = {
        name: {row.policy: row for row in _found(run for run in runs if run.source in members)}
        for name, members in groups.items()
    }
    filled = {name: found for name, found in by_group.items() if found}

    def told(found: Mapping[str, _Row], policy: str) -> str:
        if policy not in found or "none" not in found:
            return NOTHING
        one = found[policy].all
        return f"{change(one.bill.total_usd, found['none'].all.bill.total_usd)} · {decimal(missed(one))}"

    sizes = {name: max(row.all.sessions for row in found.values()) for name, found in filled.items()}
    return Table(
        title="By kind of work",
        head=(":policy", *(f"{name} ({sizes[name]})" for name in filled)),
        rows=tuple(
            (row.policy, *(told(found, row.policy) for found in filled.values())) for row in _found(runs) if row.policy != "none"
        ),
        note="Bill against no eviction · needs missed per 100 calls. In brackets: sessions. *hard*: those with the highest tool pressure.",
    )


def _hands_off(runs: Sequence[IsolatedRun], free: Mapping[str, Measured]) -> Table:
    """With a target and no ceiling the gate acts when it pays, so a session should never cost more."""
    groups: dict[tuple[str, int], list[IsolatedRun]] = {}
    for run in runs:
        groups.setdefault((run.policy, run.budget.target or 0), []).append(run)

    def row(policy: str, target: int, found: Sequence[IsolatedRun]) -> tuple[str, ...]:
        ratios = [_ratio(run, free) for run in found if run.source in free]
        all_ = added(run.measured for run in found)
        without = sum(free[run.source].bill.total_usd for run in found if run.source in free)
        return (
            policy,
            tokens(target),
            count(len(found)),
            count(sum(run.measured.commits > 0 for run in found)),
            change(all_.bill.total_usd, without),
            change(max(ratios, default=1.0), 1.0),
            count(sum(ratio > 1.01 for ratio in ratios)),
            decimal(missed(all_)),
        )

    return Table(
        title="With a target and no ceiling: every session, short ones too",
        head=(
            ":policy",
            "target",
            "sessions",
            "acted in",
            "bill of all",
            "dearest session",
            "over 1 % dearer",
            "missed per 100 calls",
        ),
        rows=tuple(row(policy, target, found) for (policy, target), found in sorted(groups.items())),
        note="Against no eviction, recalls included. The gate acts only when it pays by what it can know then.",
    )


def _goals(runs: Sequence[IsolatedRun], free: Mapping[str, Measured]) -> tuple[Goal, ...]:
    ratios = [_ratio(run, free) for run in runs if run.source in free]
    if not ratios:
        return ()
    targets = ", ".join(tokens(target) for target in sorted({run.budget.target or 0 for run in runs}))
    return (
        Goal(
            says=f"`{SUBJECT}`, each session alone with a target ({targets}) and no ceiling: never over 1 % dearer than no eviction",
            found=f"dearest {change(max(ratios), 1.0)}; {sum(ratio > 1.01 for ratio in ratios)} of {len(ratios)} over 1 %",
            is_met=max(ratios) <= 1.01,
        ),
    )


def _ratio(run: IsolatedRun, free: Mapping[str, Measured]) -> float:
    before = free[run.source].bill.total_usd
    return run.measured.bill.total_usd / before if before else 1.0


def written(runs: Sequence[IsolatedRun]) -> bytes:
    """One JSON line for each session and budget, by policy [USD, of it recalls, commits, visible, routed, lost, calls over the limit]."""
    places: dict[tuple[str, int | None, int | None], list[IsolatedRun]] = {}
    for run in runs:
        places.setdefault((run.source, run.budget.target, run.budget.ceiling), []).append(run)
    encode = msgspec.json.Encoder().encode
    return b"".join(
        encode(
            {
                "source": source,
                "target": target,
                "ceiling": ceiling,
                "calls": found[0].measured.calls,
                "tokens": found[0].measured.record_tokens,
                "policies": {run.policy: _numbers(run.measured) for run in found},
            }
        )
        + b"\n"
        for (source, target, ceiling), found in places.items()
    )


def _numbers(found: Measured) -> tuple[float, ...]:
    needs = found.misses
    return (
        round(found.bill.total_usd, 5),
        round(found.bill.recall.usd, 5),
        found.commits,
        needs.visible,
        needs.routed,
        needs.lost,
        found.unmet,
    )
