"""What a policy can propose, as values. DESIGN.md has the table; below every action there are only the five edits."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct


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


Action = Strip | Unstrip | Shorten | Take


def is_reluctant(action: Action) -> bool:
    """Whether it is done only to keep a limit that forces."""
    return not isinstance(action, Unstrip) and action.reluctant
