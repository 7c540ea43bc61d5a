import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from dialect_messages import CONVERSATIONS, spellings
from hypothesis import given
from hypothesis import strategies as st

from tenure.apis import APIS
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

NAMES = sorted(APIS)
COMPACT = {"separators": (",", ":"), "ensure_ascii": False}


def content_of(name: str, text: bytes) -> bytes:
    """A message of the user with this JSON text."""
    return b'{"role":"user","parts":[{"text":%b}]}' % text if name == "gemini" else b'{"role":"user","content":%b}' % text


def whole(draft: Draft) -> Piece:
    return Piece(
        role=draft.role,
        blocks=draft.blocks,
        dialect=draft.dialect,
        payload=draft.payload,
        kept=tuple(range(len(draft.blocks))),
    )


def without(draft: Draft, gone: set[int]) -> Piece:
    kept = tuple(n for n in range(len(draft.blocks)) if n not in gone)
    return Piece(
        role=draft.role,
        blocks=tuple(draft.blocks[n] for n in kept),
        dialect=draft.dialect,
        payload=draft.payload,
        kept=kept,
        edited=True,
    )


def ids(drafts: Sequence[Draft]) -> list[str]:
    chain = Chain()
    return [chain.place(draft, (0,) * len(draft.blocks)).id for draft in drafts]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_what_was_not_edited_goes_out_byte_identical(name: str, data: st.DataObject) -> None:
    spell = data.draw(spellings)
    messages = [spell(message) for message in data.draw(CONVERSATIONS[name])]
    drafts = APIS[name].parse(messages)
    assert list(APIS[name].render([whole(draft) for draft in drafts])) == messages


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_dictionaries_come_back_structurally_equal(name: str, data: st.DataObject) -> None:
    messages = data.draw(CONVERSATIONS[name])
    rendered = APIS[name].render([whole(draft) for draft in APIS[name].parse(messages)])
    assert [json.loads(text) for text in rendered] == messages


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_spelling_does_not_change_the_entry(name: str, data: st.DataObject) -> None:
    messages = data.draw(CONVERSATIONS[name])
    one, other = data.draw(spellings), data.draw(spellings)
    dialect = APIS[name]
    assert ids(dialect.parse([one(m) for m in messages])) == ids(dialect.parse([other(m) for m in messages]))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_an_edited_piece_parses_to_the_blocks_it_shows(name: str, data: st.DataObject) -> None:
    dialect = APIS[name]
    for draft in dialect.parse(data.draw(CONVERSATIONS[name])):
        gone = data.draw(st.sets(st.integers(0, len(draft.blocks) - 1)))
        piece = without(draft, gone)
        again = [block for back in dialect.parse(list(dialect.render([piece]))) for block in back.blocks]
        expected = [block for block in piece.blocks if not isinstance(block, Thinking)]
        assert [block for block in again if not isinstance(block, Thinking)] == expected


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_an_edited_piece_is_never_larger(name: str, data: st.DataObject) -> None:
    dialect, spell = APIS[name], data.draw(spellings)
    for draft in dialect.parse([spell(message) for message in data.draw(CONVERSATIONS[name])]):
        gone = data.draw(st.sets(st.integers(0, len(draft.blocks) - 1)))
        sizes = [sum(map(len, dialect.render([piece]))) for piece in (without(draft, gone), whole(draft))]
        assert sizes[0] <= sizes[1]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_replaced_text_is_shown_and_the_rest_stays(name: str, data: st.DataObject) -> None:
    dialect = APIS[name]
    for draft in dialect.parse(data.draw(CONVERSATIONS[name])):
        blocks = tuple(
            ToolResult(call_id=block.call_id, text="short", error=block.error) if isinstance(block, ToolResult) else block
            for block in draft.blocks
        )
        piece = Piece(
            role=draft.role,
            blocks=blocks,
            dialect=name,
            payload=draft.payload,
            kept=tuple(range(len(blocks))),
            edited=True,
        )
        again = [block for back in dialect.parse(list(dialect.render([piece]))) for block in back.blocks]
        assert [b for b in again if not isinstance(b, Thinking)] == [b for b in blocks if not isinstance(b, Thinking)]


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
@given(data=st.data())
def test_another_dialect_says_the_same(source: str, target: str, data: st.DataObject) -> None:
    drafts = APIS[source].parse(data.draw(CONVERSATIONS[source]))
    rendered = APIS[target].render([whole(draft) for draft in drafts])
    again = [block for draft in APIS[target].parse(list(rendered)) for block in draft.blocks]
    for kind in (ToolCall, ToolResult):
        said = [block for draft in drafts for block in draft.blocks if isinstance(block, kind)]
        heard = [block for block in again if isinstance(block, kind)]
        names = [block.call_id for block in said]
        if len({*names}) == len(names):
            assert names == [block.call_id for block in heard]
        else:  # Gemini's calls have no ids but their names; others number them
            assert names == [re.sub(r"_\d+$", "", block.call_id) for block in heard]
        for one, other in zip(said, heard, strict=True):
            assert not isinstance(one, ToolResult) or one.media or other.text.startswith(one.text)
    heard_words = "\n\n".join(block.text for block in again if isinstance(block, Text))
    assert all(block.text in heard_words for draft in drafts for block in draft.blocks if isinstance(block, Text))


