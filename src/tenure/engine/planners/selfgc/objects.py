"""What a planner may name: human turns, tool calls and skills that are shown, and why some of them are out of reach.

Self-GC paper, "Indexed Context Objects": `user:3` is a human turn and what was done for it, `read:12` one call with its result, `skill:release`
what loading a skill brought in. Assistant turns are no objects. What must stay for reasons that code can see is barred here, before any
model is asked; what only judgement can see (exact evidence, the one locator) is the planner's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.figures import first_line
from tenure.engine.planners.selfgc.known import NOTHING, Known, known_of
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin, Read, Role, Text
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.record.objects import tool_key
from tenure.engine.record.quotation import cited, in_quotes
from tenure.engine.record.skills import READ_TOOLS
from tenure.engine.record.tools import ToolKind, is_delimiter, is_recall, is_shortened
from tenure.engine.view.residue import place_of

Kind = Literal["turn", "call", "skill"]


class WhyBarred(StrEnum):
    """Why an object may not be named, in words for planners and people."""

    CUT = "belongs to the newest human turn"
    PIN = "is pinned"
    HOLD = "waits for an approval or is a live handle"
    PROLOGUE = "belongs to the opening, which stays"
    TAIL = "is among the newest exchanges"
    OPEN = "is still open"
    MARK = "is a mark of the harness"
    RECALLED = "was brought back a moment ago"
    NOTES = "holds the agent's notes as they are now"
    STATE = "is the plan or task list in force"
    BODY = "is the agent's own work, which may be edited again"
    CONTRACT = "holds instructions, a schema or a contract still in force"
    SKILL = "is the newest load of its skill"


_HELD: Final[Mapping[str, WhyBarred]] = {
    "human": WhyBarred.PROLOGUE, "prologue": WhyBarred.PROLOGUE, "tail": WhyBarred.TAIL, "pin": WhyBarred.PIN, "hold": WhyBarred.HOLD, "episode": WhyBarred.OPEN,
    "recall": WhyBarred.RECALLED, "notes": WhyBarred.NOTES,
}  # fmt: skip

RECALL_CALLS: Final = 3  # for so many calls what was recalled is left alone
CUE_CHARS: Final = 72

# Names in `tool_key` form, without a server's prefix. Every call of a state tool replaces what the one before it said.
STATE_TOOLS: Final = frozenset({"todowrite", "todo_write", "write_todos", "update_plan", "todoread", "todo_read"})
_READERS: Final = frozenset({"cat", "head", "tail", "sed", "less", "more", "bat", "nl", "type", "Get-Content"})

# Files that say how to work. Of each the newest read is in force (paper, planner contract, rule 1, and Table 5, third row).
CONTRACT_FILES: Final = frozenset(
    "agents.md agent.md claude.md claude.local.md gemini.md copilot-instructions.md conventions.md contributing.md style.md"
    " .cursorrules .windsurfrules .clinerules .goosehints openapi.json openapi.yaml openapi.yml".split()
)
_CONTRACT: Final = re.compile(
    r"(?:^|[._-])(?:schemas?|contracts?|polic(?:y|ies)|rules|instructions?|conventions?|guidelines?)(?:[._-][\w.-]*)?"
    r"\.(?:mdx?|mdc|txt|rst|json|ya?ml|toml|sql|proto|graphql|xsd)",
    re.IGNORECASE,
)
_TOOLS: Final = 4  # of a turn that are named
_WHOLE_CUE_CHARS: Final = 400  # of a call whose cue was shortened


class ContextObject(Struct, frozen=True, kw_only=True):
    """One thing that a plan can name, as it is shown now. It is eligible when there is no `why` against it."""

    id: str  # user:3, read:12, skill:release
    kind: Kind
    handle: str  # what recall understands; of a skill that of a load that may go, else of its newest
    handles: tuple[str, ...] = ()  # of a skill: those of its loads that would leave, oldest first
    tokens: int  # o200k, of what would leave
    age: int  # model replies since its last block
    start: At
    turn: int  # 0 before the first human words
    attach: int  # record entry before which a pointer to it may stand: right after the human words of its turn
    place: int = 0  # the same, where it breaks no more of a cached prefix than the object itself does when it leaves
    behind: int = 0  # o200k tokens of the view that come after its first block
    cue: str = ""  # one line, at most CUE_CHARS
    places: tuple[At, ...] = ()  # the shown blocks that would leave, in order: never human words, never what is barred
    result: At | None = None  # of a call: the block that a mask would shorten
    later: str = ""  # of a call: the newest later call of the same tool about the same; of a skill: its newest load
    error: bool = False  # the call failed
    shortened: bool = False  # something stands in place of its result already
    known: Known = NOTHING  # of a call, where its texts can be read
    is_newest: bool = False  # of a call: older calls of the same tool about the same are shown too
    calls: int = 0  # of a turn: how many of its calls would leave
    done: str = ""  # of a turn: what its calls did, and how it ended, in a line
    spared: tuple[str, ...] = ()  # objects inside it that stay when it leaves
    loads: tuple[str, ...] = ()  # of a skill: its calls, oldest first
    why: WhyBarred | None = None


def objects_in(situation: Situation, /, *, read: Read | None = None, within_cut: bool = False) -> tuple[ContextObject, ...]:
    """The objects of which something is shown, in record order, a turn before its calls.

    O(view), with `read` O(texts of the view): turns have a cue then, a file whose long path was shortened is known for what it is, and calls
    say what is known of them. `within_cut` departs from the paper: calls of the newest human turn that are older than the tail may be
    named too. A session of one human turn has nothing else to offer.
    """
    return tuple(sorted(_Census(situation, read, within_cut=within_cut).objects(), key=lambda each: each.start))


class _Census:
    """One walk over the view, then one over the calls and turns that it shows."""

    def __init__(self, situation: Situation, read: Read | None, *, within_cut: bool) -> None:
        self._index, self._guard, self._read = situation.index, situation.guard, read
        self._within_cut = within_cut
        self._weights: dict[At, int] = {}
        self._behind: dict[int, int] = {}  # tokens from an entry on
        self._replaced: set[At] = set()
        self._shown: dict[int, list[At]] = {}  # blocks by span
        self._loose: dict[int, list[At]] = {}  # blocks of no span by turn
        self._turns: set[int] = set()
        self._walk(situation)
        self._spans = [self._index.spans[ordinal] for ordinal in sorted(self._shown)]
        self._cues = {span.ordinal: self._whole_cue(span) for span in self._spans}
        self._skills: dict[str, list[Span]] = {}  # shown loads by the skill's name in lower case, oldest first
        self._same: dict[tuple[str, str], list[Span]] = {}  # calls about the same, oldest first
        self._in_force = self._survey()
        self._known = known_of(situation, read, self._spans, self._cues) if read is not None else {}
        self._attach: dict[int, int] = {}
        self._whys = {span.ordinal: self._why(span) for span in self._spans}
        for loads in self._skills.values():
            self._whys[loads[-1].ordinal] = self._whys[loads[-1].ordinal] or WhyBarred.SKILL

    def objects(self) -> Iterator[ContextObject]:
        loads = {span.ordinal for each in self._skills.values() for span in each}
        by_turn: dict[int, list[Span]] = {}
        for span in self._spans:
            by_turn.setdefault(self._index.block(span.call).turn, []).append(span)
            if span.ordinal not in loads:
                yield self._call(span)
        yield from map(self._skill, self._skills.values())
        for turn in sorted(self._turns - {0}):
            if turn in self._loose or turn in by_turn:
                yield self._turn(turn, self._loose.get(turn, []), by_turn.get(turn, []))

    def _walk(self, situation: Situation) -> None:
        behind = situation.view.tokens
        for row in situation.view.rows():
            self._behind[row.entry] = behind
            behind -= row.tokens
            facts = self._index.entries[row.entry].blocks
            texts = dict(row.replaced)
            spoken = any(facts[number].origin is Origin.HUMAN for number in row.blocks)
            for number in row.blocks:
                fact, at = facts[number], (row.entry, number)
                if fact.origin is Origin.HUMAN:
                    self._turns.add(fact.turn)
                    continue
                self._weights[at] = texts[number].tokens if number in texts else fact.tokens
                if number in texts:
                    self._replaced.add(at)
                if fact.span != NONE:
                    self._shown.setdefault(fact.span, []).append(at)
                elif spoken and fact.origin is Origin.HARNESS:
                    continue  # what the host says beside a person's words stays with them
                elif (load := self._index.skills.source(at)) is not None:
                    self._shown.setdefault(load, []).append(at)  # what a skill says goes with the call that loaded it
                else:
                    self._loose.setdefault(fact.turn, []).append(at)

    def _survey(self) -> set[int]:
        """Notes later calls about the same and loads of skills; gives the newest states, and the newest reads of what is in force."""
        latest: dict[str, int] = {}
        for span in self._spans:
            tool, cue = _plain(span.tool), self._cues[span.ordinal]
            if tool in STATE_TOOLS:
                latest[f"state {tool}"] = span.ordinal
            if cue and not is_shortened(cue):
                self._same.setdefault((tool, cue), []).append(span)
            if span.kind is ToolKind.DURABLE:
                continue
            if (load := self._index.skills.of(span.ordinal)) is not None:
                self._skills.setdefault(load.name.casefold(), []).append(span)
                continue
            for path in filter(_is_contract, _paths(tool, cue)):
                latest[f"file {path}"] = span.ordinal
        return set(latest.values())

    def _whole_cue(self, span: Span) -> str:
        """What a call was about, in full where its cue was shortened and its arguments can be read."""
        if not is_shortened(span.cue) or self._read is None:
            return span.cue
        text = self._read(span.call[0]).blocks[span.call[1]].text
        start = text.find(span.cue.strip("…"))
        if start >= 0 and span.cue.startswith("…"):
            start = text.rfind('"', 0, start) + 1
        return text[start : start + _WHOLE_CUE_CHARS].partition('"')[0] if start >= 0 else span.cue

    def _why(self, span: Span) -> WhyBarred | None:
        index, shown = self._index, self._shown[span.ordinal]
        if not self._within_cut and any(index.block(at).turn == len(index.turns) for at in shown):
            return WhyBarred.CUT
        if held := next(filter(None, map(self._guard.why, shown)), None):
            return _HELD[held]
        if span.result is None and index.entries[span.call[0]].turn == len(index.turns):
            return WhyBarred.OPEN
        if is_delimiter(span.tool):
            return WhyBarred.MARK
        if is_recall(span.tool) and self._age(span.result or span.call) < RECALL_CALLS:
            return WhyBarred.RECALLED
        is_state = _plain(span.tool) in STATE_TOOLS
        if span.ordinal in self._in_force:
            return WhyBarred.STATE if is_state else WhyBarred.CONTRACT
        return WhyBarred.BODY if span.kind is ToolKind.DURABLE and not is_state and not span.error else None

    def _object(self, id_: str, kind: Kind, source: str, start: At, places: Iterable[At], newest: At) -> ContextObject:
        index, shown = self._index, tuple(places)
        turn = index.block(start).turn
        return ContextObject(
            id=id_,
            kind=kind,
            handle=index.handle(source, start[0]),
            tokens=sum(self._weights[at] for at in shown),
            age=self._age(newest),
            start=start,
            turn=turn,
            attach=self._attach_of(turn, start[0]),
            place=place_of(index, shown[0][0]) if shown else start[0],
            behind=self._behind[shown[0][0]] if shown else 0,
            places=shown,
        )

    def _call(self, span: Span) -> ContextObject:
        shown, cue = self._shown[span.ordinal], self._cues[span.ordinal]
        same = self._same.get((_plain(span.tool), cue), [span])
        return replace(
            self._object(span.object, "call", span.object, span.call, shown, shown[-1]),
            cue=_path_or_line(cue),
            result=span.result if span.result in shown else None,
            later=same[-1].object if same[-1].ordinal > span.ordinal else "",
            is_newest=len(same) > 1 and same[-1] is span,
            known=self._known.get(span.ordinal, NOTHING),
            error=span.error,
            shortened=any(at in self._replaced for at in shown),
            why=self._whys[span.ordinal],
        )

    def _skill(self, loads: list[Span]) -> ContextObject:
        """A skill as an object: what would leave are its older loads, while the newest stays in force."""
        newest, load = loads[-1], self._index.skills.of(loads[0].ordinal)
        name = load.name if load is not None else ""
        old, held = self._parted(loads)
        named = old[-1] if old else newest
        places = [at for span in old for at in self._shown[span.ordinal]]
        return replace(
            self._object(f"skill:{name}", "skill", named.object, named.call, places, self._shown[named.ordinal][-1]),
            handles=tuple(self._index.handle(span.object, span.call[0]) for span in old),
            cue=f"older loads of the skill {name}" if old else f"the skill {name}",
            later=newest.object if old else "",
            spared=tuple(span.object for span in held),
            loads=tuple(span.object for span in loads),
            why=None if old else self._whys[loads[-2:][0].ordinal],  # an older one's, where there is one
        )

    def _turn(self, number: int, loose: list[At], calls: list[Span]) -> ContextObject:
        start = self._index.turns[number - 1].start
        gone, spared = self._parted(calls)
        reasons = {at: self._guard.why(at) for at in loose}
        places = [at for at in loose if reasons[at] is None] + [at for span in gone for at in self._shown[span.ordinal]]
        newest = max([*loose, *(at for span in calls for at in self._shown[span.ordinal])])
        barred = [self._whys[span.ordinal] for span in calls] + [_HELD[reason] if reason else None for reason in reasons.values()]
        return replace(
            self._object(f"user:{number}", "turn", f"user:{number}", start, sorted(places), newest),
            cue=self._words(start),
            calls=len(gone),
            done=self._done(gone, loose),
            spared=tuple(span.object for span in spared),
            why=WhyBarred.CUT if number == len(self._index.turns) else _why_turn([*filter(None, barred)], is_empty=not places),
        )

    def _done(self, calls: Iterable[Span], loose: Iterable[At]) -> str:
        """What calls did, and the last words that would leave with them."""
        tools = Counter(_plain(span.tool) for span in calls)
        parts = [", ".join(f"{count} {cited(tool)}" for tool, count in tools.most_common(_TOOLS))] if tools else []
        words = [at for at in loose if self._index.block(at).kind == "text" and self._index.block(at).origin is Origin.MODEL]
        if words and self._read is not None:
            parts.append(f"ended: {in_quotes(first_line(self._read(words[-1][0]).blocks[words[-1][1]].text, CUE_CHARS))}")
        return "; ".join(parts)

    def _parted(self, spans: Iterable[Span]) -> tuple[list[Span], list[Span]]:
        """The calls that may leave, and those that may not."""
        free: list[Span] = []
        held: list[Span] = []
        for span in spans:
            (free if self._whys[span.ordinal] is None else held).append(span)
        return free, held

    def _words(self, at: At) -> str:
        block = None if self._read is None else self._read(at[0]).blocks[at[1]]
        return first_line(block.text, CUE_CHARS) if isinstance(block, Text) else ""

    def _attach_of(self, turn: int, entry: int) -> int:
        if turn == 0:
            return place_of(self._index, entry)
        if turn not in self._attach:
            self._attach[turn] = _after_words(self._index, turn)
        return self._attach[turn]

    def _age(self, at: At) -> int:
        return len(self._index.steps) - self._index.entries[at[0]].step


def _after_words(index: Index, turn: int) -> int:
    """The entry before which something may be said about a turn: after the person's words, and never between a call and its result."""
    entry = index.turns[turn - 1].start[0] + 1
    while entry < len(index) and any(block.origin is Origin.HUMAN for block in index.entries[entry].blocks):
        if index.entries[entry].turn != turn or index.entries[entry].role is Role.ASSISTANT:
            break
        entry += 1
    while entry < len(index) and not index.entries[entry].at_rest:
        entry += 1
    return entry


