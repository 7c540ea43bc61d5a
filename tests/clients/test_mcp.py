"""`tenure mcp` in real agents: installed by the line that docs/mcp.md has for each, it reads again what the agent's own compaction dropped."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from real_agents import DONE, Desk, Director, loop

from tenure.engine.record.entry import Usage
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Turn

pytestmark = pytest.mark.long

PAGE: Final = Path(__file__).parents[2] / "docs" / "mcp.md"
ROW: Final = re.compile(r"^\| (Claude Code|Codex|OpenCode) \| (?:in `(opencode\.json)`: )?`(.+)` \|$", re.MULTILINE)
NEEDLE: Final = "line 137 of 0.0"  # which nothing but the first result says
SUMMARY: Final = "Lines were printed, twice. The work goes on. " * 30


class Reader(NamedTuple):
    """How one agent is given the server, calls its tools and compacts."""

    title: str  # in the page's table
    call: Callable[[str, Mapping[str, Any]], Call]
    arguments: tuple[str, ...] = ()  # behind its command
    environment: Mapping[str, str] = {}
    compacts: bool = True  # by itself, where the provider reports that its window is full; else it is asked to
    summary: bool = True  # whether the request for a summary looks like one of the conversation


def named(prefix: str) -> Callable[[str, Mapping[str, Any]], Call]:
    return lambda tool, arguments: Call(name=prefix + tool, arguments=json.dumps(arguments))


def in_javascript(tool: str, arguments: Mapping[str, Any]) -> Call:
    return Call(name="exec", arguments=f"text((await tools.mcp__tenure__{tool}({json.dumps(arguments)})).content[0].text)")


# A scripted model answers at once; these wait until the server has started, however busy the machine is.
_WAITS: Final = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_TIMEOUT": "120000"}
_SETTINGS: Final = (
    *("mcp_servers.tenure.required=true", "mcp_servers.tenure.startup_timeout_sec=120", "model_auto_compact_token_limit=200000"),
    # of OpenAI's own models Codex has the provider compact, behind what the scripted one speaks
    *('model_provider="other"', 'model_providers.other={name="other", base_url="$url/v1", env_key="OPENAI_API_KEY", wire_api="responses"}'),
)  # fmt: skip
_BOTH: Final = tuple(part for each in _SETTINGS for part in ("-c", each))
READERS: Final = {
    "claude": Reader("Claude Code", named("mcp__tenure__"), environment=_WAITS, compacts=False),
    "codex": Reader("Codex", in_javascript, arguments=_BOTH),
    "codex-functions": Reader("Codex", named(""), arguments=_BOTH, summary=False),
    "opencode": Reader("OpenCode", named("tenure_"), summary=False),
}


class Follower(Director):
    """A scripted model whose step may depend on what it has read. Mutable."""

    is_full = False  # whether the provider reports a full window
    failure: AssertionError | None = None  # of a step, which ends the run

    def __call__(self, body: Mapping[str, Any]) -> Turn:
        try:
            turn: Any = super().__call__(body)
            return turn if isinstance(turn, Reply) else turn(list(texts(body)))
        except AssertionError as error:
            self.failure, self.steps = error, []
            return Reply(text=DONE)

    def report(self, usage: Usage) -> Usage:
        return msgspec.structs.replace(usage, uncached=990_000) if self.is_full else usage


def texts(value: Any) -> Iterator[str]:
    """All strings of a request, in order."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(each)


def install(desk: Desk, title: str) -> None:
    """Do what the page says, word for word."""
    (line,) = [match for match in ROW.findall(PAGE.read_text(encoding="utf-8")) if match[0] == title]
    if line[1]:
        (desk.work / line[1]).write_text(f"{{{line[2]}}}")
        return
    program, *arguments = shlex.split(line[2])
    assert program == desk.program.name
    done = desk.finish((str(desk.program), *arguments), desk.environment())
    assert done.returncode == 0, done.stdout + done.stderr


def last(texts: Sequence[str], pattern: str) -> re.Match[str]:
    """The newest text that says something."""
    found = [match for each in texts if (match := re.search(pattern, each))]
    assert found, f"nothing says {pattern}: {[each for each in texts if 'line 9' in each]}"
    return found[-1]


@pytest.mark.parametrize("name", READERS)
def test_what_the_agents_own_compaction_dropped_is_read_again(name: str, tmp_path: Path) -> None:
    reader, desk = READERS[name], Desk(name, tmp_path / "home")
    install(desk, reader.title)
    first, second = loop(desk.agent, 2)[:2]

    def ask(tool: str, **arguments: Any) -> Reply:
        return Reply(text=f"I ask {tool}.", calls=(reader.call(tool, arguments),))

    def filled(_: Sequence[str]) -> Turn:
        director.is_full = reader.compacts
        return second

    def searched(_: Sequence[str]) -> Turn:
        director.is_full = False
        return ask("search", words=NEEDLE)

    def found(texts: Sequence[str]) -> Turn:
        hit = last(texts, rf"(\w+:\d+@\w+) line (\d+): {NEEDLE}")
        return ask("recall", handle=hit[1], lines=hit[2])

    def in_part(texts: Sequence[str]) -> Turn:
        last(texts, rf"\[{desk.program.name}[\w-]*\]\n{NEEDLE}$")
        return ask("recall", handle=last(texts, r"(\w+:\d+@\w+) line")[1], cap=300)

    def explained(texts: Sequence[str]) -> Turn:
        part = last(texts, r"(?s)line 9 of 0.0\n.*\[left out: lines \d+-\d+ of \d+\. Go on with: recall handle=")
        assert len(part.string) < 1_200
        return ask("why", object=last(texts, r"(\w+:\d+@\w+) line")[1])

    def audited(texts: Sequence[str]) -> Turn:
        last(texts, r"now +not in the window")
        return ask("search", pattern=NEEDLE)  # which by now stands in calls of these tools, too

    def searched_again(texts: Sequence[str]) -> Turn:
        last(texts, rf"\n1 lines, newest first:\n\w+:\d+@\w+ line \d+: {NEEDLE}\n")
        return ask("audit")

    def ended(texts: Sequence[str]) -> Turn:
        last(texts, r"where the window went")
        return Reply(text=DONE)

    before: list[Any] = [first, filled]
    compaction: list[Any] = [Reply(text=f"<analysis>{SUMMARY}</analysis><summary>{SUMMARY}</summary>")] if reader.summary else []
    after: list[Any] = [searched, found, in_part, explained, audited, searched_again, ended]
    director = Follower(before if not reader.compacts else [*before, *compaction, *after])
    provider = FakeProvider(director, report=director.report)
    with serve(provider.app) as url:
        arguments = [part.replace("$url", url) for part in reader.arguments]
        agent = desk.agent
        desk.agent = agent._replace(
            arguments=(agent.arguments[0], *arguments, *agent.arguments[1:]),
            environment={**agent.environment, **reader.environment},
        )
        done = desk.run(url, timeout_s=300)
        if not reader.compacts:
            director.steps += compaction
            desk.run(url, "/compact", again=True, timeout_s=300)
            director.steps += after
            done = desk.run(url, "go on", again=True, timeout_s=300)
    if director.failure:
        raise director.failure
    assert director.steps == [], done.stdout + done.stderr
    assert [seen.violations for seen in provider.seen if seen.violations] == []
    with_needle = [NEEDLE.encode() in seen.body for seen in provider.seen]
    assert with_needle.index(False, with_needle.index(True)) < len(with_needle) - 4, "its compaction dropped it"
