"""Cases whose right answer is known beforehand, to measure the judge itself.

The Self-GC paper names "judge-sensitivity analysis" as missing (Limitations); this is ours. Controls come in pairs at one cut. `unused` takes calls
of which no word that the session's later steps say stands in them alone: it has to pass. `needed` takes the same and, beside it, all that
held one exact string which a later step uses, and leaves no way back: it has to be caught. The two differ in nothing else, so a judge cannot
tell them apart by how much left, or how.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.policies.peers import is_free as may_go
from tenure.engine.policies.peers import results
from tenure.engine.policies.policy import Planned
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Entry, Role, Thinking
from tenure.engine.record.index import Index, Span
from tenure.engine.view.action import Take
from tenure.engine.view.edit import Edit
from tenure.lab.harm.holdings import words_of
from tenure.lab.harm.names import AnchorForm
from tenure.lab.harm.passage import plain
from tenure.lab.harm.use import StepUse, Wanted
from tenure.lab.harm.watch import Uses, after_cut

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
