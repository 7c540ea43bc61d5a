"""What must hold of every request, checked on its plain JSON. Shares no code with the engine: a defect there is not repeated here.

A request is read into turns: `("user" | "assistant" | "system", items)`, an item being one of `("text", words)`, `("call", id, name, arguments)`,
`("result", id, words)`, `("thinking", words)`, `("other", kind)`, with its JSON where it is a step of the provider's own.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Item = tuple[str, ...]
Turn = tuple[str, list[Item]]


def turns(body: Mapping[str, Any], dialect: str) -> list[Turn]:
    """The messages of a request, one turn each."""
    read = {"anthropic": _anthropic, "gemini": _gemini, "openai-chat": _chat, "openai-responses": _responses}[dialect]
    return [read(message) for message in messages_of(body, dialect)]


def messages_of(body: Mapping[str, Any], dialect: str) -> list[dict[str, Any]]:
    """The messages of a request as they are."""
    return body[{"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")]


def faults(
    body: Mapping[str, Any], dialect: str, shown: Sequence[Turn], *, alternates: bool = False, keeps_reasoning: bool = False
) -> Iterator[str]:
    """What a provider would refuse. `keeps_reasoning`: calls go with `reasoning_content`."""
    json.dumps(body, ensure_ascii=False).encode()
    if not shown:
        yield "no messages"
    yield from (f"message {n} is empty" for n, (_, items) in enumerate(shown) if not items)
    yield from _pairs(_joined(shown), dialect)
    messages = messages_of(body, dialect)
    if dialect == "anthropic":
        yield from _anthropic_faults(body, messages, shown)
    if dialect == "openai-chat":
        yield from _chat_faults(messages, keeps_reasoning=keeps_reasoning)
    if dialect == "gemini":
        yield from _gemini_faults(messages)
    if dialect == "openai-responses":
        yield from _reasoning_faults(messages)
        yield from _part_faults(messages)
    if alternates:
        talk = [str(message.get("role")) for message in messages if message.get("role") not in ("system", "developer")]
        yield from (f"two messages of {a} in a row" for a, b in pairwise(talk) if a == b != "tool")
    names = [_name(each) for tool in body.get("tools", ()) for each in tool.get("functionDeclarations", [tool])]
    yield from (f"tool {name!r} is declared twice" for name in set(names) if names.count(name) > 1)
    yield from (f"no tool can be named {name!r}" for name in names if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name))


def markers(value: Any) -> list[dict[str, Any]]:
    """The cache markers of a request, in its order of tools, system and messages."""
    found: list[dict[str, Any]] = []
    if isinstance(value, dict):
        if value.get("cache_control"):
            found.append(value)
        for key in ("tools", "system", "messages", "content"):
            if isinstance(value.get(key), list):
                found += markers(value[key])
        return found
    for each in value if isinstance(value, list) else ():
        found += markers(each)
    return found


def bare(value: Any) -> Any:
    """The same without cache markers; a text that is alone in its list is that text, since a marker needs a list."""
    if isinstance(value, dict):
        plain = {key: bare(each) for key, each in value.items() if key != "cache_control"}
        match plain.get("content"):
            case [{"type": "text", "text": text, **rest}] if not rest:
                return plain | {"content": text}
            case _:
                return plain
    return [bare(each) for each in value] if isinstance(value, list) else value


def texts(shown: Sequence[Turn]) -> str:
    """All that users' messages say, in order."""
    return "\n".join(item[1] for role, items in shown if role == "user" for item in items if item[0] == "text")


