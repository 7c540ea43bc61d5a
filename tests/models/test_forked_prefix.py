"""A planner is asked behind the agent's request, without the settings that hold for the agent's answer only."""

import json
from typing import Any

import pytest

from tenure import Budget, Context
from tenure.engine.planners.selfgc.setting import SelfGc
from tenure.errors import InputError
from tenure.models.request import forked
from tenure.testing.model import Line, ScriptedModel
from tenure.testing.store import MemoryStore

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
MESSAGES = [{"role": "user", "content": "Go."}]
CHAT = {"model": "gpt-5", "tools": [TOOL], "messages": MESSAGES, "prompt_cache_key": "k", "reasoning_effort": "low"}
RESPONSES = {"model": "gpt-5", "instructions": "Be brief.", "tools": [TOOL], "input": MESSAGES, "reasoning": {"effort": "low"}}
CLAUDE = {"model": "claude", "system": "Be brief.", "thinking": {"type": "enabled", "budget_tokens": 1_024}, "messages": MESSAGES}


def kept(request: dict[str, Any]) -> dict[str, Any]:
    return json.loads(forked(json.dumps(request).encode()))


@pytest.mark.parametrize(
    ("request_", "bent"),
    [
        (CHAT, {"response_format": SCHEMA, "stop": ["\n"], "n": 3, "logit_bias": {"27": -100}}),
        (CHAT, {"tool_choice": "required"}),
        (CHAT, {"tool_choice": {"type": "function", "function": {"name": "bash"}}}),
        (CHAT, {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}}),
        (CHAT, {"function_call": {"name": "bash"}}),
        (RESPONSES, {"text": {"format": SCHEMA}, "tool_choice": {"type": "web_search"}}),
        (RESPONSES, {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}}),
        (CLAUDE, {"stop_sequences": ["</gc_plan>"], "output_format": SCHEMA, "output_config": {"format": SCHEMA}}),
        (CLAUDE, {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}),
        (CLAUDE, {"tool_choice": {"type": "tool", "name": "bash"}}),
    ],
)
def test_what_would_break_a_plan_is_dropped_and_what_the_model_reads_stays(
    request_: dict[str, Any], bent: dict[str, Any]
) -> None:
    assert kept(request_ | bent) == request_
    assert kept(bent | request_) == request_


@pytest.mark.parametrize(
    "harmless",
    [
        CHAT | {"tool_choice": "auto"},
        CHAT | {"tool_choice": "none", "function_call": "auto"},
        CHAT | {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        RESPONSES | {"text": {"verbosity": "low"}},
        CLAUDE | {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "output_config": {"effort": "low"}},
    ],
)
def test_a_request_that_bends_nothing_stays_byte_for_byte(harmless: dict[str, Any]) -> None:
    raw = json.dumps(harmless, indent=1).encode()
    assert forked(raw) == raw


def test_of_the_settings_of_a_text_only_the_format_is_dropped() -> None:
    assert kept(RESPONSES | {"text": {"verbosity": "low", "format": SCHEMA}}) == RESPONSES | {"text": {"verbosity": "low"}}
    assert kept(CLAUDE | {"output_config": {"effort": "low", "format": SCHEMA}}) == CLAUDE | {"output_config": {"effort": "low"}}


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(InputError, match="prefix"):
        forked(b"[]")


def test_a_planner_of_the_host_is_given_the_prefix_without_them() -> None:
    model = ScriptedModel(then=Line(text="<gc_plan></gc_plan>"))
    context = Context(
        dialect="openai-chat",
        budget=Budget(window=20_000),
        store=MemoryStore(),
        policy=None,
        planner=model,
        selfgc=SelfGc(bounded=False),
        clip=0,
    )
    context.extend([{"role": "user", "content": "Go."}])
    for n in range(8):
        made = {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        context.extend([{"role": "assistant", "content": None, "tool_calls": [made]}])
        context.extend([{"role": "tool", "tool_call_id": f"c{n}", "content": "\n".join(f"{n} {m}" for m in range(400))}])
        context.request(model="gpt-5", tools=[TOOL], response_format=SCHEMA, tool_choice="required", stop=["END"])
    prefix = json.loads(model.questions[0].prefix)
    assert not {"response_format", "tool_choice", "stop"} & prefix.keys()
    assert prefix["model"] == "gpt-5"
    assert {"bash", "recall"} <= {tool["function"]["name"] for tool in prefix["tools"]}
