"""What versions 0 and 1 of OpenHands share: the model's answers, and which drafts stand for which events that a condensation forgets."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.parts import from_url, seal, text_of
from tenure.logs.transcript import TranscriptBuilder, utc

EventId = int | str  # a number in version 0, a UUID in version 1

FINISHED: Final = "\n[Command finished with exit code {}]"
WORKING: Final = "\n[Current working directory: {}]"
INTERPRETER: Final = "\n[Python interpreter: {}]"
RUNNING: Final = -1  # the exit code of a command that has none yet


class ContentPart(Struct, frozen=True, gc=False):
    """A content part: text, or images by their URLs."""

    type: str | None = "text"
    text: str | None = None
    image_urls: list[str] | None = None


Content = str | list[ContentPart] | None


class _CallFunction(Struct, frozen=True, gc=False):
    name: str | None = None
    arguments: Raw = Raw(b'"{}"')


class MadeCall(Struct, frozen=True, gc=False):
    """A call in the Chat Completions API's shape, or with its name and arguments at the top."""

    id: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b'"{}"')
    function: _CallFunction | None = None

    def block(self, call_id: str) -> ToolCall:
        """The block; `call_id` where it has no id of its own."""
        shape = self.function or self
        return ToolCall(call_id=self.id or call_id, name=shape.name or "", arguments=text_of(shape.arguments))


class ThinkingBlock(Struct, frozen=True, gc=False):
    """Anthropic's."""

    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class ReasoningItem(Struct, frozen=True, gc=False):
    """The Responses API's."""

    summary: list[str] | None = None
    content: list[str] | None = None
    encrypted_content: str | None = None


class ModelReply(Struct, frozen=True, gc=False):
    """A message of the model."""

    role: str | None = None
    content: Content = None
    reasoning_content: str | None = None
    thinking_blocks: list[ThinkingBlock] | None = None
    responses_reasoning_item: ReasoningItem | None = None
    tool_calls: list[MadeCall] | None = None

    @property
    def reasoning(self) -> tuple[Thinking, ...]:
        """The reasoning once: in blocks with their signatures, or as text."""
        blocks = (Thinking(text=one.thinking or "", seal=seal(one.signature or one.data)) for one in self.thinking_blocks or ())
        if thoughts := tuple(one for one in blocks if one.text or one.seal):
            return thoughts
        item = self.responses_reasoning_item or ReasoningItem()
        text = self.reasoning_content or "\n".join((*(item.summary or ()), *(item.content or ())))
        secret = seal(item.encrypted_content)
        return (Thinking(text=text, seal=secret),) if text or secret else ()


class Printed(Struct, frozen=True, gc=False):
    """What OpenHands notes about a command beside what it printed."""

    exit_code: int | None = RUNNING
    working_dir: str | None = None
    py_interpreter_path: str | None = None
    prefix: str | None = ""
    suffix: str | None = ""

    def around(self, content: str) -> str:
        """The output as the model reads it."""
        text = f"{self.prefix or ''}{content}{self.suffix or ''}"
        text += WORKING.format(self.working_dir) if self.working_dir else ""
        text += INTERPRETER.format(self.py_interpreter_path) if self.py_interpreter_path else ""
        return text + (FINISHED.format(self.exit_code) if self.exit_code not in (None, RUNNING) else "")


class RunSettings(Struct, frozen=True):
    """What the file says about the run beside its events."""

    task: str = ""  # what was asked, for a history without it
    model: str = ""
    longest: int | None = None  # characters of an observation; the middle of a longer one is cut out
    recalls: bool = True  # whether recalled context is sent
    usages: dict[str, Usage] = {}  # by the id of the response


def texts(content: Content, origin: Origin) -> tuple[Block, ...]:
    """The blocks of a content, without empty ones."""
    blocks: list[Block] = []
    for part in [ContentPart(text=content)] if isinstance(content, str) else content or ():
        blocks += (Text(text=part.text, origin=origin),) if part.text else ()
        blocks += images(part.image_urls, origin)
    return tuple(blocks)


def images(urls: list[str] | None, origin: Origin) -> tuple[Media, ...]:
    """The images at `urls`."""
    return tuple(from_url(url, "", origin) for url in urls or () if url.strip())


class OpenHandsConversation:
    """One conversation while it is read."""

    def __init__(self, transcript: TranscriptBuilder, settings: RunSettings) -> None:
        self.transcript, self.settings = transcript, settings
        self.called: dict[str, int] = {}  # each call that a result may follow, and its draft
        self._asked = False
        self._draft_of: dict[EventId, int] = {}
        self._numbers: list[int] = []  # the events that have numbers, sorted
        self._events: dict[int, int] = {}  # of each draft: how many events it still stands for
        self._call_of: dict[int, int] = {}
        self._results: dict[int, set[int]] = {}  # of each draft with calls: those still there
        self._summary: int | None = None

    def add(
        self, role: Role, blocks: tuple[Block, ...], event: EventId | None, at: object, *, model: str | None = None, **fields: Any
    ) -> None:
        """Add a draft that stands for an event, before the first of the model's also the task where the history lacks it."""
        if not blocks:
            return
        if role is Role.ASSISTANT and not self._asked and self.settings.task:
            line = fields.get("line")
            self.transcript.text(Role.USER, self.settings.task, Origin.HUMAN, line=line, at="")
            self._asked = True
        self._asked = self._asked or role is Role.USER
        model = (model or self.settings.model) if role is Role.ASSISTANT else ""
        number = self.transcript.add(role, blocks, at=utc(at), model=model, **fields)
        for block in blocks:
            if isinstance(block, ToolCall):
                self.called[block.call_id] = number
            elif isinstance(block, ToolResult) and block.call_id in self.called:
                call = self._call_of[number] = self.called[block.call_id]
                self._results.setdefault(call, set()).add(number)
        self.stands_for(number, event)

    def stands_for(self, number: int, event: EventId | None) -> None:
        """Note that a draft shows an event, also as one of several."""
        if event is None or event in self._draft_of:
            return
        self._draft_of[event] = number
        self._events[number] = self._events.get(number, 0) + 1
        if isinstance(event, int):
            insort(self._numbers, event)

    def between(self, first: int, last: int) -> list[int]:
        """The events numbered from `first` to `last`."""
        return self._numbers[bisect_left(self._numbers, first) : bisect_right(self._numbers, last)]

    def condense(self, forgotten: Iterable[EventId], summary: str, event: EventId | None, at: object) -> None:
        """Drop what stood for the events that are forgotten, and with a new summary the one before."""
        leaving = self._leaving(forgotten)
        if summary and self._summary is not None:
            leaving.add(self._summary)
        self.transcript.drop("condensation", leaving, at=utc(at))
        if summary:
            self._summary = self.transcript.text(Role.USER, summary, at=utc(at))
            self.stands_for(self._summary, None if event is None else f"{event}-summary")

    def _leaving(self, forgotten: Iterable[EventId]) -> set[int]:
        """The drafts all of whose events are forgotten; a call and its results leave together."""
        leaving: set[int] = set()
        for event in forgotten:
            number = self._draft_of.pop(event, None)
            if number is None:
                continue
            if isinstance(event, int):
                del self._numbers[bisect_left(self._numbers, event)]
            self._events[number] -= 1
            if not self._events[number]:
                leaving.add(number)
        for number in tuple(leaving):
            leaving.update(self._results.pop(number, ()))
        for number in tuple(leaving):
            if (call := self._call_of.pop(number, None)) in self._results:
                self._results[call].discard(number)
                if not self._results[call]:
                    leaving.add(call)
        return leaving
