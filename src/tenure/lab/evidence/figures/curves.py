"""A figure with a line for each series, named at its end; several plots stand side by side."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tenure.lab.evidence.figures.canvas import LARGE, NORMAL, SMALL, Canvas, Ink, width_of
from tenure.lab.evidence.figures.rows import WIDTH, wrapped
from tenure.lab.evidence.figures.scale import Scale, Told, apart, factors, ticks

_EDGE: Final = 20
_GAP: Final = 26
_AXIS: Final = 44  # for the numbers beside a plot
_HIGH: Final = 290
_FEW: Final = 14  # points of a line that are drawn as dots too


class Series(Struct, frozen=True, kw_only=True):
    """Points from left to right; a series of one point is a dot."""

    name: str
    points: tuple[tuple[float, float], ...]
    ink: Ink = "peer"
    dash: int = 0


class Axis(Struct, frozen=True, kw_only=True):
    """What runs along an edge. `named` are the values that stand there; None: round ones, from 0 unless equal factors are equally wide."""

    title: str
    say: Told
    named: tuple[float, ...] | None = None
    by_factor: bool = False
    mark: float | None = None  # a value to compare with


class Plot(Struct, frozen=True, kw_only=True):
    """Lines over the same two axes."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    title: str = ""


def curves(title: str, note: str, plots: Sequence[Plot], told: str = "") -> str:
    """The figure."""
    canvas = Canvas()
    canvas.text(_EDGE, 30, title, size=LARGE, bold=True)
    top = 30.0
    for line in wrapped(note, WIDTH - 2 * _EDGE, NORMAL):
        top += 18
        canvas.text(_EDGE, top, line, ink="faint")
    top += 64 if any(plot.title for plot in plots) else 44
    wide = (WIDTH - 2 * _EDGE - _GAP * (len(plots) - 1)) / len(plots)
    for number, plot in enumerate(plots):
        start = _EDGE + number * (wide + _GAP)
        _plot(canvas, plot, start, start + wide, top, top + _HIGH)
    return canvas.svg(WIDTH, int(top + _HIGH + 54), title, told or note)


def _plot(canvas: Canvas, plot: Plot, left: float, right: float, top: float, bottom: float) -> None:
    drawn = [each for each in plot.series if each.points]
    label = max([40.0, *(width_of(each.name) for each in drawn)]) + 14
    across = _scale(plot.x, [point[0] for each in drawn for point in each.points], left + _AXIS, right - label)
    up = _scale(plot.y, [point[1] for each in drawn for point in each.points], bottom, top)
    if plot.title:
        canvas.text(left, top - 36, plot.title, bold=True)
    _axes(canvas, plot, left, across, up)
    for each in sorted(drawn, key=lambda series: (series.ink in ("ours", "ink"), series.ink != "peer")):  # what matters on top
        if len(each.points) > 1:
            canvas.stroke([(across.at(px), up.at(py)) for px, py in each.points], each.ink, width=2, dash=each.dash)
        for px, py in each.points if len(each.points) <= _FEW else ():
            canvas.dot(across.at(px), up.at(py), each.ink, radius=3)
    ends = apart([up.at(each.points[-1][1]) for each in drawn], 15, top, bottom)
    for each, place in zip(drawn, ends, strict=True):
        last, here = across.at(each.points[-1][0]), up.at(each.points[-1][1])
        if abs(place - here) > 3 or last < across.stop - 1:
            canvas.rule(last + 5, here, across.stop + 8, place)
        ink: Ink = "ink" if each.ink == "peer" else each.ink
        canvas.text(across.stop + 11, place + 4, each.name, ink=ink, bold=each.ink == "ours")


def _scale(axis: Axis, values: Sequence[float], start: float, stop: float) -> Scale:
    named = _named(axis, values)
    return Scale(low=min(named), high=max(named), start=start, stop=stop, by_factor=axis.by_factor)


def _named(axis: Axis, values: Sequence[float]) -> tuple[float, ...]:
    if axis.named:
        return axis.named
    every = [*values, *((axis.mark,) if axis.mark is not None else ())]
    if axis.by_factor:
        above = [value for value in every if value > 0] or [1.0]
        return factors(min(above), max(above))
    return ticks(max([0.0, *every]))


def _axes(canvas: Canvas, plot: Plot, left: float, across: Scale, up: Scale) -> None:
    x, y = plot.x, plot.y
    xs = [point[0] for each in plot.series for point in each.points]
    ys = [point[1] for each in plot.series for point in each.points]
    canvas.text(left, up.stop - 16, y.title, size=SMALL, ink="faint")
    for value in _named(y, ys):
        place = up.at(value)
        canvas.rule(across.start, place, across.stop, place)
        canvas.text(across.start - 8, place + 4, y.say(value), ink="faint", size=SMALL, anchor="end")
    for value in _named(x, xs):
        place = across.at(value)
        canvas.rule(place, up.start, place, up.start + 5)
        canvas.text(place, up.start + 20, x.say(value), ink="faint", size=SMALL, anchor="middle")
    canvas.text((across.start + across.stop) / 2, up.start + 40, x.title, size=SMALL, ink="faint", anchor="middle")
    if y.mark is not None:
        canvas.stroke([(across.start, up.at(y.mark)), (across.stop, up.at(y.mark))], "ink", width=1, dash=1)
