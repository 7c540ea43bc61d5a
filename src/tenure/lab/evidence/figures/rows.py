"""A figure with a row for each policy, and side by side what is known of it: bars of parts, or points with intervals."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from tenure.lab.evidence.figures.canvas import LARGE, NORMAL, SMALL, Canvas, Ink, width_of
from tenure.lab.evidence.figures.scale import Scale, Told, ticks

Whose = Literal["ours", "peer", "bound"]

WIDTH: Final = 880
_LINE: Final = 21
_EDGE: Final = 20
_GAP: Final = 44  # between panels
_BAR: Final = 11
_LEGEND: Final = 16  # a line of it


class Bar(Struct, frozen=True):
    """Parts one after another, in the order of the panel's inks; a faint one says less."""

    parts: tuple[float, ...]

    @property
    def reach(self) -> float:
        """Where it ends."""
        return sum(self.parts)


class Point(Struct, frozen=True):
    """A value with the interval in which it lies."""

    value: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """Where it ends."""
        return self.high


class Pair(Struct, frozen=True):
    """Two values of the same thing: of another, and of this row."""

    other: float
    own: float

    @property
    def reach(self) -> float:
        """Where it ends."""
        return max(self.other, self.own)


class Dots(Struct, frozen=True):
    """Single cases, and what they come to together."""

    values: tuple[float, ...]
    together: float

    @property
    def reach(self) -> float:
        """Where it ends."""
        return max((*self.values, self.together))


Cell = Bar | Point | Pair | Dots | None
Cells = tuple[Cell, ...]


class Row(Struct, frozen=True, kw_only=True):
    """One policy; `cells` go with the panels, None where nothing is known."""

    name: str
    whose: Whose
    cells: Cells
    less: bool = False  # it did not do the same work as the others, so its figures say less
    apart: bool = False  # a gap stands above it


class Panel(Struct, frozen=True, kw_only=True):
    """What is shown side by side; `inks` colour the parts of bars, and name them where they need a name."""

    title: str
    say: Told
    inks: tuple[tuple[Ink, str], ...] = ()
    top: float | None = None  # where the axis ends; None: as far as the rows reach
    low: float = 0.0  # where it begins, at 0 or below; what lies beyond stands at its ends
    mark: float | None = None  # a value to compare with
    weight: float = 1.0  # of its width


