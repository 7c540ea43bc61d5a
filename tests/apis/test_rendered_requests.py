"""What a dialect renders, a provider accepts: whole, edited, with insertions, and from every other dialect."""

import json
from collections.abc import Sequence

import pytest
from dialect_messages import CONVERSATIONS
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.apis import APIS
from tenure.apis.api import Head
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, ToolCall, ToolResult
from tenure.engine.view.piece import Piece
from tenure.testing.validity import violations

NAMES = sorted(APIS)
RULES = {
    "anthropic": rules_for("anthropic", "claude-opus-5", "anthropic"),
    "gemini": rules_for("google", "gemini-3-pro", "gemini"),
    "openai-chat": rules_for("openai", "gpt-5", "openai-chat"),
    "openai-responses": rules_for("openai", "gpt-5", "openai-responses"),
}
CONTENTS = {"anthropic": "messages", "gemini": "contents", "openai-chat": "messages", "openai-responses": "input"}
NOTE = Piece(role=Role.USER, blocks=(Text(text="pointer", origin=Origin.HARNESS),))


def shown(draft: Draft, gone: set[str]) -> Piece:
    """The draft without some calls and their results."""
    kept = tuple(n for n, block in enumerate(draft.blocks) if call_of(block) not in gone)
    return Piece(
        role=draft.role,
        blocks=tuple(draft.blocks[n] for n in kept),
        dialect=draft.dialect,
        payload=draft.payload,
        kept=kept,
        edited=len(kept) < len(draft.blocks),
    )


def call_of(block: Block) -> str:
    return block.call_id if isinstance(block, ToolCall | ToolResult) else ""


def refused(target: str, pieces: Sequence[Piece]) -> tuple[str, ...]:
    rules = RULES[target]
    api = APIS[target]
    return violations(json.loads(api.join(Head(), api.ordered(api.render(pieces), pieces, rules))), rules)


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
@given(data=st.data())
def test_views_without_some_calls_are_accepted(source: str, target: str, data: st.DataObject) -> None:
    drafts = APIS[source].parse(data.draw(CONVERSATIONS[source]))
    calls = sorted({call_of(block) for draft in drafts for block in draft.blocks} - {""})
    gone = data.draw(st.sets(st.sampled_from(calls))) if calls else set[str]()
    assert refused(target, [shown(draft, gone) for draft in drafts]) == ()


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
@given(data=st.data())
def test_a_note_anywhere_leaves_a_request_valid(source: str, target: str, data: st.DataObject) -> None:
    pieces = [shown(draft, set()) for draft in APIS[source].parse(data.draw(CONVERSATIONS[source]))]
    pieces.insert(data.draw(st.integers(0, len(pieces))), NOTE)
    assert refused(target, pieces) == ()


@pytest.mark.parametrize("target", NAMES)
@given(data=st.data())
def test_a_session_may_change_its_provider_midway(target: str, data: st.DataObject) -> None:
    pieces = [
        shown(draft, set())
        for source in data.draw(st.permutations(NAMES))
        for draft in APIS[source].parse(data.draw(CONVERSATIONS[source]))
    ]
    assert refused(target, pieces) == ()


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("call_id", ["call_0", "call.0"])
def test_a_result_sent_by_the_new_api_answers_a_call_that_the_old_one_made_with_an_id_used_before(
    target: str, call_id: str
) -> None:
    def asked(text: str) -> Piece:
        return Piece(role=Role.USER, blocks=(Text(text=text, origin=Origin.HUMAN),))

    call = Piece(role=Role.ASSISTANT, blocks=(ToolCall(call_id=call_id, name="read", arguments="{}"),))
    result = Piece(role=Role.TOOL, blocks=(ToolResult(call_id=call_id, text="words"),))
    (own,) = APIS[target].parse(json.loads(APIS[target].join(Head(), APIS[target].render([call, result])))[CONTENTS[target]][1:])
    own_blocks = tuple(replace(block, call_id=call_id) for block in own.blocks if isinstance(block, ToolResult))
    payload = own.payload.replace(call_of(own.blocks[0]).encode(), call_id.encode())
    last = Piece(role=own.role, blocks=own_blocks, dialect=own.dialect, payload=payload, kept=(0,))
    assert refused(target, [asked("Read."), call, result, asked("Again."), call, last]) == ()
