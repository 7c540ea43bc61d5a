"""The window call by call, as areas stacked by kind: what a template needs to draw it as SVG.

Heights are provider tokens, as budgets are. Each call is a step; of a thinned series a step lasts until the next call that was kept. What was
removed stands below, one stroke for each commit. A drawing stretches to the page's width, so words stand outside of what stretches. It is drawn
to the run's own scale; the page's script can draw it to the scale that all runs share.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

from msgspec import Struct

from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.report import Audit, CommitSummary, PolicyRun, Series
from tenure.lab.audit.runs import RECORDED
from tenure.lab.audit.text import line, rounded, tokens
from tenure.lab.bill import limit_of
from tenure.lab.kinds import LABELS, RESIDUES

HEAD: Final = "head"
HEIGHT: Final = 280  # pixels of the areas
FINE: Final = 5  # steps of a pixel that a path can tell apart
RAIL: Final = (290, 36)  # where the strokes of commits begin, and the longest, in pixels

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
_LABELS: Final = {HEAD: "system prompt and tools", **LABELS}
_LABEL: Final = 48  # characters
_GROUND: Final = HEIGHT * FINE
_ABOVE: Final = -99_999  # higher than any scale reaches
_LEAST_STROKE: Final = 3
_TICKS: Final = 6
_ROOM: Final = 1.08  # the upper edge of a drawing, as a multiple of what it must hold
_STEPS: Final = (10, 20, 25, 50, 100)  # of tenths: between round numbers
_LABEL_HEIGHT: Final = 17
_LABEL_CHAR: Final = 6.4  # pixels of a character
_NARROWEST: Final = 620  # pixels of the narrowest drawing that has words in it
_PLACES: Final = 80  # of a band that are tried for its name
_DRAWN_COMMITS: Final = 60  # more are strokes only, without a line through the areas


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

    @property
    def fullest(self) -> int:
        """Where the largest request is, as a place in `calls`; there must be one."""
        totals = self.totals
        return max(range(len(totals)), key=totals.__getitem__)

    def at(self, call: int) -> int:
        """The request of the step that holds a call; 0 where there is none."""
        return sum(self.values[max(0, bisect_right(self.calls, call) - 1)]) if self.calls else 0


class Stacks(Struct, frozen=True, kw_only=True):
    """All runs of a session, in the order of their reports. The lowest band is the largest; what stands for what left is on top."""

    bands: tuple[Band, ...]
    calls: int
    recorded: Layers  # the recorded agent's own window
    runs: tuple[Layers, ...]

    @property
    def top(self) -> int:
        """The upper edge of a drawing that holds every run."""
        return _top_of(max((total for layers in (self.recorded, *self.runs) for total in layers.totals), default=0))


def stacks_of(audit: Audit, most: int) -> Stacks:
    """The drawings' data of a session, at most `most` steps each."""
    series, head = audit.window.series, audit.window.head.tokens
    bands = _bands(audit)
    return Stacks(
        bands=bands,
        calls=max(1, audit.session.calls, *(point.call + 1 for point in series.points[-1:])),
        recorded=_layers(series, bands, head, most),
        runs=tuple(_layers(run.series, bands, head, most) for run in audit.runs),
    )


def taken(commit: CommitSummary) -> int:
    """Provider tokens that a commit took, net of what stands in their stead."""
    return round((commit.tokens_before - commit.tokens_after) * commit.ratio)


