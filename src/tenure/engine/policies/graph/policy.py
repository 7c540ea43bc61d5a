"""The default: the graph of work says what is over, learned chances say what of each text stays where it stood.

It needs no marks and no model, and uses marks where there are some. The graph is policies/work.py, the chances are keeping.py.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct

from tenure.engine.meter.tokens import FRAMING
from tenure.engine.policies.cwl import CwlInferred
from tenure.engine.policies.graph.keeping import WHOLE, Keeping, KeptParts, ModelWeights
from tenure.engine.policies.graph.learned import LEARNED
from tenure.engine.policies.graph.sight import NAMES, PieceKind, Sight, TextPiece, with_fields, with_gaps
from tenure.engine.policies.graph.texts import listed
from tenure.engine.policies.placeholder import hint
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.policies.work import WorkGraph, WorkState
from tenure.engine.record.index import NONE
from tenure.engine.record.quotation import cited
from tenure.engine.record.tools import ToolKind
from tenure.engine.view.action import Action, Level, Shorten, Strip

TRIES: Final = 4  # at meeting a goal to the token
CLOSE: Final = 0.015  # of a goal: not worth another try
SHARES: Final = (0.4, 0.1)  # of the results' tokens, where no goal is known
SKELETON: Final = 0.8  # of what room there is: what calls, words and placeholders may take before whole steps go

# How much likelier a text is to be asked for by the state of the declared work that it is of; set by hand: too few marked sessions to tell (docs/policies/graph.md).
NEARNESS: Final = {
    WorkState.CLOSED_ACT: 0.6,
    WorkState.USED: 0.6,
    WorkState.UNUSED: 1.0,
    WorkState.BASE: 2.5,
    WorkState.OPEN: 2.0,
}


class GraphPolicy(Struct, frozen=True, kw_only=True):
    """The policy, with what it learned."""

    name: str = "graph"
    weights: ModelWeights = LEARNED
    skeleton: float = SKELETON
    conduct: Conduct = Conduct(by_level=True, deepens=True)  # parts of texts go before any whole step

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Old reasoning, then parts of texts, those least likely to be asked for; whole steps of closed work where they outweigh the rest; then as `cwl`.

        What open work builds on goes last. O(texts of the view), n log n in its lines.
        """
        episodes = sorted(situation.free)
        for ordinal in episodes:
            yield Strip(episode=ordinal, level=Level.REASONING)
        work = _GraphPass(situation, self.weights)
        goal = situation.goal
        gone: set[int] = set()
        if goal:
            for ordinal in work.outweighing(episodes, goal, self.skeleton):
                gone.add(ordinal)
                yield Strip(episode=ordinal, level=Level.EPISODE)
            yield from work.meeting(goal, gone)
        else:
            for share in SHARES:
                yield from work.keeping(share, gone)
        yield from work.keeping(0.0, gone)
        for ordinal in episodes:
            if ordinal not in gone and work.is_idle(ordinal):
                yield Strip(episode=ordinal, level=Level.EPISODE)
        yield from CwlInferred()(situation)


def nearness_of(graph: WorkGraph, situation: Situation) -> Callable[[TextPiece], float]:
    """By how much the declared work that a text is of makes it more likely to be asked for."""

    def nearness(piece: TextPiece) -> float:
        is_declared = piece.episode != NONE and situation.index.episodes[piece.episode].declared
        return NEARNESS[graph.state(piece.episode)] if is_declared else 1.0

    return nearness