@pytest.mark.parametrize("name", NAMES)
def test_inserted_pieces_are_built_from_their_blocks(name: str) -> None:
    pieces = [
        Piece(role=Role.USER, blocks=(Text(text="brief", origin=Origin.HARNESS),)),
        Piece(role=Role.ASSISTANT, blocks=(ToolCall(call_id="recall_1", name="recall", arguments='{"id":"read:1"}'),)),
        Piece(role=Role.TOOL, blocks=(ToolResult(call_id="recall_1", text="bytes"),)),
    ]
    drafts = APIS[name].parse(list(APIS[name].render(pieces)))
    assert [block.text for draft in drafts for block in draft.blocks] == ["brief", '{"id":"read:1"}', "bytes"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("message", "found"),
    [
        (b"\xff", "UTF-8"),
        (b"[1]", "an object"),
        (b'{"role": "user"', "expected"),
        (b'{"role": "martian", "CONTENT": []}', "martian"),
        (b'{"role": "user", "CONTENT": 7}', "CONTENT 7"),
        (b'{"role": "user", "CONTENT": [{"text": 7}]}', "no type"),
    ],
)
def test_what_cannot_be_read_names_its_place(name: str, message: bytes, found: str) -> None:
    if found == "no type" and name == "gemini":
        found = "no text"  # its parts have no types
    good: Any = json.loads(content_of(name, b'"fine"'))
    key = APIS[name].content_key
    message, found = message.replace(b"CONTENT", key.encode()), found.replace("CONTENT", key)
    with pytest.raises(InputError, match=r"^message 1") as caught:
        APIS[name].parse([good, message])
    assert found in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_split_and_join_are_inverse(name: str, data: st.DataObject) -> None:
    systems: dict[str, dict[str, Any]] = {
        "anthropic": {"system": "be brief"},
        "openai-responses": {"instructions": "be brief"},
        "gemini": {"systemInstruction": {"parts": [{"text": "be brief"}]}},
    }
    body = {
        "model": "m",
        "tools": [{"name": "read"}],
        **systems.get(name, {}),
        APIS[name].body_key: data.draw(CONVERSATIONS[name]),
    }
    head, messages = APIS[name].split(body)
    assert json.loads(APIS[name].join(head, messages)) == body


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ['"\\ud800"', '"a\\ud83d"', '"\\u0000"'])
def test_lone_surrogates_stay_in_the_payload_only(name: str, text: str) -> None:
    told = content_of(name, text.encode())
    message = told[:-1] + b',"x":1E2,"big":123456789012345678901234567890,"role":"user"}'
    (draft,) = APIS[name].parse([message])
    assert APIS[name].render([whole(draft)]) == (message,)
    assert draft.blocks[0].text.encode()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_fast_parser_mangles_survives_an_edit(name: str) -> None:
    start = b'{"role":"user","x":1E2,"x":2,"odd":"\\ud800","%b":[' % APIS[name].content_key.encode()
    kind = {"openai-responses": b'"type":"input_text",', "gemini": b""}.get(name, b'"type":"text",')
    parts = [b'{%b"text":"%b","n":1E2}' % (kind, text) for text in (b"gone", b"kept\\udfff")]
    (draft,) = APIS[name].parse([start + b",".join(parts) + b"]}"])
    (edited,) = APIS[name].render([without(draft, {0})])
    assert edited == start + parts[1] + b"]}"
