"""Strands Agents: a conversation manager that keeps an agent's window to a budget (an edge).

    tenure = TenureConversationManager(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(model=model, tools=[read], conversation_manager=tenure)

A manager's own methods can only cut `agent.messages`, so this one changes nothing there: it registers a middleware around each call of the model, which sends the
managed history. It stands in place of Strands' sliding window. `recall` is offered to the model and answered here, in further calls, so that it never stands in `agent.messages`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from strands.agent.conversation_manager import NullConversationManager
from strands.hooks import AgentInitializedEvent, HookRegistry
from strands.middleware import InvokeModelContext, InvokeModelStage
from strands.types.content import ContentBlock, Message
from strands.types.event_loop import Metrics, StopReason, Usage
from strands.types.events import ModelStopReason
from strands.types.session import decode_bytes_values, encode_bytes_values
from strands.types.tools import ToolSpec

from tenure.adapters.messages import (
    FrameworkTurn,
    MessagePart,
    arguments_of,
    completion,
    function_call,
    histories,
    joined,
    message_of,
    sign,
)
from tenure.apis import APIS, COMMON
from tenure.apis.reply import fields_of
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = APIS[COMMON]
_MORE: Final = "strands"  # a field of ours: what of a reply only Strands can say, such as signed reasoning
_SAID: Final = frozenset({"text", "citationsContent", "toolUse"})


class TenureConversationManager(NullConversationManager):
    """Each call of the model sees the managed history. One value serves any number of agents and runs, side by side."""

    def __init__(
        self, *, store: "str | Records" = "sqlite:///tenure.db", budget: Budget | None = None, shared: Histories | None = None
    ) -> None:
        """`shared` are conversations that other adapters manage too. Raises StoreError when the store cannot be opened."""
        super().__init__()
        self.histories = histories(store, budget=budget, shared=shared)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Called by each agent as it is made."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._attach)

    def _attach(self, event: AgentInitializedEvent) -> None:
        event.agent.add_middleware(InvokeModelStage, self._invoke)

    async def _invoke(
        self, context: InvokeModelContext, ask: Callable[[InvokeModelContext], AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        """Call the model with the managed history, again while it calls `recall`; the store is written in a thread."""
        turn = await asyncio.to_thread(self._turn, context)
        try:
            while True:
                stop: ModelStopReason | None = None
                async for event in ask(await asyncio.to_thread(_managed, context, turn)):
                    if isinstance(event, ModelStopReason):
                        stop = event
                    else:
                        yield event
                if stop is None:
                    return
                if (done := await asyncio.to_thread(_taken, turn, context, stop)) is not None:
                    yield done
                    return
        finally:
            turn.close()

    def _turn(self, context: InvokeModelContext) -> FrameworkTurn[MessagePart]:
        parts = [each for message in context.messages for each in _parts(message)]
        tools = [_declared(spec) for spec in context.tool_specs]
        return FrameworkTurn(
            self.histories, API, StrandsCodec(), parts, model=_model(context), tools=tools, hint=_session(context.agent)
        )


def _session(agent: Any) -> str:
    """An agent of a session: a sub-agent's own history is a conversation of its own."""
    session = getattr(getattr(agent, "_session_manager", None), "session_id", "")
    return f"{session}|{agent.agent_id}" if session else ""


def _model(context: InvokeModelContext) -> str:
    return str(fields_of(context.model.get_config()).get("model_id") or "")


def _declared(spec: ToolSpec) -> dict[str, Any]:
    schema = cast(Any, spec["inputSchema"])
    return API.tool(spec["name"], spec["description"], fields_of(schema.get("json") or schema))


def _managed(context: InvokeModelContext, turn: FrameworkTurn[MessagePart]) -> InvokeModelContext:
    if not turn.is_changed:
        return context
    ours: list[Any] = [
        {
            "name": tool["function"]["name"],
            "description": tool["function"]["description"],
            "inputSchema": {"json": tool["function"]["parameters"]},
        }
        for tool in turn.tools
    ]
    messages = joined(turn.messages, lambda owner: owner["content"], _user)
    return context.replace(messages=messages, tool_specs=[*context.tool_specs, *ours])


def _user(owner: Message | None, content: list[Any]) -> Message:
    return cast(Message, {**(owner or {}), "role": "user", "content": content})


