"""A limit to one event of a provider's stream: the SDKs keep an event in memory until it ends."""

from collections.abc import AsyncIterator
from functools import cache
from importlib import import_module
from typing import Any, Final

LONGEST_EVENT: Final = 16_000_000  # bytes; no reply of any model is as long
_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")


class LimitedStream:
    """The bytes of a response, as long as blank lines part them."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0  # since the last blank line
        tail = b""
        async for chunk in self._stream:
            window = tail + chunk
            end = max(window.rfind(mark) for mark in _ENDS)
            size = size + len(chunk) if end < 0 else len(window) - end
            if size > LONGEST_EVENT:
                raise OSError(f"an event of the stream does not end within {LONGEST_EVENT:,} bytes")
            tail = window[-3:]
            yield chunk

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()


async def limit_events(response: Any) -> None:
    """A hook for the HTTP client of an SDK: reading the response raises OSError where an event does not end."""
    response.stream = _stream_class(type(response).__module__.partition(".")[0])(response.stream)


@cache
def _stream_class(library: str) -> Any:
    """Of httpx, or of httpx2 in newer SDKs, which take no stream but their own."""
    return type("LimitedStream", (LimitedStream, import_module(library).AsyncByteStream), {})
