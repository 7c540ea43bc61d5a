"""What one provider API is to the rest of the program: a pure value per API, held in the table `tenure.apis.APIS`.

An API parses messages into drafts and renders pieces of a view back. What was not edited is rendered from its own payload, byte for byte; what was
edited is the payload with only the edited parts changed, so unknown fields survive. Nothing else in the program knows how an API spells anything.
"""

from collections.abc import Collection, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from msgspec import Struct

from tenure.apis.json_text import Message, dump, encoded
from tenure.apis.media import MediaSource
from tenure.apis.memo import Memo
from tenure.apis.reply import ReplyStream
from tenure.apis.sdk import decoded, sendable
from tenure.apis.speech import Speech
from tenure.apis.turns import alternate, join, role_of
from tenure.engine.record.entry import Draft, ToolCall, Usage
from tenure.engine.view.piece import Piece
from tenure.engine.view.rules import Rules
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.apis.relay import ReplyRelay
    from tenure.apis.server import Server  # for tests only

Part = dict[str, Any]  # a part of a message's content
OF_THE_SERVER: Final = "none: the whole history is sent with every request, and the server would put its own before it"
OWN_HISTORY: Final = "none: the conversation's own messages are sent; `extend` takes in more"


class Head(Struct, frozen=True, kw_only=True):
    """What precedes the messages in a request: never part of the record, byte-stable within a session."""

    system: tuple[Draft, ...] = ()
    fields: Mapping[str, Any] = {}  # model, tools, max_tokens, …, passed through


class Shape(Struct, frozen=True, kw_only=True):
    """What only this API has in a message, so that the others can refuse it."""

    fields: frozenset[str] = frozenset()  # of a message
    parts: frozenset[str] = frozenset()  # types of parts
    part_fields: frozenset[str] = frozenset()  # of a part; they hold an object
    also: frozenset[str] = frozenset()  # types of parts of other APIs that this one takes as well
    reply: frozenset[str] = frozenset()  # fields that a whole reply has all of, and no message has


class Endpoint(Struct, frozen=True, kw_only=True):
    """What a path asks for: a reply, or how many tokens a request has."""

    counts: bool = False
    model: str = ""  # where the path names it, and not the body
    stream: bool | None = None  # None: the body says it


class Socket(Protocol):
    """A connection over which a client asks for replies, and leaves out what the server has."""

    headers: dict[str, str]  # of the newest message; by the same names those of the connection do not count

    def request(self, text: str) -> tuple[bytes, tuple[str, ...]]:
        """The body of a request for a client's message, or nothing and the events that answer it. Raises InputError for what is no message."""
        ...

    def take(self, event: Mapping[str, Any]) -> None:
        """An event of the reply."""
        ...

    def error(self, status: int, error: object) -> str:
        """The event of a request that was refused."""
        ...


