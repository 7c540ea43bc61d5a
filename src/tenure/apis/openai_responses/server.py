"""The Responses API as its provider has it.

https://platform.openai.com/docs/guides/error-codes https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from tenure.apis.json_text import Json, dump, load, object_of, optional_string
from tenure.apis.openai_chat.server import ERRORS
from tenure.apis.seals import is_ours, reasoning_of, seal, seals_text
from tenure.apis.server import Event, Fields, Reply, Server, Unit, halves, named_event, objects, unit_of
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules

# Of an item: what it is called and in what state it is, and what Codex notes beside an item that it sends again.
_UNREAD: Final = frozenset("id status annotations logprobs namespace internal_chat_message_metadata_passthrough".split())


class OpenAIResponsesServer(Server):
    """The Responses API."""

    paths = ("/v1/responses", "/v1/responses/input_tokens")
    provider = "openai"
    head = ("tools", "instructions")
    body_key = "input"
    roles = ("system", "developer", "user", "assistant")
    errors = ERRORS

    def read(self, body: dict[str, Any], path: str) -> dict[str, Any]:
        """A string as input is one user message."""
        given = body.get("input")
        return {**body, "input": [{"role": "user", "content": given}]} if isinstance(given, str) else body

    def roles_of(self, messages: Sequence[Fields]) -> list[str]:
        """Only messages have roles, other items none."""
        return [optional_string(message, "role") for message in messages if "role" in message]

    def violations(self, fields: Fields, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
        """Pairs of calls and outputs, contents, and reasoning with what it led to."""
        calls: list[str] = []
        answered: set[str] = set()
        for n, item in enumerate(messages):
            kind, call = optional_string(item, "type"), optional_string(item, "call_id")
            if kind in ("function_call", "custom_tool_call"):
                calls.append(call)
            elif kind in ("function_call_output", "custom_tool_call_output"):
                if call not in calls or call in answered:
                    yield f"No tool call found for function call output with call_id {call}."
                answered.add(call)
            elif "role" in item and kind in ("", "message") and item.get("content") in (None, []):
                yield f"Missing required parameter: 'input[{n}].content'."
        yield from (f"No tool output found for function call {call}." for call in calls if call not in answered)
        if rules.reasoning_unit:
            yield from _reasoning_units(messages)

    def units(self, message: Json, rules: Rules) -> list[Unit]:
        """An item as the model reads it: ids, states and what a client notes beside them are no part of the prompt."""
        return [unit_of("", _as_read(message), rules)]

    def reply(self, reply: Reply, n: int, body: Mapping[str, Any], rules: Rules, usage: Usage) -> dict[str, Any]:
        """A response with its output items."""
        unit = f"r{n}" if reply.thinking and rules.reasoning_unit else str(n)
        output: list[dict[str, Any]] = []
        if reply.thinking:
            summary = [{"type": "summary_text", "text": reply.thinking}]
            output.append(
                {"id": f"rs_{unit}", "type": "reasoning", "summary": summary, "encrypted_content": seal(reply.thinking)}
            )
        if reply.text:
            part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
            part = {"type": "refusal", "refusal": reply.text} if reply.stop == "refusal" else part
            output.append(
                {"id": f"msg_{unit}_0", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
            )
        declared = _declarations(body) if reply.calls else {}
        for m, call in enumerate(reply.calls, 1):
            tool = declared.get(call.name) or _Declaration()
            is_custom = tool.kind == "custom"
            item: dict[str, Any] = {"id": f"{'ctc' if is_custom else 'fc'}_{unit}_{m}", "call_id": f"call_{n}_{m}"}
            item |= {"type": "custom_tool_call" if is_custom else "function_call", "name": call.name}
            item |= {"namespace": tool.namespace} if tool.namespace else {}
            output.append(item | {"input" if is_custom else "arguments": call.arguments, "status": "completed"})
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(reply.stop)
        return {
            "id": f"resp_{n}",
            "object": "response",
            "created_at": 1_700_000_000 + n,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": list[Any](),
            "top_p": 1.0,
            "usage": _usage(usage),
        }

    def events(self, response: Mapping[str, Any], *, include_usage: bool) -> Iterator[bytes]:
        """Named and numbered events."""
        numbers = count()
        return (named_event({**event, "sequence_number": next(numbers)}) for event in _events(response))

    def count(self, path: str, tokens: int) -> dict[str, Any] | None:
        """The tokens of `input_tokens`."""
        return {"object": "response.input_tokens", "input_tokens": tokens} if path.endswith("/input_tokens") else None

    def error_event(self, error: dict[str, Any]) -> bytes:
        """An event of that type, whose fields are the error's."""
        told = error["error"]
        event = {"type": "error", "code": told["code"] or told["type"], "message": told["message"]}
        return named_event({**event, "param": None, "sequence_number": 0})


