"""What any policy is up against: how long ago needs were last held, by what, and how much of that was kept for nothing."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tenure.lab.events import AgeBand, Curves
from tenure.lab.evidence.figures.canvas import Ink
from tenure.lab.evidence.figures.curves import Axis, Plot, Series
from tenure.lab.evidence.figures.curves import curves as drawn
from tenure.lab.evidence.figures.rows import Bar, Panel, Row, rows
from tenure.lab.evidence.page import Drawn, Section, Table, count, decimal, percent, several, tokens
from tenure.lab.protocols.curves import KEPT, STEP_BANDS, merged

NAME: Final = "bounds"
SHOWS: Final = (
    "What it shows: the needs of every later step, whatever a policy does. *Missed* at k tokens: the share of needs whose newest holder lies further "
    "back than the newest k tokens of the record, so it is what the simplest window of that size misses. By kind: what fills the window, and what of "
    "it is needed. What it does not show: needs that only reasoning used, and how much a step could have done without. How near a policy "
    "that sees only the past comes to one that knows the future is in [cuts](cuts.md)."
)
_KINDS: Final = 12  # rows of the figure; the table has all
_ENOUGH: Final = 50  # needs of a group that is drawn, or of a kind
_LEAST: Final = 0.001  # of a share that is drawn
KINDS_OF_INK: Final[tuple[Ink, ...]] = ("a", "b", "c", "d", "e")
_AXIS: Final = (1_000, 4_000, 16_000, 64_000, 240_000)  # of KEPT, those that are named


def section(by_source: Mapping[str, Curves], groups: Mapping[str, frozenset[str]]) -> Section:
    """The section; `groups` are names of sessions by what their group is called."""
    whole = merged(by_source.values())
    by_group = {name: merged(found for source, found in by_source.items() if source in names) for name, names in groups.items()}
    filled = {name: found for name, found in by_group.items() if found.needs}
    large = {name: found for name, found in filled.items() if found.needs >= _ENOUGH}
    lead = f"{count(whole.needs)} needs of {count(whole.steps)} steps in {several(whole.sessions, 'session')}, {count(whole.tokens)} tokens."
    return Section(
        name=NAME,
        title="Bounds: what is needed, how old it is, and what holds it",
        lead=lead,
        shows=SHOWS,
        parts=(
            _reach(whole, large, lead),
            _reach_table(whole, filled),
            _kinds(whole),
            _kind_table(whole),
            _ages(whole),
            _age_table(whole),
        ),
        rows=_written(by_source),
    )


def _reach(whole: Curves, groups: Mapping[str, Curves], lead: str) -> Drawn:
    def points(found: Curves) -> tuple[tuple[float, float], ...]:
        return tuple((float(reach.kept), reach.share) for reach in found.reach if reach.share >= _LEAST)

    shows = "Miss-ratio curves of context"
    x = Axis(
        title="newest tokens of the record that are shown",
        say=lambda value: tokens(int(value)),
        named=tuple(float(kept) for kept in KEPT if kept in _AXIS),
        by_factor=True,
    )
    y = Axis(title="share of needs missed", say=_percent, named=(_LEAST, 0.01, 0.1, 1.0), by_factor=True)
    largest = sorted(groups, key=lambda name: (-groups[name].needs, name))[: len(KINDS_OF_INK)]
    others = (
        Series(name=f"{name} ({groups[name].needs:,})", points=points(groups[name]), ink=ink)
        for ink, name in zip(KINDS_OF_INK, largest, strict=False)
    )
    series = (Series(name="all sessions", points=points(whole), ink="ink"), *others)
    note = f"{lead} In brackets: needs. A line ends where nothing is missed any more."
    return Drawn("bounds-reach", shows, drawn(shows, note, (Plot(x=x, y=y, series=series),)))


def _percent(value: float) -> str:
    return percent(value, 0 if value >= 0.01 else 1)


def _reach_table(whole: Curves, groups: Mapping[str, Curves]) -> Table:
    every = {"all": whole, **groups}
    return Table(
        title="Needs missed when only the newest tokens are shown",
        head=("newest tokens", *every),
        rows=tuple(
            (tokens(kept), *(percent(found.reach[number].share, 1) for found in every.values()))
            for number, kept in enumerate(KEPT)
        ),
    )


def _kinds(whole: Curves) -> Drawn:
    shows = "What fills the record, and what of it is needed"
    lines = [
        Row(
            name=row.kind, whose="peer", cells=(Bar((row.share_of_tokens,)), Bar((row.share_of_needs,)), Bar((row.per_thousand,)))
        )
        for row in whole.by_kind[:_KINDS]
    ]
    panels = (
        Panel(title="share of tokens", say=percent, inks=(("uncached", ""),)),
        Panel(title="share of needs", say=percent, inks=(("write", ""),)),
        Panel(title="needs per 1,000 tokens", say=lambda value: decimal(value, 1), inks=(("write", ""),)),
    )
    note = "By kind of block; a need is counted where it was last held. Kinds with the most tokens."
    return Drawn("bounds-kinds", shows, rows(shows, note, panels, lines))


def _kind_table(whole: Curves) -> Table:
    return Table(
        title="By kind",
        head=(":kind", "tokens", "share", "needs", "share", "per 1,000 tokens", "held by nothing else"),
        rows=tuple(
            (
                row.kind,
                count(row.tokens),
                percent(row.share_of_tokens, 1),
                count(row.needs),
                percent(row.share_of_needs, 1),
                decimal(row.per_thousand),
                count(row.sole),
            )
            for row in whole.by_kind
        ),
    )


def _ages(whole: Curves) -> Drawn:
    shows = "How needs fade with age"
    kinds = [row for row in whole.by_kind if row.needs >= _ENOUGH][: len(KINDS_OF_INK)]

    def points(bands: Sequence[AgeBand]) -> tuple[tuple[float, float], ...]:
        return tuple((float(band.start), band.per_million) for band in bands if band.token_steps and band.per_million)

    series = (
        Series(name="all", points=points(whole.by_steps), ink="ink"),
        *(Series(name=row.kind, points=points(row.bands), ink=ink) for ink, row in zip(KINDS_OF_INK, kinds, strict=False)),
    )
    x = Axis(
        title="age: replies of the model since it was last held",
        say=lambda value: f"{value:.0f}",
        named=tuple(map(float, STEP_BANDS)),
        by_factor=True,
    )
    values = [value for each in series for _, value in each.points]
    y = Axis(
        title="needs per million tokens held for one step", say=lambda value: f"{value:,g}", named=_powers(values), by_factor=True
    )
    note = "Each point stands for ages from there to the next. The kinds with the most tokens among those that are needed at all."
    return Drawn("bounds-ages", shows, drawn(shows, note, (Plot(x=x, y=y, series=series),)))


def _powers(values: Sequence[float]) -> tuple[float, ...]:
    """Powers of ten around them."""
    powers = [10.0**power for power in range(-3, 7)]
    low = max((power for power in powers if power <= min(values, default=1.0)), default=powers[0])
    high = min((power for power in powers if power >= max(values, default=10.0)), default=powers[-1])
    return tuple(power for power in powers if low <= power <= max(high, low * 10))


def _age_table(whole: Curves) -> Table:
    def told(title: str, bands: Sequence[AgeBand]) -> list[tuple[str, ...]]:
        return [
            (f"{title}, {_span(band)}", count(band.needs), decimal(band.token_steps / 1e6, 1), decimal(band.per_million))
            for band in bands
        ]

    return Table(
        title="By age",
        head=(":age of the newest holder", "needs", "million token-steps", "needs per million"),
        rows=(*told("replies", whole.by_steps), *told("tokens", whole.by_tokens)),
        note="A token-step is one token that stood in the record while one step was made.",
    )


def _span(band: AgeBand) -> str:
    if band.stop is None:
        return f"{count(band.start)} and more"
    return count(band.start) if band.stop == band.start + 1 else f"{count(band.start)} to {count(band.stop - 1)}"


def _written(by_source: Mapping[str, Curves]) -> bytes:
    """One JSON line for each session: the needs that are missed at each size, and needs and tokens by kind."""
    encode = msgspec.json.Encoder().encode
    return b"".join(
        encode(
            {
                "source": source,
                "steps": found.steps,
                "tokens": found.tokens,
                "needs": found.needs,
                "missed": {str(reach.kept): reach.missed for reach in found.reach},
                "kinds": {row.kind: (row.tokens, row.needs, row.sole) for row in found.by_kind},
            }
        )
        + b"\n"
        for source, found in by_source.items()
    )
