"""Real agents through the gateway: what they live through, in every mode. docs/clients.md has the table."""

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from real_agents import AGENTS, DONE, Agent, Desk, Director, loop
from starlette.types import Receive, Scope, Send

from tenure import Budget
from tenure.context.exchange import Management
from tenure.engine.record.entry import Usage
from tenure.gateway.service import GatewayService
from tenure.gateway.settings import GatewayMode, GatewaySettings
from tenure.gateway.wrapping import listening
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Broken, Call, Fault, Reply, Turn

pytestmark = pytest.mark.long

WITH_TOOLS = [name for name, agent in AGENTS.items() if agent.has_tools]
RESUMABLE = [name for name, agent in AGENTS.items() if agent.again is not None]
CEILING = 22_000  # above the system prompt and the tools of all of them


class Tap:
    """Bodies as they arrive at the gateway."""

    def __init__(self, service: GatewayService) -> None:
        self.bodies: list[bytes] = []
        self.sockets = 0  # that were opened
        self._app = service.app
        service.app = self  # type: ignore[assignment]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pieces: list[bytes] = []
        self.sockets += scope["type"] == "websocket"

        async def tapped() -> Any:
            message = await receive()
            pieces.append(message.get("body", b""))
            if message["type"] == "http.request" and not message.get("more_body") and scope["method"] == "POST":
                self.bodies.append(b"".join(pieces))
            return message

        await self._app(scope, tapped, send)


class Scene:
    """An agent, the gateway, and the provider behind it."""

    def __init__(
        self, desk: Desk, director: Director, provider: FakeProvider, service: GatewayService, tap: Tap, url: str, store: Store
    ) -> None:
        self.desk, self.director, self.provider, self.service = desk, director, provider, service
        self.tap, self.url, self.store = tap, url, store

    @property
    def commits(self) -> int:
        return max((sheet.commits for sheet in self.store.conversations(None)), default=0)

    def play(self, *, again: bool = False, task: str = "do it", code: int | None = 0) -> str:
        """Let the agent do its task; what it printed."""
        done = self.desk.run(self.url, task, again=again)
        said = done.stdout + done.stderr
        assert code is None or done.returncode == code, said[-3000:]
        assert [seen.violations for seen in self.provider.seen if seen.violations] == [], said[-2000:]
        faults = {
            what: n for what, n in self.service.counts.items() if what.startswith(("could not", "cannot", "took", "refused when"))
        }
        assert faults == {}
        return said


@contextmanager
def scene(
    name: str,
    folder: Path,
    steps: Callable[[Agent], list[Turn]],
    mode: GatewayMode = "on",
    report: Callable[[Usage], Usage] = lambda usage: usage,
    **fields: Any,
) -> Iterator[Scene]:
    desk = Desk(name, folder / "home")
    director = Director(steps(desk.agent))
    provider = FakeProvider(director, report=report)
    store = Store(f"sqlite:///{folder}/gateway.db")
    with serve(provider.app) as url:
        upstreams = {"anthropic": url, "openai": f"{url}/v1", "google": url}
        management = Management(budget=Budget(ceiling=CEILING))
        settings = GatewaySettings(mode=mode, management=management, upstreams=upstreams, exchange_s=60, **fields)
        service = GatewayService(store, settings)
        tap = Tap(service)
        with listening(service) as front:
            yield Scene(desk, director, provider, service, tap, front, store)
    store.close()


def long_loop(agent: Agent) -> list[Turn]:
    return loop(agent, 14, lines=500, together=1)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_a_long_loop_stays_within_its_limit(name: str, tmp_path: Path) -> None:
    with scene(name, tmp_path, long_loop) as it:
        it.play()
        assert it.director.steps == []
        assert it.commits > 0


