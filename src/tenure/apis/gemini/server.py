"""The Gemini API as its provider has it.

What it refuses is put in its own words, as its users report them: https://github.com/google-gemini/gemini-cli/issues/4217 (numbers of calls and responses),
https://ai.google.dev/gemini-api/docs/thought-signatures (signatures), https://ai.google.dev/gemini-api/docs/troubleshooting (errors).
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from tenure.apis.gemini.messages import NO_SIGNATURE, member
from tenure.apis.json_text import Json, load, optional_string
from tenure.apis.reply import fields_of
from tenure.apis.seals import is_ours, seal, seals_text
from tenure.apis.server import Event, Fields, Reply, Server, Unit, data_event, halves, objects, unit_of
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules

_DATA: Final = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
)  # fmt: skip
_STREAMED: Final = ":streamGenerateContent"
_STOPS: Final = {"length": "MAX_TOKENS", "refusal": "SAFETY", "filter": "SAFETY"}
_KINDS: Final = {"invalid_request_error": "INVALID_ARGUMENT", "api_error": "INTERNAL"}  # our words for any API's errors


class GeminiServer(Server):
    """The Gemini API. The model, and whether the reply is streamed, stand in the path."""

    paths = ("/{version}/models/{call}",)  # v1beta, and v1 by which newer SDKs ask
    provider = "google"
    head = ("systemInstruction", "tools")
    body_key = "contents"
    roles = ("user", "model", "function", "tool")
    failure = "INTERNAL"
    names = ("modelVersion", "usageMetadata")
    errors = MappingProxyType(
        {
            400: "INVALID_ARGUMENT",
            401: "UNAUTHENTICATED",
            403: "PERMISSION_DENIED",
            404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED",
            500: "INTERNAL",
            503: "UNAVAILABLE",
            504: "DEADLINE_EXCEEDED",
        }
    )

    def read(self, body: dict[str, Any], path: str) -> dict[str, Any]:
        """The body with what its path says."""
        model, _, _ = path.rpartition("/")[2].rpartition(":")
        return {**body, "model": model, "stream": path.endswith(_STREAMED)}

    def roles_of(self, messages: Sequence[Fields]) -> list[str]:
        """Who speaks; without a role the user."""
        return [optional_string(message, "role") or "user" for message in messages]

    def violations(self, fields: Fields, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
        """Parts that say nothing, and calls, responses and signatures that do not belong together."""
        for n, message in enumerate(messages):
            parts = objects(message.get("parts"))
            if not parts:
                yield f"* GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty."
            for m, part in enumerate(parts):
                if not any(member(part, key) is not None for key in _DATA):
                    yield (
                        f"* GenerateContentRequest.contents[{n}].parts[{m}].data: "
                        "required oneof field 'data' must have one initialized field"
                    )
        yield from _order(messages)
        if rules.thinking == "open_loop":
            yield from _signatures(messages)

    def units(self, message: Json, rules: Rules) -> list[Unit]:
        """Part by part."""
        if not isinstance(message, dict):
            return [unit_of("", message, rules)]
        return [unit_of(optional_string(message, "role"), part, rules) for part in objects(message.get("parts"))]

    def reply(self, reply: Reply, n: int, body: Mapping[str, Any], rules: Rules, usage: Usage) -> dict[str, Any]:
        """A response with one candidate. Calls of newer models have ids; the first of them has the signature, else the last part."""
        parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
        parts += [{"text": reply.text}] if reply.text else []
        for m, call in enumerate(reply.calls):
            named = {"id": f"call_{n}_{m}"} if rules.thinking == "open_loop" else {}  # from Gemini 3 on
            parts.append({"functionCall": {**named, "name": call.name, "args": load(call.arguments)}})
        told = [part for part in parts if "thought" not in part]
        bearer = next((part for part in told if "functionCall" in part), told[-1] if told and reply.thinking else None)
        if bearer is not None:
            bearer["thoughtSignature"] = _signature(bearer)
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": _STOPS.get(reply.stop, "STOP"), "index": 0}
        return {"candidates": [candidate], "responseId": f"response-{n}", "usageMetadata": _usage(usage)}

    def events(self, response: Mapping[str, Any], *, include_usage: bool) -> Iterator[bytes]:
        """Chunks, each a response; the last one has the reason of the end and the whole usage."""
        frame = {key: value for key, value in response.items() if key not in ("candidates", "usageMetadata")}
        candidate = response["candidates"][0]
        begun = {"promptTokenCount": response["usageMetadata"]["promptTokenCount"]}
        pieces = [piece for part in candidate["content"]["parts"] for piece in _pieces(part)]
        for piece in pieces:
            content = {"parts": [piece], "role": "model"}
            yield data_event({"candidates": [{"content": content, "index": 0}], "usageMetadata": begun, **frame})
        end = {"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": candidate["finishReason"], "index": 0}
        yield data_event({"candidates": [end], "usageMetadata": response["usageMetadata"], **frame})

    def count(self, path: str, tokens: int) -> dict[str, Any] | None:
        """The tokens of `countTokens`."""
        return {"totalTokens": tokens} if path.endswith(":countTokens") else None

    def error(self, kind: str, message: str, n: int, *, code: str = "", at_messages: bool = False) -> dict[str, Any]:
        """A status by number and by name."""
        status = _KINDS.get(kind, kind)
        number = next((number for number, name in self.errors.items() if name == status), 400)
        return {"error": {"code": number, "message": message, "status": code or status}}

    def malformed(self) -> bytes:
        """A chunk whose data breaks off in the middle of its JSON."""
        return b'data: {"candidates": [\n\n'


def _order(contents: Sequence[Fields]) -> Iterator[str]:
    for before, content in pairwise([{}, *contents]):
        calls, responses = _members(before, "functionCall"), _members(content, "functionResponse")
        if len(calls) != len(responses) and (calls or responses):
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call parts "
                f"of the function call turn. ({len(calls)} calls, {len(responses)} responses)"
            )
        elif sorted(optional_string(each, "name") for each in calls) != sorted(
            optional_string(each, "name") for each in responses
        ):
            yield "Please ensure that function responses have the names of the function calls they answer."
        ids = [call_id for each in calls if (call_id := optional_string(each, "id"))]
        answered = [call_id for each in responses if (call_id := optional_string(each, "id"))]
        if ids and answered and sorted(ids) != sorted(answered):
            yield f"Please ensure that function responses have the ids of the function calls they answer: {ids}, {answered}."
        if _members(content, "functionCall") and (not before or before.get("role") == "model"):
            yield "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
    if contents and _members(contents[-1], "functionCall"):
        yield "Please ensure that function response turn comes immediately after a function call turn."


def _signatures(contents: Sequence[Fields]) -> Iterator[str]:
    """The first call of each step of the current turn, which began with the user's newest words, has its signature."""
    turn = max(
        (n for n, each in enumerate(contents) if each.get("role") != "model" and not _members(each, "functionResponse")),
        default=-1,
    )
    for n, content in enumerate(contents):
        calls = [part for part in objects(content.get("parts")) if member(part, "functionCall")]
        for part in calls[:1]:
            signature = str(member(part, "thoughtSignature") or "")
            name = str(member(part, "functionCall").get("name"))
            if not signature and n > turn:
                yield (
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing "
                    f"thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}`, position {n + 1}."
                )
        for part in objects(content.get("parts")):
            signature = str(member(part, "thoughtSignature") or "")
            if signature and not _fits(signature, part):
                yield "Thought signature is not valid."


