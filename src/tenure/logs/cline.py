"""Tasks of Cline, Roo Code and Kilo Code (`api_conversation_history.json`), and sessions of Cline's SDK (`*.messages.json`).

The history is a list of Anthropic-like messages, in an object with its version in newer tools. Calls were XML in the model's
text, answered by texts in the user's role, and the model saw them so; newer versions use the provider's calls, though some
answer even those by texts, which are then read as the results that they are. Roo Code marks what a summary or a sliding window
hides instead of taking it out. What Cline's own sliding window took is not in this file but in the task's `ui_messages.json`
(`cline_screen`). A plain Anthropic message keeps its bytes as payload, without Cline's own fields.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import NEUTRAL, Block, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.cline_screen import is_screen, read_screen
from tenure.logs.json_files import HEAD, Element, decoded, document, elements
from tenure.logs.parts import (
    ANTHROPIC_API,
    anthropic_content,
    anthropic_result,
    from_base64,
    from_url,
    plain,
    result_of,
    seal,
    text_or_json,
    usage_within,
)
from tenure.logs.reader import Event
from tenure.logs.salvage import DamagedJson, cut, decode, decode_with_source
from tenure.logs.shape import keys, opening
from tenure.logs.transcript import TranscriptBuilder

ALLOWED: Final = "a task of Cline or its forks: an array of messages, or an object with `version` and `messages`"

ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "system": Role.SYSTEM}

# How Cline itself continues after a summary, and how many of the newest messages stay beside the first two.
CONTINUED: Final = {
    "This session is being continued from a previous conversation that ran out of context.": 0,
    "The user has accepted the condensed conversation summary you generated.": 2,
}
_FIRST: Final = 2  # messages that no compaction of Cline's takes

# Who wrote a text in the user's role, since all comes under it. A block that holds anything of a human's is theirs.
# Elements that Cline puts around what a human typed. The task comes first in a block, the others may follow Cline's words.
HUMAN_ELEMENTS: Final = ("task", "feedback", "answer", "user_message", "user_input", "user_command")

# Elements that only the harness writes.
HARNESS_ELEMENTS: Final = (
    "environment_details",
    "explicit_instructions",
    "mode_notice",
    "hook_context",
    "system-reminder",
    "workspace_diagnostics",
    "git_working_state",
    "file_content",
    "folder_content",
    "url_content",
)

HARNESS_OPENINGS: Final = (
    "[TASK RESUMPTION]",
    "[ERROR] You did not",
    "[NOTE] Some previous conversation history",
    "[Sliding window truncation",
    "If you have completed the user's task, use the attempt_completion tool",
    "(The user did not provide a new message",
    "This session is being continued from a previous conversation",
    "Please continue from the following summary",
    "# task_progress",
    "# TODO LIST",
    "# Todo List",
    "Files attached by the user:",
    "You seem to be having trouble proceeding.",  # what the human says to it stands in an element
)

TOOL_OPENINGS: Final = (
    "The tool execution failed with the following error",
    "The user denied this operation.",
    "Tool [",
    "(tool did not return anything)",
    "Missing value for required parameter",
)

# How a result is headed: what was called, which may be a command of many lines, and this. In old versions the result is a block
# of its own.
RESULT: Final = re.compile(r"\[[a-zA-Z_]\w*\b")
HEADED: Final = "] Result:"

PLAIN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"})  # Anthropic's
BESIDE: Final = frozenset({"thoughtSignature"})  # parts that carry a signature and no words

_MEDIA: Final = frozenset({"image", "file", "media"})
_HUMAN: Final = tuple(f"<{name}{end}" for name in HUMAN_ELEMENTS for end in (">", " "))
_HUMAN_LATER: Final = tuple(f"\n<{name}>" for name in ("feedback", "answer", "user_message"))
_OWN: Final = re.compile(rf"\s*<({'|'.join(HARNESS_ELEMENTS)})\b")

_HISTORY: Final = frozenset({"updated_at", "sessionId", "source_message_count"})
_ROLE: Final = re.compile(rb'"role"\s*:\s*"(user|assistant)"')
_TIME: Final = re.compile(rb'"ts"\s*:\s*1\d{12}\b')
_WORDS: Final = re.compile(
    rb'"(\\n|\s)*(<(task|environment_details|feedback|user_message|answer)>|<user_input mode=|\[TASK RESUMPTION\]'
    rb'|\[[a-z_]{3,40}( for )?[^"\n]{0,200}\] Result:)'
)
_FIELDS: Final = re.compile(
    rb'"modelInfo"\s*:\s*\{\s*"(id|modelId|provider|providerId)"'
    rb'|"(condenseId|condenseParent|truncationId|truncationParent)"\s*:\s*"'
)


class _Detail(Struct, frozen=True, gc=False):
    """A piece of reasoning as OpenRouter returns it."""

    type: str = ""
    text: str | None = None
    summary: str | None = None
    data: str | None = None
    signature: str | None = None


class _ClineOutput(Struct, frozen=True, gc=False):
    type: str = ""
    value: Raw = Raw(b'""')


class _ClinePart(Struct, frozen=True, gc=False):
    """A part, as far as it is not Anthropic's."""

    type: str = ""
    text: str | None = None
    signature: str | None = None
    reasoning_details: list[_Detail] | None = None
    toolCallId: str = ""  # noqa: N815 - the log's own names, here and below
    toolName: str = ""  # noqa: N815
    input: Raw = Raw(b"{}")
    output: Raw = Raw(b'""')
    content: Raw = Raw(b'""')
    tool_use_id: str = ""
    is_error: bool | None = None
    path: str | None = None
    image: str | None = None
    data: str | None = None
    mediaType: str | None = None  # noqa: N815
    call_id: Raw = Raw(b"")

    @property
    def is_plain(self) -> bool:
        """Whether it is Anthropic's, with nothing in it that only other providers know."""
        if self.type not in PLAIN or self.reasoning_details is not None or bytes(self.call_id):
            return False
        if self.type == "tool_result":
            return b'"mediaType"' not in bytes(self.content) and b'"file"' not in bytes(self.content)
        return not (self.type == "image" and (self.data or self.image)) and not (self.signature and self.type != "thinking")

    def media(self, origin: Origin) -> Media:
        kind = self.mediaType or ""
        return from_url(self.image, kind, origin) if self.image else from_base64(self.data or "", kind, origin)


