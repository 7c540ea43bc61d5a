"""The loop that people write by hand: ask, carry out the calls, ask again, until the model has no more to do (an edge).

What is done next is a generator's word; a driver for clients that block, and one for those that are awaited, carry it out. The order makes a kill
harmless: a reply is in the record before its first call runs, results before the next request.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from tenure.apis.api import Api
from tenure.apis.reply import Delta, ReplyCall, ReplyStream, WholeReply
from tenure.context.functions import FunctionTool, function_tool, text_of
from tenure.engine.record.entry import ToolCall
from tenure.errors import Failure, InputError, ModelError
from tenure.models.clients import client_events, is_awaited

if TYPE_CHECKING:
    from tenure.context.context import Context

INTERRUPTED: Final = "[interrupted: the program was stopped while the call ran; whether it had an effect is not known]"
NOT_RUN: Final = "[not run: the reply that made this call was broken off]"
PAUSES: Final = 8  # times in a row that a provider may ask to be asked to go on
CALLS: Final = 100  # of the model, unless said otherwise

Reason = Literal["done", "length", "refused", "paused", "calls", "usd", "stopped"]


class RunOutcome(Struct, frozen=True, kw_only=True):
    """How a run ended. "calls" and "usd" are limits that were reached, "stopped" is the host's word; the same context can go on after each."""

    reason: Reason
    text: str  # of the newest reply
    calls: int  # of the model
    why: str = ""  # of another end than "done", in a clause


class Hooks(Struct, frozen=True, kw_only=True):
    """What a host hears of while a run goes on. `stop` is asked before each call of the model."""

    on_piece: Callable[[Delta], object] = lambda _: None
    on_reply: Callable[[WholeReply], object] = lambda _: None
    on_call: Callable[[str, Mapping[str, Any]], object] = lambda _name, _arguments: None
    on_result: Callable[[str, str], object] = lambda _name, _text: None
    stop: Callable[[], bool] = lambda: False


class AskStep(Struct, frozen=True):
    """Send this body, and say what came."""

    body: bytes


class CallsStep(Struct, frozen=True):
    """Run these functions, and say what each answered: a text, and whether it is an error."""

    calls: tuple[tuple[FunctionTool, Mapping[str, Any]], ...]


Answers = WholeReply | list[tuple[str, bool]] | None
Steps = Generator[AskStep | CallsStep, Answers, RunOutcome]


def steps(
    context: "Context",
    api: Api,
    tools: Mapping[str, FunctionTool],
    hooks: Hooks,
    *,
    calls: int,
    usd: float | None,
    prompt: str,
    fields: dict[str, Any],
) -> Steps:
    """What is to be done, step by step, until the run is over. The context's record is written as it goes."""
    unanswered = context.unanswered
    _answer(context, api, [(each, INTERRUPTED, True) for each in unanswered], hooks)
    if prompt:
        context.extend([api.user(prompt)])
    declarations = [api.tool(tool.name, tool.description, tool.schema) for tool in tools.values()]
    text, pauses, before = "", 0, context.ledger.total.usd
    for count in range(calls):
        if hooks.stop():
            return RunOutcome(reason="stopped", text=text, calls=count, why="the host said so")
        if usd is not None and context.ledger.total.usd - before >= usd:
            return RunOutcome(reason="usd", text=text, calls=count, why=f"${usd:,.2f} were spent")
        whole = yield AskStep(context.wire(tools=declarations, **fields))
        assert isinstance(whole, WholeReply)
        context.append(whole.reply)
        hooks.on_reply(whole)
        text = whole.text
        pauses = pauses + 1 if whole.end == "paused" else 0
        if whole.end == "refused" or (whole.end == "length" and any(call.broken for call in whole.calls)):
            _answer(context, api, [(_call(each), NOT_RUN, True) for each in whole.calls], hooks)
            return RunOutcome(reason=whole.end, text=text, calls=count + 1, why=whole.why)
        if not whole.calls and (whole.end != "paused" or pauses > PAUSES):
            return RunOutcome(reason=whole.end, text=text, calls=count + 1, why=whole.why)
        if whole.calls:
            yield from _carried_out(context, api, whole.calls, tools, hooks)
    return RunOutcome(reason="calls", text=text, calls=calls, why=f"the model was called {calls} times")


