"""What strangers send a gateway: bodies, names, pages, slow connections, other tenants' records; and where keys must never be."""

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from backports import zstd
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sdk_clients import STEPS, results, user
from test_gateway import LONG, QUESTION, TIGHT, agent, becomes_idle, replies

from tenure.gateway import door
from tenure.gateway.service import GatewayService
from tenure.gateway.settings import GatewaySettings, names_of, tokens_of
from tenure.gateway.spans import Spans
from tenure.gateway.wrapping import listening
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Fault, Reply, Script
from tenure.testing.store import MemoryStore

USED = {**QUESTION, "tools": [{"name": "read", "input_schema": {"type": "object"}}]}
RED, BLUE, BOSS = "r" * 20, "b" * 20, "o" * 20


# --- Bodies

HOSTILE = {
    "nested lists": b'{"model":"m","messages":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "nested objects": b'{"messages":[{"role":"user","content":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]}",
    "nested arguments": json.dumps(
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "a", "name": "b", "input": json.loads("[" * 900 + "]" * 900)}],
                }
            ]
        }
    ).encode(),
    "a key that stands twice": b'{"model":"a","model":"b","messages":[{"role":"user","content":"x"}],"messages":[{"role":"user","content":"y","content":"z"}]}',
    "no numbers": b'{"model":"m","max_tokens":NaN,"messages":[{"role":"user","content":Infinity}]}',
    "a huge number": b'{"model":"m","max_tokens":' + b"9" * 100_000 + b',"messages":[]}',
    "no Unicode": b'{"model":"m","messages":[{"role":"user","content":"\xff\xfe\xc3\x28"}]}',
    "half a pair": b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}',
    "zero bytes": b"\0" * 5_000,
    "a text that does not end": b'{"model":"m","messages":[{"role":"user","content":"',
    "no object": b"[1,2,3]",
    "nothing": b"",
    "wrong types": b'{"model":["m"],"messages":{"role":1},"tools":"all","system":7,"metadata":[]}',
    "strange blocks": b'{"model":"m","messages":[null,3,"x",{"role":null},{"role":"user","content":[null,{"type":[]},{"type":"tool_result"}]}]}',
    "calls without ids": b'{"model":"m","tools":[null],"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}',
    "many keys": json.dumps({f"k{n}": n for n in range(50_000)}).encode(),
}
PATHS = ["/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1beta/models/gemini-2.5-pro:generateContent"]


