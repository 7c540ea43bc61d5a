"""Why the policy ranks a result as it does, in words.

The figures are the policy's own: the need it expects of each result is `Keeping.losses`. A reason's weight is how far the natural logarithm of the
need of its lines falls when what the reason is about is as for the middle line of the view, beside how far it falls for all lines of the view.
"""

from collections.abc import Callable, Mapping, Sequence
from math import log
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tenure.engine.policies.graph.keeping import Keeping, ModelWeights, expected
from tenure.engine.policies.graph.learned import LEARNED
from tenure.engine.policies.graph.policy import nearness_of
from tenure.engine.policies.graph.sight import (
    LINE_FEATURES,
    NAMES,
    NEAR_LINES,
    NEVER,
    LineRows,
    PieceKind,
    Sight,
    TextPiece,
)
from tenure.engine.policies.graph.texts import unlisted
from tenure.engine.policies.situation import Situation
from tenure.engine.policies.work import WorkGraph
from tenure.engine.record.entry import At

PER: Final = 1_000  # tokens for which a need is told
_LEAST: Final = 1e-9  # of a need, where its logarithm is taken


_Columns = Mapping[str, Sequence[float]]  # of each feature its value in every line
_Words = Callable[[TextPiece, _Columns, bool], str]  # whether the value is above the middle line's


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
    """What the policy expects of every text; with reasons of those that are `asked` for. n log n in the lines of the view."""
    sight = Sight(situation)
    keeping = Keeping(sight, weights, nearness_of(WorkGraph(situation), situation))
    middle = _Middle(sight, keeping, weights) if any(piece.at in asked for piece in sight.pieces) else None
    judged = [
        Judged(
            at=piece.at,
            need=keeping.losses[number] * PER,
            tokens=piece.weight,
            reasons=middle.reasons(number) if middle is not None and piece.at in asked else (),
        )
        for number, piece in enumerate(sight.pieces)
    ]
    order = sorted(range(len(judged)), key=lambda number: (keeping.losses[number], number))
    return Verdicts(judged=tuple(judged[number] for number in order))


def names_in(text: str) -> tuple[str, ...]:
    """The names that a shortened result lists beside its lines; none of a text that the policy did not write."""
    head = text.split("\n", 2)[1:2]
    return tuple(unlisted(head[0][len(NAMES) : -1])) if head and head[0].startswith(NAMES) and head[0].endswith("]") else ()


class _Middle:
    """What the middle line of the view is like, and what sets a text apart from it."""

    def __init__(self, sight: Sight, keeping: Keeping, weights: ModelWeights) -> None:
        self._sight, self._keeping, self._weights = sight, keeping, weights
        self._rows = [sight.lines(number) for number in range(len(sight.pieces))]
        self._features = [_middle(self._rows, place) for place in range(len(LINE_FEATURES))]
        self._usual = {name: self._weight(self._rows, features) for name, (features, _) in _REASONS.items()}
        worth = sum(loss * max(1, piece.weight) for loss, piece in zip(keeping.losses, sight.pieces, strict=True))
        self._by_names = _factor(worth, sum(self._named(piece)[1] for piece in sight.pieces))

    def reasons(self, number: int) -> tuple[Reason, ...]:
        """Of one text, the weightiest first."""
        piece = self._sight.pieces[number]
        if not piece.lines:
            return ()
        row = self._rows[number]
        columns: _Columns = {name: _values(row, place) for place, name in enumerate(LINE_FEATURES)}
        reasons: list[Reason] = []
        for name, (features, text) in _REASONS.items():
            weight = self._weight([row], features) - self._usual[name]
            middle = self._features[LINE_FEATURES.index(features[0])]
            mean = sum(columns[features[0]]) / len(piece.lines)
            reasons.append(Reason(name=name, text=text(piece, columns, mean > middle), weight=weight))
        return tuple(sorted([self._by_name(number), *reasons], key=lambda reason: (-abs(reason.weight), reason.name)))

    def _weight(self, rows: Sequence[LineRows], features: Sequence[str]) -> float:
        """How far the logarithm of the need of lines falls when these features are the middle line's."""
        places = [LINE_FEATURES.index(each) for each in features]
        return _log(sum(map(self._need, rows))) - _log(sum(self._need(self._alike(row, places)) for row in rows))

    def _need(self, row: LineRows) -> float:
        return sum(expected(self._weights, *row))

    def _alike(self, row: LineRows, places: Sequence[int]) -> LineRows:
        """Lines with the middle line's features at some places."""
        head, columns = list(row[0]), list(row[1])
        for place in places:
            if place < len(head):
                head[place] = self._features[place]
            else:
                columns[place - len(head)] = [self._features[place]] * len(columns[0])
        return tuple(head), columns

    def _by_name(self, number: int) -> Reason:
        """What its names add to its need, beside what names add elsewhere."""
        piece = self._sight.pieces[number]
        count, named = self._named(piece)
        weight = _factor(self._keeping.losses[number] * max(1, piece.weight), named) - self._by_names
        beside = f", a {'larger' if weight > 0 else 'smaller'} part of its worth than elsewhere" if count else ""
        return Reason(name="sole names", text=f"{_count(count, 'name')} that nothing else shows{beside}", weight=weight)

    def _named(self, piece: TextPiece) -> tuple[int, float]:
        """How many names stand only in what may be shortened, and the need that is expected of them."""
        names = {*piece.names, *piece.facts.counts} & self._sight.mentions.keys()
        return len(names), sum(self._keeping.worth_of(name) for name in sorted(names))


