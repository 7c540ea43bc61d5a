"""What was on the screen of Cline or its forks (`tasks/<id>/ui_messages.json`), read as a conversation.

A line on the screen is not a message: calls are there as the user was asked about them, results only where they were shown. But
each request to the model may hold all that was sent with it, and then that is read and not the lines that led to it. Several
results in one request count as the answer to the last call. The request's own figures are the usage of the answer that follows.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Draft, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.cline.origin import written_by
from tenure.logs.document import Element, decoded
from tenure.logs.media import from_url
from tenure.logs.mend import Damaged, decode
from tenure.logs.moment import utc
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.shape import keys
from tenure.logs.tally import Tally
from tenure.logs.window import Window

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

SHOWN_RESULTS: Final = frozenset(
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
LISTS: Final = frozenset({"listFilesTopLevel", "listFilesRecursive", "listCodeDefinitionNames", "searchFiles", "webSearch"})

TRUNCATED: Final = "sliding window truncation: what it hid is not in this file"
DAMAGED: Final = "request whose text is damaged: its words and figures are left out"

_ENVIRONMENT: Final = "<environment_details>"
_LOADING: Final = "Loading..."
_KIND: Final = re.compile(rb'"type"\s*:\s*"(say|ask)"')


class _Model(Struct, frozen=True, gc=False):
    modelId: str | None = None  # noqa: N815 - the log's own names, here and below


class _Condensed(Struct, frozen=True, gc=False):
    summary: str | None = None


class _Line(Struct, frozen=True, gc=False):
    type: str = ""
    ts: float | str | None = None
    say: str | None = None
    ask: str | None = None
    text: str | None = None
    images: list[str] | None = None
    conversationHistoryIndex: int | None = None  # noqa: N815
    conversationHistoryDeletedRange: list[int] | None = None  # noqa: N815
    modelInfo: _Model | None = None  # noqa: N815
    contextCondense: _Condensed | None = None  # noqa: N815

    @property
    def kind(self) -> str:
        return (self.ask if self.type == "ask" else self.say) or ""


class _Request(Struct, frozen=True, gc=False):
    """What stands in the text of `api_req_started`."""

    request: str | None = None
    tokensIn: int | None = None  # noqa: N815
    tokensOut: int | None = None  # noqa: N815
    cacheWrites: int | None = None  # noqa: N815
    cacheReads: int | None = None  # noqa: N815
    apiProtocol: str | None = None  # noqa: N815 - since it is there, tokensIn may hold the cached tokens too

    @property
    def sent(self) -> str:
        """What went to the model, without the sign that Cline was still gathering it."""
        return (self.request or "").rstrip().removesuffix(_LOADING).rstrip()

    @property
    def usage(self) -> Usage | None:
        if self.tokensIn is None and self.tokensOut is None:
            return None
        write, read, tokens = self.cacheWrites or 0, self.cacheReads or 0, self.tokensIn or 0
        whole = self.apiProtocol is not None and tokens >= write + read
        return Usage(
            uncached=tokens - write - read if whole else tokens, cache_write=write, cache_read=read, output=self.tokensOut or 0
        )


class _Tool(Struct, frozen=True, gc=False):
    tool: str = ""
    content: str | None = None


class _Seen(Struct, frozen=True, gc=False):
    """What a browser showed."""

    screenshot: str | None = None
    logs: str | None = None


_line: Final = msgspec.json.Decoder(_Line)
_request: Final = msgspec.json.Decoder(_Request)
_tool: Final = msgspec.json.Decoder(_Tool)
_seen_decoder: Final = msgspec.json.Decoder(_Seen)
_object: Final = msgspec.json.Decoder(dict[str, Raw])


def is_screen(head: bytes) -> bool:
    """Whether an array starts with a line of a screen."""
    start = head.find(b"[")
    first = set(keys(head[start + 1 :])) if start >= 0 else set[str]()
    return {"ts", "type"} <= first and bool({"say", "ask"} & first) and _KIND.search(head) is not None


def shown(array: Iterable[Element]) -> Iterator[Event]:
    """The drafts of a screen's lines, in order."""
    lines = list[tuple[Element, _Line]]()
    for item in decoded(array, _line, "message"):
        if isinstance(item, Skipped):
            yield item
        else:
            lines.append(item)
    yield from _Reading(lines).events()