def _anthropic_faults(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], shown: Sequence[Turn]) -> Iterator[str]:
    made = [item[1] for _, items in shown for item in items if item[0] == "call"]
    yield from (f"two calls have the id {id_!r}" for id_ in set(made) if made.count(id_) > 1)
    for n, message in enumerate(messages):
        parts = message["content"] if isinstance(message["content"], list) else ()
        uses = [part["id"] for part in parts if part["type"] == "server_tool_use"]
        answers = [part["tool_use_id"] for part in parts if part["type"] == "web_search_tool_result"]
        if uses != answers:
            yield f"message {n} has searches {uses} and results {answers}"
    spoken = [role for role, _ in shown if role != "system"]
    if spoken and spoken[0] != "user":
        yield "the first message is not the user's"
    for n, (role, items) in enumerate(shown):
        if any(item[0] == "text" and not item[1].strip() for item in items):
            yield f"message {n} holds blank text"
        if role == "assistant" and items and items[-1][0] == "thinking":
            yield f"message {n} ends with thinking"
        yield from (f"call id {item[1]!r}" for item in items if item[0] == "call" and not re.fullmatch(r"[\w-]+", item[1]))
        if role == "system" and any(item[0] != "other" for item in items):  # one that only carries settings may stand anywhere
            before = next((r for r, i in reversed(shown[:n]) if r != "system" or i), "")
            after = next((r for r, _ in shown[n + 1 :] if r != "system"), "assistant")
            if before != "user" or after != "assistant":
                yield f"the system's message {n} stands between {before or 'nothing'} and {after}"
    marked = markers(body)
    if len(marked) > 4:
        yield f"{len(marked)} cache markers"
    lives = [part["cache_control"].get("ttl", "5m") for part in marked if part is not body]
    if "5m" in lives and "1h" in lives[lives.index("5m") :]:
        yield f"a marker asks for longer than one before it: {lives}"
    for part in marked:
        if part.get("type") in ("thinking", "redacted_thinking") or part.get("text") == "":
            yield f"a marker stands on {part.get('type')} {part.get('text')!r}"
    places = [n for n, message in enumerate(messages) if markers(message)]
    silent = {n for n, (role, items) in enumerate(shown) if role == "system" and all(item[0] == "other" for item in items)}
    yield from (f"a marker stands on the system's message {n}, which says nothing" for n in places if n in silent)


def _chat_faults(messages: Sequence[Mapping[str, Any]], *, keeps_reasoning: bool) -> Iterator[str]:
    for n, message in enumerate(messages):
        calls, content = message.get("tool_calls"), message.get("content")
        if calls == [] or content == []:
            yield f"message {n} holds an empty list"
        if content is None and not calls:
            yield f"message {n} has neither content nor calls"
        if keeps_reasoning and calls and not isinstance(message.get("reasoning_content"), str):
            yield f"message {n} has calls without reasoning_content"


def _gemini_faults(contents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What of calls and responses does not stand together, part by part; each has one member that says something."""
    data = {"text", "functionCall", "functionResponse", "inlineData", "fileData"}
    waiting: list[tuple[str, str]] = []
    for n, content in enumerate(contents):
        parts = content["parts"]
        yield from (f"content {n} has a part with {sorted(part)}" for part in parts if len(data & part.keys()) != 1)
        if n and contents[n - 1]["role"] == content["role"]:
            yield f"two contents of {content['role']} in a row"
        calls = [(each["id"], each["name"]) for part in parts if (each := part.get("functionCall"))]
        responses = [(each["id"], each["name"]) for part in parts if (each := part.get("functionResponse"))]
        if sorted(responses) != sorted(waiting):
            yield f"content {n} answers {responses}, the calls were {waiting}"
        if responses and "functionResponse" not in parts[0]:
            yield f"content {n} has words before its responses"
        if calls and content["role"] != "model":
            yield f"content {n} of {content['role']} has calls"
        waiting = calls
    if contents and contents[0]["role"] != "user":
        yield "the first content is not the user's"


def _part_faults(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for n, item in enumerate(items):
        content = item.get("content")
        kinds = {part["type"] for part in content} if isinstance(content, list) and "role" in item else set[str]()
        wanted = {"output_text", "refusal"} if item.get("role") == "assistant" else {"input_text", "input_image", "input_file"}
        if wrong := kinds - wanted:
            yield f"item {n} of {item.get('role')} has parts {sorted(wrong)}"


def _reasoning_faults(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Ids say which reasoning an item belongs to: `rs_7` stands before `fc_7_0` and `msg_7_1`."""
    current = ""
    seen: set[str] = set()
    for n, item in enumerate(items):
        kind, id_ = item.get("type", "message"), str(item.get("id", ""))
        if id_ and id_ in seen:
            yield f"item {id_} stands twice"
        seen.add(id_)
        if kind == "reasoning":
            current = id_.removeprefix("rs_")
            follower = str(items[n + 1].get("id", "")) if n + 1 < len(items) else ""
            if follower.split("_")[1:2] != [current]:
                yield f"reasoning {id_} stands without what it led to"
        elif id_ and id_.split("_")[1] != current:
            yield f"item {id_} stands without its reasoning"
        elif not id_:
            current = ""


def _pairs(shown: Sequence[Turn], dialect: str) -> Iterator[str]:
    open_: list[str] = []
    for role, items in shown:
        if role == "assistant":
            yield from (f"call {id_} has no result" for id_ in open_)
            open_ = [item[1] for item in items if item[0] == "call"]
            if len(set(open_)) < len(open_):
                yield f"two calls of one id in a message: {open_}"
            continue
        if role == "system":
            continue
        others = False
        for item in items:
            if item[0] == "result" and item[1] not in open_:
                yield f"result {item[1]} answers no call"
            elif item[0] == "result":
                open_.remove(item[1])
                if others and dialect == "anthropic":
                    yield f"result {item[1]} stands behind other content"
            else:
                others = True
                if open_ and dialect == "openai-chat":
                    yield f"words stand between call {open_[0]} and its result"
        if open_ and dialect != "openai-responses":
            yield f"calls {open_} have no result"
            open_ = []
    yield from (f"call {id_} has no result" for id_ in open_)


def _joined(shown: Sequence[Turn]) -> list[Turn]:
    """Neighbours of one role as one, as providers take them."""
    joined: list[Turn] = []
    for role, items in shown:
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(items)
        else:
            joined.append((role, list(items)))
    return joined


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool["function"]["name"])


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content or () if "text" in part)