def _values(row: LineRows, place: int) -> Sequence[int]:
    """A feature of each line."""
    head, columns = row
    return [head[place]] * len(columns[0]) if place < len(head) else columns[place - len(head)]


def _middle(rows: Sequence[LineRows], place: int) -> int:
    """The middle one of all lines' values of a feature."""
    values = sorted([value for row in rows for value in _values(row, place)])
    return values[len(values) // 2] if values else 0


def _factor(worth: float, named: float) -> float:
    """How much names add to a need, as a logarithm: of all of it over what its lines alone are worth."""
    return _log(worth) - _log(worth - named)


def _log(need: float) -> float:
    return log(max(_LEAST, need))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else f"no {noun}"


def _age(piece: TextPiece, columns: _Columns, more: bool) -> str:
    return f"{_SOURCES[piece.kind][0]} {_ago(columns['age'][0])}, {'longer ago' if more else 'later'} than most"


def _quiet(_: TextPiece, columns: _Columns, more: bool) -> str:
    if columns["quiet"][0] >= columns["age"][0]:
        return "no step since spoke of its file"
    return f"its file was last spoken of {_ago(columns['quiet'][0])}, {'longer ago' if more else 'later'} than most"


def _edits(_: TextPiece, columns: _Columns, more: bool) -> str:
    if not columns["edits"][0]:
        return "its file was not edited"
    return f"its file was edited {'more' if more else 'less'} often or later than most, last {_ago(columns['edited'][0])}"


def _newer(_: TextPiece, columns: _Columns, __: bool) -> str:
    quarters = columns["newer"][0]
    return (
        f"{'all' if quarters == 4 else f'at least {quarters} quarters'} of its lines stand in newer texts"
        if quarters
        else "its lines stand in no newer text"
    )


def _stack(_: TextPiece, __: _Columns, more: bool) -> str:
    return f"{'more' if more else 'fewer'} files were spoken of since than is usual"


def _turns(_: TextPiece, columns: _Columns, more: bool) -> str:
    return (
        "it is of the newest turn" if not columns["turns"][0] else f"it is of {'an older' if more else 'a newer'} turn than most"
    )


def _phase(_: TextPiece, __: _Columns, more: bool) -> str:
    return "the newest calls change files" if more else "the newest calls change little"


def _habit(_: TextPiece, __: _Columns, more: bool) -> str:
    return f"{'many' if more else 'few'} of all calls change files"


def _part(piece: TextPiece, _: _Columns, __: bool) -> str:
    return "a part of a file was asked for" if piece.is_part else "no part of a file was asked for"


def _length(piece: TextPiece, _: _Columns, more: bool) -> str:
    average = round(sum(len(line.strip()) for line in piece.lines) / max(1, len(piece.lines)))
    return f"its lines have {average:,} characters on average, {'longer' if more else 'shorter'} than elsewhere"


def _indent(piece: TextPiece, _: _Columns, more: bool) -> str:
    spaces = round(sum(len(line) - len(line.lstrip()) for line in piece.lines) / max(1, len(piece.lines)))
    if not spaces:
        return "its lines are not indented"
    return f"its lines are indented by {spaces} on average, {'more' if more else 'less'} than elsewhere"


def _size(piece: TextPiece, _: _Columns, more: bool) -> str:
    return f"it has {_count(len(piece.lines), 'line')}, {'longer' if more else 'shorter'} than most"


def _kind(piece: TextPiece, _: _Columns, __: bool) -> str:
    return f"it is {_SOURCES[piece.kind][1]}"


def _ago(bits: float) -> str:
    """An age that is known by its bit length."""
    steps = 1 << max(0, int(bits) - 1) if bits else 0
    return f"{steps:,} step{'' if steps == 1 else 's'} ago" if bits <= 1 else f"{steps:,} to {2 * steps - 1:,} steps ago"


def _lines(feature: str, some: str, none: str, holds: Callable[[float], bool]) -> _Words:
    """How many lines have a feature: `some`, with the number in its place, or `none`."""

    def words(piece: TextPiece, columns: _Columns, _: bool) -> str:
        number = sum(map(holds, columns[feature]))
        return some.format(f"{number:,} of its {_count(len(piece.lines), 'line')}") if number else none

    return words


_SOURCES: Final[Mapping[PieceKind, tuple[str, str]]] = MappingProxyType(
    {
        PieceKind.READ: ("read", "a file that was read"),
        PieceKind.COMMAND: ("run", "what a command printed"),
        PieceKind.SEARCH: ("searched", "hits of a search"),
        PieceKind.LISTING: ("listed", "a listing"),
        PieceKind.OTHER: ("fetched", "neither a file, a command's output nor a search"),
        PieceKind.WORDS: ("said", "what the agent said"),
        PieceKind.WRITTEN: ("written", "what the agent wrote to a file"),
        PieceKind.CHANGED: ("changed", "what the agent changed in a file"),
        PieceKind.SCRIPT: ("called", "what the agent called with"),
    }
)

# Features that say one thing together, and what they say. All of LINE_FEATURES are in it once.
_REASONS: Final[Mapping[str, tuple[tuple[str, ...], _Words]]] = MappingProxyType(
    {
        "length": (("length",), _length),
        "age": (("age",), _age),
        "near": (
            ("near",),
            _lines(
                "near", "{} lie near what the agent wrote", "no line lies near what the agent wrote", lambda far: far < NEAR_LINES
            ),
        ),
        "source": (("kind",), _kind),
        "quiet": (("quiet",), _quiet),
        "stack": (("stack",), _stack),
        "turns": (("turns",), _turns),
        "newer": (("newer",), _newer),
        "phase": (("phase",), _phase),
        "habit": (("habit",), _habit),
        "part": (("part",), _part),
        "indent": (("indent",), _indent),
        "size": (("size", "place"), _size),
        "copies": (
            ("copies",),
            _lines("copies", "{} stand in other texts too", "none of its lines stands in another text", bool),
        ),
        "used": (
            ("used", "around"),
            _lines("used", "later steps named what {} name", "no later step named anything in it", lambda n: n < NEVER),
        ),
        "names": (("names",), _lines("names", "{} name something", "its lines name nothing", bool)),
        "shape": (
            ("shape",),
            _lines("shape", "{} define or import something", "no line defines anything", lambda n: n in (2, 3)),
        ),
        "edits": (("edits", "edited"), _edits),
    }
)
