"""A run's series as it is drawn: provider tokens by call and kind, alike for all runs of a session."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from tenure.lab.audit.page.markup import line
from tenure.lab.audit.report import Audit, Removal, Series
from tenure.lab.kinds import LABELS, RESIDUES

HEAD: Final = "head"

# What a kind is drawn as: the first word that its name holds decides.
_CLASSES: Final = (
    (HEAD, "k-head"),
    (RESIDUES, "k-residue"),
    ("results of bulk", "k-found"),
    ("results of durable", "k-wrote"),
    ("results", "k-read"),
    ("calls of bulk", "k-find"),
    ("calls of durable", "k-write"),
    ("calls", "k-call"),
    ("media", "k-media"),
    ("human", "k-human"),
    ("harness", "k-harness"),
    ("thinking", "k-thinking"),
    ("model", "k-model"),
)
_LABEL: Final = 48  # characters
_LABELS: Final = {HEAD: "system prompt and tools", **LABELS}


class Band(Struct, frozen=True, kw_only=True):
    """One kind as it is drawn."""

    name: str
    label: str
    class_: str


class Layers(Struct, frozen=True, kw_only=True):
    """A series: provider tokens by call and band."""

    calls: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]

    @property
    def totals(self) -> tuple[int, ...]:
        """The request at each call."""
        return tuple(sum(row) for row in self.values)

    def at(self, call: int) -> int:
        """The place of the step that holds a call."""
        return max(0, bisect_right(self.calls, call) - 1)

    @property
    def fullest(self) -> int:
        """Where the largest request is, as a place in `calls`; there must be one."""
        totals = self.totals
        return max(range(len(totals)), key=totals.__getitem__)


class Stacks(Struct, frozen=True, kw_only=True):
    """All runs of a session, in the order of their reports. The lowest band is the largest; what stands for what left is on top."""

    bands: tuple[Band, ...]
    calls: int
    recorded: Layers  # the recorded agent's own window
    runs: tuple[Layers, ...]

    @property
    def peak(self) -> int:
        """The largest request of any run."""
        return max((total for layers in (self.recorded, *self.runs) for total in layers.totals), default=0)


def stacks_of(audit: Audit, most: int) -> Stacks:
    """The drawings' data of a session, at most `most` steps each."""
    series = audit.window.series
    bands = _bands(audit)
    head = audit.window.head.tokens
    return Stacks(
        bands=bands,
        calls=max(1, audit.session.calls, *(point.call + 1 for point in series.points[-1:])),
        recorded=_layers(series, bands, head, most),
        runs=tuple(_layers(run.series, bands, head, most) for run in audit.runs),
    )


def taken(commit: Removal) -> int:
    """Provider tokens that a commit took, net of what stands in their stead."""
    return round((commit.tokens_before - commit.tokens_after) * commit.ratio)


def _bands(audit: Audit) -> tuple[Band, ...]:
    labels = {row.name: row.label for row in audit.window.by_kind.rows}
    names = dict.fromkeys([HEAD] if audit.window.head.tokens else [])
    for series in (audit.window.series, *(run.series for run in audit.runs)):
        names |= dict.fromkeys(name for name in series.kinds if name != RESIDUES)
    if any(RESIDUES in run.series.kinds for run in audit.runs):
        names[RESIDUES] = None
    return tuple(
        Band(name=name, label=line(labels.get(name) or _LABELS.get(name, name), _LABEL), class_=_class_of(name)) for name in names
    )


def _layers(series: Series, bands: Sequence[Band], head: int, most: int) -> Layers:
    """A series by the bands of its session; a call's tokens add up to what its kinds add up to, at the call's own ratio."""
    places = {name: number for number, name in enumerate(series.kinds)}
    order = [places.get(band.name, -1) for band in bands]
    values: list[tuple[int, ...]] = []
    for point in series.points:
        told = [point.tokens[at] if 0 <= at < len(point.tokens) else 0 for at in order]
        if bands and bands[0].name == HEAD:
            told[0] = head
        reached = [round(tokens * point.ratio) for tokens in accumulate(told)]
        values.append(tuple(upper - lower for lower, upper in zip([0, *reached], reached, strict=False)))
    return _thinned([point.call for point in series.points], values, most)


def _thinned(calls: Sequence[int], values: Sequence[tuple[int, ...]], most: int) -> Layers:
    """At most `most` steps: of each stretch of equally many the one with the largest request, as the report has it."""
    every = -(-len(calls) // most)
    kept = [
        max(range(at, min(at + every, len(calls))), key=lambda place: sum(values[place]))
        for at in range(0, len(calls), every or 1)
    ]
    return Layers(calls=tuple(calls[place] for place in kept), values=tuple(values[place] for place in kept))


def _class_of(name: str) -> str:
    return next((class_ for word, class_ in _CLASSES if word in name), "k-other")
