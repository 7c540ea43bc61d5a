import json
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from tenure.agent.tools.arguments import frozen, parse_arguments, schema_of
from tenure.agent.tools.tool import ToolOutcome
from tenure.apis.json_text import dump


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several."""

    old: str
    all: bool = False


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words for people who read the code."""

    path: Annotated[str, Meta(description="the file")]
    offset: int = 1
    limit: Annotated[int, Meta(ge=1)] | None = None
    parts: tuple[Part, ...] = ()
    mode: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "missing required field path"),
        ("nonsense", "no JSON"),
        ('{"path"', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('["a"]', "found an array, expected one JSON object"),
        ("null", "found null, expected one JSON object"),
        ('"a.py"', "found a string"),
        ("3", "found a number"),
        ('{"path":7}', "path: found an integer, expected a string"),
        ('{"path":"a","offset":"10"}', "offset: found a string, expected an integer"),
        ('{"path":"a","limit":0}', "limit: expected int >= 1"),
        ('{"path":"a","file":"b"}', "unknown field file"),
        ('{"path":"a","parts":"[]"}', "parts: found a string, expected an array"),
        ('{"path":"a","parts":[{"old":3}]}', "parts[0].old: found an integer, expected a string"),
        ('{"path":"a","mode":"c"}', "invalid enum value 'c' at mode"),
        ('{"path":"\\ud800"}', "half of a surrogate pair"),
        ('{"path":"a","parts":[{"old":"\\udfff"}]}', "half of a surrogate pair"),
    ],
)
def test_malformed_arguments_give_a_result_that_names_what_was_expected(arguments: str, said: str) -> None:
    outcome = parse_arguments(Asked, arguments, "read")
    assert isinstance(outcome, ToolOutcome)
    assert outcome.error
    assert outcome.text.startswith("read: ")
    assert said in outcome.text
    assert "It takes path (string), offset (integer, optional)" in outcome.text
    assert "mode (a|b, optional)" in outcome.text
    assert len(outcome.text) < 400


def test_null_is_as_good_as_left_out_and_a_surrogate_pair_is_a_sign() -> None:
    read = parse_arguments(Asked, '{"path":"\\ud83d\\ude00 \\\\ud800","limit":null,"offset":null}', "read")
    assert read == Asked(path="😀 \\ud800")


@given(
    st.text()
    | st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
    ).map(json.dumps)
)
def test_no_arguments_whatsoever_raise(arguments: str) -> None:
    assert isinstance(parse_arguments(Asked, arguments, "read"), Asked | ToolOutcome)


def test_a_schema_stands_by_itself_says_only_what_a_model_needs_and_is_always_the_same() -> None:
    part = '{"type":"object","properties":{"old":{"type":"string"},"all":{"type":"boolean"}},"required":["old"],"additionalProperties":false}'
    assert dump(schema_of(Asked)) == (
        '{"type":"object","properties":{"path":{"type":"string","description":"the file"},"offset":{"type":"integer"},'
        '"limit":{"type":"integer","minimum":1},"parts":{"type":"array","items":'
        + part
        + '},"mode":{"type":"string","enum":["a","b"]}},'
        '"required":["path"],"additionalProperties":false}'
    )


def test_a_schema_cannot_be_changed_at_any_depth() -> None:
    schema = frozen({"properties": {"a": {"enum": ["x"]}}})
    with pytest.raises(TypeError):
        schema["type"] = "object"
    with pytest.raises(TypeError):
        schema["properties"]["a"].update(type="string")
    with pytest.raises(AttributeError):
        schema["properties"]["a"]["enum"].append("y")
