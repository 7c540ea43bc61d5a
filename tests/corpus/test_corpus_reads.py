"""Reads the recorded sessions and checks, from their raw JSON and without the readers' code, that nothing is missing or doubled.

The corpus is no part of this repository; without it these tests are skipped.
"""

import json
import lzma
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.record.entry import Draft, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.sessions.detect import read
from tenure.sessions.reader import Event, Rewritten, Skipped

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
NAMES = {
    "claude-code-jsonl": "claude-code",
    "opencode-export-json": "opencode",
    "pi-session-jsonl": "pi",
    "mini-swe-agent-traj-json": "mini-swe-agent",
    "gemini-cli-json": "gemini-cli",
}

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this repository")

Seen = tuple[str, str]  # kind, text


def sessions() -> list[dict[str, Any]]:
    manifest = CORPUS / "MANIFEST.jsonl"
    rows = [json.loads(line) for line in manifest.read_text().splitlines()] if manifest.exists() else []
    return [row for row in rows if row["format"] in NAMES]


def unpacked(row: dict[str, Any]) -> bytes:
    return lzma.decompress((CORPUS / row["file"]).read_bytes())


def found_in(row: dict[str, Any]) -> tuple[str, list[Event]]:
    data = unpacked(row)
    reader, events = read(data[at : at + 65536] for at in range(0, len(data), 65536))
    return reader.name, list(events)


def drafts(events: list[Event]) -> list[Draft]:
    return [event for event in events if isinstance(event, Draft)]


def shown(events: list[Event]) -> Counter[Seen]:
    seen: Counter[Seen] = Counter()
    for draft in drafts(events):
        for block in draft.blocks:
            match block:
                case ToolCall(name=name, arguments=arguments):
                    seen["call", name + same(json.loads(arguments))] += 1
                case Text() | Thinking() | ToolResult():
                    seen[type(block).__name__, block.text] += 1
                case _:
                    seen["other", type(block).__name__] += 1
    return seen


