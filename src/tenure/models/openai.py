"""Chat Completions and the Responses API, at OpenAI or at anything compatible. Edge: it calls a model over the official SDK."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from tenure.engine.meter.price import Prices
from tenure.errors import Failure, InputError, ModelError
from tenure.extras import NotInstalled
from tenure.models.failures import NO_KEY, Trouble, sentence, trouble
from tenure.models.hosts import PROVIDERS, host_of, secrets_of
from tenure.models.listen import Cancel, Line, Patience
from tenure.models.prefix import allow, dialects_of
from tenure.models.question import Answer, Question
from tenure.models.replies import ChatReader, ResponseReader
from tenure.models.requests import Limit, chat_body, responses_body

Api = Literal["chat", "responses"]

HOST: Final = "api.openai.com"
_PATHS: Final[dict[Api, str]] = {"chat": "/chat/completions", "responses": "/responses"}
_DIALECTS: Final[dict[Api, str]] = {"chat": "openai-chat", "responses": "openai-responses"}


class OpenAIModel:
    """A model that speaks Chat Completions and the Responses API. One value serves any number of threads.

    Each question goes to the API that its prefix was rendered for, and one without a prefix to Chat Completions. With `api` given, everything
    goes to that one, as a server that has only one needs it, and a prefix of the other is an InputError.

    The key is `api_key`, else `OPENAI_API_KEY`, as the SDK has it; a server that wants none takes any. `provider` says whose prices hold
    where the host does not tell, `prices` what they are. `limit` is the key by which the provider knows the output limit, and
    `structured` says whether it takes a JSON schema as a setting: OpenAI does both in its own way, of others the least is assumed.
    """

    def __init__(
        self,
        name: str,
        *,
        api: Api | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        provider: str = "",
        prices: Prices | None = None,
        limit: Limit | None = None,
        structured: bool | None = None,
    ) -> None:
        """Get ready; nothing is sent. Raises InputError without the SDK or for another API, ModelError without a key."""
        if api not in (None, *_PATHS):
            raise InputError("api", repr(api), f"{' or '.join(map(repr, _PATHS))}, or none for both")
        try:
            import openai
        except ImportError as error:
            raise NotInstalled("openai") from error
        patience = patience or Patience()
        timeout = openai.Timeout(patience.total_s, connect=patience.connect_s)

        def opened() -> openai.AsyncOpenAI:
            return openai.AsyncOpenAI(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=patience.retries)

        async def events(path: str, body: bytes) -> AsyncGenerator[object, None]:
            async with opened() as client:
                stream = await client.post(path, cast_to=object, content=body, stream=True, stream_cls=openai.AsyncStream[object])
                async with stream:
                    async for event in stream:
                        yield event

        try:
            client = opened()  # for what the SDK makes of the settings, and to hear now that there is no key
        except openai.OpenAIError as error:
            found = trouble(error)
            if found is not None and "credentials" in found.detail:
                found = Trouble(kind=found.kind, detail=f"{NO_KEY}: set OPENAI_API_KEY")
            raise ModelError(Failure.NOT_ACCEPTED, sentence(name, found) if found else name) from None
        url = str(client.base_url)
        own = host_of(url) == HOST
        self.name = name
        self._api: Api | None = api
        self._own = own
        self._limit: Limit = limit or ("max_completion_tokens" if own else "max_tokens")
        self._structured = own if structured is None else structured
        self._line = Line(
            model=name,
            host=host_of(url),
            events=partial(events, _PATHS["chat"]),
            reader=ChatReader,
            patience=patience,
            provider=provider or PROVIDERS.get(host_of(url), ""),
            prices=prices,
            secrets=secrets_of(url, client.api_key),
        )
        self._responses = replace(self._line, events=partial(events, _PATHS["responses"]), reader=ResponseReader)

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """Ask, and wait for the whole answer. Raises ModelError; InputError for a question that cannot be put to this model."""
        if self._spoken(question) == "chat":
            body = chat_body(question, self.name, limit=self._limit, structured=self._structured)
            return self._line.ask(question, body, cancel)
        # OpenAI's own list of what makes a cache miss (`prompt_cache_diagnostics`) has tools, format and effort, and not `tool_choice`;
        # servers elsewhere render no tools at all under "none" (SGLang: github.com/NousResearch/hermes-agent pull 110480).
        body = responses_body(question, self.name, structured=self._structured, forbid_calls=self._own)
        return self._responses.ask(question, body, cancel)

    def __repr__(self) -> str:
        return f"OpenAIModel({self._line.who})"

    def _spoken(self, question: Question) -> Api:
        """The API that this question goes to."""
        if not question.prefix:
            return self._api or "chat"
        apis: tuple[Api, ...] = (self._api,) if self._api else ("chat", "responses")
        found = dialects_of(question.prefix)
        allow(found, [_DIALECTS[api] for api in apis])
        return next(api for api in apis if _DIALECTS[api] in found)
