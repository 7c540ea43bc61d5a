"""Google ADK: a callback before each call of a model, and `recall` as a tool (an edge).

    tenure = TenureCallbacks(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = LlmAgent(
        name="coder", model="gemini-3-flash", tools=[read, tenure.recall], before_model_callback=tenure, after_model_callback=tenure.after
    )

ADK keeps the session's events whole; the callback puts the managed contents into the one request. Contents are those of Gemini's own API.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from google.adk.tools import ToolContext
from google.genai import types

from tenure.adapters.messages import RECALL_TEXT, RECALL_TOOL, FrameworkTurn, Turns, histories
from tenure.apis import APIS
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = next(api for api in APIS.values() if api.body_key == "contents")  # the one whose messages are contents


class TenureCallbacks:
    """A `before_model_callback`. One value serves any number of agents and sessions, side by side."""

    def __init__(
        self, *, store: "str | Records" = "sqlite:///tenure.db", budget: Budget | None = None, shared: Histories | None = None
    ) -> None:
        """`shared` are conversations that other adapters manage too. Raises StoreError when the store cannot be opened."""
        self.histories = histories(store, budget=budget, shared=shared)
        self._turns: Turns[types.Content] = Turns()

    async def __call__(self, callback_context: Any, llm_request: Any) -> None:
        """Put the managed contents into a request; the store is written in a thread."""
        await asyncio.to_thread(self._manage, _key(callback_context), llm_request)

    def _manage(self, key: str, request: Any) -> None:
        config = request.config.model_dump(mode="json", by_alias=True, exclude_none=True, include={"system_instruction", "tools"})
        turn = FrameworkTurn(
            self.histories, API, ContentCodec(), request.contents, model=str(request.model or ""), head=config, hint=key
        )
        request.contents = self._turns.begin(key, turn)

    async def after(self, callback_context: Any, llm_response: Any) -> None:
        """An `after_model_callback`: record the reply, and learn from what it used."""
        if not llm_response.partial and llm_response.content is not None:
            await asyncio.to_thread(self._turns.reply, _key(callback_context), lambda: _reply(llm_response))

    @property
    def recall(self) -> Callable[..., Any]:
        """`recall`, for an agent's tools."""

        async def tenure_recall(
            tool_context: ToolContext, handle: str = "", lines: str = "", words: str = "", path: str = "", pattern: str = ""
        ) -> str:
            given = {"handle": handle, "lines": lines, "words": words, "path": path, "pattern": pattern}
            return await asyncio.to_thread(self._turns.recall, _key(tool_context), given)

        assert tenure_recall.__name__ == RECALL_TOOL
        tenure_recall.__doc__ = RECALL_TEXT
        return tenure_recall


def _key(context: Any) -> str:
    """The session of an agent: a sub-agent's own history is a conversation of its own."""
    return f"{context.session.id}|{context.agent_name}"


def _reply(response: Any) -> dict[str, Any]:
    """A reply as the API's JSON, with what it used."""
    used = response.usage_metadata
    usage = {"usageMetadata": used.model_dump(mode="json", by_alias=True, exclude_none=True)} if used is not None else {}
    content = ContentCodec().encode(response.content)
    return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], **usage}


class ContentCodec:
    """Contents as the API's JSON."""

    def encode(self, message: types.Content, /) -> dict[str, Any]:
        """A content."""
        return message.model_dump(mode="json", by_alias=True, exclude_none=True)

    def decode(self, fields: Mapping[str, Any], original: types.Content | None, /) -> types.Content:
        """A content."""
        return types.Content.model_validate(dict(fields))
