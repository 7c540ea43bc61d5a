"""What must hold of every request, checked on its plain JSON. Shares no code with the engine: a defect there is not repeated here.

A request is read into turns: `("user" | "assistant" | "system", items)`, an item being one of `("text", words)`, `("call", id, name)`,
`("result", id, words)`, `("other", kind)`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Item = tuple[str, ...]
Turn = tuple[str, list[Item]]


def turns(body: Mapping[str, Any], dialect: str) -> list[Turn]:
    """The messages of a request, one turn each."""
    read = {"anthropic": _anthropic, "openai-chat": _chat, "openai-responses": _responses}[dialect]
    return [read(message) for message in messages_of(body, dialect)]


def messages_of(body: Mapping[str, Any], dialect: str) -> list[dict[str, Any]]:
    """The messages of a request as they are."""
    return body["input" if dialect == "openai-responses" else "messages"]


def faults(body: Mapping[str, Any], dialect: str, *, alternates: bool = False) -> Iterator[str]:
    """What a provider would refuse."""
    json.dumps(body).encode()
    shown = turns(body, dialect)
    if not shown:
        yield "no messages"
    yield from (f"message {n} is empty" for n, (_, items) in enumerate(shown) if not items)
    yield from (f"message {n} holds blank text" for n, (_, items) in enumerate(shown) if any(_is_blank(item) for item in items))
    yield from _pairs(_joined(shown), dialect)
    spoken = [role for role, _ in shown if role != "system"]
    if dialect == "anthropic" and spoken and spoken[0] != "user":
        yield "the first message is not the user's"
    if alternates:
        talk = [
            str(message.get("role"))
            for message in messages_of(body, dialect)
            if message.get("role") not in ("system", "developer")
        ]
        yield from (f"two messages of {a} in a row" for a, b in pairwise(talk) if a == b != "tool")
    names = [_name(tool) for tool in body.get("tools", ())]
    yield from (f"tool {name!r} is declared twice" for name in set(names) if names.count(name) > 1)
    if dialect == "anthropic" and (marks := markers(body)) > 4:
        yield f"{marks} cache markers"


def markers(value: Any) -> int:
    """How many cache markers stand in a request."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(
            markers(each) for key, each in value.items() if key not in ("input", "input_schema")
        )
    return sum(map(markers, value)) if isinstance(value, list) else 0


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


def result_texts(shown: Sequence[Turn]) -> dict[str, str]:
    """What each result shows, by the id of its call."""
    return {item[1]: item[2] for _, items in shown for item in items if item[0] == "result"}


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
            joined[-1] = (role, [*joined[-1][1], *items])
        else:
            joined.append((role, list(items)))
    return joined


def _is_blank(item: Item) -> bool:
    return item[0] == "text" and not item[1].strip()


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool["function"]["name"])


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or ())


def _anthropic(message: Mapping[str, Any]) -> Turn:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    items: list[Item] = []
    for part in parts:
        match part["type"]:
            case "text":
                items.append(("text", part["text"]))
            case "tool_use":
                items.append(("call", part["id"], part["name"]))
            case "tool_result":
                items.append(("result", part["tool_use_id"], _words(part.get("content"))))
            case kind:
                items.append(("other", kind))
    return message["role"], items


def _chat(message: Mapping[str, Any]) -> Turn:
    role = message["role"]
    if role == "tool":
        return "user", [("result", message["tool_call_id"], _words(message["content"]))]
    items: list[Item] = [("text", _words(message["content"]))] if message.get("content") else []
    items += [("call", call["id"], call["function"]["name"]) for call in message.get("tool_calls") or ()]
    return "system" if role in ("system", "developer") else role, items


def _responses(item: Mapping[str, Any]) -> Turn:
    match item.get("type", "message"):
        case "message":
            role = item["role"]
            return "system" if role in ("system", "developer") else role, [("text", _words(item["content"]))]
        case "function_call":
            return "assistant", [("call", item["call_id"], item["name"])]
        case "function_call_output":
            return "user", [("result", item["call_id"], _words(item["output"]))]
        case kind:
            return "assistant", [("other", str(kind))]
