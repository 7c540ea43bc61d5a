"""The gateway beside other proxies, in one run: `python bench/gateway_peers.py [--calls 20] [--peers FOLDER]`.

A conversation of 40,000 tokens and one of 200,000 go on call by call, streamed, to a provider that answers at once: directly, through our gateway in each mode, through
CliffCompaction's proxy and through LiteLLM's. Each request is the same for all of them, and goes to each in turn. Printed are what each adds to the time to the first byte
(its difference to the direct call before it), the processor's time that its process took for a request, in how many requests other bytes reached the provider than the
client sent, and how much of what reached it stands in the request before too (tools, system prompt and messages from the start on): what a provider can have cached.

Peers are installed on first use into environments of their own in FOLDER; one that does not install is left out, and the output says so.
"""

import argparse
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway import API, TOOLS, call_of, history, process, run_gateway, shown, step
from gateway_load import processor_s
from tenure.testing.provider import serve

MODEL: Final = "claude-sonnet-4-5"
START_S: Final = 240.0  # that a peer may take to start
LITELLM: Final = """
model_list:
  - model_name: {model}
    litellm_params: {{model: "anthropic/{model}", api_key: "litellm", api_base: "{upstream}"}}
"""


class Seen(Struct, frozen=True):
    """A request as it reached the provider."""

    sha256: str
    bytes: int
    shared: int  # of them: in front, as in the request before


