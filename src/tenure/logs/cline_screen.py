"""What was on the screen of Cline or its forks (`tasks/<id>/ui_messages.json`), read as a conversation, line by line.

A line on the screen is not a message: calls are there as the user was asked about them, results only where they were shown. A
request to the model gives the usage of the answer that follows; the words that it repeats are left out.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Origin, Role, Text, Thinking, ToolCall, Usage
from tenure.logs.json_files import Element, decoded
from tenure.logs.parts import from_url, plain, result_of, texts
from tenure.logs.reader import Event
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.shape import keys
from tenure.logs.transcript import TranscriptBuilder

# What shows a call: the tool, and the argument that the text is unless it is an object of arguments.
CALLS: Final = {
    "tool": ("tool", "path"),
    "command": ("execute_command", "command"),
    "followup": ("ask_followup_question", "question"),
    "plan_mode_respond": ("plan_mode_respond", "response"),
    "act_mode_respond": ("act_mode_respond", "response"),
    "completion_result": ("attempt_completion", "result"),
    "browser_action_launch": ("browser_action", "url"),
    "browser_action": ("browser_action", "action"),
    "use_mcp_server": ("use_mcp_tool", "arguments"),
    "use_subagents": ("use_subagents", "prompts"),
    "new_task": ("new_task", "context"),
    "condense": ("condense", "context"),
    "summarize_task": ("summarize_task", "context"),
    "report_bug": ("report_bug", "description"),
}
RESULTS: Final = frozenset(
    {"command_output", "mcp_server_response", "browser_action_result", "subtask_result", "codebase_search_result"}
)
HUMAN: Final = frozenset({"task", "user_feedback", "user_feedback_diff"})

# For the user alone.
BESIDE: Final = frozenset(
    "api_req_deleted api_req_failed api_req_finished api_req_rate_limited api_req_retried api_req_retry_delayed "
    "auto_approval_max_req_reached browser_session_status checkpoint_created checkpoint_saved clineignore_error "
    "command_permission_denied condense_context_error conditional_rules_applied deleted_api_reqs diff_error error error_retry "
    "generate_explanation hook_output_stream hook_status image info load_mcp_documentation mcp_notification "
    "mcp_server_request_started mistake_limit_reached resume_completed_task resume_task rooignore_error "
    "shell_integration_warning shell_integration_warning_with_suggestion subagent subagent_usage task_progress "
    "user_edit_todos".split()
)
FLAGS: Final = ("REQ_APP", "HAS_CHANGES")  # what Cline adds at the end of a text for its own use

_KIND: Final = re.compile(rb'"type"\s*:\s*"(say|ask)"')


class _ScreenModel(Struct, frozen=True, gc=False):
    modelId: str | None = None  # noqa: N815 - the log's own names, here and below


class _Condensed(Struct, frozen=True, gc=False):
    summary: str | None = None


class _ScreenLine(Struct, frozen=True, gc=False):
    type: str = ""
    ts: float | str | None = None
    say: str | None = None
    ask: str | None = None
    text: str | None = None
    images: list[str] | None = None
    conversationHistoryIndex: int | None = None  # noqa: N815
    conversationHistoryDeletedRange: list[int] | None = None  # noqa: N815
    modelInfo: _ScreenModel | None = None  # noqa: N815
    contextCondense: _Condensed | None = None  # noqa: N815


class _ScreenRequest(Struct, frozen=True, gc=False):
    """What stands in the text of `api_req_started`."""

    request: str | None = None
    tokensIn: int | None = None  # noqa: N815
    tokensOut: int | None = None  # noqa: N815
    cacheWrites: int | None = None  # noqa: N815
    cacheReads: int | None = None  # noqa: N815
    apiProtocol: str | None = None  # noqa: N815 - since it is there, tokensIn may hold the cached tokens too

    @property
    def usage(self) -> Usage | None:
        if self.tokensIn is None and self.tokensOut is None:
            return None
        write, read, tokens = self.cacheWrites or 0, self.cacheReads or 0, self.tokensIn or 0
        uncached = tokens - write - read if self.apiProtocol is not None and tokens >= write + read else tokens
        return Usage(uncached=uncached, cache_write=write, cache_read=read, output=self.tokensOut or 0)


class _ScreenSeen(Struct, frozen=True, gc=False):
    screenshot: str | None = None
    logs: str | None = None


def is_screen(head: bytes) -> bool:
    """Whether an array starts with a line of a screen."""
    start = head.find(b"[")
    first = set(keys(head[start + 1 :])) if start >= 0 else set[str]()
    return {"ts", "type"} <= first and bool({"say", "ask"} & first) and _KIND.search(head) is not None


def read_screen(array: Iterable[Element]) -> Iterator[Event]:
    """The drafts of a screen's lines, in order."""
    return _ScreenReading().events(array)


