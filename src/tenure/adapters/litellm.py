"""LiteLLM: a callback that keeps conversations to a budget, in `acompletion` and in LiteLLM's proxy (an edge).

    litellm.callbacks = [TenureCallback(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))]

A caller goes on passing its whole history. `recall` is offered to the model beside the caller's tools and answered in further requests, unseen by the caller. In streams of
`litellm.acompletion`, which LiteLLM hands on as they come, it is not offered; it is in those of the proxy and of the callback's own `completion` and `acompletion`.
"""

# LiteLLM's own types are partial.
# pyright: basic, reportMissingTypeStubs=false

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.integrations.custom_logger import AgenticLoopPlan

from tenure.adapters.messages import FrameworkTurn, JsonCodec, histories
from tenure.adapters.wrapping import drawn, finished
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
_ASKED: Final = frozenset(
    {
        "custom_llm_provider",
        "model",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "stop",
        "seed",
    }
    | {"max_tokens", "max_completion_tokens", "reasoning_effort", "thinking", "response_format", "service_tier"}
)  # of one that is streamed in the proxy
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
        self._relayed: OrderedDict[str, dict[str, Any]] = OrderedDict()  # requests of the proxy's whose stream goes through us

    def completion(self, **kwargs: Any) -> Any:
        """`litellm.completion`, managed; streams too, with `recall` in them. LiteLLM itself runs no hook there."""
        way = _Blocking()
        if not kwargs.get("stream"):
            return finished(self._whole(way, kwargs))
        return drawn(self._streamed(way, kwargs))

    async def acompletion(self, **kwargs: Any) -> Any:
        """`litellm.acompletion`, managed; for streams in which the model may call `recall`, which LiteLLM's own hooks make impossible."""
        return self._streamed(_Awaited(), kwargs) if kwargs.get("stream") else await self._whole(_Awaited(), kwargs)

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, object], call_type: Any) -> dict[str, Any] | None:
        """Put the managed messages in place of the caller's, and our tools beside his."""
        if (
            _INSIDE.get()
            or str(getattr(call_type, "value", call_type)) not in ("acompletion", "completion")
            or not isinstance(kwargs.get("messages"), list)
        ):
            return None
        key, streamed = str(kwargs.get("litellm_call_id") or ""), bool(kwargs.get("stream"))
        relayed = key in self._relayed
        turn = await asyncio.to_thread(self._turn, kwargs, offers=not streamed or relayed)
        managed, ours = await asyncio.to_thread(lambda: (turn.messages, turn.tools))
        if relayed:
            self._relayed[key] = {name: kwargs[name] for name in _AGAIN | _ASKED if kwargs.get(name) is not None}
        if streamed and not relayed:
            turn.close()
        else:
            self._turns[key] = turn
            while len(self._turns) > MOST:
                self._turns.popitem(last=False)[1].close()
        given = cast(list[Any], kwargs.get("tools") or [])
        return {**kwargs, "messages": managed} | ({"tools": [*given, *ours]} if ours else {})

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """In the proxy: note that a stream will come by, since only there can one go on behind a call of `recall`."""
        if data.get("stream") and (key := str(data.get("litellm_call_id") or "")):
            self._relayed[key] = {}
            while len(self._relayed) > MOST:
                self._relayed.popitem(last=False)
        return data

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """In the proxy: a stream without calls of `recall`, which are answered in further requests."""
        key = str(request_data.get("litellm_call_id") or "")
        again = self._relayed.pop(key, {})
        if (turn := self._turns.pop(key, None)) is None:
            async for chunk in response:
                yield chunk
            return
        async for chunk in self._relay(_Awaited(), turn, again, aiter(response)):
            yield chunk

    def _turn(self, kwargs: Mapping[str, Any], *, offers: bool = True) -> FrameworkTurn[dict[str, Any]]:
        plain = [each if isinstance(each, dict) else each.model_dump(exclude_none=True) for each in kwargs["messages"]]
        given: list[Any] = list(kwargs.get("tools") or [])
        return FrameworkTurn(
            self.histories,
            API,
            JsonCodec(),
            plain,
            model=str(kwargs.get("model") or ""),
            tools=given if offers else (),
            head={} if offers else {"tools": given},
            hint=_session(kwargs),
        )

    async def _whole(self, way: "_Way", kwargs: dict[str, Any]) -> Any:
        turn = await way.work(self._turn, kwargs)
        try:
            while True:
                answer = await way.ask(await way.work(_request, turn, kwargs))
                reply = answer.model_dump(exclude_none=True)
                shown = await way.work(turn.answer, reply)
                if shown is not None:
                    return answer if shown is reply else litellm.ModelResponse(**dict(shown))
        finally:
            turn.close()

    async def _streamed(self, way: "_Way", kwargs: dict[str, Any]) -> AsyncGenerator[Any, None]:
        turn = await way.work(self._turn, kwargs)
        try:
            chunks = way.chunks(await way.ask(await way.work(_request, turn, kwargs)))
        except BaseException:
            turn.close()
            raise
        async for chunk in self._relay(way, turn, kwargs, chunks):
            yield chunk

    async def _relay(
        self, way: "_Way", turn: FrameworkTurn[dict[str, Any]], kwargs: dict[str, Any], chunks: Any
    ) -> AsyncGenerator[Any, None]:
        """A stream without calls of ours, over as many requests as it takes."""
        try:
            while True:
                while (chunk := await way.next(chunks)) is not None:
                    fields = chunk.model_dump(exclude_none=True)
                    for shown in turn.take(fields):
                        yield chunk if shown is fields else litellm.ModelResponseStream(**dict(shown))
                rest = await way.work(turn.end)
                for shown in rest or ():
                    yield litellm.ModelResponseStream(**dict(shown))
                if rest is not None:
                    return
                chunks = way.chunks(await way.ask(await way.work(_request, turn, kwargs)))
        finally:
            turn.close()

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


def _request(turn: FrameworkTurn[dict[str, Any]], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    ours = turn.tools
    return {**kwargs, "messages": turn.messages} | ({"tools": [*(kwargs.get("tools") or ()), *ours]} if ours else {})


class _Blocking:
    """How a caller waits that blocks: nothing here suspends."""

    async def work(self, step: Callable[..., Any], *arguments: Any) -> Any:
        return step(*arguments)

    async def ask(self, kwargs: dict[str, Any]) -> Any:
        return litellm.completion(**kwargs)

    def chunks(self, response: Any) -> Any:
        return iter(response)

    async def next(self, chunks: Any) -> Any:
        return next(chunks, None)


class _Awaited:
    """How one waits that is awaited; the store is written in a thread."""

    async def work(self, step: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.to_thread(step, *arguments)

    async def ask(self, kwargs: dict[str, Any]) -> Any:
        inside = _INSIDE.set(True)
        try:
            return await litellm.acompletion(**kwargs)
        finally:
            _INSIDE.reset(inside)

    def chunks(self, response: Any) -> Any:
        return aiter(response)

    async def next(self, chunks: Any) -> Any:
        return await anext(chunks, None)


_Way = _Blocking | _Awaited


def _session(kwargs: Mapping[str, Any]) -> str:
    """What a caller names his session by."""
    metadata: Any = kwargs.get("metadata") or kwargs.get("litellm_metadata") or {}
    return str(metadata.get("session_id") or kwargs.get("litellm_session_id") or "") if isinstance(metadata, dict) else ""
