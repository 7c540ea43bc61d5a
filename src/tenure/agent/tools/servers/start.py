"""All MCP servers of a session, started together. Nobody waits for them longer than was agreed; one that takes longer goes on starting."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tenure.agent.tools.servers.server import McpServer, ServerConfig
from tenure.agent.tools.servers.streams import NAMED
from tenure.agent.tools.servers.tool import Offer, ServerTool, fitting, read_tools, tools_of
from tenure.engine.record.visible import visible
from tenure.errors import InputError


class Servers:
    """The servers that came up, and what is to be said of the others. Mutable: others may come up later, and all are to be stopped in the end."""

    def __init__(
        self, servers: Sequence[McpServer], starts: Mapping["asyncio.Task[Sequence[Offer]]", McpServer], taken: Iterable[str]
    ) -> None:
        self.tools: tuple[ServerTool, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.servers, self._starts, self._taken = tuple(servers), dict(starts), set(taken)

    def come(self) -> tuple[ServerTool, ...]:
        """The tools of servers that came up since this was asked last; `notes` has then what is to be said of those that came up or failed."""
        notes: list[str] = []
        offers: dict[McpServer, list[ServerTool]] = {}
        for start in [each for each in self._starts if each.done()]:
            server = self._starts.pop(start)
            if isinstance(error := start.exception(), InputError):
                notes.append(f"MCP server {error}")
            else:
                offers[server] = list(tools_of(server, start.result(), self._taken))
                self._taken |= {tool.name for tool in offers[server]}
        kept = fitting(list(offers.values()), self.tools)
        for some, (server, offer) in zip(kept, offers.items(), strict=True):
            if len(some) < len(offer):
                share = f"{len(some)} of its {len(server.tools)} tools"
                notes.append(f"MCP server {server.config.name}: only {share} are taken: there is no room for more")
            notes += _left_out(server)
        new = tuple(tool for some in kept for tool in some)
        self.tools, self.notes = (*self.tools, *new), tuple(notes)
        return new

    @property
    def waiting(self) -> tuple[str, ...]:
        """The names of those that are not ready yet."""
        return tuple(server.config.name for server in self._starts.values())

    async def stop(self) -> None:
        """End them all."""
        for start in self._starts:
            start.cancel()
        await asyncio.gather(*(server.stop() for server in self.servers))


async def start_servers(
    configs: Iterable[ServerConfig], *, folder: Path, limit_s: float, taken: Iterable[str] = (), logs: Path | None = None
) -> Servers:
    """Start servers side by side, and take those that answer within `limit_s` seconds, in their order; `Servers.come` has the others later.

    `taken` are names of tools that there are already. What a server writes to its standard error goes to a file in the folder `logs`.
    """
    servers = [
        McpServer(config, folder=folder, log=logs / f"mcp-{n}.log" if logs else None) for n, config in enumerate(configs, 1)
    ]
    starts = {asyncio.ensure_future(_offers(server)): server for server in servers}
    if starts:
        await asyncio.wait(starts, timeout=limit_s)
    all_of = Servers(servers, starts, taken)
    all_of.come()
    all_of.notes += tuple(
        f"MCP server {name}: not ready within {limit_s:g} s; its tools are offered once it is" for name in all_of.waiting
    )
    return all_of


async def _offers(server: McpServer) -> Sequence[Offer]:
    await server.start()
    return await asyncio.to_thread(read_tools, server)  # a stranger's schemas can take their time


def _left_out(server: McpServer) -> Iterable[str]:
    if server.left_out:
        named = "; ".join(f"{visible(name)} ({visible(why)})" for name, why in list(server.left_out.items())[:NAMED])
        more = f" and {len(server.left_out) - NAMED} more" if len(server.left_out) > NAMED else ""
        yield f"MCP server {server.config.name}: left out, since no model could call it: {named}{more}"
