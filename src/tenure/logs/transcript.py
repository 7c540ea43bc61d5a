"""The transcript that a reader builds: drafts in the order in which the model saw them, what left its window, and what is left out.

A reader says where it stands in the file (`here`) and then what it read there; what is certain is handed on by `take`. An open reply
may still grow (`open`, `amend`), and holds back what follows it. Kept are counts and numbers, never what was handed on.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import Raw
from msgspec.structs import replace

from tenure.engine.record.entry import NEUTRAL, Block, Draft, Origin, Role, Text, Usage
from tenure.logs.json_files import Element, decoded, inside
from tenure.logs.reader import Event, Rewritten, Skipped, SubAgent
from tenure.logs.salvage import DamagedJson, Shape

T = TypeVar("T")

MOST_WORK: Final = (
    10**6
)  # steps of `drop`; a real session needs thousands. A file made to cost more keeps its drafts, not its prunings
LONGEST_REASON: Final = 200  # characters; a reason may quote the file
TASK: Final = 500  # characters kept of what a sub-agent was asked

_UTC: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_MILLISECONDS_FROM: Final = 10**11  # as seconds that is the year 5138, so larger numbers count milliseconds


class TranscriptBuilder:
    """Mutable while a file is read."""

    def __init__(self, model: str = "") -> None:
        self.model = model  # of replies that do not name theirs
        self.count = 0  # drafts so far
        self.line, self.size, self.at = 0, 0, ""  # where the reader stands
        self._events: list[Event] = []
        self._open = -1  # the place of the open reply among them
        self._more: list[Block] = []  # its blocks that came later
        self._seen: dict[Hashable, Hashable] = {}
        self._skipped: dict[str, tuple[int, int, int]] = {}  # of each reason: the first line, how often, bytes
        self._agents: dict[str, SubAgent] = {}
        self._stayed: list[int] = []  # drafts before `_since` that are in the window, in order
        self._since = 0
        self._work = 0
        self._prompts: set[int] = set()

    # What the reader says.

    def here(self, line: int, size: int, at: object = "") -> None:
        """The line, its bytes and its time, of all that is said until the next call."""
        self.line, self.size, self.at = line, size, utc(at) if at else ""

    def each(
        self, items: Iterable[tuple[Element, T] | Skipped], read: Callable[[Element, T], object], what: str = "message"
    ) -> Iterator[Event]:
        """The events that `read` makes of the items; an item on which it raises Damaged is a damaged `what`."""
        for item in items:
            if isinstance(item, Skipped):
                self.event(item)
            else:
                self.line, self.size, self.at = item[0].line, item[0].size, ""
                try:
                    read(*item)
                except DamagedJson as damage:
                    self.lost(f"damaged {what}: found {damage.found}")
            if self._events:
                yield from self.take()

    def inside(self, array: list[Raw] | None, outer: Element, shape: Shape[T], what: str) -> Iterator[tuple[Element, T]]:
        """The elements of an array in `outer` with their values; what cannot be read is an event."""
        for item in decoded(inside(array or [], outer), shape, what):
            if isinstance(item, Skipped):
                self.event(item)
            else:
                yield item

    def add(
        self,
        role: Role,
        blocks: Iterable[Block],
        *,
        model: str | None = None,
        usage: Usage | None = None,
        at: str | None = None,
        line: int | None = None,
        dialect: str = NEUTRAL,
        payload: bytes = b"",
        cache_life: str = "",
    ) -> int:
        """The number of one more draft, here unless `at` and `line` say otherwise; -1 where there are no blocks. A reply has the transcript's model."""
        blocks = tuple(blocks)
        if not blocks:
            return -1
        return self.draft(
            Draft(
                role=role,
                blocks=blocks,
                model=model if model is not None else self.model if role is Role.ASSISTANT else "",
                usage=usage,
                at=self.at if at is None else at,
                line=self.line if line is None else line,
                dialect=dialect,
                payload=payload,
                cache_life=cache_life,
            )
        )

    def draft(self, draft: Draft) -> int:
        """The number of one more draft."""
        self._events.append(draft)
        if draft.role is Role.SYSTEM:
            self._prompts.add(self.count)
        self.count += 1
        return self.count - 1

    def text(self, role: Role, text: str | None, origin: Origin = Origin.HARNESS, **fields: Any) -> int:
        """Like `add`, for one text; nothing where it is empty."""
        return self.add(role, (Text(text=text, origin=origin),) if text else (), **fields)

    def open(self, role: Role, blocks: Iterable[Block], **fields: Any) -> int:
        """Like `add`, for a reply that may grow until it is closed."""
        self.close()
        self._open = len(self._events)
        number = self.add(role, blocks, **fields)
        self._open = self._open if number >= 0 else -1
        return number

    @property
    def is_open(self) -> bool:
        """Whether a reply may still grow."""
        return self._open >= 0

    @property
    def reply(self) -> Draft | None:
        """The open reply."""
        found = self._events[self._open] if self._open >= 0 else None
        if not isinstance(found, Draft):
            return None
        if self._more:
            found = self._events[self._open] = replace(found, blocks=(*found.blocks, *self._more))
            self._more = []
        return found

    def amend(self, *blocks: Block, **fields: Any) -> None:
        """Add blocks to the open reply, and change its fields."""
        if self.is_open:
            self._more += blocks  # put in when it is whole or looked at, since there can be many
        if fields and (draft := self.reply) is not None:
            self._events[self._open] = replace(draft, **fields)

    def close(self) -> None:
        """The open reply is whole."""
        _ = self.reply
        self._open = -1

    def event(self, event: Event) -> None:
        """An event as it is, drafts aside; what was left out goes before an open reply."""
        if self._open >= 0 and isinstance(event, Skipped):
            self._events.insert(self._open, event)
            self._open += 1
        else:
            self._events.append(event)

    def lost(self, reason: str, size: int | None = None) -> None:
        """Something here that could not be read."""
        self.event(Skipped(line=self.line, bytes=self.size if size is None else size, reason=reason))

    def of_parent(self, parent: object) -> None:
        """Say that the file is a sub-agent's session."""
        self.lost(f"session of a sub-agent: what led to it is in its parent {parent!r}"[:LONGEST_REASON], 0)

    def partly(self, left_out: Iterable[str]) -> None:
        """Fields here that were left out of a value."""
        for reason in left_out:
            self.lost(reason, 0)

    def skip(self, reason: str, size: int | None = None, line: int | None = None) -> None:
        """Count something here that is left out; equal reasons become one event at the end."""
        reason = reason[:LONGEST_REASON]
        first, count, total = self._skipped.get(reason, (self.line if line is None else line, 0, 0))
        self._skipped[reason] = first, count + 1, total + (self.size if size is None else size)

    def repeats(self, key: Hashable, looks: Hashable = None, reason: str = "") -> bool:
        """Whether `key` last looked the same; then it is counted by `reason`."""
        known = key in self._seen and self._seen[key] == looks
        self._seen[key] = looks
        if known and reason:
            self.skip(reason)
        return known

    def begin_agent(self, id_: str, task: str = "") -> None:
        """Note a sub-agent, whose conversation starts here when it is new; `task` is used where none was known."""
        known = self._agents.get(id_) or SubAgent(id=id_, line=self.line, messages=0)
        self._agents[id_] = replace(known, task=known.task or task[:TASK])

    def agent(self, id_: str, task: str = "") -> None:
        """Count a message of a sub-agent."""
        self.begin_agent(id_, task)
        known = self._agents[id_]
        self._agents[id_] = replace(known, messages=known.messages + 1, bytes=known.bytes + self.size)

    # What left the window.

    @property
    def is_empty(self) -> bool:
        """Whether no draft is in the window."""
        return self.count == self._since and not self._stayed

    def rewrite(
        self, reason: str, drop_before: int = 0, kept: Iterable[int] = (), cleared: Iterable[str] = (), **fields: Any
    ) -> None:
        """The agent changed its window here."""
        fields = {"line": self.line, "at": self.at} | fields
        self._events.append(Rewritten(reason=reason, drop_before=drop_before, kept=tuple(kept), cleared=tuple(cleared), **fields))

    def restart(self, reason: str = "new sample", kept: tuple[int, ...] = (), **fields: Any) -> None:
        """All drafts so far leave, but for those `kept`; nothing happens before the first draft."""
        if self.count:
            self.clear(reason, kept, **fields)

    def clear(self, reason: str, kept: tuple[int, ...] = (), **fields: Any) -> None:
        """All drafts so far leave, but for those `kept`."""
        self._stayed, self._since = list(kept), self.count
        self.rewrite(reason, self.count, kept, **fields)

    def drop(self, reason: str, numbers: Iterable[int], **fields: Any) -> bool:
        """These drafts leave; whether any of them was there."""
        leaving = {number for number in numbers if self._holds(number)}
        if not leaving or self._work > MOST_WORK:
            return False
        before = max(leaving) + 1
        self._work += len(self._stayed) + max(0, before - self._since)
        older = [number for number in self._stayed if number not in leaving]
        newer = [number for number in range(self._since, before) if number not in leaving]
        self._stayed, self._since = older + newer, max(self._since, before)
        self.rewrite(reason, before, [number for number in self._stayed if number < before], **fields)
        return True

    def _holds(self, number: int) -> bool:
        if number >= self._since:
            return number < self.count
        place = bisect_left(self._stayed, number)
        return place < len(self._stayed) and self._stayed[place] == number

    def oldest(self, most: int) -> list[int]:
        """The oldest drafts in the window that are no system prompts."""
        window = (number for numbers in (self._stayed, range(self._since, self.count)) for number in numbers)
        return [number for number, _ in zip((each for each in window if each not in self._prompts), range(most), strict=False)]

    # What is handed on.

    def take(self) -> Iterator[Event]:
        """The events that are certain: all before an open reply."""
        if self._open != 0 and self._events:
            end = self._open if self._open > 0 else len(self._events)
            ready, self._events = self._events[:end], self._events[end:]
            self._open = 0 if self._open > 0 else -1
            yield from ready

    def run(
        self,
        items: Iterable[tuple[Element, T] | Skipped],
        read: Callable[[Element, T], object],
        what: str = "event",
        agent: str = "",
    ) -> Iterator[Event]:
        """All events that `read` makes of the items; of an `agent`'s conversation only those."""
        yield from self.each(items, read, what)
        self.close()
        yield from self.take() if agent else self.end()

    def end(self) -> Iterator[Event]:
        """All events that are left, what was skipped, and the sub-agents."""
        self.close()
        yield from self.take()
        for reason, (line, count, total) in self._skipped.items():
            yield Skipped(line=line, bytes=total, reason=reason if count == 1 else f"{reason} ({count} times)")
        yield from self.agents()

    def agents(self) -> Iterator[SubAgent]:
        """The sub-agents, once."""
        yield from self._agents.values()
        self._agents = {}


