"""A reply of Chat Completions, put together from its chunks. Pure.

https://platform.openai.com/docs/api-reference/chat-streaming. Of several choices the first counts. What servers put beside the words and must have
back is kept: reasoning (DeepSeek, vLLM, OpenRouter) and whatever stands beside a call (Gemini's thought signatures).
"""

from collections.abc import Iterator
from typing import Any, Final

from tenure.apis.json_text import clean, dump
from tenure.apis.openai_chat import OpenAIChat
from tenure.models.assembly.assembly import Fields, arguments_of, end_of, fields_of, items_of, own_id, text_of
from tenure.models.replies import counts
from tenure.models.speaker import Made, Spoken, Whole

_TEXTS: Final = {"content": "text", "reasoning_content": "thinking", "reasoning": "thinking", "refusal": "text"}
_JOINED: Final = ("text", "summary", "data", "signature")  # of a piece of reasoning that comes in several


class ChatAssembly:
    """Takes chunks in order."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._calls: dict[int | str, dict[str, Any]] = {}  # by the index that the server gives them
        self._arguments: dict[int | str, list[str]] = {}
        self._frame: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self.error: Fields | None = None

    @property
    def said(self) -> str:
        """The words so far."""
        return clean("".join(self._texts.get("content", ())))

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        return bool(self._texts or self._calls or self._details)

    def take(self, event: object) -> Iterator[Spoken]:
        """Take a chunk. Usage comes in the last one, or grows with each."""
        chunk = fields_of(event)
        for key in ("id", "created", "model"):
            if chunk.get(key) and key not in self._frame:
                self._frame[key] = chunk[key]
        self._usage = fields_of(chunk.get("usage")) or self._usage
        if error := chunk.get("error"):
            self.error = fields_of(error) or {"message": str(error)}
        first = [choice for each in items_of(chunk.get("choices")) if not (choice := fields_of(each)).get("index")]
        choice = first[0] if first else {}
        delta = fields_of(choice.get("delta"))
        yield from self._words(delta)
        self._reasoning(items_of(delta.get("reasoning_details")))
        for call in items_of(delta.get("tool_calls")):
            yield from self._call(fields_of(call))
        if legacy := fields_of(delta.get("function_call")):
            yield from self._call({"index": 0, "function": legacy})
        self._stop = text_of(choice, "finish_reason") or self._stop

    def whole(self) -> Whole | None:
        """The reply, once the server has said why it ended."""
        refusal = clean("".join(self._texts.get("refusal", ())))
        end = end_of(self._stop, refusal=refusal)
        if end is None:
            return None
        made = self._made()
        message = self._message(made)
        usage = {"usage": self._usage} if self._usage else {}
        reply = self._frame | {"choices": [{"index": 0, "message": message, "finish_reason": self._stop}]} | usage
        return Whole(
            reply=dump(reply).encode(),
            text=self.said,
            calls=made,
            ended=end[0],
            why=end[1],
            stop=self._stop,
            model=text_of(self._frame, "model"),
            usage=OpenAIChat().parse_usage(counts(self._usage)) if self._usage else None,
        )

    def _made(self) -> tuple[Made, ...]:
        made: list[Made] = []
        for key, call in self._calls.items():
            arguments = arguments_of("".join(self._arguments[key]))
            call_id = own_id(text_of(call, "id"), len(made), (one.call_id for one in made))
            name = call["function"]["name"] or "unnamed"
            made.append(Made(call_id=call_id, tool=name, arguments=arguments.text, broken=arguments.broken))
        return tuple(made)

    def _words(self, delta: Fields) -> Iterator[Spoken]:
        told = False
        for key, kind in _TEXTS.items():
            if text := text_of(delta, key):
                self._texts.setdefault(key, []).append(text)
                if not (told and kind == "thinking"):  # some say it under both names
                    yield Spoken(kind="text" if kind == "text" else "thinking", text=text)
                told = told or kind == "thinking"

    def _reasoning(self, details: list[Any]) -> None:
        for each in map(fields_of, details):
            last = self._details[-1] if self._details else None
            if last is None or (last.get("index"), last.get("type")) != (each.get("index"), each.get("type")):
                self._details.append(dict(each))
                continue
            for key, value in each.items():
                joins = key in _JOINED and isinstance(value, str) and isinstance(last.get(key), str)
                last[key] = last[key] + value if joins else value if value is not None else last.get(key)

    def _call(self, call: Fields) -> Iterator[Spoken]:
        key = self._key(call)
        held = self._calls.setdefault(key, {"id": "", "type": "function", "function": {"name": ""}})
        function = fields_of(call.get("function"))
        inner = held["function"]
        held |= {name: value for name, value in call.items() if name not in ("index", "function") and value}
        inner |= {name: value for name, value in function.items() if name not in ("name", "arguments") and value is not None}
        inner["name"] = inner["name"] or text_of(function, "name")
        given = function.get("arguments")
        text = given if isinstance(given, str) else dump(given) if given is not None else ""
        self._arguments.setdefault(key, []).append(text)
        yield Spoken(kind="arguments", text=text, tool=inner["name"], place=list(self._calls).index(key))

    def _key(self, call: Fields) -> int | str:
        """Which call is meant. A server that does not count them sends each whole, or begins it with its id."""
        for key in (call.get("index"), call.get("id")):
            if isinstance(key, int | str) and key != "":
                return key
        return next(reversed(self._calls), 0)

    def _message(self, made: tuple[Made, ...]) -> dict[str, Any]:
        texts = {key: "".join(parts) for key, parts in self._texts.items()}
        message: dict[str, Any] = {"role": "assistant", "content": texts.get("content") or (None if made else "")}
        message |= {key: texts[key] for key in ("reasoning_content", "reasoning", "refusal") if texts.get(key)}
        if self._details:
            message["reasoning_details"] = self._details
        if made:
            message["tool_calls"] = [
                call | {"id": one.call_id, "function": call["function"] | {"name": one.tool, "arguments": one.arguments}}
                for call, one in zip(self._calls.values(), made, strict=True)
            ]
        return message
