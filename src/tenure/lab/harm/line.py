"""A line of harm, beside those of a replay."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from tenure.lab.harm.passage import At
from tenure.lab.harm.use import Part

Verdict = Literal["visible", "routed", "lost"]


class Category(StrEnum):
    """What future action becomes unsupported (Self-GC paper, Failure Categories and Case Studies, table 7)."""

    EVIDENCE = "evidence-detail"
    LOCATOR = "locator-handle"
    CONTRACT = "behavioral-contract"
    VERBATIM = "verbatim-source"
    LIVE = "live-state"
    ROUTING = "recovery-routing"


class HarmLine(Struct, frozen=True, kw_only=True, tag="harm", tag_field="type"):
    """A need that reached for something of which a part had left, and what became of it."""

    call: int
    entry: int  # the assistant's message
    block: int
    part: Part
    tool: str
    field: str  # the argument, empty in texts
    kind: str
    form: str
    text: str  # the first string that is missing; of a visible need, the first one that was touched
    more: int = 0  # strings of the same need that are missing too
    held: tuple[At, ...]  # where the record held it, oldest first
    objects: tuple[str, ...]  # the same as objects, each once
    verdict: Verdict
    category: Category
    rule: str  # that decided the category
    route: str = ""  # the handle that leads to it
    commit: int  # that removed it
