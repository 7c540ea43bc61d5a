"""Inspect: a model whose conversations are kept to a budget, for any solver, agent or bridge (an edge).

    model = tenure_model("anthropic/claude-opus-4-5", store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    eval(Task(dataset=samples, solver=react(tools=[bash()])), model=model)

Inspect's own seam, a `CompactionStrategy`, is none for this: it is called above a threshold only, with what the strategy left the time before in place of the history, sees no
reply, and a sample ends where its result is above the threshold. So it is the model that is managed: samples and logs keep all messages, each call sends the managed ones.
`recall` is offered to the model and answered here, in further calls of the provider, so that it never stands in a sample.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentText,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo, ToolParams
from pydantic import TypeAdapter

from tenure.adapters.messages import FrameworkTurn, arguments_of, completion, function_call, histories, message_of, sign
from tenure.apis import APIS, COMMON
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = APIS[COMMON]
_MORE: Final = "inspect"  # a field of ours, of a reply whose content is a list: what of it is no text, such as signed reasoning
_CONTENT: Final[TypeAdapter[list[Content]]] = TypeAdapter(list[Content])


def tenure_model(
    model: str | Model | None = None,
    *,
    store: "str | Records" = "sqlite:///tenure.db",
    budget: Budget | None = None,
    shared: Histories | None = None,
) -> Model:
    """The same model (one's name; None: the one being evaluated) with managed conversations; it serves any number of samples side by side.

    `shared` are conversations that other adapters manage too. Raises StoreError when the store cannot be opened, and what `get_model` raises.
    """
    made = copy.copy(get_model(model))
    made.api = copy.copy(made.api)  # shares the connections of its original
    setattr(made.api, "generate", _Managed(made.api, histories(store, budget=budget, shared=shared)))  # noqa: B010 - a method, for this value only
    return made


class _Managed:
    """A provider's `generate`."""

    def __init__(self, api: ModelAPI, conversations: Histories) -> None:
        self.generate, self.model, self.conversations = api.generate, api.model_name, conversations

    async def __call__(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> Any:
        declared = [
            API.tool(tool.name, tool.description, tool.parameters.model_dump(mode="json", exclude_none=True)) for tool in tools
        ]
        turn = await to_thread.run_sync(
            lambda: FrameworkTurn(self.conversations, API, ChatCodec(), input, model=self.model, tools=declared)
        )
        try:
            used = None
            while True:
                messages, ours = await to_thread.run_sync(lambda: (turn.messages, [_info(tool) for tool in turn.tools]))
                result = await self.generate(messages, [*tools, *ours], tool_choice, config)
                output, *call = result if isinstance(result, tuple) else (result,)
                if not isinstance(output, ModelOutput) or not output.choices:
                    return result
                own, used = output.usage, output.usage + used if output.usage and used else output.usage or used
                shown = await to_thread.run_sync(_taken, turn, output)
                if shown is not None:
                    shown = shown if used is own else shown.model_copy(update={"usage": used})
                    return (shown, *call) if call else shown
        finally:
            turn.close()


def _info(tool: Mapping[str, Any]) -> ToolInfo:
    function = tool["function"]
    return ToolInfo(
        name=function["name"], description=function["description"], parameters=ToolParams.model_validate(function["parameters"])
    )


def _taken(turn: FrameworkTurn[ChatMessage], output: ModelOutput) -> ModelOutput | None:
    """What Inspect gets; None when the model is to be called again."""
    choice = output.choices[0]
    turn.hold(choice.message)
    used: dict[str, int] = {}
    if (usage := output.usage) is not None:
        read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
        prompt = usage.input_tokens + read + written
        used = {"prompt": prompt, "output": usage.output_tokens, "cache_read": read, "cache_write": written}
    reply = completion(ChatCodec().encode(choice.message), id_="", model=output.model, usage=used)
    shown = turn.answer(reply)
    if shown is None:
        return None
    if shown is reply:
        return output
    message = ChatCodec().decode(message_of(shown), choice.message)
    assert isinstance(message, ChatMessageAssistant)
    stop = choice.stop_reason if message.tool_calls or choice.stop_reason != "tool_calls" else "stop"
    changed = choice.model_copy(update={"message": message, "stop_reason": stop})
    return output.model_copy(update={"choices": [changed, *output.choices[1:]], "completion": message.text})


class ChatCodec:
    """Inspect's messages as those of Chat Completions; what is no text stands as a sign for it, and goes out as it came unless its message is changed."""

    def encode(self, message: ChatMessage, /) -> dict[str, Any]:
        """A message."""
        match message:
            case ChatMessageAssistant():
                calls = [function_call(call.id, call.function, call.arguments) for call in message.tool_calls or ()]
                reply: dict[str, Any] = {"role": "assistant", "content": message.text or (None if calls else "")}
                if not isinstance(message.content, str):
                    more: list[Any] = [block for block in message.content if not isinstance(block, ContentText)]
                    reply[_MORE] = _CONTENT.dump_python(more, mode="json", exclude_none=True)
                return reply | ({"tool_calls": calls} if calls else {})
            case ChatMessageTool():
                text = message.error.message if message.error is not None else _words(message.content)
                return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": text}
            case _:
                return {"role": message.role, "content": _words(message.content)}

    def decode(self, fields: Mapping[str, Any], original: ChatMessage | None, /) -> ChatMessage:
        """A message; what a changed reply keeps of its reasoning stays as it was."""
        text = str(fields.get("content") or "")
        match fields.get("role"):
            case "assistant":
                own = {call.id: call for call in original.tool_calls or ()} if isinstance(original, ChatMessageAssistant) else {}
                calls = [own.get(call["id"]) or _call(call) for call in fields.get("tool_calls") or ()]
                content: Any = text
                if _MORE in fields:
                    content = [*_CONTENT.validate_python(fields[_MORE]), *([ContentText(text=text)] if text else [])]
                held = original if isinstance(original, ChatMessageAssistant) else ChatMessageAssistant(content="")
                return held.model_copy(update={"content": content, "tool_calls": calls or None})
            case "tool":
                if isinstance(original, ChatMessageTool):
                    return original.model_copy(update={"content": text, "error": None})
                return ChatMessageTool(content=text, tool_call_id=str(fields.get("tool_call_id") or ""))
            case "system" | "developer":
                return ChatMessageSystem(content=text)
            case _:
                return ChatMessageUser(content=text)


def _call(call: Mapping[str, Any]) -> ToolCall:
    return ToolCall(id=call["id"], function=call["function"]["name"], arguments=arguments_of(call))


def _words(content: str | Sequence[Content]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text if isinstance(block, ContentText) else sign(block.type, block.model_dump()) for block in content)
