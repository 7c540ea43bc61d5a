"""tau-bench's trajectories (`historical_trajectories/*.json`, one element or all) and tau2-bench's results and simulations.

An agent serves a simulated user under a policy. What decides about its success was never shown to it and is left out: the user's
instruction, the ground truth, rewards and reviews, and in tau2-bench the user's own tools. Spoken simulations come in ticks, from which
utterances are put together.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Origin, Role, Text, ToolCall, ToolResult
from tenure.logs.json_files import Element, first_keys, samples
from tenure.logs.parts import LoggedCall, Tokens, chat_message, texts
from tenure.logs.reader import Event, Skipped
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.transcript import TranscriptBuilder

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

USERS_TOOLS: Final = "the simulated user's own tools: not shown to the agent"


class _TauAgent(Struct, frozen=True, gc=False):
    llm: str | None = None


class _Environment(Struct, frozen=True, gc=False):
    policy: str | None = None


class _TauInfo(Struct, frozen=True, gc=False):
    agent_info: _TauAgent | None = None
    environment_info: _Environment | None = None


class _TauSample(Struct, frozen=True, gc=False):
    traj: list[Raw] | None = None
    messages: list[Raw] | None = None
    ticks: list[Raw] | None = None
    policy: str | None = None


class _TauFile(_TauSample, frozen=True, gc=False):
    simulations: list[Raw] | None = None
    info: _TauInfo | None = None


class _System(Struct, frozen=True, gc=False):
    role: str = ""


class _RawMessage(Struct, frozen=True, gc=False):
    reasoning_content: str | None = None


class _RawData(Struct, frozen=True, gc=False):
    model: str | None = None
    message: _RawMessage | None = None
    thinking_blocks: Raw = Raw(b"null")


class _Truncation(Struct, frozen=True, gc=False):
    messages_dropped: int | None = 0


class _TauMessage(Struct, frozen=True, gc=False):
    role: str = ""
    content: str | None = None
    id: str | None = None  # of a tool's message: the call it answers, here and below
    tool_call_id: str | None = None
    requestor: str | None = None
    error: bool | None = None
    tool_calls: list[LoggedCall] | None = None
    tool_messages: list[Raw] | None = None
    timestamp: str | float | None = None
    usage: Tokens | None = None
    raw_data: _RawData | None = None
    is_audio: bool | None = None
    audio_script_gold: str | None = None
    context_truncation: _Truncation | None = None

    @property
    def words(self) -> str:
        """The text, also where the content is sound."""
        return (self.audio_script_gold if self.is_audio and self.audio_script_gold else self.content) or ""


class _TauChunk(Struct, frozen=True, gc=False):
    content: str | None = None
    timestamp: str | float | None = None


class _Tick(Struct, frozen=True, gc=False):
    timestamp: str | float | None = None
    agent_chunk: _TauChunk | None = None
    user_chunk: _TauChunk | None = None
    agent_tool_calls: list[LoggedCall] | None = None
    agent_tool_results: list[_TauMessage] | None = None
    user_tool_calls: list[Raw] | None = None
    user_tool_results: list[Raw] | None = None


class TauBench:
    """Reads samples of both benchmarks: one, or any number in one file."""

    name = "tau-bench"

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
        reading = _TauReading()
        return reading.transcript.run(samples(chunks, _TauFile, ALLOWED, "trajectory"), reading.file)


class _TauReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.policies: dict[str, int] = {}  # the drafts that are one, by their text

    def file(self, element: Element, file: _TauFile) -> None:
        info = file.info or _TauInfo()
        policy = (info.environment_info and info.environment_info.policy) or ""
        self.transcript.model = (info.agent_info and info.agent_info.llm) or ""
        if file.simulations is None:
            if file.traj is None and file.messages is None and file.ticks is None:
                self.transcript.lost(f"no conversation, expected {ALLOWED}")
            else:
                self._sample(element, file, file.policy or "")
            return
        if not file.simulations:
            self.transcript.lost("simulations without messages: they are in files of their own", 0)
        for place, sample in self.transcript.inside(file.simulations, element, _TauSample, "simulation"):
            self._sample(place, sample, sample.policy or policy)

    def _sample(self, element: Element, sample: _TauSample, policy: str) -> None:
        """Add a sample; its policy is added unless it was before, and then it stays."""
        transcript = self.transcript
        transcript.here(element.line, element.size)
        if sample.traj is not None:
            transcript.restart()
            for place, _ in transcript.inside(sample.traj, element, _System, "message"):
                self._chat(place)
            return
        array = sample.messages or []
        if any(_is_system(bytes(raw)) for raw in array):
            policy = ""  # it is among the messages
        known = self.policies.get(policy) if policy else None
        transcript.restart(kept=() if known is None else (known,))
        if policy and known is None:
            known = self.policies[policy] = transcript.text(Role.SYSTEM, policy)
        simulation = _Simulation(transcript, known)
        if sample.messages is None and sample.ticks is not None:
            simulation.ticks(sample.ticks, element)
        else:
            simulation.messages(array, element)

    def _chat(self, place: Element) -> None:
        """Add a message of tau-bench, which is one of the Chat Completions API."""
        draft = chat_message(place, SENT)
        if isinstance(draft, Skipped):
            self.transcript.event(draft)
            return
        by_tool = (isinstance(block, Text) and block.text.startswith(PRINTED) for block in draft.blocks)
        if draft.role is Role.USER:
            blocks = (
                replace(block, origin=Origin.TOOL) if tool else block for block, tool in zip(draft.blocks, by_tool, strict=True)
            )
            draft = replace(draft, blocks=tuple(blocks))
        self.transcript.draft(replace(draft, line=place.line))


def _is_system(raw: bytes) -> bool:
    try:
        return decode(raw, _System).role == "system"
    except DamagedJson:
        return False


class _Simulation:
    """One simulation of tau2-bench as the agent under test saw it; `policy` is the draft of its system prompt, if any."""

    def __init__(self, transcript: TranscriptBuilder, policy: int | None) -> None:
        self.transcript = transcript
        self.policy = policy
        self.first = transcript.count  # the number of the first message after the policy
        self.dropped = 0
        self.user_spoke = False
        self.made_ids = 0
        self.unanswered: deque[str] = deque()
        self.speaking: tuple[str, Element, str | float | None] | None = None  # of a spoken simulation: who, since where and when
        self.words: list[str] = []  # since then

    def messages(self, array: list[Raw], outer: Element) -> None:
        for element, message in self.transcript.inside(array, outer, _TauMessage, "message"):
            if message.tool_messages is None:
                self._message(element, message)
            else:  # those of several tools
                for item in self.transcript.inside(message.tool_messages, element, _TauMessage, "message"):
                    self._message(*item)

    def ticks(self, array: list[Raw], outer: Element) -> None:
        """Add a spoken simulation: what a side says in a row is a draft, until the other speaks or a tool is called."""
        self.user_spoke = True  # a greeting is spoken by the model
        for element, tick in self.transcript.inside(array, outer, _Tick, "tick"):
            if tick.user_tool_calls or tick.user_tool_results:
                self.transcript.skip(USERS_TOOLS, element.size, element.line)
            for role, chunk in (("assistant", tick.agent_chunk), ("user", tick.user_chunk)):
                if chunk is not None and chunk.content:
                    if self.speaking is not None and self.speaking[0] != role:
                        self._utterance()
                    self.speaking = self.speaking or (role, element, chunk.timestamp or tick.timestamp)
                    self.words.append(chunk.content)
            if tick.agent_tool_calls:
                self._utterance(element, tick.agent_tool_calls)
            for result in tick.agent_tool_results or ():
                self._message(element, result)
        self._utterance()

    def _message(self, element: Element, message: _TauMessage) -> None:
        transcript = self.transcript
        transcript.here(element.line, element.size, message.timestamp)
        match message.role:
            case "assistant":
                self._truncate(message)
                self._answer(message)
            case "user" | "tool" if message.requestor == "user" or (message.role == "user" and message.tool_calls):
                transcript.skip(USERS_TOOLS)
            case "user":
                self.user_spoke = True
                transcript.text(Role.USER, message.words, Origin.HUMAN)
            case "tool":  # the call that it answers; those without ids are answered in their order
                call_id = message.id or message.tool_call_id or (self.unanswered.popleft() if self.unanswered else "")
                result = ToolResult(call_id=call_id, text=message.content or "", error=bool(message.error))
                transcript.add(Role.TOOL, (result,))
            case "system":
                transcript.text(Role.SYSTEM, message.words)
            case role:
                transcript.skip(f"message of a role unknown to this version: {role!r}")

    def _answer(self, message: _TauMessage) -> None:
        raw = message.raw_data or _RawData()
        if bytes(raw.thinking_blocks) != b"null" or (raw.message is not None and raw.message.reasoning_content):
            self.transcript.skip("reasoning in a raw response: not sent back to the model", 0)
        greeting = not self.user_spoke and message.usage is None and not message.tool_calls  # written into the benchmark
        words = texts((message.words, Origin.HARNESS if greeting else Origin.MODEL))
        calls = (ToolCall(call_id=self._id(call), name=call.tool, arguments=call.sent) for call in message.tool_calls or ())
        model = "" if greeting else raw.model or self.transcript.model
        self.transcript.add(Role.ASSISTANT, (*words, *calls), model=model, usage=message.usage and message.usage.usage)

    def _truncate(self, message: _TauMessage) -> None:
        """For this call the oldest messages were left out; they stay out, since the conversation only grows."""
        dropped = (message.context_truncation and message.context_truncation.messages_dropped) or 0
        if dropped > self.dropped:
            self.dropped = dropped
            kept = () if self.policy is None else (self.policy,)
            self.transcript.rewrite("oldest messages left out", min(self.first + dropped, self.transcript.count), kept)

    def _utterance(self, at: Element | None = None, calls: list[LoggedCall] | None = None) -> None:
        """Add what was said in a row, with the calls that the agent made then."""
        if calls and self.speaking is not None and self.speaking[0] == "user":
            self._utterance()
        role, element, timestamp = self.speaking or ("assistant", at, None)
        words, self.words, self.speaking = "".join(self.words), [], None
        if element is not None and (words or calls):
            self._message(element, _TauMessage(role, words, tool_calls=calls, timestamp=timestamp))

    def _id(self, call: LoggedCall) -> str:
        """The id of a call, made up where it has none; the count of drafts tells simulations of one file apart."""
        if call.call_id:
            return call.call_id
        self.made_ids += 1
        self.unanswered.append(f"call-{self.transcript.count}-{self.made_ids}")
        return self.unanswered[-1]
