"""Finding what no residue names any more: by path, words or pattern.

A search reads each entry once, newest first, and keeps a bounded number of hits; the others are counted. What a recall brought back is a copy,
so its source is found instead.

Where the host has a model of meaning (`Near`), its ranks and those of the words are fused: Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms
Condorcet and individual Rank Learning Methods" (2009), with its k of 60.

Words are ranked by BM25 over blocks: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.2, with
its usual k1 and b. A text's length is its tokens, which the index knows. Words are taken apart as identifiers are: snake_case, camelCase, paths
and dotted names are found by their parts, and best as a whole, however they are spelt.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain, islice
from math import log
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from tenure.engine.record.entry import At, Block, Entry, Read, Spill, ToolCall, ToolResult
from tenure.engine.record.excerpt import Lines, Open, harmless, nowhere, stretches
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.query import LONGEST, Query
from tenure.errors import InputError

if TYPE_CHECKING:
    from regex import Pattern

Now = Callable[[], float]  # seconds of a clock that only goes forward

MATCHES: Final = 20  # that one answer shows
LINE_CHARS: Final = 240  # of a line that one match shows
EACH: Final = 3  # lines of one text that a search through many shows
PATTERN_S: Final = 2.0  # seconds that a pattern may take for a whole record, where there is a clock
TEXT_S: Final = 0.5  # and for one text; the engine itself stops

_BEFORE: Final = 60  # characters shown before a match in a line that is too long
_TOUCHES: Final = re.compile(r"\\(?:[pPN]\{[^}]*\}|.)|\(\?(?:R|&|P>|[+-]?\d)|\{(?!\d*,?\d*\})", re.DOTALL)


class Hit(Struct, frozen=True, kw_only=True, gc=False):
    """A line that matched: its block, its number and the first character shown of it, both from 1."""

    at: At
    line: int
    char: int
    shown: str
    spill: str = ""  # the handle of the spill whose line it is


class NearText(Struct, frozen=True, kw_only=True, gc=False):
    """A text that is near to some words in meaning: where its nearest passage starts, and how near that is (a cosine, at most 1)."""

    at: At
    place: int
    likeness: float


class Near(Struct, frozen=True, kw_only=True):
    """The texts nearest in meaning, nearest first; a `note` says in a sentence what could not be looked at."""

    texts: tuple[NearText, ...] = ()
    note: str = ""


Nearest = Callable[[str, Iterable[tuple[At, str]]], Near]  # of words, among texts that come newest first. Never raises


class Hits(Struct, frozen=True, kw_only=True):
    """What a search found: the best first of words, else the newest first."""

    hits: tuple[Hit, ...]
    more: int = 0  # matches that are not among them
    what: str = ""  # what `hits` and `more` count: "lines", "texts"
    note: str = ""  # what else is to be said, in a sentence


def search(
    index: Index,
    read: Read,
    query: Query,
    within: Iterable[At] | None = None,
    now: Now | None = None,
    *,
    opened: Open = nowhere,
    spills: Sequence[Spill] = (),
    lines: Lines | None = None,
    nearest: Nearest | None = None,
) -> Hits:
    """Where the record speaks of a path, words or a pattern; `within` are the only blocks to look in. Raises InputError.

    A path beside words or a pattern narrows them to the calls about it. A pattern is looked for in spills too, whose bytes `opened` gives:
    in what their results' texts leave out, or only in these `spills`, from and to `lines`.
    """
    path = query.path.strip()
    if too_long := next((name for name in ("path", "words", "pattern") if len(getattr(query, name)) > LONGEST), ""):
        raise InputError(too_long, "more than can be looked for", f"at most {LONGEST} characters")
    places = _originals(index) if within is None else sorted(set(within), reverse=True)
    if query.pattern:
        if path:
            places = _about_only(index, read, places, path)
        matching = _Pattern(query.pattern, now)
        texts = chain(_of_spills(spills, opened, lines or Lines()), _of_texts(read, places, opened))
        return _by_pattern(texts, matching, MATCHES if within is not None else EACH)
    if query.words.strip():
        if path:
            places = _about_only(index, read, places, path)
        return _by_words(index, read, list(places), query.words, nearest)
    return _by_path(index, read, list(places) if within is not None else None, path)


def line_at(at: At, text: str, place: int, number: int = 0) -> Hit:
    """The line around a place in a text; `number` is its number where that is known."""
    start = text.rfind("\n", 0, place) + 1
    stop = text.find("\n", place)
    stop = len(text) if stop < 0 else stop
    first = start if stop - start <= LINE_CHARS else max(start, min(place - _BEFORE, stop - LINE_CHARS))
    last = min(stop, first + LINE_CHARS)
    shown = ("…" if first > start else "") + text[first:last] + ("…" if last < stop else "")
    return Hit(at=at, line=number or text.count("\n", 0, start) + 1, char=first - start + 1, shown=shown)


def _originals(index: Index) -> Iterator[At]:
    """All blocks but recalls and what they brought back, newest first; of the agent's notes, what it wrote and what they say now."""
    for entry in reversed(range(len(index))):
        for block, facts in reversed(tuple(enumerate(index.entries[entry].blocks))):
            is_old_copy = facts.span in index.notes.spans and facts.kind == "tool_result" and facts.span != index.notes.span
            if facts.span not in index.recalls and not is_old_copy:
                yield entry, block