class Api(Protocol):
    """One provider API. The methods that have a body hold for most APIs, and are replaced where one differs."""

    name: str  # by which hosts and records know it
    body_key: str = "messages"  # the field of a body that holds the messages
    operation: str = "chat"  # what OpenTelemetry's conventions for generative AI call a request for a reply
    content_key: str = "content"  # the field of a message that holds its parts
    result_key: str = "content"  # the field of a tool's result that holds its text
    head_fields: tuple[str, ...] = ("tools",)  # what the model reads before the messages
    system_apart: bool = False  # the system prompt is one of the head's fields, and no message
    unique_calls: bool = True  # every call has an id of its own
    header: str = ""  # that only its clients send, in lower case
    shape: Shape
    histories: Mapping[str, str] = MappingProxyType({})  # fields that would bring in another history -> what is allowed instead
    speech: Speech  # how a model is spoken with
    stream: tuple[str, str]  # how the SDK opens a stream, and the method of the stream that gives the whole reply

    # --- The record

    def parse(self, messages: Sequence[Message]) -> tuple[Draft, ...]:
        """The drafts of `messages`, in order. Adjacent items of one model reply may form one draft.

        Raises InputError naming the message's position, what was found and what is allowed.
        """
        ...

    def parse_reply(self, reply: Message) -> Draft:
        """The assistant draft of a whole API response (not a stream), with its `usage` and `model`."""
        ...

    def parse_usage(self, usage: Mapping[str, Any]) -> Usage:
        """Reported usage in our terms: cached tokens are never counted twice."""
        ...

    def source_of(self, part: Part) -> MediaSource | None:
        """Where the bytes of an image or document are, if that is what a part of this API's content is."""
        ...

    def call_of(self, call: Message) -> ToolCall:
        """A tool call as a reply holds it; its id is empty where the API gives none. Raises InputError for what is no call."""
        bare: object = decoded(call) if isinstance(call, bytes) else call
        if not isinstance(bare, Mapping):
            raise InputError("tool call", repr(bare), "a tool call as the provider's reply holds it")
        fields = cast(Mapping[str, Any], bare)
        call_id: object = fields.get("call_id") or fields.get("id")
        if not call_id:
            raise InputError("tool call", f"no id among {sorted(fields)}", "a tool call as the provider's reply holds it")
        return ToolCall(call_id=str(call_id), name="", arguments="")

    def reply(self) -> ReplyStream:
        """What puts a streamed reply together."""
        return self.speech.stream(self.parse_usage)

    def server(self) -> "Server":
        """The other end of the API, for tests."""
        ...

    # --- Messages that hosts write

    def system(self, text: str) -> Message | Draft:
        """A system prompt as the record's first message."""
        return {"role": "system", "content": text}

    def user(self, content: str | Sequence[Part]) -> Message:
        """A person's message: a text, or parts of `text` and `medium`."""
        return {"role": "user", "content": content if isinstance(content, str) else list(content)}

    def text(self, text: str) -> Part:
        """A part of a person's message."""
        return {"type": "text", "text": text}

    def medium(self, item: MediaSource) -> Part:
        """An image or document as a part of a person's message."""
        ...

    def carries(self, item: MediaSource) -> bool:
        """Whether a tool's result can hold this medium."""
        ...

    def result(self, call: ToolCall, text: str, *, error: bool = False, media: Sequence[MediaSource] = ()) -> dict[str, Any]:
        """The result of a call: a message or item of its own, or a part that `results` puts into one."""
        ...

    def results(self, results: Sequence[Mapping[str, Any]]) -> list[Message]:
        """The messages of the results of one reply."""
        return list(results)

    def text_of(self, result: Mapping[str, Any]) -> str:
        """The text of a result that `result` made."""
        content: Any = result[self.result_key]
        return content if isinstance(content, str) else "\n".join(part["text"] for part in content if "text" in part)

    def with_text(self, result: Mapping[str, Any], text: str) -> dict[str, Any]:
        """A result with more text behind its own."""
        content: Any = result[self.result_key]
        more = content + text if isinstance(content, str) else [*content, self.text(text.strip())]
        return {**result, self.result_key: more}

    # --- Tools

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A function tool's declaration."""
        ...

    def declarations(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The declarations in a request's `tools`, one per tool: the inverse of `tools`."""
        return [dict(tool) for tool in tools]

    def tools(self, declarations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """What a request has as `tools`."""
        return list(declarations)

    # --- Between a client and its provider

    def socket(self) -> Socket | None:
        """A connection of the API's WebSocket; None where it has none."""
        return None

    def endpoint(self, path: str, query: str = "") -> Endpoint | None:
        """What a POST to a path asks of this API; None where it is not of this API, or nothing that can be managed."""
        ...

    def unmanaged(self, fields: Mapping[str, Any]) -> str:
        """Why a request with these fields cannot be managed, such as that the server puts a history before it; empty where it can."""
        other = (name for name in self.histories if name != self.body_key and fields.get(name))
        return next((f"it has {name!r}" for name in other), "")

    def relay(self, hidden: Collection[str]) -> "ReplyRelay":
        """What takes calls of `hidden` tools out of a streamed reply."""
        ...

    def without_calls(self, replies: Sequence[bytes], hidden: Collection[str]) -> bytes:
        """The whole replies of several rounds as one for the client, without the calls of `hidden` tools."""
        ...

    def with_tools(self, fields: Mapping[str, Any], ours: Sequence[dict[str, Any]]) -> list[Any]:
        """What a request has as `tools` with declarations of ours behind the client's, which stay as they are."""
        tools: Any = fields.get("tools") or []
        return [*tools, *self.tools(ours)]

    def has_tools(self, fields: Mapping[str, Any], messages: Sequence[bytes]) -> bool:
        """Whether a client's request has tools."""
        return bool(fields.get("tools"))

    def session_of(self, fields: Mapping[str, Any]) -> str:
        """What a client says of which of its sessions a request is of; empty where it says nothing."""
        return ""

    # --- Requests

    def render(self, pieces: Sequence[Piece], memo: Memo | None = None) -> tuple[bytes, ...]:
        """One JSON text per provider message or item, in order; a piece may give several, or share one with its neighbour.

        With a `memo` what was rendered before is not rendered again.
        """
        ...

    def split(self, body: Message) -> tuple[Head, tuple[bytes, ...]]:
        """A request's head and its messages as they are spelled; the inverse of `join`."""
        ...

    def join(self, head: Head, messages: Sequence[bytes]) -> bytes:
        """The body of a request; system prompts stand where this API wants them, and the messages last."""
        ...

    def arguments(self, head: Mapping[str, Any], messages: list[Any]) -> dict[str, Any]:
        """A request as the keyword arguments of the SDK's call; fields that are no JSON are as they were given."""
        return {**head, self.body_key: messages}

    def from_arguments(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the SDK's call as a body has them; what is no JSON stays as it is."""
        return sendable(dict(fields))

    def fields(self, model: str, *, output: int, own: bool, session: str = "") -> dict[str, Any]:
        """What an agent's requests say beside the conversation: the model, at most `output` tokens, streamed.

        `own`: the host is the API's maker. `session` tells its cache which requests belong together.
        """
        ...

    def prompts(
        self, pieces: Sequence[Piece], rules: Rules, reworded: MutableMapping[Piece, Piece], systems: Sequence[int] | None = None
    ) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """The system prompts that stand apart from the messages, and all other pieces; `systems` are the places of those of a system, where they are known.

        A piece that is put in other words is kept in `reworded`, so that it is the same object in the next request.
        """
        return (), pieces

    def with_prompts(self, fields: Mapping[str, Any], prompts: Sequence[Piece]) -> dict[str, Any]:
        """The fields of a request with these system prompts behind what the caller has there."""
        return dict(fields)

    def merged(self, last: bytes, message: bytes) -> bytes | None:
        """Two neighbouring messages as one, where the API wants them so; else None."""
        return None

    def ordered(self, messages: Sequence[bytes], pieces: Sequence[Piece], rules: Rules) -> Sequence[bytes]:
        """The messages, with roles in an order that the model takes. Of `pieces`, theirs, those of a system matter."""
        return alternate(messages) if rules.alternation else messages

    def noted(self, messages: Sequence[bytes], notes: str, rules: Rules) -> tuple[bytes, ...]:
        """The messages with the notes of this one request at their end, in words of a user."""
        note = encoded(dump(self.user(notes)))
        if rules.alternation and messages and role_of(messages[-1]) == "user":
            return (*messages[:-1], join(messages[-1], note))
        return (*messages, note)

    def unmarked(self, message: bytes) -> bytes:
        """A message without cache markers."""
        return message

    def life_asked(self, fields: Mapping[str, Any], messages: Sequence[bytes]) -> str | None:
        """How long a client's markers ask to keep a prefix, "" for the provider's default; None where it has placed none."""
        return None

    def marked(
        self, fields: Mapping[str, Any], messages: Sequence[bytes], rules: Rules, ttl: str, stem: int = 0
    ) -> tuple[dict[str, Any], Sequence[bytes]]:
        """A request's fields and messages with cache markers. `ttl` is "" for the provider's default, or "1h"; `stem` messages stand before the newest edit.

        Raises InputError when the caller has placed more of them than the API takes.
        """
        return dict(fields), messages
