"""What was on the screen of Cline or its forks (`tasks/<id>/ui_messages.json`), read as a conversation, line by line.

A line on the screen is not a message: calls are there as the user was asked about them, results only where they were shown. A
request to the model gives the usage of the answer that follows; the words that it repeats are left out. What a sliding window hid
is not told apart: the history beside this file has that.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
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

# What shows a call: the tool, of which `tool` names its own. A text that is no object of arguments is the `input`.
CALLS: Final = {
    "tool": "tool",
    "command": "execute_command",
    "followup": "ask_followup_question",
    "plan_mode_respond": "plan_mode_respond",
    "act_mode_respond": "act_mode_respond",
    "completion_result": "attempt_completion",
    "browser_action_launch": "browser_action",
    "browser_action": "browser_action",
    "use_mcp_server": "use_mcp_tool",
    "use_subagents": "use_subagents",
    "new_task": "new_task",
    "summarize_task": "summarize_task",
}
RESULTS: Final = frozenset(
    {"command_output", "mcp_server_response", "browser_action_result", "subtask_result", "codebase_search_result"}
)
HUMAN: Final = frozenset({"task", "user_feedback", "user_feedback_diff"})
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
    reading = _ScreenReading()
    yield from reading.transcript.each(decoded(array, _ScreenLine, "message"), reading.line)
    reading.end_results()
    yield from reading.transcript.end()


class _ScreenReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.asked = False
        self.usage: Usage | None = None  # of the answer that follows
        self.calls = 0
        self.unanswered = ""  # the newest call, while it has no result
        self.results: list[Block] = []  # of that call

    def line(self, element: Element, line: _ScreenLine) -> None:
        kind, text = (line.ask if line.type == "ask" else line.say) or "", line.text or ""
        if kind in RESULTS:
            self.results += _shown(line, Origin.TOOL)
            return
        self.end_results()
        self.transcript.here(element.line, element.size, line.ts)
        if kind in HUMAN or (not self.asked and line.type == "say" and kind == "text"):
            self.asked = True
            self.transcript.close()
            self.transcript.add(Role.USER, _shown(line, Origin.HUMAN))
        elif kind in ("text", "reasoning"):
            if text:
                self._answer(line, Thinking(text=text) if kind == "reasoning" else Text(text=text, origin=Origin.MODEL))
        elif kind in CALLS:
            self._call(line, CALLS[kind])
        elif kind == "api_req_started":
            self.transcript.close()
            self._request(text)
        elif kind == "condense_context" and line.contextCondense and line.contextCondense.summary:
            self.transcript.close()
            self.transcript.clear("condensation")
            self.transcript.text(Role.USER, line.contextCondense.summary)
        else:
            self.transcript.skip("line for the user alone, or unknown to this version")

    def _answer(self, line: _ScreenLine, block: Block) -> None:
        if self.transcript.is_open:
            self.transcript.amend(block)
            return
        model = (line.modelInfo and line.modelInfo.modelId) or ""
        self.transcript.open(Role.ASSISTANT, (block,), model=model, usage=self.usage)
        self.usage = None

    def _call(self, line: _ScreenLine, name: str) -> None:
        text = line.text or ""
        for flag in FLAGS:
            text = text.rstrip().removesuffix(flag)
        if not text:
            return  # an empty question is only a button
        try:
            fields = decode(text.encode(), dict[str, Raw])
            name = msgspec.json.decode(fields["tool"], type=str) if name == "tool" and "tool" in fields else name
        except (DamagedJson, msgspec.DecodeError):
            text = plain(msgspec.json.encode({"input": text}))
        self.calls += 1
        self.unanswered = f"call-{self.calls}"
        self._answer(line, ToolCall(call_id=self.unanswered, name=name, arguments=text))

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

    def end_results(self) -> None:
        """The result of the newest call is whole; one that no call waits for is a text."""
        blocks, self.results = self.results, []
        if blocks:
            self.transcript.close()
            role = Role.TOOL if self.unanswered else Role.USER
            self.transcript.add(role, (result_of(self.unanswered, blocks),) if self.unanswered else blocks)
            self.unanswered = ""


def _shown(line: _ScreenLine, origin: Origin) -> tuple[Block, ...]:
    text, images = line.text, line.images or []
    if line.say == "browser_action_result":
        with suppress(DamagedJson):
            seen = decode((text or "").encode(), _ScreenSeen)
            text, images = seen.logs, [seen.screenshot] if seen.screenshot else []
    return *texts((text, origin)), *(from_url(url, "", origin) for url in images)
