"""Whether a need is visible, routed or lost, and which failure a missing one is, by a table of rules.

A need counts when something of it left, and nothing said since repeats it: so it is charged once, at its first use after the removal. What the
model thought since is no source for what it says or calls, so that logs with and without reasoning count alike. The six categories are those of the
Self-GC paper (Failure Categories and Case Studies, table 7), whose auditors judged by reading.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct

from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import TOOL_KINDS, Act, ToolKind, tools_that
from tenure.engine.view.edit import Drop, Edit, Insert, Remove, Replace, Restore
from tenure.lab.events import At, Category, HarmLine, Verdict
from tenure.lab.harm.holdings import Holdings, Passage, holds, plain, words_of
from tenure.lab.harm.names import USUAL_FILES, AnchorForm, Kind
from tenure.lab.harm.use import StepUse, Wanted


class MissingNeed(Struct, frozen=True, kw_only=True):
    """What a rule may look at: the use, the newest passage that held what is missing, and whether a handle of it is still shown."""

    use: StepUse
    held: Passage
    named: bool  # a visible residue names its object, but gives no cue


class CategoryRule(Struct, frozen=True, kw_only=True):
    """A rule by its name."""

    name: str
    category: Category
    holds: Callable[[MissingNeed], bool]


_READS: Final = tools_that(Act.READ, Act.EDITOR)
_STATES: Final = frozenset(
    "todowrite todo_write update_plan write_todos taskcreate taskupdate tasklist taskoutput taskget bashoutput notes".split()
)
_CONTRACTS = re.compile(r"\b(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|SKILL|CONVENTIONS|STYLE)\.md\b|\.cursorrules|/(?:rules|skills)/")
_FAILURES = re.compile(r"\b(?:Traceback|FAILED|panicked|Exit code [1-9]|exit status [1-9]|AssertionError|error:)", re.IGNORECASE)
_FAILED_WITHIN: Final = 4_000  # characters of an output that say whether it failed


def _is_contract(need: MissingNeed) -> bool:
    held = need.held
    if held.origin in ("human", "harness") or held.role == "system":
        return True
    return tool_name(held.tool) == "skill" if held.tool else False


def _reads_contract(need: MissingNeed) -> bool:
    return need.held.kind == "tool_call" and _CONTRACTS.search(need.held.text[:_FAILED_WITHIN]) is not None and _is_read(need)


def _is_failure(need: MissingNeed) -> bool:
    held = need.held
    if held.kind != "tool_result" or _is_read(need):
        return False
    return held.error or _FAILURES.search(held.text[:_FAILED_WITHIN]) is not None


def _is_read(need: MissingNeed) -> bool:
    return bool(need.held.tool) and tool_name(need.held.tool) in _READS


def _is_output(need: MissingNeed) -> bool:
    """Whether it was the output of a command or a search: rows and lines, not a source text."""
    if need.held.kind != "tool_result" or _is_read(need):
        return False
    return TOOL_KINDS.get(tool_name(need.held.tool)) is not ToolKind.DURABLE


# The first that holds decides; the last holds always.
RULES: Final = (
    CategoryRule(name="a handle is shown, no cue", category=Category.ROUTING, holds=lambda need: need.named),
    CategoryRule(name="held by instructions", category=Category.CONTRACT, holds=_is_contract),
    CategoryRule(name="held by a read of instructions", category=Category.CONTRACT, holds=_reads_contract),
    CategoryRule(
        name="held by a task list",
        category=Category.LIVE,
        holds=lambda need: bool(need.held.tool) and tool_name(need.held.tool) in _STATES,
    ),
    CategoryRule(name="held by a failure", category=Category.LIVE, holds=_is_failure),
    CategoryRule(
        name="is a locator",
        category=Category.LOCATOR,
        holds=lambda need: need.use.kind is Kind.LOCATOR and need.use.form is not AnchorForm.NUMBER,
    ),
    CategoryRule(
        name="is a line of a source",
        category=Category.VERBATIM,
        holds=lambda need: need.use.kind is Kind.VERBATIM and not _is_output(need),
    ),
    CategoryRule(name="is a detail", category=Category.EVIDENCE, holds=lambda _need: True),
)


def classify(need: MissingNeed) -> tuple[Category, str]:
    """The category and the rule that decided it."""
    decided = next(rule for rule in RULES if rule.holds(need))
    return decided.category, decided.name


class BlockRemoval(Struct, frozen=True, gc=False):
    """What happened to a block: by which commit, how long the record was then, and what stands in its place."""

    commit: int
    entries: int
    instead: str = ""


class ShownResidue(Struct, frozen=True, gc=False):
    """A text that a commit put into the view, and the handles that it says it names."""

    text: str
    routes: tuple[str, ...]


class WindowTrace:
    """The view, told by commits. Mutable."""

    def __init__(self) -> None:
        self.taken: dict[At, BlockRemoval] = {}
        self.unseen: set[At] = set()  # by the recorded agent itself, when it went on
        self._seen: list[At] = []  # a heap of the blocks that were taken while the recorded agent may still have seen them
        self._residues: dict[str | At, ShownResidue] = {}  # by key of the inserted entry, or by the place of the replaced block

    def commit(self, number: int, entries: int, edits: tuple[Edit, ...], *, recorded: bool = False) -> None:
        """Take in a commit. O(its edits); a block that leaves the recorded agent's own window is looked at once."""
        last = -1
        for edit in edits:
            match edit:
                case Drop():
                    self._take((edit.entry, edit.block), BlockRemoval(number, entries))
                    last = max(last, edit.entry)
                case Replace():
                    at, text = (edit.entry, edit.block), plain(edit.text)
                    self._take(at, BlockRemoval(number, entries, text))
                    self._residues[at] = ShownResidue(text, edit.routes)
                case Restore():
                    self.taken.pop((edit.entry, edit.block), None)
                    self._residues.pop((edit.entry, edit.block), None)
                case Insert():
                    self._residues[edit.key] = ShownResidue(plain(edit.text), edit.routes)
                case Remove():
                    self._residues.pop(edit.key, None)
        if recorded:
            self.unseen |= {(edit.entry, edit.block) for edit in edits if isinstance(edit, Drop | Replace)}
            while self._seen and self._seen[0][0] <= last:
                if (at := heappop(self._seen)) in self.taken:
                    self.unseen.add(at)

    def residues(self) -> Iterator[ShownResidue]:
        """What commits put into the view and stands there now."""
        return iter(self._residues.values())

    def _take(self, at: At, taken: BlockRemoval) -> None:
        self._residues.pop(at, None)
        if at not in self.unseen:
            heappush(self._seen, at)
        before = self.taken.get(at)
        # What was replaced before and is dropped now had left already, unless the replacement was all that showed it.
        self.taken[at] = taken if before is None or before.instead else before


