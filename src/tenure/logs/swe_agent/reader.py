"""SWE-agent's trajectories (`*.traj`): one document, in which `history` and `trajectory` tell the same story.

`history` is what the model saw, so it is read; of `trajectory` only what is missing there. Attempts that could not be run were asked
again and taken out of the history: those are left out, and so is what SWE-agent wrote itself when it had to stop. A retrying agent's
attempts are conversations one after another, and repeated at the top where one was chosen. Sub-agents of version 0, started as
commands, wrote into the same history.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.logs.json_files import Element, decoded, inside, samples
from tenure.logs.reader import Agent, Event, Rewritten, Skipped
from tenure.logs.salvage import Damaged, decode
from tenure.logs.shape import first, keys, member
from tenure.logs.swe_agent.message import Item, Speech
from tenure.logs.swe_agent.steps import STOPPED, History, Step, Steps, observed, told, told_by_itself
from tenure.logs.tally import Tally

NAME: Final = "swe-agent"
ALLOWED: Final = "a SWE-agent trajectory: an object with `history` or `trajectory`"

NOTICE: Final = "notice that the run stopped: written after the last call"
TAKEN_BACK: Final = "step that the history does not hold: an attempt that was taken back and asked again"
TASK: Final = 500  # characters kept of what a sub-agent was asked

_STEP_KEYS: Final = frozenset({"action", "observation", "response", "thought", "query", "messages", "state"})
_MARKS: Final = 2  # of those keys; no other format has two of them
_NOT_OURS: Final = frozenset({"source", "kind", "timestamp"})


class _Agent(Struct, frozen=True, gc=False):
    model: Raw = Raw(b"null")


class _Model(Struct, frozen=True, gc=False):
    name: str | None = None


class _Config(Struct, frozen=True, gc=False):
    agent: _Agent = _Agent()


class _Attempt(Struct, frozen=True, gc=False):
    trajectory: Raw = Raw(b"null")
    history: Raw = Raw(b"null")
    attempts: list[Raw] | None = None
    replay_config: Raw = Raw(b"null")


_attempt: Final = msgspec.json.Decoder(_Attempt)
_item: Final = msgspec.json.Decoder(Item)
_step: Final = msgspec.json.Decoder(Step)
_array: Final = msgspec.json.Decoder(list[Raw])
_text_or_config: Final = msgspec.json.Decoder(str | _Config | None)
_config: Final = msgspec.json.Decoder(_Config)
_model: Final = msgspec.json.Decoder(_Model | None)


class SweAgent:
    """Reads SWE-agent's trajectories."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether a step or a message of the history has the keys that only SWE-agent writes."""
        inner = first(member(head, "attempts")) or first(head)
        return any(_is_trajectory(one) for one in (head, inner))

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order, attempt after attempt; then the sub-agents."""
        return _Reading().events(chunks)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of a sub-agent."""
        return _Reading(agent).events(chunks)


def _is_trajectory(head: bytes) -> bool:
    steps = first(member(head, "trajectory"))
    step = set(keys(steps))
    if len(step & _STEP_KEYS) >= _MARKS and not step & _NOT_OURS:
        return True
    return any(
        _is_message(first(found)) for found in (member(head, "history"), member(steps, "query"), member(steps, "messages"))
    )


def _is_message(start: bytes) -> bool:
    found = set(keys(start))
    return "content" in found and bool({"agent", "message_type", "is_demo"} & found)


