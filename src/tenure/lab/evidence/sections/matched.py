"""Cuts where a policy takes just as much as another one took there: few rules take exactly the share that they are told to take."""

from collections.abc import Sequence

from msgspec import Struct

from tenure.lab.events import CutLine
from tenure.lab.evidence.figures.rows import Pair, Panel, Row, rows
from tenure.lab.evidence.origins import order, origin
from tenure.lab.evidence.page import NOTHING, Drawn, Table, count, decimal, percent, shared
from tenure.lab.intervals import sign_test


class Duel(Struct, frozen=True, kw_only=True):
    """One policy at the shares of another, over the cuts at which that one took anything."""

    policy: str
    other: str
    cuts: int
    pruned: float  # mean share, of the other
    own_pruned: float
    own_missed: int
    other_missed: int
    own_untouched: int  # cuts after which nothing was missed
    other_untouched: int
    better: int  # cuts at which fewer needs were missed than by the other
    worse: int


def matched(lines: Sequence[CutLine]) -> list[Drawn | Table]:
    """A figure and a table for each policy that was matched."""
    found = duels(lines)
    parts: list[Drawn | Table] = []
    for policy in dict.fromkeys(duel.policy for duel in found):
        mine = sorted(
            (duel for duel in found if duel.policy == policy), key=lambda duel: (order(duel.other), -duel.pruned, duel.other)
        )
        parts += [_figure(policy, mine), _table(policy, mine)]
    return parts


def duels(lines: Sequence[CutLine]) -> list[Duel]:
    """Every pair, in the order in which they first appear."""
    theirs = {(line.source, line.cut, line.policy, line.pruned): line for line in lines if not line.matched}
    pairs: dict[tuple[str, str], list[tuple[CutLine, CutLine]]] = {}
    for line in lines:
        other = theirs.get((line.source, line.cut, line.matched, line.target)) if line.matched else None
        if other is not None:
            pairs.setdefault((line.policy, line.matched), []).append((line, other))
    return [
        Duel(
            policy=policy,
            other=name,
            cuts=len(met),
            pruned=sum(other.pruned for _, other in met) / len(met),
            own_pruned=sum(own.pruned for own, _ in met) / len(met),
            own_missed=sum(own.missed for own, _ in met),
            other_missed=sum(other.missed for _, other in met),
            own_untouched=sum(not own.missed for own, _ in met),
            other_untouched=sum(not other.missed for _, other in met),
            better=sum(own.missed < other.missed for own, other in met),
            worse=sum(own.missed > other.missed for own, other in met),
        )
        for (policy, name), met in pairs.items()
    ]


def _figure(policy: str, found: Sequence[Duel]) -> Drawn:
    lines = [
        Row(
            name=duel.other,
            whose=origin(duel.other).whose,
            apart=number > 0 and order(duel.other) != order(found[number - 1].other),
            cells=(
                Pair(duel.other_missed / duel.cuts, duel.own_missed / duel.cuts),
                Pair(duel.other_untouched / duel.cuts, duel.own_untouched / duel.cuts),
                Pair(duel.pruned, duel.own_pruned),
            ),
        )
        for number, duel in enumerate(found)
    ]
    shows = f"{policy} at the shares that others took"
    note = (
        f"At each cut {policy} (filled) is told to take just what the policy of the row (hollow) took there. Cuts at which that one took nothing are "
        "left out."
    )
    panels = (
        Panel(title="needs missed per cut", say=lambda value: decimal(value, 1)),
        Panel(title="cuts with nothing missed", say=percent, top=1.0),
        Panel(title="share of tokens pruned", say=percent, top=1.0),
    )
    return Drawn(f"cuts-{policy}-matched", shows, rows(shows, note, panels, lines))


def _table(policy: str, found: Sequence[Duel]) -> Table:
    return Table(
        title=f"{policy} at the shares that others took",
        head=(
            ":other",
            "cuts",
            "other pruned",
            f"{policy} pruned",
            "other missed per cut",
            f"{policy} missed per cut",
            "times",
            "fewer at",
            "more at",
            "by chance",
            "other nothing missed (95 %)",
            f"{policy} nothing missed (95 %)",
        ),
        rows=tuple(
            (
                duel.other,
                count(duel.cuts),
                percent(duel.pruned, 1),
                percent(duel.own_pruned, 1),
                decimal(duel.other_missed / duel.cuts),
                decimal(duel.own_missed / duel.cuts),
                decimal(duel.own_missed / duel.other_missed) if duel.other_missed else NOTHING,
                count(duel.better),
                count(duel.worse),
                decimal(sign_test(duel.better, duel.worse), 3),
                shared(duel.other_untouched, duel.cuts),
                shared(duel.own_untouched, duel.cuts),
            )
            for duel in found
        ),
        note=f"*times*: misses of {policy} over those of the other. *fewer at*, *more at*: cuts at which it missed fewer needs, or more. *by chance*: how likely "
        "a split at least this uneven is between equals (exact sign test; cuts of one session are not independent, so take it as a hint).",
    )
