"""Reads the recorded sessions and checks, from the raw files and without the readers' code, that nothing is missing or doubled."""

import json
import lzma
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import counters_json
import counters_markdown
import pytest

from corpus_sessions import needs_corpus, path_of, sample
from tenure.engine.record.entry import Draft, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.logs.detect import read
from tenure.logs.reader import Event, HasAgents, Rewritten, Skipped, SubAgent

NAMES = {
    "claude-code-jsonl": "claude-code",
    "opencode-export-json": "opencode",
    "pi-session-jsonl": "pi",
    "mini-swe-agent-traj-json": "mini-swe-agent",
    "gemini-cli-json": "gemini-cli",
    "specstory-md": "specstory",
    "swe-agent-traj": "swe-agent",
    "openhands-event-json": "openhands",
    "who-and-when-json": "who-and-when",
    "tau-bench-json": "tau-bench",
    "aider-chat-md": "aider",
    "inspect-eval-json": "inspect",
    "atif-json": "atif",
}
MARKDOWN = ("specstory", "aider")
NO_CALLS = ("mini-swe-agent", "swe-agent")  # their calls are prose

pytestmark = needs_corpus

Seen = tuple[str, str]  # kind, text


def sessions() -> list[dict[str, Any]]:
    return sample(NAMES)


def of(*names: str) -> list[dict[str, Any]]:
    return sample([format_ for format_, name in NAMES.items() if name in names])


def unpacked(row: dict[str, Any]) -> bytes:
    return lzma.decompress(path_of(row).read_bytes())


def found_in(row: dict[str, Any]) -> tuple[str, list[Event]]:
    data = unpacked(row)
    reader, events = read(data[at : at + 65536] for at in range(0, len(data), 65536))
    return reader.name, list(events)


def with_agents(row: dict[str, Any]) -> list[Event]:
    """The conversation and those of its sub-agents, which are in the same file."""
    data = unpacked(row)
    reader, events = read([data])
    every = list(events)
    if isinstance(reader, HasAgents):
        for agent in [event for event in every if isinstance(event, SubAgent)]:
            every.extend(reader.read_agent([data], agent.id))
    return every


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
    for line in data.split(b"\n"):
        at, text = 0, line.decode().strip()
        while at < len(text):  # one file has two objects in a line
            parsed, at = json.JSONDecoder().raw_decode(text, at)
            yield from claude_line(parsed)


def claude_line(line: dict[str, Any]) -> Iterator[Seen]:
    if line.get("attachment", {}).get("type") == "queued_command":
        prompt = line["attachment"]["prompt"]
        for part in [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt:
            yield ("Text", part["text"]) if part["type"] == "text" else ("other", "Media")
    if line["type"] not in ("user", "assistant") or line.get("isSidechain") or line.get("isApiErrorMessage"):
        return
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
                texts = [inner] if isinstance(inner, str) else [claude_item(item) for item in inner if item["type"] != "image"]
                yield "ToolResult", "\n".join(texts)
            case _:
                yield "other", "Media"


def claude_item(item: dict[str, Any]) -> str:
    return item["text"] if item["type"] == "text" else json.dumps(item, separators=(",", ":"))


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
    "swe-agent": counters_json.swe,
    "openhands": counters_json.openhands,
    "who-and-when": counters_json.who,
    "tau-bench": counters_json.tau,
    "inspect": counters_json.inspect,
    "atif": counters_json.atif,
}


def spoken(messages: list[dict[str, Any]]) -> int:
    """How many texts and calls a model made of these messages in OpenAI's form."""
    own = [message for message in messages if message["role"] == "assistant"]
    return sum(bool(message["content"]) + len(message.get("tool_calls") or ()) for message in own)


