"""The Chat Completions API of OpenAI and of everything compatible with it: `POST /v1/chat/completions`.

https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from tenure.apis.api import OWN_HISTORY, Api, Endpoint, Head, Part, Shape
from tenure.apis.json_text import (
    Json,
    Message,
    array_text,
    clean,
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
from tenure.apis.media import MediaSource, file, image_url
from tenure.apis.memo import Memo
from tenure.apis.openai_chat.messages import NAME, draft_of, medium, rendered
from tenure.apis.openai_chat.speech import SPEECH
from tenure.engine.record.entry import Draft, Role, ToolCall, Usage
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.apis.relay import ReplyRelay
    from tenure.apis.server import Server  # for tests only


class OpenAIChat(Api):
    """Chat Completions. System prompts and results of tools are messages; a result takes text only."""

    name = NAME
    unique_calls = False
    histories = MappingProxyType({"messages": OWN_HISTORY})
    speech = SPEECH
    stream = ("client.chat.completions.stream(…)", "get_final_completion")
    shape = Shape(
        fields=frozenset({"tool_calls", "function_call", "tool_call_id"}),
        parts=frozenset({"image_url", "input_audio", "refusal"}),
        reply=frozenset({"choices"}),
    )

    def parse(self, messages: Sequence[Message]) -> tuple[Draft, ...]:
        """One draft per message. Raises InputError."""
        return tuple(draft_of(source(message, f"message {n}"), f"message {n}") for n, message in enumerate(messages))

    def parse_reply(self, reply: Message) -> Draft:
        """The assistant draft of a completion's first choice, as it is spelled."""
        text = source(reply, "reply")
        fields = object_of(load(text, "reply"), "reply")
        choices = elements(value_of(members(text, "reply"), "choices") or "[]", "reply")
        message = value_of(members(choices[0].text, "reply"), "message") if choices else None
        if message is None:
            raise InputError("reply", "no choice with a message", "a chat completion")
        draft, usage = draft_of(message, "reply"), fields.get("usage")
        return Draft(
            role=draft.role,
            blocks=draft.blocks,
            dialect=NAME,
            payload=draft.payload,
            model=optional_string(fields, "model"),
            usage=self.parse_usage(usage) if isinstance(usage, dict) else None,
        )

    def parse_usage(self, usage: Mapping[str, Any]) -> Usage:
        """`prompt_tokens` contains what was cached; DeepSeek names that `prompt_cache_hit_tokens`."""
        details: Mapping[str, Any] = usage.get("prompt_tokens_details") or {}
        read = number_of(details, "cached_tokens") or number_of(usage, "prompt_cache_hit_tokens")
        write = number_of(details, "cache_write_tokens")
        return Usage(
            uncached=max(0, number_of(usage, "prompt_tokens") - read - write),
            cache_write=write,
            cache_read=read,
            output=number_of(usage, "completion_tokens"),
        )

    def server(self) -> "Server":
        """The other end of the API, for tests."""
        from tenure.apis.openai_chat.server import OpenAIChatServer

        return OpenAIChatServer()

    def source_of(self, part: Part) -> MediaSource | None:
        """The source of an `image_url`, `file` or `input_audio`."""
        match part.get("type"):
            case "image_url":
                return image_url(part)
            case "file":
                return file(part)
            case "input_audio":
                return _audio(part)
            case _:
                return None

    def medium(self, item: MediaSource) -> Part:
        """An `image_url` or `file`."""
        return medium(item)

    def carries(self, item: MediaSource) -> bool:
        """A tool message takes text only."""
        return False

    def result(self, call: ToolCall, text: str, *, error: bool = False, media: Sequence[MediaSource] = ()) -> dict[str, Any]:
        """A tool message."""
        return {"role": "tool", "tool_call_id": call.call_id, "content": text}

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A function tool."""
        return {"type": "function", "function": {"name": name, "description": description, "parameters": dict(schema)}}

    def endpoint(self, path: str, query: str = "") -> Endpoint | None:
        """`/v1/chat/completions`, wherever a server has it."""
        return Endpoint() if path.endswith("/chat/completions") else None

    def unmanaged(self, fields: Mapping[str, Any]) -> str:
        """A reply of several choices is several histories."""
        return "it asks for several choices" if (fields.get("n") or 1) != 1 else super().unmanaged(fields)

    def session_of(self, fields: Mapping[str, Any]) -> str:
        """The key of the provider's cache."""
        return optional_string(fields, "prompt_cache_key")

    def relay(self, hidden: Collection[str]) -> "ReplyRelay":
        """What takes calls of `hidden` tools out of a stream."""
        from tenure.apis.openai_chat.relay import ChatRelay

        return ChatRelay(self.speech.stream, self.parse_usage, hidden)

    def without_calls(self, replies: Sequence[bytes], hidden: Collection[str]) -> bytes:
        """The replies of several rounds as one for the client."""
        from tenure.apis.openai_chat.relay import without_calls
        from tenure.apis.relay import replies_of

        return encoded(dump(without_calls(replies_of(replies), hidden)))

    def render(self, pieces: Sequence[Piece], memo: Memo | None = None) -> tuple[bytes, ...]:
        """One message per piece that shows something; results and words that another API keeps in one message come apart."""
        return rendered(pieces, memo or Memo())

    def split(self, body: Message) -> tuple[Head, tuple[bytes, ...]]:
        """The head's fields, and all messages: here system prompts are messages, and belong to the record."""
        items = members(source(body, "request"), "request")
        messages = elements(value_of(items, "messages") or "[]", "messages")
        fields: dict[str, Any] = {item.key: load(item.text) for item in items if item.key != "messages"}
        return Head(fields=fields), tuple(encoded(item.text) for item in messages)

    def join(self, head: Head, messages: Sequence[bytes]) -> bytes:
        """The body of a request, with the head's system prompts as its first messages."""
        prompts = self.render([Piece(role=Role.SYSTEM, blocks=draft.blocks) for draft in head.system])
        fields = {key: dump(value) for key, value in head.fields.items()}
        fields["messages"] = array_text(source(message, "message") for message in (*prompts, *messages))
        return encoded(with_members("{}", fields))

    def fields(self, model: str, *, output: int, own: bool, session: str = "") -> dict[str, Any]:
        """The model, the output limit, streamed with its usage. Only OpenAI itself knows `max_completion_tokens` and a key of the cache."""
        keyed = {"prompt_cache_key": session} if own and session else {}
        limit = "max_completion_tokens" if own else "max_tokens"
        return {"model": model, limit: output, "stream": True, "stream_options": {"include_usage": True}, **keyed}


def _audio(part: Part) -> MediaSource | None:
    fields = part.get("input_audio")
    if not isinstance(fields, dict):
        return None
    inner = cast(Mapping[str, Json], fields)
    kind = clean(optional_string(inner, "format"))
    return MediaSource(media_type=f"audio/{kind}" if kind else "audio", data=optional_string(inner, "data"), image=False)


__all__ = ["NAME", "OpenAIChat"]
