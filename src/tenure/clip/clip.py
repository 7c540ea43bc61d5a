"""The clip of a tool's result: what is shown of one that is too large to be shown whole.

The record keeps the original; the marks say so, what was left out, why, and the exact recall that returns it. Marks carry a sign that is made
from the text's hash and stands nowhere in it, so that no output can pass for one. Kept lines are never altered.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from tenure.clip.diff import Diff
from tenure.clip.filling import printed
from tenure.clip.head_tail import HeadTail
from tenure.clip.html import Html
from tenure.clip.json_shape import JsonShape
from tenure.clip.listing import Listing
from tenure.clip.log import Log
from tenure.clip.search import Search
from tenure.clip.setting import Clip
from tenure.clip.shape import Count, Keep, Shape, Shaped
from tenure.clip.table import Table

# Those that ask for more stand first; the last one takes anything.
SHAPES: Final[tuple[Shape, ...]] = (Diff(), Search(), JsonShape(), Html(), Table(), Log(), Listing(), HeadTail())

_BRIEF: Final = (Log, HeadTail)  # of a log in which all went well there is little to show, and the last resort is the last

ABOUT: Final = 110  # tokens of the mark at the top
LEAST: Final = 0.15  # of the room: a shape that shows less than this of a text that fills it falls back to head and tail
TRIES: Final = 4
MARGIN: Final = 16  # tokens taken off beside what was too much
SIGN: Final = 4  # hex digits of a sign, as long as they are enough


class Clipped(Struct, frozen=True, kw_only=True):
    """What is shown of a text."""

    text: str
    tokens: int  # o200k
    shape: str
    lines: int  # kept
    of_lines: int


def clip(text: str, tokens: int, handle: str, settings: Clip, count: Count) -> Clipped | None:
    """What is to be shown of a result of `tokens` o200k tokens that `handle` brings back; None for one that is shown whole."""
    if tokens <= settings.above:
        return None
    lines = text.split("\n")
    room = max(settings.room - ABOUT, 0)
    for shape in SHAPES:
        found = _by(shape, lines, text, tokens, handle, settings.room, count) if shape.fits(lines) else None
        if found is not None and (found.tokens >= LEAST * room or isinstance(shape, _BRIEF)):
            return found
    return None


def _by(shape: Shape, lines: Sequence[str], text: str, tokens: int, handle: str, room: int, count: Count) -> Clipped | None:
    """The clip by one shape; with less room for lines where its marks came out heavier than foreseen."""
    left = room - ABOUT
    for _ in range(TRIES):
        shaped = shape.shaped(lines, left, count) if left > 0 else None
        if shaped is None:
            return None
        found = _composed(lines, shaped, shape.name, tokens, handle, text, count)
        if found.tokens <= room:
            return found if found.tokens < tokens else None
        left -= found.tokens - room + MARGIN
    return None


def _composed(lines: Sequence[str], shaped: Shaped, name: str, tokens: int, handle: str, text: str, count: Count) -> Clipped:
    sign = sign_of(text)
    kept = sum(piece.stop - piece.start for piece in shaped.pieces if isinstance(piece, Keep))
    body = "\n".join(printed(lines, shaped.pieces, sign))
    shown = count(body)
    top = (
        f"[clip {sign}: {name}, {kept:,} of {len(lines):,} lines and about {shown:,} of {tokens:,} tokens are shown ({shaped.why}). The "
        f"record has the result as the tool gave it: recall {handle} returns it, with lines=A-B those lines. Only lines that start with "
        f"[clip {sign} are notes, all others are the output as it was.]"
    )
    whole = f"{top}\n{body}"
    return Clipped(text=whole, tokens=count(whole), shape=name, lines=kept, of_lines=len(lines))


def sign_of(text: str) -> str:
    """A sign that no mark inside the text can bear: from its hash, as long as it takes to stand nowhere in it."""
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    size = SIGN
    while size < len(digest) and f"[clip {digest[:size]}" in text:
        size += SIGN
    return digest[:size]
