"""A model that an agent talks with: a request's bytes in, the reply as it comes, then the whole of it. The official SDKs are behind it.

The SDKs do not try again by themselves unless they are told to: whoever talks with a model wants to know, and decides. What fails is a ModelError
without secrets.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis import APIS
from tenure.apis.reply import Delta, ReplyStream, WholeReply
from tenure.errors import Failure, InputError, ModelError
from tenure.models.clients import Client, Connecting, connect
from tenure.models.failures import NO_KEY, Trouble, sentence, trouble, trouble_in
from tenure.models.hosts import host_of, secrets_of

LONGEST: Final = 16_000_000  # characters of a stream; no output limit of any model allows as much


class Speaker(Protocol):
    """A model at the other end of a connection. Belongs to one event loop."""

    name: str  # as the provider calls it
    dialect: str

    def speak(self, body: bytes, /) -> AsyncGenerator[Delta | WholeReply, None]:
        """The reply to a request: its pieces, and last of all the whole. Closing the generator closes the connection.

        Raises ModelError for everything that a provider or a connection can do wrong; its `said` is what had come.
        """
        ...

    async def warm(self) -> None:
        """Load and open what the first call needs, so that it need not be waited for then. Never raises."""
        ...

    async def close(self) -> None:
        """Close the connection for good."""
        ...


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
        retries: int = 0,
    ) -> None:
        """Nothing is loaded or sent yet. Without a key the SDK's own rules hold; `keys` says to people where one is looked for.

        Raises InputError for an API that is not spoken.
        """
        if api not in APIS:
            raise InputError("API", repr(api), " or ".join(APIS))
        self.name, self.dialect = name, api
        self.stream: ReplyStream | None = None  # the reply of the newest call, as far as it has come
        self._speech, self._base_url, self._key = APIS[api].speech, base_url, api_key
        self._silence, self._retries = silence or Silence(), retries
        self._no_key = f"{NO_KEY}: {keys}" if keys else NO_KEY
        self._client: Client | None = None
        self._opening = asyncio.Lock()

    async def warm(self) -> None:
        """Load the SDK and open the connection's books, so that the first call need not wait for that. Never raises."""
        with suppress(InputError, ModelError):
            await self._opened()

    async def speak(self, body: bytes) -> AsyncGenerator[Delta | WholeReply, None]:
        """The reply to a request: its pieces, and last of all the whole."""
        self.stream = stream = APIS[self.dialect].reply()
        client = await self._opened()
        try:
            async with client.events(self._speech.path.replace("{model}", self.name), body) as events:
                async for event in bounded(events):
                    for delta in stream.take(event):
                        yield delta
                    if stream.error is not None:
                        break
        except Exception as error:
            failure = trouble(error, begun=stream.begun, host=host_of(client.base_url))
            if failure is None:
                raise
            raise self._failed(failure) from None  # an SDK's error may hold a key, in its words or in its request
        if stream.error is not None:
            raise self._failed(trouble_in(stream.error, begun=stream.begun))
        whole = stream.whole()
        if whole is None:
            kind = Failure.CUT_SHORT if stream.begun else Failure.UNAVAILABLE
            raise self._failed(Trouble(kind=kind, detail=stream.shortfall))
        yield whole

    async def close(self) -> None:
        """Close the connection for good."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def open(self) -> str:
        """Load the SDK and open the connection's books; its base URL. Raises NotInstalled without the SDK, ModelError without a key where one is needed."""
        silence = self._silence
        to = Connecting(
            base_url=self._base_url,
            api_key=self._key,
            connect_s=silence.connect_s,
            read_s=silence.read_s,
            retries=self._retries,
        )
        try:
            self._client = connect(self._speech.sdk, to)
        except Exception as error:
            failure = trouble(error)
            if failure is None:
                raise
            has_no_key = self._key is None and "credentials" in failure.detail
            raise ModelError(
                Failure.NOT_ACCEPTED, self.sentence(replace(failure, detail=NO_KEY) if has_no_key else failure)
            ) from None
        return self._client.base_url

    def sentence(self, failure: Trouble) -> str:
        """A failure in words, without secrets."""
        failure = replace(failure, detail=self._no_key) if failure.detail == NO_KEY else failure
        if self._client is None:
            return sentence(self.name, failure)
        url = self._client.base_url
        secrets = secrets_of(url, self._key, *self._client.secrets)
        return sentence(f"{self.name} at {host_of(url)}", failure, secrets)

    def __repr__(self) -> str:
        return f"SdkSpeaker({self.name})"

    def _failed(self, failure: Trouble) -> ModelError:
        stream = self.stream
        return ModelError(
            failure.kind,
            self.sentence(failure),
            said=stream.text if stream else "",
            usage=stream.usage if stream else None,
            retry_after_s=failure.retry_after_s,
            overflow=failure.overflow,
        )

    async def _opened(self) -> Client:
        async with self._opening:
            if self._client is None:
                await asyncio.to_thread(self.open)  # loading an SDK takes a second
            assert self._client is not None
            return self._client


async def bounded(events: AsyncIterable[object]) -> AsyncGenerator[object, None]:
    """The events, as long as they are a reply's. Raises OSError for a stream that has no end."""
    size = 0
    async for event in events:
        size += len(str(event))
        if size > LONGEST:
            raise OSError("the stream does not end")
        yield event
