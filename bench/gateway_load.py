"""Many agents at once through one gateway: `python bench/gateway_load.py [--sessions 200] [--turns 12] [--tokens 60000]`.

Each session is an agent of its own over HTTP, streamed: it sends its whole history, waits for the reply, works for some seconds, and goes on. Provider, gateway and
agents are three processes. A tenth as many agents go to the provider directly meanwhile: what the gateway adds is the difference of the quantiles. The gateway's memory
is read from the system; at the end all agents pause until the gateway has let go of them, and each goes on with one more turn, out of the store.
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import socket
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from gateway import TOOLS, call_of, process, run_provider, text
from tenure.cli.serve import run
from tenure.context.exchange import Management
from tenure.engine.lifecycle.budget import Budget
from tenure.gateway.service import GatewayService
from tenure.gateway.settings import GatewaySettings
from tenure.store.store import Store

WORK_S: Final = (2.0, 6.0)  # between a reply and the next request
PAUSE_S: Final = 0.3  # between two events of a stream
TEXTS: Final = 200  # from which results are drawn
SLACK: Final = 60.0  # seconds for a reply


def run_gateway(port: Any, upstream: str, where: str, ceiling: int, idle_s: float, mode: str) -> None:
    """Serve as `tenure serve` does, and say where."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    settings = GatewaySettings(
        mode=mode,  # pyright: ignore[reportArgumentType]
        management=Management(budget=Budget(ceiling=ceiling)),
        upstreams={"anthropic": upstream},
        idle_s=idle_s,
        connections=10_000,
    )
    with Store(f"sqlite:///{where}/load.db") as store:
        service = GatewayService(store, settings)
        port.put((f"http://127.0.0.1:{number}", os.getpid()))
        asyncio.run(run(service, "127.0.0.1", number))


