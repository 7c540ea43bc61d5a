"""ATIF, the Agent Trajectory Interchange Format of Harbor (`trajectory.json`), versions 1.0 to 1.8, and what comes close to it.

A step is a turn: a message, the calls it made and what came back. Metrics of the whole, token ids, tool definitions and `extra`
were never said. What a continuation copies is said once where the file holds both (`atif_window`).
https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Media, Origin, Role, ToolResult
from tenure.logs.atif.step import (
    ROLES,
    Ref,
    Result,
    Step,
    answered,
    compaction,
    is_made_up,
    is_notice,
    results,
    shown,
    told,
    usage,
)
from tenure.logs.atif.window import Boundary, Said, Window
from tenure.logs.json_files import Element, decoded, first_keys, inside, samples
from tenure.logs.reader import Agent, Event, Rewritten, Skipped
from tenure.logs.salvage import Damaged, decode
from tenure.logs.tally import Tally
from tenure.logs.transcript import utc

NAME: Final = "atif"
ALLOWED: Final = "an ATIF trajectory: an object with `steps`"

NOTED: Final = "note of a converter, which the calls or the observation say as well"
ELSEWHERE: Final = "sub-agent whose conversation is in a file of its own"
DUPLICATE: Final = "trajectory that was there before"
TOO_DEEP: Final = "sub-agents nested deeper than is looked for"
UNKNOWN_SOURCE: Final = "step of a source unknown to this version: {!r}"

# Agents whose one prompt is instructions and task together, at times as a system step; it stays when they rewrite their window.
ONE_PROMPT: Final = ("terminus",)

DEEPEST: Final = 8  # sub-agents within sub-agents; every level is a pass over what is in it
LONGEST_TASK: Final = 200  # characters

_VERSION: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-v\d')
_NUMBERED: Final = re.compile(rb'"step_id"\s*:')
_SOURCED: Final = re.compile(rb'"source"\s*:\s*"(?:system|user|agent)"')


class _AgentInfo(Struct, frozen=True, gc=False):
    name: str | None = None
    model_name: str | None = None
    model: str | None = None  # OpenAgents'


class _Trajectory(Struct, frozen=True, gc=False):
    steps: list[Raw]
    agent: _AgentInfo | None = None
    session_id: str | None = None
    trajectory_id: str | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: list[Raw] | None = None

    @property
    def model(self) -> str:
        return (self.agent and (self.agent.model_name or self.agent.model)) or ""

    @property
    def by(self) -> str:
        return (self.agent and self.agent.name) or ""

    @property
    def one_prompt(self) -> bool:
        return self.by.startswith(ONE_PROMPT)


class _Summary(Struct, frozen=True, gc=False):
    summary: str | None = None


_trajectory: Final = msgspec.json.Decoder(_Trajectory)
_step: Final = msgspec.json.Decoder(Step)
_summary: Final = msgspec.json.Decoder(_Summary | None)


class Atif:
    """Reads ATIF trajectories: one, an array of them, or one on each line."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the file is a trajectory by its version, or has steps that are numbered and have a source."""
        top = first_keys(head)
        if _VERSION.search(head) is not None and ("agent" in top or "steps" in top):
            return True
        return "steps" in top and _NUMBERED.search(head) is not None and _SOURCED.search(head) is not None

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the steps, results after their calls; sub-agents after the trajectory that holds them."""
        reading, names = _Reading(), _Names()
        for item in reading.trajectories(chunks):
            if isinstance(item, Skipped):
                yield item
                continue
            yield from reading.events(*item)
            yield from (reading.agent(found) for found in _embedded(*item, names))
        yield from reading.tally.skipped()

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of an embedded sub-agent, by the id that `read` gave it."""
        names = _Names()
        for item in _Reading().trajectories(chunks):
            for found in () if isinstance(item, Skipped) else _embedded(*item, names):
                if isinstance(found, _Embedded) and found.id == agent:
                    reading = _Reading()
                    yield from reading.events(found.element, found.trajectory)
                    yield from reading.tally.skipped()
                    return


