"""Self-GC and handoff through the front door, with models that answer well, badly or not at all."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tenure import Budget, Context, Propose
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.errors import ModelError
from tenure.testing.model import ScriptedModel
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"line {n} of a file that is long enough to matter" for n in range(120))
BRIEF = (
    "\n\n".join(f"## {section.title}\nPart one keeps comments now; its {section.key} is told here." for section in SECTIONS)
    + "\n[end of brief]"
)


def worked(store: MemoryStore | None = None, calls: int = 12) -> Context:
    """A context in which one turn is done and another begins."""
    context = Context(dialect="openai-chat", budget=Budget(ceiling=100_000), model="gpt-5", store=store or MemoryStore())
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend the parser of part one."}]
    for n in range(calls):
        made = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": f"make {n}"})},
        }
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": LINES},
        ]
    context.extend([*messages, {"role": "assistant", "content": "Mended."}, {"role": "user", "content": "And part two?"}])
    context.session.setup = replace(context.session.setup, calls_seen=(400,) * 200)  # sessions here are long
    return context


def plan(*targets: str) -> str:
    return json.dumps(
        {"above_conversation_summary": "x", "gc_plan": {"fold": [], "mask": [], "prune": [{"target": each} for each in targets]}}
    )


def weight(context: Context) -> int:
    return len(json.dumps(context.request(model="gpt-5")))


def test_a_planner_is_asked_behind_the_request_that_was_sent_last() -> None:
    context = worked()
    sent = context.request(model="gpt-5")
    model = ScriptedModel(plan("bash:1", "bash:2", "bash:3"))
    answered = context.collect(model)
    assert answered is not None
    assert isinstance(answered.decision, Propose)
    assert json.loads(model.questions[0].prefix) == json.loads(json.dumps(sent))
    assert "bash:2" in str(model.questions[0].messages[0])
    assert weight(context) < len(json.dumps(sent))
    assert context.recall("bash:2").endswith("line 119 of a file that is long enough to matter")


def test_what_a_planner_took_is_gone_after_a_restart_and_can_be_recalled_and_undone() -> None:
    store = MemoryStore()
    context = worked(store)
    context.request(model="gpt-5")
    context.collect(ScriptedModel(plan("bash:1", "bash:2", "bash:3")))
    again = Context(dialect="openai-chat", model="gpt-5", store=store, conversation=context.conversation)
    assert weight(again) == weight(context)
    assert "line 119" in again.recall("bash:1")
    again.undo(0)
    assert weight(again) > weight(context)


def test_earlier_history_is_handed_off_to_one_brief_and_human_words_stay() -> None:
    context = worked()
    model = ScriptedModel(BRIEF)
    answered = context.handoff(model, focus="the parser", rules={"AGENTS.md": "Never push."})
    assert answered is not None
    assert isinstance(answered.decision, Propose)
    said = [message["content"] for message in context.request(model="gpt-5")["messages"] if message["role"] == "user"]
    assert said[0] == "Mend the parser of part one."
    assert said[-1] == "And part two?"
    (brief,) = [words for words in said if words.startswith(OPENING)]
    assert "Never push." in brief
    assert "the parser" in str(model.questions[0].messages[0])
    assert model.questions[0].system


@pytest.mark.parametrize("play", ["down", "cut short"])
def test_a_model_that_fails_changes_nothing(play: Any) -> None:
    context = worked()
    before = context.request(model="gpt-5")
    with pytest.raises(ModelError):
        context.handoff(ScriptedModel(then=play))
    with pytest.raises(ModelError):
        context.collect(ScriptedModel(then=play))
    assert context.request(model="gpt-5") == before


def test_rubbish_changes_nothing() -> None:
    context = worked()
    before = context.request(model="gpt-5")
    context.handoff(ScriptedModel("Sure! What next?"))
    context.collect(ScriptedModel("no plan at all"))
    assert context.request(model="gpt-5") == before


def test_large_results_are_clipped_from_their_birth_and_recalled_whole() -> None:
    context = Context(dialect="openai-chat", store=MemoryStore(), clip=300)
    made = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    context.extend([{"role": "user", "content": "Go."}, {"role": "assistant", "content": None, "tool_calls": [made]}])
    context.extend([{"role": "tool", "tool_call_id": "c", "content": LINES}])
    shown = context.request(model="gpt-5")["messages"][-1]["content"]
    assert shown.startswith("[clip ")
    assert "recall bash:1@" in shown
    assert context.recall("bash:1").count("\n") >= 119
    whole = Context(dialect="openai-chat", store=MemoryStore(), clip=0)
    whole.extend(
        [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c", "content": LINES},
        ]
    )
    assert whole.request(model="gpt-5")["messages"][-1]["content"] == LINES


def test_a_folded_skill_leaves_the_way_to_every_load_of_it() -> None:
    context = Context(dialect="openai-chat", budget=Budget(ceiling=100_000), model="gpt-5", store=MemoryStore(), clip=0)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Release it."}]
    for n in range(14):
        name, arguments = ("Skill", {"skill": "release"}) if n in (0, 2, 4, 6) else ("bash", {"command": f"make {n}"})
        made = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"load {n}\n{LINES}"},
        ]
    context.extend([*messages, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}])
    context.session.setup = replace(context.session.setup, calls_seen=(400,) * 200)
    context.request(model="gpt-5")
    answered = context.collect(ScriptedModel("<gc_plan><fold>\nskill:release | how to release\n</fold></gc_plan>"))
    assert answered is not None
    assert isinstance(answered.decision, Propose)
    (pointer,) = context.session.view.inserts
    assert len(pointer.routes) == 3
    for load, handle in zip((0, 2, 4), pointer.routes, strict=True):
        assert handle in pointer.text
        assert f"load {load}\n" in context.recall(handle)
    assert "recall brings each back" in pointer.text
