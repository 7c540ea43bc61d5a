"""A server on this machine that sends exactly the bytes a test gives it, and breaks off where the test says so."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from itertools import count
from threading import Event, Thread
from typing import Any

from tenure.apis.json_text import dump, load, object_of
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Usage
from tenure.testing.script import Reply, events, wire
from tenure.testing.validity import violations

PATHS = {"/v1/chat/completions": "openai-chat", "/v1/responses": "openai-responses", "/v1/messages": "anthropic"}
PROVIDERS = {"openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic", "gemini": "google"}


class Then(Enum):
    """What happens behind the bytes of an answer."""

    CLOSE = "close"
    RESET = "reset"
    STALL = "stall"  # until the client leaves


Answer = tuple[bytes, Then]


def spoken(reply: Reply, dialect: str, n: int = 0) -> list[bytes]:
    """The events of a reply as its provider streams them."""
    rules = rules_for(PROVIDERS[dialect], "", dialect)
    whole = wire(reply, n, {"model": "scripted"}, rules, Usage(uncached=10, output=5))
    return list(events(whole, dialect, include_usage=True))


def streamed(data: bytes, *, kind: str = "text/event-stream", status: str = "200 OK", whole: bool = True) -> bytes:
    """An HTTP answer with this body, in chunks; not `whole`: without the end of the last."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    return head + f"{len(data):x}\r\n".encode() + data + (b"\r\n0\r\n\r\n" if whole else b"")


def said(reply: Reply, dialect: str, n: int = 0) -> Answer:
    """A reply as it should be."""
    return streamed(b"".join(spoken(reply, dialect, n))), Then.CLOSE


class RawServer:
    """Gives its answers in turn, one to a connection. `bodies` are the requests, `violations` what was wrong with them."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.bodies: list[bytes] = []
        self.violations: list[tuple[str, ...]] = []
        self.left = Event()  # whoever was kept waiting has gone
        self._answers = iter(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        with suppress(OSError):  # it was closed
            for _ in count():
                self._answer(self._listener.accept()[0])

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(10)
            path, body = self._request(connection)
            if not path:
                return
            self.bodies.append(body)
            fields: dict[str, Any] = dict(object_of(load(body.decode("utf-8", "surrogatepass"), "body"), "body"))
            dialect = PATHS.get(path, "gemini")  # whose path names the model
            model = str(fields.get("model") or path.rpartition("/")[2].partition(":")[0])
            self.violations.append(violations(fields, rules_for(PROVIDERS[dialect], model, dialect)))
            data, then = next(self._answers, (streamed(dump({"error": "no answer left"}).encode(), status="401 No"), Then.CLOSE))
            with suppress(OSError):
                connection.sendall(data)
                if then is Then.RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if then is Then.STALL:
                    while connection.recv(1_000):
                        pass
                    self.left.set()

    def _request(self, connection: socket.socket) -> tuple[str, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65_536)
            if not more:
                return "", b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        while len(body) < length:
            body += connection.recv(1_000_000)
        return lines[0].split()[1], body


@contextmanager
def answering(*answers: Answer) -> Iterator[RawServer]:
    server = RawServer(answers)
    thread = Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(5)
