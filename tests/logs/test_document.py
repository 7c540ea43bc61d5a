"""What is left of a document that is damaged."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from tenure.errors import InputError
from tenure.logs.json_files import MOST_HOLES, document, elements
from tenure.logs.salvage import DamagedJson, salvage

ALLOWED = "an object with `messages`"


class Message(Struct):
    """An element as a reader declares it."""

    id: str
    tokens: int = 0
    parts: list[int] = []


class Chat(Struct):
    """A document of messages."""

    messages: list[Raw]


CHAT = msgspec.json.Decoder(Chat)
MESSAGE = msgspec.json.Decoder(Message)


def chat(count: int, indent: int | None) -> bytes:
    messages = [{"id": f"m{n}", "parts": [{"id": n}, {"id": -n}], "text": "x, y"} for n in range(count)]
    return json.dumps({"about": {"id": 1}, "messages": messages}, indent=indent).encode()


def ids(raw: bytes) -> list[str]:
    read = document((raw,), CHAT, ALLOWED)
    return [json.loads(bytes(each))["id"] for each in read.value.messages]


@pytest.mark.parametrize("indent", [None, 2])
def test_an_element_that_is_damaged_costs_that_element(indent: int | None) -> None:
    raw = chat(9, indent).replace(b'"m3"', b'm3"').replace(b'"m6",', b'"m6"')
    read = document((raw,), CHAT, ALLOWED)
    assert ids(raw) == ["m0", "m1", "m2", "m4", "m5", "m7", "m8"]
    assert len(read.skipped) == 2
    assert all("damaged element" in skip.reason and skip.bytes for skip in read.skipped)


def test_lines_keep_their_numbers_behind_a_damaged_element() -> None:
    whole, raw = chat(5, 2), chat(5, 2).replace(b'"m1"', b"m1")
    lines = [element.line for element in elements(*taken(whole))]
    assert [element.line for element in elements(*taken(raw))] == [lines[0], *lines[2:]]


def taken(raw: bytes) -> tuple[list[Raw], bytes, bytes]:
    read = document((raw,), CHAT, ALLOWED)
    return read.value.messages, read.source, read.faithful


def test_a_document_that_ends_too_early_is_read_up_to_there() -> None:
    raw = chat(9, None)
    read = document((raw[: raw.index(b'"m5"') + 3],), CHAT, ALLOWED)
    assert len(read.value.messages) == 5
    assert read.skipped[0].bytes > 0


def test_more_damage_than_is_worth_following_ends_the_reading() -> None:
    raw = chat(4 * MOST_HOLES, None)
    for n in range(1, 4 * MOST_HOLES, 2):
        raw = raw.replace(b'"m%d"' % n, b"m%d" % n)
    read = document((raw,), CHAT, ALLOWED)
    assert len(read.skipped) == MOST_HOLES + 1
    assert len(read.value.messages) == MOST_HOLES + 1


def test_what_has_nothing_whole_is_refused_with_the_place() -> None:
    with pytest.raises(InputError, match=r"line 1, column 15.*an object with `messages`"):
        document((b'{"messages":[nonsense]}',), CHAT, ALLOWED)


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3), st.sampled_from([None, 1]))
def test_any_damage_is_read_or_refused(at: int, damage: bytes, indent: int | None) -> None:
    raw = chat(6, indent)
    try:
        read = document((raw[:at] + damage + raw[at + 1 :],), CHAT, ALLOWED)
    except InputError:
        return
    assert len(list(elements(read.value.messages, read.source, read.faithful))) <= 6 * 3


@pytest.mark.parametrize(
    ("raw", "left_out"),
    [
        ('{"id":"a","tokens":2.5}', ["field `tokens` left out: Expected `int`, found `float` (12 bytes)"]),
        ('{"id":"a","parts":[1,null,"x",null]}', ["field `parts[1]`", "field `parts[1]`"]),
        ('{"id":"a","parts":[null, null ,null]}', ["field `parts[0]`"]),
        ('{"parts":[1,2,null],"tokens":true,"id":"a"}', ["field `parts[2]`", "field `tokens`"]),
        ('{"id":"a","parts":{},"tokens":"9"}', ["field `parts`", "field `tokens`"]),
    ],
)
def test_fields_of_another_shape_are_left_out_one_by_one(raw: str, left_out: list[str]) -> None:
    found = salvage(raw.encode(), MESSAGE)
    assert found.value.id == "a"
    assert found.faithful == raw.encode()
    assert len(found.source) == len(raw)
    assert [said[: len(wanted)] for said, wanted in zip(found.left_out, left_out, strict=True)] == left_out


@pytest.mark.parametrize("raw", [b"{}", b"[]", b'{"id":3}', b'{"tokens":"x"', b'{"id":1,"x":"'])
def test_what_lacks_the_essential_is_damaged(raw: bytes) -> None:
    with pytest.raises(DamagedJson):
        salvage(raw, MESSAGE)
