"""The examples of the frameworks run, each against a server of the real wire format."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.extras import is_installed
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"
MODULES = {
    "langchain_agent": "langchain_anthropic",
    "pydantic_ai_agent": "pydantic_ai",
    "openai_agents_agent": "agents",
    "litellm_calls": "litellm",
    "google_adk_agent": "google.adk",
    "strands_agent": "strands",
    "inspect_ai_agent": "inspect_ai",
    "crewai_agent": "crewai",
    "openhands_agent": "openhands.sdk",
}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_an_example_reads_and_answers(name: str, tmp_path: Path) -> None:
    if not is_installed(MODULES[name]):
        pytest.skip("the framework is not installed")
    (tmp_path / "pyproject.toml").write_text("-m 'not long'")
    replies = (Reply(calls=(Call(name="read", arguments='{"path":"pyproject.toml"}'),)), Reply(text="Those marked long."))
    provider = FakeProvider(Script(replies=replies))
    with serve(provider.app) as url:
        environment = {
            **os.environ,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_BASE": url,
            "ANTHROPIC_API_KEY": "-",
            "GOOGLE_API_KEY": "-",
            "GOOGLE_GEMINI_BASE_URL": url,
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "-",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "true",
            "OPENHANDS_SUPPRESS_BANNER": "1",
            "OTEL_SDK_DISABLED": "true",
        }
        done = subprocess.run(
            [sys.executable, EXAMPLES / f"{name}.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
    assert "Those marked long." in done.stdout, done.stderr
    assert [seen.violations for seen in provider.seen] == [(), ()]
    assert b"not long" in provider.seen[1].body
    assert (tmp_path / "agent.db").exists()
