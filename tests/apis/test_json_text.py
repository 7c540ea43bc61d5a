import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.apis.json_text import clean, dump, elements, load, members, source, with_elements, with_members
from tenure.errors import InputError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
spelled = st.tuples(values, st.sampled_from([None, 0, 2]), st.booleans())


@given(spelled)
def test_slices_make_up_the_whole(case: tuple[Any, int | None, bool]) -> None:
    value, indent, ascii_only = case
    text = json.dumps({"a": value, "b": [value, value]}, indent=indent, ensure_ascii=ascii_only)
    assert [load(item.text) for item in members(text)] == [value, [value, value]]
    assert with_members(text, {}) == text
    array = members(text)[1].text
    assert with_elements(array, [item.text for item in elements(array)]) == array


@given(st.lists(values, max_size=5), st.data())
def test_elements_go_and_the_others_keep_their_spelling(array: list[Any], data: st.DataObject) -> None:
    text = json.dumps(array, indent=data.draw(st.sampled_from([None, 1])))
    gone = data.draw(st.sets(st.integers(0, max(0, len(array) - 1))))
    kept = [None if n in gone else item.text for n, item in enumerate(elements(text))]
    assert load(with_elements(text, kept)) == [value for n, value in enumerate(array) if n not in gone]


@given(st.dictionaries(st.sampled_from("abcd"), values), st.dictionaries(st.sampled_from("abcd"), st.none() | values))
def test_members_are_exchanged_taken_out_and_added(old: dict[str, Any], new: dict[str, Any]) -> None:
    changed = with_members(json.dumps(old), {key: None if value is None else dump(value) for key, value in new.items()})
    expected = {key: value for key, value in (old | new).items() if new.get(key, 0) is not None}
    assert load(changed) == expected


def test_of_a_repeated_key_the_last_is_exchanged() -> None:
    assert with_members('{"a":1,"a":2}', {"a": "3"}) == '{"a":1,"a":3}'
    assert with_members('{"a":1,"b":2,"a":3}', {"a": None}) == '{"b":2}'


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a":}', '{"a" 1}', "[1] x", "[" * 100_000, '{"a":1'])
def test_what_is_no_json_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        members(text, "message 1")
    with pytest.raises(InputError):
        elements(text, "message 1")


@given(st.text(alphabet=st.characters()))
def test_clean_text_is_valid_unicode(text: str) -> None:
    assert len(clean(text).encode().decode()) == len(text)


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    assert source({"a": "\ud800é"}, "message 0") == '{"a":"\\ud800\\u00e9"}'
