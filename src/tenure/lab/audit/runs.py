"""One policy over a session, told from the lines of its replay: its commits, the window by kind and call, and the needs that it left unmet."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tenure.engine.record.objects import HASH_CHARS
from tenure.engine.view.edit import Act, Drop, Replace, Restore
from tenure.lab.audit.lifetimes import Change, Standing
from tenure.lab.audit.report import COMMITS, HARMS, OBJECTS, POINTS, Gone, Harm, Harms, Point, Removal, Run, Series
from tenure.lab.events import (
    At,
    Bill,
    CallLine,
    CommitLine,
    EntryLine,
    HarmLine,
    Line,
    RecallLine,
    ReplayLine,
    SummaryLine,
    UnmetLine,
    Verdict,
)
from tenure.lab.harm.judge import Window, judge
from tenure.lab.harm.use import Use
from tenure.lab.harm.watch import Uses
from tenure.lab.kinds import RESIDUES, kind_of_line

RECORDED: Final = "recorded"  # the moment of what the recorded agent did itself, and what it is called as an action
NOT_OWN: Final = frozenset(
    {RECORDED, "admission"}
)  # moments of what no policy chose: a late result whose call is gone leaves too
PIECES: Final = "entry:"  # an action on such an object takes pieces of several
AROUND: Final = 200  # characters before and after what is shown in its place
WORST_FIRST: Final[tuple[Verdict, ...]] = ("lost", "routed", "visible")


class Watching:
    """A run in the making. Mutable; of the lines it keeps no more than a report lists."""

    def __init__(self, header: ReplayLine) -> None:
        self._header = header
        self._standing, self._thinned = Standing(), _Thinned()
        self._tokens: Counter[str] = Counter()  # of the view by kind
        self._kinds: dict[At, str] = {}
        self._objects: list[tuple[tuple[str, ...], ...]] = []  # of the blocks of each entry
        self._first: list[Removal] = []  # commits
        self._last: deque[Removal] = deque(maxlen=COMMITS // 2)
        self._made = self._left = self._peak = self._unmet = 0
        self._evicted: Counter[str] = Counter()
        self._held_by: dict[str, int] = {}
        self._violations: tuple[str, ...] = ()
        self.needs = Needs()

    def take(self, line: Line | HarmLine | RecallLine) -> None:
        """The next line of the replay, or of what was missed."""
        match line:
            case EntryLine():
                self._objects.append(tuple([block.objects or () for block in line.blocks]))
                self._kinds |= {(line.entry, number): kind_of_line(block) for number, block in enumerate(line.blocks)}
                for change in self._standing.entry(line):
                    self._change(change)
            case CommitLine():
                self._commit(line)
            case CallLine():
                self._thinned.call(line, self._tokens)
                self._peak = max(self._peak, line.uncached + line.cache_write + line.cache_read)
            case UnmetLine():
                self._held_by = self._held_by or {name: tokens for name, tokens in line.held_by.items() if tokens}
                self._unmet += 1
            case HarmLine():
                self.needs.take(line)
            case SummaryLine():
                self._violations = line.violations
            case _:
                return

    def run(self, bill: Bill, places: "Places") -> Run:
        """What came of it."""
        header = self._header
        evicted = sorted(
            ((kind, tokens) for kind, tokens in self._evicted.items() if tokens), key=lambda each: (-each[1], each[0])
        )
        return Run(
            policy=header.policy,
            settings=header.settings,
            budget=header.budget,
            bill=bill,
            commits=(*self._first, *self._last),
            commits_made=self._made,
            series=self._thinned.series,
            harms=places.harms(self.needs),
            peak=self._peak,
            left=self._left,
            evicted=dict(evicted),
            unmet=self._unmet,
            unmet_held_by=self._held_by,
            violations=self._violations,
        )

    def _change(self, change: Change) -> str:
        """Something is shown, or not any more; what it is."""
        kind = RESIDUES if isinstance(change.key, str) else self._kinds[change.key]
        self._tokens[kind] += change.after - change.before
        return kind

    def _commit(self, line: CommitLine) -> None:
        own = line.moment not in NOT_OWN
        gone = _Attributed(line.actions)
        for edit, change in self._standing.commit(line):
            kind = self._change(change)
            if isinstance(edit, Drop | Replace | Restore):
                gone.take((edit.entry, edit.block), self._objects[edit.entry][edit.block], change.before - change.after)
                self._evicted[kind] += own * (change.before - change.after)
        self._made += own
        self._left += own * (line.tokens_before - line.tokens_after)
        (self._first if len(self._first) < COMMITS // 2 else self._last).append(gone.removal(line))


class _Attributed:
    """What left of each object in one commit. Mutable.

    A block belongs to the object of the commit's actions that it is part of; where there is none (an action may take pieces of many objects
    under one pointer), to the object that it is part of itself.
    """

    def __init__(self, actions: Sequence[Act]) -> None:
        self._by_object = {act.object: act for act in actions}
        named = next((act.kind for act in actions if act.object.startswith(PIECES)), "")
        self._other = named or (actions[0].kind if actions else RECORDED)  # the action on what is named by none
        self._tokens = dict.fromkeys(self._by_object, 0)

    def take(self, at: At, objects: Iterable[str], tokens: int) -> None:
        """So many tokens of a block left; less than none came back."""
        names = (*objects, f"{PIECES}{at[0]}/{at[1]}", f"{PIECES}{at[0]}")
        object_ = next((name for name in names if name in self._by_object), names[0])
        self._tokens[object_] = self._tokens.get(object_, 0) + tokens

    def removal(self, line: CommitLine) -> Removal:
        """The commit as a report has it."""
        acts = {object_: self._by_object.get(object_) or Act(kind=self._other, object=object_) for object_ in self._tokens}
        gone = [
            Gone(object=name, kind=acts[name].kind, level=acts[name].level, tokens=size) for name, size in self._tokens.items()
        ]
        gone.sort(key=lambda each: (-each.tokens, each.object))
        return Removal(
            commit=line.commit,
            before_call=line.before_call,
            entries=line.entries,
            policy=line.policy,
            moment=line.moment,
            why=line.reason,
            forced=line.forced,
            ratio=line.ratio,
            tokens_before=line.tokens_before,
            tokens_after=line.tokens_after,
            actions=dict(sorted(Counter(act.kind for act in line.actions).items())),
            objects=tuple(gone[:OBJECTS]),
            more=max(0, len(gone) - OBJECTS),
        )


class _Thinned:
    """The window by kind and call, never longer than twice what is kept. Mutable.

    It is cut into stretches of equally many calls, whose length doubles when there are too many; of each the fullest call is kept.
    """

    def __init__(self) -> None:
        self._every = 1
        self._calls = 0
        self._kept: list[tuple[CallLine, dict[str, int]]] = []

    def call(self, line: CallLine, tokens: Counter[str]) -> None:
        """The next call, and what it sent by kind."""
        point = (line, {kind: count for kind, count in tokens.items() if count})
        if self._calls % self._every:
            self._kept[-1] = _fuller(self._kept[-1], point)
        else:
            self._kept.append(point)
        self._calls += 1
        if len(self._kept) > POINTS:
            self._every *= 2
            pairs = [self._kept[at : at + 2] for at in range(0, len(self._kept), 2)]
            self._kept = [_fuller(pair[0], pair[-1]) for pair in pairs]

    @property
    def series(self) -> Series:
        """What was taken so far."""
        total: Counter[str] = Counter()
        for _, tokens in self._kept:
            total.update(tokens)
        kinds = tuple(sorted(total, key=lambda kind: (-total[kind], kind)))
        points = tuple(
            Point(call=line.call, at=line.at, ratio=line.ratio, tokens=tuple(tokens.get(kind, 0) for kind in kinds))
            for line, tokens in self._kept
        )
        return Series(kinds=kinds, every=self._every, points=points)


def _fuller(one: tuple[CallLine, dict[str, int]], other: tuple[CallLine, dict[str, int]]) -> tuple[CallLine, dict[str, int]]:
    return other if other[0].view_tokens > one[0].view_tokens else one


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
                self._window.commit(line.commit, line.entries, line.edits, recorded=line.moment == RECORDED)
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
            table.setdefault(name, dict.fromkeys(WORST_FIRST, 0))[line.verdict] += 1
        if len(self._kept[line.verdict]) < HARMS:
            self._kept[line.verdict].append(line)

    @property
    def listed(self) -> list[HarmLine]:
        """The worst, in the order of the calls."""
        worst = [line for verdict in WORST_FIRST for line in self._kept[verdict]][:HARMS]
        return sorted(worst, key=lambda line: (line.entry, line.block))


class Places:
    """Where things stand in the log, and what they say. Mutable while the messages come."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self._lines: list[int] = []  # of the log, by entry
        self._hashes: list[str] = []  # starts of the entries' ids
        self._starts: dict[str, int] = {}  # the entry in which a tool's call stands, by its object

    def entry(self, line: EntryLine) -> None:
        """A message that was said."""
        self._lines.append(line.line)
        self._hashes.append(line.id[:HASH_CHARS])
        for block in line.blocks:
            if block.kind == "tool_call" and block.objects:
                self._starts.setdefault(block.objects[0], line.entry)

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
        at = line.held[-1]
        step, held = self.uses.holdings.at((line.entry, line.block)), self.uses.holdings.at(at)
        handle = f"entry:{at[0]}/{at[1]}@{self._hashes[at[0]]}"
        if held.tool and held.objects and held.objects[0] in self._starts:
            handle = f"{held.objects[0]}@{self._hashes[self._starts[held.objects[0]]]}"
        return Harm(
            line=line,
            at=self._lines[line.entry],
            step=_excerpt(step.text, line.text),
            held_at=self._lines[at[0]],
            held=_excerpt(held.text, line.text),
            held_handle=handle,
        )


def _excerpt(text: str, wanted: str) -> str:
    """The part of a text that holds `wanted`, or its start."""
    at = max(0, text.find(wanted))
    start, stop = max(0, at - AROUND), min(len(text), at + min(len(wanted), 2 * AROUND) + AROUND)
    return f"{'…' * (start > 0)}{text[start:stop]}{'…' * (stop < len(text))}"
