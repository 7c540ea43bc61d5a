"""SWE-agent's trajectories (`*.traj`): one document, in which `history` and `trajectory` tell the same story.

`history` is what the model saw, so it is read; of `trajectory` only what is missing there. Version 0 keeps actions and observations as
text, version 1 as tool calls too. Attempts that could not be run were asked again and taken out of the history: those are left out, and
so is what SWE-agent wrote itself when it had to stop. A retrying agent's attempts are conversations one after another, and repeated at
the top where one was chosen. Sub-agents of version 0, started as commands, wrote into the same history.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Origin, Role, Text, ToolCall, ToolResult
from tenure.errors import InputError
from tenure.logs.json_files import Element, decoded, inside, samples
from tenure.logs.parts import CHAT_API, joined, string, texts
from tenure.logs.reader import Event, Skipped
from tenure.logs.salvage import DamagedJson, cut, decode
from tenure.logs.shape import first, keys, member
from tenure.logs.transcript import TranscriptBuilder

ALLOWED: Final = "a SWE-agent trajectory: an object with `history` or `trajectory`"

NOTICE: Final = "notice that the run stopped: written after the last call"
TAKEN_BACK: Final = "step that the history does not hold: an attempt that was taken back and asked again"
STOPPED: Final = ("exit due to ", "exiting due to ")  # what SWE-agent writes in the model's place when it cannot go on
ASKED_AGAIN: Final = ("assistant", "user")  # message types of an attempt and its error, which are in no history

# Who wrote what stands in the user's role; anything else that follows the task is what an action printed.
WRITERS: Final = {"demonstration": Origin.HARNESS, "system_prompt": Origin.HARNESS, "user": Origin.HARNESS}

NO_CALLS: Final = (b"", b"null", b"[]")  # how a message without calls says so

_STEP_KEYS: Final = frozenset({"action", "observation", "response", "thought", "query", "messages", "state"})
_MARKS: Final = 2  # of those keys; no other format has two of them
_NOT_OURS: Final = frozenset({"source", "kind", "timestamp"})


class _Thinking(Struct, frozen=True, gc=False):
    type: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None

    @property
    def detail(self) -> dict[str, str]:
        """The block in the shape in which OpenAI's API passes it on."""
        if self.data:
            return {"type": "reasoning.encrypted", "data": self.data}
        signature = {"signature": self.signature} if self.signature else {}
        return {"type": "reasoning.text", "text": self.thinking or ""} | signature


class _SweItem(Struct, frozen=True, gc=False):
    role: str = ""
    content: Raw = Raw(b"null")
    agent: str | None = None
    is_demo: bool | None = None
    message_type: str | None = None
    thought: str | None = None
    tool_calls: Raw = Raw(b"null")
    tool_call_ids: list[str] | None = None
    thinking_blocks: list[_Thinking] | None = None

    @property
    def text(self) -> str:
        return string(self.content) or ""

    @property
    def is_answer(self) -> bool:
        return self.role == "assistant" and not self.is_demo

    @property
    def is_notice(self) -> bool:
        text = self.text.lower()
        return self.is_answer and text.startswith(STOPPED) and text == (self.thought or "").lower()


class _SweStep(Struct, frozen=True, gc=False):
    """One action of the agent, and what came of it."""

    response: str | None = None
    thought: str | None = None
    action: str | None = None
    observation: str | None = None
    reasoning_content: str | None = None
    query: list[Raw] | None = None  # what was sent
    messages: list[Raw] | None = None  # in the first releases of version 1: that, and what came of it

    @property
    def words(self) -> str:
        return self.response or self.thought or ""

    @property
    def is_notice(self) -> bool:
        return self.words.lower().startswith(STOPPED)


class _SweAgent(Struct, frozen=True, gc=False):
    model: Raw = Raw(b"null")


class _SweModel(Struct, frozen=True, gc=False):
    name: str | None = None


class _SweConfig(Struct, frozen=True, gc=False):
    agent: _SweAgent = _SweAgent()


class _Attempt(Struct, frozen=True, gc=False):
    trajectory: Raw = Raw(b"null")
    history: Raw = Raw(b"null")
    attempts: list[Raw] | None = None
    replay_config: Raw = Raw(b"null")

    @property
    def model(self) -> str:
        """The model, as the configuration of the run names it."""
        try:
            config = decode(bytes(self.replay_config), _text_or_config)
            if isinstance(config, str):
                config = decode(config.encode(), _SweConfig)
            model = decode(bytes(config.agent.model), _model) if config else None
        except DamagedJson:
            return ""
        return (model and model.name) or ""


_text_or_config: Final = msgspec.json.Decoder(str | _SweConfig | None)
_model: Final = msgspec.json.Decoder(_SweModel | None)


class SweAgent:
    """Reads SWE-agent's trajectories."""

    name = "swe-agent"

    def recognises(self, head: bytes) -> bool:
        """Whether a step or a message of the history has the keys that only SWE-agent writes."""
        inner = first(member(head, "attempts")) or first(head)
        return any(_is_trajectory(one) for one in (head, inner))

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order, attempt after attempt; then the sub-agents."""
        return self.read_agent(chunks, "")

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of a sub-agent."""
        reading = _SweReading(agent)
        return reading.transcript.run(samples(chunks, _Attempt, ALLOWED, "trajectory"), reading.attempt, agent=agent)


