"""What commands load: start-up is counted in modules, not in time."""

import json
import subprocess
import sys
from pathlib import Path

HEAVY = ("openai", "anthropic", "textual", "mcp", "ray", "numpy", "starlette", "duckdb", "altair", "jinja2", "vl_convert")


def loaded(code: str, folder: Path) -> list[str]:
    """Which of the heavy packages a new interpreter has loaded after this code."""
    told = f"{code}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", told],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    return json.loads(done.stderr.splitlines()[-1].replace("'", '"'))


def test_a_run_with_a_script_loads_no_sdk_and_no_interface(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"replies": [{"text": "Hello."}]}', encoding="utf-8")
    code = 'from tenure.cli.main import main; assert main(["run", "Hi.", "-m", "scripted:script.json"]) == 0'
    assert loaded(code, tmp_path) == []


def test_a_session_with_a_real_model_is_open_before_its_sdk_is_loaded(tmp_path: Path) -> None:
    code = """
import asyncio
from pathlib import Path
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World

async def opened(model):
    agent = await Agent.open(Settings(folder=Path.cwd(), model=model), World(environment={"OPENAI_API_KEY": "-", "ANTHROPIC_API_KEY": "-"}))
    await agent.close()

asyncio.run(opened("openai:gpt-5"))
asyncio.run(opened("anthropic:claude-opus-4-5"))
"""
    assert loaded(code, tmp_path) == []


def test_wrong_usage_a_missing_key_and_a_missing_model_load_no_sdk(tmp_path: Path) -> None:
    code = """
from tenure.cli.main import main
assert main(["--version"]) == 0
assert main(["run", "--nonsense"]) == 2
assert main(["run", "Hi."]) == 2
assert main(["run", "Hi.", "-m", "anthropic:claude-opus-4-5"]) == 2
"""
    assert loaded(code, tmp_path) == []


def test_reading_a_session_loads_no_sdk_and_no_interface(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]))
    code = 'from tenure.cli.main import main; assert main(["show", "s.json"]) == 0; assert main(["replay", "s.json", "-q"]) == 0'
    assert loaded(code, tmp_path) == []