class _ClineTokens(Struct, frozen=True, gc=False):
    prompt: int | None = 0
    completion: int | None = 0
    cached: int | None = 0


class _ClineMetrics(Struct, frozen=True, gc=False):
    tokens: _ClineTokens | None = None  # Cline's extension
    inputTokens: int | None = None  # noqa: N815 - and here Cline's SDK
    outputTokens: int | None = None  # noqa: N815
    cacheReadTokens: int | None = None  # noqa: N815
    cacheWriteTokens: int | None = None  # noqa: N815

    @property
    def usage(self) -> Usage | None:
        """Both kinds of figures count cached tokens inside the prompt."""
        if self.tokens is not None:
            return usage_within(self.tokens.prompt, self.tokens.completion, self.tokens.cached)
        if self.inputTokens is None and self.outputTokens is None:
            return None
        return usage_within(self.inputTokens, self.outputTokens, self.cacheReadTokens, self.cacheWriteTokens)


class _ClineModel(Struct, frozen=True, gc=False):
    modelId: str | None = None  # noqa: N815
    id: str | None = None


class _ClineMetadata(Struct, frozen=True, gc=False):
    kind: str | None = None
    displayRole: str | None = None  # noqa: N815


class _ClineMessage(Struct, frozen=True, gc=False):
    """A message, or a piece of reasoning that stands between messages (`type` is "reasoning", no role)."""

    role: str = ""
    content: Raw = Raw(b"")
    type: str | None = None
    ts: float | str | None = None
    modelInfo: _ClineModel | None = None  # noqa: N815
    metrics: _ClineMetrics | None = None
    metadata: _ClineMetadata | None = None
    isSummary: bool | None = False  # noqa: N815
    condenseId: str | None = None  # noqa: N815
    condenseParent: str | None = None  # noqa: N815
    isTruncationMarker: bool | None = False  # noqa: N815
    truncationId: str | None = None  # noqa: N815
    truncationParent: str | None = None  # noqa: N815
    reasoning_content: str | None = None
    reasoning_details: list[_Detail] | None = None
    summary: list[_Detail] | None = None
    encrypted_content: str | None = None
    text: str | None = None

    @property
    def model(self) -> str:
        model = self.modelInfo or _ClineModel()
        return model.modelId or model.id or ""

    @property
    def by_harness(self) -> bool:
        about = self.metadata or _ClineMetadata()
        return bool(self.isSummary or self.isTruncationMarker) or bool(about.kind) or about.displayRole in ("system", "status")

    @property
    def thought(self) -> Thinking:
        """The reasoning that stands between messages."""
        text = "\n".join(detail.text or detail.summary or "" for detail in self.summary or ()) or self.text or ""
        return Thinking(text=text, seal=seal(self.encrypted_content))


