"""The levels of stripping an episode, as a table (CWL paper, section 4.4)."""

from collections.abc import Iterable, Mapping
from typing import Final

from tenure.engine.record.entry import Origin
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.index import NONE, BlockFacts, Index
from tenure.engine.record.objects import tool_key
from tenure.engine.record.tools import ToolKind
from tenure.engine.view.action import Level

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
