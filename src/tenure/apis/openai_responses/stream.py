"""A reply of the Responses API, put together from its events: https://platform.openai.com/docs/api-reference/responses-streaming.

The last event repeats the whole response, mostly: some servers leave its items out, so those that were done one by one stand in for them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tenure.apis.json_text import clean, dump, number_of
from tenure.apis.reply import Delta, Fields, ReplyCall, ReplyStream, UsageParser, call_of, fields_in, fields_of, text_of

_DELTAS: Final[Mapping[str, str]] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
}
# Items that wait for an answer of the host's. Others a provider answers itself, and goes on.
_CALLS: Final = frozenset(
    "function_call custom_tool_call local_shell_call shell_call apply_patch_call computer_call mcp_approval_request".split()
)


class ResponsesStream(ReplyStream):
    """Takes events in order. What a model says to a user on its way (`commentary`) is no part of an answer."""

    def __init__(self, parse_usage: UsageParser) -> None:
        super().__init__(parse_usage)
        self._items: dict[int, dict[str, Any]] = {}  # that are done, by their place
        self._deltas: list[tuple[str, int, str]] = []  # kind, place of the item, text
        self._comments: set[int] = set()  # places of items
        self._response: dict[str, Any] | None = None  # when it is over
        self._begun = False

    @property
    def text(self) -> str:
        """The words so far."""
        return self._words("text", "refusal")

    @property
    def answer(self) -> str:
        """The words so far that answer a question."""
        return self._words("text", comments=False)

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        return self._begun

    def take(self, event: object, /) -> Iterator[Delta]:
        """Take an event."""
        fields = fields_of(event)
        kind, place = text_of(fields, "type"), number_of(fields, "output_index")
        match kind:
            case "response.created" | "response.in_progress":
                self.model = self.model or text_of(fields_of(fields.get("response")), "model")
            case "response.output_item.added" | "response.output_item.done":
                yield from self._item(place, fields_of(fields.get("item")), is_done=kind.endswith("done"))
            case "response.function_call_arguments.delta":
                yield self._arguments(place, text_of(fields, "delta"))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._over(kind.removeprefix("response."), fields_of(fields.get("response")))
            case "error":
                self.error = fields_of(fields.get("error")) or fields
            case _ if kind in _DELTAS and (text := text_of(fields, "delta")):
                self._begun = True
                self._deltas.append((_DELTAS[kind], place, text))
                yield Delta(kind="thinking" if _DELTAS[kind] == "thinking" else "text", text=text)
            case _:
                pass

    def _item(self, place: int, item: dict[str, Any], *, is_done: bool) -> Iterator[Delta]:
        self._begun = True
        if is_done:
            self._items[place] = item
        if _is_comment(item):
            self._comments.add(place)
        if item.get("type") in _CALLS:
            self._tools[place] = text_of(item, "name") or text_of(item, "type")
            if not is_done:
                yield self._arguments(place, "")

    def _arguments(self, place: int, text: str) -> Delta:
        places = list(self._tools)
        at = places.index(place) if place in places else len(places)
        return Delta(kind="arguments", text=text, tool=self._tools.get(place, ""), place=at)

    def _over(self, how: str, response: dict[str, Any]) -> None:
        # Some servers say "completed" in the event's name whatever became of it.
        status = (text_of(response, "status") or how) if how == "completed" else how
        reason = text_of(fields_of(response.get("incomplete_details")), "reason")
        self._response, self._stop = response, reason if status == "incomplete" and reason and reason in self.ends else status
        self.model = text_of(response, "model") or self.model
        self._usage = fields_of(response.get("usage"))
        if status == "failed":
            self.error = self.error or fields_of(response.get("error")) or {"message": "the response failed"}

    def _output(self) -> list[dict[str, Any]]:
        """The items, as far as they are done."""
        return list(fields_in((self._response or {}).get("output"))) or list(self._items.values())

    def _words(self, *kinds: str, comments: bool = True) -> str:
        """What was said: as it came while the response goes on, and by its items when it is over."""
        streamed = "".join(text for kind, at, text in self._deltas if kind in kinds and (comments or at not in self._comments))
        items = [item for item in self._output() if item.get("type") == "message" and (comments or not _is_comment(item))]
        parts = (part for item in items for part in fields_in(item.get("content")))
        whole = "".join(next(filter(None, (text_of(part, kind) for kind in kinds)), "") for part in parts)
        return clean((streamed or whole) if self._response is None else (whole or streamed))

    def _refusal(self) -> str:
        return self._words("refusal")

    def _reply(self, calls: list[ReplyCall]) -> str:
        output = [self._with_call_id(item, calls) for item in _with_reasoning(self._output())]
        return dump((self._response or {}) | {"output": output})

    def _with_call_id(self, item: dict[str, Any], calls: list[ReplyCall]) -> dict[str, Any]:
        if item.get("type") != "function_call":
            return item
        call_id = text_of(item, "call_id") or text_of(item, "id")
        calls.append(call_of(call_id, text_of(item, "name"), text_of(item, "arguments"), calls))
        return item | {"call_id": calls[-1].call_id, "arguments": calls[-1].arguments}


def _is_comment(item: Fields) -> bool:
    return item.get("type") == "message" and item.get("phase") == "commentary"


def _with_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items as they can be sent again to a provider that stores nothing.

    Reasoning that is not sealed would be looked up by its id there, and not be found; what it led to is then sent without ids, which name it.
    """
    if not any(item.get("type") == "reasoning" and not item.get("encrypted_content") for item in items):
        return items
    return [{key: value for key, value in item.items() if key != "id"} for item in items if item.get("type") != "reasoning"]
