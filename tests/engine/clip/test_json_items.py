"""Items of JSON containers: those that are read at once are those that are read one by one."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.clip.json_items import items_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def slowly(text: str, path: str = "") -> list[tuple[int, int, int, str, object]]:
    """Each item of the container, by the standard library's parser alone."""
    decoder = json.JSONDecoder(strict=False)
    at, found = 1, []
    while at < len(text):
        at += len(text[at:]) - len(text[at:].lstrip())
        start, key = at, ""
        if text[0] == "{":
            key, at = decoder.raw_decode(text, at)
            at = text.index(":", at) + 1
            at += len(text[at:]) - len(text[at:].lstrip())
        value, end = decoder.raw_decode(text, at)
        found.append((start, at, end, key, value))
        at = end + len(text[end:]) - len(text[end:].lstrip()) + 1
        if text[at - 1] in "]}":
            break
    return found


@given(
    st.lists(VALUES, min_size=1, max_size=12) | st.dictionaries(st.text("abé\n", max_size=6), VALUES, min_size=1, max_size=12),
    st.sampled_from((None, 1)),
    st.booleans(),
    st.sampled_from((", ", ",", ",\n  ")),
)
@settings(deadline=None, max_examples=60)
def test_items_read_at_once_stand_where_a_slow_parser_finds_them(
    value: Any, indent: int | None, plain: bool, separator: str
) -> None:
    many = value * 40 if isinstance(value, list) else {f"{key} {n}": each for n in range(40) for key, each in value.items()}
    text = json.dumps(many, indent=indent, ensure_ascii=plain, separators=(separator, ": "))
    items = items_of(text, 0, len(text), "")
    keys = items.keys or [""] * len(items)
    found = list(zip(items.starts, items.values_at, items.ends, items.values, strict=True))
    assert found == [(start, at, end, each) for start, at, end, _, each in slowly(text)]
    assert [json.loads(f'"{key}"') for key in keys] == [key for _, _, _, key, _ in slowly(text)]
    begins = [text.count("\n", 0, at) for at in items.starts]
    ends = [text.count("\n", 0, at) for at in items.ends]
    apart = [item for item in range(1, len(items)) if begins[item] > ends[item - 1]]
    assert list(items.bounds(text)) == [0, *apart, len(items)]


@given(st.lists(VALUES, min_size=30, max_size=60), st.integers(min_value=1, max_value=400))
@settings(deadline=None, max_examples=40)
def test_of_an_array_that_breaks_off_all_whole_items_are_read(values: list[Any], missing: int) -> None:
    text = json.dumps(values * 10, indent=1)[:-missing]
    items = items_of(text, 0, len(text), "")
    whole = len(items) - 1  # the last may be broken, or a number that lost its last digits
    assert items.values[:whole] == (values * 10)[:whole]
    places = zip(items.values_at[:whole], items.ends[:whole], strict=True)
    assert [json.loads(text[at:end]) for at, end in places] == items.values[:whole]
    assert len(text) - (items.ends[-1] if items.ends else 0) < 400


def test_items_that_are_parted_in_several_ways_are_told_apart() -> None:
    text = "[" + ",".join(f'{" " * (n % 3)}{{"id": {n}}}{chr(10) * (n % 2)}' for n in range(300)) + "]"
    items = items_of(text, 0, len(text), "")
    assert [text[at:end] for at, end in zip(items.starts, items.ends, strict=True)] == [f'{{"id": {n}}}' for n in range(300)]


def test_a_key_that_is_there_twice_is_shown_twice() -> None:
    text = "{" + ", ".join(f'"key{n % 150}": {n}' for n in range(300)) + "}"
    items = items_of(text, 0, len(text), "")
    assert items.keys == [f"key{n % 150}" for n in range(300)]
