"""A reply of Chat Completions for a client that does not know all tools: https://platform.openai.com/docs/api-reference/chat-streaming."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tenure.apis.json_text import number_of
from tenure.apis.relay import ReplyRelay, with_output
from tenure.apis.reply import fields_in, fields_of, text_of
from tenure.apis.sse import StreamEvent


class ChatRelay(ReplyRelay):
    """Hidden calls are left out, those behind them are numbered on, and later rounds go on under the first one's id."""

    _next = 0  # the number of the client's next call
    _frame: Mapping[str, Any] = {}  # of the first round's chunks

    def _turn(self) -> None:
        self._calls = dict[Any, int | None]()  # the server's number of a call -> the client's; None for a hidden one

    def _shown(self, event: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._frame = self._frame or {key: event[key] for key in ("id", "created") if key in event}
        choices = list(fields_in(event.get("choices")))
        delta = fields_of(choices[0].get("delta")) if choices else {}
        calls = list(fields_in(delta.get("tool_calls")))
        shown = [call for each in calls for call in self._call(each)]
        has_changed = len(shown) < len(calls) or any(a is not b for a, b in zip(shown, calls, strict=True))
        if not has_changed and not self.rounds:
            yield event
            return
        left = {key: value for key, value in delta.items() if key != "tool_calls" and not (self.rounds and key == "role")}
        if shown:
            left["tool_calls"] = shown
        finish = choices[0].get("finish_reason") if choices else None
        if choices and not any(left.values()) and not finish and not event.get("usage"):
            return
        changed = [{**choices[0], "delta": left}, *choices[1:]] if choices else []
        yield {**event, **self._frame, "choices": changed}

    def _call(self, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
        key = call.get("index", call.get("id"))
        name = text_of(fields_of(call.get("function")), "name")
        if key not in self._calls:
            if name in self._hidden:
                self._has_hidden, self._calls[key] = True, None
            else:
                self._has_own, self._calls[key], self._next = True, self._next, self._next + 1
        place = self._calls[key]
        if place is not None:
            yield call if "index" not in call or call["index"] == place else {**call, "index": place}

    def _is_last(self, event: StreamEvent) -> bool:
        return event.data is None and b"[DONE]" in event.raw

    def _is_ending(self, event: Mapping[str, Any]) -> bool:
        choices = list(fields_in(event.get("choices")))
        return bool(event.get("usage")) or (bool(choices) and bool(choices[0].get("finish_reason")))

    def _ending(self, event: dict[str, Any], *, alone: bool) -> Mapping[str, Any]:
        if not (alone or self._output):
            return event
        choices = list(fields_in(event.get("choices")))
        if alone and choices and choices[0].get("finish_reason") == "tool_calls":
            choices[0] = {**choices[0], "finish_reason": "stop"}
        usage = {"usage": with_output(event["usage"], "completion_tokens", self._output)} if "usage" in event else {}
        return {**event, "choices": choices, **usage}


def without_calls(replies: Sequence[Mapping[str, Any]], hidden: Collection[str]) -> dict[str, Any]:
    """One completion of the words of several, and the calls of the last, without those of hidden tools."""
    last = replies[-1]
    messages = [fields_of(choice.get("message")) for reply in replies for choice in list(fields_in(reply.get("choices")))[:1]]
    texts = {key: "".join(text_of(message, key) for message in messages) for key in ("content", "reasoning_content", "reasoning")}
    calls = [call for message in messages for call in fields_in(message.get("tool_calls")) if not _is_hidden(call, hidden)]
    message = {key: value for key, value in messages[-1].items() if key != "tool_calls"}
    message |= {key: text for key, text in texts.items() if text}
    message |= {"tool_calls": calls} if calls else {}
    choice = next(iter(fields_in(last.get("choices"))), fields_of(None))
    stop = "stop" if choice.get("finish_reason") == "tool_calls" and not calls else choice.get("finish_reason")
    more = sum(number_of(fields_of(reply.get("usage")), "completion_tokens") for reply in replies[:-1])
    usage = {"usage": with_output(last["usage"], "completion_tokens", more)} if "usage" in last else {}
    choices = [{**choice, "message": message, "finish_reason": stop}, *list(fields_in(last.get("choices")))[1:]]
    return {**last, "id": replies[0].get("id"), "choices": choices, **usage}


def _is_hidden(call: Mapping[str, Any], hidden: Collection[str]) -> bool:
    return text_of(fields_of(call.get("function")), "name") in hidden
