"""LangChain: a middleware that keeps an agent's window to a budget; also in LangGraph and deepagents (an edge).

    agent = create_agent("anthropic:claude-opus-4-5", tools, middleware=[TenureMiddleware(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))])

The graph's state keeps all messages; each call of the model sees the managed ones. `recall` is offered to the model and answered here, in further calls of the model,
so that it never stands in the state.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.utils.function_calling import convert_to_openai_tool

from tenure.adapters.messages import FrameworkTurn, arguments_of, completion, function_call, histories, message_of
from tenure.apis import APIS, COMMON
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = APIS[COMMON]
_WHOLE: Final = "langchain"  # a field of ours: content that only LangChain can say, such as signed reasoning


class TenureMiddleware(AgentMiddleware[Any, Any, Any]):
    """Each call of a model sees the managed history. One value serves any number of agents, threads and runs."""

    def __init__(
        self, *, store: "str | Records" = "sqlite:///tenure.db", budget: Budget | None = None, shared: Histories | None = None
    ) -> None:
        """`shared` are conversations that other adapters manage too. Raises StoreError when the store cannot be opened."""
        super().__init__()
        self.histories = histories(store, budget=budget, shared=shared)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the managed history, again while it calls `recall`."""
        turn = self._turn(request)
        try:
            while True:
                response = handler(_managed(request, turn))
                if (done := _taken(turn, response)) is not None:
                    return done
        finally:
            turn.close()

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The same, awaited; the store is written in a thread."""
        turn = await asyncio.to_thread(self._turn, request)
        try:
            while True:
                response = await handler(await asyncio.to_thread(_managed, request, turn))
                if (done := await asyncio.to_thread(_taken, turn, response)) is not None:
                    return done
        finally:
            turn.close()

    def _turn(self, request: ModelRequest[Any]) -> FrameworkTurn[BaseMessage]:
        tools = [
            tool if isinstance(tool, dict) and "function" not in tool else convert_to_openai_tool(tool) for tool in request.tools
        ]
        declared = [tool for tool in tools if "function" in tool]  # others are the provider's own, such as a web search
        model = str(getattr(request.model, "model_name", "") or getattr(request.model, "model", ""))
        return FrameworkTurn(self.histories, API, LangChainCodec(), request.messages, model=model, tools=declared, hint=_thread())


def _thread() -> str:
    """The thread of a checkpointer; empty outside of a graph."""
    from langgraph.config import get_config

    try:
        configurable = get_config().get("configurable") or {}
    except RuntimeError:
        return ""
    return f"{configurable.get('thread_id') or ''}|{configurable.get('checkpoint_ns') or ''}".strip("|")


def _managed(request: ModelRequest[Any], turn: FrameworkTurn[BaseMessage]) -> ModelRequest[Any]:
    messages = turn.messages
    if messages is request.messages and not turn.tools:
        return request
    return request.override(messages=cast(list[AnyMessage], messages), tools=[*request.tools, *turn.tools])


def _taken(turn: FrameworkTurn[BaseMessage], response: ModelResponse[Any]) -> ModelResponse[Any] | None:
    """What the agent gets; None when the model is to be called again."""
    message = response.result[0] if response.result else None
    if not isinstance(message, AIMessage):
        return response
    turn.hold(message)
    reply = _completion(message)
    shown = turn.answer(reply)
    if shown is None:
        return None
    if shown is reply:
        return response
    changed = LangChainCodec().decode(message_of(shown), message)
    return ModelResponse(result=[changed, *response.result[1:]], structured_response=response.structured_response)


def _completion(message: AIMessage) -> dict[str, Any]:
    """A reply as the API's JSON, with what it used."""
    usage: dict[str, int] = {}
    if (used := message.usage_metadata) is not None:
        details = used.get("input_token_details") or {}
        usage = {
            "prompt": used["input_tokens"],
            "output": used["output_tokens"],
            "cache_read": details.get("cache_read") or 0,
            "cache_write": details.get("cache_creation") or 0,
        }
    model = message.response_metadata.get("model_name") or message.response_metadata.get("model") or ""
    return completion(LangChainCodec().encode(message), id_=message.id or "", model=model, usage=usage)


class LangChainCodec:
    """LangChain's messages as those of Chat Completions."""

    def encode(self, message: BaseMessage, /) -> dict[str, Any]:
        """A message; of a model's, content that is no text goes along whole."""
        if isinstance(message, AIMessage):
            calls = [function_call(call["id"] or "", call["name"], call["args"]) for call in message.tool_calls]
            whole = {} if isinstance(message.content, str) else {_WHOLE: message.content}
            text = str(message.text)
            return (
                {"role": "assistant", "content": text or (None if calls else "")}
                | ({"tool_calls": calls} if calls else {})
                | whole
            )
        content: Any = message.content
        if not isinstance(content, str):
            converted: Any = convert_to_openai_messages([message])
            content = converted[0]["content"]
        if isinstance(message, ToolMessage):
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
        return {"role": "system" if isinstance(message, SystemMessage) else "user", "content": content}

    def decode(self, fields: Mapping[str, Any], original: BaseMessage | None, /) -> BaseMessage:
        """A message; what a changed one of the model's keeps of its reasoning stays as it was."""
        content = fields.get("content") or ""
        match fields.get("role"):
            case "assistant":
                return _assistant(fields, str(content), original if isinstance(original, AIMessage) else None)
            case "tool":
                if isinstance(original, ToolMessage):
                    return original.model_copy(update={"content": content})
                return ToolMessage(content=content, tool_call_id=str(fields.get("tool_call_id") or ""))
            case "system" | "developer":
                return SystemMessage(content=content)
            case _:
                return HumanMessage(content=content)


def _assistant(fields: Mapping[str, Any], text: str, original: AIMessage | None) -> AIMessage:
    given: list[Any] = list(fields.get("tool_calls") or [])
    calls = [
        {"name": call["function"]["name"], "args": arguments_of(call), "id": call["id"], "type": "tool_call"} for call in given
    ]
    ids = {call["id"] for call in calls}
    held: Any = original.content if original is not None else fields.get(_WHOLE)
    content: Any = text
    if isinstance(held, list):
        blocks: list[Any] = [
            block if isinstance(block, dict) else {"type": "text", "text": block} for block in cast(list[Any], held)
        ]
        kept = [block for block in blocks if block.get("type") != "text" and (not _is_call(block) or block.get("id") in ids)]
        words = [{"type": "text", "text": text}] if text else []
        at = next((n for n, block in enumerate(kept) if _is_call(block)), len(kept))
        content = [*kept[:at], *words, *kept[at:]]
    if original is None:
        return AIMessage(content=content, tool_calls=calls)
    more = {key: value for key, value in original.additional_kwargs.items() if key != "tool_calls"}
    return original.model_copy(update={"content": content, "tool_calls": calls, "additional_kwargs": more})


def _is_call(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("tool_use", "tool_call", "function_call")
