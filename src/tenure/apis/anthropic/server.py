"""The Messages API as its provider has it.

https://platform.claude.com/docs/en/api/errors https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from tenure.apis.json_text import Json, dump, load, optional_string
from tenure.apis.seals import is_ours, led_to, needs_thinking, seal, sealed_call_id, seals_prefix, seals_text
from tenure.apis.server import Event, Fields, Reply, Server, Unit, halves, named_event, parts_of, unit_of, units_of
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules

_THINKING: Final = ("thinking", "redacted_thinking")
_STOPS: Final = {"length": "max_tokens", "refusal": "refusal", "filter": "refusal"}


class AnthropicServer(Server):
    """The Messages API."""

    paths = ("/v1/messages", "/v1/messages/count_tokens")
    provider = "anthropic"
    head = ("tools", "system")
    roles = ("user", "assistant", "system")
    errors = MappingProxyType(
        {
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
            413: "request_too_large",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
    )
    overloaded = 529
    failure = "api_error"

    def violations(self, fields: Fields, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
        """Contents, pairs of calls and results, and signed thinking."""
        for n, message in enumerate(messages):
            yield from _content(n, message, last=n == len(messages) - 1)
        runs = [
            (role, [part for message in run for part in parts_of(message)])
            for role, run in groupby(messages, key=lambda message: optional_string(message, "role"))
        ]
        yield from _pairs([run for run in runs if run[0] != "system"])
        yield from _thinking(self, fields, runs, rules)

    def role_errors(self, messages: Sequence[Fields], roles: Sequence[str], rules: Rules) -> Iterator[str]:
        """What is wrong with messages of a system; those without content only carry settings, and may stand anywhere."""
        if "system" in roles and not rules.system_messages:
            yield 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
            return
        said = [(n, role) for n, role in enumerate(roles) if role != "system" or messages[n].get("content")]
        for place, (n, role) in enumerate(said):
            before, after = said[place - 1][1] if place else "", said[place + 1][1] if place + 1 < len(said) else "assistant"
            if role != "system":
                continue
            if not before:
                yield f"messages.{n}: use the top-level 'system' parameter for the initial system prompt"
            elif before != "user" or after != "assistant":
                yield f"messages.{n}: a system message must follow a user message and precede an assistant message or end the array"

    def units(self, message: Json, rules: Rules) -> list[Unit]:
        """The parts of a message."""
        if not isinstance(message, dict):
            return [unit_of("", message, rules)]
        content = message.get("content")
        parts: list[Json] = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        return [unit_of(str(message.get("role")), part, rules) for part in parts]

    def reply(self, reply: Reply, n: int, body: Mapping[str, Any], rules: Rules, usage: Usage) -> dict[str, Any]:
        """A message."""
        content: list[dict[str, Any]] = []
        signature = ""
        if reply.thinking:
            bound = [unit.text for unit in units_of(self, body, rules)] if rules.thinking == "prefix_bound" else None
            signature = seal(reply.thinking, bound)
            content.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        for m, call in enumerate(reply.calls):
            call_id = sealed_call_id(signature, n * 100 + m) if signature else f"toolu_{n}_{m}"
            content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": load(call.arguments)})
        return {
            "id": f"msg_{n}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": _STOPS.get(reply.stop) or ("tool_use" if reply.calls else "end_turn"),
            "stop_sequence": None,
            "usage": _usage(usage),
        }

    def events(self, response: Mapping[str, Any], *, include_usage: bool) -> Iterator[bytes]:
        """Named events."""
        return map(named_event, _events(response))

    def count(self, path: str, tokens: int) -> dict[str, Any] | None:
        """The tokens of `count_tokens`."""
        return {"input_tokens": tokens} if path.endswith("/count_tokens") else None

    def error(self, kind: str, message: str, n: int, *, code: str = "", at_messages: bool = False) -> dict[str, Any]:
        """An error under its request."""
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": f"req_{n}"}

    def error_event(self, error: dict[str, Any]) -> bytes:
        """An event of that type."""
        return named_event(error)

    def malformed(self) -> bytes:
        """An event whose data breaks off in the middle of its JSON."""
        return b"event: content_block_delta\ndata: {\n\n"


def _content(n: int, message: Fields, *, last: bool) -> Iterator[str]:
    parts = parts_of(message)
    assistant = message.get("role") == "assistant"
    if not parts and not (last and assistant) and message.get("role") != "system":
        yield f"messages.{n}: all messages must have non-empty content except for the optional final assistant message"
    for m, part in enumerate(parts):
        if part.get("type") == "text" and not optional_string(part, "text").strip():
            yield f"messages.{n}.content.{m}: text content blocks must contain non-whitespace text"
        if part.get("type") in _THINKING and "cache_control" in part:
            yield f"messages.{n}.content.{m}: thinking blocks cannot have cache_control set"
    if assistant and parts and parts[-1].get("type") in _THINKING:
        yield f"messages.{n}: The final block in an assistant message cannot be `thinking`."


def _pairs(runs: Sequence[tuple[str, list[Fields]]]) -> Iterator[str]:
    seen: set[str] = set()
    open_ids: list[str] = []
    for n, (role, parts) in enumerate(runs):
        results = [optional_string(part, "tool_use_id") for part in parts if part.get("type") == "tool_result"]
        first = [part.get("type") == "tool_result" for part in parts]
        missing = [call for call in open_ids if call not in results]
        if missing or (open_ids and role == "user" and first != sorted(first, reverse=True)):
            yield (
                f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing or open_ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        for m, call in enumerate(results):
            if call not in open_ids or call in results[:m]:
                yield (
                    f"messages.{n}.content.{m}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        open_ids = [optional_string(part, "id") for part in parts if part.get("type") == "tool_use"]
        if role != "assistant" and open_ids:
            yield f"messages.{n}: `tool_use` blocks can only be in `assistant` messages"
        if len({*open_ids} - seen) < len(open_ids):
            yield f"messages.{n}: `tool_use` ids must be unique"
        seen.update(open_ids)
    if open_ids:
        yield f"messages: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(open_ids)}."


def _thinking(server: Server, fields: Fields, runs: Sequence[tuple[str, list[Fields]]], rules: Rules) -> Iterator[str]:
    bound = {key: fields[key] for key in fields if key != "cache_control"} if rules.thinking == "prefix_bound" else {}
    texts = [unit.text for unit in units_of(server, bound, rules)]
    at = len(texts) - sum(len(parts) for _, parts in runs)
    for n, (_, parts) in enumerate(runs):
        for m, part in enumerate(parts):
            signature = optional_string(part, "signature") or optional_string(part, "data")
            if part.get("type") not in _THINKING or not is_ours(signature):
                at += 1
                continue
            if part.get("type") == "thinking" and not seals_text(signature, optional_string(part, "thinking")):
                yield f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block"
            elif rules.thinking == "prefix_bound" and not seals_prefix(signature, texts[:at]):
                yield f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
            at += 1
    enabled = fields.get("thinking")
    must = isinstance(enabled, dict) and enabled.get("type") == "enabled"
    for n in _kept_whole(runs, rules):
        yield from _missing(n, runs[n][1], must=must and n == len(runs) - 2)


def _kept_whole(runs: Sequence[tuple[str, list[Fields]]], rules: Rules) -> list[int]:
    """The runs of the assistant whose thinking must stay, by the rule."""
    assistants = [n for n, (role, _) in enumerate(runs) if role == "assistant"]
    if rules.thinking == "last_message":
        return assistants[-1:]
    spoken = [parts for role, parts in runs if role != "system"]
    is_open = bool(spoken) and any(part.get("type") == "tool_result" for part in spoken[-1])
    if rules.thinking != "open_loop" or not is_open:
        return []
    human = [
        n for n, (role, parts) in enumerate(runs) if role == "user" and not any(p.get("type") == "tool_result" for p in parts)
    ]
    return [n for n in assistants if n > max(human, default=-1)]


def _missing(n: int, parts: Sequence[Fields], *, must: bool) -> Iterator[str]:
    signatures = [
        optional_string(part, "signature") or optional_string(part, "data") for part in parts if part.get("type") in _THINKING
    ]
    calls = [optional_string(part, "id") for part in parts if part.get("type") == "tool_use"]
    cut = [call for call in calls if needs_thinking(call) and not any(led_to(signature, call) for signature in signatures)]
    if cut or (must and calls and parts[0].get("type") not in _THINKING):
        yield (
            f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{optional_string(parts[0], 'type')}`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
            "(preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.uncached,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _events(response: Mapping[str, Any]) -> Iterator[Event]:
    usage = response["usage"]
    yield {
        "type": "message_start",
        "message": {**response, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}},
    }
    for n, part in enumerate(response["content"]):
        yield {"type": "content_block_start", "index": n, "content_block": _emptied(part)}
        for delta in _deltas(part):
            yield {"type": "content_block_delta", "index": n, "delta": delta}
        yield {"type": "content_block_stop", "index": n}
    stop = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": usage}  # cumulative
    yield {"type": "message_stop"}


_EMPTY: Final[Mapping[str, Event]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def _emptied(part: Event) -> Event:
    return part | _EMPTY[part["type"]]


def _deltas(part: Event) -> Iterator[Event]:
    match part["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": text} for text in halves(part["text"]))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": text} for text in halves(part["thinking"]))
            yield {"type": "signature_delta", "signature": part["signature"]}
        case _:
            yield from ({"type": "input_json_delta", "partial_json": text} for text in halves(dump(part["input"])))
