"""Conversations in each dialect, as JSON values and as JSON texts in every spelling."""

import json
from typing import Any

from hypothesis import strategies as st

Value = dict[str, Any]

words = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
shown = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
extras = st.dictionaries(
    st.sampled_from(["x_unknown", "metadata", "vendor"]), st.one_of(words, st.integers(), st.none()), max_size=2
)
arguments = st.dictionaries(words, st.one_of(words, st.integers(), st.floats(allow_nan=False, allow_infinity=False)), max_size=2)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAC56t6BAAAAAElFTkSuQmCC"  # header of a 2 x 3 PNG

anthropic_image = st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
anthropic_text = st.builds(lambda text, more: {"type": "text", "text": text, **more}, shown, extras)


@st.composite
def anthropic(draw: st.DrawFn) -> list[Value]:
    """Turns of a human text, calls and their results, and an answer."""
    messages: list[Value] = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(st.one_of(shown, st.lists(anthropic_text, min_size=1, max_size=2)))})
        ids = [f"toolu_{turn}_{n}" for n in range(draw(st.integers(0, 3)))]
        calls = [{"type": "tool_use", "id": call, "name": "read", "input": draw(arguments)} for call in ids]
        thinking = [{"type": "thinking", "thinking": draw(words), "signature": draw(words)}] if draw(st.booleans()) else []
        texts = draw(st.lists(anthropic_text, max_size=1)) or ([] if calls else [{"type": "text", "text": "ok"}])
        messages.append({"role": "assistant", "content": [*thinking, *texts, *calls], **draw(extras)})
        if calls:
            content = st.one_of(shown, st.lists(st.one_of(anthropic_text, anthropic_image), max_size=2))
            results = [{"type": "tool_result", "tool_use_id": call, "content": draw(content), **draw(extras)} for call in ids]
            messages.append({"role": "user", "content": results})
            messages.append({"role": "assistant", "content": draw(shown)})
    return messages


@st.composite
def chat(draw: st.DrawFn) -> list[Value]:
    """The same shape of conversation, with system prompt."""
    messages: list[Value] = [{"role": draw(st.sampled_from(["system", "developer"])), "content": draw(shown)}]
    part = st.builds(lambda text, more: {"type": "text", "text": text, **more}, shown, extras)
    image = st.just({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}})
    for turn in range(draw(st.integers(1, 3))):
        messages.append(
            {"role": "user", "content": draw(st.one_of(shown, st.lists(st.one_of(part, image), min_size=1, max_size=2)))}
        )
        ids = [f"call_{turn}_{n}" for n in range(draw(st.integers(0, 3)))]
        calls = [
            {
                "id": call,
                "type": "function",
                "function": {"name": "read", "arguments": json.dumps(draw(arguments))},
                **draw(extras),
            }
            for call in ids
        ]
        reasoning = {draw(st.sampled_from(["reasoning_content", "reasoning"])): draw(words)} if draw(st.booleans()) else {}
        content = draw(st.one_of(shown, st.none())) if calls else draw(shown)
        messages.append({"role": "assistant", "content": content, **reasoning, **({"tool_calls": calls} if calls else {})})
        messages += [{"role": "tool", "tool_call_id": call, "content": draw(words)} for call in ids]
    return messages


@st.composite
def responses(draw: st.DrawFn) -> list[Value]:
    """Items with reasoning, parallel calls of both kinds, and outputs."""
    items: list[Value] = []
    text = st.builds(lambda text: {"type": "input_text", "text": text}, shown)
    for turn in range(draw(st.integers(1, 3))):
        items.append({"role": "user", "content": draw(st.one_of(shown, st.lists(text, min_size=1, max_size=2)))})
        ids = [f"call_r{turn}_{n}" for n in range(draw(st.integers(0, 3)))]
        if draw(st.booleans()):
            summary = [{"type": "summary_text", "text": draw(words)}]
            items.append({"type": "reasoning", "id": f"rs_{turn}", "summary": summary, "encrypted_content": draw(words)})
        if not ids or draw(st.booleans()):
            output = {"type": "output_text", "text": draw(shown), "annotations": []}
            items.append(
                {"type": "message", "id": f"msg_{turn}", "role": "assistant", "status": "completed", "content": [output]}
            )
        custom = [draw(st.booleans()) for _ in ids]
        for call, free in zip(ids, custom, strict=True):
            said = {"input": draw(words)} if free else {"arguments": json.dumps(draw(arguments))}
            kind = "custom_tool_call" if free else "function_call"
            items.append({"type": kind, "id": f"fc_{call}", "call_id": call, "name": "read", "status": "completed", **said})
        for call, free in zip(ids, custom, strict=True):
            kind = "custom_tool_call_output" if free else "function_call_output"
            items.append({"type": kind, "call_id": call, "output": draw(words), **draw(extras)})
    return items


@st.composite
def gemini(draw: st.DrawFn) -> list[Value]:
    """Contents with thoughts, signatures, calls with ids or without, and responses of every form."""
    contents: list[Value] = []
    has_ids = draw(st.booleans())
    text = st.builds(lambda text, more: {"text": text, **more}, shown, extras)
    image = st.just({"inlineData": {"mimeType": "image/png", "data": PNG}})
    for turn in range(draw(st.integers(1, 3))):
        contents.append({"role": "user", "parts": draw(st.lists(st.one_of(text, image), min_size=1, max_size=2))})
        named = [{"id": f"g{turn}_{n}"} if has_ids else {} for n in range(draw(st.integers(0, 3)))]
        calls: list[Value] = [{"functionCall": {**each, "name": "read", "args": draw(arguments)}} for each in named]
        for call in calls[:1]:
            call["thoughtSignature"] = "c2lnbmVk" * 12
        thoughts = [{"text": draw(words), "thought": True}] if draw(st.booleans()) else []
        texts = draw(st.lists(text, max_size=1)) or ([] if calls else [{"text": "ok", "thoughtSignature": "c2lnbmVk"}])
        contents.append({"parts": [*thoughts, *texts, *calls], "role": "model", **draw(extras)})
        if calls:
            response = st.one_of(
                st.builds(lambda key, said: {key: said}, st.sampled_from(["output", "result"]), words),
                st.just({"error": "no such file"}),
                st.just({"a": 1, "b": [2]}),
            )
            parts = [{"functionResponse": {**each, "name": "read", "response": draw(response)}} for each in named]
            contents.append({"role": "user", "parts": parts})
            contents.append({"role": "model", "parts": [{"text": draw(shown)}]})
    return contents


CONVERSATIONS = {"anthropic": anthropic(), "gemini": gemini(), "openai-chat": chat(), "openai-responses": responses()}

spellings = st.sampled_from(
    [
        lambda value: json.dumps(value).encode(),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
        lambda value: json.dumps(value, indent=2).encode(),
    ]
)
