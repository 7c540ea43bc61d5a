"""The Gemini API of Google: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`.

https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from tenure.apis.api import OWN_HISTORY, Api, Endpoint, Head, Part, Shape
from tenure.apis.gemini.arguments import body_fields, sdk_arguments, texts_of
from tenure.apis.gemini.messages import (
    NAME,
    carries,
    draft_of,
    joined,
    medium,
    member,
    rendered,
    response_of,
    response_text,
    role_of,
    signed,
    source_in,
    spelled,
)
from tenure.apis.gemini.speech import SPEECH
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
from tenure.apis.media import MediaSource
from tenure.apis.memo import Memo
from tenure.apis.reply import fields_of
from tenure.apis.sdk import decoded, plain
from tenure.apis.turns import REMINDER
from tenure.engine.record.entry import Draft, Origin, Role, Text, ToolCall, Usage
from tenure.engine.view.piece import Piece
from tenure.engine.view.rules import Rules
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.apis.relay import ReplyRelay
    from tenure.apis.server import Server  # for tests only

# Models that think, and say what in a summary where that is asked for: ai.google.dev/gemini-api/docs/thinking
_THINKS: Final = re.compile(r"gemini-(2\.5|[3-9])|gemini-\w+-latest")

_CALL: Final = re.compile(r"/models/(?P<model>[^/:]+):(?:(?P<stream>streamG)|g)enerateContent$")


class Gemini(Api):
    """The Gemini API. The system prompt is a field of the body; calls need no ids, and their responses are parts of a user's content."""

    name = NAME
    body_key = "contents"
    operation = "generate_content"
    content_key = "parts"
    result_key = "functionResponse"
    head_fields = ("systemInstruction", "tools")
    system_apart = True
    unique_calls = False
    histories = MappingProxyType({"contents": OWN_HISTORY})
    stream = ("the chunks as one reply: context.append(whole(chunks)), of tenure.apis.gemini", "")
    header = "x-goog-api-key"
    speech = SPEECH
    shape = Shape(
        fields=frozenset({"parts"}),
        part_fields=frozenset({"functionCall", "functionResponse", "inlineData", "inline_data", "fileData"}),
        reply=frozenset({"candidates"}),
    )

    def parse(self, messages: Sequence[Message]) -> tuple[Draft, ...]:
        """One draft per content. Raises InputError."""
        return tuple(draft_of(source(message, f"message {n}"), f"message {n}") for n, message in enumerate(messages))

    def parse_reply(self, reply: Message) -> Draft:
        """The assistant draft of a response's first candidate: its content as it is spelled."""
        text = source(reply, "reply")
        fields = object_of(load(text, "reply"), "reply")
        candidates = elements(value_of(members(text), "candidates") or "[]", "reply") if fields.get("candidates") else []
        content = value_of(members(candidates[0].text, "reply"), "content") if candidates else None
        if content in (None, "null"):
            blocked = member(object_of(member(fields, "promptFeedback") or {}, "reply"), "blockReason")
            why = f"no candidate: the prompt was blocked ({blocked})" if blocked else "no candidate with a content"
            raise InputError("reply", why, "a response of generateContent with a content")
        draft = draft_of(
            with_members(content or "{}", {"role": '"model"'}) if '"role"' not in (content or "") else content or "", "reply"
        )
        usage = fields_of(member(fields, "usageMetadata"))
        return Draft(
            role=draft.role,
            blocks=draft.blocks,
            dialect=NAME,
            payload=draft.payload,
            model=str(member(fields, "modelVersion") or ""),
            usage=self.parse_usage(usage) if usage else None,
        )

    def parse_usage(self, usage: Mapping[str, Any]) -> Usage:
        """The prompt contains what was cached, and not what tools of the provider read; thoughts stand beside the candidates.

        https://ai.google.dev/api/generate-content#UsageMetadata
        """

        def count(key: str) -> int:
            return number_of({key: member(usage, key)}, key)

        cached = count("cachedContentTokenCount")
        return Usage(
            uncached=max(0, count("promptTokenCount") - cached) + count("toolUsePromptTokenCount"),
            cache_read=cached,
            output=count("candidatesTokenCount") + count("thoughtsTokenCount"),
        )

    def server(self) -> "Server":
        """The other end of the API, for tests."""
        from tenure.apis.gemini.server import GeminiServer

        return GeminiServer()

    def source_of(self, part: Part) -> MediaSource | None:
        """The source of an `inlineData` or `fileData`."""
        return source_in(part)

    def call_of(self, call: Message | object) -> ToolCall:
        """A `functionCall`, or the part that holds it. Without an id the name and the arguments count. Raises InputError."""
        bare: Any = decoded(call) if isinstance(call, bytes) else plain(call)
        if not isinstance(bare, Mapping):
            raise InputError("tool call", repr(bare), "a functionCall, or the part that holds it")
        fields = cast(Mapping[str, Any], bare)
        fields = member(fields, "functionCall") or fields
        call_id, name = str(fields.get("id") or ""), str(fields.get("name") or "")
        if not call_id and not name:
            raise InputError(
                "tool call", f"no name and no id among {sorted(fields)}", "a functionCall, or the part that holds it"
            )
        return ToolCall(call_id=call_id, name=name, arguments=dump(fields.get("args") or {}))

    # --- Messages that hosts write

    def system(self, text: str) -> Message | Draft:
        """A system prompt, which no content of the API can be."""
        return Draft(role=Role.SYSTEM, blocks=(Text(text=text, origin=Origin.HARNESS),))

    def user(self, content: str | Sequence[Part]) -> Message:
        """A person's content."""
        return {"role": "user", "parts": [self.text(content)] if isinstance(content, str) else list(content)}

    def text(self, text: str) -> Part:
        """A text, which is a member and has no type."""
        return {"text": text}

    def medium(self, item: MediaSource) -> Part:
        """An `inlineData` or `fileData`."""
        return medium(item)

    def carries(self, item: MediaSource) -> bool:
        """Images, PDF documents and plain text by their bytes, and files of Google's."""
        return carries(item)

    def result(self, call: ToolCall, text: str, *, error: bool = False, media: Sequence[MediaSource] = ()) -> dict[str, Any]:
        """A `functionResponse`; it has the call's id where the call has one of its own."""
        call_id = "" if call.call_id == call.name else call.call_id
        return response_of(call.name, call_id, text, error=error, media=[medium(item) for item in media])

    def results(self, results: Sequence[Mapping[str, Any]]) -> list[Message]:
        """One content of the user: the API wants as many responses as there were calls."""
        return [{"role": "user", "parts": list(results)}]

    def text_of(self, result: Mapping[str, Any]) -> str:
        """What the response says."""
        return response_text(result[self.result_key]["response"])

    def with_text(self, result: Mapping[str, Any], text: str) -> dict[str, Any]:
        """A response with more text behind its own."""
        inner: Any = result[self.result_key]
        key = "error" if "error" in inner["response"] else "output"
        return {**result, self.result_key: {**inner, "response": {key: self.text_of(result) + text}}}

    # --- Tools

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A function's declaration, with its parameters as the JSON schema they are.

        The older `parameters` takes a subset of OpenAPI's schemas only: https://ai.google.dev/api/caching#FunctionDeclaration
        """
        return {"name": name, "description": description, "parametersJsonSchema": dict(schema)}

    def declarations(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The functions that the tools declare, each by itself; tools of the provider stay as they are."""
        found: list[dict[str, Any]] = []
        for tool in tools:
            functions: Any = member(tool, "functionDeclarations")
            found += [dict(plain(each)) for each in functions or ()]
            rest = {key: value for key, value in tool.items() if key not in ("functionDeclarations", "function_declarations")}
            found += [rest] if rest else []
        return found

    def tools(self, declarations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """One tool with all functions, and those of the provider."""
        functions = [each for each in declarations if "name" in each]
        others = [each for each in declarations if "name" not in each]
        return [*([{"functionDeclarations": functions}] if functions else []), *others]

    # --- Requests

    def endpoint(self, path: str, query: str = "") -> Endpoint | None:
        """`models/{model}:generateContent` and `:streamGenerateContent`, streamed as server-sent events."""
        found = _CALL.search(path)
        if found is None or (found["stream"] and "alt=sse" not in query):
            return None
        return Endpoint(model=found["model"], stream=bool(found["stream"]))

    def unmanaged(self, fields: Mapping[str, Any]) -> str:
        """A cached content stands before the others, and brings its own tools."""
        return "it has 'cachedContent'" if fields.get("cachedContent") else super().unmanaged(fields)

    def relay(self, hidden: Collection[str]) -> "ReplyRelay":
        """What takes calls of `hidden` tools out of a stream."""
        from tenure.apis.gemini.relay import GeminiRelay

        return GeminiRelay(self.speech.stream, self.parse_usage, hidden)

    def without_calls(self, replies: Sequence[bytes], hidden: Collection[str]) -> bytes:
        """The replies of several rounds as one for the client."""
        from tenure.apis.gemini.relay import without_calls
        from tenure.apis.relay import replies_of

        return encoded(dump(without_calls(replies_of(replies), hidden)))

    def render(self, pieces: Sequence[Piece], memo: Memo | None = None) -> tuple[bytes, ...]:
        """One content per piece that shows something."""
        return rendered(pieces, memo or Memo())

    def split(self, body: Message) -> tuple[Head, tuple[bytes, ...]]:
        """A request's head, with `systemInstruction` as a draft, and its contents as they are spelled."""
        items = members(source(body, "request"), "request")
        contents, key = value_of(items, "contents") or "[]", spelled(items, "systemInstruction")
        system = value_of(items, key)
        fields: dict[str, Any] = {item.key: load(item.text) for item in items if item.key not in ("contents", key)}
        if not contents.startswith("["):  # one content alone
            contents = f"[{contents}]"
        drafts = () if system in (None, "null") else (_prompt(system or ""),)
        return Head(system=drafts, fields=fields), tuple(encoded(item.text) for item in elements(contents, "contents"))

    def join(self, head: Head, messages: Sequence[bytes]) -> bytes:
        """The body of a request; a system prompt of this API goes out as it came in. What only the SDK knows stays out."""
        fields = {key: dump(value) for key, value in head.fields.items() if key != "config"}
        if len(head.system) == 1 and head.system[0].dialect == NAME:
            fields["systemInstruction"] = source(head.system[0].payload, "systemInstruction")
        elif head.system:
            texts = [block.text for draft in head.system for block in draft.blocks if block.text.strip()]
            fields["systemInstruction"] = dump({"parts": [{"text": text} for text in texts]})
        fields["contents"] = array_text(source(message, "content") for message in messages)
        return encoded(with_members("{}", fields))

    def from_arguments(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a body, from the arguments of `generate_content`, whose `config` is flat."""
        return super().from_arguments(body_fields(fields))

    def arguments(self, head: Mapping[str, Any], messages: list[Any]) -> dict[str, Any]:
        """The keyword arguments of `client.models.generate_content`: model, contents and config."""
        return sdk_arguments(head, messages)

    def fields(self, model: str, *, output: int, own: bool, session: str = "") -> dict[str, Any]:
        """The model, the output limit, and what the model thinks in a summary."""
        thinking = {"thinkingConfig": {"includeThoughts": True}} if _THINKS.search(model) else {}
        return {"model": model, "generationConfig": {"maxOutputTokens": output, **thinking}}

    def prompts(
        self, pieces: Sequence[Piece], rules: Rules, reworded: MutableMapping[Piece, Piece], systems: Sequence[int] | None = None
    ) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """The prompts at the start; a system's words between the others are a reminder in a content of the user."""
        first = next((n for n, piece in enumerate(pieces) if piece.role is not Role.SYSTEM), len(pieces))
        if not any(piece.role is Role.SYSTEM for piece in pieces[first:]):
            return pieces[:first], pieces[first:]
        return pieces[:first], list(_without_systems(pieces[first:], reworded))

    def with_prompts(self, fields: Mapping[str, Any], prompts: Sequence[Piece]) -> dict[str, Any]:
        """The fields with the record's prompts in `systemInstruction`, behind the caller's own. The same words stand there once."""
        parts: list[Any] = [plain(part) for part in texts_of(fields.get("systemInstruction") or [])]
        words = [part.get("text") for part in parts]
        more = [{"text": text} for text in _texts(prompts) if text not in words]
        return {**fields, "systemInstruction": {"parts": [*parts, *more]}} if more else dict(fields)

    def ordered(self, messages: Sequence[bytes], pieces: Sequence[Piece], rules: Rules) -> Sequence[bytes]:
        """Neighbours of one role as one content: calls stand behind a user's turn, and all their responses in the next.

        Where signatures are asked for, each content's first call has one.
        """
        found: list[bytes] = []
        before = ""
        for message in messages:
            role = role_of(message)
            role = "user" if role in ("function", "tool") else role
            if role == before:
                found[-1] = joined(found[-1], message)
            else:
                found.append(message)
            before = role
        if rules.thinking != "open_loop":
            return found
        return [content if _is_signed(content) else signed(content) for content in found]

    def noted(self, messages: Sequence[bytes], notes: str, rules: Rules) -> tuple[bytes, ...]:
        """The notes at the end of the user's last content, else in one of their own."""
        note = encoded(dump(self.user(notes)))
        if messages and role_of(messages[-1]) != "model":
            return (*messages[:-1], joined(messages[-1], note))
        return (*messages, note)


def whole(chunks: Iterable[object]) -> bytes:
    """One reply, from the chunks of `generate_content_stream` in order. Raises InputError for a stream that was not read to its end."""
    stream = SPEECH.stream(Gemini().parse_usage)
    for chunk in chunks:
        for _ in stream.take(decoded(chunk) if isinstance(chunk, bytes) else plain(chunk)):
            pass
    reply = stream.whole()
    if reply is None:
        raise InputError("chunks", stream.shortfall, "all chunks of a reply, to the one with a finishReason")
    return reply.reply


def _is_signed(content: bytes) -> bool:
    """Whether a content has a signature anywhere: what the model made has it where it belongs."""
    return b'"thoughtSignature"' in content or b'"thought_signature"' in content


def _without_systems(pieces: Sequence[Piece], reworded: MutableMapping[Piece, Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if piece.role is not Role.SYSTEM:
            yield piece
        elif words := "\n\n".join(_texts((piece,))):
            if piece not in reworded:
                text = Text(text=REMINDER.format(words), origin=Origin.HARNESS)
                payload = encoded(dump({"role": "user", "parts": [{"text": text.text}]}))
                reworded[piece] = Piece(role=Role.USER, blocks=(text,), dialect=NAME, payload=payload, kept=(0,))
            yield reworded[piece]


def _texts(prompts: Sequence[Piece]) -> list[str]:
    return [block.text for prompt in prompts for block in prompt.blocks if block.text.strip()]


def _prompt(system: str) -> Draft:
    """The draft of a `systemInstruction`, which is a content, or a text where a proxy takes one."""
    value = load(system, "systemInstruction")
    parts = value if isinstance(value, str) else object_of(value, "systemInstruction").get("parts") or []
    texts = (
        [clean(parts)]
        if isinstance(parts, str)
        else [optional_string(each, "text") for each in parts if isinstance(each, dict)]
        if isinstance(parts, list)
        else []
    )
    blocks = tuple(Text(text=text, origin=Origin.HARNESS) for text in texts)
    return Draft(
        role=Role.SYSTEM, blocks=blocks or (Text(text="", origin=Origin.HARNESS),), dialect=NAME, payload=encoded(system)
    )


__all__ = ["NAME", "Gemini", "whole"]
