"""A reply of the Messages API for a client that does not know all tools: https://platform.claude.com/docs/en/build-with-claude/streaming."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tenure.apis.json_text import number_of
from tenure.apis.relay import ReplyRelay, with_output
from tenure.apis.reply import fields_in, fields_of, text_of
from tenure.apis.sse import StreamEvent


class AnthropicRelay(ReplyRelay):
    """Blocks of hidden calls are left out, and those behind them, and of later rounds, are numbered on."""

    _next = 0  # the number of the client's next block

    def _turn(self) -> None:
        self._places = dict[int, int | None]()  # the server's number of a block -> the client's; None for a hidden one

    def _shown(self, event: dict[str, Any]) -> Iterator[dict[str, Any]]:
        index = number_of(event, "index")
        match event.get("type"):
            case "message_start":
                if not self.rounds:
                    yield event
            case "content_block_start":
                block = fields_of(event.get("content_block"))
                if block.get("type") == "tool_use":
                    if text_of(block, "name") in self._hidden:
                        self._has_hidden, self._places[index] = True, None
                        return
                    self._has_own = True
                self._places[index], self._next = self._next, self._next + 1
                yield self._numbered(event, index)
            case "content_block_delta" | "content_block_stop":
                if self._places.get(index, index) is not None:
                    yield self._numbered(event, index)
            case _:
                yield event

    def _numbered(self, event: dict[str, Any], index: int) -> dict[str, Any]:
        place = self._places.get(index, index)
        return event if place == index else {**event, "index": place}

    def _is_last(self, event: StreamEvent) -> bool:
        return fields_of(event.data).get("type") == "message_stop"

    def _is_ending(self, event: Mapping[str, Any]) -> bool:
        return event.get("type") in ("message_delta", "message_stop")

    def _ending(self, event: dict[str, Any], *, alone: bool) -> Mapping[str, Any]:
        if event.get("type") != "message_delta" or not (alone or self._output):
            return event
        delta = fields_of(event.get("delta"))
        if alone and delta.get("stop_reason") == "tool_use":
            delta = {**delta, "stop_reason": "end_turn"}
        return {**event, "delta": delta, "usage": with_output(event.get("usage"), "output_tokens", self._output)}


def without_calls(replies: Sequence[Mapping[str, Any]], hidden: Collection[str]) -> dict[str, Any]:
    """One message of the contents of several, in order, without calls of hidden tools."""
    last = replies[-1]
    parts = [part for reply in replies for part in fields_in(reply.get("content")) if not _is_hidden(part, hidden)]
    calls = any(part.get("type") == "tool_use" for part in parts)
    stop = "end_turn" if last.get("stop_reason") == "tool_use" and not calls else last.get("stop_reason")
    more = sum(number_of(fields_of(reply.get("usage")), "output_tokens") for reply in replies[:-1])
    usage = with_output(last.get("usage"), "output_tokens", more)
    return {**last, "id": replies[0].get("id"), "content": parts, "stop_reason": stop, "usage": usage}


def _is_hidden(part: Mapping[str, Any], hidden: Collection[str]) -> bool:
    return part.get("type") == "tool_use" and part.get("name") in hidden