class Agent:
    """One session, as a client has it."""

    def __init__(self, url: str, name: str, texts: list[str], words: int) -> None:
        self._address = urlsplit(url).hostname, urlsplit(url).port
        self._source, self._texts, self._words = random.Random(name), texts, words
        head = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "system": "be brief " * 500, "tools": TOOLS}
        self._head = msgspec.json.encode(head)[:-1] + b',"messages":['
        self._messages = [msgspec.json.encode({"role": "user", "content": f"please do {name}"})]
        self._n = 0
        self.firsts: list[float] = []  # seconds to the first byte of each reply
        self.failures: list[str] = []

    async def turn(self) -> None:
        """One request, its reply, and the result of the call in it."""
        body = self._head + b",".join(self._messages) + b"]}"
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(SLACK):
                first, reply = await self._sent(body, begun)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.failures.append(type(error).__name__)
            return
        if b" 200 " not in reply[:20] or b"message_stop" not in reply or f"toolu_{self._n}".encode() not in reply:
            self.failures.append(reply[:300].decode("utf-8", "replace"))
            return
        self.firsts.append(first)
        content = "\n".join([f"{self._n}", *(self._source.choice(self._texts) for _ in range(self._words // 100))])
        result = {"type": "tool_result", "tool_use_id": f"toolu_{self._n}", "content": content}
        self._messages += [msgspec.json.encode(call_of(self._n)), msgspec.json.encode({"role": "user", "content": [result]})]
        self._n += 1

    async def _sent(self, body: bytes, begun: float) -> tuple[float, bytes]:
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            head = f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode())
            writer.write(body)
            await writer.drain()
            reply = await reader.readuntil(b"\r\n\r\n")
            reply += await reader.read(65_536)
            first = time.perf_counter() - begun
            while piece := await reader.read(65_536):
                reply += piece
            return first, reply
        finally:
            writer.close()

    async def work(self, turns: int) -> None:
        """Some turns, with work between."""
        await asyncio.sleep(self._source.uniform(0, sum(WORK_S)))
        for _ in range(turns):
            await self.turn()
            await asyncio.sleep(self._source.uniform(*WORK_S))

    @property
    def size(self) -> int:
        """Bytes of its history."""
        return sum(map(len, self._messages))


def memory(pid: int) -> float:
    """MiB of a process in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def processor_s(pid: int) -> float:
    """Seconds of processor that a process took."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metric(url: str, name: str) -> dict[str, float]:
    """A metric of the gateway, by its labels."""
    lines = httpx.get(f"{url}/metrics", timeout=60).text.splitlines()
    return {line.partition("{")[2].rpartition("}")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)}


def shown(values: list[float]) -> str:
    """Quantiles in milliseconds."""
    cuts = quantiles(values, n=100, method="inclusive")
    return f"p50 {cuts[49] * 1000:,.0f} ms, p99 {cuts[98] * 1000:,.0f} ms"


async def drive(url: str, direct: str, pid: int, options: argparse.Namespace) -> None:
    """Run all agents, and print what came of it."""
    source = random.Random(1)
    texts = [text(source, 100) for _ in range(TEXTS)]
    words = options.tokens // 3 // options.turns  # about three tokens each
    agents = [Agent(url, f"task {n}", texts, words) for n in range(options.sessions)]
    beside = [Agent(direct, f"task {n}", texts, words) for n in range(max(options.sessions // 10, 1))]
    await Agent(url, "warm", texts, words).turn()
    at_first, peak, begun, cpu = memory(pid), 0.0, time.perf_counter(), processor_s(pid)
    working = asyncio.gather(*(agent.work(options.turns) for agent in (*agents, *beside)))
    while not working.done():
        await asyncio.sleep(0.5)
        peak = max(peak, memory(pid))
    await working
    took, cpu = time.perf_counter() - begun, processor_s(pid) - cpu
    live = sum(metric(url, "tenure_conversations_live").values())
    now = memory(pid)
    calls = sum(len(agent.firsts) for agent in agents)
    print(
        f"{len(agents)} sessions, {calls:,} requests in {took:.0f} s, histories of {sum(a.size for a in agents) // len(agents):,} bytes at last"
    )
    print(f"  failures {sum(len(agent.failures) for agent in agents)}; passed through: {metric(url, 'tenure_fail_opens_total{')}")
    for failure in [each for agent in agents for each in agent.failures][:3]:
        print("   ", failure)
    print(
        f"  commits {sum(metric(url, 'tenure_commits_total{').values()):.0f}; processor {cpu / max(calls, 1) * 1000:.1f} ms a request"
    )
    ours, theirs = ([first for agent in each for first in agent.firsts] for each in (agents, beside))
    print(f"  first byte: through the gateway {shown(ours)}; directly {shown(theirs)}")
    print(
        f"  memory {at_first:.0f} MiB at first, {peak:.0f} at most, {now:.0f} with {live:.0f} live: {(now - at_first) / max(live, 1):.2f} MiB each"
    )
    until = time.monotonic() + 4 * options.idle
    while (live := sum(metric(url, "tenure_conversations_live").values())) and time.monotonic() < until:
        await asyncio.sleep(0.5)
    print(f"  after {options.idle:.0f} s without requests {live:.0f} are live, memory {memory(pid):.0f} MiB")
    before = [len(agent.failures) for agent in agents]
    for start in range(0, len(agents), 20):
        await asyncio.gather(*(agent.turn() for agent in agents[start : start + 20]))
    failed = sum(len(agent.failures) for agent in agents) - sum(before)
    print(
        f"  all go on out of the store: {failed} failures, memory {memory(pid):.0f} MiB; events {metric(url, 'tenure_events_total{')}"
    )


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=60_000, help="of each history at its end, about")
    parser.add_argument("--ceiling", type=int, default=40_000)
    parser.add_argument("--idle", type=float, default=30.0, help="seconds after which the gateway lets go of a conversation")
    parser.add_argument("--mode", default="on", choices=("pass", "shadow", "on"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where, process(run_provider, PAUSE_S) as upstream:
        arguments = upstream, where, options.ceiling, options.idle, options.mode
        with process(run_gateway, *arguments) as (url, pid):
            while True:
                try:
                    httpx.get(f"{url}/healthz")
                    break
                except httpx.ConnectError:
                    time.sleep(0.1)
            asyncio.run(drive(url, upstream, pid, options))
        store = Store(f"sqlite:///{where}/load.db", read_only=True)
        print(f"  conversations in the store: {len(store.conversations()):,}")
        store.close()


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
