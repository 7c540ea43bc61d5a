"""ATIF, the Agent Trajectory Interchange Format of Harbor (`trajectory.json`), versions 1.0 to 1.8, and what comes close to it.

A step is a turn: a message, the calls it made and what came back. Metrics of the whole, token ids, tool definitions and `extra`
were never said. What a continuation copies is said once where the file holds both (`atif_window`).
https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Origin, Role
from tenure.logs.atif_steps import (
    ROLES,
    AtifStep,
    Ref,
    Result,
    answered,
    compaction,
    is_made_up,
    is_notice,
    message,
    results,
    shown,
    usage,
)
from tenure.logs.json_files import Element, decoded, first_keys, inside, samples
from tenure.logs.parts import result_of
from tenure.logs.reader import Event, Skipped, SubAgent
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.transcript import TranscriptBuilder

ALLOWED: Final = "an ATIF trajectory: an object with `steps`"

NOTED: Final = "note of a converter, which the calls or the observation say as well"
ELSEWHERE: Final = "sub-agent whose conversation is in a file of its own"
DUPLICATE: Final = "trajectory that was there before"
TOO_DEEP: Final = "sub-agents nested deeper than is looked for"

# Agents whose one prompt is instructions and task together, at times as a system step; it stays when they rewrite their window.
ONE_PROMPT: Final = ("terminus",)

LONGEST_PROLOGUE: Final = 16  # system drafts before anything else, which every rewriting leaves
DEEPEST: Final = 8  # sub-agents within sub-agents; every level is a pass over what is in it
LONGEST_TASK: Final = 200  # characters

_VERSION: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-v\d')
_NUMBERED: Final = re.compile(rb'"step_id"\s*:')
_SOURCED: Final = re.compile(rb'"source"\s*:\s*"(?:system|user|agent)"')


class _AgentInfo(Struct, frozen=True, gc=False):
    name: str | None = None
    model_name: str | None = None
    model: str | None = None  # OpenAgents'


class _AtifTrajectory(Struct, frozen=True, gc=False):
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
    def one_prompt(self) -> bool:
        return ((self.agent is not None and self.agent.name) or "").startswith(ONE_PROMPT)


class _Summary(Struct, frozen=True, gc=False):
    summary: str | None = None


_summary: Final = msgspec.json.Decoder(_Summary | None)


class Atif:
    """Reads ATIF trajectories: one, an array of them, or one on each line."""

    name = "atif"

    def recognises(self, head: bytes) -> bool:
        """Whether the file is a trajectory by its version, or has steps that are numbered and have a source."""
        top = first_keys(head)
        if _VERSION.search(head) is not None and ("agent" in top or "steps" in top):
            return True
        return "steps" in top and _NUMBERED.search(head) is not None and _SOURCED.search(head) is not None

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the steps, results after their calls; sub-agents after the trajectory that holds them."""
        reading = _AtifReading()
        return reading.transcript.run(samples(chunks, _AtifTrajectory, ALLOWED, "trajectory"), reading.trajectory)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of an embedded sub-agent, by the id that `read` gave it."""
        names, seen = _Names(), TranscriptBuilder()
        for item in samples(chunks, _AtifTrajectory, ALLOWED, "trajectory"):
            for found in () if isinstance(item, Skipped) or _is_again(seen, *item) else _embedded(*item, names):
                if isinstance(found, _Embedded) and found.id == agent:
                    reading = _AtifReading()
                    reading.conversation(found.element, found.trajectory)
                    return reading.transcript.end()
        return iter(())


class _Embedded(Struct, frozen=True, gc=False):
    id: str
    element: Element
    trajectory: _AtifTrajectory


class _Names:
    """Ids of sub-agents, unique in the file."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, trajectory: _AtifTrajectory) -> str:
        given = trajectory.trajectory_id or trajectory.session_id or "agent"
        name = given
        while name in self._used:
            self._used[given] += 1
            name = f"{given}-{self._used[given]}"
        self._used[name] = 1
        return name


def _embedded(element: Element, outer: _AtifTrajectory, names: _Names, depth: int = 1) -> Iterator[_Embedded | Skipped]:
    """The sub-agents in a trajectory, each followed by its own."""
    if outer.subagent_trajectories and depth > DEEPEST:
        yield Skipped(line=element.line, bytes=0, reason=TOO_DEEP)
        return
    for item in decoded(inside(outer.subagent_trajectories or [], element), _AtifTrajectory, "trajectory of a sub-agent"):
        if isinstance(item, Skipped):
            yield item
            continue
        yield _Embedded(names.of(item[1]), *item)
        yield from _embedded(*item, names, depth + 1)


