"""The needs of a session that a run left unmet, with the places where they can be looked up."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.record.objects import HASH_CHARS
from tenure.lab.audit.report import HARMS, Harm, Harms
from tenure.lab.events import At, CommitLine, EntryLine, HarmLine, Line, Verdict
from tenure.lab.harm.judge import Window, judge
from tenure.lab.harm.use import Use
from tenure.lab.harm.watch import Uses

AROUND: Final = 200  # characters before and after what is shown in its place
WORST_FIRST: Final[tuple[Verdict, ...]] = ("lost", "routed", "visible")


class Judging:
    """What a run left unmet, as `harm.live.Watch` finds it: but what the steps use does not depend on the run, and is found once for all. Mutable."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._by_entry: dict[int, list[Use]] = {}
        for use in uses.found:
            self._by_entry.setdefault(use.entry, []).append(use)
        self._window = Window()

    def again(self) -> "Judging":
        """One for another run."""
        twin = Judging(Uses((), self._uses.calls, self._uses.holdings))
        twin._by_entry = self._by_entry
        return twin

    def take(self, line: Line) -> Iterator[HarmLine]:
        """What the line shows to have been needed."""
        match line:
            case CommitLine():
                self._window.commit(line.commit, line.entries, line.edits, recorded=line.moment == "recorded")
            case EntryLine() if self._window.taken:
                for use in self._by_entry.get(line.entry, ()):
                    found = judge(use, self._window, self._uses.holdings, self._uses.calls[line.entry])
                    if found is not None:
                        yield found
            case _:
                return


class Needs:
    """The needs of one run, counted, and as many kept as are listed. Mutable. What is only thought is not counted: docs/audit.md."""

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()
        self.by_kind: dict[str, dict[str, int]] = {}
        self.by_category: dict[str, dict[str, int]] = {}
        self._kept: dict[Verdict, list[HarmLine]] = {verdict: [] for verdict in WORST_FIRST}

    def take(self, line: HarmLine) -> None:
        """One more."""
        if line.part == "thinking":
            return
        self.counts[line.verdict] += 1
        for table, name in ((self.by_kind, str(line.kind)), (self.by_category, str(line.category))):
            row = table.setdefault(name, dict.fromkeys(WORST_FIRST, 0))
            row[line.verdict] += 1
        if len(self._kept[line.verdict]) < HARMS:
            self._kept[line.verdict].append(line)

    @property
    def listed(self) -> list[HarmLine]:
        """The worst, in the order of the calls."""
        worst = [line for verdict in WORST_FIRST for line in self._kept[verdict]][:HARMS]
        return sorted(worst, key=lambda line: (line.entry, line.block))


class Places(Struct, frozen=True):
    """Where things stand in the log, and what they say."""

    uses: Uses
    lines: list[int]  # of the log, by entry
    hashes: list[str]  # starts of the entries' ids
    starts: dict[str, int]  # the entry in which a tool's call stands, by its object

    def harms(self, needs: Needs) -> Harms:
        """The needs of a run as its report lists them."""
        listed = needs.listed
        return Harms(
            visible=needs.counts["visible"],
            routed=needs.counts["routed"],
            lost=needs.counts["lost"],
            by_kind=dict(sorted(needs.by_kind.items())),
            by_category=dict(sorted(needs.by_category.items())),
            listed=tuple(self._harm(line) for line in listed),
            more=needs.counts.total() - len(listed),
        )

    def _harm(self, line: HarmLine) -> Harm:
        held = line.held[-1]
        return Harm(
            line=line,
            at=self.lines[line.entry],
            step=excerpt(self._text((line.entry, line.block)), line.text),
            held_at=self.lines[held[0]],
            held=excerpt(self._text(held), line.text),
            held_handle=self._handle(held),
        )

    def _text(self, at: At) -> str:
        return self.uses.holdings.at(at).text

    def _handle(self, at: At) -> str:
        held = self.uses.holdings.at(at)
        if held.tool and held.objects and held.objects[0] in self.starts:
            return f"{held.objects[0]}@{self.hashes[self.starts[held.objects[0]]]}"
        return f"entry:{at[0]}/{at[1]}@{self.hashes[at[0]]}"


class Placing:
    """The places of a session, as its messages come. Mutable."""

    def __init__(self) -> None:
        self._lines: list[int] = []
        self._hashes: list[str] = []
        self._starts: dict[str, int] = {}

    def entry(self, line: EntryLine) -> None:
        """A message that was said."""
        self._lines.append(line.line)
        self._hashes.append(line.id[:HASH_CHARS])
        for block in line.blocks:
            if block.kind == "tool_call" and block.objects:
                self._starts.setdefault(block.objects[0], line.entry)

    def places(self, uses: Uses) -> Places:
        """All of them."""
        return Places(uses, self._lines, self._hashes, self._starts)


def excerpt(text: str, wanted: str, around: int = AROUND) -> str:
    """The part of a text that holds `wanted`, or its start."""
    at = max(0, text.find(wanted))
    start, stop = max(0, at - around), min(len(text), at + min(len(wanted), 2 * around) + around)
    return f"{'…' * (start > 0)}{text[start:stop]}{'…' * (stop < len(text))}"
