"""A reply of the Gemini API, put together from the chunks of `streamGenerateContent`.

Each chunk is a whole response with more parts of the one candidate. Texts of one kind are joined, but never across a signature: "Don't concatenate parts
with signatures together" (https://ai.google.dev/gemini-api/docs/thought-signatures). A call comes whole, or its arguments come by paths where that was
asked for (https://ai.google.dev/api/caching#FunctionCall, `partialArgs`). Of usage the last report counts.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from tenure.apis.gemini.messages import member
from tenure.apis.json_text import array_text, clean, dump
from tenure.apis.reply import (
    ENDS,
    Delta,
    End,
    Fields,
    ReplyCall,
    ReplyStream,
    UsageParser,
    call_of,
    fields_in,
    fields_of,
    object_text,
)

# https://ai.google.dev/api/generate-content#FinishReason and, of a prompt that is not answered, #BlockReason
_FINISHES: Final[Mapping[str, tuple[End | None, str]]] = {
    "MAX_TOKENS": ("length", "the output limit was reached"),
    "SAFETY": ("refused", "a safety filter stopped the answer"),
    "IMAGE_SAFETY": ("refused", "a safety filter stopped the picture"),
    "RECITATION": ("refused", "the answer repeated protected text"),
    "IMAGE_RECITATION": ("refused", "the picture repeated a protected one"),
    "LANGUAGE": ("refused", "the language is not supported"),
    "BLOCKLIST": ("refused", "the answer held a blocked term"),
    "PROHIBITED_CONTENT": ("refused", "the answer held prohibited content"),
    "IMAGE_PROHIBITED_CONTENT": ("refused", "the picture held prohibited content"),
    "SPII": ("refused", "the answer held personal data"),
    "OTHER": (None, "the provider stopped for a reason it does not name"),
    "MALFORMED_FUNCTION_CALL": (None, "the model made a call that cannot be read"),
    "MALFORMED_RESPONSE": (None, "the model made an answer that cannot be read"),
    "UNEXPECTED_TOOL_CALL": (None, "the model called a tool that it was not offered"),
    "TOO_MANY_TOOL_CALLS": (None, "the model made too many calls"),
    "MISSING_THOUGHT_SIGNATURE": (None, "a thought signature was missing in the request"),
}
_TEXTS: Final = ("text", "thought")
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
_VALUES: Final = ("stringValue", "numberValue", "boolValue")


class GeminiStream(ReplyStream):
    """Takes chunks in order."""

    ends: ClassVar[Mapping[str, tuple[End | None, str]]] = MappingProxyType({**ENDS, **_FINISHES})

    def __init__(self, parse_usage: UsageParser) -> None:
        super().__init__(parse_usage)
        self._parts: list[dict[str, Any]] = []
        self._frame: dict[str, Any] = {}  # of the response
        self._candidate: dict[str, Any] = {}
        self._open: dict[str, Any] | None = None  # a call whose arguments are still to come
        self._blocked = ""

    @property
    def text(self) -> str:
        """The words so far."""
        return clean("".join(part["text"] for part in self._parts if "text" in part and part.get("thought") is not True))

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        return bool(self._parts)

    def take(self, event: object, /) -> Iterator[Delta]:
        """Take a chunk."""
        fields = fields_of(event)
        if error := fields_of(fields.get("error")):
            self.error = error
            return
        for key in ("modelVersion", "responseId"):
            if value := member(fields, key):
                self._frame[key] = value
        self.model = str(self._frame.get("modelVersion", ""))
        self._usage |= {key: value for key, value in fields_of(member(fields, "usageMetadata")).items() if value is not None}
        self._blocked = str(member(fields_of(member(fields, "promptFeedback")), "blockReason") or self._blocked)
        for candidate in list(fields_in(fields.get("candidates")))[:1]:
            self._stop = str(member(candidate, "finishReason") or self._stop)
            self._candidate |= {
                key: value for key, value in candidate.items() if key not in ("content", "index") and value is not None
            }
            for part in fields_in(fields_of(candidate.get("content")).get("parts")):
                yield from self._add(part)

    def _add(self, part: dict[str, Any]) -> Iterator[Delta]:
        call = member(part, "functionCall")
        if call is not None:
            yield from self._call(part, fields_of(call))
        elif isinstance(text := part.get("text"), str):
            thought = part.get("thought") is True
            if self._parts and _continues(self._parts[-1], part):
                self._parts[-1] |= {**part, "text": self._parts[-1]["text"] + text}
            elif text or member(part, "thoughtSignature"):
                self._parts.append(dict(part))
            if text:
                yield Delta(kind="thinking" if thought else "text", text=text)
        elif part:
            self._parts.append(dict(part))

    def _call(self, part: dict[str, Any], call: dict[str, Any]) -> Iterator[Delta]:
        """A call, or more of the arguments of the one that is open."""
        goes_on, pieces = bool(member(call, "willContinue")), list(fields_in(member(call, "partialArgs")))
        inner = {
            key: value
            for key, value in call.items()
            if key not in ("willContinue", "will_continue", "partialArgs", "partial_args")
        }
        if self._open is None or inner.get("name"):
            self._open = {**inner, "args": dict(fields_of(call.get("args")))}
            rest = {key: value for key, value in part.items() if key not in ("functionCall", "function_call")}
            self._parts.append({"functionCall": self._open, **rest})
            self._tools[len(self._parts) - 1] = str(inner.get("name") or "")
            yield self._delta("" if goes_on or pieces else dump(self._open["args"]))
        for piece in pieces:
            value = next((member(piece, key) for key in _VALUES if member(piece, key) is not None), None)
            _put(self._open["args"], str(member(piece, "jsonPath") or ""), value)
            yield self._delta(value if isinstance(value, str) else dump(value))
        if not goes_on:
            self._open = None

    def _delta(self, text: str) -> Delta:
        return Delta(kind="arguments", text=text, tool=list(self._tools.values())[-1], place=len(self._tools) - 1)

    def _refusal(self) -> str:
        return f"the prompt was blocked: {self._blocked}" if self._blocked and not self._parts else ""

    def _reply(self, calls: list[ReplyCall]) -> str:
        parts: list[str] = []
        for part in self._parts:
            if "functionCall" in part:
                made = part["functionCall"]
                usual = (
                    f"{self._frame['responseId']}_{len(calls)}" if "responseId" in self._frame else ""
                )  # agents tell calls apart by ids
                call = call_of(str(made.get("id") or usual), str(made.get("name") or ""), dump(made["args"]), calls)
                calls.append(call)
                named = {"id": dump(call.call_id), "name": dump(call.tool), "args": call.arguments}
                parts.append(
                    object_text({key: dump(value) for key, value in part.items()} | {"functionCall": object_text(named)})
                )
            else:
                parts.append(dump(part))
        content = f'{{"role":"model","parts":{array_text(parts)}}}'
        candidate = {"content": content} | {key: dump(value) for key, value in self._candidate.items()}
        usage = {"usageMetadata": dump(self._usage)} if self._usage else {}
        frame = {key: dump(value) for key, value in self._frame.items()}
        return object_text({"candidates": array_text([object_text(candidate)])} | usage | frame)


def _continues(before: Fields, part: Fields) -> bool:
    """Whether a text goes on with the part before it: of the same kind, and neither has a signature or anything else."""
    is_text = set(before) <= set(_TEXTS) and set(part) <= set(_TEXTS) and "text" in before
    return is_text and (before.get("thought") is True) == (part.get("thought") is True)


def _put(arguments: dict[str, Any], path: str, value: Any) -> None:
    """Put a value where a path such as `$.a.b[0]` says; a string goes behind the one that is there."""
    steps = [int(index) if index else name or quoted for name, index, quoted in _STEP.findall(path.removeprefix("$"))]
    at: Any = arguments
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int) != isinstance(at, list):
            return  # no path into what is there
        if isinstance(at, list):
            at.extend([None] * (step + 1 - len(at)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        held: Any = at[step] if isinstance(at, list) else at.get(step)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if after is None:
            at[step] = held + value if isinstance(held, str) and isinstance(value, str) else value
        else:
            at[step] = held if isinstance(held, dict | list) else [] if isinstance(after, int) else {}
        at = at[step]  # pyright: ignore[reportUnknownVariableType]
