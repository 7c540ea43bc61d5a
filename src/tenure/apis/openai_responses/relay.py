"""A reply of the Responses API for a client that does not know all tools: https://platform.openai.com/docs/api-reference/responses-streaming."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tenure.apis.json_text import number_of
from tenure.apis.relay import ReplyRelay, replies_of, with_output
from tenure.apis.reply import fields_in, fields_of, text_of

_ENDS = ("response.completed", "response.incomplete", "response.failed")


class ResponsesRelay(ReplyRelay):
    """Items of hidden calls are left out, those behind them and the events are numbered on, and all rounds are one response."""

    _next = 0  # the place of the client's next item
    _sequence = 0  # of the client's next event
    _id = ""  # of the first round's response
    _items: Sequence[Mapping[str, Any]] = ()  # the client's of the rounds before

    def _turn(self) -> None:
        self._places = dict[int, int | None]()  # the server's place of an item -> the client's; None for a hidden one

    def _shown(self, event: dict[str, Any]) -> Iterator[dict[str, Any]]:
        kind = text_of(event, "type")
        if kind in ("response.created", "response.in_progress", "response.queued"):
            if self.rounds:
                return
            self._id = self._id or text_of(fields_of(event.get("response")), "id")
        elif "output_index" in event:
            place = self._place(number_of(event, "output_index"), fields_of(event.get("item")))
            if place is None:
                return
            event = event if event["output_index"] == place else {**event, "output_index": place}
        yield self._counted(event)

    def _place(self, index: int, item: Mapping[str, Any]) -> int | None:
        if index not in self._places:
            is_call = text_of(item, "type") == "function_call"
            if is_call and text_of(item, "name") in self._hidden:
                self._has_hidden, self._places[index] = True, None
            else:
                self._has_own = self._has_own or text_of(item, "type").endswith("_call") or "approval" in text_of(item, "type")
                self._places[index], self._next = self._next, self._next + 1
        return self._places[index]

    def _counted(self, event: dict[str, Any]) -> dict[str, Any]:
        if "sequence_number" not in event:
            return event
        number, self._sequence = self._sequence, self._sequence + 1
        return event if event["sequence_number"] == number else {**event, "sequence_number": number}

    def _is_ending(self, event: Mapping[str, Any]) -> bool:
        return event.get("type") in _ENDS

    def _ending(self, event: dict[str, Any], *, alone: bool) -> Mapping[str, Any]:
        if not self.rounds and not self._has_hidden:
            return event
        response = fields_of(event.get("response"))
        own = [item for item in fields_in(response.get("output")) if not _is_hidden(item, self._hidden)]
        output = [*self._items, *own]
        usage = with_output(response.get("usage"), "output_tokens", self._output)
        return {**event, "response": {**response, "id": self._id or response.get("id"), "output": output, "usage": usage}}

    def again(self) -> None:
        """Go on with the reply to another request, behind the items so far."""
        whole = self.whole()
        if whole is not None:
            output = fields_in(replies_of([whole.reply])[0].get("output"))
            self._items = [*self._items, *(item for item in output if not _is_hidden(item, self._hidden))]
        super().again()


def without_calls(replies: Sequence[Mapping[str, Any]], hidden: Collection[str]) -> dict[str, Any]:
    """One response of the items of several, in order, without calls of hidden tools."""
    last = replies[-1]
    output = [item for reply in replies for item in fields_in(reply.get("output")) if not _is_hidden(item, hidden)]
    more = sum(number_of(fields_of(reply.get("usage")), "output_tokens") for reply in replies[:-1])
    return {
        **last,
        "id": replies[0].get("id"),
        "output": output,
        "usage": with_output(last.get("usage"), "output_tokens", more),
    }


def _is_hidden(item: Mapping[str, Any], hidden: Collection[str]) -> bool:
    return item.get("type") == "function_call" and item.get("name") in hidden
