"""A reply of Chat Completions, put together from its chunks: https://platform.openai.com/docs/api-reference/chat-streaming.

Of several choices the first counts. What servers put beside the words and must have back is kept: reasoning (DeepSeek, vLLM, OpenRouter, LiteLLM) and whatever
stands beside a call (Gemini's thought signatures).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from tenure.apis.json_text import clean, dump
from tenure.apis.reply import Delta, Fields, ReplyCall, ReplyStream, UsageParser, call_of, fields_in, fields_of, text_of

_TEXTS: Final = {"content": "text", "reasoning_content": "thinking", "reasoning": "thinking", "refusal": "text"}
_LISTS: Final = ("reasoning_details", "thinking_blocks")  # reasoning in pieces: OpenRouter's, and LiteLLM's
_JOINED: Final = ("text", "summary", "data", "thinking", "signature")  # of a piece that comes in several


class ChatStream(ReplyStream):
    """Takes chunks in order."""

    def __init__(self, parse_usage: UsageParser) -> None:
        super().__init__(parse_usage)
        self._texts: dict[str, list[str]] = {}
        self._details: dict[str, list[dict[str, Any]]] = {}
        self._calls: dict[int | str, dict[str, Any]] = {}  # by the index that the server gives them
        self._arguments: dict[int | str, list[str]] = {}
        self._frame: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The words so far."""
        return clean("".join(self._texts.get("content", ())))

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        return bool(self._texts or self._calls or self._details)

    def take(self, event: object, /) -> Iterator[Delta]:
        """Take a chunk. Usage comes in the last one, or grows with each."""
        chunk = fields_of(event)
        for key in ("id", "created", "model"):
            if chunk.get(key) and key not in self._frame:
                self._frame[key] = chunk[key]
        self.model = text_of(self._frame, "model")
        self._usage = fields_of(chunk.get("usage")) or self._usage
        if error := chunk.get("error"):
            self.error = fields_of(error) or {"message": str(error)}
        choice = next((each for each in fields_in(chunk.get("choices")) if not each.get("index")), fields_of(None))
        delta = fields_of(choice.get("delta"))
        yield from self._words(delta)
        for key in _LISTS:
            self._reasoning(key, fields_in(delta.get(key)))
        for call in fields_in(delta.get("tool_calls")):
            yield self._call(call)
        if legacy := fields_of(delta.get("function_call")):
            yield self._call({"index": 0, "function": legacy})
        self._stop = text_of(choice, "finish_reason") or self._stop

    def _words(self, delta: Fields) -> Iterator[Delta]:
        has_thinking = False
        for key, kind in _TEXTS.items():
            if text := text_of(delta, key):
                self._texts.setdefault(key, []).append(text)
                if not (has_thinking and kind == "thinking"):  # some servers send it under both names
                    yield Delta(kind="text" if kind == "text" else "thinking", text=text)
                has_thinking = has_thinking or kind == "thinking"

    def _reasoning(self, name: str, pieces: Iterable[dict[str, Any]]) -> None:
        for each in pieces:
            held = self._details.setdefault(name, [])
            last = held[-1] if held else {}
            is_next = (last.get("index"), last.get("type")) != (each.get("index"), each.get("type"))
            if not last or is_next or (last.get("signature") and each.get("thinking")):
                held.append(dict(each))
                continue
            for key, value in each.items():
                joins = key in _JOINED and isinstance(value, str) and isinstance(last.get(key), str)
                if joins and key == "thinking" and each.get("signature") and value.startswith(last[key]):
                    joins = False  # LiteLLM 1.105 says all of it again beside the signature
                last[key] = last[key] + value if joins else value if value is not None else last.get(key)

    def _call(self, call: Fields) -> Delta:
        key = self._key(call)
        held = self._calls.setdefault(key, {"id": "", "type": "function", "function": {"name": ""}})
        function, inner = fields_of(call.get("function")), held["function"]
        held |= {name: value for name, value in call.items() if name not in ("index", "function") and value}
        inner |= {name: value for name, value in function.items() if name not in ("name", "arguments") and value is not None}
        inner["name"] = self._tools[key] = inner["name"] or text_of(function, "name")
        given = function.get("arguments")
        text = given if isinstance(given, str) else dump(given) if given is not None else ""
        self._arguments.setdefault(key, []).append(text)
        return Delta(kind="arguments", text=text, tool=inner["name"], place=list(self._calls).index(key))

    def _key(self, call: Fields) -> int | str:
        """Which call is meant. A server that does not count them sends each whole, or begins it with its id."""
        for key in (call.get("index"), call.get("id")):
            if isinstance(key, int | str) and key != "":
                return key
        return next(reversed(self._calls), 0)

    def _refusal(self) -> str:
        return clean("".join(self._texts.get("refusal", ())))

    def _reply(self, calls: list[ReplyCall]) -> str:
        texts = {key: "".join(parts) for key, parts in self._texts.items()}
        tool_calls: list[dict[str, Any]] = []
        for key, call in self._calls.items():
            one = call_of(text_of(call, "id"), call["function"]["name"], "".join(self._arguments[key]), calls)
            calls.append(one)
            function = call["function"] | {"name": one.tool, "arguments": one.arguments}
            tool_calls.append(call | {"id": one.call_id, "function": function})
        message: dict[str, Any] = {"role": "assistant", "content": texts.get("content") or (None if calls else "")}
        message |= {key: texts[key] for key in ("reasoning_content", "reasoning", "refusal") if texts.get(key)}
        message |= self._details
        message |= {"tool_calls": tool_calls} if tool_calls else {}
        usage = {"usage": self._usage} if self._usage else {}
        return dump(self._frame | {"choices": [{"index": 0, "message": message, "finish_reason": self._stop}]} | usage)
