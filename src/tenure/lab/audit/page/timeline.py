"""The window call by call, as areas stacked by kind.

Heights are provider tokens, as budgets are. Each call is a step; of a thinned series a step lasts until the next call that was kept. What was
removed stands below, one stroke for each commit. A drawing stretches to the page's width, so words stand outside of what stretches. It is drawn
to the run's own scale; the script can draw it to the scale that all runs share.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.page.figures import count, rounded, tokens
from tenure.lab.audit.page.layers import Layers, Stacks, taken
from tenure.lab.audit.page.markup import Html, el
from tenure.lab.audit.removals import RECORDED
from tenure.lab.audit.report import Run
from tenure.lab.bill import limit_of

_HEIGHT: Final = 280  # pixels of the areas
_FINE: Final = 5  # steps of a pixel that a path can tell apart
_GROUND: Final = _HEIGHT * _FINE
_ABOVE: Final = -99_999  # higher than any scale reaches
_RAIL: Final = (290, 36)  # where the strokes of commits begin, and the longest, in pixels
_LEAST_STROKE: Final = 3
_FOOT: Final = 346  # baseline of the numbers of calls
_TICKS: Final = 6
_ROOM: Final = 1.08  # the upper edge of a drawing, as a multiple of what it must hold
_STEPS: Final = (10, 20, 25, 50, 100)  # of tenths: between round numbers
_LABEL_HEIGHT: Final = 17
_LABEL_CHAR: Final = 6.4  # pixels of a character
_NARROWEST: Final = 620  # pixels of the narrowest drawing that has words in it
_PLACES: Final = 80  # of a band that are tried for its name
_DRAWN_COMMITS: Final = 60  # more are strokes only, without a line through the areas


class Frame(Struct, frozen=True, kw_only=True):
    """What a drawing shows: so many calls, and so many provider tokens."""

    calls: int
    top: int

    def x(self, call: float) -> str:
        """Where a call is, as a share of the width."""
        return f"{100 * call / self.calls:.3f}%"

    def y(self, amount: float) -> float:
        """How high so many tokens stand, in pixels from above."""
        return _HEIGHT * (1 - amount / self.top)


def frame_of(run: Run, layers: Layers, calls: int) -> Frame:
    """The frame that holds a run's own window, and its limit where the window comes near it."""
    peak = max([*layers.totals, 1])
    limit = limit_of(run.budget)
    return Frame(calls=calls, top=top_of(limit if peak < limit < 1.5 * peak else peak))


def top_of(peak: int) -> int:
    """The upper edge of a drawing that holds so much."""
    return max(2, round(peak * _ROOM))


def timeline(run: Run, layers: Layers, stacks: Stacks, name: str) -> Html:
    """The drawing of one run; `name` says what it is to those who hear it."""
    frame = frame_of(run, layers, stacks.calls)
    strokes, through = _strokes(run), _through(run)
    recorded = stacks.recorded
    stretched = {"preserveAspectRatio": "none", "width": "100%"}
    areas = el(
        "svg",
        *_areas(layers, stacks, frame),
        el("path", class_="through", d=through),
        el("path", class_="outline", d=_steps(recorded.calls, recorded.totals, frame, closed=False)),
        class_="areas",
        viewBox=f"0 0 {frame.calls} {_GROUND}",
        height=str(_HEIGHT),
        **stretched,
    )
    rail = el("svg", *strokes, viewBox=f"0 0 {frame.calls} {_RAIL[1]}", y=str(_RAIL[0]), height=str(_RAIL[1]), **stretched)
    plot = el(
        "svg",
        el("rect", class_="ground", width="100%", height=str(_HEIGHT)),
        areas,
        el("g", *_grid(frame), class_="lines"),
        *_limit(run, frame),
        el("g", *_names(layers, stacks, frame), *_outlined(run, recorded, frame), class_="names"),
        rail,
        *_foot(frame),
        el("line", class_="cursor", x1="0", x2="0", y1="0", y2=str(_RAIL[0] + _RAIL[1])),
        class_="plot",
        role="img",
        aria_label=f"{name}: the window over {count(frame.calls, 'call')}, largest request {tokens(run.peak)} tokens,"
        f" {count(run.commits_made, 'commit')}.",
    )
    axis = el(
        "svg", el("g", *_numbers(frame)), el("text", "left", x="40", y=str(_RAIL[0] + 12)), class_="axis", aria_hidden="true"
    )
    return el("div", axis, plot, class_="drawing", data_own=str(frame.top), data_shared=str(top_of(stacks.peak)))


def _areas(layers: Layers, stacks: Stacks, frame: Frame) -> list[Html]:
    """The bands, each drawn down to the ground and the lower ones over it, so that only upper edges are told."""
    sums = [tuple(accumulate(row)) for row in layers.values]
    drawn: list[Html] = []
    for number in reversed(range(len(stacks.bands))):
        if any(row[number] for row in layers.values):
            path = _steps(layers.calls, [row[number] for row in sums], frame, closed=True)
            drawn.append(el("path", class_=stacks.bands[number].class_, d=path))
    return drawn


