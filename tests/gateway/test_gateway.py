"""The gateway over HTTP, between the official SDKs and the fake provider."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import sleep
from typing import Any

import anthropic
import httpx
import pytest
from backports import zstd
from sdk_clients import STEPS, results, user
from starlette.responses import Response
from starlette.routing import Route

from tenure.apis import APIS
from tenure.context.exchange import Management
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import Text, ToolCall
from tenure.errors import InputError, StoreError
from tenure.gateway.server import Gateway
from tenure.gateway.settings import GatewaySettings, check_address, tokens_of, upstreams_of
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Broken, Call, Fault, Reply, Script, Turn
from tenure.testing.store import MemoryStore

NAMES = sorted(STEPS)
READ = Call(name="read", arguments='{"path": "a.py"}')
RECALL = Call(name="recall", arguments='{"words": "value of item"}')
LONG = "".join(f"line {n}: the value of item {n} is {n * 7919}\n" for n in range(120))
TIGHT = Management(budget=Budget(ceiling=2_000), gate="priced")
QUESTION = {"model": "claude-opus-5", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}


@contextmanager
def between(provider: FakeProvider, *, store: Any = None, **fields: Any) -> Iterator[tuple[str, Gateway]]:
    """A gateway before a provider: its URL, and itself."""
    with serve(provider.app) as upstream:
        urls = {"anthropic": upstream, "openai": f"{upstream}/v1", "google": upstream, "local": f"{upstream}/v1"}
        settings = GatewaySettings(**{"mode": "on", "management": TIGHT, "upstreams": urls, "exchange_s": 60.0, **fields})
        with running(Gateway, MemoryStore() if store is None else store, settings) as (url, gateway):
            yield url, gateway


@contextmanager
def running(kind: Any, store: Any, settings: GatewaySettings) -> Iterator[tuple[str, Gateway]]:
    """A gateway that is closed in its own loop."""

    async def close(_request: Any) -> Response:
        await gateway.aclose(drain_s=5)
        return Response()

    gateway: Gateway = kind(store, settings, routes=[Route("/close", close)])
    with serve(gateway.app) as url:
        try:
            yield url, gateway
        finally:
            httpx.get(f"{url}/close", timeout=10)


def replies(body: Mapping[str, Any]) -> Turn:
    """Reads until the fifteenth message; recalls what has left when that is offered, alone and beside another call."""
    known = json.dumps(body, ensure_ascii=False)
    said = known.count("look ")
    if '"recall"' in known and "again" not in known:
        return Reply(thinking="hm", text="again", calls=(RECALL,))
    if '"recall"' in known and "both" not in known:
        return Reply(text="both", calls=(RECALL, READ))
    return Reply(thinking=f"t{said}", text=f"look {said}", calls=(READ,))


def becomes_idle(gateway: Gateway) -> bool:
    """Whether the gateway comes to an end of its requests; a client has its reply a moment earlier."""
    for _ in range(1_000):
        if not gateway.active:
            gateway._adopters.submit(int).result()  # behind what is decided after the newest reply
            return True
        sleep(0.01)
    return False


def agent(name: str, url: str, steps: int, *, stream: bool) -> list[str]:
    """What an agent called, over so many steps."""
    called: list[str] = []
    with STEPS[name](url, stream=stream) as step:
        history: list[Any] = [user("please do it", name)]
        for _ in range(steps):
            history, calls = step(history)
            called += [tool for _, tool in calls]
            history += results(name, calls, LONG) if calls else [user("go on", name)]
    return called


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_of_any_sdk_works_on_and_never_meets_a_tool_of_ours(name: str, stream: bool) -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with between(provider) as (url, gateway):
        called = agent(name, url, 12, stream=stream)
        assert set(called) == {"read"}
        assert not [seen.violations for seen in provider.seen if seen.violations]
        assert gateway.counts["changed"]
        assert gateway.counts["could not be managed"] + gateway.counts["could not be recorded"] == 0
        (only,) = gateway.histories.store.conversations()
        calls = [
            block for entry in gateway.histories.store.entries(only.id) for block in entry.blocks if isinstance(block, ToolCall)
        ]
        assert "recall" in [call.name for call in calls]
        assert becomes_idle(gateway)


@pytest.mark.parametrize("mode", ["pass", "shadow"])
@pytest.mark.parametrize("name", NAMES)
def test_in_pass_and_shadow_every_body_goes_out_as_it_came(name: str, mode: str) -> None:
    alone, behind = FakeProvider(replies, clock=lambda: 0.0), FakeProvider(replies, clock=lambda: 0.0)
    with serve(alone.app) as url:
        agent(name, f"{url}", 6, stream=True)
    with between(behind, mode=mode) as (url, gateway):
        agent(name, url, 6, stream=True)
        kept = gateway.histories.store.conversations()
    assert [seen.body for seen in behind.seen] == [seen.body for seen in alone.seen]
    assert [held.commits for held in kept] == ([0] if mode == "shadow" else [])
    if mode == "shadow":
        assert kept[0].length >= 12


@pytest.mark.parametrize("fault", [400, 401, 429, 529])
def test_errors_reach_the_client_word_for_word(fault: int) -> None:
    provider = FakeProvider(
        Script(replies=(Fault(status=fault, message="prompt is too long: 9 tokens > 8 maximum", retry_after_s=3),))
    )
    with between(provider) as (url, _):
        answer = httpx.post(f"{url}/v1/messages", json=QUESTION, headers={"x-api-key": "k", "anthropic-beta": "b1"})
    assert answer.status_code == fault
    assert answer.json()["error"]["message"] == "prompt is too long: 9 tokens > 8 maximum"
    assert answer.headers["retry-after"] == "3"
    assert provider.seen[0].headers["anthropic-beta"] == "b1"
    assert provider.seen[0].headers["x-api-key"] == "k"


class Failing(MemoryStore):
    """A store whose methods fail from the `after`-th call on."""

    def __init__(self, error: Exception, after: int = 0) -> None:
        super().__init__()
        self.error, self.left = error, after

    def __getattribute__(self, name: str) -> Any:
        if name in ("append", "link", "links", "conversation", "create", "observe", "commits"):
            if self.left <= 0:
                raise self.error
            self.left -= 1
        return super().__getattribute__(name)


@pytest.mark.parametrize("after", [0, 3, 9, 20, 41])
@pytest.mark.parametrize("error", [StoreError("the disk is full"), RuntimeError("a bug")], ids=["store", "bug"])
def test_an_agent_works_on_when_the_store_fails(error: Exception, after: int, caplog: pytest.LogCaptureFixture) -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with caplog.at_level(logging.CRITICAL), between(provider, store=Failing(error, after)) as (url, gateway):
        called = agent("anthropic", url, 8, stream=True)
        assert set(called) == {"read"}
        assert gateway.counts["could not be managed"] + gateway.counts["could not be recorded"]
    assert not [seen.violations for seen in provider.seen if seen.violations]


def test_an_agent_works_on_when_the_policy_raises(caplog: pytest.LogCaptureFixture) -> None:
    from tenure.engine.policies import POLICIES

    class Raising:
        name, conduct = "raising", POLICIES["tiered"].conduct

        def __call__(self, situation: object, /) -> Iterator[Any]:
            raise RuntimeError("no")

    provider = FakeProvider(replies, clock=lambda: 0.0)
    with (
        caplog.at_level(logging.CRITICAL),
        between(provider, management=Management(budget=Budget(ceiling=2_000), policy=Raising())) as (url, gateway),
    ):
        assert set(agent("openai-chat", url, 8, stream=True)) == {"read"}
        assert gateway.counts["could not be managed"]


def test_finding_that_takes_too_long_is_not_waited_for() -> None:
    held = threading.Event()

    class Slow(MemoryStore):
        def links(self, ids: Sequence[str]) -> Any:
            held.wait(10)
            return super().links(ids)

    provider = FakeProvider(Script(replies=(Reply(text="hi"),)))
    with between(provider, store=Slow(), exchange_s=0.05) as (url, gateway):
        answer = httpx.post(f"{url}/v1/messages", json=QUESTION)
        held.set()
        assert answer.status_code == 200
        assert gateway.counts["took too long to find"] == 1


def test_a_changed_request_that_is_refused_goes_out_again_as_the_client_wrote_it() -> None:
    def script(body: Mapping[str, Any]) -> Turn:
        return Fault(status=400, message="no recall here") if "recall" in json.dumps(body.get("tools")) else replies(body)

    provider = FakeProvider(script, clock=lambda: 0.0)
    with between(provider) as (url, gateway):
        assert set(agent("openai-responses", url, 8, stream=True)) == {"read"}
        assert gateway.counts["refused when changed"] == 1


@pytest.mark.parametrize("how", ["cut", "end", "malformed", "error"])
def test_a_stream_that_breaks_breaks_at_the_client(how: Any) -> None:
    provider = FakeProvider(Script(replies=(Broken(reply=Reply(text="hello you", calls=(READ,)), how=how), Reply(text="hi"))))
    with between(provider) as (url, gateway):
        with (
            pytest.raises(Exception),  # noqa: B017, PT011
            anthropic.Anthropic(base_url=url, api_key="-", max_retries=0) as client,
            client.messages.stream(**QUESTION) as events,  # type: ignore[arg-type]
        ):
            assert events.get_final_message().stop_reason
        assert httpx.post(f"{url}/v1/messages", json=QUESTION).status_code == 200
        assert becomes_idle(gateway)


def test_other_paths_and_websockets() -> None:
    seen: list[Any] = []

    async def upstream(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["method"], scope["path"], scope["query_string"], dict(scope["headers"])))
        await send({"type": "http.response.start", "status": 203, "headers": [(b"x-a", b"1"), (b"x-a", b"2")]})
        await send({"type": "http.response.body", "body": b"models"})

    with serve(upstream) as there:
        upstreams = {"openai": f"{there}/v1", "anthropic": there, "box": f"{there}/deep/v1"}
        with running(Gateway, MemoryStore(), GatewaySettings(mode="on", upstreams=upstreams)) as (url, _):
            answer = httpx.get(f"{url}/v1/models?limit=3", headers={"authorization": "Bearer k"})
            assert (answer.status_code, answer.text, answer.headers.get_list("x-a")) == (203, "models", ["1", "2"])
            httpx.get(f"{url}/v1/models", headers={"anthropic-version": "1"})
            httpx.get(f"{url}/box/v1/models")
            httpx.delete(f"{url}/box/files/1")
            refused = httpx.get(f"{url}/v1/responses", headers={"upgrade": "websocket", "connection": "upgrade"})
            assert refused.status_code == 426
    assert [each[:3] for each in seen] == [
        ("GET", "/v1/models", b"limit=3"),
        ("GET", "/v1/models", b""),
        ("GET", "/deep/v1/models", b""),
        ("DELETE", "/deep/v1/files/1", b""),
    ]
    assert seen[0][3][b"authorization"] == b"Bearer k"
    assert b"accept-encoding" in seen[0][3]


def test_a_packed_body_is_read_and_one_that_is_too_large_refused() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="hi"),) * 3))
    body = json.dumps({**QUESTION, "tools": [{"name": "read", "input_schema": {"type": "object"}}]}).encode()
    with between(provider, mode="shadow", body_bytes=10_000) as (url, gateway):
        packed = httpx.post(f"{url}/v1/messages", content=zstd.compress(body), headers={"content-encoding": "zstd"})
        assert packed.status_code == 400  # the fake provider reads no zstd: it went on as it came
        assert provider.seen[0].body == zstd.compress(body)
        assert gateway.counts["leads"] == 1
        bomb = httpx.post(f"{url}/v1/messages", content=zstd.compress(b" " * 10_000_000), headers={"content-encoding": "zstd"})
        assert bomb.status_code == 400
        assert gateway.counts["could not be managed"] == 1
        assert httpx.post(f"{url}/v1/messages", content=b" " * 20_000).status_code == 413


def test_a_tenant_sees_nothing_of_another() -> None:
    tokens = tokens_of(["red=" + "r" * 20, "blue=" + "b" * 20])
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with between(provider, tokens=tokens) as (url, gateway):
        assert httpx.post(f"{url}/v1/messages", json=QUESTION).status_code == 401
        assert httpx.post(f"{url}/v1/messages", json=QUESTION, headers={"x-tenure-token": "z" * 20}).status_code == 401
        agent("anthropic", f"{url}/t/{'r' * 20}", 4, stream=True)
        agent("anthropic", f"{url}/t/{'b' * 20}", 4, stream=True)
        store = gateway.histories.store
        red, blue = store.conversations("red"), store.conversations("blue")
    assert (len(red), len(blue), len(store.conversations(None))) == (1, 1, 2)
    assert red[0].parent == blue[0].parent == ""
    assert not any("x-tenure-token" in seen.headers for seen in provider.seen)


def test_keys_are_not_stored(tmp_path: Any) -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with Store(f"sqlite:///{tmp_path}/a.db") as store, between(provider, store=store) as (url, _):
        with anthropic.Anthropic(base_url=url, api_key="sk-very-secret-key") as client:
            client.messages.create(**QUESTION, tools=[{"name": "read", "input_schema": {"type": "object"}}])  # type: ignore[arg-type, call-overload]
        assert store.conversations()
    assert b"sk-very-secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_gateway_that_starts_again_goes_on_with_the_same_conversation(tmp_path: Any) -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    history: list[Any] = [user("please do it")]
    sent: list[bytes] = []
    commits = 0
    for _ in range(10):
        with (
            Store(f"sqlite:///{tmp_path}/a.db") as store,
            between(provider, store=store) as (url, _),
            STEPS["anthropic"](url, stream=True) as step,
        ):
            history, calls = step(history)
            history += results("anthropic", calls, LONG)
            (only,) = store.conversations()
            sent.append(provider.seen[-1].body)
            commits = only.commits
    assert commits
    assert not [seen.violations for seen in provider.seen if seen.violations]


def test_addresses_that_others_can_reach_need_tokens_and_tls() -> None:
    open_to_all, known = GatewaySettings(), GatewaySettings(tokens=tokens_of(["a=" + "t" * 16]))
    check_address("127.0.0.1", open_to_all, has_tls=False, insecure=False)
    with pytest.raises(InputError, match="client tokens"):
        check_address("0.0.0.0", open_to_all, has_tls=True, insecure=True)
    with pytest.raises(InputError, match="TLS"):
        check_address("10.0.0.1", known, has_tls=False, insecure=False)
    check_address("10.0.0.1", known, has_tls=True, insecure=False)
    check_address("::", known, has_tls=False, insecure=True)


@pytest.mark.parametrize("text", ["x", "x=ftp://a", "X=http://a", "x=http://a?k=1", "x=http://u:p@a", "=http://a"])
def test_an_upstream_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="upstream"):
        upstreams_of([text])


def test_a_gateway_that_closes_lets_replies_end() -> None:
    gateway = Gateway(MemoryStore())
    asyncio.run(gateway.aclose())


def test_a_human_text_stands_in_the_record_once() -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with between(provider) as (url, gateway):
        agent("gemini", url, 6, stream=True)
        store = gateway.histories.store
        (only,) = store.conversations()
        texts = [block.text for entry in store.entries(only.id) for block in entry.blocks if isinstance(block, Text)]
    assert texts.count("please do it") == 1
    assert APIS


def test_many_agents_at_once_do_not_disturb_each_other(tmp_path: Any) -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with Store(f"sqlite:///{tmp_path}/a.db") as store, between(provider, store=store) as (url, gateway):

        def work(n: int) -> list[str]:
            with STEPS["anthropic"](url, stream=True) as step:
                history: list[Any] = [user(f"task {n}")]
                called: list[str] = []
                for _ in range(6):
                    asides = [
                        {**QUESTION, "messages": [user(f"a title for task {n}")]},
                        {**QUESTION, "messages": [*plain(history), user("?")]},
                    ]
                    others = [
                        threading.Thread(target=httpx.post, args=(f"{url}/v1/messages",), kwargs={"json": each, "timeout": 60})
                        for each in asides[: 1 + (len(history) == 1)]
                    ]
                    for other in others:
                        other.start()
                    history, calls = step(history)
                    for other in others:
                        other.join()
                    called += [tool for _, tool in calls]
                    history += results("anthropic", calls, LONG) if calls else [user("go on")]
            return called

        with ThreadPoolExecutor(6) as pool:
            called = [tool for each in pool.map(work, range(6)) for tool in each]
        assert set(called) == {"read"}
        assert not [seen.violations for seen in provider.seen if seen.violations]
        assert gateway.counts["could not be managed"] + gateway.counts["could not be recorded"] == 0
        held = store.conversations()
        assert sorted(next(iter(store.entries(each.id))).blocks[0].text for each in held) == [f"task {n}" for n in range(6)]
        assert becomes_idle(gateway)


def plain(history: list[Any]) -> list[Any]:
    """The messages that a person wrote."""
    return [message for message in history if isinstance(message["content"], str)][:1]


def test_a_long_history_that_was_never_seen_passes_while_it_is_taken_in() -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    history: list[Any] = [user("please do it")]
    for n in range(40):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"path": f"{n}.py"}}
        history += [{"role": "assistant", "content": [call]}, *results("anthropic", [(f"toolu_{n}", "read")], LONG)]
    management = Management(budget=Budget(ceiling=20_000), inline_bytes=50_000)
    with between(provider, management=management) as (url, gateway), STEPS["anthropic"](url, stream=True) as step:
        history, calls = step(history)
        assert gateway.counts["it is being taken in"] == 1
        gateway._adopters.submit(lambda: None).result(timeout=60)
        history, calls = step([*history, *results("anthropic", calls, LONG)])
        assert (gateway.counts["leads"], gateway.counts["changed"]) == (1, 1)
        step([*history, *results("anthropic", calls, LONG)])
        (only,) = gateway.histories.store.conversations()
    assert only.commits
    assert [seen.violations for seen in provider.seen] == [()] * 3
    assert len(provider.seen[1].body) < len(provider.seen[0].body) / 2


def test_a_count_of_tokens_is_that_of_what_would_be_sent() -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with between(provider) as (url, gateway), STEPS["anthropic"](url, stream=True) as step:
        history: list[Any] = [user("please do it")]
        for _ in range(10):
            history, calls = step(history)
            history += results("anthropic", calls, LONG)
        assert becomes_idle(gateway)
        body = {**QUESTION, "tools": [{"name": "read", "input_schema": {"type": "object"}}]}
        body["messages"] = [
            {
                "role": each["role"],
                "content": [
                    part if isinstance(part, dict) else part.model_dump(mode="json", exclude_none=True)
                    for part in each["content"]
                ],
            }
            if isinstance(each["content"], list)
            else each
            for each in history
        ]
        (only,) = gateway.histories.store.conversations()
        count = httpx.post(f"{url}/v1/messages/count_tokens", json=body).json()
        assert count["input_tokens"] < len(json.dumps(body)) / 8
        assert gateway.histories.store.conversations() == (only,)
