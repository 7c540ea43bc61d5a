"""The other end of an API, as far as a server for tests needs it: what it refuses, and how it spells replies, streams and errors.

What a reply is stands apart from how it is spelled, so one script serves every API.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from msgspec import Struct

from tenure.apis.json_text import Json, dump, load, object_of
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules

Fields = dict[str, Json]
Event = dict[str, Any]


class Call(Struct, frozen=True, kw_only=True):
    """A tool call in a reply."""

    name: str
    arguments: str = "{}"  # JSON


class Reply(Struct, frozen=True, kw_only=True):
    """One turn of the model: it thinks, speaks and calls, in this order."""

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    stop: Literal["", "length", "refusal", "filter"] = (
        ""  # why it ended early: its limit, its will, or a filter. Empty: it did not
    )


class Fault(Struct, frozen=True, kw_only=True):
    """An error in place of a reply: the provider's own for this status, where nothing else is said."""

    status: int
    message: str = ""
    code: str = ""  # as OpenAI gives it beside the type
    retry_after_s: float | None = None  # goes out as `retry-after` in whole seconds, else as `retry-after-ms`
    raw: str = ""  # a body that is no JSON, such as a proxy's page


class Unit(NamedTuple):
    """The smallest piece of a prompt that a prefix may end at."""

    text: str  # canonical: spelling and markers left out
    ttl_s: int = 0  # of the marker it carries; 0 without one


class Server(Protocol):
    """One API as its provider has it. The methods that have a body hold for most."""

    paths: ClassVar[tuple[str, ...]]  # of requests; `{model}` stands for any name
    provider: ClassVar[str]  # whose rules hold
    head: ClassVar[tuple[str, ...]] = ("tools",)  # fields that the model reads before the messages, in its order
    body_key: ClassVar[str] = "messages"
    roles: ClassVar[tuple[str, ...]]
    errors: ClassVar[Mapping[int, str]]  # the status of an error -> its type
    overloaded: ClassVar[int] = 500  # the status of a server that is
    failure: ClassVar[str] = "server_error"  # the type of any other error of the server's own
    names: ClassVar[tuple[str, str]] = ("model", "usage")  # fields of a response that name the model, and hold what was used

    def read(self, body: dict[str, Any], path: str) -> dict[str, Any]:
        """A request with its messages in a list; `model` and `stream` stand in it, wherever the API has them."""
        return body

    def violations(self, fields: Fields, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
        """What the provider would refuse beside roles, markers and names of tools."""
        ...

    def role_errors(self, messages: Sequence[Fields], roles: Sequence[str], rules: Rules) -> Iterator[str]:
        """What is wrong with where roles stand, beside what `rules` says."""
        yield from ()

    def roles_of(self, messages: Sequence[Fields]) -> list[str]:
        """Who speaks in each message."""
        return [str(message.get("role") or "") for message in messages]

    def units(self, message: Json, rules: Rules) -> list[Unit]:
        """The smallest pieces of a message that a cached prefix may end at."""
        return [unit_of("", message, rules)]

    def reply(self, reply: Reply, n: int, body: Mapping[str, Any], rules: Rules, usage: Usage) -> dict[str, Any]:
        """The whole response to the `n`-th valid request, not streamed, without the model's name."""
        ...

    def events(self, response: Mapping[str, Any], *, include_usage: bool) -> Iterator[bytes]:
        """The server-sent events of a response."""
        ...

    def count(self, path: str, tokens: int) -> dict[str, Any] | None:
        """The response to a request that only asks for a prompt's size; None where `path` is not for that."""
        return None

    def error(self, kind: str, message: str, n: int, *, code: str = "", at_messages: bool = False) -> dict[str, Any]:
        """The body of an error; `n` counts requests. `at_messages`: it is the messages that are refused."""
        param = self.body_key if at_messages else None
        return {"error": {"message": message, "type": kind, "param": param, "code": code or None}}

    def error_event(self, error: dict[str, Any]) -> bytes:
        """How an error is said in the midst of a stream."""
        return data_event(error)

    def malformed(self) -> bytes:
        """An event whose data breaks off in the middle of its JSON."""
        return b'data: {"choices": [\n\n'


def units_of(server: Server, body: Mapping[str, Any], rules: Rules) -> tuple[Unit, ...]:
    """The prompt of a request in the order the model reads it."""
    fields = object_of(load(dump(body)), "request")
    found: list[Unit] = []
    for key in server.head:
        value = fields.get(key)
        found += [unit_of(key, part, rules) for part in (value if isinstance(value, list) else [] if value is None else [value])]
    messages = fields.get(server.body_key)
    for message in messages if isinstance(messages, list) else [messages]:
        found += server.units(message, rules)
    if "cache_control" in fields and found:  # the request asks for a marker on its last unit
        found[-1] = found[-1]._replace(ttl_s=unit_of("", fields, rules).ttl_s)
    return tuple(found)


def data_event(event: Event) -> bytes:
    """An event without a name."""
    return f"data: {dump(event)}\n\n".encode()


def named_event(event: Event) -> bytes:
    """An event named by its type."""
    return f"event: {event['type']}\n".encode() + data_event(event)


def halves(text: str) -> Sequence[str]:
    """`text` in two pieces, as a stream would bring it; one where there is too little of it."""
    middle = len(text) // 2
    return [text[:middle], text[middle:]] if middle else [text]


def parts_of(message: Fields) -> list[Fields]:
    """The parts of a message's content; a string is one part."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def objects(value: Json) -> list[Fields]:
    """The objects in a list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def unit_of(place: str, value: Json, rules: Rules) -> Unit:
    """A value as one unit."""
    marks = list[Json]()
    text = f"{place}:{dump(_without_markers(value, marks))}"
    long = any(isinstance(mark, dict) and mark.get("ttl") == "1h" for mark in marks)
    return Unit(text, (3600 if long else rules.cache_ttl_s) if marks else 0)


def _without_markers(value: Json, marks: list[Json]) -> Json:
    """`value` without the markers of its parts, which are added to `marks`; what a tool was given is left alone."""
    if isinstance(value, list):
        return [_without_markers(part, marks) for part in value]
    if not isinstance(value, dict):
        return value
    if value.get("cache_control") is not None:
        marks.append(value["cache_control"])
    rest = {key: part for key, part in value.items() if key != "cache_control"}
    return {key: _without_markers(part, marks) if key == "content" else part for key, part in rest.items()}
