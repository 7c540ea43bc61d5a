import asyncio
import json
import sys
from functools import partial
from pathlib import Path

import pytest
from holding import Outside, call, folder, heard, of, open_agent, results, says

from tenure.agent import opening
from tenure.agent.events import Noticed
from tenure.agent.tools.tool import ToolLimits

WIRE = Path(__file__).with_name("tools") / "wire_server.py"


def test_tools_of_a_slow_server_are_offered_and_called_once_it_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "ToolLimits", partial(ToolLimits, server_start_s=0.1))
    gate, servers = tmp_path / "gate", tmp_path / "servers.json"
    entry = {"command": sys.executable, "args": [str(WIRE)], "env": {"GATE": str(gate)}}
    servers.write_text(json.dumps({"mcpServers": {"wire": entry}}))
    outside = Outside(folder(tmp_path), says("Hello."), says("", call("wire__echo", text="hi")), says("Done."))

    async def waits(_: float) -> None:
        await asyncio.Event().wait()

    async def play() -> None:
        agent = await open_agent(outside, {"wait": waits}, servers=servers)
        try:
            first = [event.text for event in of(await heard(agent, "Hello."), Noticed)]
            assert "MCP server wire: not ready within 0.1 s; its tools are offered once it is" in first
            assert all("wire__" not in json.dumps(tool) for tool in agent.parts.tools)
            gate.touch()
            assert agent.parts.servers is not None
            await asyncio.wait(agent.parts.servers._starts)
            second = [event.text for event in of(await heard(agent, "Call it."), Noticed)]
            assert any(text.startswith("9 tools of an MCP server that was slow are offered now: wire__") for text in second)
            assert any("wire__echo" in json.dumps(tool) for tool in agent.parts.tools)
        finally:
            await agent.close()

    asyncio.run(play())
    assert results(outside) == ["hi"]
