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
        case "gemini":
            return {"functionDeclarations": [{"name": name, "description": name, "parametersJsonSchema": schema}]}
        case "openai-chat":
            return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
        case _:
            return {"type": "function", "name": name, "description": name, "parameters": schema}


def tool_names(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of all tools of a request."""
    declared = [each for tool in tools for each in tool.get("functionDeclarations", [tool])]
    return [str(each.get("name") or each["function"]["name"]) for each in declared]


def call_of(dialect: str, call: Mapping[str, Any]) -> Json:
    """A call as a reply holds it; `extra` are members beside the usual ones."""
    arguments = json.dumps(call["arguments"])
    match dialect:
        case "anthropic":
            return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
        case "gemini":
            made = {"id": call["id"], "name": call["name"], "args": call["arguments"]}
            return {"functionCall": made, **call.get("extra", {})}
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
        case "gemini":
            words = [{"text": said}] if said else []
            content = {"parts": [*([thought] if thought else []), *words, *made], "role": "model"}
            return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "m"}
        case "openai-chat":
            message = {"role": "assistant", "content": said or None} | ({"tool_calls": made} if made else {}) | (thought or {})
            return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "m"}
        case _:
            words = [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said, "annotations": []}]}
            ]
            output = [*([thought] if thought else []), *(words if said else []), *made]
            return {"object": "response", "output": output, "model": "m"}


def result_of(dialect: str, id_: str, text: str, *, listed: bool = False, name: str = "read") -> Json:
    """A result; `listed`: with content in parts, where the API knows them."""
    match dialect:
        case "anthropic":
            content: Any = [{"type": "text", "text": text}] if listed else text
            return {"type": "tool_result", "tool_use_id": id_, "content": content}
        case "gemini":
            return {"functionResponse": {"id": id_, "name": name, "response": {"result" if listed else "output": text}}}
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
        case "gemini":
            return {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
        case "openai-chat":
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return {"type": "input_image", "image_url": url}


def words_of(dialect: str, texts: Sequence[str], *, listed: bool, image: bool = False) -> Json:
    """A user's message."""
    if dialect == "gemini":
        return {"role": "user", "parts": [*({"text": text} for text in texts), *([image_of(dialect)] if image else [])]}
    if len(texts) == 1 and not listed and not image:
        return {"role": "user", "content": texts[0]}
    kind = "input_text" if dialect == "openai-responses" else "text"
    parts = [{"type": kind, "text": text} for text in texts]
    return {"role": "user", "content": [*parts, *([image_of(dialect)] if image else [])]}


def usage_of(dialect: str, prompt: int, output: int) -> Json:
    """What a provider reports."""
    if dialect == "gemini":
        return {"promptTokenCount": prompt, "candidatesTokenCount": output}
    names = ("prompt_tokens", "completion_tokens") if dialect == "openai-chat" else ("input_tokens", "output_tokens")
    return {names[0]: prompt, names[1]: output}


def body_of(arguments: Json) -> Json:
    """The body that the SDK of Google makes of a call's arguments, as far as they are used here; of another SDK's they are the body."""
    config = dict(arguments.get("config", {}))
    named = {"tools": "tools", "system_instruction": "systemInstruction"}
    body = {named[key]: config.pop(key) for key in named if key in config}
    rest = {key: value for key, value in arguments.items() if key != "config"}
    return rest | body | ({"generationConfig": config} if config else {})


def results_of(dialect: str, results: Sequence[Json]) -> Json:
    """A user's message with results and other parts, of an API that has them so."""
    return {"role": "user", "parts" if dialect == "gemini" else "content": list(results)}


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
