"""Tiered context.

"Escaping Context Amnesia" (the tiered context text): the input guard (head and tail of large old results) with Cline's duplicate reads, then placeholders
that say what to do (but never for essential tools, and of some tools the newest stays), then the middle of the conversation, for which a summary stays. Its
last tier, handoff, is a planner's. The newest turns are left alone in all of them.

`tiered@60/70/85` is the text's cascade: it begins at 60 % of the window, each tier is carried out whole, and the next follows while the view is above
70 and 85 %. `tiered` alone begins at the budget's limit, takes 70 and 85 % of that, and stops as soon as the floor is reached.

Departures, each a setting: of duplicates the latest stays, not the first; the text's protected 40k and least saving of 20k are at most
`protect_share` and `minimum_share` of the limit, so that they mean something below 200k; arguments of failed and of large calls go too. The text
protects two turns "regardless of their size"; here no fewer than the newest `steps`, be the turns ever so short, and at most `protected_share` of the limit;
a limit that forces and cannot be kept otherwise takes of it, and of essential tools, what it needs.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Raw, Struct, structs

from tenure.engine.clip.cut import cut
from tenure.engine.policies.peers import results
from tenure.engine.policies.placeholder import Later, cleared, is_note, superseded, trimmed
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin
from tenure.engine.record.index import NONE, Span
from tenure.engine.record.objects import tool_name
from tenure.engine.record.quotation import cited
from tenure.engine.record.tools import ACTS, Act, ToolKind, is_delimiter, tools_that
from tenure.engine.view.action import Action, Shorten, Take
from tenure.errors import InputError

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
NAMES: Final = 5  # files and commands that the summary of a stretch names

_FORM: Final = (
    "shares of the window at which its tiers begin, such as tiered@60/70/85; with what the middle keeps, tiered@60/70/85,75/50"
)
_SHARES: Final = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{1,2})(?:,(\d{1,2})/(\d{1,2}))?", re.ASCII)
_DEEDS: Final = {  # what the summary of a stretch says was done, in this order
    "read": frozenset({Act.READ}),
    "changed": frozenset({Act.CREATE, Act.WRITE, Act.EDIT, Act.PATCH, Act.EDITOR, Act.DELETE}),
    "ran": frozenset({Act.RUN, Act.PROCESS}),
    "searched for": frozenset({Act.SEARCH, Act.LIST, Act.LOOK_UP, Act.SEARCH_WEB}),
    "fetched": frozenset({Act.FETCH}),
    "handed on": frozenset({Act.AGENT}),
}

_members: Final = msgspec.json.Decoder(dict[str, Raw])


class Tiered(Struct, frozen=True, kw_only=True):
    """The policy; thresholds are shares (0 to 1) of the limit, or of the window where `begins` is given, sizes o200k tokens."""

    name: str = "tiered"
    begins: float = 0.0  # of the window, where tier 1 begins; 0: at the limit
    placeholders_above: float = 0.7
    middle_above: float = 0.85
    head: int = 500
    tail: int = 1_500
    middle_keeps: tuple[
        float, ...
    ] = ()  # of the messages, what the middle leaves standing at its first and second step; none: as many as fit
    turns: int = 2  # newest human turns that are left alone
    protect: int = 40_000  # newest results that are left alone
    protect_share: float = 0.25
    protected_share: float = 0.5  # what turns, steps and results that are left alone may weigh together
    minimum: int = 20_000  # what a tier must save to be worth a broken prefix
    minimum_share: float = 0.1
    steps: int = 8  # newest steps left alone, be the newest turns ever so short
    essential: frozenset[str] = ESSENTIAL
    latest_only: frozenset[str] = LATEST_ONLY
    conduct: Conduct = Conduct()

    @classmethod
    def of_window(cls, shares: str) -> "Tiered":
        """The text's cascade: `60/70/85`, percent of the window at which its tiers begin; behind a comma, what the middle keeps. Raises InputError.

        What the middle keeps, in percent of the messages: 75/50 as the text has Cline's two steps, 50/25 as Cline's own code has them.
        """
        found = _SHARES.fullmatch(shares)
        numbers = [int(each) / 100 for each in found.groups() if each is not None] if found else []
        begins, tiers, keeps = numbers[:1], numbers[:3], numbers[3:]
        if not numbers or not 0 < tiers[0] <= tiers[1] <= tiers[2] or (keeps and not keeps[0] > keeps[1] > 0):
            raise InputError("policy", repr(f"tiered@{shares}"), _FORM)
        return cls(
            name=f"tiered@{shares}",
            begins=begins[0],
            placeholders_above=tiers[1],
            middle_above=tiers[2],
            middle_keeps=tuple(keeps),
            conduct=Conduct(amount="all", begins=begins[0]),
        )

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """The tiers in order, oldest first in each. O(view) and the texts of what is shortened."""
        walk = _Walk(self, situation)
        whole = situation.window if self.begins else situation.limit
        least = min(self.minimum, int(whole * self.minimum_share))
        shares = ((0.0, least), (self.placeholders_above, 0))
        tiers = ([*walk.duplicates(), *walk.trims(), *walk.other_parts()], [*walk.arguments(), *walk.placeholders()])
        left = situation.view.tokens
        for (share, wanted), steps in zip(shares, tiers, strict=True):
            above = int(whole * share)
            if self.begins and left <= above:
                return
            spares = sum(max(step.saves for step in same) for same in _by_place(steps))
            if spares >= wanted:
                left -= spares
                for step in steps:  # the text's tiers are carried out whole, ours as far as is wanted
                    yield structs.replace(step.action(), above=0 if self.begins else above)
        above = int(whole * self.middle_above)
        if not self.begins or left > above:
            yield from walk.middle(above if not self.begins or self.middle_keeps else int(whole * self.begins))
        spared = _Walk(structs.replace(self, essential=frozenset(), turns=0, steps=1, protect=0), situation)
        for action in (*[step.action() for step in (*spared.trims(), *spared.placeholders())], *spared.middle(0)):
            yield structs.replace(action, reluctant=True)


class _Step(Struct, frozen=True):
    """Something a tier could do: about what it saves, and how it is said once it is wanted."""

    at: tuple[int, str]  # the call, and which part of it
    saves: int
    action: Callable[[], Shorten]


def _by_place(steps: list[_Step]) -> Iterator[list[_Step]]:
    """The steps by what they shorten: of two the better counts."""
    places: dict[tuple[int, str], list[_Step]] = {}
    for step in steps:
        places.setdefault(step.at, []).append(step)
    yield from places.values()


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
        self._newest_read = {span.cue: span for span in shown if not span.error and self._is_read(span)}

    def duplicates(self) -> Iterator[_Step]:
        """Results of a call that was made again with the same arguments, and reads of a file that was read whole since: the latest stays."""
        for span in self._spans:
            newest = self._newest.get(self._what(span), span)
            read = self._newest_read.get(span.cue, span) if self._is_read(span) else span
            if read.ordinal > newest.ordinal and self._is_whole(read):
                newest = read
            if newest.ordinal <= span.ordinal or self._is_noted(span):
                continue
            same = self._text(_result(span)) == self._text(_result(newest))
            again = tool_name(span.tool) in READS | self._policy.latest_only or span.ordinal in self._notes
            if same or again or span.kind is ToolKind.BULK:
                yield self._step(
                    span, self._weight(span) - NOTE, partial(self._superseded, span, newest, "same" if same else "newer")
                )

    def other_parts(self) -> Iterator[_Step]:
        """Reads of a file of which another part was read since."""
        for span in self._spans:
            newest = self._newest_read.get(span.cue, span) if self._is_read(span) else span
            was_repeated = self._newest.get(self._what(span), span) is not span or self._is_whole(newest)
            if newest.ordinal > span.ordinal and not was_repeated and not self._is_noted(span):
                yield self._step(span, self._weight(span) - NOTE, partial(self._superseded, span, newest, "elsewhere"))

    def trims(self) -> Iterator[_Step]:
        """Head and tail of large results."""
        room = self._policy.head + self._policy.tail
        for span in self._spans:
            if (weight := self._weight(span)) > LARGE * room:
                yield self._step(span, weight - room - NOTE, partial(self._trimmed, span))

    def placeholders(self) -> Iterator[_Step]:
        """What to do instead of the result."""
        for span in self._spans:
            if not self._is_noted(span):
                yield self._step(span, self._weight(span) - NOTE, partial(self._cleared, span))

    def arguments(self) -> Iterator[_Step]:
        """The long arguments of calls: what was written stands in the file, what failed was not done."""
        for span in self._spans:
            weight, handle = self._situation.view.weight(*span.call), self._handle(span)
            if weight * 4 > LONG_ARGUMENT and (text := _without_long(self._text(span.call), handle)):
                action = Shorten(span=span.ordinal, how="clear", text=text, routes=(handle,), part="arguments")
                yield _Step((span.ordinal, "arguments"), weight - len(text) // 4, partial(_same, action))

    def _step(self, span: Span, saves: int, action: Callable[[], Shorten]) -> _Step:
        return _Step((span.ordinal, "result"), saves, action)

    def _superseded(self, span: Span, newest: Span, how: Later) -> Shorten:
        handle, later = self._handle(span), self._handle(newest)
        text = superseded(handle, span.cue, later, how)
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
        """Steps from the middle outwards, a few at a time, or down to the shares that are to stay; each batch under a summary of what was done."""
        index = self._situation.index
        steps: dict[int, list[At]] = {}
        shown = set[int]()
        for row in self._situation.view.rows():
            facts = index.entries[row.entry]
            shown.add(facts.step)
            if row.entry < self._stop and facts.step > 1:  # the first answer stays with the first question
                places = [(row.entry, block) for block in row.blocks if not self._stays(facts.blocks[block].span)]
                steps.setdefault(facts.step, []).extend(places)
        numbers = [number for number, places in steps.items() if places]
        for batch in self._batches(numbers, len(shown)):
            places = tuple(at for number in batch for at in steps[number])
            handles = tuple(f"entry:{entry}" for entry in (places[0][0], places[-1][0]))
            yield Take(
                how="prune",
                object=handles[0],
                places=places,
                pointer=self._summary(len(batch), places, handles),
                before_entry=places[-1][0] + 1,
                routes=handles,
                above=above,
            )

    def _batches(self, numbers: list[int], shown: int) -> Iterator[list[int]]:
        """The steps that leave together, the most central first."""
        if not self._policy.middle_keeps:
            chunks = [numbers[at : at + CHUNK] for at in range(0, len(numbers), CHUNK)]
            yield from sorted(chunks, key=lambda chunk: abs(chunk[0] - numbers[len(numbers) // 2]))
            return
        first = last = len(numbers) // 2
        for keeps in self._policy.middle_keeps:
            leave = min(len(numbers), int(shown * (1 - keeps)))
            start = max(0, min(len(numbers) // 2 - leave // 2, len(numbers) - leave))
            batches = [numbers[start : start + leave]] if first == last else [numbers[start:first], numbers[last : start + leave]]
            first, last = start, start + leave
            yield from filter(None, batches)  # of the second step, what stands beside the first

    def _summary(self, steps: int, places: Sequence[At], handles: tuple[str, ...]) -> str:
        """What was done in a stretch, by its calls: no model is asked."""
        index = self._situation.index
        ordinals = dict.fromkeys(span for at in places if (span := index.block(at).span) != NONE)
        spans = [index.spans[ordinal] for ordinal in ordinals]
        done: list[str] = []
        for deed, acts in _DEEDS.items():
            cues = Counter(span.cue for span in spans if ACTS.get(tool_name(span.tool)) in acts and span.cue)
            if cues:
                named = ", ".join(cited(cue) + (f" {times} times" if times > 1 else "") for cue, times in cues.most_common(NAMES))
                done.append(f"{deed} {named}" + (f" and {len(cues) - NAMES} more" if len(cues) > NAMES else ""))
        failed = [span for span in spans if span.error]
        if failed:
            calls = f"{len(failed)} calls failed, the last" if len(failed) > 1 else "this failed:"
            done.append(f"{calls} {cited(failed[-1].cue or failed[-1].tool)}")
        what = "; ".join(done) or "words only"
        return (
            f"[summary of {steps} steps from the middle of the conversation, {handles[0]} to {handles[1]}: {what}. recall finds what was "
            "said and read there by handle, path or words]"
        )

    def _protected_from(self, shown: list[Span]) -> int:
        """The first entry that is left alone: of the newest turns, the newest steps and the newest results together the oldest."""
        index, policy, limit = self._situation.index, self._policy, self._situation.limit
        start = index.steps[-policy.steps].entry if len(index.steps) > policy.steps else 0
        if 0 < policy.turns < len(index.turns):
            start = min(start, index.turns[-policy.turns].start[0])
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

    def _is_read(self, span: Span) -> bool:
        """Whether it shows a file, or a part of one."""
        return bool(span.cue) and tool_name(span.tool) in READS

    def _is_whole(self, span: Span) -> bool:
        """Whether a read names nothing but its file."""
        try:
            return len(_members.decode(self._text(span.call))) == 1
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False

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
