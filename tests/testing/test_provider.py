import json
import subprocess
import sys
from typing import Any

import anthropic
import httpx
import pytest
from msgspec.structs import replace

from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Usage
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script, events, wire

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
PATHS = ["/v1/chat/completions", "/v1/responses", "/v1/messages"]


def test_the_package_of_test_values_needs_no_server() -> None:
    light = "import sys, tenure.testing, tenure.testing.validity, tenure.testing.script"
    subprocess.run([sys.executable, "-c", f"{light}; assert not {{'starlette', 'uvicorn'}} & set(sys.modules)"], check=True)


@pytest.mark.parametrize("path", PATHS)
def test_a_script_that_ran_out_is_the_servers_fault(path: str) -> None:
    with serve(FakeProvider(Script(replies=())).app) as url:
        answer = httpx.post(url + path, json=HELLO)
    assert answer.status_code == 500
    assert "no reply left" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_is_no_json_is_refused(path: str) -> None:
    with serve(FakeProvider(Script(replies=())).app) as url:
        answer = httpx.post(url + path, content=b"{")
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_errors_have_the_shape_of_their_provider() -> None:
    with serve(FakeProvider(Script(replies=())).app) as url:
        openai, claude = (httpx.post(url + path, json={"model": "m", "messages": []}).json() for path in (PATHS[0], PATHS[2]))
    message = "messages: at least one message is required"
    assert openai == {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": None}}
    assert claude == {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_2"}


def test_a_marked_prefix_is_written_read_and_forgotten() -> None:
    now = [0.0]
    rules = replace(rules_for("anthropic", "claude-opus-5", "anthropic"), cache_min_tokens=1)
    provider = FakeProvider(
        Script(replies=(Reply(text="ok"),) * 3), rules={"anthropic": rules}, clock=lambda: now[0], tokens=lambda text: len(text)
    )
    messages: Any = [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]
    with serve(provider.app) as url, anthropic.Anthropic(base_url=url, api_key="-") as client:
        for at in (0.0, 299.0, 600.0):
            now[0] = at
            client.messages.create(model="claude-opus-5", max_tokens=9, messages=messages)
    written, read, again = (seen.usage for seen in provider.seen)
    assert isinstance(written, Usage)
    assert isinstance(read, Usage)
    assert written.cache_write == read.cache_read > 0
    assert again == written


@pytest.mark.parametrize("asked", [False, True])
def test_chat_streams_its_usage_when_asked(asked: bool) -> None:
    body = HELLO | {"stream": True, "stream_options": {"include_usage": asked}}
    with serve(FakeProvider(Script(replies=(Reply(text="ok"),))).app) as url:
        lines = httpx.post(url + PATHS[0], json=body).text.split("\n\n")
    assert lines[-2] == "data: [DONE]"
    assert ("usage" in json.loads(lines[-3].removeprefix("data: "))) is asked


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
def test_the_same_script_gives_the_same_bytes(dialect: str) -> None:
    reply = Reply(text="look", thinking="hm", calls=(Call(name="read"),))
    rules = rules_for("", "m", dialect)
    once, twice = (b"".join(events(wire(reply, 3, HELLO, rules, Usage(output=1)), dialect)) for _ in range(2))
    assert once == twice


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/messages/count_tokens", "input_tokens"),
        ("/v1/responses/input_tokens", "input_tokens"),
        ("/v1beta/models/m:countTokens", "totalTokens"),
    ],
)
def test_a_question_for_the_size_of_a_prompt_uses_up_no_reply(path: str, field: str) -> None:
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    with serve(FakeProvider(Script(replies=())).app) as url:
        answer = httpx.post(url + path, json=HELLO | {"contents": contents})
    assert answer.status_code == 200
    assert answer.json()[field] > 0


def test_a_websocket_is_refused_so_that_clients_fall_back_to_http_at_once() -> None:
    asks = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": "eA=="}
    with serve(FakeProvider(Script(replies=())).app) as url:
        assert httpx.get(url + PATHS[1], headers=asks).status_code == 426
        assert httpx.get(url + PATHS[1]).status_code == 405


def test_a_function_of_the_request_can_answer_it() -> None:
    provider = FakeProvider(lambda body: Reply(text=f"{len(body['messages'])} messages"))
    with serve(provider.app) as url:
        answer = httpx.post(url + PATHS[0], json=HELLO).json()
    assert answer["choices"][0]["message"]["content"] == "1 messages"


@pytest.mark.parametrize("place", ["tools", "additional_tools"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_is_of_the_kind_and_in_the_namespace_that_its_tool_was_declared_with(place: str, streamed: bool) -> None:
    group = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    tools = [group, {"type": "function", "name": "look", "parameters": {}}]
    item = {"type": "additional_tools", "role": "developer", "tools": tools}
    items = [{"role": "user", "content": "hi"}]
    body: dict[str, Any] = {"model": "m", "stream": streamed} | (
        {"input": items, "tools": tools} if place == "tools" else {"input": [item, *items]}
    )
    script = Script(replies=(Reply(calls=(Call(name="exec", arguments="1 + 1"), Call(name="look"))),))
    with serve(FakeProvider(script).app) as url:
        answer = httpx.post(url + PATHS[1], json=body)
    if streamed:
        done = json.loads(answer.text.strip().split("\n\n")[-1].partition("data: ")[2])["response"]
        assert "response.custom_tool_call_input.delta" in answer.text
    else:
        done = answer.json()
    custom, function = done["output"]
    assert (custom["type"], custom["namespace"], custom["input"]) == ("custom_tool_call", "functions", "1 + 1")
    assert (function["type"], function["arguments"]) == ("function_call", "{}")
    assert "namespace" not in function
