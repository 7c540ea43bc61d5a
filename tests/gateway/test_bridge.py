"""The bridge between an API's WebSocket and HTTP, and the real Codex over it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from test_gateway import LONG, TIGHT
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tenure.gateway.service import GatewayService
from tenure.gateway.settings import GatewaySettings, tokens_of
from tenure.gateway.wrapping import listening
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Broken, Call, Fault, Reply, Script
from tenure.testing.store import MemoryStore

TOOLS = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]
HEAD = {"model": "gpt-5.1", "store": False, "include": ["reasoning.encrypted_content"], "tools": TOOLS}
READ = Call(name="read", arguments='{"path": "a.py"}')
BETA = {"openai-beta": "responses_websockets=2026-02-06", "authorization": "Bearer sk-secret"}


@contextmanager
def bridged(provider: FakeProvider, **fields: Any) -> Iterator[tuple[str, GatewayService]]:
    """A gateway with its bridge: its address for WebSockets, and itself."""
    with serve(provider.app) as upstream:
        settings = GatewaySettings(
            **{"mode": "on", "management": TIGHT, "bridge": True, "upstreams": {"openai": f"{upstream}/v1"}, **fields}
        )
        service = GatewayService(MemoryStore(), settings)
        with listening(service) as url:
            yield url.replace("http", "ws"), service


def human(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def ask(socket: ClientConnection, items: list[Any], **fields: Any) -> list[dict[str, Any]]:
    """The events that answer a message."""
    socket.send(json.dumps({"type": "response.create", **HEAD, "input": items, **fields}))
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] not in ("response.completed", "response.failed", "error"):
        events.append(json.loads(socket.recv(timeout=60)))
    return events


def results(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": LONG}
        for item in events[-1]["response"]["output"]
        if item["type"] == "function_call"
    ]


def inputs(provider: FakeProvider) -> list[list[Mapping[str, Any]]]:
    return [json.loads(seen.body)["input"] for seen in provider.seen]


def reading(n: int) -> Script:
    return Script(replies=tuple(Reply(thinking=f"t{k}", text=f"look {k}", calls=(READ,)) for k in range(n)))


def test_what_a_client_leaves_out_stands_in_every_request() -> None:
    provider = FakeProvider(reading(12), clock=lambda: 0.0)
    with bridged(provider) as (url, service), connect(f"{url}/v1/responses", additional_headers=BETA) as socket:
        events = ask(socket, [human("please do it")])
        for _ in range(11):
            events = ask(socket, results(events), previous_response_id=events[-1]["response"]["id"])
        assert events[0]["type"] == "response.created"
        store = service.histories.store
        (only,) = store.conversations()
        assert only.commits
        assert service.counts["leads"] == 12
        assert service.counts["could not be managed"] + service.counts["could not be recorded"] == 0
    assert [seen.violations for seen in provider.seen if seen.violations] == []
    bodies = [json.loads(seen.body) for seen in provider.seen]
    assert all(body["stream"] is True and "previous_response_id" not in body and "type" not in body for body in bodies)
    assert all(body["input"][0] == human("please do it") for body in bodies)
    assert provider.seen[0].headers["authorization"] == "Bearer sk-secret"
    assert not [
        name
        for seen in provider.seen
        for name, value in seen.headers.items()
        if "websockets_" in value or name.startswith("sec-websocket")
    ]


def test_in_shadow_a_request_is_the_whole_history_word_for_word() -> None:
    provider = FakeProvider(reading(3), clock=lambda: 0.0)
    with bridged(provider, mode="shadow") as (url, _), connect(f"{url}/v1/responses") as socket:
        first = ask(socket, [human("go")])
        second = ask(socket, results(first), previous_response_id=first[-1]["response"]["id"])
        ask(socket, results(second), previous_response_id=second[-1]["response"]["id"])
    one, two, three = inputs(provider)
    assert two == [*one, *first[-1]["response"]["output"], *results(first)]
    assert three == [*two, *second[-1]["response"]["output"], *results(second)]


def test_a_message_that_only_warms_is_answered_here() -> None:
    provider = FakeProvider(reading(1), clock=lambda: 0.0)
    with bridged(provider) as (url, _), connect(f"{url}/v1/responses") as socket:
        warm = ask(socket, [human("go")], generate=False)
        assert [event["type"] for event in warm] == ["response.created", "response.completed"]
        assert provider.seen == []
        ask(socket, [human("now")], previous_response_id=warm[-1]["response"]["id"])
    assert inputs(provider) == [[human("go"), human("now")]]


def test_a_response_that_is_not_the_newest_is_refused_and_the_connection_stays() -> None:
    provider = FakeProvider(reading(3), clock=lambda: 0.0)
    with bridged(provider) as (url, _), connect(f"{url}/v1/responses") as socket:
        (event,) = ask(socket, [human("go")], previous_response_id="resp_unknown")
        assert (event["status"], event["error"]["code"]) == (400, "previous_response_not_found")
        for text in ("{", "[]", '{"type": "other"}', '{"type": "response.create", "input": 7}', "\x00"):
            socket.send(text)
            assert json.loads(socket.recv(timeout=30))["status"] == 400
        socket.send(json.dumps({"type": "response.create", "input": [], "model": "x"}).replace("[]", "[" * 100_000))
        assert json.loads(socket.recv(timeout=30))["status"] == 400
        assert ask(socket, [human("go")])[-1]["type"] == "response.completed"
    assert len(provider.seen) == 1


def test_another_connection_begins_with_a_whole_history_and_goes_on_with_the_same_conversation() -> None:
    provider = FakeProvider(reading(4), clock=lambda: 0.0)
    with bridged(provider) as (url, service):
        with connect(f"{url}/v1/responses") as socket:
            first = ask(socket, [human("go")])
            second = ask(socket, results(first), previous_response_id=first[-1]["response"]["id"])
        history = [human("go"), *first[-1]["response"]["output"], *results(first), *second[-1]["response"]["output"]]
        with connect(f"{url}/v1/responses") as socket:
            ask(socket, [*history, *results(second)])
        (only,) = service.histories.store.conversations()
    assert only.length == 6
    assert len(provider.seen) == 3


def test_what_a_message_says_of_itself_counts_and_not_what_the_connection_said_when_it_was_opened() -> None:
    turn = "x-codex-turn-metadata"
    provider = FakeProvider(reading(3), clock=lambda: 0.0)
    opened = {turn: '{"request_kind": "prewarm"}'}
    with bridged(provider) as (url, service), connect(f"{url}/v1/responses", additional_headers=opened) as socket:
        ask(socket, [human("go")])
        ask(socket, [human("go")], client_metadata={turn: '{"request_kind": "turn"}', "x-bad": "a\r\nb", "cookie": "c", "x-n": 7})
        ask(socket, [human("go")], client_metadata={turn: '{"request_kind": "compaction"}'})
        assert (service.counts["leads"], service.counts["asides"]) == (1, 2)
    told = [dict(seen.headers) for seen in provider.seen]
    assert [each.get(turn, "") for each in told] == ["", '{"request_kind": "turn"}', '{"request_kind": "compaction"}']
    assert not any("x-bad" in each or "cookie" in each for each in told)


def test_errors_are_events_with_their_status_and_headers() -> None:
    provider = FakeProvider(Script(replies=(Fault(status=429, message="slow down", retry_after_s=3), Reply(text="hi"))))
    with bridged(provider) as (url, _), connect(f"{url}/v1/responses") as socket:
        (event,) = ask(socket, [human("go")])
        assert (event["status"], event["error"]["message"], event["headers"]["retry-after"]) == (429, "slow down", "3")
        assert ask(socket, [human("go")])[-1]["type"] == "response.completed"


def test_a_stream_that_breaks_off_closes_the_connection() -> None:
    provider = FakeProvider(Script(replies=(Broken(reply=Reply(text="hello you"), how="cut"),)))
    with bridged(provider) as (url, _), connect(f"{url}/v1/responses") as socket, pytest.raises(ConnectionClosed):
        ask(socket, [human("go")])


def test_a_tenant_is_known_by_its_token_there_too() -> None:
    provider = FakeProvider(reading(2), clock=lambda: 0.0)
    with bridged(provider, tokens=tokens_of(["red=" + "r" * 20])) as (url, service):
        with connect(f"{url}/v1/responses") as socket:
            assert ask(socket, [human("go")])[-1]["status"] == 401
        with connect(f"{url}/t/{'r' * 20}/v1/responses") as socket:
            assert ask(socket, [human("go")])[-1]["type"] == "response.completed"
        assert [held.tenant for held in service.histories.store.conversations(None)] == ["red"]


@pytest.mark.parametrize(("bridge", "path"), [(False, "/v1/responses"), (True, "/v1/messages"), (True, "/v1/realtime")])
def test_a_websocket_that_is_not_bridged_is_refused_with_426(bridge: bool, path: str) -> None:
    with bridged(FakeProvider(reading(1)), bridge=bridge) as (url, _), pytest.raises(InvalidStatus) as refused:
        connect(f"{url}{path}")
    assert refused.value.response.status_code == 426


def test_a_page_of_another_site_cannot_open_one() -> None:
    with bridged(FakeProvider(reading(1)), names=("127.0.0.1",)) as (url, _):
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
            with pytest.raises(InvalidStatus) as refused:
                connect(f"{url}/v1/responses", additional_headers=headers)
            assert refused.value.response.status_code == 403
