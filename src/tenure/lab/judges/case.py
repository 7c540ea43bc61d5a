"""What a judge decides on: one cut of a recorded session, what a plan took there, and what really came after.

Self-GC paper, Evaluation Artifacts: "the judge receives the retained prefix, structured plan, impacted-turn patches, and the real future turns
after the cut point". What was removed is known to the judge alone; what the acting model would see is `Case.kept` and nothing else.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.view.edit import Act
from tenure.lab.events import Category
from tenure.lab.events import Verdict as Stands

# Who or what speaks in a piece.
Kind = Literal["system", "human", "words", "thinking", "call", "result", "note"]

# Of a case in which the right answer is known: something was removed that the future needs, or only what it does not.
Control = Literal["", "needed", "unused"]

INSERTED: Final = -1  # the block of a piece that no record entry holds: a pointer, a residue


class Piece(Struct, frozen=True, kw_only=True, gc=False):
    """One block as a judge reads it."""

    entry: int  # of an inserted one, the entry before which it stands
    block: int
    turn: int  # the human turn in force, 0 before the first
    kind: Kind
    name: str = ""  # the handle of a call
    text: str
    tokens: int  # o200k
    error: bool = False
    is_part: bool = False  # of what was removed: something of the block is still shown

    @property
    def at(self) -> tuple[int, int]:
        """Its place in the record."""
        return self.entry, self.block


class Need(Struct, frozen=True, kw_only=True):
    """What the mechanical detector says a later step wanted of something that was touched. A judge is never shown it."""

    call: int
    entry: int  # of the step
    block: int
    line: int  # of the step in its file, 0 where it has none
    kind: str
    form: str
    text: str
    objects: tuple[str, ...]  # that held it
    held: tuple[tuple[int, int], ...]
    stands: Stands
    category: Category


class Facts(Struct, frozen=True, kw_only=True):
    """A case without its texts: where it is, and how much left."""

    source: str
    cut: int  # the number of the cut in its session
    before_call: int
    entry: int  # the first entry of the future
    line: int  # of that entry in its file, 0 where it has none
    policy: str
    control: Control = ""
    tokens: int  # of the view before, in o200k tokens
    pruned: float  # the share that left, net of residues


class Case(Struct, frozen=True, kw_only=True):
    """One plan at one cut."""

    facts: Facts
    acts: tuple[Act, ...]
    kept: tuple[Piece, ...]  # all that the acting model sees, residues in their places
    removed: tuple[Piece, ...]  # for the judge alone, in record order
    future: tuple[Piece, ...]
    calls: Mapping[int, int]  # number of each later call by the entry that answers it
    needs: tuple[Need, ...]
