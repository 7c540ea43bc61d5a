"""A reply of the Messages API, put together from its events: https://platform.claude.com/docs/en/build-with-claude/streaming.

Blocks of unknown kind are kept as they began.
"""

from collections.abc import Iterator
from typing import Any, Final

from tenure.apis.json_text import array_text, clean, dump, number_of
from tenure.apis.reply import Delta, Fields, ReplyCall, ReplyStream, UsageParser, call_of, fields_of, object_text, text_of

_ADDS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}  # a delta's type -> what it adds to


class AnthropicStream(ReplyStream):
    """Takes events in order."""

    def __init__(self, parse_usage: UsageParser) -> None:
        super().__init__(parse_usage)
        self._started: list[dict[str, Any]] = []  # blocks as they began
        self._added: list[dict[str, list[str]]] = []  # what was added to each since, by its key
        self._inputs: dict[int, list[str]] = {}  # JSON of calls' arguments, by the block's place
        self._places: dict[int, int] = {}  # of the blocks, by the index that the server gives them
        self._frame: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The words so far."""
        return clean("".join(text_of(block, "text") for block in self._blocks() if block.get("type") == "text"))

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        return bool(self._started)

    def take(self, event: object, /) -> Iterator[Delta]:
        """Take an event. Usage is begun by the first and completed by the last, which does not repeat everything."""
        fields = fields_of(event)
        match fields.get("type"):
            case "message_start":
                message = fields_of(fields.get("message"))
                self._frame = {key: message[key] for key in ("id", "type", "role", "model") if key in message}
                self.model = text_of(message, "model")
                self._count(message)
            case "content_block_start":
                yield from self._start(number_of(fields, "index"), fields_of(fields.get("content_block")))
            case "content_block_delta":
                yield from self._add(number_of(fields, "index"), fields_of(fields.get("delta")))
            case "message_delta":
                self._stop = text_of(fields_of(fields.get("delta")), "stop_reason") or self._stop
                self._count(fields)
            case "error":
                self.error = fields_of(fields.get("error"))
            case _:
                pass

    def _start(self, index: int, block: dict[str, Any]) -> Iterator[Delta]:
        self._places[index] = place = len(self._started)
        self._started.append(dict(block))
        self._added.append({})
        match block.get("type"):
            case "text" if text := text_of(block, "text"):
                yield Delta(kind="text", text=text)
            case "tool_use":
                self._inputs[place] = []
                self._tools[place] = text_of(block, "name")
                yield Delta(kind="arguments", text="", tool=self._tools[place], place=len(self._inputs) - 1)
            case _:
                pass

    def _add(self, index: int, delta: Fields) -> Iterator[Delta]:
        place = self._places.get(index)
        if place is None:
            return
        block, kind = self._started[place], text_of(delta, "type")
        if kind == "input_json_delta" and place in self._inputs:
            text = text_of(delta, "partial_json")
            self._inputs[place].append(text)
            yield Delta(kind="arguments", text=text, tool=self._tools[place], place=list(self._inputs).index(place))
        elif kind == "citations_delta":
            before = block.get("citations")
            block["citations"] = [*(before if isinstance(before, list) else []), delta.get("citation")]
        elif key := _ADDS.get(kind):
            text = text_of(delta, key)
            self._added[place].setdefault(key, []).append(text)
            if kind != "signature_delta" and text:
                yield Delta(kind="text" if kind == "text_delta" else "thinking", text=text)

    def _blocks(self) -> Iterator[dict[str, Any]]:
        """The blocks as far as they have come."""
        for block, added in zip(self._started, self._added, strict=True):
            yield block | {key: text_of(block, key) + "".join(parts) for key, parts in added.items()}

    def _reply(self, calls: list[ReplyCall]) -> str:
        content: list[str] = []
        for place, block in enumerate(self._blocks()):
            if block.get("type") == "tool_use":
                spelled, given = "".join(self._inputs.get(place, ())), fields_of(block.get("input"))
                arguments = spelled if spelled.strip() or not given else dump(given)
                call = call_of(text_of(block, "id"), text_of(block, "name"), arguments, calls)
                calls.append(call)
                named = {"id": dump(call.call_id), "name": dump(call.tool), "input": call.arguments}
                content.append(object_text({key: dump(value) for key, value in block.items()} | named))
            elif block.get("type") != "text" or text_of(block, "text").strip():  # an empty one is refused when it comes back
                content.append(dump(block))
        frame = {key: dump(value) for key, value in self._frame.items()}
        usage = {"usage": dump(self._usage)} if self._usage else {}
        return object_text(frame | {"content": array_text(content), "stop_reason": dump(self._stop)} | usage)

    def _count(self, holder: Fields) -> None:
        self._usage |= {key: value for key, value in fields_of(holder.get("usage")).items() if value is not None}
