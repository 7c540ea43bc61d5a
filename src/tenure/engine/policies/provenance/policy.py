"""Eviction by provenance: where something came from, and what later steps took of it, say what may be asked of it again.

No annotation, no model; the chances are learned (keeping.py).
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct

from tenure.engine.meter.tokens import FRAMING
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.placeholder import hint
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.provenance.keeping import LEARNED, NOTE, WHOLE, Keeping, KeptParts, ModelWeights
from tenure.engine.policies.provenance.sight import NAMES, PartialResult, Sight, listed
from tenure.engine.policies.situation import Situation
from tenure.engine.record.index import NONE
from tenure.engine.record.quotation import cited
from tenure.engine.record.tools import ToolKind
from tenure.engine.view.action import Action, Level, Shorten, Strip

TRIES: Final = 4  # at meeting a goal to the token
SHARES: Final = (0.4, 0.1)  # of the results' tokens, where no goal is known
SKELETON: Final = 0.8  # of what room there is: what calls, words and placeholders may take before whole steps go


class Provenance(Struct, frozen=True, kw_only=True):
    """The policy, with the weights it was taught."""

    name: str = "provenance"
    weights: ModelWeights = LEARNED
    skeleton: float = SKELETON
    conduct: Conduct = Conduct(by_level=True)  # parts of results go before any whole step

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Old reasoning, then parts of results, those that are least likely to be asked for; whole steps where they outweigh the rest; then as `cwl`.

        What the agent itself wrote is what it quotes later, so steps that wrote go last. O(texts of the view), n log n in its lines.
        """
        episodes = sorted(situation.free)
        for ordinal in episodes:
            yield Strip(episode=ordinal, level=Level.REASONING)
        work = _Work(situation, self.weights)
        idle = [ordinal for ordinal in episodes if work.is_idle(ordinal)]
        goal = situation.goal
        gone: set[int] = set()
        if goal:
            for ordinal in work.outweighing(idle, goal, self.skeleton):
                gone.add(ordinal)
                yield Strip(episode=ordinal, level=Level.EPISODE)
            yield from work.meeting(goal, gone)
        else:
            for share in SHARES:
                yield from work.keeping(share, gone)
        yield from work.keeping(0.0, gone)
        for ordinal in idle:
            if ordinal not in gone:
                yield Strip(episode=ordinal, level=Level.EPISODE)
        yield from Cwl()(situation)


