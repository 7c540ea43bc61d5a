"""What goes wrong at a provider arrives as both SDKs know it, and as the wire has it."""

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Broken, Fault, Reply, Script

PATHS = {"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", "anthropic": "/v1/messages"}
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
every = pytest.mark.parametrize("dialect", PATHS)


def answer(dialect: str, reply: Reply | Fault | Broken, *, stream: bool = True) -> httpx.Response:
    with serve(FakeProvider(Script(replies=(reply,))).app) as url:
        return httpx.post(url + PATHS[dialect], json=HELLO | {"stream": stream})


@every
def test_a_fault_has_its_status_type_and_waiting_time(dialect: str) -> None:
    found = answer(dialect, Fault(status=429, retry_after_s=1.5))
    assert (found.status_code, found.headers["retry-after"], found.headers["retry-after-ms"]) == (429, "2", "1500.0")
    assert found.json()["error"]["type"] == "rate_limit_error"
    assert answer(dialect, Fault(status=502, raw="<html>")).text == "<html>"


@every
def test_a_cut_stream_breaks_and_an_ended_one_does_not(dialect: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        answer(dialect, Broken(reply=Reply(text="hello"), how="cut"))
    assert answer(dialect, Broken(reply=Reply(text="hello"), how="end", after=1)).text.count("data: ") == 1


@every
def test_a_malformed_event_stands_between_good_ones(dialect: str) -> None:
    lines = answer(dialect, Broken(reply=Reply(text="hello"), how="malformed", after=1)).text.splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
    json.loads(data[0])
    with pytest.raises(json.JSONDecodeError):
        json.loads(data[1])
    json.loads(data[2])


@pytest.mark.parametrize("stream", [False, True])
def test_the_sdks_know_every_way_to_stop(stream: bool) -> None:
    replies = tuple(Reply(text="hello", stop=stop) for stop in ("length", "refusal", "filter") for _ in range(3))
    with (
        serve(FakeProvider(Script(replies=replies)).app) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0) as client,
        anthropic.Anthropic(base_url=url, api_key="-", max_retries=0) as claude,
    ):
        found = [_stops(client, claude, stream=stream) for _ in range(3)]
    assert found == [
        ("length", None, "max_tokens", "max_output_tokens", "output_text"),
        ("stop", "hello", "refusal", "", "refusal"),
        ("content_filter", None, "refusal", "content_filter", "output_text"),
    ]


def _stops(client: openai.OpenAI, claude: anthropic.Anthropic, *, stream: bool) -> tuple[str | None, ...]:
    said: Any = [{"role": "user", "content": "hi"}]
    if stream:
        response: Any = list(client.responses.create(model="m", input="hi", stream=True))[-1]
        response = response.response
        with claude.messages.stream(model="m", max_tokens=9, messages=said) as parts:
            message = parts.get_final_message()
        chunks = list(client.chat.completions.create(model="m", messages=said, stream=True))
        stop = chunks[-1].choices[0].finish_reason
        refusal = "".join(chunk.choices[0].delta.refusal or "" for chunk in chunks) or None
    else:
        response = client.responses.create(model="m", input="hi")
        message = claude.messages.create(model="m", max_tokens=9, messages=said)
        choice = client.chat.completions.create(model="m", messages=said).choices[0]
        stop, refusal = choice.finish_reason, choice.message.refusal
    details = response.incomplete_details
    return stop, refusal, message.stop_reason, details.reason if details else "", response.output[0].content[0].type