def _texts(read: Read, places: Iterable[At]) -> Iterator[tuple[At, Block]]:
    """The blocks at these places; an entry of several is read once."""
    held: Entry | None = None
    for at in places:
        if held is None or held.n != at[0]:
            held = read(at[0])
        yield at, held.blocks[at[1]]


def _by_words(index: Index, read: Read, places: Sequence[At], words: str, nearest: Nearest | None) -> Hits:
    matcher = Matcher(terms_of(words))
    texts = ((at, block.text, index.block(at).tokens) for at, block in _texts(read, places))
    found = ranked(texts, matcher, MATCHES if nearest is None else FUSED)
    near = nearest(words, ((at, block.text) for at, block in _texts(read, places))) if nearest is not None else Near()
    starts = {each.at: each.place for each in near.texts}
    hits: list[Hit] = []
    for at in fused(found.best, tuple(starts))[:MATCHES]:
        text = read(at[0]).blocks[at[1]].text
        hits.append(line_at(at, text, matcher.best_place(text, found.weights) if at in found.best else starts[at]))
    notes = [f"{found.complete:,} of {found.matched:,} have all of the words"] if len(matcher.terms) > 1 else []
    notes += [near.note] if near.note else ["ranked by words and by meaning"] if starts else []
    more = found.matched - sum(hit.at in found.best for hit in hits)
    return Hits(hits=tuple(hits), more=more, what="texts", note="; ".join(notes))


def fused(*ranks: Sequence[At]) -> list[At]:
    """What several ranks hold, by the sum of its reciprocal ranks; of equals the newer first."""
    scores: dict[At, float] = {}
    for rank in ranks:
        for place, at in enumerate(rank, 1):
            scores[at] = scores.get(at, 0.0) + 1 / (FUSION_K + place)
    return sorted(scores, key=lambda at: (scores[at], at), reverse=True)


class _Searched(Struct, frozen=True, gc=False):
    """A text that a pattern is looked for in: a block's, or a stretch of a spill, with the line and character it begins at."""

    at: At
    text: str
    spill: str = ""
    line: int = 1
    char: int = 1

    @property
    def where(self) -> str:
        return f"line {self.line} of {self.spill}" if self.spill else f"entry:{self.at[0]}/{self.at[1]}"

    def hit(self, place: int, number: int) -> Hit:
        """The line at a place in the text, which is its `number`-th."""
        found = line_at(self.at, self.text, place, number)
        if not self.spill:
            return found
        char = found.char + (self.char - 1 if number == 1 else 0)
        return structs.replace(found, line=self.line + number - 1, char=char, shown=harmless(found.shown), spill=self.spill)


def _of_texts(read: Read, places: Iterable[At], opened: Open) -> Iterator[_Searched]:
    """The blocks at these places, each with what its text leaves out of an output."""
    for at, block in _texts(read, places):
        yield _Searched(at, block.text)
        if isinstance(block, ToolResult) and isinstance(block.spill, Spill) and block.spill.left[0]:
            first, last = block.spill.left
            for line, char, text in stretches(opened(block.spill), first, last):
                yield _Searched(at, text, block.spill.handle, line, char)


def _of_spills(spills: Iterable[Spill], opened: Open, lines: Lines) -> Iterator[_Searched]:
    for spill in spills:
        for line, char, text in stretches(opened(spill), lines.first, lines.last or spill.lines):
            yield _Searched((0, 0), text, spill.handle, line, char)


def _by_pattern(texts: Iterable[_Searched], matching: "_Pattern", each: int) -> Hits:
    hits: list[Hit] = []
    more = here = 0
    before: tuple[At, str] | None = None
    for searched in texts:
        if before != (searched.at, searched.spill):
            before, here = (searched.at, searched.spill), 0
        try:
            for place, number in matching.lines(searched.text):
                here += 1
                if here <= each and len(hits) < MATCHES:
                    hits.append(searched.hit(place, number))
                else:
                    more += 1
        except TimeoutError:
            if not hits:
                raise InputError(
                    "pattern",
                    f"{matching.text!r} takes too long: it was stopped at {searched.where}",
                    "one without repeats inside repeats, plain words, or a handle or path beside it that narrows the search",
                ) from None
            rest = f"go on with lines={searched.line}- beside that handle" if searched.spill else "what is older was not searched"
            note = f"the pattern takes too long: it was stopped at {searched.where}; {rest}"
            return Hits(hits=tuple(hits), more=more, what="lines", note=note)
    return Hits(hits=tuple(hits), more=more, what="lines")


