"""Cut-point replay: every policy prunes the same view by the same share, and the recorded future says what it needed of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from tenure.lab.cuts import Outcome, outcomes
from tenure.lab.events import CutLine
from tenure.lab.evidence.figures.rows import Bar, Cells, Panel, Point, rows
from tenure.lab.evidence.jobs import PRUNE
from tenure.lab.evidence.origins import SUBJECT, origin
from tenure.lab.evidence.page import NOTHING, Drawn, Goal, Section, Table, count, decimal, percent, several, shared
from tenure.lab.evidence.sections.matched import duels, matched
from tenure.lab.evidence.sections.money import HARMS
from tenure.lab.evidence.sections.ranked import as_rows, ranked
from tenure.lab.intervals import wilson
from tenure.lab.oracles import LINES

NAME: Final = "cuts"
_NEAR: Final = 0.1  # of a share
SHOWS: Final = (
    "What it shows: at the same places of the same sessions, for about the same tokens, how often a later step reached for something that the policy "
    "had taken. *Routed* needs are one recall away, *lost* ones had no visible way back. What it does not show: what an agent would have done "
    "without them. A recorded agent took its next step with everything in view; one that misses something may read it again, or do without. A "
    "policy that took less than its share (*short*) had less to miss; the oracles know the future and bound what any policy can do."
)


def section(lines: Sequence[CutLine], groups: Mapping[str, frozenset[str]]) -> Section:
    """The section; `groups` are names of sessions by what their group is called."""
    same = [line for line in lines if not line.matched]
    by_target = {target: [line for line in same if line.target == target] for target in _targets(same)}
    parts: list[Drawn | Table | str] = []
    for target, found in by_target.items():
        parts += [_figure(found, target), _table(found, target)]
    parts += matched(lines)
    parts += [_grouped(found, target, groups) for target, found in by_target.items()]
    return Section(
        name=NAME,
        title="Cut-point replay at equal prune targets",
        lead=_lead(same),
        shows=SHOWS,
        parts=tuple(parts),
        rows=written(lines),
        goals=(*_goals(by_target.get(PRUNE, ())), *_matched_goals(lines)),
    )


def _targets(lines: Sequence[CutLine]) -> list[float]:
    """The one of the goals first."""
    return sorted({line.target for line in lines}, key=lambda target: (target != PRUNE, target))


def _lead(lines: Sequence[CutLine]) -> str:
    sessions, places = len({line.source for line in lines}), len({(line.source, line.cut) for line in lines})
    return f"{several(places, 'cut')} of {several(sessions, 'session')}; sessions of fewer than 12 calls and views under 8,000 tokens are not cut."


def _best_first(lines: Iterable[CutLine]) -> list[Outcome]:
    return ranked(outcomes(lines), lambda found: found.policy, _missed, _took_less)


def _took_less(found: Outcome) -> bool:
    return found.short * 4 >= found.cuts and origin(found.policy).whose != "bound"


def _missed(found: Outcome) -> float:
    return (found.routed + found.lost) / found.cuts


def _figure(lines: Sequence[CutLine], target: float) -> Drawn:
    def cells(found: Outcome) -> Cells:
        sure = wilson(found.untouched, found.cuts)
        return (
            Bar((found.routed / found.cuts, found.lost / found.cuts)),
            Point(found.no_impact, sure.low, sure.high),
            Point(found.pruned, found.pruned, found.pruned),
        )

    shows = f"Cut-point replay, {percent(target)} pruned"
    svg = rows(
        shows,
        f"{_lead(lines)} Lines are Wilson 95 % intervals. Hollow points, below: less than nine tenths of the share at a quarter of the cuts or more.",
        (
            Panel(title="needs missed per cut", say=_one, inks=HARMS),
            Panel(title="cuts with nothing missed", say=percent, top=1.0),
            Panel(title="share of tokens pruned", say=percent, top=1.0, mark=target),
        ),
        as_rows(_best_first(lines), lambda found: found.policy, cells, _took_less),
    )
    return Drawn(f"cuts-{target * 100:.0f}", shows, svg)


def _goals(lines: Sequence[CutLine]) -> tuple[Goal, ...]:
    found = {each.policy: each for each in outcomes(lines)}
    mine, bound = found.get(SUBJECT), found.get(LINES)
    others = [
        each
        for each in found.values()
        if each.policy != SUBJECT and origin(each.policy).whose != "bound" and not _took_less(each)
    ]
    if mine is None:
        return ()
    goals: list[Goal] = []
    where = f"`{SUBJECT}`, {percent(PRUNE)} pruned at a cut"
    if others:
        best = min(others, key=lambda each: (_missed(each), each.policy))
        goals.append(
            Goal(
                says=f"{where}: at most half the misses of the best other policy",
                found=f"{decimal(_missed(mine))} a cut against {decimal(_missed(best))} of {best.policy}",
                is_met=_missed(mine) <= 0.5 * _missed(best),
            )
        )
    if bound is not None:
        goals.append(
            Goal(
                says=f"{where}: at most 1.3 times the misses of the partial-keeping oracle",
                found=f"{decimal(_missed(mine))} a cut against {decimal(_missed(bound))}",
                is_met=_missed(mine) <= 1.3 * _missed(bound),
            )
        )
        goals.append(
            Goal(
                says=f"{where}: nothing missed at a share of cuts within 5 points of that oracle's",
                found=f"{percent(mine.no_impact)} against {percent(bound.no_impact)}",
                is_met=mine.no_impact >= bound.no_impact - 0.05,
            )
        )
    lost = mine.lost / mine.needs if mine.needs else 0.0
    goals.append(
        Goal(
            says=f"{where}: under 1 % of the touched needs lost without a route",
            found=percent(lost, 1),
            is_met=lost < 0.01,
        )
    )
    return tuple(goals)


def _matched_goals(lines: Sequence[CutLine]) -> tuple[Goal, ...]:
    """Against each other policy at its own share, where that is near the one of the goals."""
    near = [duel for duel in duels(lines) if duel.policy == SUBJECT and abs(duel.pruned - PRUNE) <= _NEAR and duel.other_missed]
    if not near:
        return ()
    worst = max(near, key=lambda duel: (duel.own_missed / duel.other_missed, duel.other))
    times = worst.own_missed / worst.other_missed
    return (
        Goal(
            says=f"`{SUBJECT}`, at the very share that each other policy took ({percent(PRUNE - _NEAR)} to {percent(PRUNE + _NEAR)} in the mean): "
            "at most half its misses",
            found=f"worst of {several(len(near), 'other')}: {decimal(times)} times those of {worst.other}",
            is_met=times <= 0.5,
        ),
    )


def _one(value: float) -> str:
    return decimal(value, 1)


def _table(lines: Sequence[CutLine], target: float) -> Table:
    return Table(
        title=f"{percent(target)} to be pruned",
        head=(
            ":policy",
            ":source",
            "cuts",
            "pruned",
            "short",
            "needs",
            "routed",
            "lost",
            "missed per cut",
            "nothing missed (95 %)",
        ),
        rows=tuple(
            (
                found.policy,
                origin(found.policy).source,
                count(found.cuts),
                percent(found.pruned, 1),
                count(found.short),
                count(found.needs),
                count(found.routed),
                count(found.lost),
                decimal(_missed(found)),
                shared(found.untouched, found.cuts),
            )
            for found in _best_first(lines)
        ),
        note="*short*: cuts at which less than nine tenths of the share left. *needs*: later uses of something that was touched, also where it is "
        "still visible elsewhere.",
    )


def _grouped(lines: Sequence[CutLine], target: float, groups: Mapping[str, frozenset[str]]) -> Table:
    """Missed per cut and the share of cuts without, by group of sessions."""
    by_group = {
        name: {found.policy: found for found in outcomes(line for line in lines if line.source in members)}
        for name, members in groups.items()
    }
    filled = [name for name, found in by_group.items() if found]

    def told(name: str, policy: str) -> str:
        found = by_group[name].get(policy)
        return f"{decimal(_missed(found))} · {percent(found.no_impact)}" if found else NOTHING

    cuts = {name: max(found.cuts for found in by_group[name].values()) for name in filled}
    return Table(
        title=f"By kind of work, {percent(target)} to be pruned",
        head=(":policy", *(f"{name} ({cuts[name]})" for name in filled)),
        rows=tuple((found.policy, *(told(name, found.policy) for name in filled)) for found in _best_first(lines)),
        note="Needs missed per cut · cuts with nothing missed. In brackets: cuts. *hard*: the sessions with the highest tool pressure.",
    )


def written(lines: Sequence[CutLine]) -> bytes:
    """One JSON line for each cut and share: what is the same for all policies, then by policy [pruned, visible, routed, lost].

    Under `matched` the same of what took just as much as each policy took, by its name and then by that policy.
    """
    places: dict[tuple[str, int], list[CutLine]] = {}
    for line in lines:
        places.setdefault((line.source, line.cut), []).append(line)
    encode = msgspec.json.Encoder().encode
    told: list[bytes] = []
    for (source, cut), found in places.items():
        first = found[0]
        beside: dict[str, dict[str, tuple[float, int, int, int]]] = {}
        for line in found:
            if line.matched:
                beside.setdefault(line.policy, {})[line.matched] = _numbers(line)
        told.append(
            encode(
                {
                    "source": source,
                    "cut": cut,
                    "before_call": first.before_call,
                    "entries": first.entries,
                    "tokens": first.tokens,
                    "targets": {
                        f"{target:g}": {
                            line.policy: _numbers(line) for line in found if not line.matched and line.target == target
                        }
                        for target in sorted({line.target for line in found if not line.matched})
                    },
                    "matched": beside,
                }
            )
        )
    return b"".join(line + b"\n" for line in told)


def _numbers(line: CutLine) -> tuple[float, int, int, int]:
    return round(line.pruned, 4), line.visible, line.routed, line.lost
