"""OpenHands' SDK: a condenser that keeps an agent's window to a budget, and `recall` as a tool (an edge).

    tenure = TenureCondenser(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(llm=llm, tools=[Tool(name="TerminalTool"), Tool(name="tenure_recall")], condenser=tenure)

OpenHands' own condensers put condensations into the event log, for good. This one gives the view of one call and leaves the log whole: the messages that the events make are
managed, and handed on as events of their own which are stored nowhere.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from openhands.sdk import (
    LLM,
    TextContent,
    register_tool,  # pyright: ignore[reportUnknownVariableType] - it takes tools of any kind
)
from openhands.sdk.context.condenser import CondenserBase
from openhands.sdk.context.view import View
from openhands.sdk.event import LLMConvertibleEvent
from openhands.sdk.event.types import SourceType
from openhands.sdk.llm import Message, MessageToolCall, ThinkingBlock
from openhands.sdk.tool import Action, Observation, ToolAnnotations, ToolDefinition, ToolExecutor
from pydantic import Field, PrivateAttr

from tenure.adapters.messages import RECALL_TEXT, RECALL_TOOL, FrameworkTurn, function_call, histories, recall_text, sign
from tenure.apis import APIS, COMMON
from tenure.context.client_context import ClientContext
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget

if TYPE_CHECKING:
    from openhands.sdk.conversation.base import BaseConversation
    from openhands.sdk.conversation.state import ConversationState

API: Final = APIS[COMMON]
MOST: Final = 1_000  # calls whose conversation is remembered for `recall`


class _Conversations:
    """What copies of a condenser share; a store is opened when it is first used, since OpenHands makes condensers of its own of stored agents. Mutable."""

    def __init__(self) -> None:
        self.histories: Histories | None = None
        self.contexts: OrderedDict[str, ClientContext | None] = OrderedDict()  # by the newest event of a call

    def __deepcopy__(self, memo: object) -> Self:
        return self


class TenureCondenser(CondenserBase):
    """Each call of the model sees the managed history. One value serves any number of agents and conversations, side by side.

    `store` is an address or a store, `shared` are conversations that other adapters manage too. The first call raises StoreError when the store cannot be opened.
    """

    store: Any = Field(default="sqlite:///tenure.db", exclude=True)
    budget: Any = Field(default=None, exclude=True)  # a Budget
    shared: Any = Field(default=None, exclude=True)  # Histories
    _kept: _Conversations = PrivateAttr(default_factory=_Conversations)

    def condense(self, view: View, agent_llm: LLM | None = None) -> View:
        """The managed view."""
        kept = self._kept
        if kept.histories is None:
            budget: Budget | None = self.budget
            kept.histories = histories(self.store, budget=budget, shared=self.shared)
        if not view.events:
            return view
        given = LLMConvertibleEvent.events_to_messages(view.events)
        messages = [_thought_once(each) for each in given]
        is_mended = any(mended is not each for mended, each in zip(messages, given, strict=True))
        turn = FrameworkTurn(
            kept.histories, API, MessageCodec(), messages, model=agent_llm.model if agent_llm is not None else ""
        )
        try:
            kept.contexts[view.events[-1].id] = turn.context
            while len(kept.contexts) > MOST:
                kept.contexts.popitem(last=False)
            is_same = not (turn.is_changed or is_mended)
            return view if is_same else View(events=[ManagedMessage(message=each) for each in turn.messages])
        finally:
            turn.close()

    async def acondense(self, view: View, agent_llm: LLM | None = None) -> View:
        """The same; the store is written in a thread."""
        return await asyncio.to_thread(self.condense, view, agent_llm)

    def context(self, view: View) -> ClientContext | None:
        """The conversation of the newest call that saw a part of this view."""
        contexts = self._kept.contexts
        return next((contexts[event.id] for event in reversed(view.events) if event.id in contexts), None)


class ManagedMessage(LLMConvertibleEvent):
    """A message of one call."""

    source: SourceType = "environment"
    message: Message

    def to_llm_message(self) -> Message:
        """The message."""
        return self.message


def _thought_once(message: Message) -> Message:
    """A reply whose signed thinking stands once.

    LiteLLM puts the thinking of a stream of Anthropic's together twice (its pull request 35118; 1.105.3 does), and Anthropic refuses what it has not signed. What
    it says of the whole reasoning has each text once, so a text that was thought twice stays.
    """
    texts = [each.thinking for each in message.thinking_blocks if isinstance(each, ThinkingBlock)]
    halves = [text[: len(text) // 2] for text in texts]
    if not message.reasoning_content or "".join(halves) != message.reasoning_content or texts != [2 * half for half in halves]:
        return message
    once = iter(halves)
    blocks = [
        each.model_copy(update={"thinking": next(once)}) if isinstance(each, ThinkingBlock) else each
        for each in message.thinking_blocks
    ]
    return message.model_copy(update={"thinking_blocks": blocks})


class MessageCodec:
    """OpenHands' messages as those of Chat Completions; what is no text stands as a sign for it, and goes out as it came unless its message is changed."""

    def encode(self, message: Message, /) -> dict[str, Any]:
        """A message."""
        texts = [each.text if isinstance(each, TextContent) else sign(each.type, each.image_urls) for each in message.content]
        if message.role == "assistant":
            calls = [function_call(call.id, call.name, call.arguments) for call in message.tool_calls or ()]
            text = "\n".join(texts)
            return {"role": "assistant", "content": text or (None if calls else "")} | ({"tool_calls": calls} if calls else {})
        if message.role == "tool":
            return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": "\n".join(texts)}
        return {"role": message.role, "content": [{"type": "text", "text": text} for text in texts]}

    def decode(self, fields: Mapping[str, Any], original: Message | None, /) -> Message:
        """A message; what a changed reply keeps of its reasoning stays as it was."""
        given: Any = fields.get("content") or ""
        texts = [given] if isinstance(given, str) else [part.get("text", "") for part in given]
        content = [TextContent(text=text) for text in texts if text]
        if original is not None:
            left = {call["id"] for call in fields.get("tool_calls") or ()}
            calls = [call for call in original.tool_calls or () if call.id in left]
            return original.model_copy(update={"content": content, "tool_calls": calls or None})
        calls = [_call(call) for call in fields.get("tool_calls") or ()]
        return Message(
            role=fields.get("role") or "user", content=content, tool_calls=calls or None, tool_call_id=fields.get("tool_call_id")
        )


