"""MCP servers: those that a person has set up, and the connection to each (an edge), through the protocol's own SDK.

https://modelcontextprotocol.io. They are set up in the form that most agents share:

{"mcpServers": {"files": {"command": "npx", "args": ["server"], "env": {"TOKEN": "${TOKEN}"}},
                "search": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}

A connection is opened and closed in one task of its own, which the SDK's cancel scopes need; calls come from other tasks. It is opened a
second time when it breaks, and not a third.
"""

import asyncio
import logging
import os
import re
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import msgspec
from msgspec import Struct

from tenure.agent.tools.servers.streams import MESSAGE_BYTES, TOOLS, bound, pipe, sieve
from tenure.apis.json_text import load
from tenure.engine.record.visible import visible
from tenure.errors import InputError
from tenure.extras import not_installed

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp import Client
    from mcp.types import CallToolResult, Tool

_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class ServerConfig(Struct, frozen=True, kw_only=True):
    """One server: a `command` that is started, or a `url` that is spoken to."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    trusted: bool = False  # what it says only reads is taken to only read


class _Entry(ServerConfig, frozen=True, kw_only=True):
    name: str = ""
    type: str = ""
    disabled: bool = False


def read_configs(
    text: str, environment: Mapping[str, str], where: str = "MCP servers"
) -> tuple[tuple[ServerConfig, ...], tuple[str, ...]]:
    """The servers of a settings file, and what is wrong with the entries that are left out."""
    try:
        whole = load(text, where)
    except InputError as error:
        return (), (str(error),)
    listed = whole.get("mcpServers", whole) if isinstance(whole, dict) else None
    if not isinstance(listed, dict):
        return (), (f"{where}: expected an object with mcpServers",)
    found: list[ServerConfig] = []
    notes: list[str] = []
    for name, entry in listed.items():
        try:
            config = _read(name, entry, environment)
        except (msgspec.ValidationError, InputError) as error:
            notes.append(f"{where}: {name}: {error}".replace("`", ""))
        else:
            found += [config] if config else []
    return tuple(found), tuple(notes)


def _read(name: str, entry: Any, environment: Mapping[str, str]) -> ServerConfig | None:
    read = msgspec.convert(entry, _Entry)
    if read.disabled:
        return None
    if bool(read.command) == bool(read.url):
        raise InputError(name, "both command and url" if read.command else "neither command nor url", "one of the two")
    if read.type == "sse":
        raise InputError(name, "the transport sse", "stdio or streamable HTTP")

    def filled(value: str) -> str:
        return _VARIABLE.sub(lambda found: environment.get(found[1], found[2] or ""), value)

    return ServerConfig(
        name=name,
        command=filled(read.command),
        args=tuple(map(filled, read.args)),
        env={key: filled(value) for key, value in read.env.items()},
        cwd=filled(read.cwd),
        url=filled(read.url),
        headers={key: filled(value) for key, value in read.headers.items()},
        trusted=read.trusted,
    )


PAGES: Final = 20  # of a list of tools
STOP_S: Final = 5.0  # for a server to end
LOG_BYTES: Final = 2**20  # of what a server writes to its standard error
WHY: Final = 1_000  # characters of an error
LAST_WORDS: Final = 16  # pieces of it that are still taken at its end
HTTP_S: Final = 30.0  # for a connection and what is sent, as the SDK has it
HTTP_READ_S: Final = 300.0  # between two parts of an answer


class McpServer:
    """A server that is connected, or was. Mutable."""

    def __init__(self, config: ServerConfig, *, folder: Path, log: Path | None = None) -> None:
        """What a started server writes to its standard error goes to `log`, or nowhere."""
        self.config = config
        self.tools: tuple[Tool, ...] = ()
        self.left_out: dict[str, str] = {}  # what it offers that is no tool, and why
        self._folder, self._log = folder, log
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._scope: CancelScope | None = None
        self._restarts = 0
        self._again = asyncio.Lock()

    async def start(self) -> None:
        """Connect, and ask for the tools. Raises InputError, and then nothing of it is left."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ready.add_done_callback(lambda done: done.cancelled() or done.exception())  # it need not be waited for
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._hold(ready), name=f"mcp {self.config.name}")
        try:
            await ready
        except asyncio.CancelledError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Begin to disconnect, whatever it was at; that ends by itself."""
        self._client = None
        self._stop.set()
        if self._scope is not None:
            self._scope.cancel()

    async def stop(self) -> None:
        """Disconnect, and end what was started; waits a moment for that."""
        self.abandon()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=STOP_S)

    async def call(self, tool: str, arguments: dict[str, Any]) -> "CallToolResult":
        """What a tool answers. Raises InputError for a server that is gone, and for what is no answer."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        client = self._client
        if client is None:
            raise InputError(self.config.name, "the server has ended" + await self._restarted())
        try:
            return await client.call_tool(tool, arguments)
        except MCPError as error:
            # The code alone is one that servers use for what they like.
            if (error.code, error.message) != (CONNECTION_CLOSED, "Connection closed"):
                raise InputError(self.config.name, _why(error)) from error
            if self._client is client:
                self._client = None
            raise InputError(self.config.name, "the server ended during the call" + await self._restarted()) from error
        except Exception as error:  # whatever its transport raises is no answer
            raise InputError(self.config.name, f"no valid answer ({_why(error)})") from error

    async def _restarted(self) -> str:
        """Start it a second time; what came of that."""
        async with self._again:
            if self._client is not None:
                return "; it runs again, so the call can be repeated"
            if self._restarts:
                return ", and not for the first time: it is left alone for this session"
            self._restarts += 1
            await self.stop()
            try:
                await self.start()
            except InputError as error:
                return f", and could not be started again ({error.found})"
            return "; it was started again, so the call can be repeated"

    async def _hold(self, ready: "asyncio.Future[None]") -> None:
        """Keep the connection open until it is to be closed."""
        import anyio

        try:
            async with AsyncExitStack() as stack:
                self._scope = stack.enter_context(anyio.CancelScope())
                client = await stack.enter_async_context(await self._connection(stack))
                self.tools = await _listed(client)
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                await self._stop.wait()
        except asyncio.CancelledError:
            raise
        except (Exception, BaseExceptionGroup) as error:  # a task group's too
            if not ready.done():
                ready.set_exception(InputError(self.config.name, f"cannot be reached ({_why(error)})"))
        finally:
            self._client = None
            if not ready.done():
                ready.set_exception(InputError(self.config.name, "it was stopped"))

    async def _connection(self, stack: AsyncExitStack) -> "Client":
        await asyncio.to_thread(__import__, "mcp")  # which takes a second
        import httpx2
        from mcp import Client, StdioServerParameters
        from mcp.client.streamable_http import streamable_http_client

        logging.getLogger("mcp").addHandler(logging.NullHandler())  # or its warnings are written over the screen
        config = self.config
        if config.url:
            waits = httpx2.Timeout(HTTP_S, read=HTTP_READ_S)
            # The SDK follows a redirect within the address's own origin only, so that nothing that was meant for it, such as a token, goes elsewhere.
            client = httpx2.AsyncClient(
                headers={"accept-encoding": "identity", **config.headers}, timeout=waits, event_hooks={"response": [bound]}
            )
            http = await stack.enter_async_context(client)
            spoken = streamable_http_client(config.url, http_client=http, max_sse_event_size=MESSAGE_BYTES)
            return Client(sieve(spoken, self.left_out.__setitem__), cache=None)
        log = stack.enter_context(_logged(self._log))
        place = str(self._folder / config.cwd)
        parameters = StdioServerParameters(command=config.command, args=list(config.args), env=dict(config.env), cwd=place)
        return Client(sieve(pipe(parameters, log), self.left_out.__setitem__), cache=None)


