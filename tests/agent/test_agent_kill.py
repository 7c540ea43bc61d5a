"""A process that is killed at any moment leaves a valid record, and another one goes on from its last entry."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from holding import Outside, folder, heard, open_agent

from tenure.agent.loop import INTERRUPTED
from tenure.engine.record.entry import Role, ToolResult
from tenure.store.store import Store

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups and SIGKILL")

SCRIPT = {
    "pace_s": 0.01,
    "replies": [
        {"text": "I look.", "calls": [{"name": "read", "arguments": {"path": "a.py"}}]},
        {
            "text": "I wait, and say so at length. " * 6,
            "calls": [{"name": "bash", "arguments": {"command": "echo begun; sleep 30"}}],
        },
        {"text": "Done after all."},
    ],
}
MOMENTS = {  # which event the process is killed at -> how many entries are there then, and the last one's role
    "mid-stream": ('"event":"text","text":"I wait', 4, Role.TOOL),
    "in a tool": ('"event":"call_output"', 5, Role.ASSISTANT),
    "after a result": ('"event":"call_done"', 4, Role.TOOL),
}


def stopped(where: Path, store: Path, script: Path, moment: str, number: int) -> tuple[int, list[str]]:
    """Run the agent, and send it a signal when it tells of this; its exit code, and what it told after that."""
    command = [sys.executable, "-m", "tenure.cli.main", "run", "Go.", "--json", "--approve", "all", "--cwd", str(where)]
    command += ["--store", str(store), "--model", f"scripted:{script}"]
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environment = kept | {"HOME": str(where.parent / "home")}
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, start_new_session=True)
    with running:
        assert running.stdout is not None
        for line in running.stdout:
            if moment in line.decode():
                break
        running.send_signal(number)
        rest = [line.decode() for line in running.stdout]
    return running.returncode, rest


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_session_is_gone_on_with(moment: str, tmp_path: Path) -> None:
    where, path = folder(tmp_path, a_py="x\n"), tmp_path / "sessions.db"
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    at, length, role = MOMENTS[moment]
    stopped(where, path, script, at, signal.SIGKILL)
    with Store(f"sqlite:///{path}") as store:
        (sheet,) = store.conversations(str(where.resolve()))
        left = list(store.entries(sheet.id))
        assert store.verify(sheet.id) is None
    assert (len(left), left[-1].role) in {(length, role), (length + 1, Role.ASSISTANT), (length + 1, Role.TOOL)}

    async def again() -> str:
        outside = Outside(where)
        world = {"store": None, "speaker": None}
        agent = await open_agent(outside, world, newest=True, store=str(path), model=f"scripted:{script}", alone=True)
        task = agent.run("Skip it." if left[-1].role is Role.ASSISTANT and not _calls(left[-1]) else "")
        events = []
        async for event in task:
            events.append(event)
            if '"command"' in str(event):  # the sleep, made again
                agent.cancel()
        await heard(agent, "Go on.") if events[-1].reason == "cancelled" else None
        text = " ".join(block.text for entry in agent.context.store.entries(agent.id) for block in entry.blocks)
        await agent.close()
        return text

    text = asyncio.run(again())
    assert "Done after all." in text
    with Store(f"sqlite:///{path}") as store:
        entries = list(store.entries(sheet.id))
        assert store.verify(sheet.id) is None
    assert entries[: len(left)] == left
    told = [block.text for entry in entries for block in entry.blocks if isinstance(block, ToolResult)]
    assert any(text.endswith(INTERRUPTED) for text in told) == (left[-1].role is Role.ASSISTANT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["Ctrl-C", "a terminal that is closed"])
def test_what_asks_it_to_end_ends_the_turn_and_is_told(number: int, tmp_path: Path) -> None:
    where, path = folder(tmp_path, a_py="x\n"), tmp_path / "sessions.db"
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    code, rest = stopped(where, path, script, MOMENTS["in a tool"][0], number)
    assert code == 130
    assert '"reason":"cancelled"' in rest[-1]
    with Store(f"sqlite:///{path}") as store:
        (sheet,) = store.conversations(str(where.resolve()))
        assert "begun" in list(store.entries(sheet.id))[-1].blocks[0].text


def _calls(entry: object) -> bool:
    return any(block.__struct_config__.tag == "tool_call" for block in entry.blocks)