class _GraphPass:
    """One run over a view."""

    def __init__(self, situation: Situation, weights: ModelWeights) -> None:
        self._situation = situation
        self._graph = WorkGraph(situation)
        self._sight = Sight(situation)
        self._keeping = Keeping(self._sight, weights, nearness_of(self._graph, situation))
        self._counts: dict[str, int] = {}
        self._places = {piece.at: piece.least for piece in self._sight.pieces}

    def is_idle(self, ordinal: int) -> bool:
        """Whether an episode made calls that changed nothing, and nothing builds on it.

        Words alone stay: they are few, and a reply that ended a loop of calls must not go before them, or the loop would be open again.
        """
        index = self._situation.index
        if index.episodes[ordinal].dependents or not (calls := self._calls(ordinal)):
            return False
        return not any(index.spans[span].kind is ToolKind.DURABLE for span in calls)

    def outweighing(self, episodes: list[int], goal: int, share: float) -> Iterator[int]:
        """The steps that go whole, as many as it takes for what cannot be shortened to take `share` of what may stay at all.

        Those first that changed nothing, then those of closed acts; oldest first. What open work builds on is not among them.
        """
        free = sum(self._situation.view.weight(*at) for places in self._situation.free.values() for at in places)
        held = self._situation.view.tokens - free
        standing, most = self._standing(frozenset()) - held, share * (goal - held)
        over = [ordinal for ordinal in episodes if self._graph.state(ordinal) < WorkState.BASE]
        idle = [ordinal for ordinal in over if self.is_idle(ordinal)]
        acts = [ordinal for ordinal in over if self._graph.state(ordinal) is WorkState.CLOSED_ACT and self._calls(ordinal)]
        for ordinal in dict.fromkeys([*idle, *acts]):
            if standing <= most:
                return
            standing -= self._weight(ordinal)
            yield ordinal

    def _calls(self, ordinal: int) -> list[int]:
        """The calls of an episode that is over."""
        index = self._situation.index
        if not index.episodes[ordinal].closed:
            return []
        return [span for at in self._situation.free[ordinal] if (span := index.block(at).span) != NONE]

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
            if -CLOSE * goal <= over <= 0:
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
        return sum(min(weight, self._places.get(at, weight)) for at, weight in weights)

    def _least(self, number: int) -> int:
        return self._sight.pieces[number].least

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

    def _text(self, piece: TextPiece, kept: KeptParts) -> str:
        stays = sorted(kept.lines)
        shown = [piece.lines[number] for number in stays]
        if sum(map(len, shown)) + len(shown) >= WHOLE * (sum(map(len, piece.lines)) + len(piece.lines)):
            return ""
        if piece.is_call:
            return self._arguments(piece, stays)
        said = set(chain.from_iterable(piece.facts.said[number] for number in stays))
        names = listed(self._keeping.cues(piece, kept, said))
        return "\n".join([piece.note or self._note(piece), *([f"{NAMES}{names}]"] if names else []), *with_gaps(piece, stays)])

    def _arguments(self, piece: TextPiece, stays: list[int]) -> str:
        """A call's arguments with what stays of the long ones."""
        fields: dict[str, str] = {}
        start = 0
        for name, count in piece.fields:
            kept = [piece.lines[number] for number in stays if start <= number < start + count]
            gone = count - len(kept)
            if gone:
                note = f"[result shortened, {gone} lines left out; recall {self._handle(piece)} shows them]"
                fields[name] = "\n".join([note, *kept])
            start += count
        instead = self._situation.view.instead(*piece.at)
        text = self._situation.read(piece.at[0]).blocks[piece.at[1]].text if instead is None else instead.text
        return with_fields(text, fields)

    def _shortened(self, texts: Mapping[int, str]) -> Iterator[Shorten]:
        """Those first of which the least is expected to be asked for each token."""
        for number in sorted(texts, key=lambda number: (self._keeping.losses[number], number)):
            piece = self._sight.pieces[number]
            part = "arguments" if piece.is_call else "result"
            yield Shorten(span=piece.span, at=piece.at, how="clear", text=texts[number], routes=(self._handle(piece),), part=part)

    def _note(self, piece: TextPiece) -> str:
        index = self._situation.index
        tokens = index.block(piece.at).tokens
        span = index.spans[piece.span] if piece.span != NONE else None
        if piece.kind is PieceKind.WORDS:
            return f"[result shortened, {tokens:,} tokens; recall {self._handle(piece)} for exactly what was here. Below: lines of it, gaps by number.]"
        about = f" of {cited(span.cue)}" if span and span.cue else ""
        again = hint(span.tool if span else "", span.kind if span else ToolKind.INTERMEDIATE)
        failed = " It failed." if span and span.error else ""
        return (
            f"[result{about} shortened, {tokens:,} tokens.{failed} {again}, or recall {self._handle(piece)} for exactly what was here."
            " Below: lines of it, gaps by number.]"
        )

    def _handle(self, piece: TextPiece) -> str:
        index = self._situation.index
        if piece.span == NONE:
            return index.handle(f"entry:{piece.at[0]}/{piece.at[1]}", piece.at[0])
        span = index.spans[piece.span]
        return index.handle(span.object, span.call[0])