def _is_again(transcript: TranscriptBuilder, element: Element, trajectory: _AtifTrajectory) -> bool:
    """Whether the same trajectory was there before, which is counted; without an id two of them only look alike."""
    transcript.here(element.line, element.size)
    named = trajectory.trajectory_id or trajectory.session_id
    return transcript.repeats(sha256(element.faithful).digest(), reason=DUPLICATE if named else "") and bool(named)


class _AtifDraft(Struct, frozen=True, gc=False):
    draft: Draft
    step: int
    copied: bool


class _Boundary(Struct, frozen=True, gc=False):
    """A step at which the window was rewritten; -1 between trajectories."""

    reason: str
    line: int
    at: str = ""
    step: int = -1


class _AtifReading:
    """One pass over the trajectories of one file.

    A continuation repeats what its agent was given to go on with. Where that is in the same file already it stays in the window.
    """

    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.names = _Names()
        self.tasks: dict[str, str] = {}
        self.made_ids = 0
        self.live: dict[int, deque[int]] = defaultdict(deque)  # the drafts in the window, by what they say

    def trajectory(self, element: Element, trajectory: _AtifTrajectory) -> None:
        """Add a trajectory, unless it was there before, and its sub-agents."""
        if _is_again(self.transcript, element, trajectory):
            return
        self.conversation(element, trajectory)
        for item in _embedded(element, trajectory, self.names):
            if isinstance(item, Skipped):
                self.transcript.event(item)
                continue
            inner, place = item.trajectory, item.element
            task = next((self.tasks[key] for key in (inner.trajectory_id, inner.session_id) if key in self.tasks), "")
            self.transcript.event(
                SubAgent(id=item.id, line=place.line, messages=len(inner.steps), bytes=len(place.faithful), task=task)
            )

    def conversation(self, element: Element, trajectory: _AtifTrajectory) -> None:
        """Add the drafts of one trajectory, less those that only repeat what stayed in the window."""
        steps = list(self.transcript.inside(trajectory.steps, element, AtifStep, "step"))
        items = (_Boundary("new trajectory", element.line), *self._items(steps, trajectory))
        repeated: dict[int, int] = {}
        prologue: list[int] = []  # what every rewriting leaves; of an agent with one prompt that prompt
        opening = True
        for at, item in enumerate(items):
            if isinstance(item, _Boundary):
                if self.transcript.count:
                    matches = self._matches(items, at)
                    repeated |= matches
                    self._rewrite(item, {*prologue, *matches.values()})
                continue
            if opening:
                opening = item.draft.role is Role.SYSTEM and not trajectory.one_prompt
                if (opening or trajectory.one_prompt) and len(prologue) < LONGEST_PROLOGUE:
                    prologue.append(repeated.get(at, self.transcript.count))
            if at not in repeated:
                self.live[_key(item.draft)].append(self.transcript.draft(item.draft))
        if ref := trajectory.continued_trajectory_ref:
            self.transcript.here(element.line, element.size)
            self.transcript.lost(f"goes on in another file: {ref[:LONGEST_TASK]!r}", 0)

    def _matches(self, items: "Sequence[_AtifDraft | _Boundary]", at: int) -> dict[int, int]:
        """The numbers of the live drafts that say what the copies do that follow a boundary and what its own step says."""
        used: dict[int, int] = defaultdict(int)
        matches: dict[int, int] = {}
        own = items[at].step
        for place in range(at + 1, len(items)):
            item = items[place]
            if isinstance(item, _Boundary) or (item.step != own and not item.copied):
                break
            key = _key(item.draft)
            numbers = self.live.get(key, ())
            if item.step != own and used[key] < len(numbers):
                matches[place] = numbers[used[key]]
                used[key] += 1
        return matches

    def _rewrite(self, boundary: _Boundary, kept: set[int]) -> None:
        live = ((key, deque(number for number in numbers if number in kept)) for key, numbers in self.live.items())
        self.live = defaultdict(deque, {key: numbers for key, numbers in live if numbers})
        self.transcript.rewrite(boundary.reason, self.transcript.count, sorted(kept), line=boundary.line, at=boundary.at)

    def _items(self, steps: list[tuple[Element, AtifStep]], trajectory: _AtifTrajectory) -> Iterator["_AtifDraft | _Boundary"]:
        """What each step says, in order; a result that is in the file before its call waits for it."""
        given = {call.call_id for _, step in steps for call in step.tool_calls or ()}
        ids = [[call.call_id or self._made_id(given) for call in step.tool_calls or ()] for _, step in steps]
        made_at = {call_id: number for number in reversed(range(len(ids))) for call_id in ids[number]}  # the first of equals
        waiting: dict[int, list[Draft]] = defaultdict(list)
        asked = not trajectory.one_prompt
        for number, (element, step) in enumerate(steps):
            self.transcript.here(element.line, element.size, step.timestamp)
            at, rewritten = self.transcript.at, compaction(step)
            if rewritten:
                yield _Boundary(rewritten, element.line, at, number)
            drafts = list(self._turn(element, step, ids[number], trajectory, rewritten=bool(rewritten)))
            if drafts and not asked:
                asked = True
                if (prompt := drafts[0]).role is Role.SYSTEM:  # which is sent as the user's
                    by_human = (replace(block, origin=Origin.HUMAN) for block in prompt.blocks)
                    drafts = [replace(prompt, role=Role.USER, blocks=tuple(by_human))]
            by = Origin.HARNESS if rewritten and step.role is Role.SYSTEM else Origin.TOOL  # a summary, or what came back
            for result in results(step):
                self._note(result)
                call_id = result.source_call_id or ""
                held = waiting[made_at[call_id]] if made_at.get(call_id, -1) > number else drafts
                observed = _observed(result, call_id if call_id in made_at else None, by)
                held.extend(replace(draft, at=at, line=element.line) for draft in observed)
            for draft in (*drafts, *waiting.pop(number, ())):
                yield _AtifDraft(draft, number, bool(step.is_copied_context))

    def _turn(
        self, element: Element, step: AtifStep, ids: Sequence[str], outer: _AtifTrajectory, *, rewritten: bool
    ) -> Iterator[Draft]:
        if step.source not in ROLES:
            self.transcript.skip(f"step of a source unknown to this version: {step.source!r}")
        noted = is_made_up(step, (outer.agent and outer.agent.name) or "") or (rewritten and is_notice(step))
        if noted:
            self.transcript.skip(NOTED, len(bytes(step.message)))
        draft = Draft(
            role=Role.USER if step.role is Role.TOOL else step.role, blocks=(), at=self.transcript.at, line=element.line
        )
        if step.role is Role.ASSISTANT:
            if blocks := tuple(answered(step, ids, noted=noted)):
                yield replace(draft, blocks=blocks, model=step.model_name or outer.model, usage=usage(step))
        elif not noted and (blocks := tuple(message(step))):
            yield replace(draft, blocks=blocks)

    def _made_id(self, given: set[str]) -> str:
        self.made_ids += 1
        while f"call-{self.made_ids}" in given:
            self.made_ids += 1
        return f"call-{self.made_ids}"

    def _note(self, result: Result) -> None:
        for ref in result.refs:
            if ref.trajectory_path and not ref.trajectory_id:
                self.transcript.skip(ELSEWHERE, 0)
            for key in filter(None, (ref.trajectory_id, ref.session_id)):
                self.tasks.setdefault(key, _task(ref))


def _key(draft: Draft) -> int:
    return hash((draft.role, tuple((type(block).__name__, block.text) for block in draft.blocks)))


def _observed(result: Result, call_id: str | None, origin: Origin) -> Iterator[Draft]:
    """What came back: the result of a call, or text that the model saw as a user's message."""
    blocks: tuple[Block, ...] = tuple(shown(result.content, origin))
    if call_id is None:
        if blocks:
            yield Draft(role=Role.USER, blocks=blocks)
        return
    if not blocks and result.refs:
        return  # only a sub-agent's conversation
    yield Draft(role=Role.TOOL, blocks=(result_of(call_id, blocks, error=result.error),))


def _task(ref: Ref) -> str:
    try:
        about = decode(bytes(ref.extra), _summary)
    except DamagedJson:
        return ""
    return ((about and about.summary) or "")[:LONGEST_TASK]
