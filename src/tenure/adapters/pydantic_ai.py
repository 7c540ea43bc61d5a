"""Pydantic AI: a capability that keeps an agent's window to a budget, with `recall` as a toolset (an edge).

    agent = Agent("anthropic:claude-opus-4-5", tools=[read], capabilities=[TenureCapability(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))])

Only what a request shows is changed: the run's messages, and with them what `result.all_messages()` gives, stay whole.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import FunctionToolset

from tenure.adapters.messages import (
    RECALL_TEXT,
    RECALL_TOOL,
    FrameworkTurn,
    MessagePart,
    Turns,
    completion,
    function_call,
    histories,
    joined,
    sign,
)
from tenure.apis import APIS, COMMON
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = APIS[COMMON]


class TenureCapability(AbstractCapability[Any]):
    """Each request shows the managed history. One value serves any number of agents and runs, side by side."""

    def __init__(
        self, *, store: "str | Records" = "sqlite:///tenure.db", budget: Budget | None = None, shared: Histories | None = None
    ) -> None:
        """`shared` are conversations that other adapters manage too. Raises StoreError when the store cannot be opened."""
        self.histories = histories(store, budget=budget, shared=shared)
        self._turns: Turns[MessagePart] = Turns()

    async def before_model_request(self, ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        """Show the managed history; the store is written in a thread."""
        return replace(request_context, messages=await asyncio.to_thread(self._managed, ctx, request_context))

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,  # noqa: ARG002 - the hook names it
        response: ModelResponse,
    ) -> ModelResponse:
        """Record the reply, and learn from what it used."""
        await asyncio.to_thread(self._turns.reply, ctx.run_id or "", lambda: _completion(response))
        return response

    def get_toolset(self) -> FunctionToolset[Any]:
        """`recall`."""
        toolset: FunctionToolset[Any] = FunctionToolset()

        async def recall(
            ctx: RunContext[Any], handle: str = "", lines: str = "", words: str = "", path: str = "", pattern: str = ""
        ) -> str:
            given = {"handle": handle, "lines": lines, "words": words, "path": path, "pattern": pattern}
            return await asyncio.to_thread(self._turns.recall, ctx.run_id or "", given)

        toolset.add_function(recall, name=RECALL_TOOL, description=RECALL_TEXT)
        return toolset

    def _managed(self, ctx: RunContext[Any], request: ModelRequestContext) -> list[ModelMessage]:
        parts = [each for message in request.messages for each in _parts(message)]
        given = request.model_request_parameters
        told = [{"role": "system", "content": each.content} for each in given.instruction_parts or ()]
        tools = [
            {"name": each.name, "description": each.description, "parameters": each.parameters_json_schema}
            for each in (*given.function_tools, *given.output_tools)
        ]
        turn = FrameworkTurn(
            self.histories,
            API,
            PartCodec(),
            parts,
            model=request.model.model_name,
            head={"tools": [*told, *tools]},  # the API has no other place in front of the messages
            hint=ctx.conversation_id or "",
        )
        shown = self._turns.begin(ctx.run_id or "", turn)
        return list(request.messages) if shown == parts else joined(shown, lambda owner: owner.parts, _request)


def _completion(response: ModelResponse) -> dict[str, Any]:
    """A reply as the API's JSON, with what it used."""
    used = response.usage
    usage = {
        "prompt": used.input_tokens,
        "output": used.output_tokens,
        "cache_read": used.cache_read_tokens,
        "cache_write": used.cache_write_tokens,
    }
    message = PartCodec().encode(_reply(response))
    return completion(message, id_=response.provider_response_id or "", model=response.model_name or "", usage=usage)


def _parts(message: ModelMessage) -> list[MessagePart]:
    if isinstance(message, ModelResponse):
        return [_reply(message)]
    return [MessagePart((part,), message) for part in message.parts]


def _reply(response: ModelResponse) -> MessagePart:
    return MessagePart((response,), response, is_reply=True)


def _request(owner: ModelRequest | None, parts: list[Any]) -> ModelMessage:
    return replace(owner, parts=parts) if owner is not None else ModelRequest(parts=parts)


class PartCodec:
    """Parts of requests, and responses, as messages of Chat Completions."""

    def encode(self, message: MessagePart, /) -> dict[str, Any]:
        """A message; what is no text stands as a sign for it."""
        part = message.content[0]
        match part:
            case ModelResponse():
                calls = [
                    function_call(call.tool_call_id, call.tool_name, call.args_as_json_str())
                    for call in part.parts
                    if isinstance(call, ToolCallPart)
                ]
                text = "".join(each.content for each in part.parts if isinstance(each, TextPart))
                return {"role": "assistant", "content": text or (None if calls else "")} | (
                    {"tool_calls": calls} if calls else {}
                )
            case ToolReturnPart():
                return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
            case UserPromptPart():
                return {"role": "user", "content": _words(part.content)}
            case SystemPromptPart():
                return {"role": "system", "content": part.content}
            case _ if callable(getattr(part, "model_response", None)):  # a retry: of a call, or of the whole answer
                words = str(part.model_response())
                named = getattr(part, "tool_name", None)
                return (
                    {"role": "tool", "tool_call_id": part.tool_call_id, "content": words}
                    if named
                    else {"role": "user", "content": words}
                )
            case _:  # instructions and their changes, which come and go by the framework's own rules
                return {"role": "system", "content": f"{type(part).__name__} {getattr(part, 'content', '')}"}

    def decode(self, fields: Mapping[str, Any], original: MessagePart | None, /) -> MessagePart:
        """A part; what a changed response keeps of its reasoning stays as it was."""
        part, owner = (original.content[0], original.owner) if original is not None else (None, None)
        content = fields.get("content") or ""
        match fields.get("role"):
            case "assistant" if isinstance(part, ModelResponse):
                ids = {str(call["id"]) for call in fields.get("tool_calls") or ()}
                return _reply(replace(part, parts=_left(part, ids, str(content))))
            case "assistant":
                return _reply(ModelResponse(parts=[TextPart(str(content))]))
            case "tool" if part is not None:
                changed: Any = replace(part, content=content)
            case "tool":
                changed = ToolReturnPart(tool_name="", content=content, tool_call_id=str(fields.get("tool_call_id")))
            case "system" | "developer":
                changed = SystemPromptPart(str(content))
            case _:
                changed = UserPromptPart(cast(Any, content))
        return MessagePart((changed,), owner)


def _left(response: ModelResponse, ids: set[str], text: str) -> list[Any]:
    """The parts of a changed response: other words, and the calls that are left."""
    kept = [
        each
        for each in response.parts
        if not isinstance(each, TextPart | ToolCallPart) or (isinstance(each, ToolCallPart) and each.tool_call_id in ids)
    ]
    at = next((n for n, each in enumerate(kept) if isinstance(each, ToolCallPart)), len(kept))
    return [*kept[:at], *([TextPart(text)] if text else []), *kept[at:]]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(each if isinstance(each, str) else _sign(each) for each in cast(Sequence[Any], content))


def _sign(item: Any) -> str:
    if isinstance(item, BinaryContent):
        return sign(item.media_type, item.data)
    return f"[{type(item).__name__} {getattr(item, 'url', '') or getattr(item, 'content', '')}]"