_HANDLE = re.compile(r"([A-Za-z_][\w.\-]{0,80}:[\w.\-]{1,120}(?:/\d{1,6})?)@[0-9a-f]{4,64}")
_SHORTEST_CUE: Final = 4
_RARE_WORD: Final = 6  # passages that may hold a word that is still a cue


def judge(use: StepUse, window: WindowTrace, holdings: Holdings, call: int) -> HarmLine | None:
    """What became of a use; None when nothing of what it wants was touched."""
    touched: list[tuple[Wanted, BlockRemoval]] = []
    missing: list[tuple[Wanted, BlockRemoval]] = []
    listed = False
    for wanted in use.wanted:
        taken = _touched(use, wanted, window)
        if taken is None:
            continue
        touched.append((wanted, taken))
        sight = _sight(use, wanted, window, holdings, taken)
        listed = listed or sight is _Sight.LISTED
        if sight is _Sight.NOTHING:
            missing.append((wanted, taken))
    if not touched:
        return None
    first, taken = (missing or touched)[0]
    holders = [held for held in first.holders if held.at not in window.unseen]
    verdict: Verdict = "visible"
    route, named = "", False
    if missing:
        route, named = _route(use, first, holders, window, holdings)
        verdict = "routed" if route else "lost"
    category, rule = classify(MissingNeed(use=use, held=holders[-1], named=named and not route))
    return HarmLine(
        call=call,
        entry=use.entry,
        block=use.block,
        part=use.part,
        tool=use.tool,
        field=use.field,
        kind=use.kind,
        form=use.form,
        text=first.text,
        listed=listed and not missing,
        more=max(0, len(missing) - 1),
        held=tuple(held.at for held in holders),
        objects=tuple(dict.fromkeys(held.objects[0] for held in holders if held.objects)),
        verdict=verdict,
        category=category,
        rule=rule,
        route=route,
        commit=taken.commit,
    )


def _touched(use: StepUse, wanted: Wanted, window: WindowTrace) -> BlockRemoval | None:
    """The newest removal that touched a holder; None when there is none, or when the string was had again since."""
    holders = [held for held in wanted.holders if held.at not in window.unseen]
    taken = [window.taken[held.at] for held in holders if held.at in window.taken]
    if not taken:
        return None
    newest = max(taken, key=lambda each: each.commit)
    if any(held.at[0] >= newest.entries and _is_source(use, held) for held in holders):
        return None
    return newest


def _is_source(use: StepUse, held: Passage) -> bool:
    """Whether a passage that came after a removal gives the string back."""
    return use.part == "thinking" or held.kind != "thinking"