def _is_trajectory(head: bytes) -> bool:
    steps = first(member(head, "trajectory"))
    step = set(keys(steps))
    if len(step & _STEP_KEYS) >= _MARKS and not step & _NOT_OURS:
        return True
    starts = (set(keys(first(found))) for found in (member(head, "history"), member(steps, "query"), member(steps, "messages")))
    return any("content" in start and bool({"agent", "message_type", "is_demo"} & start) for start in starts)


class _Steps:
    """The steps of the trajectory, from which those that the history repeats are taken."""

    def __init__(self, steps: Iterable[tuple[Element, _SweStep] | Skipped]) -> None:
        items = list(steps)
        self.damaged = [one for one in items if isinstance(one, Skipped)]
        self.all = [one for one in items if not isinstance(one, Skipped)]
        self.repeated: set[int] = set()
        self.last_was_here: bool | None = None  # whether the last message asked for is among them; None before any was
        self._places: dict[str, list[int]] = {}
        for place in reversed(range(len(self.all))):
            self._places.setdefault(self.all[place][1].response or "", []).append(place)

    def take(self, item: _SweItem) -> _SweStep | None:
        """The first step left with this response."""
        places = self._places.get(item.text)
        self.last_was_here = bool(places)
        if not places:
            return None
        self.repeated.add(places[-1])
        return self.all[places.pop()][1]

    def left(self, *, stopped: bool) -> tuple[list[tuple[Element, _SweStep]], list[tuple[Element, _SweStep]]]:
        """Steps that were taken back, and steps that are missing at the end; none where the two tell it in other words."""
        if self.last_was_here is False:
            return [], []
        end = max(self.repeated, default=-1) + 1
        before = [step for place, step in enumerate(self.all[:end]) if place not in self.repeated]
        after = self.all[end:]
        return ([*before, *(step for step in after if not step[1].is_notice)], []) if stopped else (before, after)