class _ClineTask(Struct, frozen=True, gc=False):
    messages: list[Raw]
    agent: str | None = None
    sessionId: str | None = None  # noqa: N815
    system_prompt: str | None = None


class _ClineBody(Struct, frozen=True):
    """A content that could be read; without a payload the blocks are ours."""

    blocks: tuple[Block, ...]
    dialect: str = NEUTRAL
    payload: bytes = b""


_parts: Final = msgspec.json.Decoder(str | list[_ClinePart] | None)
_outputs: Final = msgspec.json.Decoder(str | _ClineOutput | list[_ClinePart])


class ClineReader:
    """Reads the histories of Cline, Roo Code and Kilo Code, and what was on their screens."""

    name = "cline"

    def recognises(self, head: bytes) -> bool:
        """Whether the file holds messages with what only these tools write into or beside them."""
        match opening(head):
            case "[":
                return is_screen(head) or _is_history(head)
            case "{":
                top = set(keys(head))
                marked = any(mark.search(head) for mark in (_TIME, _WORDS, _FIELDS))
                if {"version", "messages"} <= top and _HISTORY & top:
                    return True
                return "messages" in top and not top - {"version", "messages"} and marked and _ROLE.search(head) is not None
            case _:
                return False

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the file, each rewriting where it stands."""
        raw = b"".join(chunks)  # one document
        if opening(raw) == "{":
            yield from _of_object(raw)
            return
        array = document((raw,), list[Raw], ALLOWED)
        items = elements(array.value, array.source, array.faithful)
        yield from read_screen(items) if is_screen(raw[:HEAD]) else _ClineReading().events(items)
        yield from array.skipped


def _is_history(head: bytes) -> bool:
    first = set(keys(head[head.index(b"[") + 1 :]))
    if {"role", "content"} <= first and {"ts", "modelInfo", "metrics", "condenseId", "condenseParent"} & first:
        return True
    return _ROLE.search(head) is not None and any(mark.search(head) for mark in (_WORDS, _FIELDS))


def _of_object(raw: bytes) -> Iterator[Event]:
    task = document((raw,), _ClineTask, ALLOWED)
    value, reading = task.value, _ClineReading()
    reading.transcript.here(1, 0)
    if value.agent in ("subagent", "teammate"):
        reading.transcript.of_parent(value.sessionId)
    reading.transcript.text(Role.SYSTEM, value.system_prompt)
    yield from reading.transcript.take()
    yield from reading.events(elements(value.messages, task.source, task.faithful))
    yield from task.skipped


class _ClineReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.hidden: dict[str, list[int]] = {}  # by the id of what hides them: drafts
        self.first: list[int] = []  # what Cline's own compactions keep
        self.swept = 0  # drafts that such a compaction has seen
        self.thoughts: list[tuple[int, Thinking]] = []  # reasoning whose answer has not come yet, with its lines
        self.open: list[str] = []  # the calls of the message before

    def events(self, array: Iterable[Element]) -> Iterator[Event]:
        yield from self.transcript.each(decoded(array, _ClineMessage, "message"), self._message)
        self._end_thoughts()
        yield from self.transcript.end()

    def _message(self, element: Element, message: _ClineMessage) -> None:
        self.transcript.here(element.line, element.size, message.ts)
        raw = bytes(message.content)
        body = _read(message, cut(raw, element.source, element.faithful)) if raw else _ClineBody(())
        if message.type == "reasoning" and not message.role:
            self.thoughts.append((element.line, message.thought))
        elif message.role in ROLES:
            self._add(ROLES[message.role], message, body)
        else:
            self.transcript.skip(f"message of a role unknown to this version: {message.role!r}")

    def _add(self, role: Role, message: _ClineMessage, body: _ClineBody) -> None:
        if role is Role.ASSISTANT and self.thoughts:
            body = _ClineBody((*(block for _, block in self.thoughts), *body.blocks))
            self.thoughts = []
        self._end_thoughts()
        if role is not Role.ASSISTANT:
            body = self._paired(replace(body, blocks=_attributed(message, body.blocks)))
        self.open = [block.call_id for block in body.blocks if isinstance(block, ToolCall)]
        if not body.blocks:
            self.transcript.skip("message without content")
            return
        self._rewrite(message, body.blocks)
        by_model = role is Role.ASSISTANT
        number = self.transcript.add(
            role,
            body.blocks,
            dialect=body.dialect if body.payload else NEUTRAL,
            payload=body.payload,
            model=message.model if by_model else "",
            usage=message.metrics.usage if by_model and message.metrics is not None else None,
        )
        if len(self.first) < _FIRST:
            self.first.append(number)
        for parent in {message.condenseParent, message.truncationParent} - {None, ""}:
            self.hidden.setdefault(parent or "", []).append(number)

    def _paired(self, body: _ClineBody) -> _ClineBody:
        """Texts that answer the provider's calls as their results, where there is one for each call."""
        answered = {block.call_id for block in body.blocks if isinstance(block, ToolResult)}
        calls = [call_id for call_id in self.open if call_id not in answered]
        if not calls or len(calls) != sum(map(_is_result, body.blocks)):
            return body
        left = iter(calls)
        return _ClineBody(
            tuple(ToolResult(call_id=next(left), text=block.text) if _is_result(block) else block for block in body.blocks)
        )

    def _end_thoughts(self) -> None:
        for line, block in self.thoughts:
            self.transcript.add(Role.ASSISTANT, (block,), line=line, at="")
        self.thoughts = []

    def _rewrite(self, message: _ClineMessage, blocks: tuple[Block, ...]) -> None:
        transcript = self.transcript
        if message.isSummary and message.condenseId and message.role == "user":  # a fresh start: nothing before it stays
            transcript.clear("condensation")
        elif message.isSummary:
            if not transcript.drop("condensation", self.hidden.pop(message.condenseId or "", ())):
                transcript.skip("condensation: what it stands for is no longer in the file", 0)
        elif message.isTruncationMarker:
            transcript.drop("sliding window truncation", self.hidden.pop(message.truncationId or "", ()))
        elif message.role == "user" and (newest := _newest_kept(blocks)) is not None:
            # A compaction of Cline's takes all but the first and the newest.
            end = max(0, transcript.count - newest)
            transcript.drop("compaction", [number for number in range(self.swept, end) if number not in self.first])
            self.swept = max(self.swept, end)