def _carried_out(
    context: "Context", api: Api, calls: tuple[ReplyCall, ...], tools: Mapping[str, FunctionTool], hooks: Hooks
) -> Generator[AskStep | CallsStep, Answers, None]:
    """The calls of one reply, and their results in the record, in the order of the calls."""
    answers: dict[int, tuple[str, bool]] = {}
    own: dict[int, dict[str, Any]] = {}
    wanted: dict[int, tuple[FunctionTool, Mapping[str, Any]]] = {}
    for place, call in enumerate(calls):
        if (virtual := context.call({"id": call.call_id})) is not None and call.tool not in tools:
            own[place] = virtual
            continue
        try:
            if call.broken:
                raise InputError(call.tool, call.broken, "a JSON object as arguments")
            if call.tool not in tools:
                raise InputError("tool", repr(call.tool), ", ".join(tools) or "none")
            wanted[place] = tools[call.tool], tools[call.tool].bind(call.arguments)
        except InputError as error:
            answers[place] = str(error), True
    for tool, arguments in wanted.values():
        hooks.on_call(tool.name, arguments)
    came = (yield CallsStep(tuple(wanted.values()))) if wanted else []
    assert isinstance(came, list)
    answers |= dict(zip(wanted, came, strict=True))
    results: list[dict[str, Any]] = []
    for place, call in enumerate(calls):
        if place in own:
            results.append(own[place])
            hooks.on_result(call.tool, api.text_of(own[place]))
        else:
            text, is_error = answers[place]
            results.append(api.result(_call(call), text, error=is_error))
            hooks.on_result(call.tool, text)
    context.extend(api.results(results))


def _answer(context: "Context", api: Api, given: list[tuple[ToolCall, str, bool]], hooks: Hooks) -> None:
    if given:
        context.extend(api.results([api.result(call, text, error=is_error) for call, text, is_error in given]))
    for call, text, _ in given:
        hooks.on_result(call.name, text)


def _call(call: ReplyCall) -> ToolCall:
    return ToolCall(call_id=call.call_id, name=call.tool, arguments=call.arguments)


def run(client: object, api: Api, model: str, todo: Steps, hooks: Hooks) -> RunOutcome:
    """Carry out a run with a client that blocks. Raises InputError for one that is awaited; what the SDK raises goes on as it is."""
    if is_awaited(client):
        raise InputError(
            "client", f"{type(client).__name__}, which is awaited", "a client that blocks, or `await context.arun(…)`"
        )
    answer: Answers = None
    while True:
        try:
            step = todo.send(answer)
        except StopIteration as done:
            return done.value
        if isinstance(step, CallsStep):
            answer = [_called(tool, arguments) for tool, arguments in step.calls]
            continue
        with client_events(client, api.speech.sdk, api.speech.path.replace("{model}", model), step.body) as events:
            answer = _heard(api, events, hooks, model)


async def arun(client: object, api: Api, model: str, todo: Steps, hooks: Hooks) -> RunOutcome:
    """The same with a client that is awaited. Calls of one reply run side by side; functions that are not awaited, and the store, in threads."""
    if not is_awaited(client):
        raise InputError("client", f"{type(client).__name__}, which blocks", "a client that is awaited, or `context.run(…)`")
    answer: Answers = None
    while True:
        step = await asyncio.to_thread(_next, todo, answer)
        if isinstance(step, RunOutcome):
            return step
        if isinstance(step, CallsStep):
            answer = list(await asyncio.gather(*(_acalled(tool, arguments) for tool, arguments in step.calls)))
            continue
        async with client_events(client, api.speech.sdk, api.speech.path.replace("{model}", model), step.body) as events:
            answer = await _aheard(api, events, hooks, model)


def _next(todo: Steps, answer: Answers) -> AskStep | CallsStep | RunOutcome:
    try:
        return todo.send(answer)
    except StopIteration as done:
        return done.value


def _heard(api: Api, events: Iterator[object], hooks: Hooks, model: str) -> WholeReply:
    stream = api.reply()
    for event in events:
        for delta in stream.take(event):
            hooks.on_piece(delta)
    return _whole(stream, model)


async def _aheard(api: Api, events: AsyncIterator[object], hooks: Hooks, model: str) -> WholeReply:
    stream = api.reply()
    async for event in events:
        for delta in stream.take(event):
            hooks.on_piece(delta)
    return _whole(stream, model)


def _whole(stream: ReplyStream, model: str) -> WholeReply:
    whole = None if stream.error is not None else stream.whole()
    if whole is None:
        words = stream.shortfall if stream.error is None else str(stream.error.get("message") or "the provider failed")
        raise ModelError(Failure.CUT_SHORT, f"{model}: the answer was cut short ({words})", said=stream.text)
    return whole


def _called(tool: FunctionTool, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    try:
        answer = tool.function(**arguments)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise InputError(tool.name, "a function that is awaited", "`await context.arun(…)`")
        return text_of(answer), False
    except Exception as error:  # a tool's failure is the model's to deal with
        return _words(error), True


async def _acalled(tool: FunctionTool, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    try:
        if inspect.iscoroutinefunction(tool.function):
            return text_of(await tool.function(**arguments)), False
        return await asyncio.to_thread(_called, tool, arguments)
    except Exception as error:
        return _words(error), True


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"


def named(tools: Mapping[str, Callable[..., Any]]) -> dict[str, FunctionTool]:
    """The functions as tools. Raises InputError for one that cannot be declared."""
    return {name: function_tool(name, function) for name, function in tools.items()}
