"""Which texts speak most of some words: BM25 over blocks.

Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.2, with its usual k1 and b. A text's
length is its tokens, which the index knows. Words are taken apart as identifiers are: snake_case, camelCase, paths and dotted names are
found by their parts, and best as a whole, however they are spelt.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import islice
from math import log
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import At

K1: Final = 1.2
B: Final = 0.75
TERMS: Final = 32  # of one question
CANDIDATES: Final = 8_192  # texts that are remembered during a pass; beyond, the worst half is forgotten
_MOST: Final = 32  # occurrences that are counted in one text: BM25 hardly tells more apart
_TRIES: Final = 4_096  # places in one text that are looked at for one word

_RUNS: Final = re.compile(r"[^\W_]+")
_HUMPS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class Term(Struct, frozen=True, gc=False):
    """One thing to look for, in lower case. A `whole` is an identifier of several pieces, in any spelling."""

    text: str
    pieces: tuple[str, ...] = ()  # of a whole
    literal: bool = False  # found anywhere, as in scripts without spaces and for signs


class Ranked(Struct, frozen=True, kw_only=True):
    """The best texts, best first, and how many others hold any or all of the words."""

    best: tuple[At, ...]
    weights: tuple[float, ...]  # of the terms: how telling each is
    matched: int
    complete: int  # of them, those that hold all terms


def terms_of(words: str) -> tuple[Term, ...]:
    """The terms of a question: each word's pieces, and the word as a whole when it has several."""
    found: dict[str, Term] = {}
    for word in words.split():
        pieces = tuple(piece.lower() for run in _RUNS.findall(word) for piece in _pieces(run))
        if not pieces:
            found.setdefault(word.lower(), Term(word.lower(), literal=True))
        if len(pieces) > 1:
            found.setdefault(" ".join(pieces), Term(" ".join(pieces), pieces))
        for piece in pieces:
            found.setdefault(piece, Term(piece, literal=piece.lower() == piece.upper() and not piece.isdecimal()))
    return tuple(islice(found.values(), TERMS))


class Matcher:
    """Finds and counts terms in texts, in linear time."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = terms
        self._wholes = [_whole(term.pieces) if term.pieces else None for term in terms]

    def counts(self, text: str) -> tuple[int, ...]:
        """How often each term stands in a text, up to a bound."""
        low, cased = _folded(text)
        return tuple([sum(1 for _ in islice(self._places(number, low, cased), _MOST)) for number in range(len(self.terms))])

    def best_place(self, text: str, weights: Sequence[float]) -> int:
        """Where to look in a text: in the line that holds the most telling terms, at the most telling of them."""
        low, cased = _folded(text)
        best, place, start = 0.0, 0, 0
        tellings = sorted(range(len(weights)), key=lambda number: -weights[number])
        hopeful = [term.pieces[0] if term.pieces else term.text for term in self.terms]
        for line in low.split("\n"):
            if any(needle in line for needle in hopeful):
                part = cased[start : start + len(line)]
                at = {number: next(self._places(number, line, part), -1) for number in tellings}
                score = sum(weights[number] for number in tellings if at[number] >= 0)
                if score > best:
                    best, place = score, start + next(at[number] for number in tellings if at[number] >= 0)
            start += len(line) + 1
        return place

    def _places(self, number: int, low: str, cased: str) -> Iterator[int]:
        term, whole = self.terms[number], self._wholes[number]
        if whole is not None:
            if all(piece in low for piece in term.pieces):
                yield from (found.start() for found in whole.finditer(low))
            return
        at = low.find(term.text)
        for _ in range(_TRIES):
            if at < 0:
                return
            if term.literal or _stands_alone(cased, at, at + len(term.text)):
                yield at
            at = low.find(term.text, at + 1)


def ranked(texts: Iterable[tuple[At, str, int]], matcher: Matcher, most: int) -> Ranked:
    """The `most` best of texts that come newest first, each with its place and tokens; of equals the newer one. One pass.

    What is remembered of a text is a few numbers, and of at most CANDIDATES texts.
    """
    holding = [0] * len(matcher.terms)  # texts that hold each term
    held: list[tuple[At, int, tuple[int, ...]]] = []
    total = tokens = matched = complete = 0
    for at, text, weight in texts:
        total, tokens = total + 1, tokens + weight
        counts = matcher.counts(text)
        if not any(counts):
            continue
        matched += 1
        complete += all(counts)
        for number, count in enumerate(counts):
            holding[number] += count > 0
        held.append((at, weight, counts))
        if len(held) >= CANDIDATES:
            held = _best(held, _weights(holding, total), tokens / total, CANDIDATES // 2)
    weights = _weights(holding, total)
    best = _best(held, weights, tokens / max(1, total), most)
    return Ranked(best=tuple(at for at, _, _ in best), weights=weights, matched=matched, complete=complete)


def _weights(holding: Sequence[int], total: int) -> tuple[float, ...]:
    return tuple([log(1 + (total - n + 0.5) / (n + 0.5)) for n in holding])


def _best(
    held: Iterable[tuple[At, int, tuple[int, ...]]], weights: Sequence[float], average: float, most: int
) -> list[tuple[At, int, tuple[int, ...]]]:
    def score(candidate: tuple[At, int, tuple[int, ...]]) -> tuple[float, At]:
        at, tokens, counts = candidate
        norm = K1 * (1 - B + B * tokens / max(1.0, average))
        return sum(weights[n] * count * (K1 + 1) / (count + norm) for n, count in enumerate(counts) if count), at

    return nlargest(most, held, key=score)


def _folded(text: str) -> tuple[str, str]:
    """The text in lower case, and as it is; the first twice where some sign is longer in lower case."""
    low = text.lower()
    return low, text if len(low) == len(text) else low


def _pieces(run: str) -> list[str]:
    return _HUMPS.findall(run) if run.isascii() else [run]


def _whole(pieces: Sequence[str]) -> re.Pattern[str]:
    r"""The identifier in any spelling: verify_token, verifyToken, verify-token; src/auth.py, src\auth.py."""
    return re.compile(r"(?<![^\W_])" + r"[\W_]{0,3}".join(map(re.escape, pieces)) + r"(?![^\W_])")


def _stands_alone(text: str, start: int, stop: int) -> bool:
    """Whether a piece of an identifier begins and ends there."""
    return _parts(text, start, start + 1 < len(text) and text[start + 1].islower()) and _parts(
        text, stop, stop + 1 < len(text) and text[stop + 1].islower()
    )


def _parts(text: str, at: int, before_lower: bool) -> bool:
    """Whether one piece ends and another begins between two signs."""
    if not 0 < at < len(text):
        return True
    left, right = text[at - 1], text[at]
    if not (left.isalnum() and right.isalnum()) or left.isdecimal() != right.isdecimal():
        return True
    return right.isupper() and (not left.isupper() or before_lower)
