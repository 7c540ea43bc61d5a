"""Builds a new conversation from chosen turns and briefs; the source stays as it is, and pairs stay whole.

It begins as a new session of the agent does, with its prompt. What is chosen is taken in record order, and shown as the source shows it: clips and
residues stay, a turn that a brief stands for is shown as it was before the brief. The source is the new conversation's parent, so that handles of the
source still bring back what they name. A brief and the turns that it stands for exclude each other; of a turn that the brief cuts, the rest may be
chosen beside it, and the person's words, which no brief takes, stand before it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.agent.screens.contents import Segment, is_brief, turn_blocks
from tenure.agent.screens.history import History, placing
from tenure.apis import APIS
from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import USUAL
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.record.entry import NEUTRAL, At, Draft, Origin, Role, Text
from tenure.engine.view.edit import Commit, Drop, Edit, Replace
from tenure.engine.view.inherit import InheritedView, inherited_view
from tenure.engine.view.thinking import invalidated
from tenure.errors import InputError
from tenure.store.records import Conversation, Records
from tenure.store.soundness import encoded

TITLE_CHARS: Final = 80


class Picks(Struct, frozen=True, kw_only=True):
    """What is chosen: turns by number (0 is what stands before a person's first word), briefs by key."""

    turns: frozenset[int] = frozenset()
    briefs: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.turns or self.briefs)

    def turn(self, number: int, segments: Iterable[Segment]) -> "Picks":
        """With a turn chosen, or no longer; a brief that stands for all of it lets go."""
        briefs = {segment.key for segment in segments if segment.key and number in segment.turns}
        return Picks(turns=self.turns ^ {number}, briefs=self.briefs - briefs)

    def brief(self, segment: Segment) -> "Picks":
        """With a brief chosen, or no longer; the turns it stands for let go."""
        return Picks(turns=self.turns - set(segment.turns), briefs=self.briefs ^ {segment.key}) if segment.key else self


class BuiltMessage(Struct, frozen=True, kw_only=True):
    """A message of the new conversation, and the blocks of the source that its blocks are; none of a brief or a prompt."""

    draft: Draft
    blocks: tuple[At, ...] = ()


def chosen(history: History, picks: Picks, segments: Iterable[Segment], prompt: Draft | None = None) -> Iterator[BuiltMessage]:
    """The messages of the new conversation, in order. With a `prompt`, those of the source are left out."""
    briefs = sorted((segment for segment in segments if segment.key in picks.briefs), key=lambda each: each.stop)
    wanted = _wanted(history, picks, briefs)
    if prompt is not None:
        yield BuiltMessage(draft=prompt)
    for entry, blocks in sorted(wanted.items()):
        if prompt is not None and history.index.entries[entry].role is Role.SYSTEM:
            continue
        while briefs and briefs[0].stop <= entry:
            yield BuiltMessage(draft=_harness(Role.USER, briefs.pop(0).text))
        yield BuiltMessage(draft=_part(history, entry, blocks), blocks=tuple((entry, block) for block in blocks))
    yield from (BuiltMessage(draft=_harness(Role.USER, brief.text)) for brief in briefs)


def build(
    history: History,
    picks: Picks,
    segments: Iterable[Segment],
    *,
    store: Records,
    folder: Path,
    count: Tokenizer,
    system: str = "",
    dialect: str = "",
) -> Conversation:
    """Keep the chosen as a new conversation of a folder, and say which. Raises InputError when nothing is chosen.

    `system` is the prompt of a new session, `dialect` the API that it speaks.
    """
    if not picks:
        raise InputError("selection", "nothing", "at least one turn or brief")
    made = list(chosen(history, picks, segments, _prompt(system, dialect) if system else None))
    source = history.sheet
    terms = Terms.stored(source.terms if source is not None else "")
    rules = rules_for(terms.provider, history.model, "")
    session = placing(Setup(budget=USUAL, rules=rules, policy=None, tenant=str(folder)), count)
    placed = session.propose([each.draft for each in made])
    session.accept(placed)
    sheet = Conversation(
        id=uuid4().hex,
        tenant=str(folder),
        title=f"built from {history.title}"[:TITLE_CHARS],
        parent=_parent(history, store),
        model=history.model,
        dialect=next((each.draft.dialect for each in reversed(made) if each.draft.dialect in APIS), dialect),
        budget=source.budget if source is not None and source.budget else msgspec.json.encode(USUAL).decode(),
        terms=""
        if source is None
        else encoded(replace(terms, tools={name: _since(made, at) for name, at in terms.tools.items()})),
    )
    return store.create(sheet, placed.entries, _commits(history, made, session))