def _why_turn(barred: list[WhyBarred], *, is_empty: bool) -> WhyBarred | None:
    """A turn that reaches into the tail or an open episode stays as a whole; else what is barred in it stays, and the rest may go."""
    reaching = [why for why in barred if why in (WhyBarred.TAIL, WhyBarred.OPEN, WhyBarred.CUT)]
    return next(iter(reaching or (barred if is_empty else [])), None)


def _plain(tool: str) -> str:
    """A tool's name as the tables here have it: of an MCP server's tool its own."""
    return tool_key(tool).removeprefix("function:").rpartition("__")[2]


def _paths(tool: str, cue: str) -> tuple[str, ...]:
    """The files that a call was there to read, as far as its cue shows it."""
    words = cue.split()
    if len(words) <= 1 or tool in READ_TOOLS:
        return (cue,)
    return tuple(word.strip("\"'`;") for word in words) if _READERS.intersection(words) else ()


def _path_or_line(cue: str) -> str:
    """A cue to be shown: of a long path its end, which tells it from its neighbours."""
    line = first_line(cue, _WHOLE_CUE_CHARS)
    return first_line(cue, CUE_CHARS) if " " in line or len(line) <= CUE_CHARS else "…" + line[-(CUE_CHARS - 1) :]


def _is_contract(path: str) -> bool:
    name = re.split(r"[/\\]", path)[-1].lower()
    return name in CONTRACT_FILES or _CONTRACT.search(name) is not None
