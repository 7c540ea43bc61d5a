"""A whole response as the events that a provider would stream. Pure.

https://platform.claude.com/docs/en/build-with-claude/streaming https://platform.openai.com/docs/api-reference/responses-streaming
https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from tenure.apis.json_text import dump
from tenure.testing.script import Fault, halves, wire_error

Event = dict[str, Any]


def events(response: Mapping[str, Any], dialect: str, *, include_usage: bool = False) -> Iterator[bytes]:
    """The server-sent events of a response; `include_usage` is what Chat Completions asks for in `stream_options`."""
    match dialect:
        case "anthropic":
            yield from (_named(event) for event in _message(response))
        case "openai-responses":
            numbers = count()
            yield from (_named({**event, "sequence_number": next(numbers)}) for event in _response(response))
        case _:
            yield from (f"data: {dump(chunk)}\n\n".encode() for chunk in _chunks(response, include_usage=include_usage))
            yield b"data: [DONE]\n\n"


def malformed(dialect: str) -> bytes:
    """An event whose data breaks off in the middle of its JSON."""
    return b"event: content_block_delta\ndata: {\n\n" if dialect == "anthropic" else b'data: {"choices": [\n\n'


def error_event(dialect: str) -> bytes:
    """How a provider says in the midst of a stream that it has failed."""
    error = wire_error(Fault(status=529 if dialect == "anthropic" else 500), dialect, 0)
    match dialect:
        case "anthropic":
            return _named(error)
        case "openai-responses":
            said = error["error"]
            code = said["code"] or said["type"]
            return _named({"type": "error", "code": code, "message": said["message"], "param": None, "sequence_number": 0})
        case _:
            return f"data: {dump(error)}\n\n".encode()


def _named(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: {dump(event)}\n\n".encode()


def _message(response: Mapping[str, Any]) -> Iterator[Event]:
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
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage["output_tokens"]}}
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


def _chunks(response: Mapping[str, Any], *, include_usage: bool) -> Iterator[Event]:
    frame = {key: response[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = response["choices"][0]
    message = choice["message"]
    deltas: list[Event] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": text} for text in halves(message.get("reasoning_content") or "") if text]
    deltas += [{"content": text} for text in halves(message["content"] or "") if text]
    deltas += [{"refusal": text} for text in halves(message["refusal"] or "") if text]
    for n, call in enumerate(message.get("tool_calls", [])):
        name, said = call["function"]["name"], call["function"]["arguments"]
        deltas.append({"tool_calls": [call | {"index": n, "function": {"name": name, "arguments": ""}}]})
        deltas += [{"tool_calls": [{"index": n, "function": {"arguments": text}}]} for text in halves(said)]
    for delta in deltas:
        yield frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if include_usage:
        yield frame | {"choices": [], "usage": response["usage"]}


def _response(response: Mapping[str, Any]) -> Iterator[Event]:
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
