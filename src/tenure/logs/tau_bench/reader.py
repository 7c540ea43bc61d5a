"""tau-bench's trajectories (`historical_trajectories/*.json`, one element or all) and tau2-bench's results and simulations.

An agent serves a simulated user under a policy. What decides about its success was never shown to it and is left out: the user's
instruction, the ground truth, rewards and reviews.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text
from tenure.logs.json_files import Element, decoded, first_keys, inside, samples
from tenure.logs.parts import chat_message
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.salvage import Damaged, decode
from tenure.logs.tally import Tally
from tenure.logs.tau_bench.simulation import Simulation

NAME: Final = "tau-bench"
ALLOWED: Final = "a trajectory of tau-bench with `traj`, or one of tau2-bench with `messages`, `ticks` or `simulations`"

SENT: Final = ("role", "name", "content", "reasoning_content", "tool_calls", "tool_call_id")  # what goes back to the model

PRINTED: Final = "API output: "  # how agents without tool calls are shown what a tool returned, in the user's role

# Keys that stand beside the conversation, and what tau2-bench's results begin with.
BESIDE_TRAJ: Final = frozenset({"task_id", "reward", "info", "trial"})
BESIDE_MESSAGES: Final = frozenset({"task_id", "reward_info", "termination_reason", "agent_cost", "user_cost"})
RESULTS: Final = frozenset({"timestamp", "info", "tasks", "simulations", "simulation_index", "format_version"})
MARKS: Final = (
    b'"num_trials"',
    b'"user_info"',
    b'"agent_info"',
    b'"environment_info"',
    b'"user_scenario"',
    b'"evaluation_criteria"',
)
TURN: Final = b'"turn_idx"'
LEAST_MARKS: Final = 2

NO_MESSAGES: Final = "simulations without messages: they are in files of their own"
NOTHING: Final = f"no conversation, expected {ALLOWED}"


class _Agent(Struct, frozen=True, gc=False):
    llm: str | None = None


class _Environment(Struct, frozen=True, gc=False):
    policy: str | None = None


class _Info(Struct, frozen=True, gc=False):
    agent_info: _Agent | None = None
    environment_info: _Environment | None = None


class _Sample(Struct, frozen=True, gc=False):
    traj: list[Raw] | None = None
    messages: list[Raw] | None = None
    ticks: list[Raw] | None = None
    policy: str | None = None


class _File(_Sample, frozen=True, gc=False):
    simulations: list[Raw] | None = None
    info: _Info | None = None


class _System(Struct, frozen=True, gc=False):
    role: str = ""


_file: Final = msgspec.json.Decoder(_File)
_sample: Final = msgspec.json.Decoder(_Sample)
_about: Final = msgspec.json.Decoder(_System)


class TauBench:
    """Reads samples of both benchmarks: one, or any number in one file."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the first object has the conversation and the keys that the benchmarks put beside it."""
        top = set(first_keys(head))
        if "traj" in top:
            return bool(top & BESIDE_TRAJ)
        if len(top & BESIDE_MESSAGES) + (TURN in head) >= LEAST_MARKS:  # what comes before the messages may fill the head
            return True
        return bool(top & (RESULTS - {"timestamp"})) and top <= RESULTS and sum(mark in head for mark in MARKS) >= LEAST_MARKS

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """The drafts of one sample after the other, each in a window of its own."""
        reading = _Reading()
        for item in samples(chunks, _file, ALLOWED, "trajectory"):
            yield from (item,) if isinstance(item, Skipped) else reading.file(*item)
        yield from reading.tally.skipped()


class _Reading:
    def __init__(self) -> None:
        self.tally = Tally()
        self.yielded = 0
        self._policies: dict[str, int] = {}  # the drafts that are one, by their text

    def file(self, element: Element, file: _File) -> Iterator[Event]:
        info = file.info or _Info()
        policy = (info.environment_info and info.environment_info.policy) or ""
        model = (info.agent_info and info.agent_info.llm) or ""
        if file.simulations is None and file.traj is None and file.messages is None and file.ticks is None:
            yield Skipped(line=element.line, bytes=len(element.faithful), reason=NOTHING)
            return
        if file.simulations is None:
            yield from self._counted(self._read(element, file, file.policy or "", model))
            return
        if not file.simulations:
            yield Skipped(line=element.line, bytes=0, reason=NO_MESSAGES)
        for item in decoded(inside(file.simulations, element), _sample, "simulation"):
            if isinstance(item, Skipped):
                yield item
            else:
                yield from self._counted(self._read(*item, item[1].policy or policy, model))

    def _counted(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            self.yielded += isinstance(event, Draft)
            yield event

    def _read(self, element: Element, sample: _Sample, policy: str, model: str) -> Iterator[Event]:
        """One sample; its policy is said unless it was before, and then it stays."""
        if sample.traj is not None:
            yield from self._begun(element, None)
            for item in decoded(inside(sample.traj, element), _about, "message"):
                yield item if isinstance(item, Skipped) else _chat(item[0])
            return
        array = sample.messages or []
        if any(_is_system(bytes(raw)) for raw in array):
            policy = ""  # it is among the messages
        known = self._policies.get(policy) if policy else None
        yield from self._begun(element, known)
        if policy and known is None:
            known = self._policies[policy] = self.yielded
            yield Draft(role=Role.SYSTEM, blocks=(Text(text=policy, origin=Origin.HARNESS),), line=element.line)
        simulation = Simulation(self.tally, model, self.yielded, known)
        if sample.messages is None and sample.ticks is not None:
            yield from simulation.ticks(sample.ticks, element)
        else:
            yield from simulation.messages(array, element)

    def _begun(self, element: Element, known: int | None) -> Iterator[Rewritten]:
        if self.yielded:
            kept = () if known is None else (known,)
            yield Rewritten(reason="new sample", line=element.line, drop_before=self.yielded, kept=kept)


def _chat(element: Element) -> Event:
    """A message of tau-bench, which is one of the Chat Completions API."""
    draft = chat_message(element, SENT)
    if isinstance(draft, Skipped):
        return draft
    blocks = draft.blocks if draft.role is not Role.USER else tuple(_by(block) for block in draft.blocks)
    return replace(draft, blocks=blocks, line=element.line)


def _by(block: Block) -> Block:
    return replace(block, origin=Origin.TOOL) if isinstance(block, Text) and block.text.startswith(PRINTED) else block


def _is_system(raw: bytes) -> bool:
    try:
        return decode(raw, _about).role == "system"
    except Damaged:
        return False