class _Sight(IntEnum):
    """How a view shows a string: not at all, only as a name in a list of names that a policy wrote, or where something is said of it."""

    NOTHING = 0
    LISTED = 1
    SHOWN = 2


def _sight(use: StepUse, wanted: Wanted, window: WindowTrace, holdings: Holdings, taken: BlockRemoval) -> _Sight:
    def shown(holders: Iterable[Passage], text: str) -> Iterator[_Sight]:
        for held in holders:
            if held.at[0] < taken.entries or _is_source(use, held):
                instead = window.taken.get(held.at)
                yield _Sight.SHOWN if instead is None else _sight_in(instead.instead, text, use.kind, held.text)
        yield from (_sight_in(residue.text, text, use.kind) for residue in window.residues() if text in residue.text)

    def best(text: str) -> _Sight:
        return max(shown(holdings.find(text, use.entry) or (), text), default=_Sight.NOTHING)

    sight = max(shown(wanted.holders, wanted.text), default=_Sight.NOTHING)
    if sight is _Sight.SHOWN or use.form not in (AnchorForm.PATH, AnchorForm.FILE):
        return sight
    for name in (wanted.text, *_sources_of(wanted.text)):
        if name != wanted.text:
            sight = max(sight, best(name))
        for folder, rest in _halves(name):
            if sight is _Sight.SHOWN:
                return sight
            if first := best(folder):
                sight = max(sight, min(first, _Sight.SHOWN if rest in USUAL_FILES else best(rest)))
    return sight


_LIST = re.compile(r"\[[^.:\]]{0,40}: (?:(?!\. ).)*\]?")
_LISTED: Final = 6  # items of a line that is a list whatever stands around it
_NAMELIKE = re.compile(r"[\w)\]`'\"]*[_./:A-Z0-9-]")


def _sight_in(text: str, wanted: str, kind: Kind, original: str = "") -> _Sight:
    """How a text that a policy wrote shows a string. A line that stood so in the original is no list of the policy's."""
    if not text or not holds(text, wanted):
        return _Sight.NOTHING
    if kind is Kind.VERBATIM:
        return _Sight.SHOWN
    lines = [line.strip() for line in text.split("\n") if wanted in line]
    return _Sight.LISTED if all(_is_list(line) and line not in original for line in lines) and lines else _Sight.SHOWN


def _is_list(line: str) -> bool:
    """Whether a line says nothing of the names in it."""
    if _LIST.fullmatch(line):
        return True
    items = line.split()
    return len(items) >= _LISTED and sum(_NAMELIKE.match(item) is not None for item in items) >= 0.8 * len(items)


def _sources_of(path: str) -> Iterator[str]:
    """The file that a script imports by the name it will have when it is built."""
    if path.endswith((".js", ".jsx")):
        yield path[: path.rindex(".") + 1] + "ts" + path[path.rindex(".") + 3 :]


def _halves(path: str) -> Iterator[tuple[str, str]]:
    """Ways to put a path together from two that may be shown: "/home/a" and "src/b.py" give "/home/a/src/b.py"."""
    places = [place for place, character in enumerate(path) if character in "/\\" and 0 < place < len(path) - 1]
    for place in places:
        yield path[:place], path[place + 1 :]


def _route(use: StepUse, wanted: Wanted, holders: list[Passage], window: WindowTrace, holdings: Holdings) -> tuple[str, bool]:
    """The handle that leads to a holder in one hop, if a cue stands beside it; and whether a handle is shown at all."""
    objects = {name for held in holders for name in (*held.objects, f"entry:{held.at[0]}", f"entry:{held.at[0]}/{held.at[1]}")}
    cues: tuple[str, ...] | None = None
    named = False
    for residue in window.residues():
        handle = next((each for each in _handles(residue) if each.partition("@")[0] in objects), "")
        if not handle:
            continue
        named = True
        if cues is None:
            cues = tuple(_cues(use, wanted, holdings))
        if any(cue in residue.text and holds(residue.text, cue) for cue in cues):
            return handle, True
    return "", named


def _handles(residue: ShownResidue) -> Iterator[str]:
    yield from residue.routes
    yield from (found[0] for found in _HANDLE.finditer(residue.text))


def _cues(use: StepUse, wanted: Wanted, holdings: Holdings) -> Iterator[str]:
    """What of the step would make one look there: the places it names, their last parts, and rare words of what is missing."""
    for cue in use.cues:
        yield cue
        last = cue.rstrip("/").rpartition("/")[2]
        if len(last) >= _SHORTEST_CUE and last != cue:
            yield last
    for word in words_of(wanted.text):
        if len(word) >= _SHORTEST_CUE and holdings.count(word, use.entry) <= _RARE_WORD:
            yield word
