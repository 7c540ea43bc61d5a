"""The gateway: HTTP between any agent and its provider (an edge).

A request that asks a model for a reply is read, found and perhaps changed (`tenure.context.histories`); every other one is relayed as it is. It fails open: whatever goes wrong on
our side - the store, a policy, a time-out, a bug - the client's own bytes go upstream, and the reason is counted and logged with the request's id. Nothing of a
client's keys is stored or logged; headers go through.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Final, TypeVar

import httpx
from anyio import CancelScope
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenure.apis import api_of, endpoint_of
from tenure.context.exchange import Exchange
from tenure.context.histories import Histories
from tenure.errors import InputError, TenureError
from tenure.gateway.bridge import Bridge
from tenure.gateway.door import Door
from tenure.gateway.headers import TOKEN, forwarded, is_aside, returned, session_named, unpacked
from tenure.gateway.settings import OPERATOR, GatewaySettings, Upstream, with_mode
from tenure.gateway.trace import RequestTrace
from tenure.gateway.warming import warm
from tenure.store.records import Records

T = TypeVar("T")
LOG: Final = logging.getLogger("tenure.gateway")
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_BY_PATH: Final = "t"  # the first part of a path whose second is a client's token, for clients that can send no header
_TIDY_S: Final = 60.0
# Why a client's own bytes went out where they might have been changed, or a reply was not followed to its end.
FAULTS: Final = (
    "took too long to find",
    "could not be managed",
    "could not be followed",
    "could not be recorded",
    "refused when changed",
)
_TRACED: Final = ("traceparent", "tracestate")  # w3.org/TR/trace-context


class Gateway:
    """One process's gateway. `app` is the ASGI application; `counts` says what became of requests."""

    def __init__(
        self,
        store: Records,
        settings: GatewaySettings | None = None,
        *,
        routes: Sequence[BaseRoute] = (),
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`routes` stand before those of the gateway; `transport` is how upstreams are reached, where it is not the network."""
        self.settings = with_mode(settings or GatewaySettings())
        self.counts: Counter[str] = Counter()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
        timeout = httpx.Timeout(self.settings.silence_s, connect=self.settings.connect_s)
        self._client = httpx.AsyncClient(
            timeout=timeout, limits=limits, transport=transport, follow_redirects=False, trust_env=True
        )
        for name in list(self._client.headers):  # a client's own headers go upstream, and no others
            del self._client.headers[name]
        self._workers = ThreadPoolExecutor(self.settings.workers, thread_name_prefix="tenure")
        self._adopters = ThreadPoolExecutor(1, thread_name_prefix="tenure-adopt")
        self.histories = Histories(store, self.settings.management, background=self._adopters.submit)
        self.watchers: list[Callable[[RequestTrace], None]] = []  # are told of each request at its end
        self._ids = count(1)
        self._active = 0
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None  # until which conversations may stay in memory unused
        site = Starlette(routes=[*routes, Route("/{path:path}", self._serve, methods=list(_METHODS))])
        self.app: ASGIApp = Door(Bridge(site, self.settings.body_bytes) if self.settings.bridge else site, self.settings.names)

    async def aclose(self, *, drain_s: float = 30.0) -> None:
        """Let running requests end, for at most so long, and let go of connections and threads. The store is the caller's."""
        with suppress(TimeoutError):
            async with asyncio.timeout(drain_s):
                while self._active:
                    self._idle.clear()
                    await self._idle.wait()
        if self._timer is not None:
            self._timer.cancel()
        await self._client.aclose()
        self._workers.shutdown(wait=True)
        self._adopters.shutdown(wait=True, cancel_futures=True)

    def warm(self) -> None:
        """Load in the background what the first conversation would wait for. A failure shows where a conversation meets it."""
        if self.settings.mode != "pass":
            self._adopters.submit(warm, self.settings.management)

    @property
    def active(self) -> int:
        """Requests that are being answered."""
        return self._active

    # --- One request

    async def _serve(self, request: Request) -> Response:
        trace = RequestTrace(next(self._ids), self._ended)
        self.counts["requests"] += 1
        if request.headers.get("upgrade", "").lower() == "websocket":
            self.counts["upgrades refused"] += 1
            return Response(status_code=426, headers={"connection": "close"})  # clients take HTTP then
        path, token = request.scope["path"], request.headers.get(TOKEN, "")
        if path.startswith(f"/{_BY_PATH}/"):
            _, _, token, *parts = path.split("/")
            path = "/" + "/".join(parts)
        tenant = self.settings.tenant_of(token)
        if tenant in (None, OPERATOR):
            self.counts["unknown tokens"] += 1
            return _refusal(401, f"this gateway wants a client token, in the header {TOKEN}")
        upstream, path = self._upstream(request, path)
        try:
            async with asyncio.timeout(self.settings.body_s):
                body = await _body(request, self.settings.body_bytes)
        except TimeoutError:
            self.counts["too slow"] += 1
            return _refusal(408, f"the body did not come within {self.settings.body_s:.0f} seconds")
        except InputError as error:
            self.counts["too large"] += 1
            return _refusal(413, str(error))
        except ClientDisconnect:
            return Response(status_code=400)
        trace.tenant = tenant
        trace.headers = {name: request.headers[name] for name in _TRACED if name in request.headers}
        exchange = trace.exchange = await self._exchange(request, trace, path, upstream, tenant, body)
        self._active += 1
        try:
            return await self._relay(request, trace, path, upstream, body, exchange)
        except httpx.HTTPError as error:
            for call in trace.calls[-1:]:
                call.end(type(error).__name__)
            self._done(trace)
            self.counts["upstream failures"] += 1
            LOG.warning("request %d: %s cannot be reached (%s)", trace.number, upstream.name, type(error).__name__)
            return _refusal(504 if isinstance(error, httpx.TimeoutException) else 502, f"{upstream.name} cannot be reached")
        except BaseException:
            self._done(trace)
            raise

    def _upstream(self, request: Request, path: str) -> tuple[Upstream, str]:
        """Whom a request goes to, and its path there: by name where the path begins with one that is allowed, else by the API."""
        name, _, rest = path.removeprefix("/").partition("/")
        named = self.settings.upstream(name)
        return (named, f"/{rest}") if named else (self.settings.maker_of(api_of(path, request.headers.keys())), path)

    async def _exchange(
        self, request: Request, trace: RequestTrace, path: str, upstream: Upstream, tenant: str, body: bytes
    ) -> Exchange | None:
        """What becomes of a request for a reply; None where it is relayed as it is. Whatever fails here is no fault of the client's."""
        asked = endpoint_of(path, request.url.query) if request.method == "POST" else None
        if asked is None:
            return None
        api, endpoint = asked
        trace.operation, trace.model = "" if endpoint.counts else api.operation, endpoint.model
        if self.settings.mode == "pass":
            return None
        headers = request.headers

        def find() -> Exchange:
            plain = unpacked(body, headers.get("content-encoding", ""), self.settings.body_bytes)
            return self.histories.exchange(
                api,
                plain,
                tenant=tenant,
                provider=upstream.provider,
                model=endpoint.model,
                counts=endpoint.counts,
                aside=is_aside(headers),
                hint=session_named(headers),
            )

        task = asyncio.get_running_loop().run_in_executor(self._workers, find)
        try:
            exchange = await asyncio.wait_for(asyncio.shield(task), self.settings.exchange_s)
        except TimeoutError:
            task.add_done_callback(_close_late)
            self._fault(trace.number, "took too long to find", None)
            return None
        except Exception as error:  # the one broad guard: whatever it is, the client's own bytes go upstream
            self._fault(trace.number, "could not be managed", error, trace=not isinstance(error, TenureError))
            return None
        finally:
            trace.find_s = trace.elapsed_s
        kind = exchange.reason or ("leads" if exchange.leads else "asides")
        self.counts[kind] += 1
        self.counts["changed"] += exchange.is_changed
        return exchange

    async def _relay(
        self, request: Request, trace: RequestTrace, path: str, upstream: Upstream, body: bytes, exchange: Exchange | None
    ) -> Response:
        url = upstream.url_of(path, request.url.query)
        while True:
            is_changed = exchange is not None and exchange.is_changed
            sent = self._client.build_request(
                request.method,
                url,
                headers=forwarded(request.headers.items(), managed=exchange is not None, changed=is_changed),
                content=exchange.body if exchange is not None and is_changed else body,
            )
            call = trace.call(upstream, is_changed=is_changed)
            response = await self._client.send(sent, stream=True)
            call.answer(response.status_code)
            if exchange is None:
                return self._streaming(response, _raw_of(response), trace, decoded=False)
            if response.status_code == 200:
                is_stream = "text/event-stream" in response.headers.get("content-type", "")
                if is_stream:
                    pieces = self._managed(request, trace, url, response, exchange)
                    return self._streaming(response, pieces, trace, decoded=True)
                reply = await response.aread()
                shown = await self._recorded(trace, exchange, partial(exchange.whole, reply), reply)
                if shown is None:
                    self.counts["rounds"] += 1
                    continue
                trace.write()
                self._done(trace)
                headers = returned(response.headers.multi_items(), decoded=True)
                return _whole(shown, response.status_code, headers)
            if exchange.refused(response.status_code):
                self.counts["refused when changed"] += 1
                call.end()
                await response.aclose()
                continue
            return self._streaming(response, _raw_of(response), trace, decoded=False)

    def _streaming(
        self, response: httpx.Response, pieces: AsyncGenerator[bytes, None], trace: RequestTrace, *, decoded: bool
    ) -> Response:
        async def close() -> None:
            self._done(trace)
            await response.aclose()

        headers = returned(response.headers.multi_items(), decoded=decoded)
        return _Stream(pieces, response.status_code, headers, close, partial(self._broken, trace), trace.write)

    def _broken(self, trace: RequestTrace, error: httpx.HTTPError) -> None:
        """The client's stream breaks as the upstream's did."""
        trace.calls[-1].end(type(error).__name__)
        self.counts["broken streams"] += 1
        LOG.warning("an upstream's stream broke off (%s)", type(error).__name__)

    async def _managed(
        self, request: Request, trace: RequestTrace, url: str, response: httpx.Response, exchange: Exchange
    ) -> AsyncGenerator[bytes, None]:
        """A stream for the client, of one or more replies upstream."""
        try:
            while True:
                pieces = response.aiter_bytes()
                async for piece in pieces:
                    if out := self._taken(trace.number, exchange, piece):
                        yield out
                    if exchange.is_over:
                        break
                rest = await self._recorded(trace, exchange, exchange.end, b"")
                if rest:
                    yield rest
                if rest is not None:
                    async for _ in pieces:  # so that the connection can be used again
                        pass
                    return
                await response.aclose()
                self.counts["rounds"] += 1
                headers = forwarded(request.headers.items(), managed=True, changed=True)
                sent = self._client.build_request(request.method, url, headers=headers, content=exchange.body)
                call = trace.call(trace.calls[-1].upstream, is_changed=True)
                response = await self._client.send(sent, stream=True)
                call.answer(response.status_code)
                if response.status_code != 200:
                    LOG.warning("request %d: a further round was refused (%d)", trace.number, response.status_code)
                    yield exchange.give_up()
                    return
        finally:
            await response.aclose()

    def _taken(self, number: int, exchange: Exchange, piece: bytes) -> bytes:
        try:
            return exchange.take(piece)
        except Exception as error:
            self._fault(number, "could not be followed", error, trace=True)
            return exchange.give_up() + piece

    async def _recorded(
        self, trace: RequestTrace, exchange: Exchange, record: Callable[[], bytes | None], otherwise: bytes
    ) -> bytes | None:
        """What the client still gets, once a reply is recorded."""
        call, begun = trace.calls[-1], trace.elapsed_s
        call.end()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, record)
        except Exception as error:
            self._fault(trace.number, "could not be recorded", error, trace=True)
            return exchange.give_up() or otherwise
        finally:
            trace.record_s = max(trace.record_s, 0.0) + trace.elapsed_s - begun
            call.hear(exchange)

    def _fault(self, number: int, what: str, error: Exception | None, *, trace: bool = False) -> None:
        self.counts[what] += 1
        LOG.warning("request %d %s%s", number, what, f": {error}" if error is not None else "", exc_info=error if trace else None)

    def _tidy(self) -> None:
        """Let go of conversations that were not used for long, again and again as long as there are any, requests or not."""
        self._timer = None
        self._adopters.submit(self.histories.tidy_idle, self.settings.idle_s)
        self._tidy_later()

    def _tidy_later(self) -> None:
        if self._timer is None and self.histories.live:
            self._timer = asyncio.get_running_loop().call_later(min(self.settings.idle_s / 2, _TIDY_S), self._tidy)

    def _done(self, trace: RequestTrace) -> None:
        self._active -= 1
        self._idle.set()
        if trace.exchange is not None:
            trace.exchange.close()
            self._tidy_later()
        trace.end()

    def _ended(self, trace: RequestTrace) -> None:
        """A request is over: whoever counts or reports may look at it. What goes wrong there is no fault of the client's."""
        for watcher in self.watchers:
            try:
                watcher(trace)
            except Exception:
                LOG.exception("request %d could not be counted", trace.number)


