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
