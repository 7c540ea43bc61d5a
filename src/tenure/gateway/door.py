"""What is turned away before anything else is looked at: hosts by other names, other sites' pages, and connections that do not get to the point (an edge)."""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_S: Final = 20.0  # from a connection's or a request's first byte to the end of its headers
ALIVE: Final = "/healthz"
_READING: Final = ("GET", "HEAD")


class Door:
    """An application behind checks of who asks. Where `names` are given, only this machine is listened to, and nobody but its own programs shall ask."""

    def __init__(self, app: ASGIApp, names: tuple[str, ...]) -> None:
        self._app, self._names = app, frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request or connection."""
        why = self._refusal(scope) if scope["type"] in ("http", "websocket") and self._names else None
        if why is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": why[1]})
        else:
            await JSONResponse({"error": {"type": "tenure_gateway", "message": why[1]}}, why[0])(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and words for a request by another name, as after DNS rebinding, or from another site's page; None for any other."""
        headers = Headers(scope=scope)
        if _host(headers.get("host", "")) not in self._names:
            return 421, "this gateway is for this machine: ask it as localhost or 127.0.0.1, or start it with --allow-host NAME"
        origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "none")
        is_page = origin == "null" or (
            origin.startswith(("http:", "https:")) and _host(urlsplit(origin).netloc) not in self._names
        )
        if scope.get("method") not in _READING and (is_page or site not in ("none", "same-origin")):
            return 403, "this gateway is not for other sites' pages"
        return None


def _host(given: str) -> str:
    """The name or address in a Host header."""
    try:
        return urlsplit(f"//{given}").hostname or ""
    except ValueError:
        return ""


class PatientProtocol(AutoHTTPProtocol):  # pyright: ignore[reportUntypedBaseClass, reportGeneralTypeIssues]
    """HTTP that closes a connection whose request has no whole head after `HEAD_S`, where uvicorn itself waits for ever, and answers none above `most` of them."""

    _late: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, most: int, counts: Counter[str], **named: Any) -> None:
        super().__init__(*given, **named)
        self._most, self._counts = most, counts

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        own: Any = self  # with the attributes of either implementation
        if len(own.connections) > self._most:
            self._counts["too many connections"] += 1
            own.app, own.ws_protocol_class = _full(own.app, self._most), None
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Go on waiting, or stop."""
        before = self._cycle
        super().data_received(data)
        if self._cycle is not before:
            self._stop()
        elif self._late is None and (before is None or before.response_complete):
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    @property
    def _cycle(self) -> Any:
        """The newest request whose head is whole."""
        return getattr(self, "cycle", None)

    def _wait(self) -> None:
        transport: Any = getattr(self, "transport")  # noqa: B009 - of either implementation
        self._late = asyncio.get_running_loop().call_later(HEAD_S, transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _full(app: ASGIApp, most: int) -> ASGIApp:
    """What a connection above the limit gets: whether the process is alive, and nothing else."""
    words = f"this gateway has {most:,} connections, which is its limit (--connections): try again, or ask another one"

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == ALIVE:
            await app(scope, receive, send)
            return
        with suppress(TimeoutError):  # a client that is still writing when it is closed may never see the answer
            async with asyncio.timeout(HEAD_S):
                while (await receive()).get("more_body"):
                    pass
        error = JSONResponse(
            {"error": {"type": "tenure_gateway", "message": words}}, 503, {"connection": "close", "retry-after": "1"}
        )
        await error(scope, receive, send)

    return refuse
