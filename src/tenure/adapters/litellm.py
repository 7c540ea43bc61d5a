"""LiteLLM: a callback that keeps conversations to a budget, in `acompletion` and in LiteLLM's proxy (an edge).

    litellm.callbacks = [TenureCallback(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))]

A caller goes on passing its whole history. `recall` is offered to the model beside the caller's tools and answered in further requests, unseen by the caller; not in
streams, which LiteLLM hands on as they come: there what has left is only named.
"""

# LiteLLM's own types are partial.
# pyright: basic, reportMissingTypeStubs=false

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.integrations.custom_logger import AgenticLoopPlan

from tenure.adapters.messages import FrameworkTurn, JsonCodec, histories
from tenure.apis import APIS, COMMON
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget

if TYPE_CHECKING:
    from tenure.store.records import Records

API: Final = APIS[COMMON]
MOST: Final = 1_000  # calls that are waited for at once
_AGAIN: Final = frozenset(
    {"api_key", "api_base", "base_url", "api_version", "extra_headers", "timeout", "organization"}
)  # of a further request
_INSIDE: Final[ContextVar[bool]] = ContextVar("tenure_inside", default=False)


class TenureCallback(CustomLogger):
    """Manages the messages of every chat completion that is awaited. One value serves any number of calls, side by side."""

    def __init__(
        self, *, store: "str | Records" = "sqlite:///tenure.db", budget: Budget | None = None, shared: Histories | None = None
    ) -> None:
        """`shared` are conversations that other adapters manage too. Raises StoreError when the store cannot be opened."""
        super().__init__()
        self.histories = histories(store, budget=budget, shared=shared)
        self._turns: OrderedDict[str, FrameworkTurn[dict[str, Any]]] = OrderedDict()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, object], call_type: Any) -> dict[str, Any] | None:
        """Put the managed messages in place of the caller's, and our tools beside his."""
        messages = kwargs.get("messages")
        if (
            _INSIDE.get()
            or str(getattr(call_type, "value", call_type)) not in ("acompletion", "completion")
            or not isinstance(messages, list)
        ):
            return None
        given: list[Any] = [] if kwargs.get("stream") else list(cast(list[Any], kwargs.get("tools") or []))
        plain = [each if isinstance(each, dict) else each.model_dump(exclude_none=True) for each in cast(list[Any], messages)]
        turn = await asyncio.to_thread(
            FrameworkTurn,
            self.histories,
            API,
            JsonCodec(),
            plain,
            model=str(kwargs.get("model") or ""),
            tools=given,
            hint=_session(kwargs),
        )
        managed, ours = await asyncio.to_thread(lambda: (turn.messages, turn.tools))
        if kwargs.get("stream"):
            turn.close()
        else:
            self._turns[str(kwargs.get("litellm_call_id") or "")] = turn
            while len(self._turns) > MOST:
                self._turns.popitem(last=False)[1].close()
        return {**kwargs, "messages": managed} | ({"tools": [*given, *ours]} if ours else {})

    async def async_should_run_agentic_loop(
        self,
        response: Any,
        model: str,
        messages: list[Any],
        tools: Any,
        stream: bool,
        custom_llm_provider: str,
        kwargs: dict[str, Any],
    ) -> tuple[bool, dict[str, Any]]:
        """Record the reply; whether it is another than what the caller is to get."""
        turn = None if _INSIDE.get() else self._turns.pop(str(kwargs.get("litellm_call_id") or ""), None)
        if turn is None or not isinstance(response, litellm.ModelResponse):
            return False, {}
        reply = response.model_dump(exclude_none=True)
        shown = await asyncio.to_thread(turn.answer, reply)
        if shown is reply:
            turn.close()
            return False, {}
        return True, {"turn": turn, "shown": shown}

    async def async_build_agentic_loop_plan(
        self,
        tools: dict[str, Any],
        model: str,
        messages: list[Any],
        response: Any,
        anthropic_messages_provider_config: Any,
        anthropic_messages_optional_request_params: dict[str, Any],
        logging_obj: Any,
        stream: bool,
        kwargs: dict[str, Any],
    ) -> AgenticLoopPlan:
        """Ask again while the model calls `recall`; what the caller gets."""
        turn: FrameworkTurn[dict[str, Any]] = tools["turn"]
        shown: Mapping[str, Any] | None = tools["shown"]
        settings = {
            key: value for key, value in anthropic_messages_optional_request_params.items() if key not in ("tools", "stream")
        }
        own = anthropic_messages_optional_request_params.get("tools") or []
        settings |= {key: kwargs[key] for key in _AGAIN if kwargs.get(key)}
        name = model if "/" in model else f"{kwargs.get('custom_llm_provider')}/{model}"
        inside = _INSIDE.set(True)
        try:
            while shown is None:
                asked = await asyncio.to_thread(lambda: turn.messages)
                answer: Any = await litellm.acompletion(model=name, messages=asked, tools=own, **settings)
                shown = await asyncio.to_thread(turn.answer, answer.model_dump(exclude_none=True))
        finally:
            _INSIDE.reset(inside)
            turn.close()
        return AgenticLoopPlan(response_override=litellm.ModelResponse(**dict(shown)))


def _session(kwargs: Mapping[str, Any]) -> str:
    """What a caller names his session by."""
    metadata: Any = kwargs.get("metadata") or kwargs.get("litellm_metadata") or {}
    return str(metadata.get("session_id") or kwargs.get("litellm_session_id") or "") if isinstance(metadata, dict) else ""