def experts(log: dict[str, Any]) -> int:
    """All but the task, what programs said, and the lines that the harness writes when it picks a speaker, replans or stops."""
    return sum(
        message.get("name", message["role"]) not in ("WebSurfer", "FileSurfer", "Computer_terminal", "WebServing_Expert")
        and "termination" not in message["role"]
        and not message["content"].startswith(("Next speaker ", "Stalled.... Replanning..."))
        for message in log["history"][1:]
    )


ORIGINS: dict[str, Callable[[dict[str, Any]], int]] = {  # how many blocks of each log are its model's
    "swe-agent": lambda log: spoken(log["history"]),
    "openhands": lambda log: 2 * sum("action" in event and "tool_call_metadata" in event for event in log["history"]),
    "who-and-when": experts,
    "tau-bench": lambda log: spoken(log["traj"]),
    "inspect": lambda log: sum(spoken(sample["messages"]) for sample in log["samples"]),
    "atif": lambda log: sum(
        bool(step["message"]) + len(step.get("tool_calls", ())) for step in log["steps"] if step["source"] == "agent"
    ),
}


def rewound(events: list[Event]) -> int:
    return sum(
        int(event.reason.split(": ")[1].split()[0])
        for event in events
        if isinstance(event, Skipped) and "abandoned" in event.reason
    )


@pytest.mark.parametrize("row", sessions(), ids=lambda row: row["id"])
def test_every_file_finds_its_reader(row: dict[str, Any]) -> None:
    assert found_in(row)[0] == NAMES[row["format"]]


@pytest.mark.parametrize("row", of(*COUNTERS), ids=lambda row: row["id"])
def test_every_text_a_model_saw_is_there_once(row: dict[str, Any]) -> None:
    name, events = found_in(row)
    seen, there = shown(events), Counter(COUNTERS[name](unpacked(row)))
    if name in WRAPPED:
        seen, there = WRAPPED[name](seen), WRAPPED[name](there)
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


WRAPPED: dict[str, Callable[[Counter[Seen]], Counter[Seen]]] = {
    "pi": without_wrapping,
    "openhands": counters_json.without_notes,
}


@pytest.mark.parametrize("row", of("specstory"), ids=lambda row: row["id"])
def test_every_line_of_a_transcript_is_there_once(row: dict[str, Any]) -> None:
    texts, names = written(with_agents(row))
    there = counters_markdown.lines("specstory", counters_markdown.specstory(unpacked(row)))
    seen = counters_markdown.lines("specstory", texts)
    missing, added = counters_markdown.words(there - seen), counters_markdown.words(seen - there)
    assert not added - missing, "not in the transcript, or more often than there"
    assert not {word for word in missing - added - names if word not in counters_markdown.LABELS}
    long, short = (sum(len(line) * count for line, count in side.items()) for side in (there, seen))
    assert 0.995 * long <= short <= long
    assert (there - seen).total() <= 0.02 * there.total(), "more than the calls' arguments was written otherwise"


@pytest.mark.parametrize("row", of("aider"), ids=lambda row: row["id"])
def test_every_line_of_a_chat_is_there_once(row: dict[str, Any]) -> None:
    texts, _ = written(found_in(row)[1])
    told = counters_markdown.COMMIT.findall(unpacked(row).decode())
    there, seen = (counters_markdown.lines("aider", side) for side in (counters_markdown.aider(unpacked(row)), texts))
    assert not there - seen
    assert not seen - there - Counter(line.strip() for line in told)


def written(events: list[Event]) -> tuple[list[str], Counter[str]]:
    """The texts of the drafts, a call's being those of its arguments; and the words that a rendering may show beside them."""
    texts: list[str] = []
    names: Counter[str] = Counter()
    for draft in drafts(events):
        for block in draft.blocks:
            if isinstance(block, ToolCall):
                for name, text in counters_markdown.values(block.arguments):
                    texts.append(text)
                    names[name] += 1
            else:
                texts.append(block.text)
    return texts, names