class _ScreenReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.asked = False
        self.usage: Usage | None = None  # of the answer that follows
        self.calls = 0
        self.unanswered = ""  # the newest call, while it has no result
        self.results: list[Block] = []  # of that call
        self.placed: list[tuple[int, int]] = []  # index in the history, number of the draft

    def events(self, array: Iterable[Element]) -> Iterator[Event]:
        yield from self.transcript.each(decoded(array, _ScreenLine, "message"), self._line)
        self._end_answer(-1)
        yield from self.transcript.end()

    def _line(self, element: Element, line: _ScreenLine) -> None:
        kind, text = (line.ask if line.type == "ask" else line.say) or "", line.text or ""
        index = -1 if line.conversationHistoryIndex is None else line.conversationHistoryIndex
        if kind not in RESULTS:
            self._end_results(index)
        self.transcript.here(element.line, element.size, line.ts)
        opens = not self.asked and line.type == "say" and kind == "text"
        if kind in HUMAN or opens:
            self.asked = True
            self._end_answer(index)
            self._add(
                index, Role.USER, (*texts((text, Origin.HUMAN)), *(from_url(url, "", Origin.HUMAN) for url in line.images or ()))
            )
        elif kind in ("text", "reasoning"):
            if text:
                self._answer(line, index, Thinking(text=text) if kind == "reasoning" else Text(text=text, origin=Origin.MODEL))
        elif kind in CALLS:
            self._call(line, index, kind, text)
        elif kind in RESULTS:
            self.results += _shown(kind, text, line.images or [])
        elif kind == "api_req_started":
            self._end_answer(index)
            self._request(text)
        elif kind == "condense_context":
            self._end_answer(index)
            if line.contextCondense and line.contextCondense.summary:
                self.transcript.clear("condensation")
                self._add(index, Role.USER, (Text(text=line.contextCondense.summary, origin=Origin.HARNESS),))
        elif kind not in BESIDE:
            unknown = f"line type unknown to this version: {kind!r}"
            hidden = "sliding window truncation: what it hid is not in this file"
            self.transcript.skip(*((hidden, 0) if kind == "sliding_window_truncation" else (unknown, element.size)))
        self._drop_deleted(line)

    def _add(self, index: int, role: Role, blocks: Iterable[Block]) -> None:
        if (number := self.transcript.add(role, blocks)) >= 0:
            self.placed.append((index + 1, number))

    def _answer(self, line: _ScreenLine, index: int, block: Block) -> None:
        if self.transcript.is_open:
            self.transcript.amend(block)
            return
        model = (line.modelInfo and line.modelInfo.modelId) or ""
        self.placed.append((index + 1, self.transcript.open(Role.ASSISTANT, (block,), model=model, usage=self.usage)))
        self.usage = None

    def _call(self, line: _ScreenLine, index: int, kind: str, text: str) -> None:
        for flag in FLAGS:
            text = text.rstrip().removesuffix(flag)
        if not text:
            return  # an empty question is only a button
        name, argument = CALLS[kind]
        try:
            fields = decode(text.encode(), dict[str, Raw])
            name = msgspec.json.decode(fields["tool"], type=str) if kind == "tool" and "tool" in fields else name
            arguments = text
        except (DamagedJson, msgspec.DecodeError):
            arguments = plain(msgspec.json.encode({argument: text}))
        self.calls += 1
        self.unanswered = f"call-{self.calls}"
        self._answer(line, index, ToolCall(call_id=self.unanswered, name=name, arguments=arguments))

    def _request(self, text: str) -> None:
        try:
            request = decode((text or "{}").encode(), _ScreenRequest)
        except DamagedJson:
            self.transcript.skip("request whose text is damaged: its figures are left out")
            return
        self.usage = request.usage
        if request.request:
            reason = "request to the model: what it repeats of the screen and the environment is not read"
            self.transcript.skip(reason, len(request.request.encode()))

    def _end_results(self, index: int) -> None:
        """The result of the newest call is whole; one that no call waits for is a text."""
        blocks, self.results = self.results, []
        if blocks:
            self._end_answer(index)
            result = (result_of(self.unanswered, blocks),)
            self._add(index, Role.TOOL if self.unanswered else Role.USER, result if self.unanswered else blocks)
            self.unanswered = ""

    def _end_answer(self, index: int) -> None:
        self._end_results(index)
        self.transcript.close()

    def _drop_deleted(self, line: _ScreenLine) -> None:
        """Say what a deletion in the history took; the first line after it names it."""
        match line.conversationHistoryDeletedRange:
            case [first, last]:
                self.transcript.close()
                gone = [number for index, number in self.placed if first <= index <= last]
                self.placed = [each for each in self.placed if not first <= each[0] <= last]
                self.transcript.drop("sliding window truncation", gone)
            case _:
                return


def _shown(kind: str, text: str, images: list[str]) -> list[Block]:
    if kind == "browser_action_result":
        try:
            seen = decode(text.encode(), _ScreenSeen)
            text, images = seen.logs or "", [seen.screenshot] if seen.screenshot else []
        except DamagedJson:
            pass
    return [*texts((text, Origin.TOOL)), *(from_url(url, "", Origin.TOOL) for url in images)]