@pytest.mark.parametrize("mode", ["shadow", "pass"])
@pytest.mark.parametrize("name", AGENTS)
def test_not_a_byte_is_changed_where_nothing_may_be(name: str, mode: GatewayMode, tmp_path: Path) -> None:
    with scene(name, tmp_path, long_loop, mode) as it:
        it.play()
        assert sorted(seen.body for seen in it.provider.seen) == sorted(it.tap.bodies)
        assert it.commits == 0


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_calls_side_by_side(name: str, tmp_path: Path) -> None:
    with scene(name, tmp_path, lambda agent: loop(agent, 7, lines=340, together=3)) as it:
        it.play()
        assert it.director.steps == []
        assert it.commits > 0


@pytest.mark.parametrize("name", RESUMABLE)
def test_a_session_is_gone_on_with_by_another_process(name: str, tmp_path: Path) -> None:
    with scene(name, tmp_path, long_loop) as it:
        it.play()
        before = len(it.provider.seen)
        it.director.steps += loop(it.desk.agent, 6, lines=500)
        it.play(again=True, task="go on")
        assert it.director.steps == []
        assert len(it.provider.seen[before].body) < len(it.tap.bodies[before]) * 0.9, "what had left is still away"


@pytest.mark.parametrize("status", [429, 500, 529])
@pytest.mark.parametrize("name", WITH_TOOLS)
def test_an_error_reaches_the_agent_as_it_is_and_a_retry_goes_on(name: str, status: int, tmp_path: Path) -> None:
    def steps(agent: Agent) -> list[Turn]:
        quiet: list[Turn] = loop(agent, 6, lines=500)
        return [*quiet[:3], Fault(status=status, retry_after_s=0.1), *quiet[3:]]

    with scene(name, tmp_path, steps) as it:
        it.play(code=None)
        assert any(seen.status == status for seen in it.provider.seen)
        assert it.director.steps == [], "it tried again"


def test_claude_code_compacts_and_goes_on(tmp_path: Path) -> None:
    summary = "Summary of the session so far, long enough to be one. " * 30
    with scene("claude", tmp_path, lambda agent: loop(agent, 8, lines=500)) as it:
        it.play()
        it.director.steps.append(Reply(text=f"<analysis>{summary}</analysis><summary>{summary}</summary>"))
        it.play(again=True, task="/compact", code=None)
        it.director.steps = [*loop(it.desk.agent, 3, lines=100)]
        it.play(again=True, task="go on")
        assert it.director.steps == []
        assert DONE.encode() not in it.provider.seen[-1].body or b"Summary of the session" in it.provider.seen[-1].body


@pytest.mark.parametrize("name", ["opencode", "opencode-openai"])
def test_an_agent_whose_window_is_full_compacts_by_itself_and_goes_on(name: str, tmp_path: Path) -> None:
    prompts: list[int] = []

    def report(usage: Usage) -> Usage:
        prompts.append(usage.prompt)
        return replace(usage, uncached=1_100_000) if len(prompts) == 9 else usage  # more than any window of its models

    with scene(name, tmp_path, lambda agent: loop(agent, 12, lines=500), report=report) as it:
        it.play(code=None)
        it.director.steps += loop(it.desk.agent, 3, lines=100)
        it.play(again=True, task="go on", code=None)
        assert it.director.steps == []
        sizes = [len(body) for body in it.tap.bodies]
        assert any(later < before / 2 for before, later in pairwise(sizes[8:])), "its history is shorter"


