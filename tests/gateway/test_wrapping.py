"""Programs behind a gateway of their own, by processes: what they find in their environment, and how they end."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from otlp import receiving

from tenure.gateway.wrapping import is_subscribed
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

ASK = """
import os, sys, httpx
body = {"model": "claude-opus-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "t", "input_schema": {"type": "object"}}]}
answer = httpx.post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json=body, headers={"x-api-key": "sk-secret-key"})
print(answer.json()["content"][0]["text"])
sys.exit(7)
"""


def wrap(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder), **variables}
    return subprocess.run([sys.executable, "-m", "tenure", "wrap", *arguments], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("mode", ["--on", "--pass", "shadow"])
def test_a_program_finds_the_gateway_and_its_exit_code_is_ours(mode: str, tmp_path: Path) -> None:
    provider = FakeProvider(Script(replies=(Reply(text="hello"),)))
    with serve(provider.app) as url:
        options = [] if mode == "shadow" else [mode]
        done = wrap(tmp_path, *options, "--upstream", f"anthropic={url}", sys.executable, "-c", ASK)
    assert (done.returncode, done.stdout) == (7, "hello\n"), done.stderr
    assert provider.seen[0].headers["x-api-key"] == "sk-secret-key"
    relayed = "1 request relayed, nothing recorded"
    assert ("tenure: 1 call, " in done.stderr) is (mode != "--pass")
    assert (relayed in done.stderr) is (mode == "--pass")
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"sk-secret-key" in path.read_bytes()]
    assert kept == [], "a key is forwarded, and never stored"


def test_spans_of_a_wrapped_program_go_where_its_environment_says(tmp_path: Path) -> None:
    with serve(FakeProvider(Script(replies=(Reply(text="hello"),) * 2)).app) as url, receiving() as (there, came):
        options = ("--on", "--upstream", f"anthropic={url}", sys.executable, "-c", ASK)
        done = wrap(tmp_path, *options, OTEL_EXPORTER_OTLP_ENDPOINT=there)
        other = wrap(tmp_path, *options, OTEL_EXPORTER_OTLP_ENDPOINT=there, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    assert (done.returncode, other.returncode) == (7, 7), done.stderr + other.stderr  # no spans are no reason not to run
    assert "no spans" not in done.stderr
    assert re.search(r"no spans were sent: .*'grpc'", other.stderr)
    (request,) = came
    (span,) = request.resource_spans[0].scope_spans[0].spans
    values = {each.key: each.value for each in span.attributes}
    assert (span.name, values["tenure.mode"].string_value) == ("chat claude-opus-5", "on")
    assert values["gen_ai.usage.output_tokens"].int_value > 0
    assert b"hello" not in request.SerializeToString(), "no words of a conversation are in a span"


LOOP = """
import os, httpx
history = [{"role": "user", "content": "please do it"}]
for n in range(14):
    body = {"model": "claude-opus-5", "max_tokens": 9, "messages": history, "tools": [{"name": "read", "input_schema": {"type": "object"}}]}
    answer = httpx.post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json=body, timeout=60).json()
    calls = [part["id"] for part in answer["content"] if part["type"] == "tool_use"]
    text = "".join(f"line {line}: the value of item {line} is {line * 7919}\\n" for line in range(120))
    text = text.replace("line 60:", "line 60: src/deep/zq_7919_helper.py says") if n == 0 else text
    history += [{"role": "assistant", "content": answer["content"]}]
    history += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": each, "content": text} for each in calls]}]
"""


def test_the_closing_line_says_what_it_cost_with_and_without_and_what_was_missed(tmp_path: Path) -> None:
    paths = ["a.py"] * 13 + ["src/deep/zq_7919_helper.py"]
    calls = tuple(
        Reply(text=f"look {n}", calls=(Call(name="read", arguments=f'{{"path": "{path}"}}'),)) for n, path in enumerate(paths)
    )
    with serve(FakeProvider(Script(replies=calls)).app) as url:
        done = wrap(tmp_path, "--on", "--ceiling", "2k", "--upstream", f"anthropic={url}", sys.executable, "-c", LOOP)
    assert done.returncode == 0, done.stderr
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("tenure: ")]
    pattern = r"tenure: 14 calls, .* tokens in .*\$[\d.]+; \d+ commits?, .* tokens fewer in prompts; had nothing left, a simulated \$[\d.]+ against \$[\d.]+; missed 1(, to 1 of which a pointer led)?, nothing was recalled"
    assert re.match(pattern, line), line


def test_a_program_that_sends_nothing_is_said_so(tmp_path: Path) -> None:
    done = wrap(tmp_path, sys.executable, "-c", "print('alone')")
    assert (done.returncode, done.stdout) == (0, "alone\n")
    assert "sent no request" in done.stderr
    assert wrap(tmp_path, "--quiet", sys.executable, "-c", "print('alone')").stderr == ""


def test_what_stands_behind_the_program_is_the_programs(tmp_path: Path) -> None:
    done = wrap(tmp_path, "-q", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--on", "--help")
    assert done.stdout == "['--on', '--help']\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["no-such-agent"], "'no-such-agent' is not on the PATH"),
        (["--on", "--pass", "true"], "one of them"),
        (["--policy", "nonsense", "true"], "nonsense"),
        (["--upstream", "nonsense", "true"], "NAME=URL"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], why: str, tmp_path: Path) -> None:
    done = wrap(tmp_path, *arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_request_to_end_reaches_the_program_and_the_report_is_still_printed(tmp_path: Path) -> None:
    script = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(9)); print('ready', flush=True); time.sleep(60)"
    command = [sys.executable, "-m", "tenure", "wrap", "--store", str(tmp_path / "s"), sys.executable, "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 9
    assert "sent no request" in said


@pytest.mark.parametrize(
    ("held", "is_so"),
    [
        ('{"OPENAI_API_KEY": null, "tokens": {"access_token": "x"}}', True),
        ('{"OPENAI_API_KEY": "sk", "tokens": null}', False),
        ('{"OPENAI_API_KEY": "sk"}', False),
        ("[", False),
    ],
)
def test_a_plan_is_told_from_a_key(held: str, is_so: bool, tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text(held)
    assert is_subscribed("/usr/bin/codex", {"CODEX_HOME": str(tmp_path)}) is is_so
    assert not is_subscribed("codex", {"CODEX_HOME": str(tmp_path), "CODEX_API_KEY": "sk"})
    assert not is_subscribed("claude", {"CODEX_HOME": str(tmp_path)})


def test_a_ceiling_that_the_agents_own_head_nearly_fills_is_said_to_be_one(tmp_path: Path) -> None:
    with serve(FakeProvider(Script(replies=(Reply(text="hello"),) * 2)).app) as url:
        low, high = (
            wrap(tmp_path, "--on", "--ceiling", ceiling, "--upstream", f"anthropic={url}", sys.executable, "-c", ASK)
            for ceiling in ("40", "4k")
        )
    assert "leaves so little room" in low.stderr
    assert "leaves so little room" not in high.stderr