def _close_late(task: "asyncio.Future[Exchange]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def _body(request: Request, most: int) -> bytes:
    """The body of a request. Raises InputError above `most` bytes."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise InputError("request", "a larger body than is taken", f"at most {most:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


class _Stream(StreamingResponse):
    """A reply as it comes. What it holds is let go of however it ends."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        status: int,
        headers: list[tuple[str, str]],
        close: Callable[[], Awaitable[None]],
        broken: Callable[[httpx.HTTPError], None],
        begun: Callable[[], None],
    ) -> None:
        super().__init__(pieces, status)
        self.raw_headers = _raw(headers)
        self._pieces, self._close, self._broken, self._begun = pieces, close, broken, begun

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            if message.get("body"):
                self._begun()
            await send(message)

        try:
            await super().__call__(scope, receive, noted)
        except httpx.HTTPError as error:
            self._broken(error)
            raise
        finally:
            with CancelScope(shield=True):
                await self._pieces.aclose()
                await self._close()


async def _raw_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body of a response as it comes."""
    async for piece in response.aiter_raw():
        yield piece


def _whole(content: bytes, status: int, headers: list[tuple[str, str]]) -> Response:
    response = Response(content, status)
    response.raw_headers = [*(pair for pair in response.raw_headers if pair[0] == b"content-length"), *_raw(headers)]
    return response


def _raw(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers of which some may stand twice."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"type": "tenure_gateway", "message": message}}, status, headers={"x-should-retry": "false"})
