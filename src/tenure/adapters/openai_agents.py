"""OpenAI Agents SDK: a filter of what each call of a model sees, and `recall` as a tool (an edge).

    tenure = TenureFilter(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(name="Coder", tools=[read, tenure.recall_tool])
    await Runner.run(agent, "…", session=SQLiteSession("s"), run_config=RunConfig(call_model_input_filter=tenure))

Items are those of the Responses API, so they are managed as they are. The SDK's session keeps the whole history; the filter decides what of it is sent.
"""

import asyncio
import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from agents import FunctionTool, RunContextWrapper
from agents.run import CallModelData, ModelInputData

from tenure.adapters.messages import RECALL_TEXT, RECALL_TOOL, FrameworkTurn, JsonCodec, histories, recall_text
from tenure.apis import APIS
from tenure.context.client_context import ClientContext
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.recall import RECALL_SCHEMA

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = next(api for api in APIS.values() if api.body_key == "input")  # the one whose messages are items
_CURRENT: Final[ContextVar[ClientContext | None]] = ContextVar("tenure_conversation", default=None)


class TenureFilter:
    """A `call_model_input_filter`. One value serves any number of agents and runs, side by side."""

    def __init__(
        self, *, store: "str | Records" = "sqlite:///tenure.db", budget: Budget | None = None, shared: Histories | None = None
    ) -> None:
        """`shared` are conversations that other adapters manage too. Raises StoreError when the store cannot be opened."""
        self.histories = histories(store, budget=budget, shared=shared)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """What the model sees; the store is written in a thread."""
        items = cast(list[dict[str, Any]], data.model_data.input)
        turn = await asyncio.to_thread(FrameworkTurn, self.histories, API, JsonCodec(), items, model=_model(data.agent))
        try:
            _CURRENT.set(turn.context)
            managed = await asyncio.to_thread(lambda: turn.messages)
        finally:
            turn.close()
        return ModelInputData(input=cast(Any, managed), instructions=data.model_data.instructions)

    @property
    def recall_tool(self) -> FunctionTool:
        """`recall`, for an agent's tools."""

        async def invoke(_: RunContextWrapper[Any], arguments: str) -> str:
            try:
                given: object = json.loads(arguments or "{}")
            except ValueError as error:
                return f"recall: arguments that are no JSON ({error})"
            wanted = cast(dict[str, Any], given) if isinstance(given, dict) else {}
            return await asyncio.to_thread(recall_text, _CURRENT.get(), wanted)

        return FunctionTool(
            name=RECALL_TOOL,
            description=RECALL_TEXT,
            params_json_schema=dict(RECALL_SCHEMA),
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )


def _model(agent: Any) -> str:
    model: Any = getattr(agent, "model", None)
    return model if isinstance(model, str) else str(getattr(model, "model", "") or "")