def _steps(calls: Sequence[int], amounts: Sequence[int], frame: Frame, *, closed: bool) -> str:
    """A path of steps, told by differences, which are short."""
    if not calls:
        return ""
    heights = [round(frame.y(amount) * _FINE) for amount in amounts]
    parts = [f"M{calls[0]} {_GROUND}v{heights[0] - _GROUND}" if closed else f"M{calls[0]} {heights[0]}"]
    across, height = calls[0], heights[0]
    for call, next_height in zip(calls[1:], heights[1:], strict=True):
        if next_height != height:
            parts.append(f"h{call - across}v{next_height - height}")
            across, height = call, next_height
    parts.append(f"H{frame.calls}V{_GROUND}z" if closed else f"H{frame.calls}")
    return "".join(parts)


def _strokes(run: Run) -> list[Html]:
    """What each commit removed, below the areas: the recorded agent's own, then the policy's."""
    largest = max([taken(commit) for commit in run.commits], default=0)
    drawn: dict[bool, list[str]] = {True: [], False: []}
    for commit in run.commits:
        share = max(0, taken(commit)) / max(1, largest)
        length = _LEAST_STROKE + round((_RAIL[1] - _LEAST_STROKE) * share)
        drawn[commit.moment == RECORDED].append(f"M{commit.before_call} 0v{length}")
    return [
        el("path", class_="strokes recorded" if own else "strokes", d="".join(paths)) for own, paths in drawn.items() if paths
    ]


def _through(run: Run) -> str:
    """Where commits fell, through the areas; nothing where they are too many, and none that came with a result's own birth."""
    calls = dict.fromkeys(commit.before_call for commit in run.commits if commit.moment != "admission")
    return "".join(f"M{call} {_GROUND}V{_ABOVE}" for call in calls) if len(calls) <= _DRAWN_COMMITS else ""


def _grid(frame: Frame) -> list[Html]:
    return [
        el("line", class_="grid-line", x2="100%", y1=f"{frame.y(at):.1f}", y2=f"{frame.y(at):.1f}") for at in ticks(frame.top)[1:]
    ]


def _numbers(frame: Frame) -> list[Html]:
    return [el("text", rounded(at) if at else "0", x="40", y=f"{frame.y(at) + 4:.1f}") for at in ticks(frame.top)]


def _foot(frame: Frame) -> list[Html]:
    """The calls, below the drawing."""
    return [
        el(
            "text",
            f"{at:,}" if at else "call 0",
            class_="middle" if at else "start",
            x=frame.x(at),
            y=str(_FOOT),
        )
        for at in ticks(frame.calls)
        if at < 0.96 * frame.calls
    ]


def _limit(run: Run, frame: Frame) -> list[Html]:
    """The level from which the policy may evict, where the drawing reaches it."""
    budget = run.budget
    limit = limit_of(budget)
    if limit > frame.top:
        return []
    name = "ceiling" if limit == budget.ceiling else "target" if limit == budget.target else "window"
    y = frame.y(limit)
    line = el("line", class_="limit", x2="100%", y1=f"{y:.1f}", y2=f"{y:.1f}")
    return [
        el(
            "g",
            line,
            el("text", f"{name} {rounded(limit)}", class_="end halo", x="100%", y=f"{y - 5:.1f}"),
            class_="bound",
            data_at=limit,
        )
    ]


def _outlined(run: Run, recorded: Layers, frame: Frame) -> list[Html]:
    """What the outline is, where it leaves the drawing or is highest."""
    if run.policy == UNBOUNDED or not recorded.calls:
        return []
    totals = recorded.totals
    out = next((at for at, total in enumerate(totals) if total > frame.top), None)
    at = recorded.fullest if out is None else out
    side = "end" if recorded.calls[at] > 0.6 * frame.calls else "start"
    words = "as recorded" if out is None else f"as recorded, up to {tokens(max(totals))}"
    y = 14.0 if out is not None else max(12.0, frame.y(totals[at]) - 7)
    offset = 0.006 * frame.calls * (-1 if side == "end" else 1)
    return [el("text", words, class_=f"halo {side}", x=frame.x(recorded.calls[at] + offset), y=f"{y:.1f}")]


def _names(layers: Layers, stacks: Stacks, frame: Frame) -> list[Html]:
    """The kinds' names where their bands are thick enough to hold them."""
    sums = [(0, *accumulate(row)) for row in layers.values]
    found: list[Html] = []
    for number, band in enumerate(stacks.bands):
        wide = len(band.label) * _LABEL_CHAR / _NARROWEST * frame.calls
        best = _roomiest(layers.calls, [row[number] for row in sums], [row[number + 1] for row in sums], wide, frame)
        if best is not None:
            found.append(el("text", band.label, class_="name middle", x=frame.x(best[0]), y=f"{best[1] + 4:.1f}"))
    return found


def _roomiest(
    calls: Sequence[int], lower: Sequence[int], upper: Sequence[int], wide: float, frame: Frame
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


def ticks(top: int) -> list[int]:
    """Round numbers from 0 to at most `top`, about five."""
    least = 10 * top / _TICKS
    power = 10 ** max(0, len(str(int(least))) - 2)
    step = next((step * power for step in _STEPS if step * power >= least), 100 * power)
    return list(range(0, top + 1, max(1, step // 10)))
