"""Answers to calls of the virtual tools, in each provider's shape.

Anthropic: content of a `tool_result` may be text, images and documents (https://platform.claude.com/docs/en/api/messages). Responses: the `output`
of a `function_call_output` is a string or a list of input_text, input_image and input_file
(https://platform.openai.com/docs/api-reference/responses/create). Chat Completions: a tool message takes text only.
"""

from collections.abc import Sequence
from typing import Any

from tenure.apis.media import Source

_PDF = "application/pdf"


def carries(dialect: str, found: Source) -> bool:
    """Whether a tool's result can hold this medium."""
    has_bytes = found.image or found.media_type == _PDF
    match dialect:
        case "anthropic":
            return bool((found.data and has_bytes) or found.url)
        case "openai-responses":
            return bool((found.data and has_bytes) or (found.image and found.url))
        case _:
            return False


def beside(dialect: str, named: Sequence[tuple[str, Source | None, int]], room: int) -> tuple[tuple[Source, ...], str]:
    """Which media come beside the text of an answer, and what is said of those that do not.

    `named`: each medium's name for a reader, its source if the record holds it, and its tokens; `room` tokens are left.
    """
    brought: list[Source] = []
    notes: list[str] = []
    for name, found, tokens in named:
        if found is None or not carries(dialect, found):
            notes.append(f"{name} is not shown: a tool's result of this API cannot hold it. The user can restore it in place")
        elif tokens > room:
            notes.append(
                f"{name} is not shown: its {tokens:,} tokens are more than there is room for. The user can restore it in place"
            )
        else:
            brought.append(found)
            room -= tokens
    return tuple(brought), "".join(f"\n[{each}.]" for each in notes)


def answered(dialect: str, call_id: str, text: str, *, error: bool = False, media: Sequence[Source] = ()) -> dict[str, Any]:
    """The result of a call. Anthropic: a block for the next user message; the others: a message or item of its own."""
    match dialect:
        case "anthropic":
            content: Any = [{"type": "text", "text": text}, *map(_anthropic, media)] if media else text
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
            return result | ({"is_error": True} if error else {})
        case "openai-responses":
            output: Any = [{"type": "input_text", "text": text}, *map(_responses, media)] if media else text
            return {"type": "function_call_output", "call_id": call_id, "output": output}
        case _:
            return {"role": "tool", "tool_call_id": call_id, "content": text}


def _anthropic(found: Source) -> dict[str, Any]:
    kind = "image" if found.image else "document"
    if found.data:
        return {"type": kind, "source": {"type": "base64", "media_type": found.media_type, "data": found.data}}
    return {"type": kind, "source": {"type": "url", "url": found.url}}


def _responses(found: Source) -> dict[str, Any]:
    if found.image:
        return {"type": "input_image", "image_url": found.data_url}
    return {"type": "input_file", "filename": found.name or "document.pdf", "file_data": found.data_url}
