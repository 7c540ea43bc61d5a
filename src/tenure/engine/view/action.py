"""What a policy can propose, as values, and the levels of stripping an episode (CWL paper, section 4.4).

DESIGN.md has the table of actions; below every action there are only the five edits.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.record.entry import Origin
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.index import NONE, BlockFacts, Index
from tenure.engine.record.objects import tool_key
from tenure.engine.record.tools import ToolKind


class Level(StrEnum):
    """How much of an episode goes (CWL paper, section 4.4), from least to most destructive."""

    REASONING = "reasoning"
    BULK = "bulk"
    INTERMEDIATE = "intermediate"
    SEARCH = "search"  # this and the next two are pi-cwl's: groups of tools by name
    COMMANDS = "commands"
    READS = "reads"
    EPISODE = "episode"


class Strip(Struct, frozen=True, kw_only=True, gc=False, tag="strip", tag_field="kind"):
    """Drop the blocks of one level of an episode. At the last level all goes but human text, and a description stays."""

    episode: int  # ordinal
    level: Level
    reluctant: bool = False  # only to keep a limit, not for the sake of a batch


class Unstrip(Struct, frozen=True, kw_only=True, gc=False, tag="restore", tag_field="kind"):
    """Show an episode as the record has it again; exempt from "never larger"."""

    episode: int  # ordinal


class Shorten(Struct, frozen=True, kw_only=True, tag="shorten", tag_field="kind"):
    """Show `text` in place of a tool call's result, or of its arguments (`text` is JSON then). What would not be shorter is not done.

    With `at` it is the block there that is shortened: a tool's words that stand in a log without a call of which they are the result.
    """

    span: int  # ordinal; -1 with an `at` that belongs to no call
    at: tuple[int, int] | None = None
    how: Literal["trim", "clear", "mask", "dedupe"]
    text: str
    routes: tuple[str, ...] = ()  # the handles that the text names
    part: Literal["result", "arguments"] = "result"
    above: int = 0  # done only while the view weighs more than this many o200k tokens
    reluctant: bool = False  # as for Strip
    reason: str = ""  # of whoever planned it


class Take(Struct, frozen=True, kw_only=True, tag="take", tag_field="kind"):
    """Drop what may go of these blocks, each call with its result. With a `pointer`, that is shown in their stead, in an entry of its own."""

    how: Literal["prune", "fold", "brief"]
    object: str  # as the log names it
    places: tuple[tuple[int, int], ...]  # (entry, block)
    pointer: str = ""
    before_entry: int = 0  # where the pointer stands: before this record entry
    routes: tuple[str, ...] = ()  # the handles that the pointer names
    above: int = 0  # as for Shorten
    reluctant: bool = False  # as for Strip
    inserted: bool = False  # inserted entries before `before_entry` go as well: residues, pointers, an older brief
    reason: str = ""  # as for Shorten


Action = Strip | Unstrip | Shorten | Take


def is_reluctant(action: Action) -> bool:
    """Whether it is done only to keep a limit that forces."""
    return not isinstance(action, Unstrip) and action.reluctant


# CWL paper, section 4.4: from least to most destructive; act episodes have no reasoning level.
LEVELS: Final = {
    EpisodeType.EXPL: (Level.REASONING, Level.BULK, Level.INTERMEDIATE, Level.EPISODE),
    EpisodeType.ACT: (Level.BULK, Level.INTERMEDIATE, Level.EPISODE),
}

_KIND_OF_LEVEL: Final = {Level.BULK: ToolKind.BULK, Level.INTERMEDIATE: ToolKind.INTERMEDIATE}

TOOLS_OF_LEVEL: Final = {
    Level.SEARCH: frozenset({"grep", "glob", "find", "ls"}),
    Level.COMMANDS: frozenset({"bash"}),
    Level.READS: frozenset({"read"}),
}

_WORDS: Final = {
    Level.REASONING: "the reasoning of an expl",
    Level.BULK: "search output and listings",
    Level.INTERMEDIATE: "file reads and command output",
    Level.EPISODE: "all the rest",
} | {level: "calls of " + ", ".join(sorted(tools)) for level, tools in TOOLS_OF_LEVEL.items()}

_LEVEL_OF_KIND: Final = {kind: level for level, kind in _KIND_OF_LEVEL.items()}


def layers(index: Index, places: Iterable[tuple[int, int]]) -> dict[Level, list[tuple[int, int]]]:
    """Blocks by the first of LEVELS that drops them, in order; what only the last level drops is left out."""
    found: dict[Level, list[tuple[int, int]]] = {}
    for at in places:
        if level := _first_level(index, index.entries[at[0]].blocks[at[1]]):
            found.setdefault(level, []).append(at)
    return found


def at_level(index: Index, at: tuple[int, int], level: Level) -> bool:
    """Whether a level drops a block (section 4.4): reasoning, search output, reads and commands, everything."""
    facts = index.block(at)
    if level is Level.EPISODE:
        return True
    if level in LEVELS[EpisodeType.EXPL]:
        return _first_level(index, facts) is level
    return facts.span != NONE and tool_key(index.spans[facts.span].tool) in TOOLS_OF_LEVEL[level]


def _first_level(index: Index, facts: BlockFacts) -> Level | None:
    if facts.kind == "thinking":
        return Level.REASONING
    if facts.span != NONE:
        return _LEVEL_OF_KIND.get(index.spans[facts.span].kind)
    # What a tool said stands in some logs as words, without a call: of which tool is not known.
    return Level.INTERMEDIATE if facts.origin is Origin.TOOL else None


def levels_text(levels: Mapping[EpisodeType, Iterable[Level]]) -> str:
    """A table of levels in words: what goes first of an episode, and what then."""
    return "Of an episode go first " + ", then ".join(_WORDS[level] for level in levels[EpisodeType.EXPL])
