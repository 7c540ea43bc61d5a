"""Models that answer questions: a question is a reply that is read to its end."""

import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from math import inf
from typing import Any, Final, Literal, TypedDict, Unpack

from msgspec import Struct

from tenure.apis import APIS
from tenure.apis.prefix import allow
from tenure.apis.reply import CALL_STOPS, WholeReply
from tenure.engine.meter.price import Prices, prices_for
from tenure.engine.record.entry import Usage
from tenure.errors import Failure, InputError, ModelError
from tenure.models.blocking import Stopped, run
from tenure.models.failures import Trouble, redacted, sentence
from tenure.models.hosts import ANTHROPIC, GOOGLE, MAKERS, NAMED, OPENAI, PROVIDERS, Service, host_of
from tenure.models.question import Answer, Cancel, Model, Question, answer_in, is_cancelled
from tenure.models.request import apis_of, in_words, is_of, question_body
from tenure.models.speaker import SdkSpeaker, Silence, Speaker

MOST_RETRIES: Final = 10
EMPTY: Final = "the answer is empty"
NO_JSON: Final = "no JSON, where JSON was asked for"


class Patience(Struct, frozen=True, kw_only=True):
    """How long a call may take, in seconds, and how often the SDK may try again by itself.

    `connect_s` is for one attempt to connect, `total_s` for everything: attempts, waits between them, and the whole stream.
    """

    retries: int = 2
    connect_s: float = 10.0
    total_s: float = 600.0

    def __post_init__(self) -> None:
        if not 0 <= self.retries <= MOST_RETRIES:
            raise InputError("patience", f"retries {self.retries}", f"0 to {MOST_RETRIES}")
        if not (0 < self.connect_s < inf and 0 < self.total_s < inf):
            raise InputError("patience", f"connect_s {self.connect_s}, total_s {self.total_s}", "seconds above 0")


class SpeakerModel:
    """A speaker that answers questions, one at a time, from a thread without an event loop of the speaker's."""

    def __init__(self, speaker: Speaker) -> None:
        self.name = speaker.name
        self._speaker = speaker

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """The whole answer. Raises ModelError."""
        body = question_body(question, self.name, self._speaker.dialect, structured=False)
        return _answer(self._speaker, body, question, cancel)

    def continues(self, prefix: bytes) -> bool:
        """Whether a question can go behind this request: one of this model, in this API."""
        return is_of(prefix, self.name, (self._speaker.dialect,))

    def __repr__(self) -> str:
        return f"SpeakerModel({self.name})"


class SdkModel:
    """A model of a provider, over its official SDK. One value serves any number of threads: each question has a connection of its own."""

    def __init__(
        self,
        name: str,
        *,
        home: Service,
        apis: Sequence[str] = (),
        base_url: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        provider: str = "",
        prices: Prices | None = None,
        limit: str = "",
        structured: bool | None = None,
        window: int = 0,
    ) -> None:
        """Get ready; nothing is sent. `home` is the provider whose API it is, `apis` those that may be spoken, the first for questions without a prefix.

        Raises InputError without the SDK, ModelError without a key or for credentials that cannot be read.
        """
        patience = patience or Patience()
        self.window = window  # provider tokens that it holds; 0: not known
        self.name, self._apis, self._patience, self._prices, self._limit = name, apis or home.apis, patience, prices, limit
        self._connect: Callable[[str], SdkSpeaker] = lambda api: SdkSpeaker(
            name,
            api,
            base_url=base_url,
            api_key=api_key,
            keys=f"set {home.variable}",
            # longer than the call may take, so that it is our clock that ends it, and says so
            silence=Silence(connect_s=patience.connect_s, read_s=2 * patience.total_s),
            retries=patience.retries,
        )
        self._host = host_of(
            self._connect(self._apis[0]).open()
        )  # for what the SDK makes of the settings, and to hear now that there is no key
        self._is_at_home = self._host == home.host
        self._structured = self._is_at_home if structured is None else structured
        self._provider = provider or PROVIDERS.get(self._host, "")

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """Ask, and wait for the whole answer. Raises ModelError; InputError for a question that cannot be put to this model."""
        api = self._apis[0]
        if question.prefix:
            possible = apis_of(question.prefix)
            allow(possible, self._apis)
            api = next(each for each in self._apis if each in possible)
        body = question_body(
            question, self.name, api, limit=self._limit, structured=self._structured, is_at_home=self._is_at_home
        )
        return _answer(self._connect(api), body, question, cancel, total_s=self._patience.total_s, cost_usd=self._cost_usd)

    @property
    def structured(self) -> bool:
        """Whether a question's schema is given to the API as a setting."""
        return self._structured

    def continues(self, prefix: bytes) -> bool:
        """Whether a question can go behind this request: one of this model, in an API that it speaks."""
        return is_of(prefix, self.name, self._apis)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name} at {self._host})"

    def _cost_usd(self, model: str, usage: Usage) -> float | None:
        if self._prices is not None:
            return self._prices.cost_usd(usage)
        names = [name for name in (model, self.name) if name and self._provider]
        listed = [prices_for(name, self._provider, prompt=usage.prompt) for name in names]
        return next((prices.cost_usd(usage) for prices in listed if prices.known), None)


