"""What a policy can propose, as values. DESIGN.md has the table; below every action there are only the five edits."""

from enum import StrEnum

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


Action = Strip | Unstrip
