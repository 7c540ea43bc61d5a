"""A reply of the Responses API, put together from its events. Pure.

https://platform.openai.com/docs/api-reference/responses-streaming. The last event repeats the whole response, mostly: some servers leave its items
out, so those that were done one by one stand in for them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tenure.apis.json_text import clean, dump, number_of
from tenure.apis.openai_responses import OpenAIResponses
from tenure.models.assembly.assembly import Fields, arguments_of, end_of, fields_of, items_of, own_id, text_of
from tenure.models.replies import CALLS, NO_END, counts
from tenure.models.speaker import Made, Spoken, Whole

_DELTAS: Mapping[str, str] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
}


class ResponseAssembly:
    """Takes events in order."""

    def __init__(self) -> None:
        self._done: dict[int, dict[str, Any]] = {}  # items, by their place
        self._names: dict[int, str] = {}  # of the calls, by their place
        self._texts: list[str] = []
        self._over: tuple[str, dict[str, Any]] | None = None  # how it ended, and the response
        self._begun = False
        self.error: Fields | None = None

    @property
    def said(self) -> str:
        """The words so far."""
        return clean("".join(self._texts))

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        return self._begun

    def take(self, event: object) -> Iterator[Spoken]:
        """Take an event."""
        fields = fields_of(event)
        kind, place = text_of(fields, "type"), number_of(fields, "output_index")
        if kind in _DELTAS and (text := text_of(fields, "delta")):
            if _DELTAS[kind] == "text":
                self._texts.append(text)
            yield Spoken(kind="text" if _DELTAS[kind] == "text" else "thinking", text=text)
        match kind:
            case "response.output_item.added":
                yield from self._added(place, fields_of(fields.get("item")))
            case "response.output_item.done":
                self._done[place] = fields_of(fields.get("item"))
            case "response.function_call_arguments.delta":
                yield self._arguments(place, text_of(fields, "delta"))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._ended(kind.removeprefix("response."), fields_of(fields.get("response")))
            case "error":
                self.error = fields_of(fields.get("error")) or fields
            case _:
                pass

    def whole(self) -> Whole | None:
        """The reply, once the server has said why it ended."""
        if self._over is None:
            return None
        stop, response = self._over
        items = [fields_of(item) for item in items_of(response.get("output"))] or list(self._done.values())
        refusal = "".join(text_of(part, "refusal") for item in items for part in map(fields_of, items_of(item.get("content"))))
        end = end_of(stop, refusal=refusal)
        if end is None:
            return None
        made: list[Made] = []
        output = [self._kept(item, made) for item in _with_reasoning(items)]
        usage = fields_of(response.get("usage"))
        return Whole(
            reply=dump(response | {"output": output}).encode("utf-8", "surrogatepass"),
            text=clean("".join(_words(item) for item in items)) or self.said,
            calls=tuple(made),
            ended=end[0],
            why=end[1],
            stop=stop,
            model=text_of(response, "model"),
            usage=OpenAIResponses().parse_usage(counts(usage)) if usage else None,
        )

    def _added(self, place: int, item: Fields) -> Iterator[Spoken]:
        self._begun = True
        if item.get("type") in CALLS:
            self._names[place] = text_of(item, "name") or text_of(item, "type")
            yield self._arguments(place, "")

    def _arguments(self, place: int, text: str) -> Spoken:
        names = list(self._names)
        at = names.index(place) if place in names else len(names)
        return Spoken(kind="arguments", text=text, tool=self._names.get(place, ""), place=at)

    def _ended(self, how: str, response: dict[str, Any]) -> None:
        # Some servers say "completed" in the event's name whatever became of it.
        status = (text_of(response, "status") or how) if how == "completed" else how
        reason = text_of(fields_of(response.get("incomplete_details")), "reason")
        self._over = (reason if status == "incomplete" and reason and reason in NO_END else status), response
        if status == "failed":
            self.error = self.error or fields_of(response.get("error")) or {"message": "the response failed"}

    def _kept(self, item: dict[str, Any], made: list[Made]) -> dict[str, Any]:
        if item.get("type") != "function_call":
            return item
        arguments = arguments_of(text_of(item, "arguments"))
        call_id = own_id(text_of(item, "call_id") or text_of(item, "id"), len(made), (one.call_id for one in made))
        name = text_of(item, "name") or "unnamed"
        made.append(Made(call_id=call_id, tool=name, arguments=arguments.text, broken=arguments.broken))
        return item | {"call_id": call_id, "arguments": arguments.text}


def _with_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items as they can be sent again to a provider that stores nothing.

    Reasoning that is not sealed would be looked up by its id there, and not be found; what it led to is then sent without ids, which name it.
    """
    if not any(item.get("type") == "reasoning" and not item.get("encrypted_content") for item in items):
        return items
    return [{key: value for key, value in item.items() if key != "id"} for item in items if item.get("type") != "reasoning"]


def _words(item: Fields) -> str:
    if item.get("type") != "message":
        return ""
    return "".join(text_of(part, "text") or text_of(part, "refusal") for part in map(fields_of, items_of(item.get("content"))))
