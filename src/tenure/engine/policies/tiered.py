"""Tiered context.

"Escaping Context Amnesia" (the tiered context text): duplicates and superseded reads, then the input guard (head and tail of large old
results), then placeholders that say what to do (but never for essential tools, and of some tools the newest stays), then the middle of
the conversation. Its last tier, handoff, is a planner's. The newest turns are left alone in all of them.

Departures, each a setting: of duplicates the latest stays, not the first; the text's protected 40k and least saving of 20k are at most
`protect_share` and `minimum_share` of the limit, so that they mean something below 200k; arguments of failed and of large calls go too. The text
protects two turns "regardless of their size"; here what is protected is at most `protected_share` of the limit, and a limit that forces and cannot
be kept otherwise takes of it, and of essential tools, what it needs.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec
from msgspec import Raw, Struct, structs

from tenure.engine.clip.cut import cut
from tenure.engine.policies.peers import results
from tenure.engine.policies.placeholder import cleared, is_note, superseded, trimmed
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin
from tenure.engine.record.index import NONE, Span
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import Act, ToolKind, is_delimiter, tools_that
from tenure.engine.view.action import Action, Shorten, Take

ESSENTIAL: Final = frozenset(
    "delimiter todowrite todo_write update_plan write_todos skill read_skill schema_inspection database_structure describe_table"
    " get_schema askuserquestion ask_user question exitplanmode".split()
)
LATEST_ONLY: Final = frozenset(
    "todoread todo_read saved_state current_config get_current_state git_status browser_snapshot browser_take_screenshot"
    " get_editor_state list_tabs".split()
)
READS: Final = tools_that(Act.READ)

LONG_ARGUMENT: Final = 400  # characters of one argument that is worth clearing
LARGE: Final = 1.5  # times head and tail together: a result that is worth cutting
NOTE: Final = 50  # tokens that a placeholder weighs, about
CHUNK: Final = 8  # steps of the middle that leave together and share a pointer


_members: Final = msgspec.json.Decoder(dict[str, Raw])


class Tiered(Struct, frozen=True, kw_only=True):
    """The policy; thresholds are shares of the limit (0 to 1), sizes o200k tokens."""

    name: str = "tiered"
    placeholders_above: float = 0.7
    middle_above: float = 0.85
    head: int = 500
    tail: int = 1_500
    turns: int = 2  # newest human turns that are left alone; of a run with one prompt, as many steps
    protect: int = 40_000  # newest results that are left alone
    protect_share: float = 0.25
    protected_share: float = 0.5  # what turns, steps and results that are left alone may weigh together
    minimum: int = 20_000  # what a tier must save to be worth a broken prefix
    minimum_share: float = 0.1
    steps: int = 8  # newest steps left alone where there is one prompt only
    essential: frozenset[str] = ESSENTIAL
    latest_only: frozenset[str] = LATEST_ONLY
    conduct: Conduct = Conduct()

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """The tiers in order, oldest first in each. O(view) and the texts of what is shortened."""
        walk = _Walk(self, situation)
        least = min(self.minimum, int(situation.limit * self.minimum_share))
        yield from _tier([*walk.duplicates(), *walk.trims()], least, 0)
        yield from _tier([*walk.arguments(), *walk.placeholders()], 0, int(situation.limit * self.placeholders_above))
        yield from walk.middle(int(situation.limit * self.middle_above))
        spared = _Walk(structs.replace(self, essential=frozenset(), turns=0, steps=1, protect=0), situation)
        for action in (*_tier([*spared.trims(), *spared.placeholders()], 0, 0), *spared.middle(0)):
            yield structs.replace(action, reluctant=True)


class _Step(Struct, frozen=True):
    """Something a tier could do: about what it saves, and how it is said once it is wanted."""

    saves: int
    action: Callable[[], Shorten]


def _tier(steps: list[_Step], least: int, above: int) -> Iterator[Shorten]:
    """The steps of a tier while the view is above a size, unless all together save too little to be worth a broken prefix."""
    if sum(step.saves for step in steps) < least:
        return
    for step in steps:
        yield structs.replace(step.action(), above=above)


class _Walk:
    """One pass: which results may be touched, and what would stand for them."""

    def __init__(self, policy: Tiered, situation: Situation) -> None:
        self._policy, self._situation = policy, situation
        shown = results(situation)
        self._stop = self._protected_from(shown)
        states = [span for span in shown if tool_name(span.tool) in policy.latest_only]
        by_tool = {span.tool: span.ordinal for span in sorted(states, key=lambda span: (not span.error, span.ordinal))}
        self._latest = frozenset(by_tool.values())  # of each tool that shows a state the newest result that did not fail
        self._spans = [span for span in shown if self._may(span)]
        self._notes = situation.index.notes.spans
        self._newest = {self._what(span): span for span in shown if not span.error}

    def duplicates(self) -> Iterator[_Step]:
        """Results of a call that was made again with the same arguments: the latest stays."""
        for span in self._spans:
            newest = self._newest.get(self._what(span), span)
            if newest.ordinal <= span.ordinal or self._is_noted(span):
                continue
            same = self._text(_result(span)) == self._text(_result(newest))
            again = tool_name(span.tool) in READS | self._policy.latest_only or span.ordinal in self._notes
            if same or again or span.kind is ToolKind.BULK:
                yield _Step(self._weight(span) - NOTE, partial(self._superseded, span, newest, same=same))

    def trims(self) -> Iterator[_Step]:
        """Head and tail of large results."""
        room = self._policy.head + self._policy.tail
        for span in self._spans:
            if (weight := self._weight(span)) > LARGE * room:
                yield _Step(weight - room - NOTE, partial(self._trimmed, span))

    def placeholders(self) -> Iterator[_Step]:
        """What to do instead of the result."""
        for span in self._spans:
            if not self._is_noted(span):
                yield _Step(self._weight(span) - NOTE, partial(self._cleared, span))

    def arguments(self) -> Iterator[_Step]:
        """The long arguments of calls: what was written stands in the file, what failed was not done."""
        for span in self._spans:
            weight, handle = self._situation.view.weight(*span.call), self._handle(span)
            if weight * 4 > LONG_ARGUMENT and (text := _without_long(self._text(span.call), handle)):
                action = Shorten(span=span.ordinal, how="clear", text=text, routes=(handle,), part="arguments")
                yield _Step(weight - len(text) // 4, partial(_same, action))

    def _superseded(self, span: Span, newest: Span, *, same: bool) -> Shorten:
        handle, later = self._handle(span), self._handle(newest)
        text = superseded(handle, span.cue, later, same=same)
        return Shorten(span=span.ordinal, how="dedupe", text=text, routes=(handle, later))

    def _trimmed(self, span: Span) -> Shorten:
        start, end, left_out = cut(self._text(_result(span)), self._policy.head, self._policy.tail, self._situation.count)
        handle = self._handle(span)
        text = f"{start}\n{trimmed(handle, left_out)}\n{end}" if left_out else start
        return Shorten(span=span.ordinal, how="trim", text=text, routes=(handle,))

    def _cleared(self, span: Span) -> Shorten:
        handle, failed = self._handle(span), self._text(_result(span)) if span.error else ""
        whole = self._situation.index.block(_result(span)).tokens  # be it shown clipped or trimmed
        text = cleared(handle, span.cue, span.tool, span.kind, whole, failed)
        return Shorten(span=span.ordinal, how="clear", text=text, routes=(handle,))

    def middle(self, above: int) -> Iterator[Take]:
        """Steps from the middle outwards, a few at a time, each batch under one pointer."""
        index = self._situation.index
        steps: dict[int, list[At]] = {}
        for row in self._situation.view.rows():
            facts = index.entries[row.entry]
            if row.entry < self._stop and facts.step:
                places = [(row.entry, block) for block in row.blocks if not self._stays(facts.blocks[block].span)]
                steps.setdefault(facts.step, []).extend(places)
        numbers = [number for number, places in steps.items() if places]
        chunks = [numbers[at : at + CHUNK] for at in range(0, len(numbers), CHUNK)]
        for chunk in sorted(chunks, key=lambda chunk: abs(chunk[0] - numbers[len(numbers) // 2])):
            places = tuple(at for number in chunk for at in steps[number])
            handles = tuple(f"entry:{entry}" for entry in (places[0][0], places[-1][0]))
            pointer = (
                f"[{len(chunk)} steps from the middle of the conversation left, {handles[0]} to {handles[1]}; recall finds what was "
                "said and read there by handle, path or words]"
            )
            yield Take(
                how="prune",
                object=handles[0],
                places=places,
                pointer=pointer,
                before_entry=places[-1][0] + 1,
                routes=handles,
                above=above,
            )

    def _protected_from(self, shown: list[Span]) -> int:
        """The first entry that is left alone: of the newest turns, the newest steps and the newest results together the oldest."""
        index, policy, limit = self._situation.index, self._policy, self._situation.limit
        if 0 < policy.turns < len(index.turns):
            start = index.turns[-policy.turns].start[0]
        else:
            start = index.steps[-policy.steps].entry if len(index.steps) > policy.steps else 0
        spared = min(policy.protect, int(limit * policy.protect_share))
        for span in reversed(shown):
            spared -= self._weight(span)
            if spared < 0:
                break
            start = min(start, span.call[0])
        if not limit or not index.steps:
            return start
        return min(max(start, self._newest_of(int(limit * policy.protected_share))), index.steps[-1].entry)

    def _newest_of(self, room: int) -> int:
        """The first entry of those at the end of the view that, human words apart, together weigh at most `room` o200k tokens."""
        index, view = self._situation.index, self._situation.view
        for row in reversed(list(view.rows())):
            facts = index.entries[row.entry].blocks
            room -= sum(view.weight(row.entry, block) for block in row.blocks if facts[block].origin is not Origin.HUMAN)
            if room < 0:
                return row.entry + 1
        return 0

    def _may(self, span: Span) -> bool:
        at = _result(span)
        may = at[0] < self._stop and not is_delimiter(span.tool) and not self._stays(span.ordinal)
        return may and self._situation.is_free(at)

    def _stays(self, ordinal: int) -> bool:
        """Whether a call is of an essential tool, or shows a state as it is now."""
        if ordinal == NONE:
            return False
        return ordinal in self._latest or tool_name(self._situation.index.spans[ordinal].tool) in self._policy.essential

    def _what(self, span: Span) -> tuple[str, str]:
        return tool_name(span.tool), "" if span.ordinal in self._notes else self._text(span.call)

    def _text(self, at: At) -> str:
        return self._situation.read(at[0]).blocks[at[1]].text

    def _is_noted(self, span: Span) -> bool:
        """Whether a placeholder stands for it already: another would only break the prefix again."""
        shown = self._situation.view.instead(*_result(span))
        return shown is not None and is_note(shown.text)

    def _weight(self, span: Span) -> int:
        return self._situation.view.weight(*_result(span))

    def _handle(self, span: Span) -> str:
        return self._situation.index.handle(span.object, span.call[0])


def _result(span: Span) -> At:
    assert span.result is not None, "only calls with results are walked"
    return span.result


def _same(action: Shorten) -> Shorten:
    return action


def _without_long(arguments: str, handle: str) -> str:
    """The arguments with a note for each long text among them; empty when there is none, or they are no object."""
    try:
        members = _members.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    short = {key: bytes(value).decode("utf-8", "replace") for key, value in members.items()}
    long = [key for key, value in short.items() if value.startswith('"') and len(value) > LONG_ARGUMENT]
    for key in long:
        short[key] = _json(f"[{len(short[key]):,} characters cleared; recall {handle} shows them]")
    return "{" + ", ".join(f"{_json(key)}: {value}" for key, value in short.items()) + "}" if long else ""


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()
