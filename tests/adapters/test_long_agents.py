"""Agents of every framework, written from docs/frameworks.md: 200 calls in two conversations side by side, by a process that is killed twice and goes on."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from framework_work import messages_of, prefixes
from long_agents.reading import FILES, LINES, question

from tenure.extras import is_installed
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply

PROGRAMS: Final = Path(__file__).parent / "long_agents"
CALLS: Final = 200
RECALLS: Final = (30, 60, 100, 180)  # before which file lines of the first are brought back
BROUGHT: Final = '{"handle":"read:1","lines":"7-8"}'
LIMIT: Final = 30_000 * 1.03  # an estimate from earlier reports may be off by so much
KILLED: Final = -9
ENVIRONMENT: Final = {
    "ANTHROPIC_API_KEY": "-",
    "OPENAI_API_KEY": "-",
    "GOOGLE_API_KEY": "-",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "OPENHANDS_SUPPRESS_BANNER": "1",
    "OTEL_SDK_DISABLED": "true",
}

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]


@dataclass(frozen=True)
class LongAgent:
    """A program, and what its framework makes possible."""

    module: str  # without which it is skipped
    runs: Sequence[str] = ("called", "awaited", "streamed")  # how it is called in each of three processes
    resumes: bool = True  # what was cut off, rather than begin anew


AGENTS: Final = {
    "crewai_agent": LongAgent("crewai", resumes=False),
    "deepagents_agent": LongAgent("deepagents", ("streamed", "awaited", "streamed")),
    "google_adk_agent": LongAgent("google.adk"),
    "inspect_ai_agent": LongAgent("inspect_ai", resumes=False),
    "langchain_agent": LongAgent("langchain_anthropic"),
    "litellm_agent": LongAgent("litellm"),
    "openai_agents_agent": LongAgent("agents", ("awaited", "awaited", "streamed")),
    "openhands_agent": LongAgent("openhands.sdk"),
    "pydantic_ai_agent": LongAgent("pydantic_ai", ("streamed", "awaited", "streamed")),
    "strands_agent": LongAgent("strands"),
}


class FileReader:
    """A model that reads one file after the other, now and then three at once, and sometimes has lines of the first one back.

    What is next it takes from the request alone, so that it goes on with a history that was cut off. Mutable.
    """

    def __init__(self) -> None:
        self.recalled: dict[
            tuple[str, int], list[bool]
        ] = {}  # whether those lines stood in the request before, and in the one after

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        text = json.dumps(messages_of(body), ensure_ascii=False)
        thinking = "Hm." if "thinking" in body or "input" in body else ""
        if (name := name_of(text)) is None:
            return Reply(text="Who asks?")
        wanted = list(self.next_files(name, text))
        if not wanted:
            return Reply(text="Done.", thinking=thinking)
        there = f"0006 def {name}_0_6" in text
        if len(answered := self.recalled.get((name, wanted[0]), [])) == 1:
            answered.append(there)
        elif (
            wanted[0] in RECALLS and not answered and (tool := re.search(r'"((tenure_)?recall)"', json.dumps(body.get("tools"))))
        ):
            self.recalled[name, wanted[0]] = [there]
            return Reply(thinking=thinking, calls=(Call(name=tool[1], arguments=BROUGHT),))
        calls = [Call(name="read", arguments=json.dumps({"path": f"{name}_{n}.py"})) for n in wanted[:2]]
        calls += [Call(name="run", arguments=json.dumps({"command": f"pytest {name}_{n}.py"})) for n in wanted[2:]]
        return Reply(text=f"I look at {wanted[0]}.", thinking=thinking, calls=tuple(calls))

    def next_files(self, name: str, text: str) -> Iterator[int]:
        """Those of the newest batch whose text was not shown, else the next batch."""
        newest = max((int(n) for n in re.findall(rf"{name}_(\d+)\.py", text)), default=-1)
        start = newest - newest % 10 if newest % 10 < 3 else newest
        missing = [n for n in range(start, newest + 1) if n >= 0 and not re.search(rf"{name}_{n}\.py\\+n0000", text)]
        following = range(newest + 1, newest + 4 if (newest + 1) % 10 == 0 else newest + 2)
        return (n for n in missing or following if n < FILES[name])


def name_of(text: str) -> str | None:
    """Whose conversation a request is of."""
    found = re.search(rf"I am ({'|'.join(FILES)})\.", text)
    return found[1] if found else None


def strings(value: Any) -> Iterator[str]:
    """Every text in a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from strings(each)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_of_200_calls_is_killed_twice_and_goes_on(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name]
    if not is_installed(agent.module):
        pytest.skip("the framework is not installed")
    reader = FileReader()
    provider = FakeProvider(reader, tokens=lambda text: len(text) // 2 + 1)
    codes: list[int] = []
    output = ""
    with serve(provider.app) as url:
        urls = {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_BASE": url,
            "GOOGLE_GEMINI_BASE_URL": url,
            "OPENAI_BASE_URL": f"{url}/v1",
        }
        for how in agent.runs:
            command = [sys.executable, PROGRAMS / f"{name}.py", tmp_path, how]
            environment = {**os.environ, **ENVIRONMENT, **urls}
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
            codes.append(done.returncode)
            output += "" if done.returncode == KILLED else done.stdout + done.stderr
    assert codes == [KILLED, KILLED, 0], output[-5000:]
    assert {seen.violations for seen in provider.seen} == {()}
    assert len(provider.seen) >= CALLS
    assert max(seen.usage.prompt for seen in provider.seen if seen.usage) <= LIMIT
    assert len(reader.recalled) == sum(n < files for n in RECALLS for files in FILES.values())
    assert all(after for _, after in reader.recalled.values())
    assert not any(reader.recalled[person, RECALLS[0]][0] for person in FILES)  # later ones may still stand there
    with Store(f"sqlite:///{tmp_path}/agent.db") as store:
        sheets = store.conversations()
        assert {store.verify(sheet.id) for sheet in sheets} == {None}
        commits = sum(each.moment != "admission" for sheet in sheets for each in store.commits(sheet.id))
    assert commits > 10
    if agent.resumes:  # a framework that had not stored the newest reply goes on in a fork, which shares the rest
        assert sum(not sheet.parent for sheet in sheets) == len(FILES)
        assert len(sheets) <= len(FILES) * len(codes)
    broken = 0
    for person, files in FILES.items():
        seen = [each for each in provider.seen if name_of(each.body.decode()) == person]
        assert all(any(question(person) in text for text in strings(messages_of(json.loads(each.body)))) for each in seen)
        broken += prefixes(seen).count(False)
        kept = (tmp_path / f"kept_{person}.json").read_text(encoding="utf-8")
        for n in range(files):
            assert re.search(rf"{person}_{n}\.py\\+n0000", kept), f"{person}_{n} is not in the framework's own history"
            assert f"{LINES - 1:04} def {person}_{n}_{LINES - 1}()" in kept
        assert "Done." in kept
    assert broken <= commits + 2 * len(codes)
