"""Charts: a value that is drawn alike everywhere, in light and dark, and that asks nobody for anything."""

import re
from xml.etree import ElementTree

import pytest

from tenure.lab.report.charts import TONES, Axis, Chart, Panel, Plot, curves, rows, svg

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>"&]]>'
PANELS = (
    Panel(
        title="missed",
        kind="bar",
        fields=("routed", "lost"),
        format=".1f",
        inks=(("routed", "one recall away"), ("lost", "lost")),
    ),
    Panel(title="untouched", kind="point", fields=("value", "low", "high"), format=".0%", domain=(0, 1), mark=0.5),
    Panel(title="beside", kind="pair", fields=("own", "other"), format=".1f"),
    Panel(title="error", kind="dots", fields=("together", "cases"), format="+.0%", domain=(-0.6, 0.6)),
)
LINE: dict[str, object] = {
    "routed": 1.0,
    "lost": 2.0,
    "value": 0.5,
    "low": 0.4,
    "high": 0.6,
    "own": 1.0,
    "other": 2.0,
    "together": 0.1,
    "cases": [-0.5, 3.0],
}
ROWS = [{"name": name, "whose": whose, "less": whose == "peer", **LINE} for name, whose in (("us", "ours"), (HOSTILE, "peer"))]
PLOT = Plot(
    x=Axis(title="ceiling", format="~s", values=(50_000, 160_000), by_factor=True),
    y=Axis(title="USD", format="~g"),
    points=[{"name": "us", "x": 50_000, "y": 20}, {"name": "us", "x": 160_000, "y": 40}],
    inks={"us": ("ours", 0)},
)  # fmt: skip


@pytest.fixture(params=["rows", "curves"])
def chart(request: pytest.FixtureRequest) -> Chart:
    return (
        rows("Two policies", "What they missed.", PANELS, ROWS)
        if request.param == "rows"
        else curves("A sweep", "", (PLOT, PLOT))
    )


def test_a_chart_is_drawn_alike_for_both_lights_and_loads_nothing(chart: Chart) -> None:
    drawn = svg(chart)
    assert drawn == svg(chart)
    root = ElementTree.fromstring(drawn)
    assert root.find(f"{SVG}title") is not None
    assert "prefers-color-scheme:dark" in drawn
    assert not re.search(r"href=|url\(|<script|<image", drawn)


def test_every_colour_of_a_chart_has_a_dark_one(chart: Chart) -> None:
    drawn = svg(chart).partition("</style>")[2]
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', drawn))
    assert used <= {light for light, _ in TONES.values()}
    assert len({light for light, _ in TONES.values()}) == len(TONES)


def test_names_are_no_markup() -> None:
    drawn = svg(rows(HOSTILE, HOSTILE, PANELS, ROWS))
    assert [text.text for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")].count(HOSTILE) >= 3


def test_what_did_less_is_hollow() -> None:
    (point,) = PANELS[1:2]
    drawn = svg(rows("", "", (point,), ROWS))
    assert drawn.count(f'fill="{TONES["ground"][0]}"') > svg(
        rows("", "", (point,), [{**line, "less": False} for line in ROWS])
    ).count(f'fill="{TONES["ground"][0]}"')