def same(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def claude(data: bytes) -> Iterator[Seen]:
    lines = [json.loads(line) for line in data.splitlines()]
    for line in lines:
        if line["type"] not in ("user", "assistant") or line.get("isSidechain") or line.get("isApiErrorMessage"):
            continue
        content = line["message"]["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match part["type"]:
                case "text":
                    yield "Text", part["text"]
                case "thinking":
                    yield "Thinking", part["thinking"]
                case "tool_use":
                    yield "call", part["name"] + same(part["input"])
                case "tool_result":
                    inner = part.get("content", "")
                    texts = [inner] if isinstance(inner, str) else [item["text"] for item in inner if item["type"] == "text"]
                    yield "ToolResult", "\n".join(texts)
                case _:
                    yield "other", "Media"


def opencode(data: bytes) -> Iterator[Seen]:
    for message in json.loads(data)["messages"]:
        for part in message["parts"]:
            match part["type"]:
                case "text":
                    yield "Text", part["text"]
                case "reasoning" if part["text"]:
                    yield "Thinking", part["text"]
                case "subtask":
                    yield "Text", "The following tool was executed by the user"
                case "tool":
                    yield "call", part["tool"] + same(part["state"]["input"])
                    yield "ToolResult", part["state"].get("output", part["state"].get("error"))
                case _:
                    pass


def pi(data: bytes) -> Iterator[Seen]:
    for line in map(json.loads, data.splitlines()):
        message = line.get("message", {})
        if line["type"] == "compaction":
            yield "summary", line["summary"]
        elif message.get("role") == "bashExecution":
            yield "ran", message["command"]
        elif message.get("role") == "toolResult":
            yield "ToolResult", "\n".join(part["text"] for part in message["content"] if part["type"] == "text")
        else:
            for part in message.get("content", ()):
                match part["type"]:
                    case "text":
                        yield "Text", part["text"]
                    case "thinking":
                        yield "Thinking", part["thinking"]
                    case "toolCall":
                        yield "call", part["name"] + same(part["arguments"])
                    case _:
                        yield "other", "Media"


def mini(data: bytes) -> Iterator[Seen]:
    for message in json.loads(data)["messages"]:
        yield "Text", message["content"]


def gemini(data: bytes) -> Iterator[Seen]:
    for message in json.loads(data)["messages"]:
        if message["type"] not in ("user", "gemini"):
            continue
        if message["content"]:
            yield "Text", message["content"]
        for thought in message.get("thoughts", ()):
            yield "Thinking", f"**{thought['subject']}**\n{thought['description']}"
        for call in message.get("toolCalls", ()):
            yield "call", call["name"] + same(call["args"])
            for result in call["result"]:
                (text,) = result["functionResponse"]["response"].values()
                yield "ToolResult", text


COUNTERS: dict[str, Callable[[bytes], Iterator[Seen]]] = {
    "claude-code": claude,
    "opencode": opencode,
    "pi": pi,
    "mini-swe-agent": mini,
    "gemini-cli": gemini,
}


def rewound(events: list[Event]) -> int:
    return sum(
        int(event.reason.split(": ")[1].split()[0])
        for event in events
        if isinstance(event, Skipped) and "abandoned" in event.reason
    )


@pytest.mark.parametrize("row", sessions(), ids=lambda row: row["id"])
def test_every_text_a_model_saw_is_there_once(row: dict[str, Any]) -> None:
    name, events = found_in(row)
    assert name == NAMES[row["format"]]
    seen, there = shown(events), Counter(COUNTERS[name](unpacked(row)))
    if name == "pi":
        seen, there = without_wrapping(seen), without_wrapping(there)
    assert not seen - there, "not in the log, or more often than there"
    assert (there - seen).total() == rewound(events), "missing, and no abandoned branch"


def without_wrapping(seen: Counter[Seen]) -> Counter[Seen]:
    """Summaries and commands are shown inside other words, so only what they are is compared."""
    plain: Counter[Seen] = Counter()
    for (kind, text), count in seen.items():
        if kind == "summary" or "compacted into the following summary" in text:
            plain["summary", text.partition("<summary>\n")[2].removesuffix("\n</summary>") or text] += count
        elif kind == "ran" or text.startswith("Ran `"):
            plain["ran", text.removeprefix("Ran `").partition("`\n")[0]] += count
        else:
            plain[kind, text] += count
    return plain


@pytest.mark.parametrize("row", sessions(), ids=lambda row: row["id"])
def test_every_result_answers_a_call_before_it(row: dict[str, Any]) -> None:
    _, events = found_in(row)
    waiting: Counter[str] = Counter()
    for draft in drafts(events):
        for block in draft.blocks:
            if isinstance(block, ToolCall):
                waiting[block.call_id] += 1
            elif isinstance(block, ToolResult):
                assert waiting[block.call_id] > 0
                waiting[block.call_id] -= 1
    assert waiting.total() <= 6  # calls that were interrupted
    if row["tool_calls"] and row["format"] != "mini-swe-agent-traj-json":
        made = sum(isinstance(block, ToolCall) for draft in drafts(events) for block in draft.blocks)
        assert made == row["tool_calls"]


@pytest.mark.parametrize("row", sessions(), ids=lambda row: row["id"])
def test_turns_and_compactions_are_those_of_the_manifest(row: dict[str, Any]) -> None:
    _, events = found_in(row)
    human = [draft for draft in drafts(events) if any(block.origin is Origin.HUMAN for block in draft.blocks)]
    typed = [draft for draft in human if not draft.blocks[0].text.startswith(("<bash-input>", "Ran `"))]
    assert abs(len(typed) - row["user_turns"]) <= 1
    assert sum(isinstance(event, Rewritten) and event.drop_before > 0 for event in events) == row["compactions"]


@pytest.mark.parametrize("row", sessions(), ids=lambda row: row["id"])
def test_times_run_and_the_fullest_prompt_is_the_manifests(row: dict[str, Any]) -> None:
    _, events = found_in(row)
    prompts = [draft.usage.prompt for draft in drafts(events) if draft.usage]
    if row["peak_context_tokens"]:
        assert max(prompts) == row["peak_context_tokens"]
    assert all(draft.line > 0 for draft in drafts(events))
    assert {draft.role for draft in drafts(events)} <= set(Role)
