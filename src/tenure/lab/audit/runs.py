"""One policy over a session, from the lines of its replay: its commits, the window by kind and call, and the needs that it left unmet."""

from collections import Counter, deque
from typing import Final

from tenure.engine.record.objects import HASH_CHARS
from tenure.engine.view.edit import Drop, Insert, LoggedAction, Replace, Restore
from tenure.lab.audit.report import COMMITS, HARMS, OBJECTS, POINTS, CommitSummary, Gone, Harm, Harms, Point, PolicyRun, Series
from tenure.lab.bill import Watched
from tenure.lab.events import (
    At,
    Bill,
    CallLine,
    CommitLine,
    EntryLine,
    HarmLine,
    ReplayLine,
    SummaryLine,
    UnmetLine,
    Verdict,
    fields_in,
)
from tenure.lab.harm.holdings import Holdings, of_line
from tenure.lab.harm.watch import Uses
from tenure.lab.kinds import RESIDUES, kind_of_line

RECORDED: Final = "recorded"  # the moment of what the recorded agent did itself, and what it is called as an action
NOT_OWN: Final = frozenset({RECORDED, "admission"})  # moments of what no policy chose
PIECES: Final = "entry:"  # an action on such an object takes pieces of several
AROUND: Final = 200  # characters before and after what is shown in its place
WORST_FIRST: Final[tuple[Verdict, ...]] = ("lost", "routed", "visible")


