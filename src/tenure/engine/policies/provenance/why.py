"""Why the policy ranks a result as it does, in words.

The figures are the policy's own: the need it expects of each result is `Keeping.losses`. A reason's weight is how far it moves the natural
logarithm of that need from what it is for an average line of the view, so the reasons of a result can be compared and added.
"""

from collections.abc import Callable, Mapping, Sequence
from math import log
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tenure.engine.policies.provenance.anchors import unlisted
from tenure.engine.policies.provenance.keeping import Keeping
from tenure.engine.policies.provenance.sight import NAMES, Piece, Sight, Source
from tenure.engine.policies.provenance.weights import LEARNED, LINE_FEATURES, Weights, chance
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At

_Columns = Mapping[str, Sequence[float]]  # of each feature its value in every line

PER: Final = 1_000  # tokens for which a need is told
_FEATURES: Final = tuple[str, ...](LINE_FEATURES)
_LEAST: Final = 1e-9  # of a need, where its logarithm is taken
_SPACES: Final = 24  # of indentation, beyond which the policy sees no more


class Reason(Struct, frozen=True, kw_only=True, gc=False):
    """One thing that speaks for a result (`weight` above 0) or against it, in natural logarithms of its need."""

    name: str
    text: str
    weight: float


class Judged(Struct, frozen=True, kw_only=True):
    """What is expected to be asked of one result."""

    at: At
    need: float  # expected needs for each PER tokens
    tokens: int  # as it is shown
    reasons: tuple[Reason, ...] = ()  # the weightiest first


