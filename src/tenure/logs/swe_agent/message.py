"""One message of SWE-agent's history, as it was sent: version 0 keeps actions and observations as text, version 1 as tool calls too."""

from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.apis.openai_chat import OpenAIChat
from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, ToolCall
from tenure.logs.json_files import Element
from tenure.logs.salvage import cut

# Who wrote what stands in the user's role; anything else that follows the task is what an action printed.
WRITERS: Final = {"demonstration": Origin.HARNESS, "system_prompt": Origin.HARNESS, "user": Origin.HARNESS}

NOTHING: Final = (b"", b"null", b"[]")  # how a message without calls says so

_dialect: Final = OpenAIChat()
_string: Final = msgspec.json.Decoder(str)


class _Thinking(Struct, frozen=True, gc=False):
    type: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class Item(Struct, frozen=True, gc=False):
    """A message of the history, beside what SWE-agent notes about it."""

    role: str = ""
    content: Raw = Raw(b"null")
    agent: str | None = None
    is_demo: bool | None = None
    message_type: str | None = None
    thought: str | None = None
    tool_calls: Raw = Raw(b"null")
    tool_call_ids: list[str] | None = None
    thinking_blocks: list[_Thinking] | None = None

    @property
    def text(self) -> str:
        """The content where it is plain text."""
        try:
            return _string.decode(bytes(self.content))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""


class Speech:
    """One conversation while it is read: who was asked already, and which calls can have a result."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.asked = False
        self.called: dict[str, None] = {}

    def draft(self, element: Element, item: Item, reasoning: str = "") -> Draft:
        """The message as a draft. Raises InputError when it is no chat message."""
        answers = self._answers(item)
        draft = _dialect.parse([_sent(element, item, answers, reasoning)])[0]
        demo = bool(item.is_demo)
        blocks = tuple(self._by(draft.role, item, block) for block in draft.blocks)
        if draft.role is Role.USER and not demo:
            self.asked = True
        self.called.update((block.call_id, None) for block in blocks if isinstance(block, ToolCall))
        model = self.model if draft.role is Role.ASSISTANT and not demo else ""
        return replace(draft, blocks=blocks, line=element.line, model=model)

    def _answers(self, item: Item) -> str | None:
        """The call that a tool's message answers: the one it names, or else the newest; None when there was none."""
        if item.role != "tool":
            return None
        named = next(iter(item.tool_call_ids or ()), None) or next(reversed(self.called), None)
        return named if named in self.called else None

    def _by(self, role: Role, item: Item, block: Block) -> Block:
        if item.is_demo:
            return replace(block, origin=Origin.HARNESS)
        if role is Role.USER and isinstance(block, Text):
            other = Origin.TOOL if self.asked else Origin.HUMAN
            return replace(block, origin=WRITERS.get(item.message_type or "", other))
        return block


def _sent(element: Element, item: Item, answers: str | None, reasoning: str) -> bytes:
    """The message as OpenAI's API takes it; a result without a call is what it is without tools: text in the user's role."""
    role = "user" if item.role == "tool" and answers is None else item.role
    fields = {"role": msgspec.json.encode(role), "content": cut(bytes(item.content), element.source, element.faithful)}
    calls = bytes(item.tool_calls)
    if calls.replace(b" ", b"") not in NOTHING:
        fields["tool_calls"] = cut(calls, element.source, element.faithful)
    if answers is not None:
        fields["tool_call_id"] = msgspec.json.encode(answers)
    if item.thinking_blocks:
        fields["reasoning_details"] = msgspec.json.encode([_detail(block) for block in item.thinking_blocks])
    elif reasoning:
        fields["reasoning_content"] = msgspec.json.encode(reasoning)
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in fields.items()) + b"}"


def _detail(block: _Thinking) -> dict[str, str]:
    """A thinking block in the shape in which OpenAI's API passes it on."""
    if block.data:
        return {"type": "reasoning.encrypted", "data": block.data}
    signature = {"signature": block.signature} if block.signature else {}
    return {"type": "reasoning.text", "text": block.thinking or ""} | signature
