"""Messages as a provider's API takes them: an array, a request body, or one message per line. The dialects do the reading."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.apis.api import Api
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.errors import InputError
from tenure.logs.json_files import Element, document, elements, records
from tenure.logs.parts import ANTHROPIC_API, CHAT_API, RESPONSES_API
from tenure.logs.reader import Event, Reader, Skipped
from tenure.logs.shape import keys, opening

ALLOWED: Final = "messages: an array, an object with `messages` or `input`, or one message per line"

_ROLE: Final = re.compile(rb'"role"\s*:\s*"(system|developer|user|assistant|tool|function)"')

# What gives a provider away, wherever it stands in the first messages.
_MARKS: Final = {
    "anthropic-messages": re.compile(
        rb'"type"\s*:\s*"(tool_use|tool_result|thinking|redacted_thinking)"|"anthropic_version"|"type"\s*:\s*"base64"'
    ),
    RESPONSES_API.name: re.compile(
        rb'"type"\s*:\s*"(function_call|function_call_output|custom_tool_call|custom_tool_call_output|reasoning|input_text|output_text)"'
    ),
    "openai-messages": re.compile(rb'"tool_calls"\s*:|"tool_call_id"\s*:|"role"\s*:\s*"(tool|developer|function)"|"image_url"'),
}


class _SystemPart(Struct, frozen=True, gc=False):
    text: str = ""


class _ApiBody(Struct, frozen=True, gc=False):
    messages: list[Raw] | None = None
    input: list[Raw] | str | None = None
    system: str | list[_SystemPart] | None = None
    instructions: str | None = None


_any: Final = msgspec.json.Decoder(Raw)


class ApiMessages:
    """Reads messages of one API."""

    def __init__(self, name: str, dialect: Api) -> None:
        self.name, self._dialect = name, dialect

    def recognises(self, head: bytes) -> bool:
        """Whether the file holds messages, and of the known APIs they look most like this one's."""
        return _holds_messages(head) and _kind(head) == self.name

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """One draft per message, in order; adjacent items of one reply may share one. A request's system prompt comes first."""
        raw = b"".join(chunks)
        run: list[Element] = []  # items the model said in a row
        for item in self._of_lines(raw) if _is_by_line(raw) else self._of_document(raw):
            found = self._alone(item) if isinstance(item, Element) else (item,)
            if isinstance(item, Element) and all(isinstance(one, Draft) and one.role is Role.ASSISTANT for one in found):
                run.append(item)
                continue
            yield from self._together(run)
            run = []
            yield from found
        yield from self._together(run)

    def _of_lines(self, raw: bytes) -> Iterator[Element | Skipped]:
        return (item if isinstance(item, Skipped) else item[0] for item in records((raw,), _any))

    def _of_document(self, raw: bytes) -> Iterator[Element | Draft | Skipped]:
        if opening(raw) == "[":
            array = document((raw,), list[Raw], ALLOWED)
            yield from elements(array.value, array.source, array.faithful)
            yield from array.skipped
            return
        read = document((raw,), _ApiBody, ALLOWED)
        body = read.value
        if prompt := _prompt(body):
            yield Draft(role=Role.SYSTEM, blocks=(Text(text=prompt, origin=Origin.HARNESS),), line=1)
        if isinstance(body.input, str):
            yield Draft(role=Role.USER, blocks=(Text(text=body.input, origin=Origin.HUMAN),), line=1)
        else:
            yield from elements(body.messages or body.input or [], read.source, read.faithful)
        yield from read.skipped

    def _alone(self, element: Element) -> tuple[Event, ...]:
        try:
            return tuple(replace(draft, line=element.line) for draft in self._dialect.parse([element.faithful]))
        except InputError as error:
            return (Skipped(line=element.line, bytes=len(element.faithful), reason=f"damaged message: {error!s:.200}"),)

    def _together(self, run: list[Element]) -> Iterator[Draft]:
        drafts = self._dialect.parse([element.faithful for element in run])
        lined_up = len(drafts) == len(run)
        for n, draft in enumerate(drafts):
            yield replace(draft, line=run[n if lined_up else 0].line)


def _prompt(body: _ApiBody) -> str:
    """The system prompt beside the messages, as text."""
    if isinstance(body.system, list):
        return "\n".join(part.text for part in body.system)
    return body.system or body.instructions or ""


def _holds_messages(head: bytes) -> bool:
    found = _ROLE.search(head) is not None or _MARKS[RESPONSES_API.name].search(head) is not None
    match opening(head):
        case "[":
            return found
        case "{":
            top = keys(head)
            return found and any(key in top for key in ("messages", "input", "role"))
        case _:
            return False


def _kind(head: bytes) -> str:
    if opening(head) == "{" and "input" in (top := keys(head)) and "messages" not in top:
        return RESPONSES_API.name
    counts = {name: len(mark.findall(head)) for name, mark in _MARKS.items()}
    best = max(counts, key=lambda name: counts[name])
    if counts[best]:
        return best
    return "anthropic-messages" if opening(head) == "{" and "system" in keys(head) else "openai-messages"


def _is_by_line(raw: bytes) -> bool:
    return opening(raw) == "{" and not {"messages", "input"} & set(keys(raw[: 64 * 2**10]))


READERS: Final[tuple[Reader, ...]] = (
    ApiMessages(RESPONSES_API.name, RESPONSES_API),
    ApiMessages("anthropic-messages", ANTHROPIC_API),
    ApiMessages("openai-messages", CHAT_API),
)
