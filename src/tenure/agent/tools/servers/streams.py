"""What goes to and comes from an MCP server, bounded while it comes (an edge), below the protocol's own SDK.

The SDK holds a message of any length, starts a task for each notification, matches answers with a tool's own patterns, which can take for ever, and loses a whole
list to one tool that it cannot read. Here a message above `MESSAGE_BYTES` is passed over, and the call that waits for it gets an error; a tool that is none is taken
out of its list, and named; and only what somebody waits for goes on, at a pace that leaves room for everything else.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TextIO, cast

if TYPE_CHECKING:
    from httpx2 import Response
    from mcp.client._transport import TransportStreams
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.message import SessionMessage

MESSAGE_BYTES: Final = 2**24  # more takes seconds to be read into values, during which nothing else happens
CHUNK: Final = 2**16
KEPT: Final = 4_096  # bytes of the start and the end of a message that is passed over
NAMED: Final = 5  # tools that are named when they are left out
TOOLS: Final = 1_000  # of one list
PARTS: Final = 10_000  # of one answer
REQUESTS: Final = 16  # of a server's own that wait for an answer of ours
DEEPEST: Final = 100  # levels of JSON in a message that the SDK cannot read as it is
_PACE: Final = 20  # messages that nobody waits for, after which there is a pause
_PAUSE_S: Final = 0.001
_POLL_S: Final = 0.01
EXIT_S: Final = 2.0  # for a server to end by itself, and to end when it is asked to
_ID: Final = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]{1,80}")')
_LAST_ID: Final = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]{1,80}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def too_large(most: int) -> str:
    """What is said in place of an answer."""
    return f"its answer is larger than {most // 2**20:,} MB, and was left where it was"


async def _messages(stdout: asyncio.StreamReader, most: int) -> "AsyncGenerator[SessionMessage | Exception, None]":
    """What a program says, one message a line; an exception for a line that is none, as the SDK has it."""
    from mcp.shared.message import SessionMessage
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

    held, start, size = bytearray(), b"", 0  # of the line that is not complete
    while True:
        try:
            piece = await stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError as over:
            piece = await stdout.readexactly(over.consumed)
        except (asyncio.IncompleteReadError, OSError):
            return
        held += piece
        size += len(piece)
        if size > most:
            start = start or bytes(held[:KEPT])
            del held[:-KEPT]
        if not piece.endswith(b"\n"):
            continue
        line, wrong = bytes(held), too_large(most)
        if size <= most:
            wrong = "its answer is no message of the protocol"
            for text in (line, None):
                with suppress(ValueError, RecursionError):
                    yield SessionMessage(jsonrpc_message_adapter.validate_json(text or _mended(line), by_name=False))
                    wrong = ""
                    break
        if wrong and (call := _id(start or line[:KEPT], line[-KEPT:])) is not None:
            yield SessionMessage(JSONRPCError(jsonrpc="2.0", id=call, error=ErrorData(code=INTERNAL_ERROR, message=wrong)))
        elif wrong:
            yield ValueError(wrong)
        held, start, size = bytearray(), b"", 0


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def _mended(line: bytes) -> bytes:
    """A message without what the SDK's reader refuses: levels below `DEEPEST` are null, and half a surrogate pair is a question mark. Raises ValueError."""
    text = line.decode("utf-8", "replace")
    parts: list[str] = []
    depth = at = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == DEEPEST:
                parts += [text[at : token.start()], "null"]
        elif token[0] in "]}":
            at = token.end() if depth == DEEPEST else at
            depth -= 1
    whole = json.loads("".join(parts) + text[at:] if depth < DEEPEST else "")
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")


def _id(start: bytes, end: bytes) -> int | str | None:
    """The id of a message from its start, or its end: what lies between is not known."""
    named = _LAST_ID.search(end) or _ID.search(start.partition(b'"result"')[0])
    if named is None:
        return None
    word = named[1].decode("utf-8", "replace")
    return word.strip('"') if word.startswith('"') else int(word)


