"""Chat Completions as its provider has it.

https://platform.openai.com/docs/guides/error-codes https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from tenure.apis.json_text import optional_string
from tenure.apis.server import Event, Fields, Reply, Server, data_event, halves, objects
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules

ERRORS: Final = MappingProxyType({429: "rate_limit_error", 503: "service_unavailable_error"})
_STOPS: Final = {"length": "length", "filter": "content_filter"}


class OpenAIChatServer(Server):
    """Chat Completions."""

    paths = ("/v1/chat/completions",)
    provider = "openai"
    roles = ("system", "developer", "user", "assistant", "tool", "function")
    errors = ERRORS

    def violations(self, fields: Fields, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
        """Contents, pairs of calls and results, and reasoning that belongs to calls."""
        open_ids: list[str] = []
        for n, message in enumerate(messages):
            role, content = message.get("role"), message.get("content")
            if role == "tool":
                call = optional_string(message, "tool_call_id")
                if call in open_ids:
                    open_ids.remove(call)
                else:
                    yield f"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' ({call})."
            elif open_ids:
                yield _unanswered(open_ids)
                open_ids = []
            calls = message.get("tool_calls")
            if calls == []:
                yield f"Invalid 'messages[{n}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array."
            said = calls or message.get("function_call") or message.get("refusal") or message.get("audio")
            if content == [] or (content is None and not (role == "assistant" and said)):
                yield f"Invalid value for 'content': expected a string, got null (messages[{n}])."
            if role == "assistant":
                open_ids = [optional_string(call, "id") for call in objects(calls)]
                if calls and rules.call_reasoning and not isinstance(message.get("reasoning_content"), str):
                    yield "The reasoning_content in the thinking mode must be passed back to the API."
        if open_ids:
            yield _unanswered(open_ids)

    def reply(self, reply: Reply, n: int, body: Mapping[str, Any], rules: Rules, usage: Usage) -> dict[str, Any]:
        """A completion of one choice."""
        calls = [
            {"id": f"call_{n}_{m}", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for m, call in enumerate(reply.calls)
        ]
        refused = reply.stop == "refusal"
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        message |= {"content": None, "refusal": reply.text} if refused else {}
        message |= {"reasoning_content": reply.thinking} if reply.thinking else {}
        message |= {"tool_calls": calls} if calls else {}
        stop = _STOPS.get(reply.stop) or ("tool_calls" if calls else "stop")
        choice = {"index": 0, "message": message, "finish_reason": stop, "logprobs": None}
        frame = {"id": f"chatcmpl-{n}", "object": "chat.completion", "created": 1_700_000_000 + n}
        return {**frame, "choices": [choice], "usage": _usage(usage)}

    def events(self, response: Mapping[str, Any], *, include_usage: bool) -> Iterator[bytes]:
        """Chunks, the last of them with the usage where that was asked for."""
        yield from map(data_event, _chunks(response, include_usage=include_usage))
        yield b"data: [DONE]\n\n"


def _unanswered(ids: Sequence[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}"
    )


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
    }


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
