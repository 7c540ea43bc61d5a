"""`tenure serve` as a process that is killed, runs out of disk, or finds a damaged row: what goes upstream, and what is in its log."""

import json
import os
import random
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from time import sleep
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

LONG = "".join(f"line {n}: the value of item {n} is {n * 7919}\n" for n in range(120))
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
STEPS = 16


def script() -> Script:
    return Script(
        replies=tuple(Reply(text=f"look {n}", calls=(Call(name="read", arguments='{"path": "a.py"}'),)) for n in range(400))
    )


class Constant:
    """A provider that gives the same reply however often it is asked in a step."""

    def __init__(self) -> None:
        self.step, self.bodies = 0, list[bytes]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.bodies.append(await Request(scope, receive).body())
        call = {"type": "tool_use", "id": f"toolu_{self.step}", "name": "read", "input": {"path": "a.py"}}
        size = len(self.bodies[-1]) // 4
        reply = {
            "id": f"msg_{self.step}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5",
            "content": [{"type": "text", "text": f"look {self.step}"}, call],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": size, "output_tokens": 9},
        }
        await JSONResponse(reply)(scope, receive, send)


class Served:
    """`tenure serve` in a process, and again after it was killed, on the same port."""

    def __init__(self, folder: Path, upstream: str, *, disk: int = 0) -> None:
        self.folder, self.upstream, self._disk = folder, upstream, disk
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        def limit() -> None:
            if self._disk:
                resource.setrlimit(resource.RLIMIT_FSIZE, (self._disk, self._disk))
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        arguments = [
            "serve",
            "--mode",
            "on",
            "--ceiling",
            "2k",
            "--port",
            str(self.port),
            "--store",
            f"sqlite:///{self.folder}/a.db",
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tenure", *arguments, "--upstream", f"anthropic={self.upstream}"],
                stdout=log,
                stderr=log,
                env={**os.environ, "HOME": str(self.folder)},
                preexec_fn=limit,
            )
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/healthz").status_code == 200:
                    return
            except httpx.TransportError:
                assert self.process.poll() is None, self.log.read_text()
                sleep(0.05)
        raise AssertionError(self.log.read_text())

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)


@contextmanager
def served(folder: Path, provider: ASGIApp, **limits: int) -> Iterator[Served]:
    folder.mkdir(exist_ok=True)
    with serve(provider) as upstream:
        it = Served(folder, upstream, **limits)
        it.start()
        try:
            yield it
        finally:
            it.stop()


def asked(it: Served, history: list[Any], kill_after: float | None = None) -> dict[str, Any]:
    """A reply, as by a client that tries again; the gateway is killed so many seconds after the first try, and started again."""
    body = {"model": "claude-opus-5", "max_tokens": 99, "messages": history, "tools": TOOLS}
    timer = Timer(kill_after, it.kill) if kill_after is not None else None
    if timer is not None:
        timer.start()
    while True:
        try:
            answer = httpx.post(
                f"{it.url}/v1/messages?key=sk-KEY-7919", json=body, headers={"x-api-key": "sk-KEY-7919"}, timeout=60
            )
            if answer.status_code == 200:
                return answer.json()
        except httpx.TransportError:
            pass
        finally:
            if timer is not None:
                timer.join()
                timer = None
                it.start()


def step(it: Served, history: list[Any], kill_after: float | None = None) -> None:
    answer = asked(it, history, kill_after)
    calls = [part["id"] for part in answer["content"] if part["type"] == "tool_use"]
    history += [
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": each, "content": LONG} for each in calls]},
    ]


@pytest.mark.long
def test_a_gateway_that_is_killed_at_any_moment_sends_the_same_bytes_when_it_is_back(tmp_path: Path) -> None:
    """One gateway lives, one is killed in every step, in the middle of whatever it does then: what the provider gets last in each step must be the same."""
    bodies: list[list[bytes]] = []
    chance, retries = random.Random(7919), 0
    for name in ("living", "killed"):
        provider, newest = Constant(), list[bytes]()
        history: list[Any] = [{"role": "user", "content": "please do it"}]
        with served(tmp_path / name, provider) as it:
            for n in range(STEPS):
                provider.step = n
                step(it, history, chance.uniform(0.0, 0.12) if name == "killed" else None)
                newest.append(provider.bodies[-1])
        retries = len(provider.bodies) - STEPS
        bodies.append(newest)
        with Store(f"sqlite:///{tmp_path / name}/a.db") as store:
            for held in store.conversations(None):
                assert store.verify(held.id) is None
    assert retries, "it was killed in the middle of requests"
    assert len(bodies[0][-1]) < 20_000, "something left"
    assert [n for n in range(STEPS) if bodies[1][n] != bodies[0][n]] == []


@pytest.mark.long
def test_a_full_disk_costs_nothing_but_the_record(tmp_path: Path) -> None:
    provider = FakeProvider(script(), clock=lambda: 0.0)
    with served(tmp_path, provider.app, disk=120_000) as it:
        history: list[Any] = [{"role": "user", "content": "please do it"}]
        for _ in range(STEPS):
            step(it, history)
        metrics = httpx.get(f"{it.url}/metrics").text
    assert [seen.violations for seen in provider.seen if seen.violations] == []
    assert "tenure_fail_opens_total" in metrics
    assert len(provider.seen[-1].body) > 50_000, "the client's own bytes went out"
    assert "KEY-7919" not in it.log.read_text()
    assert "could not be" in it.log.read_text()


@pytest.mark.long
@pytest.mark.parametrize("table", ["entry", "commit_log", "conversation", "client_link"])
def test_a_damaged_row_costs_nothing_but_its_conversation(table: str, tmp_path: Path) -> None:
    provider = FakeProvider(script(), clock=lambda: 0.0)
    column = {"entry": "payload", "commit_log": "body", "conversation": "terms", "client_link": "n"}[table]
    with served(tmp_path, provider.app) as it:
        history: list[Any] = [{"role": "user", "content": "please do it"}]
        for _ in range(10):
            step(it, history)
        it.kill()
        with sqlite3.connect(tmp_path / "a.db") as connection:
            connection.execute(f"UPDATE {table} SET {column} = x'ff00'")
        connection.close()
        it.start()
        for _ in range(3):
            step(it, history)
        other: list[Any] = [{"role": "user", "content": "something else"}]
        step(it, other)
    assert [seen.violations for seen in provider.seen if seen.violations] == []
    assert any(json.loads(seen.body)["messages"] == other[:1] for seen in provider.seen)