def drawing(run: PolicyRun, layers: Layers, stacks: Stacks) -> dict[str, Any]:
    """The shapes and words of one run's drawing."""
    peak, limit = max([*layers.totals, 1]), limit_of(run.budget)
    name = "ceiling" if limit == run.budget.ceiling else "target" if limit == run.budget.target else "window"
    frame = _Frame(stacks.calls, _top_of(limit if peak < limit < 1.5 * peak else peak))
    sums = [(0, *accumulate(row)) for row in layers.values]
    # Each band is drawn down to the ground, and the lower ones over it, so that only upper edges are told.
    drawn = [number for number in range(len(stacks.bands)) if any(row[number] for row in layers.values)]
    areas = [
        (stacks.bands[number].class_, _steps(layers.calls, [row[number + 1] for row in sums], frame, closed=True))
        for number in reversed(drawn)
    ]
    commits = dict.fromkeys(commit.before_call for commit in run.commits if commit.moment != "admission")
    return {
        "calls": frame.calls,
        "top": frame.top,
        "areas": areas,
        # Where commits fell, unless they are too many to be told apart; not those that came with a result's own birth.
        "through": "".join(f"M{call} {_GROUND}V{_ABOVE}" for call in commits) if len(commits) <= _DRAWN_COMMITS else "",
        "outline": _steps(stacks.recorded.calls, stacks.recorded.totals, frame, closed=False),
        "grid": [(frame.y(at), rounded(at) if at else "0") for at in _ticks(frame.top)],
        "limit": (frame.y(limit), limit, f"{name} {rounded(limit)}") if limit <= frame.top else None,
        "names": _names(layers, sums, stacks.bands, frame),
        "outlined": _outlined(run, stacks.recorded, frame),
        "strokes": _strokes(run),
        "foot": [(frame.x(at), f"{at:,}" if at else "call 0") for at in _ticks(frame.calls) if at < 0.96 * frame.calls],
    }


class _Frame(Struct, frozen=True):
    """What a drawing shows: so many calls, and so many provider tokens."""

    calls: int
    top: int

    def x(self, call: float) -> str:
        """Where a call is, as a share of the width."""
        return f"{100 * call / self.calls:.3f}%"

    def y(self, amount: float) -> float:
        """How high so many tokens stand, in pixels from above."""
        return HEIGHT * (1 - amount / self.top)


def _top_of(peak: int) -> int:
    return max(2, round(peak * _ROOM))


def _bands(audit: Audit) -> tuple[Band, ...]:
    labels = {row.name: row.label for row in audit.window.by_kind.rows}
    names = dict.fromkeys([HEAD] if audit.window.head.tokens else [])
    for series in (audit.window.series, *(run.series for run in audit.runs)):
        names |= dict.fromkeys(name for name in series.kinds if name != RESIDUES)
    if any(RESIDUES in run.series.kinds for run in audit.runs):
        names[RESIDUES] = None
    return tuple(
        Band(
            name=name,
            label=line(labels.get(name) or _LABELS.get(name, name), _LABEL),
            class_=next((class_ for word, class_ in _CLASSES if word in name), "k-other"),
        )
        for name in names
    )


