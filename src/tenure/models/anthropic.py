"""The Messages API, at Anthropic or at anything compatible. Edge: it calls a model over the official SDK."""

from collections.abc import AsyncGenerator
from typing import Final

from tenure.engine.meter.price import Prices
from tenure.errors import Failure, ModelError
from tenure.extras import NotInstalled
from tenure.models.failures import sentence, trouble
from tenure.models.hosts import PROVIDERS, host_of, secrets_of
from tenure.models.listen import Cancel, Line, Patience
from tenure.models.question import Answer, Question
from tenure.models.replies import MessageReader
from tenure.models.requests import messages_body

HOST: Final = "api.anthropic.com"


class AnthropicModel:
    """A model that speaks the Messages API. One value serves any number of threads.

    The key is `api_key`, else what the SDK finds: `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN` or a profile; that there is none shows with
    the first question. `provider` says whose prices hold where the host does not tell, `prices` what they are. `structured` says whether
    the provider takes a JSON schema as a setting: Anthropic does, of others the least is assumed.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        provider: str = "",
        prices: Prices | None = None,
        structured: bool | None = None,
    ) -> None:
        """Get ready; nothing is sent. Raises InputError without the SDK, ModelError for credentials that cannot be read."""
        try:
            import anthropic
        except ImportError as error:
            raise NotInstalled("anthropic") from error
        patience = patience or Patience()
        timeout = anthropic.Timeout(patience.total_s, connect=patience.connect_s)

        def opened() -> anthropic.AsyncAnthropic:
            return anthropic.AsyncAnthropic(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=patience.retries)

        async def events(body: bytes) -> AsyncGenerator[object, None]:
            async with opened() as client:
                stream = await client.post(
                    "/v1/messages", cast_to=object, content=body, stream=True, stream_cls=anthropic.AsyncStream[object]
                )
                async with stream:
                    async for event in stream:
                        yield event

        try:
            client = opened()  # for what the SDK makes of the settings
        except anthropic.AnthropicError as error:
            found = trouble(error)
            raise ModelError(Failure.NOT_ACCEPTED, sentence(name, found) if found else name) from None
        url = str(client.base_url)
        self.name = name
        self._structured = host_of(url) == HOST if structured is None else structured
        self._line = Line(
            model=name,
            host=host_of(url),
            events=events,
            reader=MessageReader,
            patience=patience,
            provider=provider or PROVIDERS.get(host_of(url), ""),
            prices=prices,
            secrets=secrets_of(url, client.api_key, client.auth_token),
        )

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """Ask, and wait for the whole answer. Raises ModelError; InputError for a question that cannot be put to this model."""
        return self._line.ask(question, messages_body(question, self.name, structured=self._structured), cancel)

    def __repr__(self) -> str:
        return f"AnthropicModel({self._line.who})"