@pytest.mark.parametrize("row", sessions(), ids=lambda row: row["id"])
def test_every_result_answers_a_call_before_it(row: dict[str, Any]) -> None:
    name, events = found_in(row)
    waiting: Counter[str] = Counter()
    for draft in drafts(events):
        for block in draft.blocks:
            if isinstance(block, ToolCall):
                waiting[block.call_id] += 1
            elif isinstance(block, ToolResult):
                assert waiting[block.call_id] > 0
                waiting[block.call_id] -= 1
    assert waiting.total() <= 6  # calls that were interrupted
    calls = [block for draft in drafts(events) for block in draft.blocks if isinstance(block, ToolCall)]
    if row["tool_calls"] and name not in (*NO_CALLS, *MARKDOWN):
        assert sum(name != "openhands" or call.name != "finish" for call in calls) == row["tool_calls"]


@pytest.mark.parametrize("row", [row for row in sessions() if row not in of("specstory")], ids=lambda row: row["id"])
def test_turns_and_compactions_are_those_of_the_manifest(row: dict[str, Any]) -> None:
    _, events = found_in(row)
    human = [draft for draft in drafts(events) if draft.blocks[0].origin is Origin.HUMAN and draft.blocks[0].text]
    typed = [draft for draft in human if not draft.blocks[0].text.startswith(("<bash-input>", "Ran `"))]
    assert len(typed) >= row["user_turns"] - 1  # the manifest counts no prompt that was queued while the agent worked
    assert not any(block.text.startswith("<task-notification>") for draft in typed for block in draft.blocks)
    compactions = sum(isinstance(event, Rewritten) and event.drop_before > 0 for event in events)
    assert row["compactions"] - 1 <= compactions <= row["compactions"]  # one at the very start drops nothing


@pytest.mark.parametrize("row", of("specstory"), ids=lambda row: row["id"])
def test_turns_of_a_transcript_are_a_humans_only_where_one_typed(row: dict[str, Any]) -> None:
    data, (_, events) = unpacked(row), found_in(row)
    assert len(counters_markdown.USER.findall(data.decode())) == row["user_turns"]  # notices among them
    assert sum(any(block.origin is Origin.HUMAN for block in draft.blocks) for draft in drafts(events)) == (
        counters_markdown.typed(data)
    )
    continued = sum(turn.strip().startswith(counters_markdown.SUMMARY) for turn in counters_markdown.USER.split(data.decode()))
    assert sum(isinstance(event, Rewritten) and event.drop_before > 0 for event in events) == continued


@pytest.mark.parametrize("row", of(*ORIGINS), ids=lambda row: row["id"])
def test_who_said_what_is_told_apart(row: dict[str, Any]) -> None:
    name, events = found_in(row)
    by = Counter(block.origin for draft in drafts(events) for block in draft.blocks)
    assert by[Origin.HUMAN] == row["user_turns"]
    assert by[Origin.MODEL] == ORIGINS[name](json.loads(unpacked(row)))
    for draft in drafts(events):
        for block in draft.blocks:
            if draft.role is Role.SYSTEM:
                assert block.origin is Origin.HARNESS
            if draft.role is Role.ASSISTANT:
                assert block.origin is Origin.MODEL
            if isinstance(block, ToolResult):
                assert block.origin is Origin.TOOL


@pytest.mark.parametrize("row", sessions(), ids=lambda row: row["id"])
def test_times_run_and_the_fullest_prompt_is_the_manifests(row: dict[str, Any]) -> None:
    _, events = found_in(row)
    prompts = [draft.usage.prompt for draft in drafts(events) if draft.usage]
    if row["peak_context_tokens"]:
        assert max(prompts) == row["peak_context_tokens"]
    assert all(draft.line > 0 for draft in drafts(events))
    times = [draft.at for draft in drafts(events) if draft.at]
    if row["started"] and times:
        assert times[0][:10] == row["started"][:10]
    assert {draft.role for draft in drafts(events)} <= set(Role)
