"""What hosts and models say, as the plain JSON of each API: replies, calls, results, words, images, prompts. Nothing of the engine."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, Final

Json = dict[str, Any]
PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # a PNG of one pixel
)


def tool_of(dialect: str, name: str) -> Json:
    """A host's tool as it is declared."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    match dialect:
        case "anthropic":
            return {"name": name, "description": name, "input_schema": schema}
        case "openai-chat":
            return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
        case _:
            return {"type": "function", "name": name, "description": name, "parameters": schema}


def tool_name(tool: Mapping[str, Any]) -> str:
    """Its name."""
    return str(tool.get("name") or tool["function"]["name"])


def call_of(dialect: str, call: Mapping[str, Any]) -> Json:
    """A call as a reply holds it; `extra` are members beside the usual ones."""
    arguments = json.dumps(call["arguments"])
    match dialect:
        case "anthropic":
            return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
        case "openai-chat":
            inner = {"name": call["name"], "arguments": arguments}
            return {"id": call["id"], "type": "function", "function": inner, **call.get("extra", {})}
        case _:
            item = {"type": "function_call", "call_id": call["id"], "name": call["name"], "arguments": arguments}
            return item | call.get("extra", {})


def reply_of(dialect: str, said: str, calls: Sequence[Mapping[str, Any]], thought: Json | None = None) -> Json:
    """A whole reply. `thought`: a block or item of reasoning; for chat, members of the message."""
    made = [call_of(dialect, call) for call in calls]
    match dialect:
        case "anthropic":
            words = [{"type": "text", "text": said}] if said else []
            return {"role": "assistant", "content": [*([thought] if thought else []), *words, *made], "model": "m"}
        case "openai-chat":
            message = {"role": "assistant", "content": said or None} | ({"tool_calls": made} if made else {}) | (thought or {})
            return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "m"}
        case _:
            words = [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said, "annotations": []}]}
            ]
            output = [*([thought] if thought else []), *(words if said else []), *made]
            return {"object": "response", "output": output, "model": "m"}


def result_of(dialect: str, id_: str, text: str, *, listed: bool = False) -> Json:
    """A result; `listed`: with content in parts, where the API knows them."""
    match dialect:
        case "anthropic":
            content: Any = [{"type": "text", "text": text}] if listed else text
            return {"type": "tool_result", "tool_use_id": id_, "content": content}
        case "openai-chat":
            return {"role": "tool", "tool_call_id": id_, "content": text}
        case _:
            return {"type": "function_call_output", "call_id": id_, "output": text}


def image_of(dialect: str) -> Json:
    """A part of a user's message."""
    url = f"data:image/png;base64,{PIXEL}"
    match dialect:
        case "anthropic":
            return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        case "openai-chat":
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return {"type": "input_image", "image_url": url}


def words_of(dialect: str, texts: Sequence[str], *, listed: bool, image: bool = False) -> Json:
    """A user's message."""
    if len(texts) == 1 and not listed and not image:
        return {"role": "user", "content": texts[0]}
    kind = "input_text" if dialect == "openai-responses" else "text"
    parts = [{"type": kind, "text": text} for text in texts]
    return {"role": "user", "content": [*parts, *([image_of(dialect)] if image else [])]}


def usage_of(dialect: str, prompt: int, output: int) -> Json:
    """What a provider reports."""
    names = ("prompt_tokens", "completion_tokens") if dialect == "openai-chat" else ("input_tokens", "output_tokens")
    return {names[0]: prompt, names[1]: output}


def seal(text: str, prefix: str) -> str:
    """A signature over reasoning and, where `prefix` says so, over what came before it."""
    return f"seal-{sha1(text.encode()).hexdigest()[:12]}-{prefix or 'free'}"


def prefix_of(messages: Sequence[Mapping[str, Any]], until: tuple[int, int] | None = None) -> str:
    """A digest of all parts of messages of the Messages API, of those before a part when one is named. Markers and where messages end do not matter."""
    digest = sha1(usedforsecurity=False)
    for n, message in enumerate(messages):
        content = message["content"]
        for m, part in enumerate([{"type": "text", "text": content}] if isinstance(content, str) else content):
            if until == (n, m):
                return digest.hexdigest()[:12]
            digest.update(json.dumps([message["role"], unmarked(part)], sort_keys=True).encode())
    return digest.hexdigest()[:12]


def unmarked(part: Json) -> Json:
    """A part without a marker."""
    return {key: value for key, value in part.items() if key != "cache_control"} if "cache_control" in part else part
