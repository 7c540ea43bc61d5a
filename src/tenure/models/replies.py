"""What a stream brings, event by event, and whether its end is one. Pure.

https://platform.openai.com/docs/api-reference/chat-streaming https://platform.openai.com/docs/api-reference/responses-streaming
https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, Protocol

from msgspec import Struct

from tenure.apis.anthropic import Anthropic
from tenure.apis.json_text import clean, load
from tenure.apis.openai_chat import OpenAIChat
from tenure.apis.openai_responses import OpenAIResponses
from tenure.engine.record.entry import Usage
from tenure.errors import Failure, InputError
from tenure.models.question import Question

LONGEST: Final = 16_000_000  # characters of an answer; no output limit of any model allows as much

# A provider's word for why the model stopped -> what that makes of the answer, and how a person would put it. Any other word is an end.
NO_END: Final[Mapping[str, tuple[Failure, str]]] = {
    "": (Failure.CUT_SHORT, "the stream broke off"),
    "length": (Failure.CUT_SHORT, "the output limit was reached"),
    "max_tokens": (Failure.CUT_SHORT, "the output limit was reached"),
    "max_output_tokens": (Failure.CUT_SHORT, "the output limit was reached"),
    "incomplete": (Failure.CUT_SHORT, "the provider says that it is incomplete"),
    "cancelled": (Failure.CUT_SHORT, "the provider cancelled it"),
    "model_context_window_exceeded": (Failure.CUT_SHORT, "the model's window is full"),
    "pause_turn": (Failure.CUT_SHORT, "the model paused"),
    "insufficient_system_resource": (Failure.CUT_SHORT, "the provider ran out of resources"),
    "error": (Failure.CUT_SHORT, "the provider failed"),
    "content_filter": (Failure.REFUSED, "a content filter stopped the answer"),
    "refusal": (Failure.REFUSED, "the model refused to answer"),
    "tool_calls": (Failure.BAD_REPLY, "the model called a tool"),
    "function_call": (Failure.BAD_REPLY, "the model called a tool"),
    "tool_use": (Failure.BAD_REPLY, "the model called a tool"),
}

# Items of a response that wait for an answer of the host's. Others a provider answers itself, and goes on.
CALLS: Final = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
        "mcp_approval_request",
    }
)

Fields = Mapping[str, Any]


class Heard(Struct, frozen=True, kw_only=True):
    """What a stream has brought so far."""

    text: str = ""
    refusal: str = ""  # words of a refusal that stand apart
    calls: tuple[str, ...] = ()  # names of tools that the model called instead of answering
    stop: str = ""  # the provider's word for why it ended; empty: it did not
    model: str = ""
    usage: Usage | None = None
    error: Fields | None = None  # an error that came in the stream's midst


class Reader(Protocol):
    """Takes the events of one stream, in order; events of unknown shape are nothing to it."""

    def take(self, event: object) -> None:
        """Take the next event, decoded from its JSON."""
        ...

    def heard(self) -> Heard:
        """What the events taken so far come to."""
        ...


class ChatReader:
    """Reads the chunks of Chat Completions. Of several choices the first counts."""

    def __init__(self) -> None:
        self._texts, self._refusals, self._calls = list[str](), list[str](), list[str]()
        self._stop = self._model = ""
        self._usage: Usage | None = None
        self._error: Fields | None = None

    def take(self, event: object) -> None:
        """Take a chunk. Usage comes in the last one, or grows with each."""
        chunk = _object(event)
        self._model = self._model or _text(chunk, "model")
        if usage := _object(chunk.get("usage")):
            self._usage = OpenAIChat().parse_usage(counts(usage))
        if error := chunk.get("error"):
            self._error = _object(error) or {"message": str(error)}
        first = [choice for each in _list(chunk.get("choices")) if not (choice := _object(each)).get("index")]
        choice = first[0] if first else _object(None)
        delta = _object(choice.get("delta"))
        self._texts.append(_text(delta, "content"))
        self._refusals.append(_text(delta, "refusal"))
        for call in [*_list(delta.get("tool_calls")), {"function": delta.get("function_call")}]:
            self._calls += filter(None, [_text(_object(_object(call).get("function")), "name")])
        self._stop = _text(choice, "finish_reason") or self._stop

    def heard(self) -> Heard:
        """What the chunks taken so far come to."""
        return Heard(
            text=clean("".join(self._texts)),
            refusal=clean("".join(self._refusals)),
            calls=tuple(self._calls),
            stop=self._stop,
            model=self._model,
            usage=self._usage,
            error=self._error,
        )


class ResponseReader:
    """Reads the events of the Responses API. Reasoning is passed over, and so is what a model says to a user on its way to the answer."""

    def __init__(self) -> None:
        self._texts, self._refusals = dict[str, list[str]](), dict[str, list[str]]()  # by the item's place
        self._calls, self._asides = dict[str, str](), set[str]()
        self._stop = self._model = ""
        self._usage: Usage | None = None
        self._error: Fields | None = None

    def take(self, event: object) -> None:
        """Take an event. An item that is done is repeated in it whole, and counts; a response that is over brings the usage."""
        fields = _object(event)
        place = str(fields.get("output_index"))
        match fields.get("type"):
            case "response.output_item.added":
                self._begun(place, _object(fields.get("item")))
            case "response.output_item.done":
                self._begun(place, _object(fields.get("item")))
                self._done(place, _object(fields.get("item")))
            case "response.output_text.delta":
                self._texts.setdefault(place, []).append(_text(fields, "delta"))
            case "response.refusal.delta":
                self._refusals.setdefault(place, []).append(_text(fields, "delta"))
            case "response.created" | "response.in_progress":
                self._model = self._model or _text(_object(fields.get("response")), "model")
            case "response.completed" | "response.incomplete" | "response.failed":
                self._over(_text(fields, "type").removeprefix("response."), _object(fields.get("response")))
            case "error":
                self._error = _object(fields.get("error")) or fields
            case _:
                pass

    def heard(self) -> Heard:
        """What the events taken so far come to."""
        spoken = [text for place, text in self._texts.items() if place not in self._asides]
        return Heard(
            text=clean("".join(map("".join, spoken))),
            refusal=clean("".join(map("".join, self._refusals.values()))),
            calls=tuple(self._calls.values()),
            stop=self._stop,
            model=self._model,
            usage=self._usage,
            error=self._error,
        )

    def _begun(self, place: str, item: Fields) -> None:
        kind = _text(item, "type")
        if kind == "message" and item.get("phase") == "commentary":
            self._asides.add(place)
        elif kind in CALLS:
            self._calls[place] = _text(item, "name") or kind

    def _done(self, place: str, item: Fields) -> None:
        parts = [_object(part) for part in _list(item.get("content"))] if item.get("type") == "message" else []
        for texts, key in ((self._texts, "text"), (self._refusals, "refusal")):
            if whole := "".join(_text(part, key) for part in parts):
                texts[place] = [whole]

    def _over(self, how: str, response: Fields) -> None:
        self._model = self._model or _text(response, "model")
        if usage := _object(response.get("usage")):
            self._usage = OpenAIResponses().parse_usage(counts(usage))
        # Some servers say "completed" in the event's name whatever became of it.
        status = (_text(response, "status") or how) if how == "completed" else how
        reason = _text(_object(response.get("incomplete_details")), "reason")
        self._stop = reason if status == "incomplete" and reason in NO_END else status
        if status == "failed":
            self._error = self._error or _object(response.get("error")) or {"message": "the response failed"}


class MessageReader:
    """Reads the events of the Messages API. Thinking is passed over."""

    def __init__(self) -> None:
        self._texts, self._calls = list[str](), list[str]()
        self._stop = self._model = ""
        self._usage: dict[str, Any] = {}
        self._error: Fields | None = None

    def take(self, event: object) -> None:
        """Take an event. Usage is begun by the first and completed by the last, which does not repeat everything."""
        fields = _object(event)
        match fields.get("type"):
            case "message_start":
                message = _object(fields.get("message"))
                self._model = _text(message, "model")
                self._count(message)
            case "content_block_start":
                block = _object(fields.get("content_block"))
                self._texts.append(_text(block, "text"))
                if block.get("type") == "tool_use":
                    self._calls.append(_text(block, "name"))
            case "content_block_delta":
                self._texts.append(_text(_object(fields.get("delta")), "text"))
            case "message_delta":
                self._stop = _text(_object(fields.get("delta")), "stop_reason") or self._stop
                self._count(fields)
            case "error":
                self._error = _object(fields.get("error"))
            case _:
                pass

    def heard(self) -> Heard:
        """What the events taken so far come to."""
        return Heard(
            text=clean("".join(self._texts)),
            calls=tuple(self._calls),
            stop=self._stop,
            model=self._model,
            usage=Anthropic().parse_usage(counts(self._usage)) if self._usage else None,
            error=self._error,
        )

    def _count(self, holder: Fields) -> None:
        self._usage |= {key: value for key, value in _object(holder.get("usage")).items() if value is not None}


def shortfall(heard: Heard) -> tuple[Failure, str] | None:
    """What keeps a stream that is over from being an answer; None when nothing does."""
    if heard.refusal:
        return Failure.REFUSED, heard.refusal
    if heard.stop in NO_END:
        return NO_END[heard.stop]
    if heard.calls:
        return Failure.BAD_REPLY, f"the model called {heard.calls[0]!r}"
    if not spoken(heard.text):
        return Failure.BAD_REPLY, "the answer is empty"
    return None


def answered(text: str, question: Question) -> str | None:
    """What the question wanted of a complete answer's text: all of it, or its JSON. None when there is no JSON in it."""
    said = spoken(text)
    return said if question.schema is None else json_in(said)


def spoken(text: str) -> str:
    """The text without reasoning that a model wrote into it, as some do whose server does not take it apart, and without outer space."""
    said = text.strip()
    if said.startswith("<think>") and "</think>" in said:
        return said.partition("</think>")[2].strip()
    return said


def json_in(text: str) -> str | None:
    """The JSON value that a text is, or that stands in it between words or code fences; None when there is none."""
    found = [text.find(bracket) for bracket in "{[" if bracket in text]
    start = min(found, default=0)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    for candidate in (text, text[start:end]):
        try:
            load(candidate)
        except InputError:
            continue
        return candidate
    return None


def counts(usage: Fields, *, deep: bool = True) -> dict[str, Any]:
    """Reported usage without what is no count, and no group of counts."""
    groups = {key: counts(group, deep=False) for key, value in usage.items() if (group := _object(value))} if deep else {}
    return groups | {key: value for key, value in usage.items() if isinstance(value, int | float) and isfinite(value)}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - what JSON decodes to


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - what JSON decodes to


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
