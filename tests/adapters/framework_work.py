"""What the agents of all frameworks are given to do: files to read, one after the other, more than their window holds."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from tenure.apis import APIS
from tenure.engine.record.entry import Role, Text
from tenure.store.store import Store
from tenure.testing.provider import Seen
from tenure.testing.script import Call, Reply, Script, Turn

FILE: Final = "\n".join(f"{n:04} def function_{n}(): return {n * 7919}" for n in range(400))
RECALLED: Final = b"0006 def function_6"  # a line of what `work` recalls


def work(steps: int, recalled: int | None = None, *, recall: str = "recall", read: str = "read", thinking: str = "") -> Script:
    """A model that reads a file in each step and says it is done; before step `recalled` it has lines of the first file back."""
    replies: list[Reply] = []
    for n in range(steps):
        if n == recalled:
            call = Call(name=recall, arguments=json.dumps({"handle": f"{read}:1", "lines": "7-8"}))
            replies.append(Reply(thinking=thinking, calls=(call,)))
        call = Call(name=read, arguments=json.dumps({"path": f"file_{n}.py"}))
        replies.append(Reply(thinking=thinking, text=f"I look at {n}.", calls=(call,)))
    return Script(replies=(*replies, Reply(thinking=thinking, text="Done.")))


def summed_up(script: Script) -> Callable[[Mapping[str, Any]], Turn]:
    """The same model, which answers a request without tools with a summary."""
    replies = iter(script.replies)
    return lambda body: next(replies) if body.get("tools") else Reply(text="Files were read.")


def prefixes(seen: Sequence[Seen]) -> list[bool]:
    """Whether each request goes on from the one before, so that the provider's cache is read; markers of the cache move, and do not count."""
    bodies = [[_unmarked(message) for message in messages_of(json.loads(each.body))] for each in seen]
    return [later[: len(before)] == before for before, later in pairwise(bodies)]


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request, whichever API's it is."""
    return next(body[api.body_key] for api in APIS.values() if api.body_key in body)


def _unmarked(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return {**message, "content": [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]}


def human_texts(store: Store, conversation: str) -> list[str]:
    """What was asked in a conversation."""
    entries = [entry for entry in store.entries(conversation) if entry.role is Role.USER]
    return [block.text for entry in entries for block in entry.blocks if isinstance(block, Text)]