def _wanted(history: History, picks: Picks, briefs: Iterable[Segment]) -> dict[int, list[int]]:
    """The blocks of the chosen turns by entry, without those that a chosen brief stands for."""
    stands = [range(brief.start, brief.stop) for brief in briefs]
    found: dict[int, list[int]] = {}
    for number, blocks in turn_blocks(history).items():
        for entry, block in blocks if number in picks.turns else ():
            is_persons = history.index.block((entry, block)).origin is Origin.HUMAN
            if is_persons or not number or not any(entry in each for each in stands):
                found.setdefault(entry, []).append(block)
    return {entry: sorted(blocks) for entry, blocks in found.items()}


def _since(made: Sequence[BuiltMessage], at: int) -> int:
    """The first message of the new conversation that comes of the source's entry `at` or of a later one."""
    return next((n for n, each in enumerate(made) if each.blocks and each.blocks[0][0] >= at), len(made))


def _commits(history: History, made: Iterable[BuiltMessage], session: Session) -> tuple[Commit, ...]:
    """What shows the chosen as the source shows it: one commit, made as the record begins; none where all of it stands as it was."""
    shown = inherited_view(history.index, len(history.index), history.commits, is_brief)
    places = {at: (n, block) for n, each in enumerate(made) for block, at in enumerate(each.blocks)}
    edits = list(_edits(shown, places))
    after = session.view.copy()
    after.apply(edits)
    if session.setup.rules.thinking == "prefix_bound":
        unsealed = list(invalidated(session.index, after, 0))  # what goes before it is another prefix now
        after.apply(unsealed)
        edits += unsealed
    if not edits:
        return ()
    commit = Commit(
        n=0,
        entries=session.length,
        policy="build",
        moment="admission",
        reason=f"shown as in {history.title}",
        tokens_before=session.view.tokens,
        tokens_after=after.tokens,
        edits=tuple(edits),
    )
    return (commit,)


def _edits(shown: InheritedView, places: Mapping[At, At]) -> Iterator[Edit]:
    """What left the chosen blocks, and the residues that stand in the source for something that left a chosen turn."""
    for at, (entry, block) in places.items():
        if not shown.shows(at):
            yield Drop(entry=entry, block=block)
        elif (instead := shown.instead(at)) is not None:
            yield Replace(entry=entry, block=block, text=instead.text, tokens=instead.tokens, routes=instead.routes)
    entries = {at[0]: entry for at, (entry, _) in places.items()}
    for insert in shown.view.inserts:
        if not is_brief(insert) and insert.before_entry in entries:  # keys are never used twice
            yield replace(insert, before_entry=entries[insert.before_entry], key=f"{insert.key}~built")


def _parent(history: History, store: Records) -> str:
    """The source's id in the store, where handles of the source will be looked up; empty for a session that is not of our own."""
    source = history.sheet
    if source is None:
        return ""
    try:
        store.conversation(source.id)
    except InputError:  # it is in another store
        entries = tuple(map(history.read, range(len(history.index))))
        store.create(replace(source, parent="", forked_at=0), entries, tuple(history.commits))
    return source.id


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


def _prompt(system: str, dialect: str) -> Draft:
    """The prompt as a new session records it."""
    if dialect not in APIS:
        return _harness(Role.SYSTEM, system)
    prompt = APIS[dialect].system(system)
    return prompt if isinstance(prompt, Draft) else APIS[dialect].parse([prompt])[0]


def _harness(role: Role, text: str) -> Draft:
    return Draft(role=role, blocks=(Text(text=text, origin=Origin.HARNESS),))