def utc(time: object) -> str:
    """`time` (ISO text, or seconds or milliseconds since 1970) as ISO 8601 in UTC with a Z; empty when it is none or cannot be read."""
    if isinstance(time, str) and (not time or _UTC.fullmatch(time)):
        return time
    try:
        if isinstance(time, str):
            moment = datetime.fromisoformat(time)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        elif isinstance(time, int | float) and not isinstance(time, bool) and time > 0:
            moment = datetime.fromtimestamp(time / 1000 if time >= _MILLISECONDS_FROM else time, UTC)
        else:
            return ""
        return (
            moment.astimezone(UTC).isoformat(timespec="milliseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return ""


def branch(parents: Mapping[str, str | None], leaf: str | None) -> list[str]:
    """The ids from the root to `leaf`, of lines that name their parents. A parent that is not a key ends the walk, and so does a cycle."""
    walked: dict[str, None] = {}
    step = leaf
    while step is not None and step in parents and step not in walked:
        walked[step] = None
        step = parents[step]
    return list(walked)[::-1]


def nearest(links: dict[str, str | None], among: Mapping[str, object], start: str | None) -> str | None:
    """The first of `start` and its ancestors in `links` that is a key of `among`; the last id reached when none is.

    `links` is shortened on the way, so that walking many times costs little.
    """
    passed: dict[str, None] = {}
    while start is not None and start not in among and start in links and start not in passed:
        passed[start] = None
        start = links[start]
    start = start if start not in passed else None
    links.update(dict.fromkeys(passed, start))
    return start
