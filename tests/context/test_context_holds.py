"""What a host may keep: pins of objects and texts, pending approvals, live handles."""

import json
from typing import Any

import pytest

from tenure import Budget, Context
from tenure.errors import InputError
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"{n}: the value of part {n * n} is known" for n in range(120))


def worked(store: MemoryStore, steps: int = 12) -> Context:
    context = Context(dialect="openai-chat", store=store, budget=Budget(ceiling=8_000), policy="cwl", clip=0)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend it."}]
    for n in range(steps):
        function = {"name": "bash", "arguments": json.dumps({"command": f"make {n}"})}
        messages += [
            {
                "role": "assistant",
                "content": f"Now part {n}.",
                "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"part {n} of it\n{LINES}"},
        ]
    context.extend(messages)
    return context


def sent(context: Context) -> str:
    return json.dumps(context.request(model="gpt-5"))


def test_a_pinned_text_stays_and_says_what_was_pinned() -> None:
    context = worked(MemoryStore())
    assert context.pin(text="Now part 2.") == "entry:5/0"
    shown = sent(context)
    assert "Now part 2." in shown
    assert "Now part 1." not in shown
    assert "part 2 of it" not in shown  # the block that was pinned stays, not what stands beside it


def test_a_text_that_is_nowhere_in_the_view_cannot_be_pinned() -> None:
    for text in ("never said", ""):
        with pytest.raises(InputError):
            worked(MemoryStore()).pin(text=text)


def test_a_pending_approval_and_a_live_handle_stay_until_they_are_released() -> None:
    store = MemoryStore()
    context = worked(store)
    context.hold("bash:1", "approval", "the user has not answered")
    context.hold("bash:2", "handle")
    assert "part 0 of it" in (shown := sent(context))
    assert "part 1 of it" in shown
    again = Context(dialect="openai-chat", store=store, conversation=context.conversation)
    assert {hold.object for hold in again.session.holds} == {"bash:1", "bash:2"}
    assert again.release("bash:1", "approval")
    assert not again.release("bash:1", "approval")
    assert not again.unpin("bash:2")  # it is no pin
    assert again.release("bash:2", "handle")


def test_a_conversation_that_is_opened_again_keeps_its_budget() -> None:
    store = MemoryStore()
    context = worked(store)
    again = Context(dialect="openai-chat", store=store, conversation=context.conversation)
    assert again.session.setup.budget == Budget(ceiling=8_000)
    assert Context(
        dialect="openai-chat", store=store, conversation=context.conversation, budget=Budget(target=9_000)
    ).session.setup.budget == Budget(target=9_000)