class SdkSettings(TypedDict, total=False):
    """Settings that `SdkModel` describes."""

    base_url: str | None
    api_key: str | None
    patience: Patience | None
    provider: str
    prices: Prices | None
    limit: str
    structured: bool | None
    window: int


class OpenAIModel(SdkModel):
    """A model that speaks Chat Completions and the Responses API, at OpenAI or at anything compatible.

    Each question goes to the API that its prefix was rendered for, and one without a prefix to Chat Completions. With `api` given, everything
    goes to that one, as a server that has only one needs it, and a prefix of the other is an InputError.

    The key is `api_key`, else `OPENAI_API_KEY`, as the SDK has it; a server that wants none takes any. `provider` says whose prices hold
    where the host does not tell, `prices` what they are. `limit` is the key by which the provider knows the output limit, and
    `structured` says whether it takes a JSON schema as a setting: OpenAI does both in its own way, of others the least is assumed.
    """

    def __init__(self, name: str, *, api: Literal["chat", "responses"] | None = None, **settings: Unpack[SdkSettings]) -> None:
        """Get ready; nothing is sent. Raises InputError without the SDK or for another API, ModelError without a key."""
        apis = dict(zip(("chat", "responses"), OPENAI.apis, strict=True))
        if api not in (None, *apis):
            raise InputError("api", repr(api), f"{' or '.join(map(repr, apis))}, or none for both")
        super().__init__(name, home=OPENAI, apis=(apis[api],) if api else OPENAI.apis, **settings)


class AnthropicModel(SdkModel):
    """A model that speaks the Messages API, at Anthropic or at anything compatible.

    The key is `api_key`, else what the SDK finds: `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN` or a profile; that there is none shows with
    the first question. `provider` says whose prices hold where the host does not tell, `prices` what they are. `structured` says whether
    the provider takes a JSON schema as a setting: Anthropic does, of others the least is assumed.
    """

    def __init__(self, name: str, **settings: Unpack[SdkSettings]) -> None:
        """Get ready; nothing is sent. Raises InputError without the SDK, ModelError for credentials that cannot be read."""
        super().__init__(name, home=ANTHROPIC, **settings)


class TextModel:
    """Asks `function` in one text and takes its text as the answer. It cannot be cancelled while it runs, only before and after.

    `window`: the tokens that it holds; 0: not known.
    """

    def __init__(self, function: Callable[[str], str], name: str = "function", *, window: int = 0) -> None:
        self.name, self.window = name, window
        self._function = function

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """Ask. Whatever the function raises is a ModelError; InputError for a question with a prefix, which only a provider can take."""
        if question.prefix:
            raise InputError("question", "a prefix", f"none: {self.name} takes text")
        if is_cancelled(cancel):
            raise failed(self.name, Failure.CANCELLED)
        try:
            text = self._function(in_words(question))
        except Exception as error:
            raise failed(self.name, Failure.UNAVAILABLE, redacted(f"{type(error).__name__}: {error}", ())) from error
        if is_cancelled(cancel):
            raise failed(self.name, Failure.CANCELLED, said=text)
        wanted = answer_in(text, question)
        if not wanted:
            raise failed(self.name, Failure.BAD_REPLY, NO_JSON if wanted is None else EMPTY, said=text)
        return Answer(text=wanted, model=self.name, stop="stop")

    def continues(self, prefix: bytes) -> bool:  # noqa: ARG002 - none
        """Never: it takes text."""
        return False

    def __repr__(self) -> str:
        return f"TextModel({self.name})"


