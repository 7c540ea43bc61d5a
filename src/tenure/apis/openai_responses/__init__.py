"""The Responses API of OpenAI: `POST /v1/responses`.

https://platform.openai.com/docs/api-reference/responses/create
"""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tenure.apis.api import OF_THE_SERVER, OWN_HISTORY, Api, Endpoint, Head, Part, Shape
from tenure.apis.json_text import (
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
from tenure.apis.media import PDF, MediaSource, file, image_url
from tenure.apis.memo import Memo
from tenure.apis.openai_responses.items import NAME, blocks_of, drafts_of, medium, rendered
from tenure.apis.openai_responses.socket import ResponsesSocket
from tenure.apis.openai_responses.speech import SPEECH
from tenure.engine.record.entry import Draft, Origin, Role, Text, ToolCall, Usage
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.apis.relay import ReplyRelay
    from tenure.apis.server import Server  # for tests only

# Models that reason, whose sealed reasoning has to be asked for: platform.openai.com/docs/guides/reasoning
_REASONS: Final = re.compile(r"^(?:o\d|gpt-[5-9]|codex)")

_FIRST: Final = 8  # items among which a client declares its tools


class OpenAIResponses(Api):
    """The Responses API. Its unit is the item; system prompts are items or `instructions`."""

    name = NAME
    body_key = "input"
    result_key = "output"
    head_fields = ("instructions", "tools")
    histories = MappingProxyType({"input": OWN_HISTORY, "previous_response_id": OF_THE_SERVER, "conversation": OF_THE_SERVER})
    speech = SPEECH
    stream = ("client.responses.stream(…)", "get_final_response")
    shape = Shape(
        fields=frozenset({"call_id"}),
        parts=frozenset({"input_text", "output_text", "input_image", "input_file"}),
        also=frozenset({"input_audio", "refusal"}),
        reply=frozenset({"object", "output"}),
    )

    def socket(self) -> ResponsesSocket:
        """A connection of its WebSocket mode."""
        return ResponsesSocket()

    def parse(self, messages: Sequence[Message]) -> tuple[Draft, ...]:
        """One draft per run of model-made items, and one per other item. Raises InputError."""
        return drafts_of([source(message, f"message {n}") for n, message in enumerate(messages)])

    def parse_reply(self, reply: Message) -> Draft:
        """The assistant draft of a response's whole output, as it is spelled."""
        text = source(reply, "reply")
        fields = object_of(load(text, "reply"), "reply")
        output = value_of(members(text, "reply"), "output")
        if output is None:
            raise InputError("reply", "no output", "a response with its output items")
        if (status := fields.get("status")) in ("queued", "in_progress"):
            raise InputError(
                "reply", f"a response that is {status!r}", "a whole one; ask for it again with client.responses.retrieve(…)"
            )
        usage = fields.get("usage")
        return Draft(
            role=Role.ASSISTANT,
            blocks=blocks_of([item.text for item in elements(output, "reply")], 0, Origin.MODEL),
            dialect=NAME,
            payload=encoded(output),
            model=optional_string(fields, "model"),
            usage=self.parse_usage(usage) if isinstance(usage, dict) else None,
        )

    def parse_usage(self, usage: Mapping[str, Any]) -> Usage:
        """`input_tokens` contains what was read from the cache and what was written to it."""
        details: Mapping[str, Any] = usage.get("input_tokens_details") or {}
        read, write = number_of(details, "cached_tokens"), number_of(details, "cache_write_tokens")
        return Usage(
            uncached=max(0, number_of(usage, "input_tokens") - read - write),
            cache_write=write,
            cache_read=read,
            output=number_of(usage, "output_tokens"),
        )

    def server(self) -> "Server":
        """The other end of the API, for tests."""
        from tenure.apis.openai_responses.server import OpenAIResponsesServer

        return OpenAIResponsesServer()

    def source_of(self, part: Part) -> MediaSource | None:
        """The source of an `input_image`, a `computer_screenshot` or an `input_file`."""
        match part.get("type"):
            case "input_image" | "computer_screenshot":
                return image_url(part)
            case "input_file":
                return file(part)
            case _:
                return None

    def text(self, text: str) -> Part:
        """An `input_text`."""
        return {"type": "input_text", "text": text}

    def medium(self, item: MediaSource) -> Part:
        """An `input_image` or `input_file`."""
        return medium(item)

    def carries(self, item: MediaSource) -> bool:
        """Images, and PDF documents by their bytes."""
        return bool((item.data and (item.image or item.media_type == PDF)) or (item.image and item.url))

    def result(self, call: ToolCall, text: str, *, error: bool = False, media: Sequence[MediaSource] = ()) -> dict[str, Any]:
        """A `function_call_output`, whose output is a string or a list of parts."""
        output: Any = [self.text(text), *map(medium, media)] if media else text
        return {"type": "function_call_output", "call_id": call.call_id, "output": output}

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A function tool. Here schemas are strict unless one says otherwise, and few schemas in use satisfy that."""
        return {"type": "function", "name": name, "description": description, "parameters": dict(schema), "strict": False}

    def endpoint(self, path: str, query: str = "") -> Endpoint | None:
        """`/v1/responses`."""
        return Endpoint() if path.endswith("/responses") else None

    def unmanaged(self, fields: Mapping[str, Any]) -> str:
        """A response that is fetched later cannot be seen."""
        return "it is to be done in the background" if fields.get("background") else super().unmanaged(fields)

    def has_tools(self, fields: Mapping[str, Any], messages: Sequence[bytes]) -> bool:
        """They may stand in an item of the input as well."""
        return bool(fields.get("tools")) or any(b'"additional_tools"' in message for message in messages[:_FIRST])

    def session_of(self, fields: Mapping[str, Any]) -> str:
        """The key of the provider's cache."""
        return optional_string(fields, "prompt_cache_key")

    def relay(self, hidden: Collection[str]) -> "ReplyRelay":
        """What takes calls of `hidden` tools out of a stream."""
        from tenure.apis.openai_responses.relay import ResponsesRelay

        return ResponsesRelay(self.speech.stream, self.parse_usage, hidden)

    def without_calls(self, replies: Sequence[bytes], hidden: Collection[str]) -> bytes:
        """The replies of several rounds as one for the client."""
        from tenure.apis.openai_responses.relay import without_calls
        from tenure.apis.relay import replies_of

        return encoded(dump(without_calls(replies_of(replies), hidden)))

    def render(self, pieces: Sequence[Piece], memo: Memo | None = None) -> tuple[bytes, ...]:
        """The items of each piece, in order."""
        return rendered(pieces, memo or Memo())

    def split(self, body: Message) -> tuple[Head, tuple[bytes, ...]]:
        """A request's head, with `instructions` as a draft, and its input items; a string as input is one user message."""
        items = members(source(body, "request"), "request")
        given, told = value_of(items, "input") or "[]", value_of(items, "instructions")
        prompt = load(told) if told else None
        fields: dict[str, Any] = {item.key: load(item.text) for item in items if item.key not in ("input", "instructions")}
        system = () if not isinstance(prompt, str) else (_instructions(clean(prompt), told or ""),)
        if given.startswith('"'):
            given = f'[{{"role":"user","content":{given}}}]'
        return Head(system=system, fields=fields), tuple(encoded(item.text) for item in elements(given, "input"))

    def join(self, head: Head, messages: Sequence[bytes]) -> bytes:
        """The body of a request, with the head's system prompts as `instructions`."""
        fields = {key: dump(value) for key, value in head.fields.items()}
        if len(head.system) == 1 and head.system[0].dialect == NAME and head.system[0].payload.startswith(b'"'):
            fields["instructions"] = source(head.system[0].payload, "instructions")
        elif head.system:
            fields["instructions"] = dump("\n\n".join(block.text for draft in head.system for block in draft.blocks))
        fields["input"] = array_text(source(message, "message") for message in messages)
        return encoded(with_members("{}", fields))

    def fields(self, model: str, *, output: int, own: bool, session: str = "") -> dict[str, Any]:
        """The model, the output limit, streamed, nothing stored at the provider; the sealed reasoning of a model that reasons."""
        sealed = {"include": ["reasoning.encrypted_content"]} if _REASONS.match(model) else {}
        keyed = {"prompt_cache_key": session} if own and session else {}
        return {"model": model, "max_output_tokens": output, "stream": True, "store": False, **sealed, **keyed}


def _instructions(text: str, raw: str) -> Draft:
    return Draft(role=Role.SYSTEM, blocks=(Text(text=text, origin=Origin.HARNESS),), dialect=NAME, payload=encoded(raw))


__all__ = ["NAME", "OpenAIResponses"]
