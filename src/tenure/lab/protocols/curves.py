"""How long ago what a step needs was last held, and by what: miss-ratio curves of context.

A need is a use as the harm detector finds it (`evals.harm`), whatever a policy did. Its age is that of the newest passage that holds it; of
several strings used together the oldest such passage counts, since all of them are needed. What the model only thought is neither a need nor a
holder. An age in tokens is what of the newest record must be shown for the need to be visible, as in the stack distances of LRU caches.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from tenure.engine.meter.tokens import Tokenizer
from tenure.lab.events import BlockLine, EntryLine
from tenure.lab.harm.holdings import Passage, of_line
from tenure.lab.harm.use import StepUse
from tenure.lab.harm.watch import uses_of
from tenure.lab.measured import AgeBand, Curves, KindRow, Reach
from tenure.lab.protocols.runs import unbounded, without_head
from tenure.lab.protocols.workload import use_of
from tenure.lab.source import SessionSource

KEPT: Final = (1_000, 2_000, 4_000, 8_000, 16_000, 24_000, 32_000, 48_000, 64_000, 80_000, 120_000, 160_000, 240_000)
TOKEN_BANDS: Final = (0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
STEP_BANDS: Final = (1, 2, 4, 8, 16, 32, 64, 128)  # replies of the model since


def curves(source: SessionSource, tokenizer: Tokenizer) -> Curves:
    """The curves of one session. One pass over it and one over its needs. Raises InputError when it cannot be read."""
    session = _Session()
    entries = (line for line in unbounded(without_head(source), tokenizer) if isinstance(line, EntryLine))
    found = uses_of(of_line(line) for line in session.watched(entries))
    return session.curves([use for use in found.found if use.part != "thinking"])


class _Session:
    """Where everything of a session stands: tokens before each block, replies before each entry. Mutable while it is read."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], int] = {}  # tokens before a block
        self._kinds: dict[tuple[int, int], str] = {}
        self._step: list[int] = []  # by entry: replies up to it, itself included
        self._before: list[int] = []  # tokens before each reply
        self._said: dict[str, Counter[int]] = {}  # tokens of a kind, by the step of their entry
        self._calls: dict[str, str] = {}  # call id -> arguments, until its result has come
        self._tokens = 0

    def watched(self, lines: Iterable[EntryLine]) -> Iterable[EntryLine]:
        """The lines as they are, each noted."""
        for line in lines:
            if line.role == "assistant":
                self._before.append(self._tokens)
            self._step.append(len(self._before))
            for number, block in enumerate(line.blocks):
                kind = self._kind(block)
                self._places[line.entry, number] = self._tokens
                self._kinds[line.entry, number] = kind
                self._tokens += block.tokens or 0
                self._said.setdefault(kind, Counter())[len(self._before)] += block.tokens or 0
            yield line

    def curves(self, uses: Sequence[StepUse]) -> Curves:
        """The curves of the session with these needs. O(needs, blocks)."""
        needs = [need for use in uses if (need := self._need(use)) is not None]
        distances = sorted(distance for distance, _, _, _ in needs)
        missed = {kept: len(distances) - bisect_left(distances, kept + 1) for kept in KEPT}
        by_kind: dict[str, list[tuple[int, bool]]] = {}
        for _, age, kind, sole in needs:
            by_kind.setdefault(kind, []).append((age, sole))
        kinds = [self._kind_row(kind, by_kind.get(kind, ())) for kind in self._said.keys() | by_kind.keys()]
        return Curves(
            sessions=1,
            steps=len(self._before),
            tokens=self._tokens,
            needs=len(needs),
            reach=tuple(Reach(kept=kept, missed=missed[kept]) for kept in KEPT),
            by_tokens=_bands(TOKEN_BANDS, distances, self._of_tokens()),
            by_steps=_bands(STEP_BANDS, [age for _, age, _, _ in needs], self._of_steps(None)),
            by_kind=tuple(sorted(kinds, key=lambda row: (-row.tokens, row.kind))),
        )

    def _kind_row(self, kind: str, needs: Sequence[tuple[int, bool]]) -> KindRow:
        """What one kind weighs, and what it held last: the ages of these needs, and whether nothing of another kind held them."""
        return KindRow(
            kind=kind,
            tokens=self._said.get(kind, Counter()).total(),
            needs=len(needs),
            sole=sum(sole for _, sole in needs),
            bands=_bands(STEP_BANDS, [age for age, _ in needs], self._of_steps(kind)),
        )

    def _need(self, use: StepUse) -> tuple[int, int, str, bool] | None:
        """Age in tokens and in replies, the kind that held it last, and whether no other kind did; None where only thinking held it."""
        step = self._step[use.entry]
        newest: list[Passage] = []
        kinds: set[str] = set()
        for wanted in use.wanted:
            holders = [held for held in wanted.holders if held.kind != "thinking"]
            if not holders:
                return None
            newest.append(holders[-1])
            kinds.update(self._kinds[held.at] for held in holders)
        oldest = min(newest, key=lambda held: held.at)
        distance = self._before[step - 1] - self._places[oldest.at]
        return distance, step - self._step[oldest.at[0]], self._kinds[oldest.at], len(kinds) == 1

    def _of_tokens(self) -> list[int]:
        """For each band of ages in tokens, the tokens in it summed over all steps."""
        edges = [*TOKEN_BANDS[1:], None]
        return [
            sum((before if stop is None else min(before, stop)) - min(before, start) for before in self._before)
            for start, stop in zip(TOKEN_BANDS, edges, strict=True)
        ]

    def _of_steps(self, kind: str | None) -> list[int]:
        """For each band of ages in replies, the tokens in it summed over all replies; of one kind, or of all. O(replies).

        The `n`-th reply sees what has step `m` at age `n - m`: the results of the reply before it, and that reply itself, at age 1.
        """
        said: Counter[int] = Counter()
        for name, found in self._said.items():
            if kind in (None, name):
                said.update(found)
        replies = len(self._before)
        upto = [0, *accumulate(said.get(step, 0) for step in range(replies + 1))]  # tokens of the steps below
        edges = [*STEP_BANDS[1:], replies + 1]
        return [
            sum(upto[reply - start + 1] - upto[max(0, reply - stop + 1)] for reply in range(start, replies + 1))
            for start, stop in zip(STEP_BANDS, edges, strict=True)
        ]

    def _kind(self, block: BlockLine) -> str:
        """A block by what it is and what its tool is for."""
        kind, text = block.kind or "", block.text or ""
        if kind not in ("tool_call", "tool_result"):
            return kind if kind == "thinking" else f"{block.origin or ''} {kind}".strip()
        call_id = block.call_id if isinstance(block.call_id, str) else ""
        if kind == "tool_call":
            self._calls[call_id] = text
            return f"calls: {use_of(block.name or '', text)}"
        return f"results: {use_of(block.name or '', self._calls.pop(call_id, ''))}"


def _bands(edges: Sequence[int], ages: Iterable[int], token_steps: Sequence[int]) -> tuple[AgeBand, ...]:
    ordered = sorted(ages)
    places = [bisect_left(ordered, edge) for edge in edges]
    places[0] = 0
    counts = [stop - start for start, stop in zip(places, [*places[1:], len(ordered)], strict=True)]
    stops = (*edges[1:], None)
    return tuple(
        AgeBand(start=start, stop=stop, needs=needs, token_steps=tokens)
        for start, stop, needs, tokens in zip(edges, stops, counts, token_steps, strict=True)
    )