def _by_path(index: Index, read: Read, within: list[At] | None, path: str) -> Hits:
    """Calls about a path, newest first, then the newest lines of other texts that name it; its last part when nothing names the whole."""
    for part in dict.fromkeys((path, _shorter(path))):
        about = _About(index, read, part)
        places = _originals(index) if within is None else within
        calls: list[Hit] = []
        named: list[Hit] = []
        more = 0
        for at, block in _texts(read, places):
            span = index.block(at).span
            if span != NONE and about(span):
                if isinstance(block, ToolCall):
                    more += len(calls) >= MATCHES
                    calls += [line_at(at, block.text, about.place(block.text))] if len(calls) < MATCHES else []
            elif (place := about.place(block.text)) >= 0:
                more += len(named) >= MATCHES
                named += [line_at(at, block.text, place)] if len(named) < MATCHES else []
        hits = (*calls, *named)[:MATCHES]
        if hits:
            note = f"nothing names {path!r}; this names {part!r}" if part != path else ""
            return Hits(hits=hits, more=more + len(calls) + len(named) - len(hits), what="calls and texts", note=note)
    return Hits(hits=(), what="calls and texts")


def _shorter(path: str) -> str:
    """The last part of a path, where that tells anything."""
    last = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return last if len(last) > 3 else path


def _about_only(index: Index, read: Read, places: Iterable[At], path: str) -> Iterator[At]:
    about = _About(index, read, path)
    return (at for at in places if (span := index.block(at).span) != NONE and about(span))


class _About:
    """Whether calls are about a path: whether their arguments name it. Each call is read at most once."""

    def __init__(self, index: Index, read: Read, path: str) -> None:
        self._index, self._read = index, read
        path = path.removeprefix("./").rstrip("/") or path
        spelt = (path, json.dumps(path, ensure_ascii=False)[1:-1], json.dumps(path)[1:-1])  # as it is, and as JSON has it
        self._spellings = tuple(dict.fromkeys(spelt))
        self._known: dict[int, bool] = {}

    def __call__(self, ordinal: int) -> bool:
        if ordinal not in self._known:
            entry, block = self._index.spans[ordinal].call
            cue = self._index.spans[ordinal].cue
            self._known[ordinal] = self._spellings[0] in cue or self.place(self._read(entry).blocks[block].text) >= 0
        return self._known[ordinal]

    def place(self, text: str) -> int:
        """Where a text names the path, -1 where it does not."""
        return max(text.find(spelling) for spelling in self._spellings)


class _Pattern:
    """A pattern in the syntax of `re`, run by an engine that can be stopped."""

    def __init__(self, pattern: str, now: Now | None) -> None:
        self.text = pattern
        self._pattern = _compiled(pattern)
        self._now = now
        self._until = now() + PATTERN_S if now is not None else 0.0

    def lines(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the lines that match do so, each with its number. Raises TimeoutError."""
        at, counted, number = 0, 0, 1
        while found := self._pattern.search(text, at, timeout=self._left()):
            start = text.rfind("\n", 0, found.start()) + 1
            number, counted = number + text.count("\n", counted, start), start
            yield found.start(), number
            stop = text.find("\n", max(found.start(), found.end() - 1))
            if stop < 0:
                return
            at = stop + 1

    def _left(self) -> float:
        if self._now is None:
            return TEXT_S
        left = self._until - self._now()
        if left <= 0:
            raise TimeoutError
        return min(TEXT_S, left)


def _compiled(pattern: str) -> "Pattern[str]":
    import regex  # here, because few sessions search by pattern

    def tame(found: re.Match[str]) -> str:
        if found[0] == "{":
            return r"\{"  # fuzzy matching: in `re` a brace that is no repeat is only a brace
        if found[0].startswith("(?"):
            raise InputError("pattern", f"{pattern!r} calls itself", "one without recursion")
        return found[0]

    try:
        return regex.compile(_TOUCHES.sub(tame, pattern), regex.MULTILINE | regex.VERSION0)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise InputError("pattern", f"{pattern!r} is no regular expression ({error})") from error


K1: Final = 1.2
B: Final = 0.75
TERMS: Final = 32  # of one question
FUSED: Final = 50  # of each rank, where two are fused
FUSION_K: Final = 60
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
