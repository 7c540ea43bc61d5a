"""`tenure.wrap(client)`: an official SDK's client whose conversations are managed underneath (an edge).

    client = tenure.wrap(Anthropic(), store="sqlite:///agent.db", budget=Budget(ceiling=80_000))

The caller goes on passing his whole history. It is managed where the SDK hands a request to HTTP, so that every way in which an SDK asks goes the same
way, by the code that the gateway runs: `create`, `parse`, helpers for streams, raw responses, tool runners, betas. What a call returns is what the SDK makes
of it. Wrapping methods instead would mean to follow each of them in each version of each SDK, and to rebuild its types.

It fails open: whatever goes wrong here, the caller's own bytes are sent, and the reason is logged once per request.
"""

import copy
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from logging import getLogger
from threading import Thread
from typing import Any, Final, Literal, TypeVar

from anyio import to_thread

from tenure.apis import endpoint_of
from tenure.context.exchange import Exchange, Management
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.policies import PolicyName
from tenure.engine.policies.policy import Policy
from tenure.errors import InputError
from tenure.store.records import Records

LOG: Final = getLogger("tenure.wrap")
KITS: Final = ("httpx", "httpx2")  # what SDKs speak HTTP with
SESSION: Final = "x-tenure-session"  # a header of ours, which goes nowhere: a caller's own name for a conversation
_STREAM: Final = "text/event-stream"
_FRAMING: Final = frozenset({"content-length", "content-encoding", "transfer-encoding"})  # of a body that is made anew
C = TypeVar("C")
T = TypeVar("T")


def wrap(
    client: C,
    *,
    store: "str | Records" = "sqlite:///tenure.db",
    budget: Budget | None = None,
    policy: PolicyName | Policy | Literal[""] | None = "",
    gate: Literal["", "priced", "bounded", "selfgc-paper"] = "",
    clip: int | None = None,
    shadow: bool = False,
    histories: Histories | None = None,
) -> C:
    """A client of the same type whose conversations are kept to a budget; the client itself stays as it is (Google's is changed in place).

    `client` is one of `Anthropic`, `AsyncAnthropic`, `OpenAI`, `AsyncOpenAI` and `google.genai.Client`. `store`, `budget`, `policy`, `gate` and `clip` are those of
    `Context`. With `shadow`, conversations are recorded and nothing of any request is changed. Several clients may share `histories`.

    Requests are known by their history. Several conversations that begin alike are told apart as they part; the header `x-tenure-session`
    (`extra_headers`), which is not sent, tells them apart from the start. Closing the client closes its connections and leaves the store open.

    Raises InputError for a client of another kind, and for one that is wrapped already; StoreError when the store cannot be opened.
    """
    kept = histories or Histories(
        _opened(store),
        Management(mode="shadow" if shadow else "on", budget=budget, policy=policy, gate=gate, clip=clip),
        background=lambda task: Thread(target=task, daemon=True).start(),
    )
    if (inner := getattr(client, "_client", None)) is not None and callable(getattr(client, "copy", None)):
        managed = _managed(inner, kept, client)
        return client.copy(http_client=managed)  # type: ignore[attr-defined] - the SDKs' own way to hand in another
    if (api_client := getattr(client, "_api_client", None)) is not None:
        for name in ("_httpx_client", "_async_httpx_client"):
            setattr(api_client, name, _managed(getattr(api_client, name), kept, getattr(api_client, name)))
        api_client._use_aiohttp = lambda: False  # the other of its two ways to wait, which has no seam
        return client
    raise InputError(
        "client",
        f"a {type(client).__module__}.{type(client).__name__}",
        "Anthropic, AsyncAnthropic, OpenAI, AsyncOpenAI or genai.Client",
    )


def transport(http: Any, histories: Histories) -> Any:
    """What an HTTP client (`httpx.Client` or `AsyncClient`, or httpx2's) sends through, with managed conversations: for frameworks that take such a client."""
    return _managed(http, histories, http)


def _opened(store: "str | Records") -> "Records":
    if not isinstance(store, str):
        return store
    from tenure.store.store import Store

    return Store(store)