def _newest_kept(blocks: Iterable[Block]) -> int | None:
    """How many of the newest messages stay when this one continues after a compaction; None when it does not."""
    starts = (block.text[:400].lstrip() for block in blocks if isinstance(block, Text | ToolResult))
    return next((newest for start in starts for words, newest in CONTINUED.items() if start.startswith(words)), None)


# Who wrote what.


def _attributed(message: _ClineMessage, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks of a message that is not the model's, with who wrote each. A heading speaks for the next text, a tool's text for the images after it."""
    if message.by_harness or message.role == "system":
        return tuple(replace(block, origin=Origin.HARNESS) if isinstance(block, Text) else block for block in blocks)
    result: list[Block] = []
    under_heading, last = False, Origin.HUMAN
    for block in blocks:
        match block:
            case Text(text=text):
                last = written_by(text)
                if under_heading and last is Origin.HUMAN and not _is_marked_human(text.lstrip()):
                    last = Origin.TOOL
                under_heading = text.startswith("[") and text.rstrip().endswith(HEADED)
                result.append(replace(block, origin=last))
            case Media() if last is Origin.TOOL:
                result.append(replace(block, origin=last))
            case _:
                result.append(block)
    return tuple(result)


def _is_result(block: Block) -> bool:
    by_tool = isinstance(block, Text) and block.origin is Origin.TOOL
    return by_tool and RESULT.match(block.text) is not None and HEADED in block.text


def written_by(text: str) -> Origin:
    """Who wrote a text that stands alone."""
    rest = _without_own(text)
    if not rest:
        return Origin.HARNESS if text.strip() else Origin.HUMAN
    if _is_marked_human(rest):
        return Origin.HUMAN
    if rest.startswith(TOOL_OPENINGS) or (rest.startswith("[") and RESULT.match(rest) and HEADED in rest):
        return Origin.TOOL
    return Origin.HARNESS if rest.startswith(HARNESS_OPENINGS) else Origin.HUMAN


def _is_marked_human(text: str) -> bool:
    return text.startswith(_HUMAN) or any(element in text for element in _HUMAN_LATER)


def _without_own(text: str) -> str:
    """What is left when the harness's elements at the start are gone."""
    at = 0
    while element := _OWN.match(text, at):
        closing = f"</{element[1]}>"
        end = text.find(closing, element.end())
        if end < 0:
            return ""
        at = end + len(closing)
    return text[at:].strip()


# Contents.


def _read(message: _ClineMessage, raw: bytes) -> _ClineBody:
    """The blocks of a message whose content is spelled `raw`. Raises DamagedJson."""
    origin = Origin.MODEL if message.role == "assistant" else Origin.HUMAN
    parts = _parts_of(raw)
    beside = (
        (Thinking(text=message.reasoning_content),) if message.reasoning_content else _of_details(message.reasoning_details or [])
    )
    if all(part.is_plain for part, _ in parts):
        content = anthropic_content(raw, lambda _: origin)
        if beside or not content.blocks or message.role not in ("user", "assistant"):
            return _ClineBody((*_unless_repeated(beside, content.blocks), *content.blocks))
        payload = b'{"role":"' + message.role.encode() + b'","content":' + content.json + b"}"
        return _ClineBody(content.blocks, ANTHROPIC_API.name, payload)
    blocks = [block for part, part_raw in parts for block in _blocks(part, part_raw, origin)]
    details = beside or _of_details([detail for part, _ in parts for detail in part.reasoning_details or ()])
    return _ClineBody((*_unless_repeated(details, blocks), *blocks))


def _parts_of(raw: bytes) -> list[tuple[_ClinePart, bytes]]:
    """The parts of a content with their JSON, none when it is a text. Raises DamagedJson."""
    value, source, _ = decode_with_source(raw, _parts)
    return [] if not value or isinstance(value, str) else list(zip(value, map(bytes, decode(source, list[Raw])), strict=True))


def _unless_repeated(thoughts: tuple[Thinking, ...], blocks: Sequence[Block]) -> tuple[Thinking, ...]:
    """The reasoning beside the parts, unless the parts hold it too."""
    held = any(isinstance(block, Thinking) and block.text for block in blocks)
    return tuple(block for block in thoughts if not held or not block.text)


def _of_details(details: list[_Detail]) -> tuple[Thinking, ...]:
    text = "".join(detail.text or detail.summary or "" for detail in details)
    secret = "".join(detail.signature or detail.data or "" for detail in details)
    return (Thinking(text=text, seal=seal(secret)),) if text or secret else ()


def _blocks(part: _ClinePart, raw: bytes, origin: Origin) -> Sequence[Block]:
    """The blocks of one part, which are one, or none for what carries no words."""
    match part.type:
        case "reasoning":
            return (Thinking(text=part.text or "", seal=seal(part.signature)),)
        case "tool-call":
            return (ToolCall(call_id=part.toolCallId, name=part.toolName, arguments=plain(part.input)),)
        case "tool-result":
            text, media, error = _output(bytes(part.output))
            return (ToolResult(call_id=part.toolCallId, text=text, error=error, media=media),)
        case "tool_result" if not part.is_plain:  # in the words of Cline's SDK
            if parts := _parts_of(bytes(part.content)):
                blocks = [block for inner, inner_raw in parts for block in _blocks(inner, inner_raw, Origin.TOOL)]
                return (result_of(part.tool_use_id, blocks, error=bool(part.is_error)),)
            text, media = anthropic_result(bytes(part.content))
            return (ToolResult(call_id=part.tool_use_id, text=text, error=bool(part.is_error), media=media),)
        case "file" if part.path is not None:  # as Cline's SDK shows it to the model
            text = f'<file_content path="{part.path}">\n{text_or_json(part.content)}\n</file_content>'
            return (Text(text=text, origin=Origin.HARNESS),)
        case "image" | "file" | "media" if part.image or part.data:
            return (part.media(origin),)
        case kind if kind in BESIDE:
            return ()
        case _:
            return anthropic_content(b"[" + raw + b"]", lambda _: origin).blocks


def _output(raw: bytes) -> tuple[str, tuple[Media, ...], bool]:
    """Text and images of a result in the AI SDK's words, and whether it is an error."""
    try:
        value = decode(raw, _outputs)
        if isinstance(value, str):
            return value, (), False
        if isinstance(value, _ClineOutput):
            raw = bytes(value.value)
            if value.type != "content":
                return text_or_json(raw), (), value.type.startswith("error")
            value = decode(raw, list[_ClinePart])
    except DamagedJson:
        return text_or_json(raw), (), False
    media = tuple(part.media(Origin.TOOL) for part in value if part.type in _MEDIA and (part.image or part.data))
    return "\n".join(part.text for part in value if part.text), media, False