def _layers(series: Series, bands: Sequence[Band], head: int, most: int) -> Layers:
    """A series by the bands of its session; a call's tokens add up to what its kinds add up to, at the call's own ratio.

    At most `most` steps: of each stretch of equally many the one with the largest request, as the report has it.
    """
    places = {name: number for number, name in enumerate(series.kinds)}
    order = [places.get(band.name, -1) for band in bands]
    values: list[tuple[int, ...]] = []
    for point in series.points:
        row = [point.tokens[at] if 0 <= at < len(point.tokens) else 0 for at in order]
        if bands and bands[0].name == HEAD:
            row[0] = head
        reached = [round(size * point.ratio) for size in accumulate(row)]
        values.append(tuple(upper - lower for lower, upper in zip([0, *reached], reached, strict=False)))
    every = -(-len(values) // most)
    kept = [
        max(range(at, min(at + every, len(values))), key=lambda place: sum(values[place]))
        for at in range(0, len(values), every or 1)
    ]
    return Layers(calls=tuple(series.points[place].call for place in kept), values=tuple(values[place] for place in kept))


def _steps(calls: Sequence[int], amounts: Sequence[int], frame: _Frame, *, closed: bool) -> str:
    """A path of steps, told by differences, which are short."""
    if not calls:
        return ""
    heights = [round(frame.y(amount) * FINE) for amount in amounts]
    parts = [f"M{calls[0]} {_GROUND}v{heights[0] - _GROUND}" if closed else f"M{calls[0]} {heights[0]}"]
    across, height = calls[0], heights[0]
    for call, next_height in zip(calls[1:], heights[1:], strict=True):
        if next_height != height:
            parts.append(f"h{call - across}v{next_height - height}")
            across, height = call, next_height
    parts.append(f"H{frame.calls}V{_GROUND}z" if closed else f"H{frame.calls}")
    return "".join(parts)


def _strokes(run: PolicyRun) -> list[tuple[str, str]]:
    """What each commit removed, below the areas: the recorded agent's own, then the policy's."""
    largest = max([taken(commit) for commit in run.commits], default=0)
    drawn = {"strokes recorded": "", "strokes": ""}
    for commit in run.commits:
        share = max(0, taken(commit)) / max(1, largest)
        length = _LEAST_STROKE + round((RAIL[1] - _LEAST_STROKE) * share)
        drawn["strokes recorded" if commit.moment == RECORDED else "strokes"] += f"M{commit.before_call} 0v{length}"
    return [(class_, path) for class_, path in drawn.items() if path]


def _outlined(run: PolicyRun, recorded: Layers, frame: _Frame) -> tuple[str, float, str, str] | None:
    """Words on the outline, where it leaves the drawing or is highest: x, y, side, text."""
    if run.policy == UNBOUNDED or not recorded.calls:
        return None
    totals = recorded.totals
    out = next((at for at, total in enumerate(totals) if total > frame.top), None)
    at = recorded.fullest if out is None else out
    side = "end" if recorded.calls[at] > 0.6 * frame.calls else "start"
    words = "as recorded" if out is None else f"as recorded, up to {tokens(max(totals))}"
    y = 14.0 if out is not None else max(12.0, frame.y(totals[at]) - 7)
    limit = frame.y(limit_of(run.budget))
    if side == "end" and abs(y - limit) < _LABEL_HEIGHT:  # below the line whose own words stand above it
        y = limit + 14
    return frame.x(recorded.calls[at] + 0.006 * frame.calls * (-1 if side == "end" else 1)), y, side, words


def _names(layers: Layers, sums: Sequence[Sequence[int]], bands: Sequence[Band], frame: _Frame) -> list[tuple[str, float, str]]:
    """The kinds' names where their bands are thick enough to hold them: x, y, text."""
    found: list[tuple[str, float, str]] = []
    for number, band in enumerate(bands):
        wide = len(band.label) * _LABEL_CHAR / _NARROWEST * frame.calls
        best = _roomiest(layers.calls, [row[number] for row in sums], [row[number + 1] for row in sums], wide, frame)
        if best is not None:
            found.append((frame.x(best[0]), best[1] + 4, band.label))
    return found


def _roomiest(
    calls: Sequence[int], lower: Sequence[int], upper: Sequence[int], wide: float, frame: _Frame
) -> tuple[float, float] | None:
    """The middle of the thickest place of a band that is `wide` calls wide: its call, and its height in pixels."""
    stride = max(1, len(calls) // _PLACES)
    best, place = float(_LABEL_HEIGHT), None
    for start in range(0, len(calls), stride):
        if calls[start] + wide > frame.calls:
            break
        stop = start
        floor, roof = lower[start], upper[start]
        while stop < len(calls) and calls[stop] < calls[start] + wide:
            floor, roof = max(floor, lower[stop]), min(roof, upper[stop])
            stop += stride
        room = frame.y(floor) - frame.y(roof)
        if room > best:
            best, place = room, (calls[start] + wide / 2, (frame.y(floor) + frame.y(roof)) / 2)
    return place


def _ticks(top: int) -> list[int]:
    """Round numbers from 0 to at most `top`, about five."""
    least = 10 * top / _TICKS
    power = 10 ** max(0, len(str(int(least))) - 2)
    step = next((step * power for step in _STEPS if step * power >= least), 100 * power)
    return list(range(0, top + 1, max(1, step // 10)))
