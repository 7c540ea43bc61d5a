"""The levels of stripping an episode, as a table (CWL paper, section 4.4)."""

from typing import Final

from tenure.record.episodes import EpisodeType
from tenure.record.index import NONE, Index
from tenure.record.tools import ToolKind
from tenure.view.action import Level

# CWL paper, section 4.4: from least to most destructive; act episodes have no reasoning level.
LEVELS: Final = {
    EpisodeType.EXPL: (Level.REASONING, Level.BULK, Level.INTERMEDIATE, Level.EPISODE),
    EpisodeType.ACT: (Level.BULK, Level.INTERMEDIATE, Level.EPISODE),
}

_KIND_OF_LEVEL: Final = {Level.BULK: ToolKind.BULK, Level.INTERMEDIATE: ToolKind.INTERMEDIATE}


def at_level(index: Index, at: tuple[int, int], level: Level) -> bool:
    """Whether a level drops a block (section 4.4): reasoning, search output, reads and commands, everything."""
    facts = index.block(at)
    match level:
        case Level.REASONING:
            return facts.kind == "thinking"
        case Level.EPISODE:
            return True
        case _:
            return facts.span != NONE and index.spans[facts.span].kind is _KIND_OF_LEVEL[level]