def _fits(signature: str, part: Fields) -> bool:
    """Whether a signature may stand here: one of ours belongs to its part."""
    if signature == NO_SIGNATURE:
        return True
    try:
        plain = base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return False
    return not is_ours(plain) or seals_text(plain, _seal_of(part))


def _signature(part: Mapping[str, Any]) -> str:
    return base64.b64encode(seal(_seal_of(part)).encode()).decode()


def _seal_of(part: Mapping[str, Any]) -> str:
    """What a signature is over: the name of a call, or a text, whatever that says: a stream has it in a part of its own."""
    call = fields_of(member(part, "functionCall"))
    return str(call.get("name")) if call else "text"


def _members(content: Fields, key: str) -> list[Fields]:
    return [found for part in objects(content.get("parts")) if isinstance(found := member(part, key), dict)]


def _pieces(part: Event) -> Iterator[Event]:
    """A text in halves, and its signature behind it; a call as it is."""
    if "text" not in part:
        yield part
        return
    kind = {"thought": True} if part.get("thought") else {}
    yield from ({"text": text, **kind} for text in halves(part["text"]))
    if "thoughtSignature" in part:
        yield {"text": "", "thoughtSignature": part["thoughtSignature"]}


def _usage(usage: Usage) -> dict[str, Any]:
    cached = {"cachedContentTokenCount": usage.cache_read} if usage.cache_read else {}
    prompt = usage.prompt
    return {"promptTokenCount": prompt, "candidatesTokenCount": usage.output, "totalTokenCount": prompt + usage.output, **cached}