class Playback:
    """A run as its lines come. Mutable; of the lines it keeps no more than a report lists."""

    def __init__(self, header: ReplayLine) -> None:
        self._header = header
        self._series = _Thinned()
        self._blocks: dict[At, tuple[str, int, tuple[str, ...]]] = {}  # of the record: kind, o200k tokens, objects
        self._shown: dict[At | str, int] = {}  # o200k tokens of blocks, and of inserted entries by key
        self._tokens: Counter[str] = Counter()  # of the view by kind
        self._first: list[CommitSummary] = []  # commits
        self._last: deque[CommitSummary] = deque(maxlen=COMMITS // 2)
        self._made = self._left = self._peak = self._unmet = 0
        self._evicted: Counter[str] = Counter()
        self._held_by: dict[str, int] = {}
        self._violations: tuple[str, ...] = ()
        self._needs: Counter[tuple[str, str, Verdict]] = Counter()  # by kind and category
        self._harms: dict[Verdict, list[HarmLine]] = {verdict: [] for verdict in WORST_FIRST}  # as many as are listed

    def take(self, line: Watched) -> None:
        """The next line of the replay, or of what was missed. What is only thought is not counted: docs/audit.md."""
        match line:
            case EntryLine():
                for number, block in enumerate(line.blocks):
                    at, tokens = (line.entry, number), block.tokens or 0
                    self._blocks[at] = kind_of_line(block), tokens, block.objects or ()
                    self._show(at, tokens)
            case CommitLine():
                self._commit(line)
            case CallLine():
                self._series.call(line, self._tokens)
                self._peak = max(self._peak, line.uncached + line.cache_write + line.cache_read)
            case UnmetLine():
                self._held_by = self._held_by or {name: tokens for name, tokens in line.held_by.items() if tokens}
                self._unmet += 1
            case HarmLine() if line.part != "thinking":
                self._needs[line.kind, line.category, line.verdict] += 1
                if len(self._harms[line.verdict]) < HARMS:
                    self._harms[line.verdict].append(line)
            case SummaryLine():
                self._violations = line.violations
            case _:
                return

    def run(self, bill: Bill, places: "Places") -> PolicyRun:
        """What came of it."""
        evicted = [(kind, tokens) for kind, tokens in self._evicted.items() if tokens]
        return PolicyRun(
            **fields_in(self._header, PolicyRun),
            bill=bill,
            commits=(*self._first, *self._last),
            commits_made=self._made,
            series=self._series.series,
            harms=self._listed(places),
            peak=self._peak,
            left=self._left,
            evicted=dict(sorted(evicted, key=lambda each: (-each[1], each[0]))),
            unmet=self._unmet,
            unmet_held_by=self._held_by,
            violations=self._violations,
        )

    def _listed(self, places: "Places") -> Harms:
        """The needs, counted, and the worst of them in the order of the calls."""
        by_kind: dict[str, dict[str, int]] = {}
        by_category: dict[str, dict[str, int]] = {}
        for (kind, category, verdict), count in self._needs.items():
            for table, name in ((by_kind, kind), (by_category, category)):
                table.setdefault(str(name), dict.fromkeys(WORST_FIRST, 0))[verdict] += count
        counts = {verdict: sum(each[verdict] for each in by_kind.values()) for verdict in WORST_FIRST}
        worst = [line for verdict in WORST_FIRST for line in self._harms[verdict]][:HARMS]
        return Harms(
            **counts,
            by_kind=dict(sorted(by_kind.items())),
            by_category=dict(sorted(by_category.items())),
            listed=tuple(places.harm(line) for line in sorted(worst, key=lambda line: (line.entry, line.block))),
            more=sum(counts.values()) - len(worst),
        )

    def _show(self, key: At | str, tokens: int) -> tuple[str, int]:
        """Something is shown with so many tokens, 0: not any more; what it is, and by how many tokens it shrank."""
        kind, shrunk = RESIDUES if isinstance(key, str) else self._blocks[key][0], self._shown.pop(key, 0) - tokens
        if tokens:
            self._shown[key] = tokens
        self._tokens[kind] -= shrunk
        return kind, shrunk

    def _commit(self, line: CommitLine) -> None:
        own = line.moment not in NOT_OWN
        gone: dict[At, int] = {}
        for edit in line.edits:
            tokens = edit.tokens if isinstance(edit, Replace | Insert) else 0
            if not isinstance(edit, Drop | Replace | Restore):
                self._show(edit.key, tokens)
                continue
            at = edit.entry, edit.block
            kind, shrunk = self._show(at, self._blocks[at][1] if isinstance(edit, Restore) else tokens)
            gone[at] = gone.get(at, 0) + shrunk
            self._evicted[kind] += own * shrunk
        self._made += own
        self._left += own * (line.tokens_before - line.tokens_after)
        kept = self._first if len(self._first) < COMMITS // 2 else self._last
        kept.append(self._summary(line, gone))

    def _summary(self, line: CommitLine, gone: dict[At, int]) -> CommitSummary:
        """A commit and what left of each object: less than nothing of what came back.

        A block belongs to the object of the commit's actions that it is part of; where there is none (an action may take pieces of many objects
        under one pointer), to the object that it is part of itself.
        """
        acts = {act.object: act for act in line.actions}
        named = next((act.kind for act in line.actions if act.object.startswith(PIECES)), "")
        other = named or (line.actions[0].kind if line.actions else RECORDED)  # the action on what is named by none
        sizes = dict.fromkeys(acts, 0)
        for at, tokens in gone.items():
            names = (*self._blocks[at][2], f"{PIECES}{at[0]}/{at[1]}", f"{PIECES}{at[0]}")
            name = next((name for name in names if name in acts), names[0])
            sizes[name] = sizes.get(name, 0) + tokens
        ordered = sorted(sizes.items(), key=lambda each: (-each[1], each[0]))
        found = [(acts.get(name) or LoggedAction(kind=other, object=name), size) for name, size in ordered[:OBJECTS]]
        own = {
            "why": line.reason,
            "actions": dict(sorted(Counter(act.kind for act in line.actions).items())),
            "objects": tuple(Gone(**fields_in(act, Gone, tokens=size)) for act, size in found),
            "more": max(0, len(ordered) - OBJECTS),
        }
        return CommitSummary(**fields_in(line, CommitSummary, **own))


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
        """The calls that are kept."""
        total: Counter[str] = Counter()
        for _, tokens in self._kept:
            total.update(tokens)
        kinds = tuple(sorted(total, key=lambda kind: (-total[kind], kind)))
        points = (
            Point(call=line.call, at=line.at, ratio=line.ratio, tokens=tuple(tokens.get(kind, 0) for kind in kinds))
            for line, tokens in self._kept
        )
        return Series(kinds=kinds, every=self._every, points=tuple(points))


def _fuller(one: tuple[CallLine, dict[str, int]], other: tuple[CallLine, dict[str, int]]) -> tuple[CallLine, dict[str, int]]:
    return other if other[0].view_tokens > one[0].view_tokens else one


class Places:
    """Where things stand in the log, what they say, and what the steps used. Mutable while the messages come."""

    def __init__(self) -> None:
        self.uses = Uses([], [], {}, Holdings())
        self._lines: list[int] = []  # of the log, by entry
        self._hashes: list[str] = []  # starts of the entries' ids
        self._starts: dict[str, int] = {}  # the entry in which a tool's call stands, by its object

    def entry(self, line: EntryLine) -> None:
        """A message of the record."""
        self._lines.append(line.line)
        self._hashes.append(line.id[:HASH_CHARS])
        for block in line.blocks:
            if block.kind == "tool_call" and block.objects:
                self._starts.setdefault(block.objects[0], line.entry)
        self.uses.take(of_line(line))

    def harm(self, line: HarmLine) -> Harm:
        """A need as a report lists it."""
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
