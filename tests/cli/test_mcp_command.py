"""`tenure mcp` by the protocol's own client, over a pipe to a real process."""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from tenure import Context
from tenure.store.records import OWN_STORE

LISTING = "".join(f"{n:03} settings line of the listing\n" for n in range(300))


def claude_session(home: Path, folder: Path, words: str) -> None:
    """A small session file as Claude Code writes it."""
    place = home / ".claude" / "projects" / "-work"
    place.mkdir(parents=True, exist_ok=True)
    common = {
        "sessionId": "s-1",
        "cwd": str(folder),
        "version": "2.1.0",
        "timestamp": "2026-11-01T10:00:00Z",
        "isSidechain": False,
    }
    use = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "settings.py"}}
    lines = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": words}, **common},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": {"role": "assistant", "model": "claude-opus-4-5", "id": "m1", "content": [use], "usage": {"input_tokens": 10, "output_tokens": 5}}, **common},
        {"type": "user", "uuid": "u3", "parentUuid": "u2", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": LISTING}]}, **common},
    ]  # fmt: skip
    (place / "s-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    claude_session(tmp_path, tmp_path / "work", "Where is the frobnicator configured?")
    (tmp_path / "secret.txt").write_text("-----BEGIN SECRET-----")
    folder = tmp_path / ".local" / "state" / "tenure"
    folder.mkdir(parents=True)
    with Context(store=f"sqlite:///{folder / OWN_STORE}") as context:
        context.extend([{"role": "user", "content": "Delete my wombat secrets."}])
    return tmp_path


@asynccontextmanager
async def connected(home: Path, answer: bool | None = None) -> AsyncIterator[Client]:
    """A client of the command. `answer`: what the person says when asked; None: this client cannot ask."""

    async def elicited(_: Any, __: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"forget": bool(answer)})

    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "tenure", "mcp"], env=environment, cwd=str(home / "work")
    )
    how = {} if answer is None else {"elicitation_callback": elicited}
    async with Client(stdio_client(parameters), **how) as client:  # type: ignore[arg-type]
        yield client


async def text(client: Client, name: str, /, *, error: bool = False, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert bool(result.is_error) == error, result
    return "\n".join(each.text for each in result.content if isinstance(each, TextContent))  # type: ignore[union-attr]


def test_what_a_client_dropped_is_found_and_read_again(home: Path) -> None:
    async def scene() -> None:
        async with connected(home) as client:
            offered = (await client.list_tools()).tools
            assert [tool.name for tool in offered] == ["sessions", "search", "recall", "audit", "why", "forget"]
            assert [tool.name for tool in offered if tool.annotations and tool.annotations.destructive_hint] == ["forget"]
            listed = await text(client, "sessions")
            assert "frobnicator" in listed
            assert "wombat" not in listed  # of another folder
            assert "wombat" in await text(client, "sessions", project="*")
            hits = await text(client, "search", words="settings listing")
            assert "read:1@" in hits
            whole = await text(client, "recall", handle="read:1")
            assert all(line in whole for line in LISTING.splitlines())
            part = await text(client, "recall", handle="read:1", lines="120-121")
            assert "119 settings line" in part
            assert "122 settings line" not in part
            short = await text(client, "recall", handle="read:1", cap=300)
            assert len(short) < len(whole) / 4
            assert "read:1" in await text(client, "why", object="read:1")
            assert "claude-opus-4-5" in await text(client, "audit")

    anyio.run(scene)


def test_a_search_does_not_find_the_calls_of_these_tools(home: Path) -> None:
    log = home / ".claude" / "projects" / "-work" / "s-1.jsonl"
    line = json.loads(log.read_text().splitlines()[1])
    line["message"]["content"] = [
        {"type": "tool_use", "id": "c2", "name": "mcp__tenure__search", "input": {"words": "xylophone"}}
    ]
    result = {"type": "tool_result", "tool_use_id": "c2", "content": "nothing about a xylophone"}
    answer = line | {"type": "user", "uuid": "u5", "parentUuid": "u4", "message": {"role": "user", "content": [result]}}
    with log.open("a") as file:
        file.write(json.dumps(line | {"uuid": "u4", "parentUuid": "u3"}) + "\n" + json.dumps(answer) + "\n")

    async def scene() -> None:
        async with connected(home) as client:
            assert "nothing in 1 sessions matches" in await text(client, "search", error=True, words="xylophone")
            result = await client.call_tool("search", {"words": "settings"})
            assert "structured_content=None" in repr(result)  # which a client would show in place of the text, escaped

    anyio.run(scene)


@pytest.mark.parametrize(
    "call",
    [
        {"type": "custom_tool_call", "name": "exec", "input": 'text(await tools.mcp__tenure__search({"words": "xylophone"}))'},
        {"type": "function_call", "name": "search", "namespace": "mcp__tenure", "arguments": '{"words":"xylophone"}'},
    ],
    ids=["program", "namespace"],
)
def test_a_search_does_not_find_calls_that_codex_makes_of_these_tools(home: Path, call: dict[str, Any]) -> None:
    place = home / ".codex" / "sessions" / "2026" / "11" / "01"
    place.mkdir(parents=True)
    meta = {"id": "c-1", "cwd": str(home / "work"), "timestamp": "2026-11-01T10:00:00Z"}
    lines = [("session_meta", meta), ("response_item", call | {"call_id": "c2"})]
    lines.append(("response_item", {"type": f"{call['type']}_output", "call_id": "c2", "output": "nothing about a xylophone"}))
    texts = [
        json.dumps({"timestamp": "2026-11-01T10:00:00Z", "type": kind, "payload": payload}) + "\n" for kind, payload in lines
    ]
    (place / "rollout-2026-11-01T10-00-00-c-1.jsonl").write_text("".join(texts))

    async def scene() -> None:
        async with connected(home) as client:
            assert "codex" in await text(client, "sessions")
            assert "nothing in 2 sessions matches" in await text(client, "search", error=True, words="xylophone")

    anyio.run(scene)


def test_only_sessions_on_the_shelf_can_be_named(home: Path) -> None:
    async def scene() -> None:
        async with connected(home) as client:
            for name in (str(home / "secret.txt"), "../secret.txt", "-", "claude-code-ffffffff"):
                said = await text(client, "recall", error=True, handle="read:1", session=name)
                assert "BEGIN SECRET" not in said
                assert "names none" in said
            assert "no object 'read:99'" in await text(client, "recall", error=True, handle="read:99")
            assert "nothing to look for" in await text(client, "search", error=True)

    anyio.run(scene)


@pytest.mark.parametrize(("answer", "left"), [(True, False), (False, True), (None, True)])
def test_a_conversation_is_forgotten_only_when_a_person_says_so(home: Path, answer: bool | None, left: bool) -> None:
    async def scene() -> None:
        async with connected(home, answer) as client:
            listed = await text(client, "sessions", project="*", tool="tenure")
            id_ = listed.split()[0]
            if answer is None:
                with pytest.raises(Exception, match="elicitation"):
                    await text(client, "forget", session=id_)
            else:
                assert ("Deleted 1 conversation" in await text(client, "forget", session=id_)) == answer
            assert ("wombat" in str(await client.call_tool("sessions", {"project": "*"}))) == left

    anyio.run(scene)


def test_other_tools_files_are_not_ours_to_forget(home: Path) -> None:
    async def scene() -> None:
        async with connected(home, answer=True) as client:
            id_ = (await text(client, "sessions")).split()[0]
            assert "files of other tools are theirs" in await text(client, "forget", error=True, session=id_)
            assert (home / ".claude/projects/-work/s-1.jsonl").exists()

    anyio.run(scene)