class _Reading:
    """Mutable while a screen is read."""

    def __init__(self, lines: list[tuple[Element, _Line]]) -> None:
        self._lines = lines
        self._tally = Tally()
        self._window = Window()
        self._requests = [self._read(*each) if each[1].kind == "api_req_started" else None for each in lines]
        self._by_request = any(request is not None and request.sent for request in self._requests)
        self._blocks: list[Block] = []  # of the answer that is being shown
        self._start: tuple[Element, _Line] | None = None
        self._usage: Usage | None = None
        self._results: dict[str, list[Block]] = {}  # by the call that each answers
        self._answered: set[str] = set()
        self._called = 0  # calls so far
        self._last = ""  # the call that the next result answers
        self._images: list[Media] = []
        self._placed: list[tuple[int, int]] = []  # index in the history, number of the draft
        self._swept = 0  # how many of them a deletion has seen
        self._asked = False

    def events(self) -> Iterator[Event]:
        for (element, line), request in zip(self._lines, self._requests, strict=True):
            if request is not None:
                yield from self._request(element, line, request)
            else:
                yield from self._take(element, line)
            yield from self._deleted(element, line)
        yield from self._answer()
        yield from self._tally.skipped()

    def _read(self, element: Element, line: _Line) -> _Request:
        try:
            return decode((line.text or "{}").encode(), _request)
        except Damaged:
            self._tally.add(DAMAGED, element.line, len(element.faithful))
            return _Request()

    def _take(self, element: Element, line: _Line) -> Iterator[Event]:
        kind, text = line.kind, line.text or ""
        if not self._asked and line.type == "say" and kind in ("task", "text"):
            self._asked = True
            yield from self._human(element, line)
        elif kind in HUMAN:
            yield from self._human(element, line)
        elif kind in ("text", "reasoning"):
            if text:
                self._say(element, line, Thinking(text=text) if kind == "reasoning" else Text(text=text, origin=Origin.MODEL))
        elif kind in CALLS:
            self._call(element, line)
        elif kind in SHOWN_RESULTS:
            self._result(element, line)
        elif kind == "condense_context":
            yield from self._condensed(element, line)
        elif kind == "sliding_window_truncation":
            self._tally.add(TRUNCATED, element.line, 0)
        elif kind not in BESIDE:
            self._tally.add(f"line type unknown to this version: {kind!r}", element.line, len(element.faithful))

    def _human(self, element: Element, line: _Line) -> Iterator[Draft]:
        images = [from_url(url, "", Origin.HUMAN) for url in line.images or ()]
        if self._by_request:  # the next request holds the words, and only they
            self._images.extend(images)
            return
        yield from self._answer()
        blocks = (*((Text(text=line.text, origin=Origin.HUMAN),) if line.text else ()), *images)
        if blocks:
            yield self._draft(Draft(role=Role.USER, blocks=blocks, at=utc(line.ts), line=element.line), line)

    def _say(self, element: Element, line: _Line, block: Block) -> None:
        self._start = self._start or (element, line)
        self._blocks.append(block)

    def _call(self, element: Element, line: _Line) -> None:
        text = (line.text or "").rstrip()
        for flag in FLAGS:
            text = text.removesuffix(flag)
        if not text:
            return  # an empty question is only a button
        name, argument = CALLS[line.kind]
        self._called += 1
        self._last = f"call-{self._called}"
        tool = _of_tool(text) if line.kind == "tool" else _Tool()
        arguments = text if _is_object(text) else msgspec.json.encode({argument: text}).decode()
        if tool.tool in LISTS and tool.content is not None and not self._by_request:  # what was found stands in the call
            arguments = _without_content(text)
            self._results.setdefault(self._last, []).append(Text(text=tool.content, origin=Origin.TOOL))
        self._say(element, line, ToolCall(call_id=self._last, name=tool.tool or name, arguments=arguments))

    def _result(self, element: Element, line: _Line) -> None:
        if self._by_request:
            return
        text, images = (line.text or "", line.images or []) if line.kind != "browser_action_result" else _seen(line.text or "")
        found = [from_url(url, "", Origin.TOOL) for url in images]
        if text or found:
            self._start = self._start or (element, line)
            self._results.setdefault(self._last, []).extend((Text(text=text, origin=Origin.TOOL), *found))

    def _request(self, element: Element, line: _Line, request: _Request) -> Iterator[Event]:
        yield from self._answer()
        self._usage = request.usage
        if not request.sent:
            return
        at = request.sent.rfind(_ENVIRONMENT)
        said, around = (request.sent[:at].rstrip(), request.sent[at:]) if at >= 0 else (request.sent, "")
        blocks = list[Block](self._images)
        self._images = []
        origin = written_by(said) if said else Origin.HARNESS
        if self._last and origin is Origin.TOOL:
            result = ToolResult(call_id=self._last, text=said)
            yield self._draft(Draft(role=Role.TOOL, blocks=(result,), at=utc(line.ts), line=element.line), line)
        elif said:
            blocks.insert(0, Text(text=said, origin=origin))
        self._last = ""
        if around:
            blocks.append(Text(text=around, origin=Origin.HARNESS))
        if blocks:
            yield self._draft(Draft(role=Role.USER, blocks=tuple(blocks), at=utc(line.ts), line=element.line), line)

    def _answer(self) -> Iterator[Draft]:
        """The answer that was shown, and the results that were."""
        if self._start is not None:
            element, line = self._start
            at = utc(line.ts)
            if self._blocks:
                model = (line.modelInfo and line.modelInfo.modelId) or ""
                blocks = tuple(self._blocks)
                answer = Draft(role=Role.ASSISTANT, blocks=blocks, at=at, line=element.line, model=model, usage=self._usage)
                yield self._draft(answer, line)
                self._usage = None
            for call_id, found in self._results.items():
                role, blocks = self._returned(call_id, found)
                yield self._draft(Draft(role=role, blocks=blocks, at=at, line=element.line), line)
        self._blocks, self._start, self._results = [], None, {}

    def _returned(self, call_id: str, found: list[Block]) -> tuple[Role, tuple[Block, ...]]:
        """The result of a call; more that came later is only a text."""
        if not call_id or call_id in self._answered:
            return Role.USER, tuple(found)
        self._answered.add(call_id)
        text = "\n".join(block.text for block in found if isinstance(block, Text) and block.text)
        return Role.TOOL, (
            ToolResult(call_id=call_id, text=text, media=tuple(block for block in found if isinstance(block, Media))),
        )

    def _condensed(self, element: Element, line: _Line) -> Iterator[Event]:
        summary = line.contextCondense and line.contextCondense.summary
        if not summary:
            return
        yield from self._answer()
        yield Rewritten(reason="condensation", line=element.line, at=utc(line.ts), drop_before=self._window.clear())
        block = Text(text=summary, origin=Origin.HARNESS)
        yield self._draft(Draft(role=Role.USER, blocks=(block,), at=utc(line.ts), line=element.line), line)

    def _deleted(self, element: Element, line: _Line) -> Iterator[Event]:
        """A deletion in the history, told by the first line after it; each reaches further than the one before."""
        match line.conversationHistoryDeletedRange:
            case [first, last]:
                start, self._swept = self._swept, max(self._swept, self._upto(last))
                gone = [number for index, number in self._placed[start : self._swept] if first <= index <= last]
                if gone:
                    yield from self._answer()
                if (left := self._window.drop(gone)) is not None:
                    yield Rewritten(
                        reason="sliding window truncation", line=element.line, at=utc(line.ts), drop_before=left[0], kept=left[1]
                    )
            case _:
                return

    def _upto(self, last: int) -> int:
        end = self._swept
        while end < len(self._placed) and self._placed[end][0] <= last:
            end += 1
        return end

    def _draft(self, draft: Draft, line: _Line) -> Draft:
        index = -1 if line.conversationHistoryIndex is None else line.conversationHistoryIndex
        self._placed.append((index + 1, self._window.add()))
        return draft


def _of_tool(text: str) -> _Tool:
    try:
        return decode(text.encode(), _tool)
    except Damaged:
        return _Tool()


def _seen(text: str) -> tuple[str, list[str]]:
    """Words and pictures of what a browser showed."""
    try:
        found = decode(text.encode(), _seen_decoder)
    except Damaged:
        return text, []
    return found.logs or "", [found.screenshot] if found.screenshot else []


def _is_object(text: str) -> bool:
    try:
        decode(text.encode(), _object)
    except Damaged:
        return False
    return True


def _without_content(text: str) -> str:
    fields = decode(text.encode(), _object)
    return msgspec.json.encode({key: value for key, value in fields.items() if key != "content"}).decode("utf-8", "replace")