@contextmanager
def _logged(log: Path | None) -> Generator[TextIO, None, None]:
    """What a server's standard error is to be: a pipe of which the first `LOG_BYTES` go into a file, and the rest nowhere."""
    if log is None:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            yield nowhere
        return
    loop, room = asyncio.get_running_loop(), LOG_BYTES
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def take() -> bool:
        nonlocal room
        try:
            chunk = os.read(reading, 2**16)
        except OSError:  # nothing is there now
            return False
        with suppress(OSError):  # a disk that is full
            file.write(chunk[:room])
        room -= min(room, len(chunk))
        return bool(chunk)

    with log.open("ab", buffering=0) as file, open(writing, "w", encoding="utf-8") as end:  # noqa: PTH123 - no path, a descriptor
        loop.add_reader(reading, take)
        try:
            yield end
        finally:
            loop.remove_reader(reading)
            for _ in range(LAST_WORDS):
                if not take():
                    break
            os.close(reading)


async def _listed(client: "Client") -> "tuple[Tool, ...]":
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) >= TOOLS:
            break
    return tuple(tools[:TOOLS])


def _why(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast(BaseExceptionGroup[BaseException], error).exceptions[0]
    if isinstance(error, ModuleNotFoundError):
        error = not_installed(error) or error
    text = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
    return visible(" ".join(text[:WHY].split()))