def rows(title: str, note: str, panels: Sequence[Panel], lines: Sequence[Row], told: str = "") -> str:
    """The figure."""
    canvas = Canvas()
    left = _EDGE + max([110.0, *(width_of(row.name) for row in lines)]) + 14
    widths = _widths(panels, WIDTH - left - _EDGE - 10)
    titles = [wrapped(panel.title, wide, NORMAL) for panel, wide in zip(panels, widths, strict=True)]
    legends = [_legend(panel, wide) for panel, wide in zip(panels, widths, strict=True)]
    named = _LEGEND * max(len(legend) for legend in legends)
    top = _head(canvas, title, note) + 18 + 15 * max(len(words) for words in titles) + named + 4
    height = sum(_LINE + (row.apart * _LINE // 2) for row in lines)
    places = _places(lines, top)
    for row, y in zip(lines, places, strict=True):
        canvas.rule(left, y + _LINE / 2, WIDTH - _EDGE - 10, y + _LINE / 2)
        ink: Ink = "ours" if row.whose == "ours" else "bound" if row.whose == "bound" else "ink"
        canvas.text(left - 12, y + 4, row.name, anchor="end", ink=ink, bold=row.whose == "ours")
    start = left
    for number, (panel, wide) in enumerate(zip(panels, widths, strict=True)):
        for place, words in enumerate(reversed(titles[number])):
            canvas.text(start, top - named - 10 - 15 * place, words, bold=True)
        for place, legend in enumerate(legends[number]):
            for x, ink, words in legend:
                canvas.bar(start + x, top - named + _LEGEND * place - 2, 9, 9, ink)
                canvas.text(start + x + 13, top - named + _LEGEND * place + 6, words, ink="faint", size=SMALL)
        cells = [row.cells[number] for row in lines]
        _panel(canvas, panel, cells, lines, places, (start, start + wide), (top, top + height))
        start += wide + _GAP
    return canvas.svg(WIDTH, int(top + height + 44), title, told or note)


def _widths(panels: Sequence[Panel], room: float) -> list[float]:
    share = (room - _GAP * (len(panels) - 1)) / sum(panel.weight for panel in panels)
    return [panel.weight * share for panel in panels]


def _legend(panel: Panel, wide: float) -> list[list[tuple[float, Ink, str]]]:
    """What its parts are called, in lines of its width, each with its place from the left."""
    lines: list[list[tuple[float, Ink, str]]] = []
    x = 0.0
    for ink, words in panel.inks:
        size = 13 + width_of(words, SMALL) + 9
        if not words:
            continue
        if not lines or x + size > wide + _GAP / 2:
            lines.append([])
            x = 0.0
        lines[-1].append((x, ink, words))
        x += size
    return lines


def _head(canvas: Canvas, title: str, note: str) -> float:
    """Title and note; returns where they end."""
    canvas.text(_EDGE, 30, title, size=LARGE, bold=True)
    y = 30.0
    for line in wrapped(note, WIDTH - 2 * _EDGE, NORMAL):
        y += 18
        canvas.text(_EDGE, y, line, ink="faint")
    return y


def _places(lines: Sequence[Row], top: float) -> list[float]:
    places: list[float] = []
    y = top
    for row in lines:
        y += row.apart * _LINE // 2
        places.append(y + _LINE / 2)
        y += _LINE
    return places


def _panel(
    canvas: Canvas,
    panel: Panel,
    cells: Sequence[Cell],
    lines: Sequence[Row],
    places: Sequence[float],
    across: tuple[float, float],
    down: tuple[float, float],
) -> None:
    start, stop = across
    room = 46.0 if panel.inks else 0.0  # for the number at the end of a bar
    reach = panel.top if panel.top is not None else max((cell.reach for cell in cells if cell), default=1.0)
    named = ticks(reach, 4 if stop - start > 220 else 3, panel.low)
    scale = Scale(low=named[0], high=named[-1], start=start, stop=stop - room)
    for value in named:
        x = scale.at(value)
        canvas.rule(x, down[0], x, down[1] + 4)
        canvas.text(x, down[1] + 19, panel.say(value), ink="faint", size=SMALL, anchor="middle")
    if panel.mark is not None:
        x = scale.at(panel.mark)
        canvas.stroke([(x, down[0] - 3), (x, down[1] + 3)], "ink", width=1, dash=1)
    for cell, row, y in zip(cells, lines, places, strict=True):
        match cell:
            case Bar():
                _bar(canvas, panel, cell, scale, y)
            case Point():
                _point(canvas, cell, row, scale, y)
            case Pair():
                canvas.stroke([(scale.at(cell.other), y), (scale.at(cell.own), y)], "faint", width=1)
                canvas.dot(scale.at(cell.other), y, "peer", hollow=True)
                canvas.dot(scale.at(cell.own), y, "ours")
            case Dots():
                for value in cell.values:
                    canvas.dot(scale.at(value), y, "peer", radius=3, hollow=True)
                canvas.dot(scale.at(cell.together), y, "ours", radius=4.5)
            case None:
                canvas.text(start + 4, y + 4, "–", ink="faint", size=SMALL)


def _bar(canvas: Canvas, panel: Panel, cell: Bar, scale: Scale, y: float) -> None:
    done = 0.0
    for (ink, _), part in zip(panel.inks, cell.parts, strict=True):
        x = scale.at(done)
        done += part
        canvas.bar(x, y - _BAR / 2, scale.at(done) - x, _BAR, ink)
    canvas.text(scale.at(done) + 5, y + 4, panel.say(done), size=SMALL, ink="ink")


def _point(canvas: Canvas, cell: Point, row: Row, scale: Scale, y: float) -> None:
    ink: Ink = "ours" if row.whose == "ours" else "bound" if row.whose == "bound" else "peer"
    canvas.stroke([(scale.at(cell.low), y), (scale.at(cell.high), y)], ink, width=2)
    canvas.dot(scale.at(cell.value), y, ink, hollow=row.less)


def wrapped(words: str, width: float, size: int) -> list[str]:
    """Words in lines of at most about that width."""
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
