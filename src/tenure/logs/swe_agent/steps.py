"""The steps of SWE-agent's trajectories: what of them the history told, and what only they can tell."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Draft, Origin, Role, Text, ToolCall, ToolResult
from tenure.logs.json_files import Element, decoded, inside
from tenure.logs.reader import Skipped
from tenure.logs.swe_agent.message import Item, Speech

STOPPED: Final = ("exit due to ", "exiting due to ")  # what SWE-agent writes in the model's place when it cannot go on
ASKED_AGAIN: Final = ("assistant", "user")  # message types of an attempt and its error, which are in no history


class Step(Struct, frozen=True, gc=False):
    """One action of the agent, and what came of it."""

    response: str | None = None
    thought: str | None = None
    action: str | None = None
    observation: str | None = None
    reasoning_content: str | None = None
    query: list[Raw] | None = None  # what was sent
    messages: list[Raw] | None = None  # in the first releases of version 1: that, and what came of it

    @property
    def said(self) -> str:
        """The words of the model."""
        return self.response or self.thought or ""

    @property
    def is_notice(self) -> bool:
        """Whether SWE-agent wrote them."""
        return self.said.lower().startswith(STOPPED)


_item: Final = msgspec.json.Decoder(Item)


class Steps:
    """The steps of the trajectory, from which those that the history tells are taken."""

    def __init__(self, steps: Iterable[tuple[Element, Step] | Skipped]) -> None:
        found = list(steps)
        self.damaged = [one for one in found if isinstance(one, Skipped)]
        self.all = [one for one in found if not isinstance(one, Skipped)]
        self.taken: set[int] = set()
        self.last_was_here: bool | None = None  # whether the last message asked for is among them; None before any was
        self._places: dict[str, list[int]] = {}
        for place in reversed(range(len(self.all))):
            self._places.setdefault(self.all[place][1].response or "", []).append(place)

    def take(self, item: Item) -> Step | None:
        """The first step left with this response."""
        places = self._places.get(item.text)
        self.last_was_here = bool(places)
        if not places:
            return None
        self.taken.add(places[-1])
        return self.all[places.pop()][1]


class History:
    """How far a history has been read, and which steps it told."""

    def __init__(self, speech: Speech, steps: Steps) -> None:
        self.speech = speech
        self.steps = steps
        self.messages = 0
        self.stopped = False
        self.unanswered: Step | None = None  # of the newest message, when that is the model's

    def left(self) -> tuple[list[tuple[Element, Step]], list[tuple[Element, Step]]]:
        """Steps that were taken back, and steps that are missing at the end; none where the two tell it in other words."""
        if self.steps.last_was_here is False:
            return [], []
        end = max(self.steps.taken, default=-1) + 1
        before = [step for place, step in enumerate(self.steps.all[:end]) if place not in self.steps.taken]
        after = self.steps.all[end:]
        if not self.stopped:
            return before, after
        return [*before, *(step for step in after if not step[1].is_notice)], []


def told(step: Step, element: Element) -> tuple[list[Element], bool]:
    """The messages that a step repeats, as far as they stayed in the history; and whether it was asked again."""
    messages = list(inside(step.query or step.messages or [], element))
    ends = [item for item in decoded(messages[-2:], _item, "message") if not isinstance(item, Skipped)]
    again = len(ends) == len(ASKED_AGAIN) and tuple(item.message_type for _, item in ends) == ASKED_AGAIN
    return (messages[:-2] if again else messages), again


def observed(step: Step, line: int) -> Iterator[Draft]:
    """What came of a step that was text."""
    if step.observation:
        yield Draft(role=Role.USER, blocks=(Text(text=step.observation, origin=Origin.TOOL),), line=line)


def told_by_itself(step: Step, number: int, model: str, line: int) -> Iterator[Draft]:
    """What was said, done and observed. An action that is not in the words was a call, whose name is not in the step."""
    said, action, observation = step.said, step.action or "", step.observation or ""
    words = (Text(text=said, origin=Origin.MODEL),) if said else ()
    if not action.strip() or action.strip() in said:
        if words:
            yield Draft(role=Role.ASSISTANT, blocks=words, model=model, line=line)
        yield from observed(step, line)
        return
    call = f"call-{number}"
    arguments = msgspec.json.encode({"action": action}).decode()
    called = ToolCall(call_id=call, name="action", arguments=arguments)
    yield Draft(role=Role.ASSISTANT, blocks=(*words, called), model=model, line=line)
    yield Draft(role=Role.TOOL, blocks=(ToolResult(call_id=call, text=observation),), line=line)
