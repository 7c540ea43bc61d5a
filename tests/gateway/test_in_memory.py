"""A gateway that keeps its records in memory only."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from test_gateway import agent, replies

from tenure.testing.provider import FakeProvider, serve

resource = pytest.importorskip("resource")


def forbid_files() -> None:
    """From here on not one byte can be written to any file, on whatever file system; pipes and sockets are none."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_process_that_cannot_write_a_byte_to_any_file_manages_conversations_in_memory(tmp_path: Path) -> None:
    places = {name: str(tmp_path / name) for name in ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    for place in places.values():
        Path(place).mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with serve(provider.app) as upstream:
        options = [
            "--mode",
            "on",
            "--ceiling",
            "3k",
            "--store",
            "memory",
            "--port",
            str(port),
            "--upstream",
            f"anthropic={upstream}",
        ]
        command = [sys.executable, "-B", "-m", "tenure", "serve", *options]
        environment = {**os.environ, **places}
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=environment, preexec_fn=forbid_files) as process:
            url = f"http://127.0.0.1:{port}"
            while True:
                try:
                    httpx.get(f"{url}/healthz")
                    break
                except httpx.ConnectError:
                    assert process.poll() is None
                    time.sleep(0.05)
            agent("anthropic", url, 12, stream=True)
            counted = dict(line.rsplit(" ", 1) for line in httpx.get(f"{url}/metrics").text.splitlines() if line[0] != "#")
            process.send_signal(signal.SIGTERM)
            _, words = process.communicate(timeout=60)
    assert sum(float(value) for name, value in counted.items() if name.startswith("tenure_commits_total")) >= 1
    assert not [name for name in counted if name.startswith("tenure_fail_opens_total")], (
        "nothing failed that would have been written"
    )
    assert b"Traceback" not in words
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
