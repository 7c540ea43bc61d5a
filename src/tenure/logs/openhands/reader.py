"""OpenHands' sessions: `output.jsonl` of a benchmark or of the resolver (one sample per line), an exported trajectory, or the events alone.

Events of version 0 have an `action` or an `observation`, those of version 1 a `kind`; what each shows to the model is decided in `v0`
and `v1`. The patch, scores and the instruction, which repeats the first message, are left out. What a delegate of version 0 did
stands between the delegation and its result, and is a conversation of its own; in version 1 it is in other files, and a branch that
was abandoned is left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.logs.json_files import Element, decoded, first_keys, inside, samples
from tenure.logs.openhands.conversation import EventId, OpenHandsConversation, RunSettings
from tenure.logs.openhands.v0 import EventsV0, EventV0, delegation
from tenure.logs.openhands.v1 import EventsV1, EventV1
from tenure.logs.parts import Tokens
from tenure.logs.reader import Event, Skipped
from tenure.logs.salvage import DamagedJson, decode, salvage
from tenure.logs.shape import bare, first, keys, member, opening
from tenure.logs.transcript import TranscriptBuilder, branch

ALLOWED: Final = "an OpenHands session: objects with a `history`, a `trajectory` or `events`, or the events themselves"

ROW: Final = frozenset({"instance_id", "instruction", "metadata", "test_result"})  # keys of a benchmark's line
ISSUE: Final = frozenset({"issue", "issue_type", "instruction", "base_commit", "git_patch", "pr_review"})  # and of the resolver's
LISTS: Final = ("history", "trajectory", "events", "items")  # keys that hold the events of a sample
MAIN: Final = ""
DELEGATE: Final = "delegate"  # the action that starts a sub-agent, and the observation that ends it
ROOT: Final = "__root__"  # the parent of an event that has none

_KIND: Final = re.compile(rb'"kind"\s*:\s*"[\w.]*(Event|Observation|Condensation\w*)"')
_V0: Final = ({"args"}, {"extras"}, {"source", "message"})  # what stands beside `action` or `observation`
_V1: Final = frozenset({"id", "timestamp", "source"})
_V1_LONG: Final = frozenset({"llm_message", "system_prompt", "tool_call_id"})  # the kind may stand behind them, out of sight


class _Llm(Struct, frozen=True, gc=False):
    model: str | None = None
    max_message_chars: int | None = None


class _AgentConfig(Struct, frozen=True, gc=False):
    enable_prompt_extensions: bool | None = None


class _RunMetadata(Struct, frozen=True, gc=False):
    llm_config: _Llm | None = None
    llm: _Llm | None = None
    agent_config: _AgentConfig | None = None


class _RunMetrics(Struct, frozen=True, gc=False):
    token_usages: list[Tokens] | None = None


class _TestResult(Struct, frozen=True, gc=False):
    git_patch: str | None = None


class _OpenHandsRow(Struct, frozen=True, gc=False):
    """A sample, or an event by itself."""

    history: list[Raw] | None = None
    trajectory: list[Raw] | None = None
    events: list[Raw] | None = None
    items: list[Raw] | None = None
    instruction: str | None = None
    metadata: _RunMetadata | None = None
    metrics: _RunMetrics | None = None
    test_result: _TestResult | None = None
    kind: str | None = None
    action: Raw = Raw(b"")
    observation: Raw = Raw(b"")

    def settings(self, task: str) -> RunSettings:
        metadata = self.metadata or _RunMetadata()
        llm = metadata.llm_config or metadata.llm or _Llm()
        extensions = (metadata.agent_config or _AgentConfig()).enable_prompt_extensions
        patched = self.test_result is not None and self.test_result.git_patch is not None
        usages = (self.metrics and self.metrics.token_usages) or ()
        return RunSettings(
            task=task,
            model=llm.model or "",
            longest=llm.max_message_chars,
            # Where the metadata is silent: the benchmarks that end in a patch (SWE-bench and its like) turn extensions off.
            recalls=not patched if extensions is None else extensions,
            usages={usage.response_id: usage.usage for usage in usages if usage.response_id},
        )


class _EventProbe(Struct, frozen=True, gc=False):
    kind: str | None = None
    id: EventId | None = None
    parent_id: str | None = None


class OpenHands:
    """Reads OpenHands' events, of both versions."""

    name = "openhands"

    def recognises(self, head: bytes) -> bool:
        """Whether the first event has the keys of one of the versions, or a line of `output.jsonl` those of its own."""
        start = bare(head)
        start = first(start) if opening(start) == "[" else start
        held = (first(member(start, name)) for name in LISTS)
        starts = (first(one) if opening(one) == "[" else one for one in (start, *held))
        return any(_is_event(one) for one in starts) or set(first_keys(head)) >= ROW or _is_issue(head)

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order, sample after sample; then the sub-agents."""
        return _OpenHandsReading(MAIN).events(chunks)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of a sub-agent."""
        return _OpenHandsReading(agent).events(chunks)


def _is_event(start: bytes) -> bool:
    found = set(keys(start))
    if "kind" in found:
        return found >= _V1 or ("source" in found and _KIND.search(start) is not None)
    if found >= _V1 and _V1_LONG & found:
        return True
    return ("action" in found) != ("observation" in found) and any(marks <= found for marks in _V0)


