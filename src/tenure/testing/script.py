"""What a scripted model says, and how each provider would put it. Pure: the same script gives the same bytes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from tenure.apis.json_text import load
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules
from tenure.testing.prefix import units
from tenure.testing.seals import seal, sealed_call_id


class Call(Struct, frozen=True, kw_only=True):
    """A tool call in a reply."""

    name: str
    arguments: str = "{}"  # JSON


class Reply(Struct, frozen=True, kw_only=True):
    """One turn of the model: it thinks, speaks and calls, in this order."""

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    stop: Literal["", "length", "refusal", "filter"] = (
        ""  # why it ended early: its limit, its will, or a filter. Empty: it did not
    )


class Fault(Struct, frozen=True, kw_only=True):
    """An error in place of a reply: the provider's own for this status, where nothing else is said."""

    status: int
    message: str = ""
    code: str = ""  # as OpenAI gives it beside the type
    retry_after_s: float | None = None  # goes out as `retry-after` in whole seconds, else as `retry-after-ms`
    raw: str = ""  # a body that is no JSON, such as a proxy's page


class Broken(Struct, frozen=True, kw_only=True):
    """A reply that goes wrong on its way, when streamed, behind its first `after` events.

    cut: the connection breaks. end: it closes as if all were said. malformed: an event comes whose data is no JSON, then the rest. error:
    an error event comes, and nothing more. stall: nothing more comes, and the connection stays open.
    """

    reply: Reply
    how: Literal["cut", "end", "malformed", "error", "stall"]
    after: int = 3


class Script(Struct, frozen=True, kw_only=True):
    """What comes of each request that was valid, in order."""

    replies: tuple[Reply | Fault | Broken, ...]


# The status of an error -> its type: platform.claude.com/docs/en/api/errors, platform.openai.com/docs/guides/error-codes
_CLAUDE_ERRORS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI_ERRORS: Final = {429: "rate_limit_error", 503: "service_unavailable_error"}
_MESSAGES: Final = {
    401: "Incorrect API key provided.",
    404: "The model does not exist or you do not have access to it.",
    429: "Rate limit reached.",
    500: "The server had an error while processing your request.",
    529: "Overloaded",
}


def wire_error(fault: Fault, dialect: str, n: int) -> dict[str, Any]:
    """The body of an error; `n` counts requests."""
    usual = "invalid_request_error" if fault.status < 500 else "api_error" if dialect == "anthropic" else "server_error"
    message = fault.message or _MESSAGES.get(fault.status, "Something went wrong.")
    if dialect == "anthropic":
        kind = _CLAUDE_ERRORS.get(fault.status, usual)
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": f"req_{n}"}
    return {
        "error": {"message": message, "type": _OPENAI_ERRORS.get(fault.status, usual), "param": None, "code": fault.code or None}
    }


def wire(reply: Reply, n: int, body: Mapping[str, Any], rules: Rules, usage: Usage) -> dict[str, Any]:
    """The whole response to the `n`-th valid request, not streamed."""
    model = str(body.get("model", ""))
    match rules.dialect:
        case "anthropic":
            return _message(reply, n, body, rules) | {"model": model, "usage": _message_usage(usage)}
        case "openai-responses":
            return _response(reply, n, rules) | {"model": model, "usage": _response_usage(usage)}
        case _:
            return _completion(reply, n) | {"model": model, "usage": _completion_usage(usage)}


def _message(reply: Reply, n: int, body: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    signature = ""
    if reply.thinking:
        bound = [unit.text for unit in units(body, rules)] if rules.thinking == "prefix_bound" else None
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
        "stop_reason": _CLAUDE_STOPS.get(reply.stop) or ("tool_use" if reply.calls else "end_turn"),
        "stop_sequence": None,
    }


_CLAUDE_STOPS: Final = {"length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
_CHAT_STOPS: Final = {"length": "length", "filter": "content_filter"}


def _message_usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.uncached,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _completion(reply: Reply, n: int) -> dict[str, Any]:
    calls = [
        {"id": f"call_{n}_{m}", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for m, call in enumerate(reply.calls)
    ]
    refused = reply.stop == "refusal"
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    message |= {"content": None, "refusal": reply.text} if refused else {}
    message |= {"reasoning_content": reply.thinking} if reply.thinking else {}
    message |= {"tool_calls": calls} if calls else {}
    stop = _CHAT_STOPS.get(reply.stop) or ("tool_calls" if calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": stop, "logprobs": None}
    return {"id": f"chatcmpl-{n}", "object": "chat.completion", "created": 1_700_000_000 + n, "choices": [choice]}


def _completion_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
    }


def _response(reply: Reply, n: int, rules: Rules) -> dict[str, Any]:
    unit = f"r{n}" if reply.thinking and rules.reasoning_unit else str(n)
    output: list[dict[str, Any]] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        output.append({"id": f"rs_{unit}", "type": "reasoning", "summary": summary, "encrypted_content": seal(reply.thinking)})
    if reply.text:
        part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
        part = {"type": "refusal", "refusal": reply.text} if reply.stop == "refusal" else part
        output.append({"id": f"msg_{unit}_0", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    for m, call in enumerate(reply.calls, 1):
        said = {"call_id": f"call_{n}_{m}", "name": call.name, "arguments": call.arguments, "status": "completed"}
        output.append({"id": f"fc_{unit}_{m}", "type": "function_call", **said})
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
    }


def _response_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.output,
    }


def output_text(reply: Reply) -> str:
    """Everything a reply says, for counting its tokens."""
    return "".join([reply.thinking, reply.text, *(call.name + call.arguments for call in reply.calls)])


def halves(text: str) -> Sequence[str]:
    """`text` in two pieces, as a stream would bring it; one where there is too little of it."""
    middle = len(text) // 2
    return [text[:middle], text[middle:]] if middle else [text]
