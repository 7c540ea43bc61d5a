"""The official SDKs as one kind of client: a request's bytes go out, the events of its stream come back.

An SDK is named in the table of APIs (`Speech.sdk`), and how its client is made and asked stands here.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from tenure.errors import InputError
from tenure.extras import NotInstalled
from tenure.models.stream_limit import limit_events


class Connecting(Struct, frozen=True, kw_only=True):
    """Where a client connects to, and how patiently. A base URL or key that is None is what the SDK finds by itself."""

    base_url: str | None
    api_key: str | None
    connect_s: float
    read_s: float
    retries: int


class Client(Protocol):
    """A connection through an SDK."""

    base_url: str
    secrets: tuple[object, ...]  # what the SDK may have found by itself, and may never be shown

    def events(self, path: str, body: bytes) -> Any:
        """A context manager over the events of the reply's stream, decoded from their JSON."""
        ...

    async def close(self) -> None:
        """Close the connection for good."""
        ...


class _Stainless:
    """The SDKs of OpenAI and Anthropic, which one generator makes: their `post` takes a body as bytes."""

    def __init__(self, sdk: Any, name: str, to: Connecting) -> None:
        timeout = sdk.Timeout(to.read_s, connect=to.connect_s)
        http = sdk.DefaultAsyncHttpxClient(event_hooks={"response": [limit_events]})
        self._client = getattr(sdk, name)(
            api_key=to.api_key, base_url=to.base_url, timeout=timeout, max_retries=to.retries, http_client=http
        )
        self._kind = sdk.AsyncStream[object]
        self.base_url = str(self._client.base_url)
        self.secrets: tuple[object, ...] = (self._client.api_key, getattr(self._client, "auth_token", None))

    @asynccontextmanager
    async def events(self, path: str, body: bytes) -> AsyncGenerator[AsyncIterator[object], None]:
        """The events as the server sends them."""
        async with await self._client.post(path, cast_to=object, content=body, stream=True, stream_cls=self._kind) as stream:
            yield stream

    async def close(self) -> None:
        """Close the connection for good."""
        await self._client.close()


class _Genai:
    """The SDK of Google, which takes no bytes: the body goes out as its JSON, in place of what the call itself would write.

    Chunks come as objects of the SDK's types, and are read as the JSON that those write.
    """

    def __init__(self, sdk: Any, to: Connecting) -> None:
        types = sdk.types
        options: dict[str, Any] = {"base_url": to.base_url} if to.base_url else {}
        timeout = import_module("httpx").Timeout(to.read_s, connect=to.connect_s)
        self._client = sdk.Client(
            api_key=to.api_key,
            vertexai=False,
            http_options=types.HttpOptions(
                **options,
                async_client_args={"timeout": timeout, "event_hooks": {"response": [limit_events]}},
                retry_options=types.HttpRetryOptions(attempts=to.retries + 1),
            ),
        )
        self.base_url = to.base_url or "https://generativelanguage.googleapis.com"
        self.secrets: tuple[object, ...] = ()

    @asynccontextmanager
    async def events(self, path: str, body: bytes) -> AsyncGenerator[AsyncIterator[object], None]:
        """The chunks."""
        async with _agenai_events(self._client.aio, path, body) as chunks:
            yield chunks

    async def close(self) -> None:
        """Close the connection for good."""
        await self._client.aio.aclose()


def _plain_chunk(chunk: Any) -> object:
    return chunk.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"sdk_http_response"})


async def _decoded(chunks: Any) -> AsyncGenerator[object, None]:
    try:
        async for chunk in chunks:
            yield _plain_chunk(chunk)
    finally:
        await chunks.aclose()


def is_awaited(client: object) -> bool:
    """Whether a client of an SDK is awaited, as `client.aio` of Google's is."""
    asked = getattr(client, "post", None) or getattr(getattr(client, "models", None), "generate_content", None)
    return inspect.iscoroutinefunction(asked)


def client_events(client: Any, sdk: str, path: str, body: bytes) -> Any:
    """A context manager over the events of a reply's stream, by a client that a host made; an asynchronous one where the client is awaited.

    Raises InputError for a client of another SDK.
    """
    module = import_module(sdk) if type(client).__module__.partition(".")[0] == sdk.partition(".")[0] else None
    if module is None:
        raise InputError("client", f"a {type(client).__module__}.{type(client).__name__}", f"a client of the SDK {sdk}")
    if sdk not in _CLIENTS:
        return (_agenai_events if is_awaited(client) else _genai_events)(client, path, body)
    kind = (module.AsyncStream if is_awaited(client) else module.Stream)[object]
    asked = client.post(path, cast_to=object, content=body, stream=True, stream_cls=kind)
    return _awaited(asked) if is_awaited(client) else asked


@asynccontextmanager
async def _awaited(asked: Any) -> AsyncGenerator[AsyncIterator[object], None]:
    async with await asked as stream:
        yield stream


@contextmanager
def _genai_events(client: Any, path: str, body: bytes) -> Generator[Iterator[object], None, None]:
    yield map(_plain_chunk, client.models.generate_content_stream(**_genai_call(import_module("google.genai"), path, body)))


@asynccontextmanager
async def _agenai_events(client: Any, path: str, body: bytes) -> AsyncGenerator[AsyncIterator[object], None]:
    chunks = _decoded(await client.models.generate_content_stream(**_genai_call(import_module("google.genai"), path, body)))
    try:
        yield chunks
    finally:
        await chunks.aclose()


def _genai_call(sdk: Any, path: str, body: bytes) -> dict[str, Any]:
    """A body as the arguments of the call. The model stands in the path, which the SDK writes itself, and not in the body."""
    fields: dict[str, Any] = msgspec.json.decode(body)
    model = fields.pop("model", path)
    return {"model": model, "contents": "-", "config": {"http_options": sdk.types.HttpOptions(extra_body=fields)}}


_CLIENTS: Final[Mapping[str, str]] = MappingProxyType({"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"})


def connect(sdk: str, to: Connecting) -> Client:
    """A client of an SDK. Raises NotInstalled without it, and whatever the SDK says to what it is given."""
    try:
        module = import_module(sdk)
    except ImportError as error:
        raise NotInstalled(sdk) from error
    return _Stainless(module, _CLIENTS[sdk], to) if sdk in _CLIENTS else _Genai(module, to)
