"""`tenure serve` as it is started and stopped."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tenure.cli.main import main
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Reply, Script

QUESTION = {"model": "claude-opus-5", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--host", "0.0.0.0"], "without client tokens"),
        (["--mode", "off"], "expected one of pass, shadow, on"),
        (["--upstream", "x"], "NAME=URL"),
        (["--tls-key", "k.pem"], "expected both"),
        (["--target", "lots"], "target"),
        (["--store", "mysql://x"], "store"),
        (["--policy", "no such"], "policy"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    arguments: list[str], found: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *arguments]) == 2
    error = capsys.readouterr().err
    assert found in re.sub(r"\s+", " ", error)
    assert error.count("\n") == 1


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    provider = FakeProvider(Script(replies=(Reply(text="hi"),)))
    with serve(provider.app) as upstream:
        command = [sys.executable, "-m", "tenure", "serve", "--port", str(port), "--upstream", f"anthropic={upstream}"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env={**os.environ, "NO_PROXY": "*"}) as process:
            transport = httpx.HTTPTransport(retries=8)  # 0.5 s, 1 s, 2 s …
            with httpx.Client(transport=transport, trust_env=False, timeout=60) as client:
                answer = client.post(f"http://127.0.0.1:{port}/v1/messages", json=QUESTION)
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=60)
    assert answer.json()["content"][0]["text"] == "hi"
    assert b"Traceback" not in told
