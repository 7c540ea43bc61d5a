"""What a host may keep: pins of objects and texts, pending approvals, live handles."""

import json
from typing import Any

import pytest

from tenure import Budget, Context, Propose, Unmet
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.errors import InputError
from tenure.testing.model import ScriptedModel
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


def read_once(text: str, **more: Any) -> Context:
    context = Context(
        dialect="openai-chat", store=MemoryStore(), budget=Budget(ceiling=8_000), **{"policy": "graph", "clip": 200, **more}
    )
    call = {"id": "r", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    context.extend([{"role": "user", "content": "Look."}, {"role": "assistant", "content": None, "tool_calls": [call]}])
    context.extend([{"role": "tool", "tool_call_id": "r", "content": text}])
    return context


def test_a_text_that_a_clip_hides_is_not_pinned_in_place_of_the_one_that_is_shown() -> None:
    context = read_once("needle in sight\n")
    call = {"id": "s", "type": "function", "function": {"name": "grep", "arguments": "{}"}}
    hidden = (
        "\n".join(f"line {n} of many" for n in range(400)) + "\nneedle in sight\n" + "\n".join(f"row {n}" for n in range(400))
    )
    context.extend([{"role": "assistant", "content": None, "tool_calls": [call]}])
    context.extend([{"role": "tool", "tool_call_id": "s", "content": hidden}])
    assert sent(context).count("needle in sight") == 1
    assert context.pin(text="needle in sight") == "entry:2/0"


def test_words_of_a_clip_can_be_pinned_and_stay() -> None:
    context = read_once("\n".join(f"line {n} of many" for n in range(900)))
    words = "lines left out"
    assert words in sent(context)
    assert context.pin(text=words) == "entry:2/0"


def test_words_that_stand_in_place_of_what_left_are_not_pinned_and_the_refusal_names_what_can_be() -> None:
    context = worked(MemoryStore())
    sent(context)
    insert = context.session.view.inserts[0]
    with pytest.raises(InputError, match="put in place of what left"):
        context.pin(text=insert.text[:40])


def thinker(steps: int = 20) -> Context:
    context = Context(store=MemoryStore(), model="claude-sonnet-4-5", budget=Budget(ceiling=6_000), policy="cwl", clip=0)
    context.extend([{"role": "user", "content": "Mend it."}])
    for n in range(steps):
        thought = {"type": "thinking", "thinking": f"Perhaps part {n}.", "signature": f"s{n}"}
        call = {"type": "tool_use", "id": f"c{n}", "name": "bash", "input": {"command": f"make {n}"}}
        context.extend([{"role": "assistant", "content": [thought, call]}])
        context.extend(
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"part {n}\n{LINES}"}]}]
        )
        if n % 2:
            context.extend([{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Next."}])
    return context


def test_a_pin_of_reasoning_alone_does_not_keep_everything_else_from_leaving() -> None:
    context = thinker()
    context.pin("entry:1/0")
    sent(context)
    assert isinstance(context.decision, Propose | Unmet)
    assert context.session.view.tokens < 6_000


def test_a_text_of_reasoning_is_not_pinned_where_another_block_shows_it() -> None:
    context = thinker(2)
    context.extend([{"role": "user", "content": "Perhaps part 1."}])
    assert context.pin(text="Perhaps part 1.") == f"entry:{context.session.length - 1}/0"
    with pytest.raises(InputError):
        context.pin(text="Perhaps part 0.")


def test_a_text_of_a_result_that_answers_no_call_is_not_pinned_in_place_of_one_that_is_sent() -> None:
    context = worked(MemoryStore())
    context.extend([{"role": "tool", "tool_call_id": "nobody", "content": "Now part 2."}])
    assert context.pin(text="Now part 2.") == "entry:5/0"
    with pytest.raises(InputError, match="a text that one message or result of the view shows"):
        worked(context.store).pin(text="nobody's words")  # type: ignore[arg-type]


def test_letting_go_of_an_approval_leaves_the_pin_of_the_same_object() -> None:
    context = worked(MemoryStore())
    context.pin("bash:1")
    context.hold("bash:1", "approval")
    assert context.release("bash:1", "approval")
    assert [hold.kind for hold in context.session.holds] == ["pin"]
    assert "part 0 of it" in sent(context)


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


def test_a_pin_of_a_call_that_the_provider_ran_keeps_its_result_with_it() -> None:
    context = thinker(0)
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "parser"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    context.extend([{"role": "assistant", "content": [search, found, {"type": "text", "text": "Found it."}]}])
    context.extend([{"role": "user", "content": "Go on."}])
    for n in range(20):
        context.extend([{"role": "assistant", "content": f"{n}\n{LINES}"}, {"role": "user", "content": "Next."}])
    context.pin("entry:1/0")
    brief = "\n\n".join(f"## {section.title}\nThe parser is read." for section in SECTIONS) + "\n[end of brief]"
    assert context.handoff(ScriptedModel(brief)) is not None
    messages = json.loads(context.wire(model="claude-sonnet-4-5", max_tokens=9))["messages"]
    parts = [part["type"] for message in messages if isinstance(message["content"], list) for part in message["content"]]
    assert len(context.session.commits)
    assert ("server_tool_use" in parts, "web_search_tool_result" in parts) == (True, True)
