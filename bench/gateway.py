"""What the gateway adds to the time to the first byte of a reply: `python bench/gateway.py [--calls 40]`.

A conversation of 200,000 tokens (about 900 KB) and one below 50,000 go on call by call over HTTP, streamed, to a provider that answers at once: directly, and through
the gateway in each mode. Prints the time to the first byte, and what the gateway added, in milliseconds, p50 and p99 over the calls, those with a commit apart.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from statistics import quantiles
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tenure.apis import APIS
from tenure.context.exchange import Management
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.gateway.server import Gateway
from tenure.gateway.settings import GatewayMode, GatewaySettings
from tenure.store.store import Store
from tenure.testing.provider import serve

API = APIS["anthropic"]
TOOLS = [{"name": f"tool{n}", "description": "words " * 120, "input_schema": {"type": "object"}} for n in range(16)]
WORDS = [f"{a}{b}" for a in ("read", "path", "value", "line", "item", "name", "test", "file") for b in range(400)]


def text(source: random.Random, words: int) -> str:
    """Lines of a file that nobody wrote."""
    return "\n".join(" ".join(source.choice(WORDS) for _ in range(10)) for _ in range(words // 10))


def provider(pause_s: float = 0.0) -> Starlette:
    """Answers at once with the next call, with a pause before each further event; a fixed share of the prompt is taken as cached."""

    async def answer(request: Request) -> StreamingResponse:
        raw = await request.body()
        done = raw.rfind(b'"toolu_')
        said = call_of(int(raw[done + 7 : raw.index(b'"', done + 7)]) + 1 if done >= 0 else 0)
        usage = {
            "input_tokens": 9,
            "cache_read_input_tokens": len(raw) // 4,
            "cache_creation_input_tokens": 0,
            "output_tokens": 20,
        }
        reply = {
            "id": "msg",
            "type": "message",
            "model": "m",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": usage,
            **said,
        }
        return StreamingResponse(paced(API.server().events(reply, include_usage=True), pause_s), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/messages", answer, methods=["POST"])])


async def paced(events: Iterable[bytes], pause_s: float) -> AsyncIterator[bytes]:
    """Events with a pause after each."""
    for event in events:
        yield event
        await asyncio.sleep(pause_s)


def call_of(n: int) -> dict[str, Any]:
    """The `n`-th reply."""
    made = {"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"path": f"src/f{n}.py"}}
    return {"role": "assistant", "content": [{"type": "text", "text": "I read on."}, made]}


def run_provider(port: Any, pause_s: float = 0.0) -> None:
    """Serve the provider, and say where."""
    with serve(provider(pause_s)) as url:
        port.put(url)
        time.sleep(10**6)


def run_gateway(port: Any, upstream: str, mode: GatewayMode, target: int, where: str) -> None:
    """Serve a gateway before it, and say where."""
    settings = GatewaySettings(
        mode=mode,
        management=Management(budget=Budget(target=target, window=10**7), gate="priced", inline_bytes=10**9),
        upstreams={"anthropic": upstream},
        exchange_s=60,
    )
    with Store(f"sqlite:///{where}/{mode}-{target}.db") as store, serve(Gateway(store, settings).app) as url:
        port.put(url)
        time.sleep(10**6)


@contextmanager
def process(target: Any, *arguments: Any) -> Iterator[Any]:
    """A server in a process of its own; what it says once it is there, such as its URL."""
    port: Any = multiprocessing.Queue()
    child = multiprocessing.Process(target=target, args=(port, *arguments), daemon=True)
    child.start()
    try:
        yield port.get()
    finally:
        child.terminate()
        child.join()


def call(client: httpx.Client, url: str, body: bytes) -> float:
    """Seconds to the first byte of a streamed reply, all of which is read."""
    start = time.perf_counter()
    with client.stream(
        "POST", f"{url}/v1/messages", content=body, headers={"x-api-key": "k", "anthropic-version": "2023-06-01"}
    ) as response:
        pieces = response.iter_raw()
        next(pieces)
        first = time.perf_counter() - start
        for _ in pieces:
            pass
    assert response.status_code == 200
    return first


def history(source: random.Random, tokens: int) -> list[dict[str, Any]]:
    """A conversation of about so many tokens."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "please do it"}]
    for n in range(tokens // 900):
        messages += step(source, n)
    return messages


def step(source: random.Random, n: int) -> list[dict[str, Any]]:
    """A call and its result."""
    result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": text(source, 300)}
    return [call_of(n), {"role": "user", "content": [result]}]


def measure(urls: dict[str, str], tokens: int, calls: int) -> dict[str, list[float]]:
    """Seconds to the first byte of each call, at each URL."""
    source = random.Random(tokens)
    messages = history(source, tokens)
    times, body = dict[str, list[float]]({name: [] for name in urls}), b""
    with httpx.Client(timeout=120) as client:
        for _ in range(calls):
            head = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "system": "be brief " * 500, "tools": TOOLS}
            body = json.dumps({**head, "messages": messages}, ensure_ascii=False).encode()
            for name, url in urls.items():
                times[name].append(call(client, url, body))
            messages += step(source, (len(messages) - 1) // 2)
    print(f"{tokens:,} tokens at first, {len(body):,} bytes at last, {calls} calls")
    return times


def shown(values: list[float]) -> str:
    """Quantiles in milliseconds."""
    cuts = quantiles(values, n=100, method="inclusive") if len(values) > 1 else [values[0]] * 99
    return f"p50 {cuts[49] * 1000:7.1f}  p99 {cuts[98] * 1000:7.1f}  most {max(values) * 1000:7.1f}"


def processor(tokens: int, target: int, calls: int) -> None:
    """Print the processor's time for one request and for its reply, which no other load on the machine changes much."""
    source = random.Random(tokens)
    messages, times = history(source, tokens), list[tuple[float, float, bool]]()
    with tempfile.TemporaryDirectory() as where, Store(f"sqlite:///{where}/a.db") as store:
        later, behind, asides = list[Callable[[], None]](), list[float](), list[float]()
        histories = Histories(
            store, Management(budget=Budget(target=target, window=10**7), gate="priced"), background=later.append
        )
        for _ in range(calls + 1):
            n = (len(messages) - 1) // 2
            head = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "system": "be brief " * 500, "tools": TOOLS}
            body = json.dumps({**head, "messages": messages}, ensure_ascii=False).encode()
            commits = sum(held.commits for held in store.conversations())
            start = time.thread_time()
            exchange = histories.exchange(API, body)
            found = time.thread_time()
            usage = {
                "input_tokens": 9,
                "cache_read_input_tokens": len(exchange.body) // 4,
                "cache_creation_input_tokens": 0,
                "output_tokens": 20,
            }
            reply = {
                "id": f"msg_{n}",
                "type": "message",
                "model": "m",
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": usage,
                **call_of(n),
            }
            events = list(API.server().events(reply, include_usage=True))
            middle = time.thread_time()
            for event in events:
                exchange.take(event)
            exchange.end()
            end = time.thread_time()
            for task in later:
                task()
            later.clear()
            behind.append(time.thread_time() - end)
            times.append((found - start, end - middle, sum(held.commits for held in store.conversations()) > commits))
            aside = json.dumps({**head, "messages": [*messages, call_of(n), {"role": "user", "content": "A title?"}]}).encode()
            start = time.thread_time()
            histories.exchange(API, aside, aside=True).close()
            asides.append(time.thread_time() - start)
            messages += step(source, n) if len(times) > 1 else []  # the first is sent again, once its history was taken in
    print(f"  processor  first request of an unknown history {times[0][0] * 1000:.1f}, behind it {behind[0] * 1000:.1f}")
    print(f"  processor  request {shown([each for each, _, _ in times[3:]])}")
    print(f"  processor  reply   {shown([each for _, each, _ in times[3:]])}")
    print(f"  processor  behind  {shown(behind[3:])}  ({sum(commits for _, _, commits in times)} commits)")
    print(f"  processor  aside   {shown(asides[3:])}")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--target", type=int, default=0, help="budget in tokens; 0: both that never evicts and one that does")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where, process(run_provider) as upstream:
        for tokens in (40_000, 200_000):
            for target in [options.target] if options.target else [tokens * 4, tokens // 2]:
                with (
                    process(run_gateway, upstream, "pass", target, where) as passing,
                    process(run_gateway, upstream, "on", target, where) as on,
                ):
                    times = measure({"direct": upstream, "pass": passing, "on": on}, tokens, options.calls)
                print(f"  budget {target:,}")
                processor(tokens, target, options.calls)
                direct = times.pop("direct")
                print(f"  direct     {shown(direct)}")
                for name, values in times.items():
                    added = [a - b for a, b in zip(values, direct, strict=True)]
                    print(
                        f"  {name:5} adds {shown(added[3:])}   first calls {', '.join(f'{each * 1000:.0f}' for each in added[:3])}"
                    )


if __name__ == "__main__":
    main()
