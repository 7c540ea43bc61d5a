"""All sessions of a corpus one after another in long conversations, beside summary compaction and beside each session alone."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tenure.lab.events import AccumulatingRun, IsolatedRun, Measured, Misses
from tenure.lab.evidence.figures.rows import Bar, Cells, Panel, rows
from tenure.lab.evidence.jobs import CEILING
from tenure.lab.evidence.origins import SUBJECT, origin
from tenure.lab.evidence.page import NOTHING, Drawn, Goal, Section, Table, change, count, decimal, several, tokens, usd
from tenure.lab.evidence.sections.money import HARMS, as_bar, missed, overruns, parts_of, per_hundred
from tenure.lab.evidence.sections.ranked import as_rows, ranked
from tenure.lab.protocols.measured import added

NAME: Final = "accumulating"
SAYS: Final = ("nothing", "brief", "names")  # what summaries say, least first
ALONE: Final = "each session alone"
SHOWS: Final = (
    "What it shows: an agent that never restarts, all sessions of the corpus as tasks of one conversation under one ceiling, project by project; a "
    "conversation ends where the words of its people, which no policy takes, would fill it. *Own* needs are of what the task itself held, "
    "*across* of what only earlier tasks held, *dependent* those of tasks that it builds on by the names they share. Compaction pays for its "
    "summaries; what they say is bounded from below (*nothing*) and from above (*names*: as many names as fit). What it does not show: the "
    "recorded agents never saw the tasks before theirs, so a need across tasks is one that could have been answered from there, not one that was."
)


class _Row(Struct, frozen=True, kw_only=True):
    """A policy, or a compaction, over all conversations."""

    name: str
    source: str
    all: Measured
    own: Misses = Misses()
    across: Misses = Misses()
    dependent: Misses = Misses()


def section(runs: Sequence[AccumulatingRun], alone: Sequence[IsolatedRun], ceiling: int = CEILING) -> Section:
    """The section; `runs` are whole corpora, `alone` the sessions under no eviction."""
    found = _rows(runs, alone, ceiling)
    tasks, conversations = _sizes(runs)
    free = next((row.all for row in found if row.name == "none"), None)
    size = f", {free.record_tokens / 1e6:.1f} million tokens, {count(free.calls)} calls" if free else ""
    lead = f"{several(tasks, 'task')} in {several(conversations, 'conversation')}{size}, under a ceiling of {tokens(ceiling)} tokens."
    parts: list[Drawn | Table | str] = []
    if found:
        parts += [_figure(found, lead, ceiling), _table(found), _needs(found)]
    duels = _duels(found)
    parts += [_against(duels)] if duels else []
    return Section(
        name=NAME,
        title="The single accumulating session",
        lead=lead,
        shows=SHOWS,
        parts=tuple(parts),
        rows=written(runs),
        goals=_goals(duels),
    )


def _sizes(runs: Sequence[AccumulatingRun]) -> tuple[int, int]:
    if not runs:
        return 0, 0
    return len(runs[0].tasks), len({task.conversation for task in runs[0].tasks})


def named(run: AccumulatingRun) -> str:
    """What the row of a run is called: a compaction by where it acts and what its summaries say."""
    return f"{run.policy} at {tokens(run.budget.ceiling)}, {run.variant}" if run.variant else run.policy


def _rows(runs: Sequence[AccumulatingRun], alone: Sequence[IsolatedRun], ceiling: int) -> list[_Row]:
    found = [
        _Row(
            name=named(run),
            source=origin(named(run)).source,
            all=run.measured,
            own=run.own,
            across=run.across,
            dependent=run.dependent,
        )
        for run in runs
        if run.variant or run.policy == "none" or run.budget.ceiling == ceiling
    ]
    if alone:
        found.append(_Row(name=ALONE, source="no eviction, no earlier task", all=added(run.measured for run in alone)))
    return ranked(found, lambda row: row.name, lambda row: row.all.bill.total_usd, _over)


def _over(row: _Row) -> bool:
    return overruns(row.all)


def _figure(found: Sequence[_Row], lead: str, ceiling: int) -> Drawn:
    # without eviction a bill is so large that beside it no other could be read: it is told in words
    shown = [row for row in found if row.name != "none"]
    free = next((row.all.bill.total_usd for row in found if row.name == "none"), None)
    parts = parts_of(tuple(row.all.bill for row in shown))
    kept = max([row.all.bill.total_usd for row in shown if not _over(row)], default=None)
    is_cut = kept is not None and any(row.all.bill.total_usd > kept for row in shown)

    def cells(row: _Row) -> Cells:
        return (
            as_bar(row.all.bill, parts),
            Bar((per_hundred(row.own.routed, row.all), per_hundred(row.own.lost, row.all))),
            Bar((per_hundred(row.across.routed, row.all), per_hundred(row.across.lost, row.all))),
        )

    shows = f"The single accumulating session under {tokens(ceiling)}"
    svg = rows(
        shows,
        f"{lead} {f'Without any eviction the bill would be {usd(free)}. ' if free is not None else ''}"
        "Last: over the ceiling at a quarter of the calls or more."
        f"{' Bars that reach the edge are cut; their numbers are not.' if is_cut else ''}",
        (
            Panel(title="bill, USD", say=_dollars, top=kept, inks=tuple((ink, name) for ink, name, _ in parts), weight=1.25),
            Panel(title="own needs missed per 100 calls", say=_one, inks=HARMS),
            Panel(title="needs across tasks missed per 100 calls", say=_one, inks=HARMS),
        ),
        as_rows(shown, lambda row: row.name, cells, _over),
    )
    return Drawn("accumulating", shows, svg)


def _dollars(amount: float) -> str:
    return f"{amount:,.0f}"


def _one(value: float) -> str:
    return decimal(value, 1)


def _table(found: Sequence[_Row]) -> Table:
    free = next((row.all.bill.total_usd for row in found if row.name == "none"), 0.0)
    return Table(
        title="Bills",
        head=(
            ":policy",
            ":source",
            "bill",
            "against none",
            "reads",
            "writes",
            "output",
            "recalls",
            "helpers",
            "mean request",
            "commits",
            "prefix breaks",
            "calls over the limit",
        ),
        rows=tuple(
            (
                row.name,
                row.source,
                usd(row.all.bill.total_usd),
                change(row.all.bill.total_usd, free),
                usd(row.all.bill.cache_read.usd),
                usd(row.all.bill.cache_write.usd + row.all.bill.uncached.usd),
                usd(row.all.bill.output.usd),
                usd(row.all.bill.recall.usd),
                usd(row.all.bill.helpers_usd),
                count(round(row.all.mean_view_tokens)),
                count(row.all.commits),
                count(row.all.prefix_breaks),
                count(row.all.unmet),
            )
            for row in found
        ),
    )


def _needs(found: Sequence[_Row]) -> Table:
    return Table(
        title="Needs missed",
        head=(
            ":policy",
            "per 100 calls",
            "own, routed",
            "own, lost",
            "across, routed",
            "across, lost",
            "dependent, routed",
            "dependent, lost",
        ),
        rows=tuple(
            (
                row.name,
                decimal(missed(row.all)),
                *(count(value) for needs in (row.own, row.across, row.dependent) for value in (needs.routed, needs.lost)),
            )
            for row in found
            if row.name not in (ALONE, "none")
        ),
        note="*dependent* needs are among those across tasks.",
    )


class _Duel(Struct, frozen=True, kw_only=True):
    """A policy beside compaction at 80k whose summaries say so much; bill and misses as shares of that one's."""

    policy: str
    says: str
    bill: float
    missed: float
    late_missed: float | None  # as a share of those of compaction at 167k

    @property
    def is_met(self) -> bool:
        """No dearer, half the misses."""
        return self.bill <= 1 and self.missed <= 0.5

    @property
    def is_stretched(self) -> bool:
        """No dearer, no more misses than compaction at 167k."""
        return self.bill <= 1 and self.late_missed is not None and self.late_missed <= 1


