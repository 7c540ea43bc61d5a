"""Cases for a judge: one cut of a recorded session, what a plan took there, and what really came after.

Self-GC paper, Evaluation Artifacts: "the judge receives the retained prefix, structured plan, impacted-turn patches, and the real future turns
after the cut point". What was removed is known to the judge alone; what the acting model would see is `Case.kept` and nothing else. Every policy
is cut at the same places and takes the same share of the same view, as in `lab.cuts`; nothing here asks a model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, assert_never

from msgspec import Struct

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Planned, Policy
from tenure.engine.record.entry import (
    Block,
    Count,
    Entry,
    Media,
    Opaque,
    Origin,
    Read,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Drop, Edit, Insert, LoggedAction, Replace
from tenure.engine.view.project import Projection, View
from tenure.errors import ModelError
from tenure.lab.cuts import POINTS, PRUNE, Ground, grounds, rehearsed
from tenure.lab.events import Category, HarmLine, spelled
from tenure.lab.events import Verdict as Stands
from tenure.lab.harm.watch import after_cut
from tenure.lab.judges.controls import holds, pair
from tenure.lab.source import SessionSource

# Who or what speaks in a piece.
Kind = Literal["system", "human", "words", "thinking", "call", "result", "note"]

# Of a case in which the right answer is known: something was removed that the future needs, or only what it does not.
Control = Literal["", "needed", "unused"]

INSERTED: Final = -1  # the block of a piece that no record entry holds: a pointer, a residue


class CasePiece(Struct, frozen=True, kw_only=True, gc=False):
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


class CaseNeed(Struct, frozen=True, kw_only=True):
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


class CaseFacts(Struct, frozen=True, kw_only=True):
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

    facts: CaseFacts
    acts: tuple[LoggedAction, ...]
    kept: tuple[CasePiece, ...]  # all that the acting model sees, residues in their places
    removed: tuple[CasePiece, ...]  # for the judge alone, in record order
    future: tuple[CasePiece, ...]
    calls: Mapping[int, int]  # number of each later call by the entry that answers it
    needs: tuple[CaseNeed, ...]


CONTROLS: Final = "control"  # the name of what no policy planned


def cases(
    one: SessionSource,
    policies: Mapping[str, Policy],
    tokenizer: Tokenizer,
    *,
    points: int = POINTS,
    prune: float = PRUNE,
    pairs: int = 0,
) -> Iterator[Case]:
    """Every policy at every cut of a session, and at the first cuts that allow it up to `pairs` pairs of controls.

    None for a session too short to be cut, and none of a planner that has no answer there. Raises InputError when it cannot be read.
    """
    for ground in grounds(one, tokenizer, points=points):
        whole = ground.whole
        future = tuple(of_future(whole.entries[ground.session.length :], whole.index))
        for name, policy in policies.items():
            try:
                plan = rehearsed(ground.session, policy, prune)
            except ModelError:  # a planner without an answer has no plan to judge
                continue
            yield _case(ground, future, name, plan, tokenizer)
        if pairs:
            found = _pair(ground, prune)
            pairs -= bool(found)
            for control, plan in found:
                yield _case(ground, future, CONTROLS, plan, tokenizer, control)


def _pair(ground: Ground, prune: float) -> tuple[tuple[Control, Rehearsal], ...]:
    """The two controls of a cut; none where none can be made."""
    rehearsed(
        ground.session, Planned(name=CONTROLS, actions=()), prune
    )  # so that what is free does not hang on the policy before
    found = pair(ground.session.situation(), ground.uses, ground.whole.entries, prune)
    if found is None:
        return ()
    unused, needed = (rehearsed(ground.session, plan, prune) for plan in (found.unused, found.needed))
    if not holds(found, ground.uses, ground.session.length, unused.edits, needed.edits):
        return ()
    return ("unused", unused), ("needed", needed)


def _case(
    ground: Ground, future: tuple[CasePiece, ...], policy: str, plan: Rehearsal, count: Tokenizer, control: Control = ""
) -> Case:
    session, uses, entries = ground.session, ground.uses, ground.whole.entries
    read = ground.whole.read
    after = session.view.copy()
    after.apply(plan.edits)
    before = session.view.tokens
    return Case(
        facts=CaseFacts(
            source=spelled(ground.path),
            cut=ground.number,
            before_call=ground.call,
            entry=session.length,
            line=entries[session.length].line,
            policy=policy,
            control=control,
            tokens=before,
            pruned=1 - after.tokens / before,
        ),
        acts=plan.actions,
        kept=tuple(of_view(after.freeze(), session.index, read)),
        removed=of_edits(plan.edits, session.view, session.index, read, count),
        future=future,
        calls={answer: number for answer, number in uses.calls.items() if answer >= session.length},
        needs=tuple(_needs(after_cut(uses, session.length, (), plan.edits), entries)),
    )


_SHARED: Final = ("call", "entry", "block", "kind", "form", "text", "objects", "held", "category")


def _needs(lines: Iterable[HarmLine], entries: Sequence[Entry]) -> Iterator[CaseNeed]:
    for line in lines:
        if line.part != "thinking":
            shared = {name: getattr(line, name) for name in _SHARED}
            yield CaseNeed(**shared, line=entries[line.entry].line, stands=line.verdict)


_WORDS: Final[dict[Origin, Kind]] = {
    Origin.HUMAN: "human",
    Origin.MODEL: "words",
    Origin.TOOL: "note",
    Origin.HARNESS: "note",
}


def of_view(view: View, index: Index, read: Read) -> Iterator[CasePiece]:
    """What a view shows, in order. O(view)."""
    for line in view.lines:
        if isinstance(line, Insert):
            turn = index.entries[min(line.before_entry, len(index) - 1)].turn
            yield CasePiece(entry=line.before_entry, block=INSERTED, turn=turn, kind="note", text=line.text, tokens=line.tokens)
            continue
        entry, instead = read(line.entry), dict(line.replaced)
        for number in line.blocks:
            shown = instead.get(number)
            if shown is None:
                yield of_block(entry, number, index)
            else:
                yield of_block(entry, number, index, text=shown.text, tokens=shown.tokens)


def of_edits(edits: Iterable[Edit], before: Projection, index: Index, read: Read, count: Count) -> tuple[CasePiece, ...]:
    """What edits take out of a view, in record order: of a block that is shown shortened, the lines that are not shown any more. O(edits)."""
    gone: dict[tuple[int, int], CasePiece] = {}
    for edit in edits:
        if isinstance(edit, Drop | Replace):
            entry, standing = read(edit.entry), before.instead(edit.entry, edit.block)
            text = standing.text if standing is not None else entry.blocks[edit.block].text
            if isinstance(edit, Replace):
                text = _not_in(edit.text, text)
            tokens = count(text) if isinstance(edit, Replace) else before.weight(edit.entry, edit.block)
            piece = of_block(entry, edit.block, index, text=text, tokens=tokens, is_part=isinstance(edit, Replace))
            gone[piece.at] = piece
    return tuple(gone[at] for at in sorted(gone))


def of_future(entries: Iterable[Entry], index: Index) -> Iterator[CasePiece]:
    """What really came, without the reasoning: it is neither said nor done, and many logs leave it out."""
    for entry in entries:
        for number, block in enumerate(entry.blocks):
            if not isinstance(block, Thinking):
                yield of_block(entry, number, index)


def of_block(
    entry: Entry, number: int, index: Index, *, text: str | None = None, tokens: int | None = None, is_part: bool = False
) -> CasePiece:
    """One block, with another text where it is given."""
    block, facts = entry.blocks[number], index.block((entry.n, number))
    name = ""
    if facts.span != NONE:
        span = index.spans[facts.span]
        name = index.handle(span.object, span.call[0])
    return CasePiece(
        entry=entry.n,
        block=number,
        turn=facts.turn,
        kind=_kind(block, entry.role),
        name=name,
        text=_text(block) if text is None else text,
        tokens=facts.tokens if tokens is None else tokens,
        error=isinstance(block, ToolResult) and block.error,
        is_part=is_part,
    )


def _kind(block: Block, role: Role) -> Kind:
    match block:
        case ToolCall():
            return "call"
        case ToolResult():
            return "result"
        case Thinking():
            return "thinking"
        case Text() | Media():
            return "system" if role is Role.SYSTEM else _WORDS[block.origin]
        case Opaque():
            return "note"
        case _:
            assert_never(block)


def _text(block: Block) -> str:
    if isinstance(block, Media):
        return f"[{block.media_type or 'media'}] {block.text}".rstrip()
    if isinstance(block, ToolResult) and block.media:
        return f"{block.text}\n[{len(block.media)} media]"
    return block.text


def _not_in(shorter: str, text: str) -> str:
    """The lines of a text that a shorter one does not hold, each gap between them a line of its own."""
    shown = set(shorter.split("\n"))
    gone: list[str] = []
    for line in text.split("\n"):
        if line not in shown:
            gone.append(line)
        elif gone and gone[-1] != _GAP:
            gone.append(_GAP)
    return "\n".join(gone)


_GAP: Final = "…"
