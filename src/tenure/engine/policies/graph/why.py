"""Why the policy ranks a result as it does, in words.

The figures are the policy's own: the need it expects of each result is `Keeping.losses`. A reason's weight is how far it moves the natural
logarithm of that need from what it is for an average line of the view, so the reasons of a result can be compared and added.
"""

from collections.abc import Callable, Mapping, Sequence
from math import log
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tenure.engine.policies.graph.keeping import LEARNED, LINE_FEATURES, Keeping, ModelWeights, chance
from tenure.engine.policies.graph.sight import NAMES, PartialResult, ResultSource, Sight, unlisted
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At

PER: Final = 1_000  # tokens for which a need is told
_LEAST: Final = 1e-9  # of a need, where its logarithm is taken
_SPACES: Final = 24  # of indentation, beyond which the policy sees no more


_Columns = Mapping[str, Sequence[float]]  # of each feature its value in every line
_Words = Callable[[PartialResult, _Columns, bool], str]  # whether the value is above the average line's


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


def verdicts(situation: Situation, asked: frozenset[At], weights: ModelWeights = LEARNED) -> Verdicts:
    """What the policy expects of every result; with reasons of those that are `asked` for. n log n in the lines of the view."""
    sight = Sight(situation)
    keeping = Keeping(sight, weights)
    average = _Average(sight, keeping, weights) if any(piece.at in asked for piece in sight.pieces) else None
    judged = [
        Judged(
            at=piece.at,
            need=keeping.losses[number] * PER,
            tokens=piece.weight,
            reasons=average.reasons(number) if average is not None and piece.at in asked else (),
        )
        for number, piece in enumerate(sight.pieces)
    ]
    order = sorted(range(len(judged)), key=lambda number: (keeping.losses[number], number))
    return Verdicts(judged=tuple(judged[number] for number in order))


def names_in(text: str) -> tuple[str, ...]:
    """The names that a shortened result lists beside its lines; none of a text that the policy did not write."""
    head = text.split("\n", 2)[1:2]
    return tuple(unlisted(head[0][len(NAMES) : -1])) if head and head[0].startswith(NAMES) and head[0].endswith("]") else ()


class _Average:
    """What an average line of the view is like, and what sets a result apart from it."""

    def __init__(self, sight: Sight, keeping: Keeping, weights: ModelWeights) -> None:
        self._sight, self._keeping, self._weights = sight, keeping, weights
        sums = [0.0] * len(LINE_FEATURES)
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
        columns: _Columns = dict(zip(LINE_FEATURES, zip(*rows, strict=True), strict=True))
        usual = zip(LINE_FEATURES, self._features, self._weights.line, strict=True)
        above = {name: (sum(columns[name]) / len(rows) - mean, weight) for name, mean, weight in usual}  # the average line
        reasons = [
            Reason(
                name=name,
                text=text(piece, columns, above[features[0]][0] > 0),
                weight=sum(above[each][1] * above[each][0] for each in features),
            )
            for name, (features, text) in _REASONS.items()
        ]
        return tuple(sorted([self._by_name(number), *reasons], key=lambda reason: (-abs(reason.weight), reason.name)))

    def _by_name(self, number: int) -> Reason:
        """What its names add to its need, beside what names add elsewhere."""
        piece = self._sight.pieces[number]
        count, named = self._named(piece)
        weight = _factor(self._keeping.losses[number] * max(1, piece.weight), named) - self._by_names
        beside = f", a {'larger' if weight > 0 else 'smaller'} part of its worth than elsewhere" if count else ""
        return Reason(name="names", text=f"{_count(count, 'name')} that nothing else shows{beside}", weight=weight)

    def _named(self, piece: PartialResult) -> tuple[int, float]:
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


def _lines(feature: str, some: str, none: str, above: float = 0.0) -> _Words:
    """How many lines have a feature: `some`, with the number in its place, or `none`."""

    def words(piece: PartialResult, columns: _Columns, more: bool) -> str:
        number = sum(value > above for value in columns[feature])
        of = f"{number:,} of its {_count(len(piece.lines), 'line')}"
        return f"{some.format(of)}, {'more' if more else 'fewer'} than elsewhere" if number else none

    return words


def _age(piece: PartialResult, _: _Columns, more: bool) -> str:
    return f"{_SOURCES[piece.source][0]} {_steps(piece.age)} ago, {'longer ago' if more else 'later'} than most"


def _quiet(piece: PartialResult, _: _Columns, more: bool) -> str:
    if piece.quiet >= piece.age:
        return "no step since spoke of its file"
    return f"its file was last spoken of {_steps(piece.quiet)} ago, {'longer ago' if more else 'later'} than most"


def _edits(piece: PartialResult, _: _Columns, more: bool) -> str:
    if not piece.edits:
        return "its file was not edited"
    return (
        f"its file was edited {piece.edits:,} time{'' if piece.edits == 1 else 's'}, {'more' if more else 'less'} often than most"
    )


def _length(piece: PartialResult, _: _Columns, more: bool) -> str:
    average = round(sum(len(line.strip()) for line in piece.lines) / max(1, len(piece.lines)))
    return f"its lines have {average:,} characters on average, {'longer' if more else 'shorter'} than elsewhere"


def _indent(_: PartialResult, columns: _Columns, more: bool) -> str:
    spaces = round(_SPACES * sum(columns["indent"]) / max(1, len(columns["indent"])))
    if not spaces:
        return "its lines are not indented"
    return f"its lines are indented by {spaces} on average, {'more' if more else 'less'} than elsewhere"


def _size(piece: PartialResult, _: _Columns, more: bool) -> str:
    return f"it has {_count(len(piece.lines), 'line')}, {'longer' if more else 'shorter'} than most"


def _kind(piece: PartialResult, _: _Columns, __: bool) -> str:
    return f"it is {_SOURCES[piece.source][1]}"


_SOURCES: Final[Mapping[ResultSource, tuple[str, str]]] = MappingProxyType(
    {
        ResultSource.READ: ("read", "a file that was read"),
        ResultSource.COMMAND: ("run", "what a command printed"),
        ResultSource.SEARCH: ("searched", "hits of a search"),
        ResultSource.LISTING: ("listed", "a listing"),
        ResultSource.OTHER: ("fetched", "neither a file, a command's output nor a search"),
    }
)

# Features that say one thing together, and what they say. All of LINE_FEATURES are in it once.
_REASONS: Final[Mapping[str, tuple[tuple[str, ...], _Words]]] = MappingProxyType(
    {
        "length": (("length",), _length),
        "age": (("age",), _age),
        "near": (("near",), _lines("near", "{} lie near what the agent wrote", "no line lies near what the agent wrote")),
        "source": (("command", "listing", "search", "read"), _kind),
        "quiet": (("quiet",), _quiet),
        "indent": (("indent",), _indent),
        "size": (("size",), _size),
        "copies": (
            ("copies",),
            _lines("copies", "{} stand more than once", "each of its lines stands only once", log(2) + 1e-9),
        ),
        "used": (("used", "since"), _lines("used", "later steps named what {} name", "no later step named anything in it")),
        "defines": (("defines",), _lines("defines", "{} define or import something", "no line defines anything")),
        "edits": (("edits",), _edits),
    }
)
