"""All MCP servers of a session, started together. Promise: nobody waits longer for them than was agreed."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from tenure.agent.tools.servers.config import ServerConfig
from tenure.agent.tools.servers.server import Server
from tenure.agent.tools.servers.tool import ServerTool, fitting, tools_of
from tenure.errors import InputError


class Servers:
    """The servers that came up, and what is to be said of the others. Mutable: to be stopped in the end."""

    def __init__(self, servers: Sequence[Server], tools: Sequence[ServerTool], notes: Sequence[str]) -> None:
        self.tools, self.notes = tuple(tools), tuple(notes)
        self._servers = tuple(servers)

    async def stop(self) -> None:
        """End them all."""
        await asyncio.gather(*(server.stop() for server in self._servers))


async def started(
    configs: Iterable[ServerConfig], *, folder: Path, limit_s: float, taken: Iterable[str] = (), logs: Path | None = None
) -> Servers:
    """Start servers side by side, and take those that answer within `limit_s` seconds, in their order: a session's tools stay the same.

    `taken` are names of tools that there are already. What a server writes to its standard error goes to a file in the folder `logs`.
    """
    servers = [Server(config, folder=folder, log=logs / f"mcp-{n}.log" if logs else None) for n, config in enumerate(configs, 1)]
    starts = {asyncio.ensure_future(server.start()): server for server in servers}
    if starts:
        await asyncio.wait(starts, timeout=limit_s)
    came: list[Server] = []
    notes: list[str] = []
    for start, server in starts.items():
        if not start.done():
            notes.append(f"MCP server {server.config.name}: not ready within {limit_s:g} s; this session goes on without it")
            start.cancel()  # which ends it in its own time
        elif isinstance(error := start.exception(), InputError):
            notes.append(f"MCP server {error}")
        else:
            came.append(server)
    offers: list[list[ServerTool]] = []
    used = set(taken)
    for server in came:
        offers.append(list(tools_of(server, used)))
        used |= {tool.name for tool in offers[-1]}
    kept = fitting(offers)
    notes += [
        f"MCP server {server.config.name}: only {len(some)} of its {len(server.tools)} tools are taken: there is no room for more"
        for server, some, offer in zip(came, kept, offers, strict=True)
        if len(some) < len(offer)
    ]
    return Servers(servers, [tool for some in kept for tool in some], notes)
