"""The Messages API of Anthropic: `POST /v1/messages`.

https://platform.claude.com/docs/en/api/messages
"""

import re
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from tenure.apis.anthropic.markers import life_of, mark_request, markers_of, strip_markers
from tenure.apis.anthropic.messages import NAME, carries, draft_of, medium, rendered, source_in, system_draft
from tenure.apis.anthropic.prompts import behind_users, render_system, split_prompts, with_prompts
from tenure.apis.anthropic.speech import SPEECH
from tenure.apis.api import OF_THE_SERVER, OWN_HISTORY, Api, Endpoint, Head, Part, Shape
from tenure.apis.json_text import (
    Message,
    array_text,
    dump,
    elements,
    encoded,
    load,
    members,
    number_of,
    object_of,
    optional_string,
    source,
    value_of,
    with_members,
)
from tenure.apis.media import MediaSource
from tenure.apis.memo import Memo
from tenure.apis.reply import fields_of
from tenure.apis.sdk import plain
from tenure.apis.turns import alternate, role_of
from tenure.engine.record.entry import Draft, Role, ToolCall, Usage
from tenure.engine.view.piece import Piece
from tenure.engine.view.rules import Rules
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.apis.relay import ReplyRelay
    from tenure.apis.server import Server  # for tests only

_RESULTS = b'{"role":"user","content":[{"type":"tool_result"'  # how a message of results begins that we made
_END = b"]}"
_LONG: Final = re.compile(rb'"ttl"\s*:\s*"1h"')
NEWEST: Final = 8  # messages among which a client places its markers