def _is_issue(head: bytes) -> bool:
    """Whether a line is the resolver's; a long issue may fill the head."""
    top, issue = first_keys(head), keys(member(bare(head), "issue"))
    return top[:1] == ("issue",) and (len(ISSUE & set(top)) > 2 or {"owner", "repo", "number", "title"} <= set(issue))


class _OpenHandsReading:
    """One pass over one file; `agent` names the sub-agent to be read instead of the main conversations."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.delegates = 0
        self.transcript = TranscriptBuilder()
        self._open(RunSettings())

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        yield from self.transcript.each(samples(chunks, _OpenHandsRow, ALLOWED, "event"), self._row)
        self._close()
        yield from self.transcript.end() if self.agent == MAIN else self.transcript.take()

    def _row(self, element: Element, row: _OpenHandsRow) -> None:
        held = next((one for one in (row.history, row.trajectory, row.events, row.items) if one is not None), None)
        if held is not None:
            self._close()
            self.transcript.here(element.line, element.size)
            if self.agent == MAIN:
                self.transcript.restart()
            self._open(row.settings((row.instruction or "") if self.agent == MAIN else ""))
            for part in inside(held, element):
                self._guarded(part, lambda part=part: self._events(part))
            self._close()
        elif row.kind or bytes(row.action) or bytes(row.observation):
            self._guarded(element, lambda: self._event(element))
        else:
            self.transcript.skip("sample without events")

    def _open(self, settings: RunSettings) -> None:
        self.conversation = OpenHandsConversation(self.transcript, settings)
        self.v0, self.v1 = EventsV0(self.conversation), EventsV1(self.conversation)
        self.working = [MAIN]  # the delegates at work, the newest last
        self.seen: dict[EventId, int] = {}  # what each event with an id looked like
        self.tree: dict[str, Element] = {}  # events of version 1 that name their parents: which of them live is known at the end
        self.parents: dict[str, str | None] = {}
        self.newest: str | None = None

    def _close(self) -> None:
        for id_ in branch(self.parents, self.newest):
            self._of_v1(self.tree.pop(id_))
        for element in self.tree.values():
            self.transcript.skip("abandoned branch: event left by a rewind", element.size, element.line)
        self.tree, self.parents, self.newest = {}, {}, None
        self.v1.end()

    def _guarded(self, element: Element, read: Callable[[], None]) -> None:
        """Read something at an element, whose damage costs no more than that."""
        self.transcript.here(element.line, element.size)
        try:
            read()
        except DamagedJson as damage:
            self.transcript.lost(f"damaged event: found {damage.found}")

    def _events(self, element: Element) -> None:
        """An event, or an action with its observation, as the first releases wrote them."""
        if element.source[:1] != b"[":
            self._event(element)
            return
        for part in inside(decode(element.source, list[Raw]), element):
            self._guarded(part, lambda part=part: self._event(part))

    def _event(self, element: Element) -> None:
        probe: _EventProbe = salvage(element.source, _EventProbe).value
        if probe.id is not None:
            looks = hash(element.source)
            if self.seen.get(probe.id) == looks:
                self.transcript.skip("event that was there before")
                return
            self.seen[probe.id] = looks
        if probe.kind is None:
            self._of_v0(element)
        elif self.tree or probe.parent_id is not None:
            self._hold(element, probe)
        else:
            self._of_v1(element)

    def _hold(self, element: Element, probe: _EventProbe) -> None:
        """Keep an event of version 1 until it is known which branch lives; one without a parent follows the one before it."""
        id_ = str(probe.id or f"line {element.line}")
        if id_ not in self.tree:
            self.tree[id_] = element
            self.parents[id_] = None if probe.parent_id == ROOT else probe.parent_id or self.newest
        self.newest = id_

    def _of_v1(self, element: Element) -> None:
        for item in decoded((element,), EventV1, "event") if self.agent == MAIN else ():
            if isinstance(item, Skipped):
                self.transcript.event(item)
            else:
                self._guarded(item[0], lambda event=item[1]: self.v1.read(event))

    def _of_v0(self, element: Element) -> None:
        """An event of version 0, for whoever is at work."""
        for item in decoded((element,), EventV0, "event"):
            if isinstance(item, Skipped):
                if self.working[-1] == self.agent:
                    self.transcript.event(item)
                continue
            event = item[1]
            if event.observation == DELEGATE and len(self.working) > 1:
                self.working.pop()
            at_work = self.working[-1]
            if at_work == self.agent:
                self._guarded(item[0], lambda event=event: self.v0.read(event))
            self.transcript.here(item[0].line, item[0].size)
            if at_work != MAIN:
                self.transcript.agent(at_work)
            if event.action == DELEGATE:
                self._delegate(event)

    def _delegate(self, event: EventV0) -> None:
        """All events from here to the result are the delegate's."""
        agent, task = delegation(event)
        self.delegates += 1
        name = f"{agent or DELEGATE}-{self.delegates}"
        self.transcript.begin_agent(name, task)
        self.working.append(name)
        if name == self.agent:
            self.conversation.settings = replace(self.conversation.settings, task=task)