def _managed(http: Any, histories: Histories, owner: object) -> Any:
    """A copy of an HTTP client whose requests are managed. It shares the connections of its original, which `owner` keeps open."""
    kits = [each.__module__.partition(".")[0] for each in type(http).__mro__]
    kit = next((import_module(name) for name in kits if name in KITS), None)
    if kit is None:
        raise InputError("client", f"one that speaks HTTP by {kits[0]}", " or ".join(KITS))
    if isinstance(http._transport, _Wrapped):
        raise InputError("client", "one that is wrapped already", "a client that is not")
    kind = _awaited(kit) if issubclass(type(http), kit.AsyncClient) else _blocking(kit)
    copied = copy.copy(http)
    copied._transport = kind(http._transport, histories, owner)
    copied._mounts = {key: each and kind(each, histories, owner) for key, each in http._mounts.items()}
    if (
        per_loop := getattr(http, "_client_for_running_loop", None)
    ) is not None:  # Google's: connections of one event loop are no other's
        copied._client_for_running_loop = lambda: _managed(per_loop(), histories, owner)
    return copied


class _Wrapped:
    """What both transports do, written once: only how they wait differs, in the methods that raise NotImplementedError here.

    Those of the one that blocks never suspend, so that `finished` runs what is written here to its end. The owner is held so that the connections it
    shares are not closed with it.
    """

    kit: Any

    def __init__(self, inner: Any, histories: Histories, owner: object) -> None:
        self.inner, self.histories, self.owner = inner, histories, owner

    async def respond(self, request: Any, raw: bytes) -> Any:
        """The response to a request whose body has been read."""
        exchange = await self.work(self.begin, request, raw)
        if exchange is None:
            return await self.send(request)
        try:
            while True:
                response = await self.send(self._with(request, exchange.body))
                if response.status_code == 200 or not exchange.refused(response.status_code):
                    break
                await self.leave(response)
            if response.status_code == 200 and not response.headers.get("content-type", "").startswith(_STREAM):
                return await self._whole(request, exchange, response)
        except BaseException:
            exchange.close()
            raise
        if response.status_code != 200:
            exchange.close()
            return response
        return self._made(response, stream=self.streamed(self._relayed(request, exchange, response)))

    def begin(self, request: Any, raw: bytes) -> Exchange | None:
        """The exchange of a request; None where it passes through."""
        session = request.headers.pop(SESSION, "")
        try:
            if request.method != "POST" or request.headers.get("content-encoding"):
                return None
            found = endpoint_of(request.url.path, request.url.query.decode())
            if found is None:
                return None
            api, endpoint = found
            exchange = self.histories.exchange(api, raw, model=endpoint.model, counts=endpoint.counts, hint=session)
            if exchange.reason:
                LOG.debug("passed through: %s", exchange.reason)
            return exchange
        except Exception:
            LOG.exception("a request passes through as it is")
            return None

    async def _whole(self, request: Any, exchange: Exchange, response: Any) -> Any:
        """A reply in one piece, asked for again while it calls tools of ours."""
        try:
            while (out := await self.work(_guarded, exchange, partial(exchange.whole, await self.read(response)))) is None:
                again = await self.send(self._with(request, exchange.body))
                if again.status_code != 200:
                    await self.leave(again)
                    out = await self.work(exchange.give_up)
                    break
                response = again
            return self._made(response, content=out)
        finally:
            exchange.close()
            await self.leave(response)

    async def _relayed(self, request: Any, exchange: Exchange, response: Any) -> AsyncGenerator[bytes, None]:
        """A streamed reply; what follows a call of a tool of ours goes on where it ended."""
        out: bytes | None = None
        try:
            while True:
                pieces = self.pieces(response)
                while (piece := await self.next(pieces)) is not None:
                    yield _guarded(exchange, partial(exchange.take, piece)) or b""
                out = await self.work(_guarded, exchange, exchange.end)
                if out is None:
                    await self.leave(response)
                    response = await self.send(self._with(request, exchange.body))
                    if response.status_code != 200:
                        out = await self.work(exchange.give_up)
                if out is not None:
                    yield out
                    return
        finally:
            if (
                out is None
            ):  # an SDK leaves a stream when it has seen the mark of its end; it may have been cancelled, so nothing is waited for first
                _guarded(exchange, exchange.end)
            exchange.close()
            await self.leave(response)

    def _with(self, request: Any, body: bytes) -> Any:
        """The request with another body; itself where that is the same."""
        if body is request.content:
            return request
        headers = [(key, value) for key, value in request.headers.raw if key.lower() != b"content-length"]
        return self.kit.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)

    def _made(self, response: Any, **body: Any) -> Any:
        headers = [each for each in response.headers.raw if each[0].decode("latin-1").lower() not in _FRAMING]
        return self.kit.Response(200, headers=headers, extensions=response.extensions, **body)

    # --- How each waits

    async def work(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Do what may read or write the store."""
        raise NotImplementedError

    async def send(self, request: Any) -> Any:
        """A response whose body is still to be read."""
        raise NotImplementedError

    async def read(self, response: Any) -> bytes:
        """A response's body, whole."""
        raise NotImplementedError

    async def leave(self, response: Any) -> None:
        """Let go of a response."""
        raise NotImplementedError

    def pieces(self, response: Any) -> Any:
        """The pieces of a response's body, for `next`."""
        raise NotImplementedError

    async def next(self, pieces: Any) -> bytes | None:
        """The next piece; None behind the last."""
        raise NotImplementedError

    def streamed(self, pieces: AsyncGenerator[bytes, None]) -> Any:
        """A response's body that is read as it comes."""
        raise NotImplementedError


def _guarded(exchange: Exchange, step: Callable[[], bytes | None]) -> bytes | None:
    """What a step gives the caller; after a failure of ours, what he still has to get."""
    try:
        return step()
    except Exception:
        LOG.exception("a reply goes on unmanaged")
        return exchange.give_up()


def finished(coroutine: Any) -> Any:
    """What a coroutine returns that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for an event loop")


def drawn(pieces: AsyncGenerator[T, None]) -> Iterator[T]:
    """What an asynchronous generator gives that never suspends."""
    try:
        with suppress(StopAsyncIteration):
            while True:
                yield finished(pieces.__anext__())
    finally:
        finished(pieces.aclose())


@cache
def _blocking(kit: Any) -> Any:
    """A transport for clients that block."""

    class BlockingStream(kit.SyncByteStream):
        def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
            self.pieces = pieces

        def __iter__(self) -> Iterator[bytes]:
            return drawn(self.pieces)

        def close(self) -> None:
            finished(self.pieces.aclose())

    class BlockingTransport(_Wrapped, kit.BaseTransport):
        def handle_request(self, request: Any) -> Any:
            return finished(self.respond(request, request.read()))

        def close(self) -> None:
            self.inner.close()

        async def work(self, step: Callable[..., Any], *arguments: Any) -> Any:
            return step(*arguments)

        async def send(self, request: Any) -> Any:
            return self.inner.handle_request(request)

        async def read(self, response: Any) -> bytes:
            return response.read()

        async def leave(self, response: Any) -> None:
            response.close()

        def pieces(self, response: Any) -> Any:
            return response.iter_bytes()

        async def next(self, pieces: Any) -> bytes | None:
            return next(pieces, None)

        def streamed(self, pieces: AsyncGenerator[bytes, None]) -> Any:
            return BlockingStream(pieces)

    BlockingTransport.kit = kit
    return BlockingTransport


@cache
def _awaited(kit: Any) -> Any:
    """The same for clients that are awaited; what reads or writes the store runs in a thread."""

    class AwaitedStream(kit.AsyncByteStream):
        def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
            self.pieces = pieces

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self.pieces

        async def aclose(self) -> None:
            await self.pieces.aclose()

    class AwaitedTransport(_Wrapped, kit.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            return await self.respond(request, await request.aread())

        async def aclose(self) -> None:
            await self.inner.aclose()

        async def work(self, step: Callable[..., Any], *arguments: Any) -> Any:
            return await to_thread.run_sync(step, *arguments)

        async def send(self, request: Any) -> Any:
            return await self.inner.handle_async_request(request)

        async def read(self, response: Any) -> bytes:
            return await response.aread()

        async def leave(self, response: Any) -> None:
            await response.aclose()

        def pieces(self, response: Any) -> Any:
            return response.aiter_bytes()

        async def next(self, pieces: Any) -> bytes | None:
            return await anext(pieces, None)

        def streamed(self, pieces: AsyncGenerator[bytes, None]) -> Any:
            return AwaitedStream(pieces)

    AwaitedTransport.kit = kit
    return AwaitedTransport