class Verdicts(Struct, frozen=True, kw_only=True):
    """All results of a view that may be shortened, least needed first: the order in which the policy gives them up."""

    judged: tuple[Judged, ...]

    @property
    def median(self) -> float:
        """The need of the middle one; 0 of none."""
        return self.judged[len(self.judged) // 2].need if self.judged else 0.0


def verdicts(situation: Situation, asked: frozenset[At], weights: Weights = LEARNED) -> Verdicts:
    """What the policy expects of every result; with reasons of those that are `asked` for. n log n in the lines of the view."""
    sight = Sight(situation)
    keeping = Keeping(sight, weights)
    ranked = sorted(range(len(sight.pieces)), key=lambda number: (keeping.losses[number], number))
    average = _Average(sight, keeping, weights) if any(piece.at in asked for piece in sight.pieces) else None
    return Verdicts(
        judged=tuple(
            Judged(
                at=(piece := sight.pieces[number]).at,
                need=keeping.losses[number] * PER,
                tokens=piece.weight,
                reasons=average.reasons(number) if average is not None and piece.at in asked else (),
            )
            for number in ranked
        )
    )


def names_in(text: str) -> tuple[str, ...]:
    """The names that a shortened result lists beside its lines; none of a text that the policy did not write."""
    head = text.split("\n", 2)[1:2]
    return tuple(unlisted(head[0][len(NAMES) : -1])) if head and head[0].startswith(NAMES) and head[0].endswith("]") else ()


class _Average:
    """What an average line of the view is like, and what sets a result apart from it."""

    def __init__(self, sight: Sight, keeping: Keeping, weights: Weights) -> None:
        self._sight, self._keeping, self._weights = sight, keeping, weights
        sums = [0.0] * len(_FEATURES)
        lines, worth, named = 0, 0.0, 0.0
        for number, piece in enumerate(sight.pieces):
            for features in sight.line_features(piece):
                sums = [total + feature for total, feature in zip(sums, features, strict=True)]
            lines += len(piece.lines)
            worth += keeping.losses[number] * max(1, piece.weight)
            named += self._named(piece)[1]
        self._features = [total / max(1, lines) for total in sums]
        self._by_names = _factor(worth, named)

    def reasons(self, number: int) -> tuple[Reason, ...]:
        """Of one result, the weightiest first."""
        piece = self._sight.pieces[number]
        rows = list(self._sight.line_features(piece))
        if not rows:
            return ()
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        of_line = dict(zip(_FEATURES, self._weights.line, strict=True))
        differences = dict(zip(_FEATURES, (mean - usual for mean, usual in zip(means, self._features, strict=True)), strict=True))
        columns = dict(zip(_FEATURES, zip(*rows, strict=True), strict=True))
        found = [
            Reason(
                name=name,
                text=_SAID[name](piece, columns, differences[of[0]] > 0),
                weight=sum(of_line[each] * differences[each] for each in of),
            )
            for name, of in _GROUPS.items()
        ]
        return tuple(sorted([self._by_name(number), *found], key=lambda reason: (-abs(reason.weight), reason.name)))

    def _by_name(self, number: int) -> Reason:
        """What its names add to its need, beside what names add elsewhere."""
        piece = self._sight.pieces[number]
        count, named = self._named(piece)
        weight = _factor(self._keeping.losses[number] * max(1, piece.weight), named) - self._by_names
        beside = f", a {_than(weight > 0, 'larger', 'smaller')} part of its worth than elsewhere" if count else ""
        return Reason(name="names", text=f"{_count(count, 'name')} that nothing else shows{beside}", weight=weight)

    def _named(self, piece: Piece) -> tuple[int, float]:
        """How many names stand only in what may be shortened, and the need that is expected of them."""
        names = {*piece.names, *(name for said in piece.said for name in said)} & self._sight.mentions.keys()
        weights, sight = self._weights, self._sight
        return len(names), sum(chance(weights.anchor, weights.anchor_bias, sight.anchor_features(name)) for name in sorted(names))


def _factor(worth: float, named: float) -> float:
    """How much names add to a need, as a logarithm: of all of it over what its lines alone are worth."""
    return log(max(_LEAST, worth)) - log(max(_LEAST, worth - named))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else f"no {noun}"


def _steps(number: int) -> str:
    return f"{number:,} step{'' if number == 1 else 's'}"


def _marked(values: Sequence[float]) -> int:
    return sum(value > 0 for value in values)


def _age(piece: Piece, _: _Columns, more: bool) -> str:
    return f"{_VERB[piece.source]} {_steps(piece.age)} ago, {_than(more, 'longer ago', 'later')} than most"


def _quiet(piece: Piece, _: _Columns, more: bool) -> str:
    if piece.quiet >= piece.age:
        return "no step since spoke of its file"
    return f"its file was last spoken of {_steps(piece.quiet)} ago, {_than(more, 'longer ago', 'later')} than most"


def _used(piece: Piece, columns: _Columns, more: bool) -> str:
    used = _marked(columns["used"])
    if not used:
        return "no later step named anything in it"
    return f"later steps named what {_of(used, piece)} name, {_fewer(more)}"


def _copies(piece: Piece, columns: _Columns, more: bool) -> str:
    again = sum(value > log(2) + 1e-9 for value in columns["copies"])
    return f"{_of(again, piece)} stand more than once, {_fewer(more)}" if again else "each of its lines stands only once"


def _near(piece: Piece, columns: _Columns, more: bool) -> str:
    near = _marked(columns["near"])
    return (
        f"{_of(near, piece)} lie near what the agent wrote, {_fewer(more)}" if near else "no line lies near what the agent wrote"
    )


def _defines(piece: Piece, columns: _Columns, more: bool) -> str:
    defining = _marked(columns["defines"])
    return f"{_of(defining, piece)} define or import something, {_fewer(more)}" if defining else "no line defines anything"


def _edits(piece: Piece, _: _Columns, more: bool) -> str:
    if not piece.edits:
        return "its file was not edited"
    return f"its file was edited {piece.edits:,} time{'' if piece.edits == 1 else 's'}, {_than(more, 'more often', 'less often')} than most"


def _length(piece: Piece, _: _Columns, more: bool) -> str:
    average = round(sum(len(line.strip()) for line in piece.lines) / max(1, len(piece.lines)))
    return f"its lines have {average:,} characters on average, {_than(more, 'longer', 'shorter')} than elsewhere"


def _indent(_: Piece, columns: _Columns, more: bool) -> str:
    spaces = round(_SPACES * sum(columns["indent"]) / max(1, len(columns["indent"])))
    if not spaces:
        return "its lines are not indented"
    return f"its lines are indented by {spaces} on average, {_than(more, 'more', 'less')} than elsewhere"


def _size(piece: Piece, _: _Columns, more: bool) -> str:
    return f"it has {_count(len(piece.lines), 'line')}, {_than(more, 'longer', 'shorter')} than most"


def _kind(piece: Piece, _: _Columns, __: bool) -> str:
    return f"it is {_NOUN[piece.source]}"


def _than(more: bool, high: str, low: str) -> str:
    return high if more else low


def _fewer(more: bool) -> str:
    return f"{_than(more, 'more', 'fewer')} than elsewhere"


def _of(number: int, piece: Piece) -> str:
    return f"{number:,} of its {_count(len(piece.lines), 'line')}"


_VERB: Final[Mapping[Source, str]] = MappingProxyType(
    {Source.READ: "read", Source.COMMAND: "run", Source.SEARCH: "searched", Source.LISTING: "listed", Source.OTHER: "fetched"}
)
_NOUN: Final[Mapping[Source, str]] = MappingProxyType(
    {
        Source.READ: "a file that was read",
        Source.COMMAND: "what a command printed",
        Source.SEARCH: "hits of a search",
        Source.LISTING: "a listing",
        Source.OTHER: "neither a file, a command's output nor a search",
    }
)

# Features that say one thing together. All of LINE_FEATURES are in it once.
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "length": ("length",),
        "age": ("age",),
        "near": ("near",),
        "source": ("command", "listing", "search", "read"),
        "quiet": ("quiet",),
        "indent": ("indent",),
        "size": ("size",),
        "copies": ("copies",),
        "used": ("used", "since"),
        "defines": ("defines",),
        "edits": ("edits",),
    }
)
_SAID: Final[Mapping[str, Callable[[Piece, _Columns, bool], str]]] = MappingProxyType(
    {
        "length": _length,
        "age": _age,
        "near": _near,
        "source": _kind,
        "quiet": _quiet,
        "indent": _indent,
        "size": _size,
        "copies": _copies,
        "used": _used,
        "defines": _defines,
        "edits": _edits,
    }
)