def _anthropic(message: Mapping[str, Any]) -> Turn:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    items: list[Item] = []
    for part in parts:
        match part["type"]:
            case "text":
                items.append(("text", part["text"]))
            case "tool_use":
                items.append(("call", part["id"], part["name"], json.dumps(part["input"])))
            case "tool_result":
                items.append(("result", part["tool_use_id"], _words(part.get("content"))))
            case "thinking":
                items.append(("thinking", part["thinking"], part["signature"]))
            case kind:
                items.append(("other", kind, "" if kind in ("image", "document") else _compact(part)))
    return message["role"], items


def _compact(part: Mapping[str, Any]) -> str:
    return json.dumps(part, separators=(",", ":"))


def _gemini(content: Mapping[str, Any]) -> Turn:
    items: list[Item] = []
    for part in content["parts"]:
        if call := part.get("functionCall"):
            items.append(("call", call["id"], call["name"], json.dumps(call["args"])))
        elif response := part.get("functionResponse"):
            items.append(("result", response["id"], "\n".join(map(str, response["response"].values()))))
        elif "text" in part:
            items.append(("thinking" if part.get("thought") else "text", part["text"]))
        else:
            items.append(("other", ",".join(part)))
    return "assistant" if content["role"] == "model" else content["role"], items


def _chat(message: Mapping[str, Any]) -> Turn:
    role = message["role"]
    if role == "tool":
        return "user", [("result", message["tool_call_id"], _words(message["content"]))]
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content is not None else []
    items: list[Item] = [("text", part["text"]) if part["type"] == "text" else ("other", part["type"]) for part in parts]
    if reasoning := message.get("reasoning_content"):
        items.insert(0, ("thinking", reasoning))
    calls = message.get("tool_calls") or ()
    items += [("call", call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
    return "system" if role in ("system", "developer") else role, items


def _responses(item: Mapping[str, Any]) -> Turn:
    match item.get("type", "message"):
        case "message":
            role, content = item["role"], item["content"]
            parts = content if isinstance(content, list) else [{"type": "input_text", "text": content}]
            items = [("text", part["text"]) if part["type"].endswith("_text") else ("other", part["type"]) for part in parts]
            return "system" if role in ("system", "developer") else role, items
        case "function_call":
            return "assistant", [("call", item["call_id"], item["name"], item["arguments"])]
        case "function_call_output":
            return "user", [("result", item["call_id"], _words(item["output"]))]
        case "reasoning":
            return "assistant", [("thinking", "".join(part["text"] for part in item.get("summary", ())))]
        case kind:
            return "assistant", [("other", str(kind), _compact(item))]