class _Embedded(Struct, frozen=True, gc=False):
    """A sub-agent's trajectory in another one."""

    id: str
    element: Element
    trajectory: _Trajectory


class _Names:
    """Ids of sub-agents, unique in the file."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, trajectory: _Trajectory) -> str:
        given = trajectory.trajectory_id or trajectory.session_id or "agent"
        name = given
        while name in self._used:
            self._used[given] += 1
            name = f"{given}-{self._used[given]}"
        self._used[name] = 1
        return name


def _embedded(element: Element, outer: _Trajectory, names: _Names, depth: int = 1) -> Iterator[_Embedded | Skipped]:
    """The sub-agents in a trajectory, each followed by its own."""
    if outer.subagent_trajectories and depth > DEEPEST:
        yield Skipped(line=element.line, bytes=0, reason=TOO_DEEP)
        return
    for item in decoded(inside(outer.subagent_trajectories or [], element), _trajectory, "trajectory of a sub-agent"):
        if isinstance(item, Skipped):
            yield item
            continue
        yield _Embedded(names.of(item[1]), *item)
        yield from _embedded(*item, names, depth + 1)


class _Reading:
    """One pass over the trajectories of one file."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._window = Window()
        self._tasks: dict[str, str] = {}
        self._made_ids = 0
        self._seen: set[bytes] = set()

    def trajectories(self, chunks: Iterable[bytes]) -> Iterator[tuple[Element, _Trajectory] | Skipped]:
        """Those of the file, each once."""
        for item in samples(chunks, _trajectory, ALLOWED, "trajectory"):
            if isinstance(item, Skipped) or not self._knows(*item):
                yield item

    def _knows(self, element: Element, trajectory: _Trajectory) -> bool:
        """Whether the same trajectory was there before, which is counted; without an id two of them only look alike."""
        digest = sha256(element.faithful).digest()
        known = digest in self._seen and bool(trajectory.trajectory_id or trajectory.session_id)
        self._seen.add(digest)
        if known:
            self.tally.add(DUPLICATE, element.line, len(element.faithful))
        return known

    def events(self, element: Element, trajectory: _Trajectory) -> Iterator[Event]:
        steps: list[tuple[Element, Step]] = []
        for item in decoded(inside(trajectory.steps, element), _step, "step"):
            if isinstance(item, Skipped):
                yield item
            else:
                steps.append(item)
        start = Boundary(Rewritten(reason="new trajectory", line=element.line), step=-1)
        said = (start, *self._said(steps, trajectory))
        yield from self._window.placed(said, one_prompt=trajectory.one_prompt)
        if ref := trajectory.continued_trajectory_ref:
            yield Skipped(line=element.line, bytes=0, reason=f"goes on in another file: {ref[:LONGEST_TASK]!r}")

    def agent(self, found: _Embedded | Skipped) -> Event:
        """The sub-agent as the main conversation tells of it."""
        if isinstance(found, Skipped):
            return found
        inner, element = found.trajectory, found.element
        task = next((self._tasks[key] for key in (inner.trajectory_id, inner.session_id) if key in self._tasks), "")
        return Agent(id=found.id, line=element.line, messages=len(inner.steps), bytes=len(element.faithful), task=task)

    def _said(self, steps: list[tuple[Element, Step]], trajectory: _Trajectory) -> Iterator[Said | Boundary]:
        """What each step says, in order; a result that is in the file before its call waits for it."""
        ids = self._ids(steps)
        made_at = {call_id: number for number in reversed(range(len(ids))) for call_id in ids[number]}  # the first of equals
        waiting: dict[int, list[Draft]] = defaultdict(list)
        asked = not trajectory.one_prompt
        for number, (element, step) in enumerate(steps):
            at, rewritten = utc(step.timestamp), compaction(step)
            if rewritten:
                yield Boundary(Rewritten(reason=rewritten, line=element.line, at=at), step=number)
            drafts = list(self._turn(element, step, ids[number], trajectory, rewritten=bool(rewritten)))
            if drafts and not asked:
                drafts, asked = [_as_prompt(drafts[0])], True
            by = Origin.HARNESS if rewritten and step.role is Role.SYSTEM else Origin.TOOL  # a summary, or what came back
            for result in results(step):
                self._note(element, result)
                call_id = result.source_call_id or ""
                held = waiting[made_at[call_id]] if made_at.get(call_id, -1) > number else drafts
                found = _observed(result, call_id if call_id in made_at else None, by)
                held.extend(replace(draft, at=at, line=element.line) for draft in found)
            for draft in (*drafts, *waiting.pop(number, ())):
                yield Said(draft, number, bool(step.is_copied_context))

    def _turn(self, element: Element, step: Step, ids: Sequence[str], outer: _Trajectory, *, rewritten: bool) -> Iterator[Draft]:
        """The step's own message."""
        if step.source not in ROLES:
            self.tally.add(UNKNOWN_SOURCE.format(step.source), element.line, len(element.faithful))
        noted = is_made_up(step, outer.by) or (rewritten and is_notice(step))
        if noted:
            self.tally.add(NOTED, element.line, len(bytes(step.message)))
        draft = Draft(
            role=Role.USER if step.role is Role.TOOL else step.role, blocks=(), at=utc(step.timestamp), line=element.line
        )
        if step.role is Role.ASSISTANT:
            if blocks := tuple(answered(step, ids, noted=noted)):
                yield replace(draft, blocks=blocks, model=step.model_name or outer.model, usage=usage(step))
        elif not noted and (blocks := tuple(told(step))):
            yield replace(draft, blocks=blocks)

    def _ids(self, steps: list[tuple[Element, Step]]) -> list[list[str]]:
        """The ids of each step's calls, made up where there are none."""
        given = {call.call_id for _, step in steps for call in step.tool_calls or ()}
        return [[call.call_id or self._made_id(given) for call in step.tool_calls or ()] for _, step in steps]

    def _made_id(self, given: set[str]) -> str:
        self._made_ids += 1
        while f"call-{self._made_ids}" in given:
            self._made_ids += 1
        return f"call-{self._made_ids}"

    def _note(self, element: Element, result: Result) -> None:
        for ref in result.refs:
            if ref.trajectory_path and not ref.trajectory_id:
                self.tally.add(ELSEWHERE, element.line, 0)
            for key in filter(None, (ref.trajectory_id, ref.session_id)):
                self._tasks.setdefault(key, _task(ref))


def _as_prompt(draft: Draft) -> Draft:
    """The first message of an agent that has only one prompt, sent as the user's."""
    if draft.role is not Role.SYSTEM:
        return draft
    return replace(draft, role=Role.USER, blocks=tuple(replace(block, origin=Origin.HUMAN) for block in draft.blocks))


def _observed(result: Result, call_id: str | None, origin: Origin) -> Iterator[Draft]:
    """What came back: the result of a call, or text that the model saw as a user's message."""
    blocks: tuple[Block, ...] = tuple(shown(result.content, origin))
    if call_id is None:
        if blocks:
            yield Draft(role=Role.USER, blocks=blocks)
        return
    if not blocks and result.refs:
        return  # only a sub-agent's conversation
    media = tuple(block for block in blocks if isinstance(block, Media))
    text = "\n".join(block.text for block in blocks if not isinstance(block, Media))
    yield Draft(role=Role.TOOL, blocks=(ToolResult(call_id=call_id, text=text, error=result.error, media=media),))


def _task(ref: Ref) -> str:
    try:
        about = decode(bytes(ref.extra), _summary)
    except Damaged:
        return ""
    return ((about and about.summary) or "")[:LONGEST_TASK]
