"""Tasks of Cline, Roo Code and Kilo Code (`api_conversation_history.json`), and sessions of Cline's SDK (`*.messages.json`).

The history is a list of Anthropic-like messages, in an object with its version in newer tools. Calls were XML in the model's
text, answered by texts in the user's role, and the model saw them so; newer versions use the provider's calls, though some
answer even those by texts, which are then read as the results that they are. Roo Code marks what a summary or a sliding window
hides instead of taking it out. What Cline's own sliding window took is not in this file but in the task's `ui_messages.json`;
that file is read too, for those who have only it, as far as a screen shows a conversation.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import NEUTRAL, Block, Draft, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.logs.cline.message import Message, Read, read_message, thought
from tenure.logs.cline.origin import attributed, is_result
from tenure.logs.cline.screen import is_screen, shown
from tenure.logs.document import Element, decoded, document, elements
from tenure.logs.mend import Damaged, cut
from tenure.logs.moment import utc
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.shape import keys, opening
from tenure.logs.tally import Tally
from tenure.logs.window import Window

NAME: Final = "cline"
ALLOWED: Final = "a task of Cline or its forks: an array of messages, or an object with `version` and `messages`"

ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "system": Role.SYSTEM}

# How Cline itself continues after a summary, and how many of the newest messages stay beside the first two.
CONTINUED: Final = {
    "This session is being continued from a previous conversation that ran out of context.": 0,
    "The user has accepted the condensed conversation summary you generated.": 2,
}
_FIRST: Final = 2  # messages that no compaction of Cline's takes

EMPTY: Final = "message without content"
UNKNOWN: Final = "message of a role unknown to this version: {!r}"
GONE: Final = "condensation: what it stands for is no longer in the file"

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


class _Task(Struct, frozen=True, gc=False):
    messages: list[Raw]
    agent: str | None = None
    sessionId: str | None = None  # noqa: N815 - the log's own name
    system_prompt: str | None = None


_array: Final = msgspec.json.Decoder(list[Raw])
_task: Final = msgspec.json.Decoder(_Task)
_message: Final = msgspec.json.Decoder(Message)


class Cline:
    """Reads the histories of Cline, Roo Code and Kilo Code, and what was on their screens."""

    name = NAME

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
        array = document((raw,), _array, ALLOWED)
        found = elements(array.value, array.source, array.faithful)
        yield from shown(found) if is_screen(raw[: 64 * 2**10]) else _Reading().events(found)
        yield from array.skipped


def _is_history(head: bytes) -> bool:
    first = set(keys(head[head.index(b"[") + 1 :]))
    if {"role", "content"} <= first and {"ts", "modelInfo", "metrics", "condenseId", "condenseParent"} & first:
        return True
    return _ROLE.search(head) is not None and any(mark.search(head) for mark in (_WORDS, _FIELDS))


def _of_object(raw: bytes) -> Iterator[Event]:
    task = document((raw,), _task, ALLOWED)
    value, reading = task.value, _Reading()
    if value.agent in ("subagent", "teammate"):
        reason = f"session of a sub-agent: what led to it is in its parent {value.sessionId!r}"
        yield Skipped(line=1, bytes=0, reason=reason[:200])
    if value.system_prompt:
        reading.window.add()
        yield Draft(role=Role.SYSTEM, blocks=(Text(text=value.system_prompt, origin=Origin.HARNESS),), line=1)
    yield from reading.events(elements(value.messages, task.source, task.faithful))
    yield from task.skipped


class _Reading:
    """Mutable while a history is read."""

    def __init__(self) -> None:
        self.window = Window()
        self._tally = Tally()
        self._hidden: dict[str, list[int]] = {}  # by the id of what hides them: drafts
        self._first: list[int] = []  # what Cline's own compactions keep
        self._swept = 0  # drafts that such a compaction has seen
        self._thoughts: list[tuple[Element, Thinking]] = []  # reasoning whose answer has not come yet
        self._open: list[str] = []  # the calls of the message before

    def events(self, array: Iterable[Element]) -> Iterator[Event]:
        for item in decoded(array, _message, "message"):
            if isinstance(item, Skipped):
                yield item
                continue
            element, message = item
            try:
                read = _read(element, message)
            except Damaged as damage:
                reason = f"damaged message: found {damage.found}"
                yield Skipped(line=element.line, bytes=len(element.faithful), reason=reason)
                continue
            if message.type == "reasoning" and not message.role:
                self._thoughts.append((element, thought(message)))
            elif message.role not in ROLES:
                self._tally.add(UNKNOWN.format(message.role), element.line, len(element.faithful))
            else:
                yield from self._draft(element, message, read)
        yield from self._left_thoughts()
        yield from self._tally.skipped()

    def _draft(self, element: Element, message: Message, read: Read) -> Iterator[Event]:
        role = ROLES[message.role]
        if role is Role.ASSISTANT and self._thoughts:
            read = Read((*(block for _, block in self._thoughts), *read.blocks))
            self._thoughts = []
        yield from self._left_thoughts()
        if role is not Role.ASSISTANT:
            read = self._paired(replace(read, blocks=_by(message, read.blocks)))
        self._open = [block.call_id for block in read.blocks if isinstance(block, ToolCall)]
        if not read.blocks:
            self._tally.add(EMPTY, element.line, len(element.faithful))
            return
        if (rewritten := self._rewritten(element, message, read)) is not None:
            yield rewritten
        self._place(message)
        yield Draft(
            role=role,
            blocks=read.blocks,
            dialect=read.dialect if read.payload else NEUTRAL,
            payload=read.payload,
            at=utc(message.ts),
            line=element.line,
            model=message.model if role is Role.ASSISTANT else "",
            usage=message.usage if role is Role.ASSISTANT else None,
        )

    def _paired(self, read: Read) -> Read:
        """Texts that answer the provider's calls as their results, where there is one for each call."""
        answered = {block.call_id for block in read.blocks if isinstance(block, ToolResult)}
        calls = [call_id for call_id in self._open if call_id not in answered]
        if not calls or len(calls) != sum(is_result(block) for block in read.blocks):
            return read
        left = iter(calls)
        return Read(tuple(ToolResult(call_id=next(left), text=each.text) if is_result(each) else each for each in read.blocks))

    def _left_thoughts(self) -> Iterator[Draft]:
        """Reasoning that no answer followed."""
        for element, block in self._thoughts:
            self.window.add()
            yield Draft(role=Role.ASSISTANT, blocks=(block,), line=element.line)
        self._thoughts = []

    def _place(self, message: Message) -> None:
        number = self.window.add()
        if len(self._first) < _FIRST:
            self._first.append(number)
        for parent in {message.condenseParent, message.truncationParent} - {None, ""}:
            self._hidden.setdefault(parent or "", []).append(number)

    def _rewritten(self, element: Element, message: Message, read: Read) -> Rewritten | None:
        """What left the window where this message stands."""
        reason, left = "", None
        if message.isSummary and message.condenseId and message.role == "user":  # a fresh start: nothing before it stays
            reason, left = "condensation", (self.window.clear(), ())
        elif message.isSummary:
            reason, left = "condensation", self.window.drop(self._hidden.pop(message.condenseId or "", ()))
            if left is None:
                self._tally.add(GONE, element.line, 0)
        elif message.isTruncationMarker:
            reason, left = "sliding window truncation", self.window.drop(self._hidden.pop(message.truncationId or "", ()))
        elif message.role == "user" and (newest := _newest_kept(read)) is not None:
            reason, left = "compaction", self.window.drop(self._between(newest))
        return left and Rewritten(reason=reason, line=element.line, at=utc(message.ts), drop_before=left[0], kept=left[1])

    def _between(self, newest: int) -> list[int]:
        """What a compaction of Cline's takes: all but the first and the newest."""
        end = max(0, self.window.count - newest)
        numbers = [number for number in range(self._swept, end) if number not in self._first]
        self._swept = max(self._swept, end)
        return numbers


def _read(element: Element, message: Message) -> Read:
    raw = bytes(message.content)
    return read_message(message, cut(raw, element.source, element.faithful)) if raw else Read(())


def _by(message: Message, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks of a message that is not the model's, with who wrote each."""
    if message.of_harness or message.role == "system":
        return tuple(replace(block, origin=Origin.HARNESS) if isinstance(block, Text) else block for block in blocks)
    return tuple(attributed(blocks))


def _newest_kept(read: Read) -> int | None:
    """How many of the newest messages stay when this one continues after a compaction; None when it does not."""
    for block in read.blocks:
        if isinstance(block, Text | ToolResult):
            said = block.text[:400].lstrip()
            for words, newest in CONTINUED.items():
                if said.startswith(words):
                    return newest
    return None