class _Reading:
    """One pass over one file; `agent` names the sub-agent to be read instead of the main conversations."""

    def __init__(self, agent: str = "") -> None:
        self.agent = agent
        self.agents: dict[str, Agent] = {}
        self.runs: dict[str, int] = {}  # how often each sub-agent was started
        self.tally = Tally()
        self.yielded = 0

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        for found in samples(chunks, _attempt, ALLOWED, "trajectory"):
            if isinstance(found, Skipped):
                yield found
                continue
            element, attempt = found
            if not attempt.attempts:
                yield from self._conversation(element, attempt)
                continue
            for one in decoded(inside(attempt.attempts, element), _attempt, "attempt"):
                yield from (one,) if isinstance(one, Skipped) else self._conversation(*one)
        if not self.agent:
            yield from self.tally.skipped()
            yield from self.agents.values()

    def _conversation(self, element: Element, attempt: _Attempt) -> Iterator[Event]:
        """The messages of the history, then the steps that it does not hold."""
        if self.yielded:
            yield Rewritten(reason="new sample", line=element.line, drop_before=self.yielded)
        steps = Steps(decoded(self._within(attempt.trajectory, element), _step, "step"))
        history = History(Speech(_name(attempt.replay_config)), steps)
        items = decoded(self._within(attempt.history, element), _item, "message")
        for found in self._split(items):
            if not isinstance(found, Skipped):
                yield from self._said(history, *found)
            elif not self.agent:
                yield found
        if not self.agent:
            yield from steps.damaged
            yield from self._rest(history)

    def _within(self, array: Raw, outer: Element) -> Iterator[Element]:
        """The elements of an array of `outer`."""
        part = bytes(array)
        try:
            items = decode(part, _array)
        except Damaged:
            if part != b"null":
                self.tally.add("`history` or `trajectory` that is no array", outer.line, len(part))
            return iter(())
        start = outer.source.find(part)
        line = outer.line + outer.faithful.count(b"\n", 0, start)
        return inside(items, Element(line, part, outer.faithful[start : start + len(part)]))

    def _said(self, history: "History", agent: str, element: Element, item: Item) -> Iterator[Event]:
        """One message of the history, when it belongs to the conversation that is read."""
        history.messages += not agent
        if agent != self.agent:
            return
        history.stopped = history.stopped or _is_notice(item)
        if history.stopped:
            self.tally.add(NOTICE, element.line, len(element.faithful))
            return
        step = history.unanswered = history.steps.take(item) if item.role == "assistant" and not item.is_demo else None
        yield from self._spoken(history.speech, element, item, (step and step.reasoning_content) or "")

    def _split(self, items: Iterable[tuple[Element, Item] | Skipped]) -> Iterator[tuple[str, Element, Item] | Skipped]:
        """Each message with the sub-agent it belongs to, empty for the main one: that is the first to say its name."""
        main: str | None = None
        run = ""
        for found in items:
            if isinstance(found, Skipped):
                yield found
                continue
            element, item = found
            if not item.is_demo:
                main = main or item.agent
            if item.is_demo or not item.agent or item.agent == main:
                run = ""
            else:
                run = self._started(item.agent, element) if item.role == "system" or not run else run
                self._count(run, element, item)
            yield run, element, item

    def _started(self, agent: str, element: Element) -> str:
        number = self.runs[agent] = self.runs.get(agent, 0) + 1
        name = agent if number == 1 else f"{agent}-{number}"
        self.agents[name] = Agent(id=name, line=element.line, messages=0)
        return name

    def _count(self, run: str, element: Element, item: Item) -> None:
        known = self.agents[run]
        task = known.task or (item.text[:TASK] if item.role == "user" else "")
        size = known.bytes + len(element.faithful)
        self.agents[run] = replace(known, messages=known.messages + 1, bytes=size, task=task)

    def _spoken(self, speech: Speech, element: Element, item: Item, reasoning: str = "") -> Iterator[Event]:
        try:
            draft = speech.draft(element, item, reasoning)
        except InputError as error:
            reason = f"damaged message: found {error!s:.200}, expected a chat message"
            yield Skipped(line=element.line, bytes=len(element.faithful), reason=reason)
        else:
            yield from self._place((draft,))

    def _rest(self, history: "History") -> Iterator[Event]:
        """What the history lacks: attempts taken back, and where it ends too early all steps after its last message."""
        taken_back, rest = history.left()
        for element, step in taken_back:
            self._took_back(element, step)
        open_: tuple[Element, Step] | None = None
        for element, step in rest:
            sent, again = told(step, element)
            new = sent[history.messages :]
            if open_ is None and not new and history.unanswered is not None:
                yield from self._place(observed(history.unanswered, element.line))
            if open_ is not None and not new:
                yield from self._left(history.speech, *open_, again=again)
            for part in decoded(new, _item, "message"):
                yield from (part,) if isinstance(part, Skipped) else self._spoken(history.speech, *part)
            history.messages = max(history.messages, len(sent))
            open_ = None if step.query is None and step.messages else (element, step)
        if open_ is not None:
            yield from self._left(history.speech, *open_, again=False)

    def _took_back(self, element: Element, step: Step) -> None:
        self.tally.add(NOTICE if step.is_notice else TAKEN_BACK, element.line, len(element.faithful))

    def _left(self, speech: Speech, element: Element, step: Step, *, again: bool) -> Iterator[Draft]:
        """A step that is told nowhere else."""
        if again or step.is_notice:
            self._took_back(element, step)
            return
        yield from self._place(told_by_itself(step, self.yielded, speech.model, element.line))

    def _place(self, drafts: Iterable[Draft]) -> Iterator[Draft]:
        for draft in drafts:
            self.yielded += 1
            yield draft


def _name(replay_config: Raw) -> str:
    """The model, as the configuration of the run names it."""
    try:
        config = decode(bytes(replay_config), _text_or_config)
        if isinstance(config, str):
            config = decode(config.encode(), _config)
        model = decode(bytes(config.agent.model), _model) if config else None
    except Damaged:
        return ""
    return (model and model.name) or ""


def _is_notice(item: Item) -> bool:
    if item.role != "assistant" or item.is_demo:
        return False
    said = item.text.lower()
    return said.startswith(STOPPED) and said == (item.thought or "").lower()
