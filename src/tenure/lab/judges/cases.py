"""Cases for a judge: one cut of a recorded session, what a plan took there, and what really came after.

Self-GC paper, Evaluation Artifacts: "the judge receives the retained prefix, structured plan, impacted-turn patches, and the real future turns
after the cut point". What was removed is known to the judge alone; what the acting model would see is `Case.kept` and nothing else. Every policy
is cut at the same places and takes the same share of the same view, as in `lab.cuts`; nothing here asks a model.

Cases whose right answer is known beforehand, to measure the judge itself.

The Self-GC paper names "judge-sensitivity analysis" as missing (Limitations); this is ours. Controls come in pairs at one cut. `unused` takes calls
of which no word that the session's later steps say stands in them alone: it has to pass. `needed` takes the same and, beside it, all that
held one exact string which a later step uses, and leaves no way back: it has to be caught. The two differ in nothing else, so a judge cannot
tell them apart by how much left, or how.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, assert_never

from msgspec import Struct

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.peers import is_free as may_go
from tenure.engine.policies.peers import results
from tenure.engine.policies.policy import Planned, Policy
from tenure.engine.policies.situation import Situation
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
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.view.action import Take
from tenure.engine.view.edit import Drop, Edit, Insert, LoggedAction, Replace
from tenure.engine.view.project import Projection, View
from tenure.errors import ModelError
from tenure.lab.cuts import POINTS, PRUNE, Ground, grounds, rehearsed
from tenure.lab.events import Category, HarmLine, fields_in, spelled
from tenure.lab.events import Verdict as Stands
from tenure.lab.harm.holdings import plain, words_of
from tenure.lab.harm.names import AnchorForm
from tenure.lab.harm.use import StepUse, Wanted
from tenure.lab.harm.watch import Uses, after_cut
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


def _needs(lines: Iterable[HarmLine], entries: Sequence[Entry]) -> Iterator[CaseNeed]:
    for line in lines:
        if line.part != "thinking":
            yield CaseNeed(**fields_in(line, CaseNeed), line=entries[line.entry].line, stands=line.verdict)


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


LEAST_SPANS: Final = 3  # calls of an `unused` control
LEAST_SHARE: Final = 0.05  # of the view, that they weigh
NEEDED_SPANS: Final = 3  # that may have held what is needed
NEEDED_SHARE: Final = 0.2  # of the view, that they may weigh
TRIED: Final = 40  # needs that are looked at in one cut
STRINGS: Final = 3  # of one need

# What a step cannot have put down without having had it, the surest first. A symbol may be known from elsewhere, a line of code written twice; a
# path that could be put together from what is still shown is not lost by the detector's rules, and so no control.
EXACT: Final = (AnchorForm.TARGET, AnchorForm.HASH, AnchorForm.ID, AnchorForm.URL, AnchorForm.PATH)


class Pair(Struct, frozen=True, kw_only=True):
    """Two plans at one cut, and what the second one takes that is needed."""

    unused: Planned
    needed: Planned
    use: StepUse
    text: str


def pair(situation: Situation, uses: Uses, entries: Sequence[Entry], prune: float) -> Pair | None:
    """The controls at the end of a situation's record, whose future is `entries` from there on; None where none can be made.

    `prune` is the share of the view that `unused` takes if there is as much. O(text of the session) and TRIED looks at the prefix.
    """
    cut = len(situation.index)
    free = [span for span in results(situation) if may_go(situation, span)]
    later = [use for use in uses.found if use.entry >= cut]
    filler = _unused(situation, free, later, entries[cut:], int(situation.view.tokens * prune))
    if len(filler) < LEAST_SPANS or _weight(situation, filler) < situation.view.tokens * LEAST_SHARE:
        return None
    texts = _Texts(entries, cut)
    for use, wanted, spans in _needed(situation, free, later):
        if {span.ordinal for span in spans}.isdisjoint({span.ordinal for span in filler}) and texts.only_in(wanted, use, spans):
            return Pair(
                unused=_plan("control:unused", filler),
                needed=_plan("control:needed", (*filler, *spans)),
                use=use,
                text=wanted.text,
            )
    return None


def holds(found: Pair, uses: Uses, cut: int, unused: Iterable[Edit], needed: Iterable[Edit]) -> bool:
    """Whether the plans, carried out, did what they were made for: by the detector too, nothing of the one is wanted, and of the other this."""
    if any(True for _ in after_cut(uses, cut, (), tuple(unused))):
        return False
    missed = [line for line in after_cut(uses, cut, (), tuple(needed)) if line.verdict == "lost" and line.part != "thinking"]
    return any(line.entry == found.use.entry and line.block == found.use.block for line in missed)


def _plan(name: str, spans: Iterable[Span]) -> Planned:
    ordered = sorted(spans, key=lambda span: span.call)
    takes = (Take(how="prune", object=span.object, places=_places(span)) for span in ordered)
    return Planned(name=name, actions=tuple(takes))


def _places(span: Span) -> tuple[tuple[int, int], ...]:
    return (span.call, span.result) if span.result is not None else (span.call,)


def _weight(situation: Situation, spans: Iterable[Span]) -> int:
    return sum(situation.view.weight(*at) for span in spans for at in _places(span))


def _unused(
    situation: Situation, free: Iterable[Span], later: Iterable[StepUse], future: Iterable[Entry], most: int
) -> tuple[Span, ...]:
    """Calls, oldest first, of which nothing later steps used holds anything, nor is one of their words found in them alone."""
    used = {held.at for use in later for wanted in use.wanted for held in wanted.holders}
    said = set(_said(future))
    left: Counter[str] = Counter()
    found: dict[tuple[int, int], set[str]] = {}
    for row in situation.view.rows():
        entry = situation.read(row.entry)
        for number in row.blocks:
            found[row.entry, number] = said.intersection(words_of(plain(entry.blocks[number].text)))
            left.update(found[row.entry, number])
    chosen: list[Span] = []
    for span in free:
        places = _places(span)
        held = Counter(word for at in places for word in found.get(at, ()))
        if used.isdisjoint(places) and all(left[word] > times for word, times in held.items()):
            most -= _weight(situation, (span,))
            if most < 0:
                break
            left -= held
            chosen.append(span)
    return tuple(chosen)


def _said(future: Iterable[Entry]) -> Iterator[str]:
    """The words of what later steps say and call."""
    for entry in future:
        if entry.role is Role.ASSISTANT:
            for block in entry.blocks:
                if not isinstance(block, Thinking):
                    yield from words_of(plain(block.text))


def _needed(
    situation: Situation, free: Iterable[Span], later: Iterable[StepUse]
) -> Iterator[tuple[StepUse, Wanted, tuple[Span, ...]]]:
    """What a later step uses, whose every holder lies in a few calls that may go: the surest kind first, then the first use."""
    index, cut = situation.index, len(situation.index)
    ordinals = {span.ordinal for span in free}
    most = situation.view.tokens * NEEDED_SHARE
    exact = [use for use in later if use.part != "thinking" and use.form in EXACT]
    exact.sort(key=lambda use: EXACT.index(use.form))
    for use in exact[:TRIED]:
        for wanted in use.wanted[:STRINGS]:
            spans = _holders(index, wanted)
            is_before = all(held.at[0] < cut for held in wanted.holders)
            is_free = ordinals.issuperset(span.ordinal for span in spans)
            if is_before and is_free and 0 < len(spans) <= NEEDED_SPANS and _weight(situation, spans) <= most:
                yield use, wanted, spans


def _holders(index: Index, wanted: Wanted) -> tuple[Span, ...]:
    """The calls that held a string; empty when something else held it too."""
    ordinals = dict.fromkeys(index.block(held.at).span for held in wanted.holders if held.at[0] < len(index))
    return () if any(ordinal < 0 for ordinal in ordinals) else tuple(index.spans[ordinal] for ordinal in ordinals)


class _Texts:
    """The session's texts in the detector's spelling, for looking a string up without any index: a control must not hang on a heuristic."""

    def __init__(self, entries: Sequence[Entry], cut: int) -> None:
        self._entries, self._cut = entries, cut

    def only_in(self, wanted: Wanted, use: StepUse, spans: Sequence[Span]) -> bool:
        """Whether a string stands, before it is used, nowhere but in these calls: not before the cut, nor between the cut and the use."""
        taken = {at for span in spans for at in _places(span)}
        for entry in self._entries[: use.entry]:
            for number, block in enumerate(entry.blocks):
                if (entry.n, number) not in taken and wanted.text in plain(block.text):
                    return False
        return True