class Stdin:
    """What is sent to a program."""

    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object, **__: object) -> None:
        await self.aclose()

    async def send(self, item: "SessionMessage", /) -> None:
        """Send a message. Raises anyio.BrokenResourceError when nobody reads."""
        import anyio

        try:
            self._stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await self._stdin.drain()
        except (OSError, RuntimeError) as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Say that no more will come."""
        with suppress(OSError, RuntimeError):
            self._stdin.close()


@asynccontextmanager
async def pipe(
    parameters: "StdioServerParameters", errors: TextIO, most: int = MESSAGE_BYTES
) -> "AsyncGenerator[tuple[AsyncGenerator[SessionMessage | Exception, None], Stdin], None]":
    """A server that is a program. It is asked to end in the end, as the protocol has it, and ended with all that it started if it does not."""
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        parameters.command,
        *parameters.args,
        cwd=parameters.cwd,
        env=get_default_environment() | (parameters.env or {}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
        limit=CHUNK,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin = Stdin(process.stdin)
    try:
        yield _messages(process.stdout, most), stdin
    finally:
        await stdin.aclose()
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for a program to end, and end it when it takes too long; when this is itself cancelled, at once."""
    import anyio

    with anyio.CancelScope(shield=True):
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(TimeoutError):
                    async with asyncio.timeout(EXIT_S):
                        await _drained(process)
                    return
                _signal(process, number)
        finally:
            _signal(process, signal.SIGKILL)
            transport = getattr(process, "_transport", None)
            if transport is not None:
                transport.close()


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Wait for a program's end, and read away what it still prints, so that it is not held up by it."""
    assert process.stdout is not None
    while process.returncode is None:
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(_POLL_S):
                if not await process.stdout.read(CHUNK):
                    await asyncio.sleep(_POLL_S)


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@asynccontextmanager
async def sieve(
    inner: "AbstractAsyncContextManager[Any]", left_out: Callable[[str, str], None]
) -> "AsyncGenerator[TransportStreams, None]":
    """A transport of which only what somebody waits for goes on. Lists of tools have only what are tools; the others are named to `left_out`."""
    async with inner as (read, write):
        own = _Requests(write)
        yield cast(Any, _Sieve(read, own, left_out)), cast(Any, own)


class _Requests:
    """The stream to a server, which counts the server's own requests that were not answered yet. Mutable."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.open = inner, 0

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(*error)

    async def send(self, item: "SessionMessage", /) -> None:
        """Send a message."""
        await self._inner.send(item)
        self.open -= not hasattr(item.message, "method")


class _Sieve:
    """Messages as they come, sieved: as much of a stream as the SDK uses."""

    def __init__(
        self, inner: "AsyncGenerator[SessionMessage | Exception, None]", own: _Requests, left_out: Callable[[str, str], None]
    ) -> None:
        self._inner, self._own, self._left_out = inner, own, left_out
        self._version = ""
        self._idle = 0  # messages that nobody waits for

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object, **__: object) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        while True:
            item = await anext(self._inner)
            message = getattr(item, "message", None)
            result = getattr(message, "result", None)
            if isinstance(result, dict):
                self._sift(cast(dict[str, Any], result))
            answers, asks = hasattr(message, "id"), hasattr(message, "method")
            is_idle = asks or not answers
            self._idle += is_idle
            # What has come already is read without waiting.
            await asyncio.sleep(_PAUSE_S if is_idle and not self._idle % _PACE else 0)
            if answers and (not asks or self._own.open < REQUESTS):
                self._own.open += asks
                return item

    def _sift(self, result: dict[str, Any]) -> None:
        from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

        content, listed = result.get("content"), result.get("tools")
        if "protocolVersion" in result or "supportedVersions" in result:
            named = result.get("protocolVersion", LATEST_MODERN_VERSION)
            self._version = named if named in KNOWN_PROTOCOL_VERSIONS else ""
        elif isinstance(content, list) and len(parts := cast(list[Any], content)) > PARTS:
            parts[PARTS:] = [
                {"type": "text", "text": f"[left out: the other {len(parts) - PARTS:,} of {len(parts):,} parts of this answer]"}
            ]
        elif isinstance(listed, list) and content is None:
            offers = cast(list[Any], listed)
            if len(offers) > TOOLS:
                self._left_out(f"the other {len(offers) - TOOLS:,} of {len(offers):,} tools", "there is no room for so many")
            version = self._version or LATEST_HANDSHAKE_VERSION
            result["tools"] = [tool for tool in offers[:TOOLS] if self._is_tool(tool, result, version)]

    def _is_tool(self, offered: Any, result: dict[str, Any], version: str) -> bool:
        from mcp_types.methods import parse_server_result
        from pydantic import ValidationError

        if isinstance(offered, dict):
            cast(dict[str, Any], offered).pop("outputSchema", None)  # a pattern in it could take for ever
        try:
            parse_server_result("tools/list", version, {**result, "tools": [offered]})
        except (ValueError, RecursionError) as error:
            name = str(cast(dict[str, Any], offered).get("name", "")) if isinstance(offered, dict) else ""
            why = "inputSchema: nested too deep"
            if isinstance(error, ValidationError):
                wrong = error.errors()[0]
                why = f"{'.'.join(map(str, wrong['loc'][2:]))}: {wrong['msg']}"
            self._left_out(name[:80] or "one without a name", why[:160])
            return False
        return True


async def bound(response: "Response", most: int = MESSAGE_BYTES) -> None:
    """Let no more of a response come than a message may have; a stream of events is bounded by event."""
    import httpx2

    if response.headers.get("content-encoding", "identity") != "identity":  # a small one could become any length
        raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for", request=response.request)
    if "text/event-stream" not in response.headers.get("content-type", ""):
        response.stream = _bounded_stream(response.stream, most)


def _bounded_stream(inner: Any, most: int) -> Any:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = most
            async for chunk in inner:
                left -= len(chunk)
                if left < 0:
                    raise httpx2.StreamError(too_large(most))
                yield chunk

        async def aclose(self) -> None:
            await inner.aclose()

    return Bounded()
