"""Building a new conversation from chosen turns and briefs. Promise: nothing is lost: the source stays as it is, and pairs stay whole.

A brief and the turns it stands for exclude each other. What is chosen is taken exactly, in record order; an entry of which only a part is chosen is
written anew from its blocks, any other keeps its bytes.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from tenure.dialects import DIALECTS
from tenure.errors import InputError
from tenure.lifecycle.budget import USUAL
from tenure.lifecycle.session import Session, Setup
from tenure.meter.tokens import Tokenizer, weigh
from tenure.record.entry import NEUTRAL, Draft, Origin, Role, Text
from tenure.rules.tables import rules_for
from tenure.store.records import Conversation, Records
from tenure.tui.history import History
from tenure.tui.listing import Segment, turn_blocks

TITLE_CHARS = 80


class Picks(Struct, frozen=True, kw_only=True):
    """What is chosen: turns by number (0 is what stands before a person's first word), briefs by key."""

    turns: frozenset[int] = frozenset()
    briefs: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.turns or self.briefs)

    def turn(self, number: int, segments: Iterable[Segment]) -> "Picks":
        """With a turn chosen, or no longer; a brief that stands for it lets go."""
        briefs = {segment.key for segment in segments if segment.key and number in segment.turns}
        return Picks(turns=self.turns ^ {number}, briefs=self.briefs - briefs)

    def brief(self, segment: Segment) -> "Picks":
        """With a brief chosen, or no longer; the turns it stands for let go."""
        return Picks(turns=self.turns - set(segment.turns), briefs=self.briefs ^ {segment.key}) if segment.key else self


def drafts(history: History, picks: Picks, segments: Iterable[Segment]) -> Iterator[Draft]:
    """The messages of the new conversation, in order."""
    blocks = turn_blocks(history)
    chosen: dict[int, list[int]] = {}
    for number in picks.turns:
        for entry, block in blocks.get(number, ()):
            chosen.setdefault(entry, []).append(block)
    briefs = sorted((segment for segment in segments if segment.key in picks.briefs), key=lambda each: each.stop)
    for entry in sorted(chosen):
        while briefs and briefs[0].stop <= entry:
            yield _brief(briefs.pop(0))
        yield _part(history, entry, sorted(chosen[entry]))
    yield from map(_brief, briefs)


def build(
    history: History, picks: Picks, segments: Iterable[Segment], *, store: Records, folder: Path, count: Tokenizer
) -> Conversation:
    """Keep the chosen as a new conversation of a folder, and say which. Raises InputError when nothing is chosen."""
    if not picks:
        raise InputError("selection", "nothing", "at least one turn or brief")
    made = list(drafts(history, picks, segments))
    rules = rules_for("", history.model, "")
    setup = Setup(budget=USUAL, rules=rules, policy=None, tenant=str(folder))
    placing = Session(setup, weigh=lambda blocks: weigh(blocks, count, rules.media), count=count)
    placed = placing.propose(made)
    dialect = next((draft.dialect for draft in reversed(made) if draft.dialect in DIALECTS), "")
    sheet = Conversation(
        id=uuid4().hex,
        tenant=str(folder),
        title=f"built from {history.title}"[:TITLE_CHARS],
        model=history.model,
        dialect=dialect,
        budget=msgspec.json.encode(USUAL).decode(),
    )
    return store.create(sheet, placed.entries)


class Builder:
    """Where a conversation that is built goes."""

    def __init__(self, store: Callable[[], Records], folder: Path, count: Tokenizer, *, keep: bool = False) -> None:
        """`keep`: the store is somebody else's to close."""
        self._store, self._folder, self._count, self._keep = store, folder, count, keep

    def __call__(self, history: History, picks: Picks, segments: Iterable[Segment]) -> str:
        """Build, and say the new conversation's id."""
        store = self._store()
        try:
            return build(history, picks, segments, store=store, folder=self._folder, count=self._count).id
        finally:
            if not self._keep:
                store.close()


def _part(history: History, number: int, blocks: list[int]) -> Draft:
    entry = history.read(number)
    whole = len(blocks) == len(entry.blocks)
    return Draft(
        role=entry.role,
        blocks=entry.blocks if whole else tuple(entry.blocks[block] for block in blocks),
        dialect=entry.dialect if whole else NEUTRAL,
        payload=entry.payload if whole and entry.dialect != NEUTRAL else b"",
        at=entry.at,
        model=entry.model,
    )


def _brief(segment: Segment) -> Draft:
    return Draft(role=Role.USER, blocks=(Text(text=segment.text, origin=Origin.HARNESS),))