def _duels(found: Sequence[_Row]) -> list[_Duel]:
    summaries = {row.name: row.all for row in found if row.name.startswith("compaction")}
    duels: list[_Duel] = []
    for row in found:
        for says in SAYS if origin(row.name).whose == "ours" else ():
            early, late = summaries.get(f"compaction at 80k, {says}"), summaries.get(f"compaction at 167k, {says}")
            if early is not None and early.misses.missed:
                duels.append(
                    _Duel(
                        policy=row.name,
                        says=says,
                        bill=row.all.bill.total_usd / early.bill.total_usd,
                        missed=row.all.misses.missed / early.misses.missed,
                        late_missed=row.all.misses.missed / late.misses.missed if late and late.misses.missed else None,
                    )
                )
    return duels


def _against(duels: Sequence[_Duel]) -> Table:
    return Table(
        title="Against compaction at 80k",
        head=(
            ":policy",
            ":its summaries say",
            "bill, times",
            "needs missed, times",
            ":no dearer, half the misses",
            "misses against 167k, times",
            ":no dearer, no more misses than at 167k",
        ),
        rows=tuple(
            (
                duel.policy,
                duel.says,
                decimal(duel.bill),
                decimal(duel.missed),
                "yes" if duel.is_met else "no",
                decimal(duel.late_missed) if duel.late_missed is not None else NOTHING,
                "yes" if duel.is_stretched else "no",
            )
            for duel in duels
        ),
    )


def _goals(duels: Sequence[_Duel]) -> tuple[Goal, ...]:
    goals: list[Goal] = []
    for duel in duels:
        if duel.policy == SUBJECT and duel.says == "brief":
            where = f"`{SUBJECT}` in the accumulating session, against summary compaction at 80k"
            bill = f"bill {decimal(duel.bill)} times"
            goals.append(
                Goal(
                    says=f"{where}: no dearer, half the misses",
                    found=f"{bill}, misses {decimal(duel.missed)} times",
                    is_met=duel.is_met,
                )
            )
            if duel.late_missed is not None:
                goals.append(
                    Goal(
                        says=f"{where}: no dearer, and no more misses than at 167k (stretch)",
                        found=f"{bill}, misses {decimal(duel.late_missed)} times",
                        is_met=duel.is_stretched,
                    )
                )
    return tuple(goals)


def written(runs: Sequence[AccumulatingRun]) -> bytes:
    """One JSON line for each run: its sums, without what single tasks missed."""
    encode = msgspec.json.Encoder().encode
    return b"".join(encode(msgspec.structs.replace(run, tasks=())) + b"\n" for run in runs)