class _Declaration(NamedTuple):
    """What a tool was declared as."""

    namespace: str = ""
    kind: str = "function"


def _declarations(body: Mapping[str, Any]) -> dict[str, _Declaration]:
    """The tools of a request by name. They stand in `tools`, or in an item before the messages."""
    fields = object_of(load(dump(body)), "request")
    items = [item for item in objects(fields.get("input")) if item.get("type") == "additional_tools"]
    declared: dict[str, _Declaration] = {}
    for tool in (tool for holder in (fields, *items) for tool in objects(holder.get("tools"))):
        is_group = tool.get("type") == "namespace"
        namespace = optional_string(tool, "name") if is_group else ""
        for each in objects(tool.get("tools")) if is_group else [tool]:
            declared[optional_string(each, "name")] = _Declaration(namespace, optional_string(each, "type"))
    return declared


def _reasoning_units(items: Sequence[Fields]) -> Iterator[str]:
    seen: set[str] = set()
    for n, item in enumerate(items):
        kind, item_id = optional_string(item, "type"), optional_string(item, "id")
        needed = reasoning_of(item_id)
        if needed and needed not in seen:
            yield f"Item '{item_id}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'."
        if item_id and item_id in seen:
            yield f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
        seen.add(item_id)
        if kind != "reasoning":
            continue
        follower = items[n + 1] if n + 1 < len(items) else {}
        if not _is_model_made(follower) or reasoning_of(optional_string(follower, "id")) not in ("", item_id):
            yield f"Item '{item_id}' of type 'reasoning' was provided without its required following item."
        sealed = optional_string(item, "encrypted_content")
        text = "".join(optional_string(part, "text") for part in objects(item.get("summary")))
        if is_ours(sealed) and not seals_text(sealed, text):
            yield f"The encrypted content for item {item_id} could not be verified."


def _is_model_made(item: Fields) -> bool:
    kind = optional_string(item, "type") or "message"
    return bool(item) and not kind.endswith("_output") and (kind != "message" or item.get("role") == "assistant")


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.output,
    }


def _events(response: Mapping[str, Any]) -> Iterator[Event]:
    begun: Event = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for n, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": n, "item": _begun(item)}
        yield from _item({"output_index": n, "item_id": item["id"]}, item)
        yield {"type": "response.output_item.done", "output_index": n, "item": item}
    yield {"type": f"response.{response['status']}", "response": dict(response)}


def _begun(item: Event) -> Event:
    empty: Mapping[str, Event] = {
        "message": {"content": [], "status": "in_progress"},
        "reasoning": {"summary": [], "encrypted_content": ""},
        "function_call": {"arguments": "", "status": "in_progress"},
        "custom_tool_call": {"input": "", "status": "in_progress"},
    }
    return item | empty[item["type"]]


def _item(place: Event, item: Event) -> Iterator[Event]:
    match item["type"]:
        case "message":
            yield from _part(place | {"content_index": 0}, item["content"][0])
        case "reasoning":
            part = item["summary"][0]
            at = place | {"summary_index": 0}
            yield at | {"type": "response.reasoning_summary_part.added", "part": part | {"text": ""}}
            yield from (at | {"type": "response.reasoning_summary_text.delta", "delta": text} for text in halves(part["text"]))
            yield at | {"type": "response.reasoning_summary_text.done", "text": part["text"]}
            yield at | {"type": "response.reasoning_summary_part.done", "part": part}
        case "custom_tool_call":
            yield from (
                place | {"type": "response.custom_tool_call_input.delta", "delta": text} for text in halves(item["input"])
            )
            yield place | {"type": "response.custom_tool_call_input.done", "input": item["input"]}
        case _:
            said = item["arguments"]
            yield from (place | {"type": "response.function_call_arguments.delta", "delta": text} for text in halves(said))
            yield place | {"type": "response.function_call_arguments.done", "name": item["name"], "arguments": said}


def _part(at: Event, part: Event) -> Iterator[Event]:
    key, more = ("text", {"logprobs": list[Any]()}) if part["type"] == "output_text" else ("refusal", {})
    yield at | {"type": "response.content_part.added", "part": part | {key: ""}}
    yield from (at | {"type": f"response.{part['type']}.delta", "delta": text, **more} for text in halves(part[key]))
    yield at | {"type": f"response.{part['type']}.done", key: part[key], **more}
    yield at | {"type": "response.content_part.done", "part": part}


def _as_read(item: Json) -> Json:
    """An item or a part of one without members that the model does not read, in one order."""
    if not isinstance(item, dict):
        return item
    read = {key: item[key] for key in sorted(item) if key not in _UNREAD}
    content = read.get("content")
    return {**read, "content": [_as_read(part) for part in content]} if isinstance(content, list) else read
