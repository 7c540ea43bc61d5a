"""The texts of the JSON formats beyond those of `test_corpus_reads`, walked raw and without the readers' code.

What counts is what FORMATS.md, beside the corpus, says of each format: of two places that tell the same story, one.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

Seen = tuple[str, str]  # kind, text

NOTES = re.compile(
    r"(\n\[(The command completed with exit code|Current working directory:|Python interpreter:"
    r"|Command finished with exit code|Error occurred in processing last action)[^\n]*\])+$"
)
ATTACHMENT = re.compile(r"attachment://([0-9a-f]+)")


def same(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def filled(kind: str, text: str | None) -> Iterator[Seen]:
    if text:
        yield kind, text


def without_notes(seen: Counter[Seen]) -> Counter[Seen]:
    """OpenHands shows the state of the shell below an output; it is no field's text, so only the output is compared."""
    plain: Counter[Seen] = Counter()
    for (kind, text), count in seen.items():
        plain[kind, NOTES.sub("", text)] += count
    return plain


def swe(data: bytes) -> Iterator[Seen]:
    """The chat; `trajectory` tells it again, and holds the last observation, which no model saw."""
    for message in json.loads(data)["history"]:
        yield from filled("Text", message["content"])


def openhands(data: bytes) -> Iterator[Seen]:
    """Each step once: what the model said and called, as its response has them, and what came back.

    What was recalled (hints about GitHub, in one file) was not sent: two sessions' first prompts differ by 638 tokens, which
    is what their tasks differ by.
    """
    for event in json.loads(data)["history"]:
        arguments, metadata = event.get("args", {}), event.get("tool_call_metadata")
        match event.get("action"), event.get("observation"):
            case (("system" | "message"), None):
                yield from filled("Text", arguments["content"])
            case "recall", None:
                pass  # a question to the harness's own memory
            case str(), None if metadata:
                for choice in metadata["model_response"]["choices"]:
                    yield from filled("Text", choice["message"]["content"])
                    for call in choice["message"]["tool_calls"]:
                        yield "call", call["function"]["name"] + same(json.loads(call["function"]["arguments"]))
            case None, "recall" | "agent_state_changed":
                pass
            case None, str():
                yield "ToolResult" if metadata else "Text", event["content"]
            case _:
                yield "other", same(event)


def who(data: bytes) -> Iterator[Seen]:
    """The agents' own system prompts, where they are told, and the talk; the question is in it, the labels are for no agent."""
    log = json.loads(data)
    for prompt in log.get("system_prompt", {}).values():
        yield from filled("Text", prompt)
    for message in log["history"]:
        yield from filled("Text", message["content"])


def tau(data: bytes) -> Iterator[Seen]:
    for message in json.loads(data)["traj"]:
        if message["role"] == "tool":
            yield "ToolResult", message["content"]
        else:
            yield from filled("Text", message["content"])
        for call in message.get("tool_calls") or ():
            yield "call", call["function"]["name"] + same(json.loads(call["function"]["arguments"]))


def inspect(data: bytes) -> Iterator[Seen]:
    """The samples' messages; their events hold the same many times over."""
    for sample in json.loads(data)["samples"]:
        attachments: dict[str, str] = sample.get("attachments", {})
        for message in sample["messages"]:
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                text = ATTACHMENT.sub(lambda found: attachments[found[1]], part.get("text") or part.get("reasoning") or "")  # noqa: B023
                match message["role"], part["type"]:
                    case "tool", "text":
                        yield "ToolResult", text
                    case _, "text":
                        yield from filled("Text", text)
                    case _, "reasoning":
                        yield from filled("Thinking", text)
                    case _, kind:
                        yield "other", kind
            for call in message.get("tool_calls") or ():
                yield "call", call["function"] + same(call["arguments"])


def atif(data: bytes) -> Iterator[Seen]:
    """`observation.result` and `extra.instruction` repeat what the steps say; a converter names the call beside a result."""
    for step in json.loads(data)["steps"]:
        observation: dict[str, Any] = step.get("observation", {})
        if not observation or step["source"] == "agent":
            yield from filled("Text", step["message"])
        for call in step.get("tool_calls", ()):
            yield "call", call["name"] + same(call["arguments"])
        if "content" in observation:
            yield "ToolResult", observation["content"]
        for result in observation.get("results", ()):
            yield "ToolResult", result["content"]
