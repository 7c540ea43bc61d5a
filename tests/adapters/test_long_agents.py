"""Agents of 200 calls, written from docs/frameworks.md, whose process is killed twice and goes on."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from framework_work import prefixes

from tenure.extras import is_installed
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply

PROGRAMS: Final = Path(__file__).parent / "long_agents"
MODULES: Final = {"strands_agent": "strands"}
CALLS: Final = 200
RECALLS: Final = (60, 130, 190)  # before which file lines of the first are brought back
KILLED: Final = -9

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]


def model(recall: str) -> Callable[[Mapping[str, Any]], Reply]:
    """Reads one file after the other: the one behind the newest that it was shown, which a history may name that was cut off."""
    brought = set[int]()

    def answer(body: Mapping[str, Any]) -> Reply:
        newest = next((n for message in reversed(body["messages"]) if (n := _asked(message)) is not None), -1)
        shown = any(f"file_{newest}.py\\n0000" in json.dumps(message) for message in body["messages"][-3:])
        n = newest + 1 if shown or newest < 0 else newest
        if n == CALLS:
            return Reply(text="Done.")
        if n in RECALLS and n not in brought:
            brought.add(n)
            return Reply(calls=(Call(name=recall, arguments='{"handle":"read:1","lines":"7-8"}'),))
        return Reply(text=f"I look at {n}.", calls=(Call(name="read", arguments=json.dumps({"path": f"file_{n}.py"})),))

    return answer


def _asked(message: Mapping[str, Any]) -> int | None:
    """The file that a reply asks for."""
    found = re.findall(r"file_(\d+)\.py", json.dumps(message)) if message["role"] == "assistant" else []
    return int(found[-1]) if found else None


@pytest.mark.parametrize("name", MODULES)
def test_an_agent_of_200_calls_is_killed_twice_and_goes_on(name: str, tmp_path: Path) -> None:
    if not is_installed(MODULES[name]):
        pytest.skip("the framework is not installed")
    provider = FakeProvider(model("recall"))
    codes: list[int] = []
    with serve(provider.app) as url:
        environment = {
            **os.environ,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "-",
        }
        for _ in range(3):
            command = [sys.executable, PROGRAMS / f"{name}.py", tmp_path]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
            codes.append(done.returncode)
    assert codes == [KILLED, KILLED, 0], done.stderr[-3000:]
    assert "Done." in done.stdout
    assert {seen.violations for seen in provider.seen} == {()}
    assert len(provider.seen) >= CALLS + len(RECALLS)
    assert all(b"Read all files." in seen.body for seen in provider.seen)
    assert max(len(seen.body) for seen in provider.seen) < 200_000
    with Store(f"sqlite:///{tmp_path}/agent.db") as store:
        sheets = store.conversations()
        assert {store.verify(sheet.id) for sheet in sheets} == {None}
        assert len(sheets) == 1
        commits = sum(each.moment != "admission" for sheet in sheets for each in store.commits(sheet.id))
    assert prefixes(provider).count(False) <= commits + 2 * len(codes)