@pytest.fixture(scope="module")
def echoing() -> Iterator[tuple[str, Any, list[bytes]]]:
    """A gateway before an upstream that takes anything."""
    seen: list[bytes] = []

    async def upstream(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        seen.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"strange": true}'})

    with serve(upstream) as there:
        settings = GatewaySettings(
            mode="on", management=TIGHT, upstreams={"anthropic": there, "openai": f"{there}/v1", "google": there}
        )
        service = GatewayService(MemoryStore(), settings)
        with listening(service) as url:
            yield url, service, seen


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_goes_through_as_it_came(
    name: str, path: str, echoing: tuple[str, Any, list[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    url, _, seen = echoing
    with caplog.at_level(logging.CRITICAL), httpx.Client(timeout=60) as client:
        answer = client.post(f"{url}{path}", content=HOSTILE[name])
    assert (answer.status_code, answer.json()) == (200, {"strange": True})
    assert seen[-1] == HOSTILE[name]


def test_a_body_of_a_hundred_megabytes_is_refused_and_nothing_is_left_of_it(echoing: tuple[str, Any, list[bytes]]) -> None:
    url, service, seen = echoing
    before = len(seen)

    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 2**20

    with httpx.Client(timeout=60) as client, suppress(httpx.WriteError):  # it was refused before all was sent
        assert client.post(f"{url}/v1/messages", content=pieces()).status_code == 413
    assert len(seen) == before
    assert service.counts["too large"] == 1


@pytest.mark.parametrize("layers", [1, 2])
def test_a_bomb_is_not_unpacked(layers: int, echoing: tuple[str, Any, list[bytes]], caplog: pytest.LogCaptureFixture) -> None:
    url, service, seen = echoing
    bomb = zstd.compress(b" " * 200_000_000)
    bomb = zstd.compress(bomb) if layers == 2 else bomb
    before = service.counts["could not be managed"]
    with caplog.at_level(logging.CRITICAL):
        httpx.post(f"{url}/v1/messages", content=bomb, headers={"content-encoding": "zstd"}, timeout=60)
    assert seen[-1] == bomb
    assert service.counts["could not be managed"] == before + 1


# --- Who asks


@pytest.fixture
def local() -> Iterator[tuple[str, FakeProvider]]:
    provider = FakeProvider(Script(replies=tuple(Reply(text="hi") for _ in range(40))))
    with serve(provider.app) as there:
        settings = GatewaySettings(names=names_of("127.0.0.1", ["host.docker.internal"]), upstreams={"anthropic": there})
        with listening(GatewayService(MemoryStore(), settings)) as url:
            yield url, provider


@pytest.mark.parametrize("path", ["/ui", "/metrics", "/healthz", "/v1/models", "/ui/x/diff?before=0&after=1"])
@pytest.mark.parametrize(
    "name", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "[::", "localhost@evil.example"]
)
def test_a_name_that_was_bound_anew_is_turned_away(path: str, name: str, local: tuple[str, FakeProvider]) -> None:
    url, provider = local
    answer = httpx.get(f"{url}{path}", headers={"host": name})
    assert answer.status_code in (400, 421)
    assert provider.seen == []


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:99", "127.0.0.1:8787", "[::1]:8787", "host.docker.internal:8787"])
def test_programs_of_this_machine_ask_by_any_of_its_names(name: str, local: tuple[str, FakeProvider]) -> None:
    assert httpx.get(f"{local[0]}/healthz", headers={"host": name}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "https://localhost.evil.example"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/messages", "/ui/x/undo", "/ollama/api/generate"])
def test_another_sites_page_can_send_nothing(path: str, headers: dict[str, str], local: tuple[str, FakeProvider]) -> None:
    url, provider = local
    assert httpx.post(f"{url}{path}", content=b"{}", headers={**headers, "content-type": "text/plain"}).status_code == 403
    assert provider.seen == []
    assert httpx.post(f"{url}/v1/messages", json=QUESTION, headers={"origin": "vscode-webview://x"}).status_code == 200


# --- Slow connections


def spoken(url: str, text: bytes) -> bytes:
    """What a connection gets until it is closed; it never says more."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(text)
        got = b""
        while piece := connection.recv(65_536):
            got += piece
        return got


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"POST /v1/mess",
        b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-a: ",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /he",
    ],
)
def test_a_connection_that_does_not_get_to_the_point_is_closed(
    text: bytes, local: tuple[str, FakeProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "HEAD_S", 0.2)
    got = spoken(local[0], text)
    assert got.startswith(b"HTTP/1.1 200") is text.endswith(b"GET /he")


def test_a_body_that_trickles_is_given_up() -> None:
    settings = GatewaySettings(body_s=0.3, upstreams={"anthropic": "http://127.0.0.1:9"})
    with listening(GatewayService(MemoryStore(), settings)) as url:
        got = spoken(url, b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 99\r\n\r\n{")
    assert got.startswith(b"HTTP/1.1 408")


def test_a_connection_above_the_limit_gets_a_sentence_and_room_is_made_by_others_that_end() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="hi"),)))
    with serve(provider.app) as there:
        service = GatewayService(MemoryStore(), GatewaySettings(upstreams={"anthropic": there}, connections=3))
        with listening(service) as url, ExitStack() as held:
            address = httpx.URL(url).host, httpx.URL(url).port
            idle = [held.enter_context(socket.create_connection(address)) for _ in range(3)]
            large = json.dumps({**USED, "system": "x" * 3_000_000}).encode()  # the answer does not come before it is read
            refused = httpx.post(f"{url}/v1/messages", content=large)
            assert (refused.status_code, refused.headers["connection"], refused.headers["retry-after"]) == (503, "close", "1")
            assert "has 3 connections, which is its limit" in refused.json()["error"]["message"]
            assert httpx.get(f"{url}/healthz").status_code == 200, "a process that is busy is not to be started anew"
            assert httpx.get(f"{url}/readyz").status_code == 503
            assert (provider.seen, service.counts["too many connections"]) == ([], 3)
            idle[0].close()
            while httpx.get(f"{url}/readyz").status_code == 503:  # until the gateway knows
                pass
            assert httpx.post(f"{url}/v1/messages", json=USED).status_code == 200


# --- Tenants


def test_a_hostile_tenant_finds_nothing_of_another() -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    tokens = tokens_of([f"red={RED}", f"blue={BLUE}", f"*={BOSS}"])
    store = MemoryStore()
    with serve(provider.app) as there:
        service = GatewayService(
            store, GatewaySettings(mode="on", management=TIGHT, tokens=tokens, upstreams={"anthropic": there}, exchange_s=60)
        )
        with listening(service) as url:
            with STEPS["anthropic"](f"{url}/t/{RED}", stream=True) as step:
                history: list[Any] = [user("the secret plan of red")]
                for _ in range(8):
                    history, calls = step(history)
                    history += results("anthropic", calls, LONG)
            assert becomes_idle(service)
            (red,) = store.conversations("red")
            before = list(store.entries(red.id))
            assert red.commits

            # with red's own history, word for word, and the name of its session
            told = json.loads(provider.seen[0].body)
            for headers in ({}, {"x-session-id": "s"}, {"x-claude-code-session-id": "s"}):
                httpx.post(f"{url}/v1/messages", json=told, headers={"x-tenure-token": BLUE, **headers}, timeout=60)
            with STEPS["anthropic"](f"{url}/t/{BLUE}", stream=True) as step:
                step(history)
            blues = store.conversations("blue")
            assert blues
            assert all(held.parent != red.id and held.tenant == "blue" for held in blues)
            assert list(store.entries(red.id)) == before
            assert store.conversation(red.id).commits == red.commits

            # by every path of the page
            with httpx.Client(auth=("x", BLUE), headers={"origin": url, "sec-fetch-site": "same-origin"}, timeout=60) as blue:
                for path in (f"/ui/{red.id}", f"/ui/{red.id}/diff?before=0&after=1", f"/ui/{red.id}/", f"/ui/..%2f{red.id}"):
                    answer = blue.get(f"{url}{path}")
                    assert answer.status_code in (404, 401, 405, 307), path
                    assert "secret plan" not in answer.text
                for action, form in (
                    ("pin", {"object": "read:1"}),
                    ("unpin", {}),
                    ("restore", {"object": "read:1"}),
                    ("undo", {"commit": "0"}),
                ):
                    assert blue.post(f"{url}/ui/{red.id}/{action}", data=form).status_code == 404
                assert red.id not in blue.get(f"{url}/ui").text
                assert blue.get(f"{url}/metrics").status_code == 403
            assert store.conversation(red.id).commits == red.commits
            assert store.holds(red.id) == ()

            # without a token, with none's, and as the operator, who asks no model
            for headers in ({}, {"x-tenure-token": "x" * 20}, {"x-tenure-token": BOSS}, {"x-tenure-token": "*"}):
                assert httpx.post(f"{url}/v1/messages", json=told, headers=headers).status_code == 401
            for path in ("/ui", f"/ui/{red.id}", "/metrics"):
                assert httpx.get(f"{url}{path}").status_code == 401
                assert httpx.get(f"{url}{path}", auth=("x", BOSS)).status_code == 200
            assert becomes_idle(service)


# --- Keys

KEYS = {
    "anthropic": ("x-api-key", "sk-ant-KEY-7919-one"),
    "openai-chat": ("authorization", "Bearer sk-KEY-7919-two"),
    "gemini": ("x-goog-api-key", "AIza-KEY-7919-three"),
}


def test_no_key_is_in_the_log_the_store_a_span_a_metric_or_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def script(body: Any) -> Any:
        return next(faults, None) or replies(body)

    faults = iter([Fault(status=401), Fault(status=500), Fault(status=400)])
    provider = FakeProvider(script, clock=lambda: 0.0)
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    shown: list[str] = []
    caplog.set_level(logging.DEBUG)
    with Store(f"sqlite:///{tmp_path}/a.db") as store, serve(provider.app) as there:
        gone = "http://127.0.0.1:9"
        upstreams = {"anthropic": there, "openai": f"{there}/v1", "google": there, "gone": gone}
        service = GatewayService(store, GatewaySettings(mode="on", management=TIGHT, upstreams=upstreams, exchange_s=60))
        spans = Spans(service, tracing)
        with listening(service) as url:
            for path, body in (
                ("/v1/messages", USED),
                ("/v1/messages", USED),
                ("/v1/messages", USED),
                ("/gone/v1/messages", USED),
            ):
                for header, key in KEYS.values():
                    shown.append(
                        httpx.post(f"{url}{path}?key={key.split()[-1]}", json=body, headers={header: key}, timeout=60).text
                    )
            httpx.post(f"{url}/v1/messages", content=b"{", headers={"x-api-key": KEYS["anthropic"][1]})
            for name in KEYS:
                agent(name, url, 3, stream=True)
            shown += [httpx.get(f"{url}{path}").text for path in ("/metrics", "/ui", f"/ui/{store.conversations()[0].id}")]
            assert becomes_idle(service)
        spans.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    logged = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]  # the SDKs' own among those
    assert logged
    told = "\n".join([*shown, *logged, *(span.to_json() for span in exporter.get_finished_spans())])
    assert b"KEY-7919" not in kept
    assert "KEY-7919" not in told
    assert any("KEY-7919" in json.dumps(dict(seen.headers)) for seen in provider.seen), "they went upstream"