def picture() -> bytes:
    """A PNG of 64 by 64 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 4, y * 4, 128)[i] for x in range(64) for i in range(3)) for y in range(64))
    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


LOOKS: dict[str, Callable[[str], Call]] = {  # how each reads an image from a file
    "claude": lambda path: Call(name="Read", arguments=json.dumps({"file_path": path})),
    "codex": lambda path: Call(name="exec", arguments=f"image(await tools.view_image({{path: {json.dumps(path)}}}))"),
    "codex-functions": lambda path: Call(name="view_image", arguments=json.dumps({"path": path})),
    **dict.fromkeys(("opencode", "opencode-openai"), lambda path: Call(name="read", arguments=json.dumps({"filePath": path}))),
    **dict.fromkeys(("pi", "pi-openai", "pi-gemini"), lambda path: Call(name="read", arguments=json.dumps({"path": path}))),
}


@pytest.mark.parametrize("name", LOOKS)
def test_an_image_that_the_agent_reads_reaches_the_provider(name: str, tmp_path: Path) -> None:
    def steps(agent: Agent) -> list[Turn]:
        look = LOOKS[name](str(tmp_path / "home" / "work" / "picture.png"))
        return [Reply(text="Look.", calls=(look,)), *long_loop(agent)]

    with scene(name, tmp_path, steps) as it:
        (it.desk.work / "picture.png").write_bytes(picture())
        it.play()
        assert it.director.steps == []
        assert it.commits > 0
        assert any(b"iVBORw0KGgo" in seen.body for seen in it.provider.seen)


def test_claude_code_is_told_of_an_overflow_word_for_word_and_compacts(tmp_path: Path) -> None:
    words = "prompt is too long: 1100000 tokens > 1000000 maximum"
    summary = "Summary of the session so far, long enough to be one. " * 30

    def steps(agent: Agent) -> list[Turn]:
        compaction = Reply(text=f"<analysis>{summary}</analysis><summary>{summary}</summary>")
        return [*loop(agent, 4, lines=100)[:4], Fault(status=400, message=words), compaction, *loop(agent, 2, lines=100)]

    with scene("claude", tmp_path, steps) as it:
        it.play(code=None)
        refused = [seen for seen in it.provider.seen if seen.status == 400]
        assert len(refused) == 1, "it is not asked again by us"
        assert any(summary[:60].encode() in seen.body for seen in it.provider.seen[-2:]), "the agent compacted and went on"


def test_claude_code_goes_back_and_takes_another_way(tmp_path: Path) -> None:
    with scene("claude", tmp_path, long_loop) as it:
        it.play()
        (log,) = (it.desk.home / ".claude" / "projects").rglob("*.jsonl")
        replies = [line for line in map(json.loads, log.read_text().splitlines()) if line.get("type") == "assistant"]
        place = replies[len(replies) // 2]
        it.director.steps += loop(it.desk.agent, 3, lines=100)
        agent = it.desk.agent._replace(
            again=("--resume", log.stem, "--resume-session-at", place["uuid"], *it.desk.agent.arguments)
        )
        it.desk.agent = agent
        before = len(it.provider.seen)
        it.play(again=True, task="try something else")
        assert it.director.steps == []
        assert len(it.tap.bodies[before]) < len(it.tap.bodies[before - 1]), "its history is shorter now"
        forks = [sheet for sheet in it.store.conversations(None) if sheet.parent and sheet.forked_at]
        assert forks, "a rewound history is a fork"


@pytest.mark.parametrize("name", ["codex", "codex-functions"])
def test_codex_works_over_its_websocket_and_another_process_goes_on(name: str, tmp_path: Path) -> None:
    with scene(name, tmp_path, long_loop, bridge=True) as it:
        it.play()
        assert it.director.steps == []
        assert it.commits > 0
        assert not it.service.counts["upgrades refused"]
        sockets = it.tap.sockets
        before = len(it.provider.seen)
        it.director.steps += loop(it.desk.agent, 4, lines=300)
        it.play(again=True, task="go on")
        assert it.director.steps == []
        assert it.tap.sockets > sockets, "it connects again, with its whole history"
        whole = [held for held in it.store.conversations(None) if held.length > 30]
        assert len(whole) == 1
        assert b"go on" in it.provider.seen[before].body


def test_codex_connects_again_where_its_connection_breaks(tmp_path: Path) -> None:
    def steps(agent: Agent) -> list[Turn]:
        quiet = loop(agent, 8, lines=400)
        return [*quiet[:3], Broken(reply=Reply(text="broken off"), how="cut"), *quiet[3:]]

    with scene("codex", tmp_path, steps, bridge=True) as it:
        it.play()
        assert it.director.steps == []
        assert it.tap.sockets >= 2
