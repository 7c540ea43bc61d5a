"""OpenAI Agents SDK: a filter of what each call of a model sees, a session whose items are the record's, and `recall` as a tool (an edge).

    tenure = TenureFilter(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(name="Coder", tools=[read, tenure.recall_tool])
    config = RunConfig(call_model_input_filter=tenure)
    await Runner.run(agent, "…", session=tenure.session("s"), hooks=tenure.hooks, run_config=config)

Items are those of the Responses API, so they are managed as they are. A session gives the whole history; the filter decides what of it is sent, and the hooks record
replies as they come and learn from what they used.
"""

import asyncio
import json
from collections.abc import Sequence
from contextvars import ContextVar
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from agents import FunctionTool, RunContextWrapper, RunHooks
from agents.items import ModelResponse
from agents.memory import SessionSettings
from agents.run import CallModelData, ModelInputData

from tenure.adapters.messages import RECALL_TEXT, RECALL_TOOL, FrameworkTurn, JsonCodec, histories, recall_text
from tenure.apis import APIS
from tenure.apis.json_text import dump, encoded, load
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.recall import RECALL_SCHEMA
from tenure.engine.view.piece import whole_piece
from tenure.errors import InputError
from tenure.store.records import ClientLink

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = next(api for api in APIS.values() if api.body_key == "input")  # the one whose messages are items
_CURRENT: Final[ContextVar[FrameworkTurn[dict[str, Any]] | None]] = ContextVar("tenure_turn", default=None)


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
        head = {"instructions": data.model_data.instructions or "", "tools": _declared(data.agent)}
        turn = await asyncio.to_thread(
            FrameworkTurn, self.histories, API, JsonCodec(), items, model=_model(data.agent), head=head
        )
        try:
            _CURRENT.set(turn)
            managed = await asyncio.to_thread(lambda: turn.messages)
        finally:
            turn.close()  # nobody waits for its reply, which may never come
        return ModelInputData(input=cast(Any, managed), instructions=data.model_data.instructions)

    @property
    def hooks(self) -> RunHooks[Any]:
        """For `Runner.run(hooks=…)`: replies are recorded as they come, and what they used teaches how the provider counts."""
        return _Hooks()

    def session(self, session_id: str) -> "TenureSession":
        """A session of the SDK whose items are the record's; the same id is the same session, also after a restart."""
        return TenureSession(session_id, self.histories)

    @property
    def recall_tool(self) -> FunctionTool:
        """`recall`, for an agent's tools."""

        async def invoke(_: RunContextWrapper[Any], arguments: str) -> str:
            try:
                given: object = json.loads(arguments or "{}")
            except ValueError as error:
                return f"recall: arguments that are no JSON ({error})"
            wanted = cast(dict[str, Any], given) if isinstance(given, dict) else {}
            turn = _CURRENT.get()
            return await asyncio.to_thread(recall_text, turn.context if turn is not None else None, wanted)

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


def _declared(agent: Any) -> list[dict[str, Any]]:
    """An agent's tools as they will be declared, but for those that a server of MCP or a handoff brings."""
    return [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        for tool in getattr(agent, "tools", ())
        if isinstance(tool, FunctionTool)
    ]


class _Hooks(RunHooks[Any]):
    """Sees each reply whole, streamed or not."""

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:  # noqa: ARG002 - the SDK names them
        turn = _CURRENT.get()
        if turn is None:
            return
        used = response.usage
        reply: dict[str, Any] = {
            "id": response.response_id or "",
            "object": "response",
            "status": "completed",
            "model": _model(agent),
            "output": [item.model_dump(mode="json", exclude_unset=True) for item in response.output],
        }
        if used.input_tokens:
            reply["usage"] = {
                "input_tokens": used.input_tokens,
                "input_tokens_details": used.input_tokens_details.model_dump(mode="json"),
                "output_tokens": used.output_tokens,
                "total_tokens": used.total_tokens,
            }
        await asyncio.to_thread(turn.answer, reply)


class TenureSession:
    """A `Session` of the SDK: a place in a conversation of the store, and so the history that the filter finds again.

    What is popped or cleared is no longer of the session and stays in the record; what comes then is a fork. As the SDK expects, one run at a time adds to a session.
    """

    session_settings: SessionSettings | None = None

    def __init__(self, session_id: str, conversations: Histories) -> None:
        self.session_id = session_id
        self._histories = conversations
        self._place = sha256(f"openai-agents session\0{session_id}".encode()).hexdigest()
        self._alone = asyncio.Lock()

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """All items, or the newest `limit`."""
        most = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        items = [load(item.decode(), "item") for item in await asyncio.to_thread(self._items)]
        return items if most is None else items[len(items) - most :] if 0 < most < len(items) else items if most > 0 else []

    async def add_items(self, items: Sequence[Any]) -> None:
        """Record items behind those that are there. Raises InputError for what is no item, StoreError when the store fails."""
        async with self._alone:
            await asyncio.to_thread(self._add, [encoded(dump(item)) for item in items])

    async def pop_item(self) -> Any | None:
        """The newest item, which is no longer of the session; None when there is none."""
        async with self._alone:
            items = await asyncio.to_thread(self._items)
            if not items:
                return None
            await asyncio.to_thread(self._move, self._at()[0], len(items) - 1)
            return load(items[-1].decode(), "item")

    async def clear_session(self) -> None:
        """Begin anew."""
        async with self._alone:
            if conversation := (await asyncio.to_thread(self._at))[0]:
                await asyncio.to_thread(self._move, conversation, 0)

    def _at(self) -> tuple[str, int]:
        """The conversation, and how many of its items are the session's."""
        return next(((link.conversation, link.n) for link in self._histories.store.links([self._place])), ("", 0))

    def _move(self, conversation: str, n: int) -> None:
        self._histories.store.link([ClientLink(id=self._place, conversation=conversation, n=n)])

    def _items(self) -> list[bytes]:
        conversation, n = self._at()
        items: list[bytes] = []
        for entry in self._histories.store.entries(conversation) if n else ():
            items += API.render((whole_piece(entry),))
            if len(items) >= n:
                break
        return items[:n]

    def _add(self, items: list[bytes]) -> None:
        if not items:
            return
        whole = [*self._items(), *items]
        raw = b'{"input":[' + b",".join(whole) + b"]}"
        exchange = self._histories.exchange(API, raw, records=True)
        exchange.close()
        if not exchange.conversation:
            raise InputError("session", exchange.reason, "items that can be recorded")
        self._move(exchange.conversation, len(whole))