class _Work:
    """One run over a view."""

    def __init__(self, situation: Situation, weights: ModelWeights) -> None:
        self._situation = situation
        self._sight = Sight(situation)
        self._keeping = Keeping(self._sight, weights)
        self._counts: dict[str, int] = {}
        self._places = frozenset(piece.at for piece in self._sight.pieces)

    def is_idle(self, ordinal: int) -> bool:
        """Whether an episode made calls that changed nothing, and nothing builds on it.

        Words alone stay: they are few, and a reply that ended a loop of calls must not go before them, or the loop would be open again.
        """
        index = self._situation.index
        calls = [span for at in self._situation.free[ordinal] if (span := index.block(at).span) != NONE]
        if not calls or not index.episodes[ordinal].closed or index.episodes[ordinal].dependents:
            return False
        return not any(index.spans[span].kind is ToolKind.DURABLE for span in calls)

    def outweighing(self, idle: list[int], goal: int, share: float) -> Iterator[int]:
        """The oldest steps that changed nothing, as many as it takes for what cannot be shortened to take `share` of what may stay at all."""
        free = sum(self._situation.view.weight(*at) for places in self._situation.free.values() for at in places)
        held = self._situation.view.tokens - free
        standing, most = self._standing(frozenset()) - held, share * (goal - held)
        for ordinal in idle:
            if standing <= most:
                return
            standing -= self._weight(ordinal)
            yield ordinal

    def meeting(self, goal: int, gone: set[int]) -> Iterator[Shorten]:
        """Results shortened so that the view weighs about `goal` in all: what is kept is counted, and the room set right."""
        pieces = self._left(gone)
        wanted = goal - self._standing(gone)
        room = float(wanted)
        texts: dict[int, str] = {}
        for _ in range(TRIES):
            if room <= 0:
                break
            texts = self._texts(self._keeping.choose(room, pieces))
            over = sum(self._shown(number, texts) - self._least(number) for number in pieces) - wanted
            if -0.01 * goal <= over <= 0:
                break
            room -= over * (1.05 if over > 0 else 0.9)
        yield from self._shortened(texts)

    def keeping(self, share: float, gone: set[int]) -> Iterator[Shorten]:
        """Results shortened to a share of their tokens, all together."""
        pieces = self._left(gone)
        room = share * sum(self._sight.pieces[number].weight for number in pieces)
        yield from self._shortened(self._texts(self._keeping.choose(room, pieces)))

    def _left(self, gone: set[int]) -> list[int]:
        return [number for number, piece in enumerate(self._sight.pieces) if piece.episode not in gone]

    def _standing(self, gone: set[int] | frozenset[int]) -> int:
        """Tokens of what is not shortened here: all but reasoning that may go, and of each result no more than its placeholder."""
        situation = self._situation
        reasoning = sum(
            situation.view.weight(*at)
            for ordinal, places in situation.free.items()
            if ordinal not in gone
            for at in places
            if situation.index.block(at).kind == "thinking"
        )
        results = sum(self._sight.pieces[number].weight - self._least(number) for number in self._left(set(gone)))
        whole = sum(situation.view.weight(*at) for ordinal in gone for at in situation.free[ordinal])
        return situation.view.tokens - reasoning - results - whole

    def _weight(self, ordinal: int) -> int:
        """What would be left of an episode once its results are shortened."""
        situation = self._situation
        places = [at for at in situation.free[ordinal] if situation.index.block(at).kind != "thinking"]
        weights = ((at, situation.view.weight(*at)) for at in places)
        return sum(min(weight, NOTE) if at in self._places else weight for at, weight in weights)

    def _least(self, number: int) -> int:
        return min(NOTE, self._sight.pieces[number].weight)

    def _shown(self, number: int, texts: Mapping[int, str]) -> int:
        piece = self._sight.pieces[number]
        text = texts.get(number)
        return piece.weight if text is None else min(piece.weight, self._count(text) + FRAMING * (piece.at[1] == 0))

    def _count(self, text: str) -> int:
        if text not in self._counts:
            self._counts[text] = self._situation.count(text)
        return self._counts[text]

    def _texts(self, kept: Mapping[int, KeptParts]) -> dict[int, str]:
        """What is shown of each piece that does not stay as it is."""
        return {number: text for number, each in kept.items() if (text := self._text(self._sight.pieces[number], each))}

    def _text(self, piece: PartialResult, kept: KeptParts) -> str:
        shown = [piece.lines[number] for number in sorted(kept.lines)]
        if sum(map(len, shown)) + len(shown) >= WHOLE * (sum(map(len, piece.lines)) + len(piece.lines)):
            return ""
        said = set(chain.from_iterable(piece.said[number] for number in kept.lines))
        names = listed(name for name in kept.names if name not in said)
        return "\n".join([piece.note or self._note(piece), *([f"{NAMES}{names}]"] if names else []), *shown])

    def _shortened(self, texts: Mapping[int, str]) -> Iterator[Shorten]:
        """Those first of which the least is expected to be asked for each token."""
        for number in sorted(texts, key=lambda number: (self._keeping.losses[number], number)):
            piece = self._sight.pieces[number]
            yield Shorten(span=piece.span, at=piece.at, how="clear", text=texts[number], routes=(self._handle(piece),))

    def _note(self, piece: PartialResult) -> str:
        index = self._situation.index
        tokens = index.block(piece.at).tokens
        span = index.spans[piece.span] if piece.span != NONE else None
        about = f" of {cited(span.cue)}" if span and span.cue else ""
        again = hint(span.tool if span else "", span.kind if span else ToolKind.INTERMEDIATE)
        failed = " It failed." if span and span.error else ""
        return (
            f"[result{about} shortened, {tokens:,} tokens.{failed} {again}, or recall {self._handle(piece)} for exactly what was here."
            " Below: lines of it.]"
        )

    def _handle(self, piece: PartialResult) -> str:
        index = self._situation.index
        if piece.span == NONE:
            return index.handle(f"entry:{piece.at[0]}/{piece.at[1]}", piece.at[0])
        span = index.spans[piece.span]
        return index.handle(span.object, span.call[0])
