"""Figures: the same bytes for the same values, well-formed, and no word of one standing on a word of another."""

import re
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.lab.evidence.figures.canvas import SMALL, Canvas, width_of
from tenure.lab.evidence.figures.curves import Axis, Plot, Series, curves
from tenure.lab.evidence.figures.rows import WIDTH, Bar, Dots, Pair, Panel, Point, Row, rows, wrapped
from tenure.lab.evidence.figures.scale import Scale, apart, factors, ticks

SVG = "{http://www.w3.org/2000/svg}"
PANELS = (
    Panel(title="needs missed per cut", say="{:.1f}".format, inks=(("routed", "one recall away"), ("lost", "lost"))),
    Panel(title="cuts with nothing missed", say="{:.0%}".format, top=1.0, mark=0.5),
    Panel(title="error", say="{:+.0%}".format, low=-0.6, top=0.6),
)
ROWS = (
    Row(name="oracle", whose="bound", cells=(Bar((0.0, 0.1)), Point(0.9, 0.8, 0.95), Dots((-0.5, 0.2, 3.0), 0.1))),
    Row(name="ours", whose="ours", cells=(Bar((1.5, 1.0)), Point(0.5, 0.4, 0.6), Pair(0.1, -0.2)), apart=True),
    Row(name="theirs", whose="peer", cells=(Bar((0.0, 4.0)), Point(0.2, 0.1, 0.3), None), less=True, apart=True),
)
PLOT = Plot(
    title="bill",
    x=Axis(title="ceiling", say="{:,.0f}".format, named=(50_000, 80_000, 160_000), by_factor=True),
    y=Axis(title="USD", say="{:g}".format, by_factor=True),
    series=(
        Series(name="ours", points=((50_000, 20), (80_000, 40), (160_000, 80)), ink="ours"),
        Series(name="theirs", points=((50_000, 21), (80_000, 41), (160_000, 81)), dash=1),
        Series(name="once", points=((80_000, 30),)),
        Series(name="never", points=()),
    ),
)


def drawn() -> str:
    return rows("Three policies", "What they missed.", PANELS, ROWS)


def words(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{SVG}text"))


def test_a_figure_of_rows_looks_as_it_did(golden: Callable[[str, str], None]) -> None:
    golden("evidence-rows.svg", drawn())


def test_a_figure_of_curves_looks_as_it_did(golden: Callable[[str, str], None]) -> None:
    golden("evidence-curves.svg", curves("A sweep", "Two policies.", (PLOT, PLOT)))


@pytest.mark.parametrize("svg", [drawn(), curves("A sweep", "Two policies.", (PLOT,))])
def test_a_figure_says_what_it_is_in_both_lights_and_asks_nobody_for_anything(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"href|url\(|<script|<image|\bid=", svg.replace('xmlns="http://www.w3.org/2000/svg"', ""))


@pytest.mark.parametrize("svg", [drawn(), curves("A sweep", "Two policies.", (PLOT, PLOT))])
def test_words_of_a_figure_stand_inside_it_and_apart(svg: str) -> None:
    boxes = []
    for text in words(svg):
        wide = 0.85 * width_of(text.text or "", int(text.get("font-size", "12")))
        x, y = float(text.get("x", "0")), float(text.get("y", "0"))
        left = x - {"end": wide, "middle": wide / 2}.get(text.get("text-anchor", ""), 0.0)
        boxes.append((left, left + wide, y - 8, y, text.text))
    assert [box for box in boxes if box[0] < 0 or box[1] > WIDTH] == []
    pairs = [
        (one[4], other[4])
        for n, one in enumerate(boxes)
        for other in boxes[:n]
        if one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
    ]
    assert pairs == []


def test_names_are_no_markup() -> None:
    hostile = '<script>"&]]>'
    svg = rows(hostile, hostile, PANELS[:1], [Row(name=hostile, whose="peer", cells=(Bar((1.0, 1.0)),))])
    assert [text.text for text in words(svg)].count(hostile) == 3


def test_what_did_less_is_hollow() -> None:
    root = ElementTree.fromstring(drawn())
    hollow = [circle for circle in root.iter(f"{SVG}circle") if "hollow" in circle.get("class", "") and circle.get("r") == "4"]
    assert len(hollow) == 2  # of the row that did less, and of the other in a pair


@given(st.floats(0.001, 1e9), st.integers(2, 6))
def test_an_axis_names_round_values_from_nought_to_beyond_the_highest(high: float, about: int) -> None:
    named = ticks(high, about)
    assert named[0] == 0
    assert named[-2] <= high * (1 + 1e-6)
    assert named[-1] >= high * (1 - 1e-6)
    assert len(named) <= 2 * about + 2


@given(st.floats(0.01, 1e6), st.floats(1, 1e4))
def test_an_axis_of_factors_holds_all_values_between_round_ones(low: float, times: float) -> None:
    named = factors(low, low * times)
    assert named[0] <= low * (1 + 1e-6)
    assert named[-1] >= low * times * (1 - 1e-6)
    assert len(named) >= 2


@given(st.lists(st.floats(0, 300), max_size=12))
def test_labels_are_put_apart_in_their_order_and_stay_where_there_is_room(places: list[float]) -> None:
    moved = apart(places, 15, 0, 300)
    order = sorted(range(len(places)), key=lambda n: (places[n], n))
    steps = [moved[b] - moved[a] for a, b in pairwise(order)]
    assert all(step >= 15 - 1e-6 for step in steps)
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in moved)
    if all(b - a >= 15 for a, b in pairwise(sorted(places))):
        assert moved == places


@given(st.floats(-10, 10))
def test_a_value_beyond_the_axis_stands_at_its_end(value: float) -> None:
    place = Scale(low=-1.0, high=1.0, start=100.0, stop=200.0).at(value)
    assert 100.0 <= place <= 200.0
    if -1 <= value <= 1:
        assert place == pytest.approx(150 + 50 * value)


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=200))
def test_wrapping_loses_no_word(text: str) -> None:
    lines = wrapped(text, 120, SMALL)
    assert " ".join(lines).split() == text.split()
    assert all(width_of(line, SMALL) <= 120 or " " not in line for line in lines)


def test_a_canvas_gives_lengths_to_a_tenth() -> None:
    canvas = Canvas()
    canvas.bar(1 / 3, -0.04, 2 / 3, 1e-9 + 1, "ours")
    canvas.bar(1, 1, 0, 1, "ours")  # nothing to see
    (shape,) = re.findall(r"<rect x=[^>]* class=\"ours\"/>", canvas.svg(10, 10, "t", "d"))
    assert shape == '<rect x="0.3" y="0" width="0.7" height="1" class="ours"/>'
