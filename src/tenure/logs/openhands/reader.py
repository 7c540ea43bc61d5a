"""OpenHands' sessions: a benchmark's `output.jsonl` (one sample per line), an exported trajectory, or the events by themselves.

Events of version 0 have an `action` or an `observation`, those of version 1 a `kind`; what each shows to the model is decided in
`openhands_events` and `openhands_sdk`. The patch, scores and the instruction, which repeats the first message, are left out. What a
delegate of version 0 did stands between the delegation and its result, and is a conversation of its own; in version 1 it is in
other files, and a branch that was abandoned is left out.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.logs.document import Element, decoded
from tenure.logs.glimpse import first, member
from tenure.logs.mend import Damaged, decode
from tenure.logs.openhands.event import Args, EventV0
from tenure.logs.openhands.events import Events
from tenure.logs.openhands.reply import Tokens
from tenure.logs.openhands.sdk import EventV1, SdkEvents
from tenure.logs.openhands.story import EventId, Settings, Story
from tenure.logs.reader import Agent, Event, Rewritten, Skipped
from tenure.logs.salvage import salvage
from tenure.logs.samples import first_keys, inside, samples
from tenure.logs.shape import bare, keys, opening
from tenure.logs.tally import Tally
from tenure.logs.tree import branch
from tenure.logs.window import Window

NAME: Final = "openhands"
ALLOWED: Final = "an OpenHands session: objects with a `history`, a `trajectory` or `events`, or the events themselves"

ROW: Final = frozenset({"instance_id", "instruction", "metadata", "test_result"})  # keys of a benchmark's line
LISTS: Final = ("history", "trajectory", "events", "items")  # keys that hold the events of a sample
MAIN: Final = ""
DELEGATE: Final = "delegate"  # the action that starts a sub-agent, and the observation that ends it
ROOT: Final = "__root__"  # the parent of an event that has none
TASK: Final = 500  # characters kept of what a sub-agent was asked

AGAIN: Final = "event that was there before"
NO_EVENTS: Final = "sample without events"
ABANDONED: Final = "abandoned branch: event left by a rewind"

_KIND: Final = re.compile(rb'"kind"\s*:\s*"[\w.]*(Event|Observation|Condensation\w*)"')
_V0: Final = ({"args"}, {"extras"}, {"source", "message"})  # what stands beside `action` or `observation`
_V1: Final = frozenset({"id", "timestamp", "source"})
_V1_LONG: Final = frozenset({"llm_message", "system_prompt", "tool_call_id"})  # the kind may stand behind them, out of sight


class _Llm(Struct, frozen=True, gc=False):
    model: str | None = None
    max_message_chars: int | None = None


class _AgentConfig(Struct, frozen=True, gc=False):
    enable_prompt_extensions: bool | None = None


class _Metadata(Struct, frozen=True, gc=False):
    llm_config: _Llm | None = None
    llm: _Llm | None = None
    agent_config: _AgentConfig | None = None


class _Metrics(Struct, frozen=True, gc=False):
    token_usages: list[Tokens] | None = None


class _TestResult(Struct, frozen=True, gc=False):
    git_patch: str | None = None


class _Row(Struct, frozen=True, gc=False):
    """A sample, or an event by itself."""

    history: list[Raw] | None = None
    trajectory: list[Raw] | None = None
    events: list[Raw] | None = None
    items: list[Raw] | None = None
    instruction: str | None = None
    metadata: _Metadata | None = None
    metrics: _Metrics | None = None
    test_result: _TestResult | None = None
    kind: str | None = None
    action: Raw = Raw(b"")
    observation: Raw = Raw(b"")

    @property
    def is_event(self) -> bool:
        return bool(self.kind or bytes(self.action) or bytes(self.observation))

    @property
    def settings(self) -> Settings:
        metadata = self.metadata or _Metadata()
        llm = metadata.llm_config or metadata.llm or _Llm()
        extensions = (metadata.agent_config or _AgentConfig()).enable_prompt_extensions
        patched = self.test_result is not None and self.test_result.git_patch is not None
        usages = (self.metrics and self.metrics.token_usages) or ()
        return Settings(
            task=self.instruction or "",
            model=llm.model or "",
            longest=llm.max_message_chars,
            # Where the metadata is silent: the benchmarks that end in a patch (SWE-bench and its like) turn extensions off.
            recalls=not patched if extensions is None else extensions,
            usages={usage.response_id: usage.usage for usage in usages if usage.response_id},
        )


class _Probe(Struct, frozen=True, gc=False):
    kind: str | None = None
    id: EventId | None = None
    parent_id: str | None = None


_row: Final = msgspec.json.Decoder(_Row)
_probe: Final = msgspec.json.Decoder(_Probe)
_pair: Final = msgspec.json.Decoder(list[Raw])
_v0: Final = msgspec.json.Decoder(EventV0)
_v1: Final = msgspec.json.Decoder(EventV1)
_args: Final = msgspec.json.Decoder(Args)


class OpenHands:
    """Reads OpenHands' events, of both versions."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the first event has the keys of one of the versions, or a benchmark's line those of its own."""
        start = bare(head)
        start = first(start) if opening(start) == "[" else start
        held = (first(member(start, name)) for name in LISTS)
        starts = (first(one) if opening(one) == "[" else one for one in (start, *held))
        return any(_is_event(one) for one in starts) or set(first_keys(head)) >= ROW

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order, sample after sample; then the sub-agents."""
        return _Reading().events(chunks)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of a sub-agent."""
        return _Reading(agent).events(chunks)


def _is_event(start: bytes) -> bool:
    found = set(keys(start))
    if "kind" in found:
        return found >= _V1 or ("source" in found and _KIND.search(start) is not None)
    if found >= _V1 and _V1_LONG & found:
        return True
    return ("action" in found) != ("observation" in found) and any(marks <= found for marks in _V0)


class _Reading:
    """One pass over one file; `agent` names the sub-agent to be read instead of the main conversations."""

    def __init__(self, agent: str = MAIN) -> None:
        self.agent = agent
        self.agents: dict[str, Agent] = {}
        self.tally = Tally()
        self.window = Window()
        self._open(Settings())

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        for found in samples(chunks, _row, ALLOWED, "event"):
            if isinstance(found, Skipped):
                yield found
                continue
            element, row = found
            held = next((one for one in (row.history, row.trajectory, row.events, row.items) if one is not None), None)
            if held is not None:
                yield from self._sample(element, row, held)
            elif row.is_event:
                yield from self._event(element)
            else:
                self.tally.add(NO_EVENTS, element.line, len(element.faithful))
        yield from self._close()
        if self.agent == MAIN:
            yield from self.tally.skipped()
            yield from self.agents.values()

    def _sample(self, element: Element, row: _Row, held: list[Raw]) -> Iterator[Event]:
        yield from self._close()
        if self.window.count and self.agent == MAIN:
            yield Rewritten(reason="new sample", line=element.line, drop_before=self.window.clear())
        self._open(row.settings if self.agent == MAIN else replace(row.settings, task=""))
        for part in inside(held, element):
            yield from self._pair(part) if part.source[:1] == b"[" else self._event(part)
        yield from self._close()

    def _pair(self, element: Element) -> Iterator[Event]:
        """An action with its observation, as the first releases wrote them."""
        try:
            pair = decode(element.source, _pair)
        except Damaged as damage:
            yield Skipped(line=element.line, bytes=len(element.faithful), reason=f"damaged event: found {damage.found}")
            return
        for part in inside(pair, element):
            yield from self._event(part)

    def _open(self, settings: Settings) -> None:
        """Begin a conversation."""
        self.story = Story(self.window, self.tally, settings)
        self.v0, self.v1 = Events(self.story), SdkEvents(self.story)
        self.working = [MAIN]  # the delegates at work, the newest last
        self.seen: dict[EventId, int] = {}  # what each event with an id looked like
        self.tree: dict[str, Element] = {}  # events of version 1 that name their parents: which of them live is known at the end
        self.parents: dict[str, str | None] = {}
        self.newest: str | None = None

    def _close(self) -> Iterator[Event]:
        """End a conversation."""
        for id_ in branch(self.parents, self.newest) if self.newest is not None else ():
            yield from self._v1(self.tree.pop(id_))
        for element in self.tree.values():
            self.tally.add(ABANDONED, element.line, len(element.faithful))
        self.tree, self.parents, self.newest = {}, {}, None
        yield from self.v1.end()

    def _event(self, element: Element) -> Iterator[Event]:
        try:
            probe: _Probe = salvage(element.source, _probe).value
        except Damaged as damage:
            yield Skipped(line=element.line, bytes=len(element.faithful), reason=f"damaged event: found {damage.found}")
            return
        if probe.id is not None:
            looks = hash(element.source)
            if self.seen.get(probe.id) == looks:
                self.tally.add(AGAIN, element.line, len(element.faithful))
                return
            self.seen[probe.id] = looks
        if probe.kind is None:
            yield from self._v0(element)
        elif self.tree or probe.parent_id is not None:
            self._hold(element, probe)
        else:
            yield from self._v1(element)

    def _hold(self, element: Element, probe: _Probe) -> None:
        """Keep an event of version 1 until it is known which branch lives; one without a parent follows the one before it."""
        id_ = str(probe.id or f"line {element.line}")
        if id_ not in self.tree:
            self.tree[id_] = element
            self.parents[id_] = None if probe.parent_id == ROOT else probe.parent_id or self.newest
        self.newest = id_

    def _v1(self, element: Element) -> Iterator[Event]:
        for found in decoded((element,), _v1, "event"):
            if self.agent == MAIN:
                yield from (found,) if isinstance(found, Skipped) else self.v1.take(*found)

    def _v0(self, element: Element) -> Iterator[Event]:
        for found in decoded((element,), _v0, "event"):
            if not isinstance(found, Skipped):
                yield from self._told(*found)
            elif self.working[-1] == self.agent:
                yield found

    def _told(self, element: Element, event: EventV0) -> Iterator[Event]:
        """An event of version 0, to whoever is at work."""
        if event.observation == DELEGATE and len(self.working) > 1:
            self.working.pop()
        at_work = self.working[-1]
        if at_work == self.agent:
            yield from self.v0.take(element, event)
        if at_work != MAIN:
            known = self.agents[at_work]
            self.agents[at_work] = replace(known, messages=known.messages + 1, bytes=known.bytes + len(element.faithful))
        if event.action == DELEGATE:
            self._delegate(element, event)

    def _delegate(self, element: Element, event: EventV0) -> None:
        """All events from here to the result are the delegate's."""
        try:
            args: Args = salvage(bytes(event.args), _args).value
        except Damaged:
            args = Args()
        name = f"{args.agent or DELEGATE}-{len(self.agents) + 1}"
        self.agents[name] = Agent(id=name, line=element.line, messages=0, task=args.task[:TASK])
        self.working.append(name)
        if name == self.agent:
            self.story.settings = replace(self.story.settings, task=args.task)