def _taken(turn: FrameworkTurn[MessagePart], context: InvokeModelContext, event: ModelStopReason) -> ModelStopReason | None:
    """What the agent gets; None when the model is to be called again."""
    stop, message, usage, metrics = cast(tuple[StopReason, Message, Usage, Metrics], event["stop"])
    (part,) = _parts(message)
    turn.hold(part)
    used = {
        "prompt": usage["totalTokens"] - usage["outputTokens"],
        "output": usage["outputTokens"],
        "cache_read": usage.get("cacheReadInputTokens") or 0,
        "cache_write": usage.get("cacheWriteInputTokens") or 0,
    }
    reply = completion(StrandsCodec().encode(part), id_="", model=_model(context), usage=used)
    shown = turn.answer(reply)
    if shown is None:
        return None
    if shown is reply:
        return event
    changed: Message = StrandsCodec().decode(message_of(shown), part).content[0]
    if stop == "tool_use" and not any("toolUse" in block for block in changed["content"]):
        stop = "end_turn"
    return ModelStopReason(stop_reason=stop, message=changed, usage=usage, metrics=metrics)


def _parts(message: Message) -> list[MessagePart]:
    """A reply whole; of others each result alone, and what stands between them together."""
    if message["role"] == "assistant":
        return [MessagePart((message,), message, is_reply=True)]
    parts: list[MessagePart] = []
    for block in message["content"]:
        alone = "toolResult" in block
        if parts and not alone and "toolResult" not in parts[-1].content[0]:
            parts[-1] = MessagePart((*parts[-1].content, block), message)
        else:
            parts.append(MessagePart((block,), message))
    return parts


class StrandsCodec:
    """Strands' messages as those of Chat Completions; what is no text stands as a sign for it, and goes out as it came unless its message is changed."""

    def encode(self, message: MessagePart, /) -> dict[str, Any]:
        """A message."""
        if message.is_reply:
            blocks: Sequence[ContentBlock] = message.content[0]["content"]
            calls = [
                function_call(block["toolUse"]["toolUseId"], block["toolUse"]["name"], block["toolUse"]["input"])
                for block in blocks
                if "toolUse" in block
            ]
            text = "".join(_text(block) for block in blocks if _SAID & block.keys() and "toolUse" not in block)
            more = [encode_bytes_values(block) for block in blocks if not _SAID & block.keys()]
            reply = {"role": "assistant", "content": text or (None if calls else "")}
            return reply | ({"tool_calls": calls} if calls else {}) | ({_MORE: more} if more else {})
        first: ContentBlock = message.content[0]
        if "toolResult" in first:
            result = first["toolResult"]
            text = "\n".join(_text(cast(ContentBlock, block)) for block in result["content"])
            return {"role": "tool", "tool_call_id": result["toolUseId"], "content": text}
        return {"role": "user", "content": "\n".join(_text(block) for block in message.content if "cachePoint" not in block)}

    def decode(self, fields: Mapping[str, Any], original: MessagePart | None, /) -> MessagePart:
        """A message; what a changed reply keeps of its reasoning stays as it was."""
        text = str(fields.get("content") or "")
        owner = original.owner if original is not None else None
        match fields.get("role"):
            case "assistant":
                more = [decode_bytes_values(block) for block in fields.get(_MORE) or ()]
                words: list[Any] = [{"text": text}] if text else []
                calls = [_call(call) for call in fields.get("tool_calls") or ()]
                message: dict[str, Any] = {**(owner or {}), "role": "assistant", "content": [*more, *words, *calls]}
                return MessagePart((message,), message, is_reply=True)
            case "tool":
                status = original.content[0]["toolResult"]["status"] if original is not None else "success"
                result = {"toolUseId": str(fields.get("tool_call_id") or ""), "status": status, "content": [{"text": text}]}
                return MessagePart(({"toolResult": result},), owner)
            case _:
                return MessagePart(({"text": text},), owner)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments_of(call)}}


def _text(block: ContentBlock) -> str:
    """A block in words."""
    fields: Mapping[str, Any] = block
    if "text" in fields:
        return fields["text"]
    if "json" in fields:
        return json.dumps(fields["json"], ensure_ascii=False)
    if "citationsContent" in fields:
        return "".join(str(each.get("text", "")) for each in fields["citationsContent"].get("content", ()))
    return sign(*next(iter(fields.items())))