_OWN: Final = {home.name: home for home in (OPENAI, ANTHROPIC, GOOGLE)}  # providers that have an API of their own
_KINDS: Final = tuple(dict.fromkeys((*_OWN, *APIS)))


def model_named(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    patience: Patience | None = None,
    provider: str = "",
) -> Model:
    """The model of a name like "openai:gpt-5-mini": the API it speaks, and what the provider calls it. `base_url` says where else it is.

    A service (`groq:NAME`, `ollama:NAME`) is at its own URL, with the key of its own variable. Raises InputError for another API or no name, or
    when the SDK is not installed; ModelError when there is no key.
    """
    kind, colon, model = name.partition(":")
    if kind in NAMED and kind not in _OWN:
        service = NAMED[kind]
        key = api_key or (os.environ.get(service.variable) if service.variable else "-")
        if key is None:
            raise ModelError(Failure.NOT_ACCEPTED, f"{name}: there is no key: set {service.variable}")
        home, apis, base_url, api_key = OPENAI, service.apis, base_url or service.url, key
    elif not colon or kind not in _KINDS or not model:
        raise InputError("model", repr(name), " or ".join(f"{each}:NAME" for each in _KINDS))
    else:
        home = _OWN.get(kind) or MAKERS[kind]
        apis = home.apis if kind in _OWN else (kind,)
    return SdkModel(model, home=home, apis=apis, base_url=base_url, api_key=api_key, patience=patience, provider=provider)


def failed(name: str, kind: Failure, detail: str = "", **known: Any) -> ModelError:
    """The error of a model that gave no usable answer."""
    return ModelError(kind, sentence(name, Trouble(kind=kind, detail=detail)), **known)


def _answer(
    speaker: Speaker,
    body: bytes,
    question: Question,
    cancel: Cancel | None,
    *,
    total_s: float = inf,
    cost_usd: Callable[[str, Usage], float | None] = lambda _model, _usage: None,
) -> Answer:
    """The reply, read to its end. Closes a connection that was opened for it. Raises ModelError for a reply that is no answer."""
    own = speaker if isinstance(speaker, SdkSpeaker) else None
    texts: list[str] = []

    async def read() -> WholeReply:
        try:
            async with aclosing(speaker.speak(body)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, WholeReply):
                        return piece
                    texts.append(piece.text if piece.kind == "text" else "")
        finally:
            if own is not None:
                await own.close()
        raise failed(speaker.name, Failure.CUT_SHORT, "the reply has no end")

    def refused(kind: Failure, detail: str, text: str, model: str, usage: Usage | None) -> ModelError:
        failure = Trouble(kind=kind, detail=detail)
        words = own.sentence(failure) if own is not None else sentence(speaker.name, failure)
        return ModelError(kind, words, said=text, usage=usage, cost_usd=cost_usd(model, usage) if usage is not None else None)

    try:
        whole = run(read, cancel=cancel, total_s=total_s)
    except ModelError as error:
        error.cost_usd = cost_usd("", error.usage) if error.usage is not None else None
        raise
    if isinstance(whole, Stopped):
        stream = own.stream if own is not None else None
        text = "".join(texts)
        kind, detail = Failure.CANCELLED, ""
        if whole is Stopped.TIMED_OUT:
            kind, detail = Failure.CUT_SHORT if text else Failure.UNAVAILABLE, f"not done within {total_s:g} seconds"
        raise refused(kind, detail, text, stream.model if stream else "", stream.usage if stream else None)
    text = whole.text if whole.answer is None else whole.answer
    if missing := shortfall(whole):
        raise refused(*missing, text, whole.model, whole.usage)
    wanted = answer_in(text, question)
    if not wanted:
        raise refused(Failure.BAD_REPLY, NO_JSON if wanted is None else EMPTY, text, whole.model, whole.usage)
    paid = cost_usd(whole.model, whole.usage) if whole.usage is not None else None
    return Answer(text=wanted, model=whole.model or speaker.name, stop=whole.stop, usage=whole.usage, cost_usd=paid)


def shortfall(whole: WholeReply) -> tuple[Failure, str] | None:
    """What keeps a complete reply from being an answer; None when nothing does."""
    if whole.end != "done":
        return (Failure.REFUSED if whole.end == "refused" else Failure.CUT_SHORT), whole.why
    if whole.tools:
        return Failure.BAD_REPLY, f"the model called {whole.tools[0]!r}"
    return (Failure.BAD_REPLY, "the model called a tool") if whole.stop in CALL_STOPS else None
