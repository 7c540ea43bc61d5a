"""What a model is asked, what it answers, and what kind of callable a model is. The same question is the same bytes, to any provider."""

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from tenure.apis.json_text import load
from tenure.engine.record.entry import Draft, Usage
from tenure.errors import InputError

_BESIDE: Final = 13_000  # provider tokens of a question that are no conversation: rules, index, reply
_LEAST_ROOM: Final = 4_000
Cancel = Event | Callable[[], bool]  # set, or true: stop now. Looked at in the thread that asks, every 50 ms


class Question(Struct, frozen=True, kw_only=True):
    """One call of a model, complete in itself.

    `messages` are drafts of any dialect, or strings: words of the harness, in a user's message. `max_output` is in provider tokens, and
    what the model thinks counts.

    `prefix` is the JSON of a request as it was rendered for the same model, ending where the model is to speak. The messages are put
    behind its own, and everything that the model reads of it - tools, system prompt, messages - is sent byte for byte as it stands
    there, so that the provider's cache holds. It brings its own system prompt, and `schema` is then asked for in words: a schema
    given as a setting becomes a part of the prompt's beginning, at OpenAI and at Anthropic, and no cache would match.

    `schema` is a JSON schema; the answer's text is then JSON, which is checked. That it satisfies the schema is for the reader to check.
    """

    messages: tuple[Draft | str, ...]
    system: str = ""
    max_output: int = 4096
    prefix: bytes = b""
    schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.messages:
            raise InputError("question", "no messages", "at least one")
        if self.max_output < 1:
            raise InputError("question", f"max_output {self.max_output}", "a number of tokens above 0")
        if self.prefix and self.system:
            raise InputError("question", "a system prompt beside a prefix", "only one: a prefix has its own")


class Answer(Struct, frozen=True, kw_only=True):
    """A whole answer: the model came to its end by itself."""

    text: str
    model: str = ""  # as the provider names it
    stop: str = ""  # why it ended, in the provider's word: "stop", "end_turn", …
    usage: Usage | None = None  # None: not reported
    cost_usd: float | None = None  # None: usage or price is not known


class Model(Protocol):
    """Answers a question, or says why not. Any callable of this shape will do."""

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """The whole answer. Raises ModelError for everything that a provider, a connection or a model can do wrong."""
        ...


def form_of(model: Model) -> Literal["tags", "json"]:
    """How a model answers best a question that has no prefix: in the JSON of a schema, where its API takes one as a setting, else in its own way."""
    return "json" if getattr(model, "structured", False) is True else "tags"


def continues(model: Model, prefix: bytes) -> bool:
    """Whether a question can go behind this request. A callable that does not say is taken to know what it does with one."""
    own = getattr(model, "continues", None)
    return bool(own(prefix)) if callable(own) else True


def room_of(model: Model) -> int:
    """Tokens of a conversation that fit into a question to this model, beside what is asked; 0: all of any, as far as is known."""
    window: object = getattr(model, "window", 0)
    return max(_LEAST_ROOM, window - _BESIDE) if isinstance(window, int) and window > 0 else 0


def is_cancelled(cancel: Cancel | None) -> bool:
    """Whether whoever asks wants to stop."""
    return cancel is not None and (cancel.is_set() if isinstance(cancel, Event) else cancel())


def answer_in(text: str, question: Question) -> str | None:
    """What the question wanted of a complete reply's text: all of it, or its JSON. None when there is no JSON in it."""
    words = without_thinking(text)
    return words if question.schema is None else json_in(words)


def without_thinking(text: str) -> str:
    """The text without reasoning that a model wrote into it, as some do whose server does not take it apart, and without outer space."""
    words = text.strip()
    if words.startswith("<think>") and "</think>" in words:
        return words.partition("</think>")[2].strip()
    return words


def json_in(text: str) -> str | None:
    """The JSON value that a text is, or that stands in it between words or code fences; None when there is none."""
    starts = [text.find(bracket) for bracket in "{[" if bracket in text]
    end = max(text.rfind("}"), text.rfind("]")) + 1
    for candidate in (text, text[min(starts, default=0) : end]):
        try:
            load(candidate)
        except InputError:
            continue
        return candidate
    return None