def _call(call: Mapping[str, Any]) -> MessageToolCall:
    function = call["function"]
    return MessageToolCall(id=call["id"], name=function["name"], arguments=function["arguments"], origin="completion")


class TenureRecallAction(Action):
    """What to bring back."""

    handle: str = Field(default="", description="A handle, where you see one: read:12@3fa9, user:3.")
    lines: str = Field(default="", description="A part of it, as in 7-40.")
    words: str = Field(default="", description="Words to search for.")
    path: str = Field(default="", description="A path to search for.")
    pattern: str = Field(default="", description="A pattern to search for.")


class TenureRecallObservation(Observation):
    """What came back."""


class TenureRecallExecutor(ToolExecutor[TenureRecallAction, TenureRecallObservation]):
    """Answers from the conversation that the agent's condenser manages."""

    def __call__(self, action: TenureRecallAction, conversation: BaseConversation | None = None) -> TenureRecallObservation:
        """The answer."""
        condenser = getattr(getattr(conversation, "agent", None), "condenser", None)
        view = getattr(getattr(conversation, "state", None), "view", None)
        context = None
        if isinstance(condenser, TenureCondenser) and isinstance(view, View):
            context = condenser.context(view)
        given = {key: getattr(action, key) for key in ("handle", "lines", "words", "path", "pattern")}
        return TenureRecallObservation.from_text(text=recall_text(context, given))


class TenureRecallTool(ToolDefinition[TenureRecallAction, TenureRecallObservation]):
    """`recall`, for an agent's tools."""

    @classmethod
    def create(cls, conv_state: ConversationState | None = None, **params: Any) -> Sequence[Self]:
        """The tool. Raises ValueError for parameters: it has none."""
        if params:
            raise ValueError(f"{RECALL_TOOL} takes no parameters, found {sorted(params)}")
        return [
            cls(
                description=RECALL_TEXT,
                action_type=TenureRecallAction,
                observation_type=TenureRecallObservation,
                executor=TenureRecallExecutor(),
                annotations=ToolAnnotations(readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False),
            )
        ]


register_tool(RECALL_TOOL, TenureRecallTool)