class Anthropic(Api):
    """The Messages API. The system prompt is a field of the body; results of tools are parts of a user's message."""

    name = NAME
    head_fields = ("system", "tools")
    system_apart = True
    histories = MappingProxyType({"messages": OWN_HISTORY, "thread": OF_THE_SERVER})
    header = "anthropic-version"
    speech = SPEECH
    stream = ("client.messages.stream(…)", "get_final_message")
    shape = Shape(
        parts=frozenset({"tool_use", "tool_result", "redacted_thinking", "server_tool_use"}),
        part_fields=frozenset({"source"}),
        reply=frozenset({"role", "stop_reason"}),
    )

    def parse(self, messages: Sequence[Message]) -> tuple[Draft, ...]:
        """One draft per message. Raises InputError."""
        return tuple(draft_of(source(message, f"message {n}"), f"message {n}") for n, message in enumerate(messages))

    def parse_reply(self, reply: Message) -> Draft:
        """The assistant draft of a response: its role and content as they are spelled."""
        text = source(reply, "reply")
        content = value_of(members(text, "reply"), "content")
        if content is None:
            raise InputError("reply", "no content", "a message of the Messages API")
        fields = object_of(load(text, "reply"), "reply")
        usage = fields.get("usage")
        draft = draft_of(f'{{"role":"assistant","content":{content}}}', "reply")
        return Draft(
            role=draft.role,
            blocks=draft.blocks,
            dialect=NAME,
            payload=draft.payload,
            model=optional_string(fields, "model"),
            usage=self.parse_usage(usage) if isinstance(usage, dict) else None,
        )

    def parse_usage(self, usage: Mapping[str, Any]) -> Usage:
        """The API counts uncached, written and read tokens apart, as we do."""
        return Usage(
            uncached=number_of(usage, "input_tokens"),
            cache_write=number_of(usage, "cache_creation_input_tokens"),
            cache_read=number_of(usage, "cache_read_input_tokens"),
            output=number_of(usage, "output_tokens"),
        )

    def server(self) -> "Server":
        """The other end of the API, for tests."""
        from tenure.apis.anthropic.server import AnthropicServer

        return AnthropicServer()

    def source_of(self, part: Part) -> MediaSource | None:
        """The source of an `image` or `document`."""
        return source_in(part) if part.get("type") in ("image", "document") else None

    def user(self, content: str | Sequence[Part]) -> Message:
        """A person's message; its content is always a list, and an empty text is refused."""
        if isinstance(content, str):
            content = [self.text(content)] if content.strip() else []
        return {"role": "user", "content": list(content)}

    def medium(self, item: MediaSource) -> Part:
        """An `image` or `document`."""
        return medium(item)

    def carries(self, item: MediaSource) -> bool:
        """Images and PDF documents by their bytes, anything by its URL."""
        return carries(item)

    def result(self, call: ToolCall, text: str, *, error: bool = False, media: Sequence[MediaSource] = ()) -> dict[str, Any]:
        """A `tool_result`, a part of the next user message."""
        content: Any = [self.text(text), *map(medium, media)] if media else text
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.call_id, "content": content}
        return result | ({"is_error": True} if error else {})

    def results(self, results: Sequence[Mapping[str, Any]]) -> list[Message]:
        """One user message."""
        return [{"role": "user", "content": list(results)}]

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A client tool."""
        return {"name": name, "description": description, "input_schema": dict(schema)}

    def endpoint(self, path: str, query: str = "") -> Endpoint | None:
        """`/v1/messages` and `/v1/messages/count_tokens`."""
        if path.endswith("/messages"):
            return Endpoint()
        return Endpoint(counts=True, stream=False) if path.endswith("/messages/count_tokens") else None

    def session_of(self, fields: Mapping[str, Any]) -> str:
        """What the metadata say of the user, which clients make of their session."""
        return optional_string(fields_of(fields.get("metadata")), "user_id")

    def relay(self, hidden: Collection[str]) -> "ReplyRelay":
        """What takes calls of `hidden` tools out of a stream."""
        from tenure.apis.anthropic.relay import AnthropicRelay

        return AnthropicRelay(self.speech.stream, self.parse_usage, hidden)

    def without_calls(self, replies: Sequence[bytes], hidden: Collection[str]) -> bytes:
        """The replies of several rounds as one for the client."""
        from tenure.apis.anthropic.relay import without_calls
        from tenure.apis.relay import replies_of

        return encoded(dump(without_calls(replies_of(replies), hidden)))

    def render(self, pieces: Sequence[Piece], memo: Memo | None = None) -> tuple[bytes, ...]:
        """One message per piece that shows something; neighbours share one where tool results would not come first otherwise."""
        return rendered(pieces, memo or Memo())

    def split(self, body: Message) -> tuple[Head, tuple[bytes, ...]]:
        """A request's head, with the top-level `system` as a draft, and its messages as they are spelled."""
        items = members(source(body, "request"), "request")
        system, messages = value_of(items, "system"), value_of(items, "messages")
        fields: dict[str, Any] = {item.key: load(item.text) for item in items if item.key not in ("system", "messages")}
        drafts = () if system in (None, "null") else (system_draft(system),)
        return Head(system=drafts, fields=fields), tuple(encoded(item.text) for item in elements(messages or "[]", "messages"))

    def join(self, head: Head, messages: Sequence[bytes]) -> bytes:
        """The body of a request; a system prompt of this API goes out as it came in."""
        fields = {key: dump(value) for key, value in head.fields.items()}
        if head.system:
            fields["system"] = render_system(head.system)
        fields["messages"] = array_text(source(message, "message") for message in messages)
        return encoded(with_members("{}", fields))

    def from_arguments(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A system prompt in parts, from whatever iterable of the SDK's types, is a list of dictionaries."""
        system = fields.get("system")
        if isinstance(system, Iterable) and not isinstance(system, str | bytes | Mapping):
            fields = {**fields, "system": [plain(part) for part in cast(Iterable[Any], system)]}
        return super().from_arguments(fields)

    def fields(self, model: str, *, output: int, own: bool, session: str = "") -> dict[str, Any]:
        """The model, the output limit, streamed."""
        return {"model": model, "max_tokens": output, "stream": True}

    def prompts(
        self, pieces: Sequence[Piece], rules: Rules, reworded: MutableMapping[Piece, Piece], systems: Sequence[int] | None = None
    ) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """The prompts at the start; system messages between the others stay where the model takes them, and are a user's words elsewhere."""
        if systems is None:
            systems = [n for n, piece in enumerate(pieces) if piece.role is Role.SYSTEM]
        return split_prompts(pieces, systems, reworded, stay=rules.system_messages)

    def with_prompts(self, fields: Mapping[str, Any], prompts: Sequence[Piece]) -> dict[str, Any]:
        """The fields with the record's prompts in `system`."""
        return with_prompts(fields, prompts)

    def merged(self, last: bytes, message: bytes) -> bytes | None:
        """Results of one reply that were recorded one by one: not every server joins neighbours of a role by itself."""
        return (
            last[: -len(_END)] + b"," + message[_RESULTS.index(b"[") + 1 :]
            if _is_results(last) and _is_results(message)
            else None
        )

    def ordered(self, messages: Sequence[bytes], pieces: Sequence[Piece], rules: Rules) -> Sequence[bytes]:
        """Messages of a system stand behind a user's."""
        if any(piece.role is Role.SYSTEM for piece in pieces):
            messages = tuple(behind_users(messages))
        return alternate(messages) if rules.alternation else messages

    def noted(self, messages: Sequence[bytes], notes: str, rules: Rules) -> tuple[bytes, ...]:
        """The notes before messages of a system at the end, which go before the model's only."""
        last = len(messages)
        while last and role_of(messages[last - 1]) == "system":
            last -= 1
        return (*super().noted(messages[:last], notes, rules), *messages[last:])

    def unmarked(self, message: bytes) -> bytes:
        """A message without `cache_control`."""
        return strip_markers(message)

    def life_asked(self, fields: Mapping[str, Any], messages: Sequence[bytes]) -> str | None:
        """What the markers of the newest messages say, else those of the head."""
        for message in reversed(messages[-NEWEST:]):
            if b"cache_control" in message and (bare := strip_markers(message)) != message:
                return "1h" if len(_LONG.findall(message)) > len(_LONG.findall(bare)) else ""
        return life_of(fields, "") if markers_of(fields) else None

    def marked(
        self, fields: Mapping[str, Any], messages: Sequence[bytes], rules: Rules, ttl: str, stem: int = 0
    ) -> tuple[dict[str, Any], Sequence[bytes]]:
        """Markers on the newest message, where the request before ended, on the stem, and on the head unless the caller marked it."""
        return mark_request(fields, messages, rules.cache_markers, ttl, stem) if rules.cache_markers else (dict(fields), messages)


def _is_results(message: bytes) -> bool:
    """Whether a message holds results, and nothing that we said beside them."""
    return message.startswith(_RESULTS) and message.endswith(_END) and b'},{"type":"text"' not in message


__all__ = ["NAME", "Anthropic", "render_system"]
