"""Charts as Vega-Lite values, in one theme for light and dark: SVG for documents, inlined and interactive for pages.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, in a light and a dark tone. A chart is drawn in the light tones; a style
sheet beside it maps each of them to its dark one where the reader prefers that. Nothing is loaded from anywhere.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final

import altair as alt
import vl_convert
from msgspec import Struct

WIDTH: Final = 860  # pixels

# By what they stand for, light and dark: words and scales; whose a policy is; what became of a need; parts of a bill; kinds to tell apart.
TONES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ground": ("#ffffff", "#0d1117"),
        "rule": ("#e4e8ec", "#262c34"),
        "ink": ("#1f2328", "#e6edf3"),
        "faint": ("#656d76", "#9198a1"),
        "ours": ("#0072b2", "#56b4e9"),
        "bound": ("#009e73", "#2bc79b"),
        "peer": ("#7d8590", "#8b949e"),
        "routed": ("#f0c05a", "#8f6f22"),
        "lost": ("#c34a00", "#ff8a50"),
        "read": ("#9ecbe8", "#2f6f95"),
        "write": ("#0072b3", "#56b4ea"),
        "uncached": ("#7d8591", "#8b949f"),
        "output": ("#009e74", "#2bc79c"),
        "recall": ("#e69f00", "#e6a93b"),
        "helpers": ("#cc79a7", "#dd9cc0"),
        "a": ("#0072b4", "#56b4eb"),
        "b": ("#c34a01", "#ff8a51"),
        "c": ("#007a5a", "#2bc79d"),
        "d": ("#a8558a", "#dd9cc1"),
        "e": ("#8a6d00", "#d9b93b"),
    }
)
_FONT: Final = "-apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans','DejaVu Sans',Helvetica,Arial,sans-serif"

_DASHES: Final = ([1, 0], [6, 3], [2, 3])  # whole, dashed, dotted

Chart = dict[str, Any]  # a Vega-Lite specification


class Panel(Struct, frozen=True, kw_only=True):
    """One of the plots beside each other that share their rows.

    `kind` says what its fields are: the parts of a bar; a value with its interval (`low`, `high`); a value of this row beside another's; one
    value with the single cases it comes of, a list.
    """

    title: str
    kind: str  # bar, point, pair, dots
    fields: tuple[str, ...]
    format: str  # of its axis, as d3 has it
    inks: tuple[tuple[str, str], ...] = ()  # of the parts of a bar: tone and name; an empty name has no legend
    domain: tuple[float, float] | None = None  # None: from 0 as far as the rows reach
    mark: float | None = None  # a value to compare with
    weight: float = 1.0  # of its width


def tone(name: str) -> str:
    """The colour of that name, as charts are drawn."""
    return TONES[name][0]


def theme() -> Chart:
    """What all charts look like."""
    words = {"labelFont": _FONT, "titleFont": _FONT, "labelColor": tone("faint"), "titleColor": tone("faint")}
    return {
        "background": tone("ground"),
        "font": _FONT,
        "padding": 18,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "color": tone("ink"),
            "subtitleColor": tone("faint"),
            "fontSize": 15,
            "subtitleFontSize": 12,
        },
        "axis": {
            **words,
            "gridColor": tone("rule"),
            "domainColor": tone("rule"),
            "tickColor": tone("rule"),
            "titleFontWeight": 400,
        },
        "legend": {**words, "title": None, "orient": "top", "symbolType": "square", "padding": 0, "offset": 4},
        "concat": {"spacing": 34},
    }


def rows(title: str, note: str, panels: Sequence[Panel], lines: Sequence[Mapping[str, object]]) -> Chart:
    """A row for each line (`name`, `whose`, `less` where it did less than the others), and in each panel what its fields hold."""
    room = (WIDTH - 200 - 34 * (len(panels) - 1)) / sum(panel.weight for panel in panels)
    order = [str(line["name"]) for line in lines]
    shown = [_panel(panel, order, int(room * panel.weight), is_first=panel is panels[0]) for panel in panels]
    data = alt.InlineData(values=[dict(line) for line in lines])
    return _finished(alt.hconcat(*shown, data=data), title, note)


def _panel(panel: Panel, order: Sequence[str], width: int, *, is_first: bool) -> Any:
    scale = alt.Scale(domain=panel.domain, clamp=True, nice=False) if panel.domain else alt.Scale(zero=True)
    axis = alt.Axis(
        labels=is_first, ticks=False, domain=False, grid=True, labelLimit=180, labelFontSize=12, labelColor=tone("ink")
    )
    y = alt.Y("name:N", sort=list(order), title=None, axis=axis)
    whose = ("ours", "peer", "bound")
    hue = alt.Color("whose:N", legend=None, scale=alt.Scale(domain=whose, range=[tone(each) for each in whose]))

    def x(field: str) -> Any:
        return alt.X(f"{field}:Q", title=None, scale=scale, axis=alt.Axis(format=panel.format, grid=False, tickCount=4))

    def line(start: str, stop: str, color: Any) -> Any:
        return alt.Chart().mark_rule(strokeWidth=2).encode(x=x(start), x2=stop, y=y, color=color)

    def point(field: str, look: Any, size: int = 55) -> Any:
        tips = ["name:N", *(alt.Tooltip(f"{each}:Q", format=panel.format) for each in panel.fields)]
        return alt.Chart().mark_point(opacity=1, strokeWidth=1.5, size=size, **look).encode(x=x(field), y=y, tooltip=tips)

    solid, hollow = {"fill": tone("ours"), "stroke": tone("ours")}, {"fill": tone("ground"), "stroke": tone("peer")}
    match panel.kind, panel.fields:
        case "point", (value, low, high):
            fill = alt.condition("datum.less", alt.value(tone("ground")), hue)
            layers = [line(low, high, hue), point(value, {}).encode(stroke=hue, fill=fill)]
        case "pair", (own, other):
            layers = [line(other, own, alt.value(tone("faint"))), point(other, hollow), point(own, solid)]
        case "dots", (together, cases):
            layers = [point(cases, hollow, 30).transform_flatten([cases]), point(together, solid, 65)]
        case _:
            layers = _bar(panel, x, y)
    if panel.mark is not None:
        at = alt.Chart(alt.InlineData(values=[{"mark": panel.mark}]))
        layers.append(at.mark_rule(color=tone("ink"), strokeDash=[6, 3]).encode(x=x("mark")))
    return alt.layer(*layers).properties(width=width, height=alt.Step(21), title=alt.TitleParams(panel.title, fontSize=12))


def _bar(panel: Panel, x: Callable[[str], Any], y: Any) -> list[Any]:
    """The parts one after another, and at their end what they come to."""
    names = [name or field for field, (_, name) in zip(panel.fields, panel.inks, strict=True)]
    inks = alt.Scale(domain=names, range=[tone(ink) for ink, _ in panel.inks])
    legend = alt.Legend(columns=3, title=None) if any(name for _, name in panel.inks) else None
    fields = json.dumps(list(panel.fields))
    parts = (
        alt.Chart()
        .transform_fold(list(panel.fields), as_=["field", "value"])
        .transform_calculate(place=f"indexof({fields}, datum.field)", part=f"{json.dumps(names)}[indexof({fields}, datum.field)]")
        .mark_bar(height=11)
        .encode(
            x=x("value"),
            y=y,
            color=alt.Color("part:N", scale=inks, sort=names, legend=legend),
            order="place:Q",
            tooltip=["name:N", "part:N", alt.Tooltip("value:Q", format=panel.format)],
        )
    )
    whole = alt.Chart().transform_calculate(whole=" + ".join(f"datum.{field}" for field in panel.fields))
    text = alt.Text("whole:Q", format=panel.format)
    return [parts, whole.mark_text(align="left", dx=4, fontSize=11, color=tone("ink")).encode(x=x("whole"), y=y, text=text)]


class Axis(Struct, frozen=True, kw_only=True):
    """What runs along an edge; `values` are those that are named on it, `by_factor` makes equal factors equally wide."""

    title: str
    format: str
    values: tuple[float, ...] = ()
    by_factor: bool = False


class Plot(Struct, frozen=True, kw_only=True):
    """Lines over two axes; `points` are dicts of `name`, `x`, `y`, and each line has a tone and a dash by its name."""

    x: Axis
    y: Axis
    points: Sequence[Mapping[str, object]]
    inks: Mapping[str, tuple[str, int]]
    title: str = ""


def curves(title: str, note: str, plots: Sequence[Plot]) -> Chart:
    """A line for each name, in plots beside each other."""
    room = (WIDTH - 40 - 60 * len(plots)) // len(plots)
    return _finished(alt.hconcat(*(_plot(plot, room) for plot in plots)), title, note)


def _plot(plot: Plot, width: int) -> Any:
    def edge(axis: Axis, *, grid: bool) -> Any:
        scale = alt.Scale(type="log", nice=not axis.values) if axis.by_factor else alt.Scale(zero=True)
        if axis.values:
            scale.domain = [min(axis.values), max(axis.values)]
        shown = alt.Axis(format=axis.format, grid=grid, labelOverlap=True)
        if axis.values:
            shown.values = list(axis.values)
        return {"title": axis.title, "scale": scale, "axis": shown}

    names = list(plot.inks)
    color = alt.Scale(domain=names, range=[tone(ink) for ink, _ in plot.inks.values()])
    dash = alt.Scale(domain=names, range=[_DASHES[number % len(_DASHES)] for _, number in plot.inks.values()])
    legend = alt.Legend(columns=3, symbolType="stroke", title=None)
    base = alt.Chart(alt.InlineData(values=[dict(point) for point in plot.points])).encode(
        x=alt.X("x:Q", **edge(plot.x, grid=False)),
        y=alt.Y("y:Q", **edge(plot.y, grid=True)),
        color=alt.Color("name:N", scale=color, legend=legend),
        strokeDash=alt.StrokeDash("name:N", scale=dash, legend=legend),
    )
    lines = base.mark_line(strokeWidth=2)
    dots = base.mark_point(filled=True, opacity=1, size=28).encode(tooltip=["name:N", "x:Q", "y:Q"])
    return alt.layer(lines, dots).properties(width=width, height=290, title=alt.TitleParams(plot.title, fontSize=12))


def _finished(chart: Any, title: str, note: str) -> Chart:
    named = chart.resolve_scale(color="independent", strokeDash="independent").properties(
        title=alt.TitleParams(title, subtitle=wrap(note, 130))
    )
    return {**named.to_dict(), "config": theme(), "description": note}


def svg(chart: Chart) -> str:
    """A chart as a document of its own, for light and dark. The same chart gives the same bytes."""
    drawn = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    head, _, rest = drawn.partition(">")
    title, note = escape(str(chart["title"]["text"])), escape(str(chart["description"]))
    return f'{head} role="img" aria-label="{title}"><title>{title}</title><desc>{note}</desc><style>{STYLE}</style>{rest}\n'


# Maps the tones of a drawn chart to their dark ones.
STYLE: Final = (
    "@media(prefers-color-scheme:dark){"
    + "".join(f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in TONES.values())
    + "}"
)
