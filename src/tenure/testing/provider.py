"""A provider on this machine that refuses what the real ones refuse.

It speaks Chat Completions, Responses and Messages, streaming or not, checks every request by the rules it was given, keeps a strict
prefix cache and answers from a script, or as a function of the request says. It needs starlette and uvicorn; everything it decides lives in its pure neighbours.
"""

import asyncio
import math
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from tenure.apis import APIS
from tenure.apis.json_text import load, object_of
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules
from tenure.errors import InputError
from tenure.testing.prefix import PrefixCache
from tenure.testing.script import Broken, Fault, Reply, Script, Turn, events, output_text, wire, wire_error
from tenure.testing.validity import violations

__all__ = ["FakeProvider", "Seen", "serve", "violations"]


class Seen(Struct, frozen=True, kw_only=True):
    """A request as it arrived, and what came of it."""

    dialect: str
    body: bytes
    violations: tuple[str, ...] = ()
    usage: Usage | None = None  # None when it was refused
    status: int = 200  # of what came of it
    headers: Mapping[str, str] = {}


class FakeProvider:
    """Records every request in `seen`, and answers the valid ones by a script or a function of the body.

    A function suits clients that ask for titles and the like beside their conversation. `rules` replaces the table's row, `clock` gives
    seconds, `tokens` counts a text. `report` is what it says it used, for a server that does not tell the truth; `seen` has the truth.
    """

    def __init__(
        self,
        script: Script | Callable[[Mapping[str, Any]], Turn],
        *,
        rules: Mapping[str, Rules] | None = None,
        clock: Callable[[], float] = time.monotonic,
        tokens: Callable[[str], int] = lambda text: len(text) // 4 + 1,
        report: Callable[[Usage], Usage] = lambda usage: usage,
    ) -> None:
        self.seen: list[Seen] = []
        routes = ((path, api.name) for api in APIS.values() for path in api.server().paths)
        self.app = Starlette(routes=[Route(path, self._endpoint(name), methods=["GET", "POST"]) for path, name in routes])
        self._script, self._rules, self._clock, self._tokens = script, dict(rules or {}), clock, tokens
        self._report = report
        self._cache = PrefixCache(tokens)
        self._answered = 0

    def _endpoint(self, dialect: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await self._answer(dialect, request)

        return answer

    async def _answer(self, dialect: str, request: Request) -> Response:
        if request.method == "GET":  # a client that would rather speak by WebSocket takes 426 as a no
            return Response(status_code=426 if request.headers.get("upgrade") == "websocket" else 405, headers={"allow": "POST"})
        raw = await request.body()
        try:
            body: dict[str, Any] = dict(object_of(load(raw.decode("utf-8", "surrogatepass"), "body"), "body"))
        except (InputError, UnicodeError) as error:
            return self._refuse(dialect, raw, (f"We could not parse the JSON body of your request: {error}",))
        server = APIS[dialect].server()
        body = server.read(body, request.url.path)
        rules = self._rules.get(dialect) or rules_for(server.provider, str(body.get("model", "")), dialect)
        if found := violations(body, rules):
            return self._refuse(dialect, raw, found, headers=request.headers)
        if (count := server.count(request.url.path, self._cache.size(body, rules))) is not None:
            return JSONResponse(count)
        turn = self._turn(body)
        if turn is None:
            return self._refuse(dialect, raw, ("the script has no reply left",), status=500, headers=request.headers)
        if isinstance(turn, Fault):
            return self._fail(dialect, raw, turn, request.headers)
        return self._reply(dialect, raw, body, rules, turn, request.headers)

    def _turn(self, body: Mapping[str, Any]) -> Turn | None:
        if not isinstance(self._script, Script):
            return self._script(body)
        return self._script.replies[self._answered] if self._answered < len(self._script.replies) else None

    def _reply(
        self, dialect: str, raw: bytes, body: dict[str, Any], rules: Rules, turn: Reply | Broken, headers: Mapping[str, str]
    ) -> Response:
        reply = turn.reply if isinstance(turn, Broken) else turn
        usage = self._cache.usage(body, rules, self._clock(), self._tokens(output_text(reply)))
        response = wire(reply, self._answered, body, rules, self._report(usage))
        self._answered += 1
        self.seen.append(Seen(dialect=dialect, body=raw, usage=usage, headers=dict(headers)))
        if not body.get("stream"):
            return JSONResponse(response)
        options: dict[str, Any] = body.get("stream_options") or {}
        include = bool(options.get("include_usage"))
        stream = events(response, dialect, include_usage=include)
        content = _broken(stream, turn, dialect) if isinstance(turn, Broken) else stream
        return StreamingResponse(content, media_type="text/event-stream")

    def _fail(self, dialect: str, raw: bytes, fault: Fault, headers: Mapping[str, str]) -> Response:
        self._answered += 1
        self.seen.append(Seen(dialect=dialect, body=raw, status=fault.status, headers=dict(headers)))
        wait = fault.retry_after_s
        said = {} if wait is None else {"retry-after": str(math.ceil(wait))}
        if wait is not None and wait != int(wait):
            said["retry-after-ms"] = str(wait * 1000)
        if fault.raw:
            return Response(fault.raw, status_code=fault.status, headers=said, media_type="text/html")
        return JSONResponse(wire_error(fault, dialect, len(self.seen)), status_code=fault.status, headers=said)

    def _refuse(
        self, dialect: str, raw: bytes, found: tuple[str, ...], status: int = 400, headers: Mapping[str, str] | None = None
    ) -> Response:
        self.seen.append(Seen(dialect=dialect, body=raw, violations=found, status=status, headers=dict(headers or {})))
        kind = "invalid_request_error" if status == 400 else "api_error"
        error = APIS[dialect].server().error(kind, found[0], len(self.seen), at_messages=True)
        return JSONResponse(error, status_code=status)


class _Cut(Exception):
    """Raised where the connection is to break; the server closes it, and says nothing."""


async def _broken(stream: Iterator[bytes], turn: Broken, dialect: str) -> AsyncIterator[bytes]:
    for n, event in enumerate(stream):
        if n == turn.after:
            match turn.how:
                case "cut":
                    raise _Cut
                case "end":
                    return
                case "error":
                    server = APIS[dialect].server()
                    yield server.error_event(wire_error(Fault(status=server.overloaded), dialect, 0))
                    return
                case "stall":
                    await asyncio.Event().wait()  # until the client leaves
                case "malformed":
                    yield APIS[dialect].server().malformed()
        yield event


@contextmanager
def serve(app: ASGIApp) -> Generator[str, None, None]:
    """Run an ASGI application on a free port of the loopback interface; its base URL, without a path."""
    listener = socket.socket(
        socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # without the protocol asyncio sets no TCP_NODELAY
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
