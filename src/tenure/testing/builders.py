"""Tiny builders, so that a whole case reads as a table.

human("fix it")
reply(thinking("where is it?"), call("grep", pattern="verify"))
result("auth.py:12")
reply(*delimiter_end("auth lives in auth.py"))
"""

from hashlib import sha256
from typing import Any

import msgspec

from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import (
    Block,
    Draft,
    Entry,
    Media,
    Opaque,
    Origin,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from tenure.engine.record.index import Index, index_of
from tenure.engine.record.tools import DELIMITER, Kinds

CALL_ID = "call_0"  # of calls and results that do not say: some hosts use one id for all


def human(*parts: str | Block) -> Draft:
    """A message of the person; results and reminders may stand beside the words."""
    return Draft(role=Role.USER, blocks=tuple(_part(part, Origin.HUMAN) for part in parts))


def harness(*parts: str | Block, role: Role = Role.USER) -> Draft:
    """A message that the host wrote."""
    return Draft(role=role, blocks=tuple(_part(part, Origin.HARNESS) for part in parts))


def system(text: str) -> Draft:
    """A system prompt."""
    return harness(text, role=Role.SYSTEM)


def reply(*parts: str | Block, at: str = "", model: str = "", usage: Usage | None = None) -> Draft:
    """A message of the model; strings are its words."""
    return Draft(role=Role.ASSISTANT, blocks=tuple(_part(part, Origin.MODEL) for part in parts), at=at, model=model, usage=usage)


def results(*parts: Block | str, role: Role = Role.TOOL) -> Draft:
    """A message of results; strings are results of calls that do not say their id."""
    return Draft(role=role, blocks=tuple(returned(part) if isinstance(part, str) else part for part in parts))


def result(text: str, call_id: str = CALL_ID, *, error: bool = False, media: tuple[Media, ...] = ()) -> Draft:
    """A message of one result."""
    return results(returned(text, call_id, error=error, media=media))


def returned(text: str, call_id: str = CALL_ID, *, error: bool = False, media: tuple[Media, ...] = ()) -> ToolResult:
    """A result as a block, to stand beside others."""
    return ToolResult(call_id=call_id, text=text, error=error, media=media)


def reminder(text: str) -> Text:
    """Words of the host, to stand beside a person's."""
    return Text(text=text, origin=Origin.HARNESS)


def call(tool: str, call_id: str = CALL_ID, /, **arguments: Any) -> ToolCall:
    """A call of a tool."""
    return ToolCall(call_id=call_id, name=tool, arguments=msgspec.json.encode(arguments).decode())


def thinking(text: str, *, signed: bool = False) -> Thinking:
    """A reasoning trace; a signed one is sealed by its text."""
    return Thinking(text=text, seal=sha256(text.encode()).hexdigest() if signed else "")


def picture(name: str = "a", origin: Origin = Origin.HUMAN) -> Media:
    """A small image, the same for the same name."""
    return Media(media_type="image/png", sha256=sha256(name.encode()).hexdigest(), size=100, width=10, height=10, origin=origin)


def unknown(text: str, origin: Origin = Origin.HARNESS) -> Opaque:
    """A part of a kind that this version does not know."""
    return Opaque(type="unknown", text=text, origin=origin)


def start_expl(name: str, call_id: str = CALL_ID) -> ToolCall:
    """The call that starts an expl episode."""
    return call(DELIMITER, call_id, action="start", name=name, type="expl")


def start_act(name: str, *dependencies: str, call_id: str = CALL_ID) -> ToolCall:
    """The call that starts an act episode."""
    return call(DELIMITER, call_id, action="start", name=name, type="act", dependencies=list(dependencies))


def end_expl(description: str, call_id: str = CALL_ID) -> ToolCall:
    """The call that ends an expl episode."""
    return call(DELIMITER, call_id, action="end", description=description)


def end_act(call_id: str = CALL_ID) -> ToolCall:
    """The call that ends an act episode."""
    return call(DELIMITER, call_id, action="end")


def by_words(text: str) -> int:
    """A tokenizer for tests: one token a word."""
    return len(text.split())


def weigh_words(blocks: tuple[Block, ...]) -> tuple[int, ...]:
    """The weights that `by_words` gives; the first block carries the entry's framing of 4."""
    weights = [by_words(block.text) + 1 for block in blocks]
    return tuple([weight + 4 * (number == 0) for number, weight in enumerate(weights)])


def session(setup: Setup, *drafts: Draft, kinds: Kinds | None = None) -> Session:
    """A session that counts words, with these messages taken in."""
    opened = Session(setup, weigh=weigh_words, count=by_words, kinds=kinds)
    for draft in drafts:
        opened.append(draft)
    return opened


def placed(*drafts: Draft, tenant: str = "") -> tuple[Entry, ...]:
    """Messages in their places, outside of any session."""
    chain = Chain(tenant)
    return tuple(chain.place(draft, weigh_words(draft.blocks)) for draft in drafts)


def indexed(*drafts: Draft) -> Index:
    """The index of these messages."""
    return index_of(placed(*drafts))


def _part(part: str | Block, origin: Origin) -> Block:
    return Text(text=part, origin=origin) if isinstance(part, str) else part
