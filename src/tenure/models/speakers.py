"""The official SDKs as speakers: one connection for a whole session, requests as bytes, replies as they come. Edge.

The SDKs do not try again by themselves here: whoever talks with a model wants to know, and decides. What fails is a ModelError without secrets.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.errors import Failure, InputError, ModelError
from tenure.extras import NotInstalled
from tenure.models.assembly.assembly import Assembly
from tenure.models.assembly.chat import ChatAssembly
from tenure.models.assembly.messages import MessageAssembly
from tenure.models.assembly.responses import ResponseAssembly
from tenure.models.failures import NO_KEY, Trouble, sentence, told_trouble, trouble
from tenure.models.hosts import host_of, secrets_of
from tenure.models.replies import LONGEST
from tenure.models.speaker import Spoken, Whole


class Api(Struct, frozen=True, kw_only=True):
    """One provider API: which SDK speaks it, where its requests go, and how its replies are put together."""

    sdk: str
    path: str
    dialect: str
    assembly: Callable[[], Assembly]


APIS: Final[Mapping[str, Api]] = MappingProxyType(
    {
        "openai-chat": Api(sdk="openai", path="/chat/completions", dialect="openai-chat", assembly=ChatAssembly),
        "openai-responses": Api(sdk="openai", path="/responses", dialect="openai-responses", assembly=ResponseAssembly),
        "anthropic": Api(sdk="anthropic", path="/v1/messages", dialect="anthropic", assembly=MessageAssembly),
    }
)


class Silence(Struct, frozen=True, kw_only=True):
    """How long a connection may say nothing, in seconds. There is no limit to a whole reply: a person can stop it."""

    connect_s: float = 15.0
    read_s: float = 300.0  # a model that reasons can be silent for minutes


class SdkSpeaker:
    """A model behind an SDK. Loads the SDK and opens the connection with the first call, or before by `warm`."""

    def __init__(
        self,
        name: str,
        api: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        keys: str = "",
        silence: Silence | None = None,
    ) -> None:
        """Nothing is loaded or sent yet. Without a key the SDK's own rules hold; `keys` says to people where one is looked for.

        Raises InputError for an API that is not spoken.
        """
        if api not in APIS:
            raise InputError("API", repr(api), " or ".join(APIS))
        self.name, self.dialect = name, APIS[api].dialect
        self._api, self._base_url, self._key, self._silence = APIS[api], base_url, api_key, silence or Silence()
        self._no_key = f"{NO_KEY}: {keys}" if keys else NO_KEY
        self._client: Any = None
        self._opening = asyncio.Lock()

    async def warm(self) -> None:
        """Load the SDK and open the connection's books, so that the first call need not wait for that. Never raises."""
        with suppress(InputError, ModelError):
            await self._opened()

    async def speak(self, body: bytes) -> AsyncGenerator[Spoken | Whole, None]:
        """The reply to a request: its pieces, and last of all the whole."""
        assembly = self._api.assembly()
        client = await self._opened()
        size = 0
        try:
            stream = await client.post(self._api.path, cast_to=object, content=body, stream=True, stream_cls=_stream_of(client))
            async with stream:
                async for event in stream:
                    size += len(str(event))
                    if size > LONGEST:
                        raise OSError("the stream does not end")
                    for spoken in assembly.take(event):
                        yield spoken
                    if assembly.error is not None:
                        break
        except Exception as error:
            found = trouble(error, begun=assembly.begun, host=host_of(str(client.base_url)))
            if found is None:
                raise
            raise self._failed(found, assembly) from None  # an SDK's error may hold a key, in its words or in its request
        yield self._concluded(assembly)

    async def close(self) -> None:
        """Close the connection for good."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def __repr__(self) -> str:
        return f"SdkSpeaker({self.name})"

    def _concluded(self, assembly: Assembly) -> Whole:
        if assembly.error is not None:
            raise self._failed(told_trouble(assembly.error, begun=assembly.begun), assembly)
        whole = assembly.whole()
        if whole is None:
            kind = Failure.CUT_SHORT if assembly.begun else Failure.UNAVAILABLE
            raise self._failed(Trouble(kind=kind, detail="the stream broke off"), assembly)
        return whole

    def _failed(self, found: Trouble, assembly: Assembly) -> ModelError:
        words = sentence(self._who, self._advised(found), self._secrets)
        return ModelError(found.kind, words, said=assembly.said, retry_after_s=found.retry_after_s, overflow=found.overflow)

    def _advised(self, found: Trouble) -> Trouble:
        return replace(found, detail=self._no_key) if found.detail == NO_KEY else found

    @property
    def _who(self) -> str:
        return f"{self.name} at {host_of(str(self._client.base_url))}" if self._client is not None else self.name

    @property
    def _secrets(self) -> tuple[str, ...]:
        client = self._client
        if client is None:
            return ()
        given = (self._key, client.api_key, getattr(client, "auth_token", None))
        return secrets_of(str(client.base_url), *given)

    async def _opened(self) -> Any:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._open)  # loading an SDK takes a second
            return self._client

    def _open(self) -> Any:
        try:
            if self._api.sdk == "openai":
                import openai as sdk
            else:
                import anthropic as sdk
        except ImportError as error:
            raise NotInstalled(self._api.sdk) from error
        silence = self._silence
        timeout = sdk.Timeout(silence.read_s, connect=silence.connect_s)
        made: Any = getattr(sdk, "AsyncOpenAI" if self._api.sdk == "openai" else "AsyncAnthropic")
        try:
            return made(api_key=self._key, base_url=self._base_url, timeout=timeout, max_retries=0)
        except Exception as error:
            found = trouble(error)
            if found is None:
                raise
            found = replace(found, detail=NO_KEY) if self._key is None and "credentials" in found.detail else found
            raise ModelError(Failure.NOT_ACCEPTED, sentence(self.name, self._advised(found))) from None


def _stream_of(client: Any) -> Any:
    """The class that an SDK reads streams with, as its own client has it."""
    from importlib import import_module

    return import_module(type(client).__module__.partition(".")[0]).AsyncStream[object]