def provider() -> Starlette:
    """Answers at once with the next call, and keeps what came, by the key that it came with."""
    seen: dict[str, list[Seen]] = {}
    before: dict[str, list[bytes]] = {}

    async def answer(request: Request) -> StreamingResponse:
        raw, key = await request.body(), request.headers.get("x-api-key", "")
        body = msgspec.json.decode(raw)
        parts = [msgspec.json.encode(each) for each in (body.get("tools"), body.get("system"), *body["messages"])]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(parts, before.get(key, []), strict=False))
        found = Seen(sha256(raw).hexdigest(), sum(map(len, parts)), sum(len(part) for part, _ in same))
        seen.setdefault(key, []).append(found)
        before[key] = parts
        done = raw.rfind(b'"toolu_')
        said = call_of(int(raw[done + 7 : raw.index(b'"', done + 7)]) + 1 if done >= 0 else 0)
        usage = {
            "input_tokens": 9,
            "cache_read_input_tokens": found.shared // 4,
            "cache_creation_input_tokens": (found.bytes - found.shared) // 4,
            "output_tokens": 20,
        }
        reply = {"id": "msg", "type": "message", "model": MODEL, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
        return StreamingResponse(API.server().events(reply | said, include_usage=True), media_type="text/event-stream")

    async def tell(request: Request) -> Response:
        return JSONResponse(msgspec.to_builtins(seen.get(request.path_params["key"], [])))

    return Starlette(routes=[Route("/v1/messages", answer, methods=["POST"]), Route("/seen/{key}", tell)])


def run_provider(port: Any) -> None:
    """Serve the provider, and say where."""
    with serve(provider()) as url:
        port.put(url)
        time.sleep(10**6)


def run_ours(port: Any, *arguments: Any) -> None:
    """Serve a gateway, and say where, and in which process."""

    class Both:
        def put(self, url: str) -> None:
            port.put((url, os.getpid()))

    run_gateway(Both(), *arguments)


def installed(folder: Path, package: str) -> Path | None:
    """The programs of an environment with a package; None where it does not install."""
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    if not programs.is_dir():
        venv.create(folder, with_pip=True)
        done = subprocess.run([programs / "python", "-m", "pip", "install", "-q", package], capture_output=True, text=True)
        if done.returncode:
            print(f"{package} does not install: {done.stderr.strip().splitlines()[-1:]}")
            return None
    return programs


@contextmanager
def peer(command: Sequence[str | Path], port: int, variables: Mapping[str, str], log: Path) -> Iterator[tuple[str, int]]:
    """A proxy in a process; its URL and the process."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **variables}) as child:
        url, until = f"http://127.0.0.1:{port}", time.monotonic() + START_S
        try:
            while True:
                try:
                    httpx.get(url, timeout=5)
                    break
                except httpx.HTTPError:
                    if child.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(log.read_text(errors="replace")[-2_000:]) from None
                    time.sleep(0.2)
            yield url, child.pid
        finally:
            child.terminate()


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def first_byte_s(client: httpx.Client, url: str, key: str, body: bytes) -> float:
    """Seconds to the first byte of a streamed reply, all of which is read."""
    start = time.perf_counter()
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
    with client.stream("POST", f"{url}/v1/messages", content=body, headers=headers) as response:
        pieces = response.iter_raw()
        reply = next(pieces)
        first = time.perf_counter() - start
        reply += b"".join(pieces)
    if response.status_code != 200 or b"message_stop" not in reply:
        raise RuntimeError(f"{key}: {response.status_code} {reply[:300]!r}")
    return first


def measure(servers: Mapping[str, tuple[str, int]], upstream: str, tokens: int, calls: int) -> None:
    """Print a table for one conversation."""
    source = random.Random(tokens)
    messages, sent, body = history(source, tokens), list[str](), b""
    times: dict[str, list[float]] = {name: [] for name in servers}
    cpu = dict.fromkeys(servers, 0.0)
    with httpx.Client(timeout=300) as client:
        for n in range(calls + 3):
            head = {"model": MODEL, "max_tokens": 100, "stream": True, "system": "be brief " * 500, "tools": TOOLS}
            body = json.dumps({**head, "messages": messages}, ensure_ascii=False).encode()
            sent.append(sha256(body).hexdigest())
            for name, (url, pid) in servers.items():
                before = processor_s(pid) if pid else 0.0
                times[name].append(first_byte_s(client, url, name, body))
                time.sleep(0.05)  # what is done behind a reply is paid by nobody else
                cpu[name] += processor_s(pid) - before if pid and n >= 3 else 0.0
            messages += step(source, (len(messages) - 1) // 2)
        print(f"{tokens:,} tokens at first, {len(body):,} bytes at last, {calls} calls behind 3")
        for name in servers:
            came = [Seen(**each) for each in client.get(f"{upstream}/seen/{name}").json()]
            added = [a - b for a, b in zip(times[name], times["direct"], strict=True)][3:]
            changed = sum(a.sha256 != b for a, b in zip(came, sent, strict=True))
            shared = sum(each.shared for each in came[1:]) / sum(each.bytes for each in came[1:])
            work = f"processor {cpu[name] / calls * 1000:6.1f}" if servers[name][1] else " " * 16
            print(
                f"  {name:12} adds {shown(added)}  {work}  changed {changed:2} of {len(came)}  kept in front {shared:6.1%}"
                f"  bytes at last {came[-1].bytes:,}"
            )


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--peers", type=Path, default=Path.home() / ".cache" / "tenure" / "gateway-peers")
    options = parser.parse_args()
    cliff, litellm = installed(options.peers / "cliff", "cliffcompaction"), installed(options.peers / "litellm", "litellm[proxy]")
    for tokens in (40_000, 200_000):
        with ExitStack() as stack:
            where = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            upstream = stack.enter_context(process(run_provider))
            servers: dict[str, tuple[str, int]] = {"direct": (upstream, 0)}
            for name, mode, target in (
                ("ours, pass", "pass", tokens),
                ("ours, on", "on", tokens * 4),
                ("ours, half", "on", tokens // 2),
            ):
                servers[name] = stack.enter_context(process(run_ours, upstream, mode, target, str(where)))
            limits = (("cliff, on", tokens * 4), ("cliff, half", tokens // 2))
            for name, limit in limits if cliff is not None else ():
                port = free_port()
                command = [
                    f"{cliff}/cliff",
                    "serve",
                    "--port",
                    str(port),
                    "--threshold",
                    str(limit),
                    "--anthropic-upstream",
                    upstream,
                ]
                servers[name] = stack.enter_context(peer(command, port, {}, where / f"{name}.log"))
            if litellm:
                port, config = free_port(), where / "litellm.yaml"
                config.write_text(LITELLM.format(model=MODEL, upstream=upstream))
                command = [litellm / "litellm", "--config", config, "--host", "127.0.0.1", "--port", str(port)]
                offline = {
                    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
                    "PYTHONUNBUFFERED": "1",
                }
                servers["litellm"] = stack.enter_context(peer(command, port, offline, where / "litellm.log"))
            measure(servers, upstream, tokens, options.calls)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
