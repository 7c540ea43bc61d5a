"""A reply of the Messages API, put together from its events. Pure.

https://platform.claude.com/docs/en/build-with-claude/streaming. Blocks of unknown kind are kept as they began.
"""

from collections.abc import Iterator
from typing import Any, Final

from tenure.apis.anthropic import Anthropic
from tenure.apis.json_text import clean, dump, number_of
from tenure.models.assembly.assembly import (
    Fields,
    arguments_of,
    array_of,
    end_of,
    fields_of,
    items_of,
    object_from,
    own_id,
    text_of,
)
from tenure.models.replies import counts
from tenure.models.speaker import Made, Spoken, Whole

# What a delta adds to: its type -> the key of the delta, and of the block.
_ADDS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


class MessageAssembly:
    """Takes events in order."""

    def __init__(self) -> None:
        self._started: list[dict[str, Any]] = []  # blocks as they began
        self._added: list[dict[str, list[str]]] = []  # what was added to each since, by its key
        self._inputs: dict[int, list[str]] = {}  # JSON of calls' arguments, by the block's place
        self._places: dict[int, int] = {}  # of the blocks, by the index that the server gives them
        self._frame: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self.error: Fields | None = None

    @property
    def said(self) -> str:
        """The words so far."""
        return clean("".join(text_of(block, "text") for block in self._blocks if block.get("type") == "text"))

    @property
    def _blocks(self) -> list[dict[str, Any]]:
        """The blocks as far as they have come."""
        return [
            block | {key: text_of(block, key) + "".join(parts) for key, parts in added.items()}
            for block, added in zip(self._started, self._added, strict=True)
        ]

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        return bool(self._started)

    def take(self, event: object) -> Iterator[Spoken]:
        """Take an event. Usage is begun by the first and completed by the last, which does not repeat everything."""
        fields = fields_of(event)
        match fields.get("type"):
            case "message_start":
                message = fields_of(fields.get("message"))
                self._frame = {key: message[key] for key in ("id", "type", "role", "model") if key in message}
                self._count(message)
            case "content_block_start":
                yield from self._begun(number_of(fields, "index"), fields_of(fields.get("content_block")))
            case "content_block_delta":
                yield from self._more(number_of(fields, "index"), fields_of(fields.get("delta")))
            case "message_delta":
                self._stop = text_of(fields_of(fields.get("delta")), "stop_reason") or self._stop
                self._count(fields)
            case "error":
                self.error = fields_of(fields.get("error"))
            case _:
                pass

    def whole(self) -> Whole | None:
        """The reply, once the server has said why it ended."""
        end = end_of(self._stop)
        if end is None:
            return None
        made: list[Made] = []
        content: list[str] = []
        for place, block in enumerate(self._blocks):
            if block.get("type") == "tool_use":
                one = self._made(place, block, own_id(text_of(block, "id"), len(made), (each.call_id for each in made)))
                named = {"id": dump(one.call_id), "name": dump(one.tool), "input": one.arguments}
                content.append(object_from({key: dump(value) for key, value in block.items()} | named))
                made.append(one)
            elif block.get("type") != "text" or text_of(block, "text").strip():  # an empty one is refused when it comes back
                content.append(dump(block))
        frame = {key: dump(value) for key, value in self._frame.items()}
        usage = {"usage": dump(self._usage)} if self._usage else {}
        reply = frame | {"content": array_of(content), "stop_reason": dump(self._stop)} | usage
        return Whole(
            reply=object_from(reply).encode("utf-8", "surrogatepass"),
            text=self.said,
            calls=tuple(made),
            ended=end[0],
            why=end[1],
            stop=self._stop,
            model=text_of(self._frame, "model"),
            usage=Anthropic().parse_usage(counts(self._usage)) if self._usage else None,
        )

    def _begun(self, index: int, block: Fields) -> Iterator[Spoken]:
        self._places[index] = place = len(self._started)
        self._started.append(dict(block))
        self._added.append({})
        match block.get("type"):
            case "text" if text := text_of(block, "text"):
                yield Spoken(kind="text", text=text)
            case "tool_use":
                self._inputs[place] = []
                yield Spoken(kind="arguments", text="", tool=text_of(block, "name"), place=len(self._inputs) - 1)
            case _:
                pass

    def _more(self, index: int, delta: Fields) -> Iterator[Spoken]:
        place = self._places.get(index)
        if place is None:
            return
        block, kind = self._started[place], text_of(delta, "type")
        if kind == "input_json_delta" and place in self._inputs:
            text = text_of(delta, "partial_json")
            self._inputs[place].append(text)
            yield Spoken(kind="arguments", text=text, tool=text_of(block, "name"), place=list(self._inputs).index(place))
        elif kind == "citations_delta":
            block["citations"] = [*items_of(block.get("citations")), delta.get("citation")]
        elif key := _ADDS.get(kind):
            text = text_of(delta, key)
            self._added[place].setdefault(key, []).append(text)
            if kind != "signature_delta" and text:
                yield Spoken(kind="text" if kind == "text_delta" else "thinking", text=text)

    def _made(self, place: int, block: Fields, call_id: str) -> Made:
        spelled = "".join(self._inputs.get(place, ()))
        given = fields_of(block.get("input"))
        arguments = arguments_of(spelled if spelled.strip() or not given else dump(given))
        name = text_of(block, "name") or "unnamed"
        return Made(call_id=call_id, tool=name, arguments=arguments.text, broken=arguments.broken)

    def _count(self, holder: Fields) -> None:
        self._usage |= {key: value for key, value in fields_of(holder.get("usage")).items() if value is not None}
