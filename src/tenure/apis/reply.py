"""A model's reply and how it is put together from a stream's events: what all APIs have in common. Each API's own part is in its `stream.py`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from math import isfinite
from typing import Any, ClassVar, Final, Literal, cast

from msgspec import Struct

from tenure.apis.json_text import clean, dump, load
from tenure.engine.record.entry import Usage
from tenure.errors import InputError

Fields = Mapping[str, Any]
UsageParser = Callable[[Fields], Usage]

# How a reply ended. length: at its output limit, or where the window was full. paused: the provider wants to be asked to go on.
End = Literal["done", "length", "refused", "paused"]

# A provider's word for why a reply stopped -> how that ends it, None for a reply that is incomplete, and the same for people. Any other word is an
# end that the model came to by itself. Routers pass on the words of other APIs, so the words of all stand here.
ENDS: Final[Mapping[str, tuple[End | None, str]]] = {
    "": (None, "the stream broke off"),
    "cancelled": (None, "the provider cancelled it"),
    "error": (None, "the provider failed"),
    "failed": (None, "the provider failed"),
    "in_progress": (None, "the stream broke off"),
    "queued": (None, "the stream broke off"),
    "insufficient_system_resource": (None, "the provider ran out of resources"),  # DeepSeek
    "length": ("length", "the output limit was reached"),
    "max_tokens": ("length", "the output limit was reached"),
    "max_output_tokens": ("length", "the output limit was reached"),
    "incomplete": ("length", "the provider says that it is incomplete"),
    "model_context_window_exceeded": ("length", "the model's window is full"),
    "content_filter": ("refused", "a content filter stopped the answer"),
    "refusal": ("refused", "the model refused to answer"),
    "pause_turn": ("paused", "the provider paused"),
}
CALL_STOPS: Final = frozenset({"tool_calls", "function_call", "tool_use"})  # words for a reply that ended with calls


class Delta(Struct, frozen=True, kw_only=True, gc=False):
    """A piece of a reply, as it comes. Of a call's arguments `place` is the call's among the calls of the reply, from 0."""

    kind: Literal["text", "thinking", "arguments"]
    text: str
    tool: str = ""
    place: int = 0


class ReplyCall(Struct, frozen=True, kw_only=True, gc=False):
    """A call of a reply. `broken` says why its arguments are no JSON object, in which case `arguments` holds what there is of them as text."""

    call_id: str
    tool: str
    arguments: str
    broken: str = ""


class WholeReply(Struct, frozen=True, kw_only=True):
    """A complete reply, whatever made it end."""

    reply: bytes  # the response's JSON, as `parse_reply` of the API takes it
    text: str = ""
    answer: str | None = None  # of the text what answers a question, without comments on the way to it; None: all of it
    calls: tuple[ReplyCall, ...] = ()
    tools: tuple[str, ...] = ()  # names of everything that the model called and the host is to answer
    end: End = "done"
    stop: str = ""  # the provider's word
    why: str = ""  # of another end than "done", in a clause for people; a refusal in the model's own words
    model: str = ""
    usage: Usage | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it has neither text nor calls, so that there is nothing to record."""
        return not self.calls and not self.text.strip()


class ReplyStream:
    """Puts one reply together from the events of a stream, taken in order. Events of unknown shape change nothing."""

    ends: ClassVar[Mapping[str, tuple[End | None, str]]] = ENDS

    def __init__(self, parse_usage: UsageParser) -> None:
        self._parse_usage = parse_usage
        self.error: Fields | None = None  # the error object that came in the midst of the stream
        self.model = self._stop = ""
        self._usage: dict[str, Any] = {}
        self._tools = dict[Any, str]()  # names of the tools called so far, by what the server tells the calls apart with

    @property
    def text(self) -> str:
        """The words so far."""
        raise NotImplementedError

    @property
    def answer(self) -> str:
        """The words so far that answer a question."""
        return self.text

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        raise NotImplementedError

    @property
    def usage(self) -> Usage | None:
        """The usage reported so far; None when there is none."""
        return self._parse_usage(counts(self._usage)) if self._usage else None

    @property
    def shortfall(self) -> str:
        """Why the reply has no end yet, in a clause."""
        return self.ends.get(self._stop, self.ends[""])[1]

    def take(self, event: object, /) -> Iterator[Delta]:
        """Take the next event, decoded from its JSON; yields what is new in it."""
        raise NotImplementedError

    def whole(self) -> WholeReply | None:
        """The reply, once the provider has said why it ended; None before."""
        refusal = self._refusal()
        end, why = ("refused", refusal) if refusal else self.ends.get(self._stop, ("done", ""))
        if end is None:
            return None
        calls: list[ReplyCall] = []
        reply = self._reply(calls)
        return WholeReply(
            reply=reply.encode("utf-8", "surrogatepass"),
            text=self.text,
            answer=self.answer,
            calls=tuple(calls),
            tools=tuple(self._tools.values()),
            end=end,
            stop=self._stop,
            why=why,
            model=self.model,
            usage=self.usage,
        )

    def _refusal(self) -> str:
        return ""

    def _reply(self, calls: list[ReplyCall]) -> str:
        """The response's JSON; its calls are added to `calls`."""
        raise NotImplementedError


def call_of(given_id: str, tool: str, arguments: str, before: list[ReplyCall]) -> ReplyCall:
    """A call as a request can carry it, behind those `before` it in the reply.

    Its id is unique in the reply: results are paired by ids, and some servers give all calls the same one, or none. Arguments that are no JSON
    object are kept as a string inside one: servers that render a history read all arguments again, and one call that they cannot read would end the
    session. No arguments are as good as `{}`.
    """
    text, broken = arguments, ""
    try:
        value = load(arguments, "arguments") if arguments.strip() else {}
    except InputError as error:
        text, broken = dump({"arguments": clean(arguments)}), error.found[:160]
    else:
        if not isinstance(value, dict):
            text, broken = dump({"arguments": value}), f"a JSON {type(value).__name__} is no object"
        elif not arguments.strip():
            text = "{}"
    used = {call.call_id for call in before}
    spare = (f"{given_id or 'call'}_{n}" for n in count(len(before)))
    call_id = given_id if given_id and given_id not in used else next(each for each in spare if each not in used)
    return ReplyCall(call_id=call_id, tool=tool or "unnamed", arguments=text, broken=broken)


def object_text(members: Mapping[str, str]) -> str:
    """The JSON object of these values, each as JSON."""
    return "{" + ",".join(f"{dump(key)}:{value}" for key, value in members.items()) + "}"


def fields_of(value: object) -> dict[str, Any]:
    """The object that a value is; empty when it is none."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def fields_in(value: object) -> Iterable[dict[str, Any]]:
    """The members of the array that a value is, as objects; none when it is no array."""
    return [fields_of(each) for each in cast(list[Any], value)] if isinstance(value, list) else []


def text_of(fields: Fields, key: str) -> str:
    """The string at `key`; empty when there is none."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def counts(usage: Fields, *, deep: bool = True) -> dict[str, Any]:
    """Reported usage without what is no count, and no group of counts."""
    groups = {key: counts(group, deep=False) for key, value in usage.items() if (group := fields_of(value))} if deep else {}
    return groups | {key: value for key, value in usage.items() if isinstance(value, int | float) and isfinite(value)}