class _SweReading:
    """One pass over one file; `agent` names the sub-agent to be read instead of the main conversations."""

    def __init__(self, agent: str) -> None:
        self.transcript, self.agent = TranscriptBuilder(), agent
        self.runs: dict[str, int] = {}  # how often each sub-agent was started

    def attempt(self, element: Element, attempt: _Attempt) -> None:
        if not attempt.attempts:
            self._conversation(element, attempt)
        for place, inner in self.transcript.inside(attempt.attempts, element, _Attempt, "attempt"):
            self._conversation(place, inner)

    def _conversation(self, element: Element, attempt: _Attempt) -> None:
        self.transcript.here(element.line, element.size)
        self.transcript.restart()
        self.transcript.model = attempt.model
        self.asked = self.stopped = False
        self.called: dict[str, None] = {}  # calls that can have a result
        self.messages = 0  # of the main conversation
        self.unanswered: _SweStep | None = None  # of the newest message, when that is the model's
        self.main: str | None = None  # the main agent: the first to say its name
        self.run = ""
        steps = _Steps(decoded(self._within(attempt.trajectory, element), _SweStep, "step"))
        for item in decoded(self._within(attempt.history, element), _SweItem, "message"):
            if not isinstance(item, Skipped):
                self._history(steps, *item)
            elif not self.agent:
                self.transcript.event(item)
        if not self.agent:
            for skipped in steps.damaged:
                self.transcript.event(skipped)
            self._rest(*steps.left(stopped=self.stopped))

    def _within(self, array: Raw, outer: Element) -> Iterator[Element]:
        part = bytes(array)
        try:
            items = decode(part, list[Raw])
        except DamagedJson:
            if part != b"null":
                self.transcript.skip("`history` or `trajectory` that is no array", len(part), outer.line)
            return iter(())
        start = outer.source.find(part)
        line = outer.line + outer.faithful.count(b"\n", 0, start)
        return inside(items, Element(line, part, outer.faithful[start : start + len(part)], len(part)))

    def _history(self, steps: _Steps, element: Element, item: _SweItem) -> None:
        self.transcript.here(element.line, element.size)
        agent = self._agent_of(item)
        self.messages += not agent
        if agent != self.agent:
            return
        self.stopped = self.stopped or item.is_notice
        if self.stopped:
            self.transcript.skip(NOTICE)
            return
        self.unanswered = steps.take(item) if item.is_answer else None
        self._message(element, item, (self.unanswered and self.unanswered.reasoning_content) or "")

    def _agent_of(self, item: _SweItem) -> str:
        """The sub-agent that a message belongs to, empty for the main one."""
        if not item.is_demo:
            self.main = self.main or item.agent
        if item.is_demo or not item.agent or item.agent == self.main:
            self.run = ""
            return ""
        if item.role == "system" or not self.run:
            number = self.runs[item.agent] = self.runs.get(item.agent, 0) + 1
            self.run = item.agent if number == 1 else f"{item.agent}-{number}"
        self.transcript.agent(self.run, item.text if item.role == "user" else "")
        return self.run

    def _message(self, element: Element, item: _SweItem, reasoning: str = "") -> None:
        self.transcript.here(element.line, element.size)
        answers = self._answers(item)
        try:
            draft = CHAT_API.parse([_sent(element, item, answers, reasoning)])[0]
        except InputError as error:
            self.transcript.lost(f"damaged message: found {error!s:.200}, expected a chat message")
            return
        blocks = tuple(self._by(draft.role, item, block) for block in draft.blocks)
        if draft.role is Role.USER and not item.is_demo:
            self.asked = True
        self.called.update((block.call_id, None) for block in blocks if isinstance(block, ToolCall))
        model = self.transcript.model if draft.role is Role.ASSISTANT and not item.is_demo else ""
        self.transcript.draft(replace(draft, blocks=blocks, line=element.line, model=model))

    def _answers(self, item: _SweItem) -> str | None:
        """The call that a tool's message answers: the one it names, or else the newest; None when there was none."""
        if item.role != "tool":
            return None
        named = next(iter(item.tool_call_ids or ()), None) or next(reversed(self.called), None)
        return named if named in self.called else None

    def _by(self, role: Role, item: _SweItem, block: Block) -> Block:
        if item.is_demo:
            return replace(block, origin=Origin.HARNESS)
        if role is Role.USER and isinstance(block, Text):
            other = Origin.TOOL if self.asked else Origin.HUMAN
            return replace(block, origin=WRITERS.get(item.message_type or "", other))
        return block

    def _rest(self, taken_back: list[tuple[Element, _SweStep]], rest: list[tuple[Element, _SweStep]]) -> None:
        """Add what the history lacks: where it ends too early all steps after its last message. Count attempts taken back."""
        for element, step in taken_back:
            self._take_back(element, step)
        open_: tuple[Element, _SweStep] | None = None
        for element, step in rest:
            sent, again = _repeated(step, element)
            new = sent[self.messages :]
            if open_ is None and not new and self.unanswered is not None:
                self.transcript.text(Role.USER, self.unanswered.observation, Origin.TOOL, line=element.line)
            if open_ is not None and not new:
                self._step(*open_, again=again)
            for item in decoded(new, _SweItem, "message"):
                self.transcript.event(item) if isinstance(item, Skipped) else self._message(*item)
            self.messages = max(self.messages, len(sent))
            open_ = None if step.query is None and step.messages else (element, step)
        if open_ is not None:
            self._step(*open_, again=False)

    def _take_back(self, element: Element, step: _SweStep) -> None:
        self.transcript.skip(NOTICE if step.is_notice else TAKEN_BACK, element.size, element.line)

    def _step(self, element: Element, step: _SweStep, *, again: bool) -> None:
        """Add a step that stands nowhere else. An action that is not in the words was a call, whose name is not in the step."""
        if again or step.is_notice:
            self._take_back(element, step)
            return
        action, call = step.action or "", f"call-{self.transcript.count}"
        if not action.strip() or action.strip() in step.words:
            self.transcript.text(Role.ASSISTANT, step.words, Origin.MODEL, line=element.line)
            self.transcript.text(Role.USER, step.observation, Origin.TOOL, line=element.line)
            return
        made = ToolCall(call_id=call, name="action", arguments=msgspec.json.encode({"action": action}).decode())
        self.transcript.add(Role.ASSISTANT, (*texts((step.words, Origin.MODEL)), made), line=element.line)
        self.transcript.add(Role.TOOL, (ToolResult(call_id=call, text=step.observation or ""),), line=element.line)


def _sent(element: Element, item: _SweItem, answers: str | None, reasoning: str) -> bytes:
    """The message as OpenAI's API takes it; a result without a call is what it is without tools: text in the user's role."""
    role = "user" if item.role == "tool" and answers is None else item.role
    fields = {"role": msgspec.json.encode(role), "content": cut(bytes(item.content), element.source, element.faithful)}
    calls = bytes(item.tool_calls)
    if calls.replace(b" ", b"") not in NO_CALLS:
        fields["tool_calls"] = cut(calls, element.source, element.faithful)
    if answers is not None:
        fields["tool_call_id"] = msgspec.json.encode(answers)
    if item.thinking_blocks:
        fields["reasoning_details"] = msgspec.json.encode([block.detail for block in item.thinking_blocks])
    elif reasoning:
        fields["reasoning_content"] = msgspec.json.encode(reasoning)
    return joined(fields)


def _repeated(step: _SweStep, element: Element) -> tuple[list[Element], bool]:
    """The messages that a step repeats, as far as they stayed in the history; and whether it was asked again."""
    messages = list(inside(step.query or step.messages or [], element))
    ends = [item for item in decoded(messages[-2:], _SweItem, "message") if not isinstance(item, Skipped)]
    again = len(ends) == len(ASKED_AGAIN) and tuple(item.message_type for _, item in ends) == ASKED_AGAIN
    return (messages[:-2] if again else messages), again
