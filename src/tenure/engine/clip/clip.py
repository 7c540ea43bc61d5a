"""The clip of a tool's result: what is shown of one that is too large to be shown whole.

The record keeps the original; the marks say so, what was left out, why, and the exact recall that returns it. Marks carry a sign that is made
from the text's hash and stands nowhere in it, so that no output can pass for one. Kept lines are never altered.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from tenure.engine.clip import diff, head_tail, html, json_shape, listing, log, search, table
from tenure.engine.clip.setting import Clip
from tenure.engine.clip.shape import Keep, Piece, Place, TextShape, fair, place, printed, weighed, weight
from tenure.engine.clip.wrapped import InnerText, inner_texts, outside
from tenure.engine.record.entry import Count

# Those that ask for more stand first; the last one takes anything.
SHAPES: Final = (
    TextShape("diff", diff.fits, diff.choose),
    TextShape("search hits", search.fits, search.choose),
    TextShape("JSON", json_shape.fits, json_shape.choose),
    TextShape("web page", html.fits, html.choose),
    TextShape("table", table.fits, table.choose),
    TextShape("log", log.fits, log.choose),
    TextShape("listing", listing.fits, listing.choose),
    TextShape("text", head_tail.fits, head_tail.choose),
)
_BRIEF: Final = ("log", "text")  # of a log in which all went well there is little to show, and the last resort is the last

INSIDE: Final = 40  # tokens of the line above a text inside JSON
ESCAPED: Final = 3  # JSON inside a string of JSON: how deep a sign is looked for
ABOUT: Final = 110  # tokens of the mark at the top
LEAST: Final = 0.15  # of the room: a shape that shows less than this of a text that fills it falls back to head and tail
TRIES: Final = 4
MARGIN: Final = 16  # tokens taken off beside what was too much
SIGN: Final = 4  # hex digits of a sign, as long as they are enough
_ASCII_ESCAPE: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")


class Clipped(Struct, frozen=True, kw_only=True):
    """What is shown of a text."""

    text: str
    tokens: int  # o200k
    shape: str
    lines: int  # kept
    of_lines: int


class _Choice(Struct, frozen=True, kw_only=True):
    """What is chosen of a text or of the texts inside it."""

    body: Callable[[str], Iterator[str]]  # its lines, for a sign
    name: str  # of the shape
    why: str
    kept: int  # lines
    of_lines: int
    others: str = "the output as it was"  # what the lines without a sign are


def clip(text: str, tokens: int, handle: str, settings: Clip, count: Count, *, whole: str = "") -> Clipped | None:
    """What is to be shown of a result of `tokens` o200k tokens that `handle` brings back; None for one that is shown whole.

    With less room for lines where its marks came out heavier than foreseen. `whole` is set for the result that is a part of a larger output: it says
    where all of that is.
    """
    if tokens <= settings.above:
        return None
    inner = inner_texts(text)
    lines = text.split("\n")
    recall = whole or f"The record has the result as the tool gave it: recall {handle} returns it"
    left = settings.room - ABOUT
    for _ in range(TRIES):
        choice = (_choose_inside(text, inner, left, count) if inner else _choose(lines, left, count)) if left > 0 else None
        if choice is None:
            return None
        clipped = _composed(choice, sign_of(text), tokens, recall, count)
        if clipped.tokens <= settings.room:
            return clipped if clipped.tokens < tokens else None
        left -= clipped.tokens - settings.room + MARGIN
    return None


def _choose(lines: Sequence[str], room: int, count: Count, place: Place = place) -> _Choice | None:
    """The choice of the first shape that fits and does not fall short of the room."""
    for shape in SHAPES:
        shaped = shape.choose(lines, room, count) if shape.fits(lines) else None
        if shaped and (shape.name in _BRIEF or weighed(lines, shaped.pieces, count) + ABOUT >= LEAST * room):
            return _Choice(
                body=lambda sign, pieces=shaped.pieces: printed(lines, pieces, sign, place),
                name=shape.name,
                why=shaped.why,
                kept=sum(piece.stop - piece.start for piece in shaped.pieces if isinstance(piece, Keep)),
                of_lines=len(lines),
            )
    return None


def _choose_inside(text: str, inner: Sequence[InnerText], room: int, count: Count) -> _Choice | None:
    """The JSON around the texts, then each text by the shape that it has, with a fair part of the room."""
    around = outside(text, inner).split("\n")
    left = room - INSIDE * len(inner)
    frame = _frame(around, left // 4, count)
    left -= weighed(around, frame, count)
    parts = fair([weight(each.text) for each in inner], max(left, 0))
    choices = [_choose(each.lines, part, count, each.place) for each, part in zip(inner, parts, strict=True)]
    names = dict.fromkeys(choice.name for choice in choices if choice)
    if not names:
        return None

    def body(sign: str) -> Iterator[str]:
        yield from (f"[clip {sign}] {line}" for line in "\n".join(printed(around, frame, sign)).split("\n") if line)
        for each, choice in zip(inner, choices, strict=True):
            about = f"{choice.name}, {choice.kept:,} of {choice.of_lines:,} lines ({choice.why})" if choice else "not shown"
            yield f"[clip {sign}] {each.path}, a string of {len(each.text):,} characters: {about}"
            yield from choice.body(sign) if choice else ()

    return _Choice(
        body=body,
        name=f"{' and '.join(names)} inside JSON",
        why="the JSON, and the texts in its strings, each as what it is",
        kept=sum(choice.kept for choice in choices if choice),
        of_lines=sum(len(each.lines) for each in inner),
        others="lines of these texts as they were, unescaped",
    )


def _frame(lines: Sequence[str], room: int, count: Count) -> tuple[Piece, ...]:
    """The JSON around the texts, whole where there is room."""
    whole = (Keep(0, len(lines)),)
    if len(lines) <= room and weighed(lines, whole, count) <= room:
        return whole
    shaped = json_shape.choose(lines, room, count)
    return shaped.pieces if shaped else ()


def _composed(choice: _Choice, sign: str, tokens: int, recall: str, count: Count) -> Clipped:
    body = "\n".join(choice.body(sign))
    top = (
        f"[clip {sign}: {choice.name}, {choice.kept:,} of {choice.of_lines:,} lines and about {count(body):,} of {tokens:,} tokens are shown "
        f"({choice.why}). {recall}, with lines=A-B those lines. Only lines that start with [clip {sign} are notes, all others are {choice.others}.]"
    )
    whole = f"{top}\n{body}"
    return Clipped(text=whole, tokens=count(whole), shape=choice.name, lines=choice.kept, of_lines=choice.of_lines)


def sign_of(text: str) -> str:
    """A sign that no mark inside the text can bear: from its hash, as long as it takes to stand nowhere in it, escaped in JSON or not."""
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    size = SIGN
    spelled = [text]
    while (
        len(spelled) <= ESCAPED
        and (plain := _ASCII_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), spelled[-1])) != spelled[-1]
    ):
        spelled.append(plain)
    while size < len(digest) and any(f"[clip {digest[:size]}" in each for each in spelled):
        size += SIGN
    return digest[:size]
