"""OpenHands' events, version 0, turned into what its `ConversationMemory` sends.

A call carries the whole response that made it, and so do its result and the other calls of the same response. Before there were
calls (to 0.12), actions were fences in the model's text, and observations went back as text.
https://github.com/All-Hands-AI/OpenHands/blob/main/openhands/memory/conversation_memory.py
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, ToolResult, Usage
from tenure.logs.document import Element
from tenure.logs.mend import Damaged
from tenure.logs.moment import utc
from tenure.logs.openhands.event import OBSERVED, WRITTEN, Args, EventV0, Extras, Made, called, observed, written
from tenure.logs.openhands.recall import Recall
from tenure.logs.openhands.reply import images, reasoned, spoken
from tenure.logs.openhands.story import EventId, Story
from tenure.logs.reader import Event, Skipped
from tenure.logs.salvage import salvage

# What moves the controller or the screen, and says nothing to the model.
SILENT_ACTIONS: Final = frozenset(
    "null recall start pause resume stop change_agent_state condensation_request loop_recovery push send_pr".split()
)
SILENT_OBSERVATIONS: Final = frozenset("null agent_state_changed loop_detection success llm_response".split())
SHOWN: Final = frozenset(
    "run run_ipython read write edit browse delegate think mcp download task_tracking error user_rejected chat message".split()
)
FAILED: Final = ("error", "user_rejected")
SAID: Final = ("message", "finish")  # actions that are nothing but words

RUN_BY_USER: Final = "User executed the command:\n{}"
SEEN_BY_USER: Final = "\nObserved result of command executed by user:\n{}"
READ_BY_USER: Final = "User requested to read file: {}"
CUT: Final = "\n[... Observation truncated due to length ...]\n"

BY_ENVIRONMENT: Final = "action of the environment: not shown to the model"
NOT_RECALLED: Final = "recalled context: not sent where prompt extensions are off, as they are in this benchmark"
CUT_OUT: Final = "middle of a long observation: cut out before it was sent"
SCREENSHOT: Final = "screenshot of a browser: sent only where visual browsing was on"

_args: Final = msgspec.json.Decoder(Args)
_extras: Final = msgspec.json.Decoder(Extras)
_recall: Final = msgspec.json.Decoder(Recall)


class Events:
    """Turns the events of one conversation into drafts, one after another."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._with_tools = False  # whether the system prompt says that there are calls
        self._wrote = False  # whether the newest action was text
        self._open: dict[
            str, tuple[int, set[str]]
        ] = {}  # of each response: its draft, and the calls whose actions are still to come
        self._call_of: dict[EventId, str] = {}  # calls that had to be made up, by their action
        self._recalled: set[str] = set()
        self._spent = Usage()

    def take(self, element: Element, event: EventV0) -> Iterator[Event]:
        """What the event shows to the model."""
        try:
            if event.action is not None and event.action not in SILENT_ACTIONS:
                yield from self._acted(element, event)
            elif event.action is None and event.observation not in SILENT_OBSERVATIONS:
                yield from self._observed(element, event)
        except Damaged as damage:
            yield Skipped(line=element.line, bytes=len(element.faithful), reason=f"damaged event: found {damage.found}")

    def _acted(self, element: Element, event: EventV0) -> Iterator[Event]:
        read = salvage(bytes(event.args), _args)
        args: Args = read.value
        yield from _partly(element, read.left_out)
        match event.action:
            case "condensation":
                yield from self._condensed(element, event, args)
            case "system":
                self._with_tools = bool(args.tools)
                yield from self._place(element, event, Role.SYSTEM, spoken(args.content, Origin.HARNESS))
            case _ if event.source == "user":
                yield from self._by_human(element, event, args)
            case kind if event.source == "environment" and kind not in SAID:
                self.story.tally.add(BY_ENVIRONMENT, element.line, len(element.faithful))
            case _:
                yield from self._by_model(element, event, args)

    def _by_human(self, element: Element, event: EventV0, args: Args) -> Iterator[Event]:
        self._wrote = False
        match event.action:
            case "message":
                blocks = (*spoken(args.content, Origin.HUMAN), *images(args.image_urls, Origin.HUMAN))
            case "run":
                blocks = spoken(RUN_BY_USER.format(args.command or ""), Origin.HUMAN)
            case "read":
                blocks = spoken(READ_BY_USER.format(args.path), Origin.HARNESS)
            case "finish":
                blocks = spoken(args.thinks, Origin.HUMAN)
            case kind:
                self.story.tally.add(f"user's action unknown to this version: {kind!r}", element.line, len(element.faithful))
                return
        yield from self._place(element, event, Role.USER, blocks)

    def _by_model(self, element: Element, event: EventV0, args: Args) -> Iterator[Event]:
        usage = self._usage(event)
        self._wrote = False
        if event.tool_call_metadata is not None:
            yield from self._called(element, event, event.tool_call_metadata, args, usage)
        elif event.action in SAID or (event.action in WRITTEN and not self._with_tools):
            self._wrote = event.action in WRITTEN
            blocks = (*args.reasons, *spoken(written(event, args), Origin.MODEL), *images(args.image_urls, Origin.MODEL))
            yield from self._place(element, event, Role.ASSISTANT, blocks, usage)
        else:
            call_id = f"call-{self.story.window.count if event.id is None else event.id}"
            if event.id is not None:
                self._call_of[event.id] = call_id
            blocks = (*args.reasons, *spoken(args.thinks, Origin.MODEL), called(event, args, call_id, None))
            yield from self._place(element, event, Role.ASSISTANT, blocks, usage)

    def _called(self, element: Element, event: EventV0, made: Made, args: Args, usage: Usage | None) -> Iterator[Event]:
        """The response that made the call, once for all its calls."""
        response, call_id = event.response, made.tool_call_id or f"call-{event.id}"
        draft, open_ = self._open.get(response.id or "", (0, set[str]()))
        if call_id in open_:
            open_.discard(call_id)
            self.story.stands_for(draft, event.id)
            return
        reply = response.reply
        calls = tuple(call.block(call_id) for call in reply.tool_calls or ())
        if not any(call.call_id == call_id for call in calls):
            calls = (*calls, called(event, args, call_id, made.function_name))
        words = spoken(reply.content, Origin.MODEL) or (() if reply.tool_calls else spoken(args.thinks, Origin.MODEL))
        yield from self._place(element, event, Role.ASSISTANT, (*reasoned(reply), *words, *calls), usage)
        if response.id:
            self._open[response.id] = self.story.window.count - 1, {call.call_id for call in calls} - {call_id}

    def _place(
        self, element: Element, event: EventV0, role: Role, blocks: tuple[Block, ...], usage: Usage | None = None
    ) -> Iterator[Draft]:
        if blocks:
            model = event.response.model or self.story.settings.model if role is Role.ASSISTANT else ""
            at = utc(event.timestamp)
            draft = Draft(role=role, blocks=blocks, at=at, line=element.line, model=model, usage=usage)
            yield from self.story.place(draft, event.id)

    def _usage(self, event: EventV0) -> Usage | None:
        """What the response says, or what the accumulated tokens grew by."""
        grown = None
        if event.llm_metrics is not None and (total := event.llm_metrics.accumulated_token_usage) is not None:
            grown, self._spent = _grown(self._spent, total.usage), total.usage
        response = event.response
        if response.usage is not None:
            return response.usage.usage
        return self.story.settings.usages.get(response.id or "", grown)

    def _observed(self, element: Element, event: EventV0) -> Iterator[Event]:
        if event.observation == "recall":
            yield from self._recall(element, event)
            return
        if event.observation == "condense":
            yield from self._place(element, event, Role.USER, spoken(event.content, Origin.HARNESS))
            return
        read = salvage(bytes(event.extras), _extras)
        extras: Extras = read.value
        yield from _partly(element, read.left_out)
        if event.observation not in SHOWN:
            self.story.tally.add(f"observation unknown to this version: {event.observation!r}", element.line, 0)
        if pictures := len(extras.screenshot or "") + len(extras.set_of_marks or ""):
            self.story.tally.add(SCREENSHOT, element.line, pictures)
        yield from self._result(element, event, extras)

    def _result(self, element: Element, event: EventV0, extras: Extras) -> Iterator[Event]:
        """A result where its call is known, else text in the user's role."""
        made = event.tool_call_metadata
        call_id = made.tool_call_id if made is not None else None if event.cause is None else self._call_of.get(event.cause)
        text, shown = observed(event, extras, partial(self._cut, element)), images(extras.image_urls, Origin.TOOL)
        if call_id is not None and call_id in self.story.called:
            failed = event.observation in FAILED
            result = ToolResult(call_id=call_id, text=text, error=failed, media=shown)
            yield from self._place(element, event, Role.TOOL, (result,))
            return
        if self._wrote and event.observation != "user_rejected":
            text = OBSERVED + text
        elif event.observation == "run" and made is None:
            text = SEEN_BY_USER.format(text)
        origin = Origin.HARNESS if event.observation == "error" and not self._wrote else Origin.TOOL
        yield from self._place(element, event, Role.USER, (*spoken(text, origin), *shown))

    def _cut(self, element: Element, text: str) -> str:
        longest = self.story.settings.longest
        if longest is None or longest < 0 or len(text) <= longest:
            return text
        half = longest // 2
        self.story.tally.add(CUT_OUT, element.line, len(text) - 2 * half)
        return text[:half] + CUT + text[len(text) - half :]

    def _recall(self, element: Element, event: EventV0) -> Iterator[Event]:
        read = salvage(bytes(event.extras), _recall)
        recall: Recall = read.value
        yield from _partly(element, read.left_out)
        blocks = tuple(Text(text=text, origin=Origin.HARNESS) for text in recall.texts(self._recalled))
        self._recalled.update(one.name or "" for one in recall.known)
        if self.story.settings.recalls:
            yield from self._place(element, event, Role.USER, blocks)
        elif blocks:
            self.story.tally.add(NOT_RECALLED, element.line, sum(len(block.text.encode()) for block in blocks))

    def _condensed(self, element: Element, event: EventV0, args: Args) -> Iterator[Event]:
        first, last = args.forgotten_events_start_id, args.forgotten_events_end_id
        forgotten = args.forgotten_event_ids
        if forgotten is None and first is not None and last is not None:
            forgotten = self.story.between(first, last)
        yield from self.story.condensed(forgotten or (), args.summary or "", element.line, utc(event.timestamp), event.id)


def _partly(element: Element, left_out: tuple[str, ...]) -> Iterator[Skipped]:
    return (Skipped(line=element.line, bytes=0, reason=reason) for reason in left_out)


def _grown(before: Usage, after: Usage) -> Usage | None:
    """The difference; None where nothing was spent, or the count began anew."""
    grown = Usage(
        uncached=after.uncached - before.uncached,
        cache_write=after.cache_write - before.cache_write,
        cache_read=after.cache_read - before.cache_read,
        output=after.output - before.output,
    )
    parts = (grown.uncached, grown.cache_write, grown.cache_read, grown.output)
    return grown if any(parts) and min(parts) >= 0 else None
