"""What left the view and fits the task at hand: by the words that tell it apart, and by meaning where the host has a model of that.

Pure. Shares and thresholds were set on recorded sessions (`bench/fitting.py`): most prompts fit nothing, and then nothing is said.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import At, Read
from tenure.engine.record.index import Index, Span
from tenure.engine.record.quotation import cited
from tenure.engine.record.search import Matcher, Nearest, ranked, terms_of

MOST: Final = 3  # objects that are named
TELLING: Final = 6.0  # nats that the words held must tell together
SHARE: Final = 0.4  # of what all words of the task tell
LIKENESS: Final = 0.55  # cosine from which a text is near enough by meaning alone


class Fit(Struct, frozen=True, kw_only=True):
    """An object that left and fits."""

    object: str
    handle: str
    cue: str
    share: float  # of what the words of the task tell, 0 to 1
    telling: float  # nats
    likeness: float = 0.0  # cosine


def fitting(index: Index, read: Read, words: str, gone: Iterable[Span], nearest: Nearest | None = None) -> tuple[Fit, ...]:
    """Of calls whose results left, those that fit, best first. O(their texts)."""
    spans = {span.result: span for span in gone if span.result is not None}
    places = sorted(spans, reverse=True)
    matcher = Matcher(terms_of(words))

    def texts() -> Iterable[tuple[At, str]]:
        return ((at, read(at[0]).blocks[at[1]].text) for at in places)

    found = ranked(((at, text, index.block(at).tokens) for at, text in texts()), matcher, MOST * 2)
    near = {each.at: each.likeness for each in nearest(words, texts()).texts} if nearest is not None and places else {}
    whole = sum(found.weights) or 1.0
    fits: list[Fit] = []
    for at in dict.fromkeys((*found.best, *list(near)[: MOST * 2])):
        counts = matcher.counts(read(at[0]).blocks[at[1]].text)
        telling = sum(weight for weight, count in zip(found.weights, counts, strict=True) if count)
        likeness = near.get(at, 0.0)
        if (telling >= TELLING and telling / whole >= SHARE) or likeness >= LIKENESS:
            span = spans[at]
            handle = index.handle(span.object, span.call[0])
            fits.append(
                Fit(object=span.object, handle=handle, cue=span.cue, share=telling / whole, telling=telling, likeness=likeness)
            )
    return tuple(sorted(fits, key=lambda fit: -max(fit.share, fit.likeness))[:MOST])


def fits_note(fits: Iterable[Fit]) -> str:
    """What the agent is told of them; empty without any."""
    named = ", ".join(f"{fit.handle} ({cited(fit.cue)})" if fit.cue else fit.handle for fit in fits)
    return (
        f"[earlier results that left the window may fit this task: {named}. recall brings back what you need of them.]"
        if named
        else ""
    )
