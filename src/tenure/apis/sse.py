"""Server-sent events: a stream of bytes as the events it holds, each with the bytes it came as.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tenure.apis.json_text import Json, dump, encoded, load
from tenure.errors import InputError

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")  # of an event
_LINE: Final = re.compile(r"\r\n|\n|\r")


class StreamEvent(NamedTuple):
    """An event as it came, and the value of its data where that is JSON."""

    raw: bytes  # to the blank line that ends it
    data: Json = None

    def carrying(self, data: Json) -> bytes:
        """The event with other data; its name stays."""
        lines = [
            line for line in _LINE.split(self.raw.decode("utf-8", "replace").strip()) if line and not line.startswith("data")
        ]
        return "".join(f"{line}\n" for line in lines).encode() + b"data: " + encoded(dump(data)) + b"\n\n"


class EventSplitter:
    """Splits a stream into its events. Mutable: it keeps what has no end yet."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, piece: bytes) -> Iterator[StreamEvent]:
        """The events that this piece brings to their end."""
        data, at, new = self._rest + piece, 0, max(0, len(self._rest) - 3)
        for end in _END.finditer(data, new):
            yield _event(data[at : end.end()])
            at = end.end()
        self._rest = data[at:]

    @property
    def waiting(self) -> int:
        """Bytes of an event that has no end yet."""
        return len(self._rest)

    def rest(self) -> bytes:
        """What came behind the last event, and is none."""
        rest, self._rest = self._rest, b""
        return rest


def _event(raw: bytes) -> StreamEvent:
    lines = _LINE.split(raw.decode("utf-8", "surrogatepass" if raw.isascii() else "replace"))
    data = "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))
    if not data.startswith("{"):
        return StreamEvent(raw)
    try:
        return StreamEvent(raw, load(data))
    except InputError:
        return StreamEvent(raw)
