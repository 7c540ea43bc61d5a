"""Which lines of a text that is too long decide a verdict.

A line tells when it holds a rare word, or is a line, that later steps say and that stood in what was removed: little else of what was removed can
have been used to the letter, and hardly anywhere else can it stand still or have been had again. A line with a handle tells too: it is a way back.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from tenure.lab.harm.holdings import words_of
from tenure.lab.harm.passage import plain
from tenure.lab.judges.case import Piece

RARE: Final = (4, 24)  # pieces of the view that may hold a word that tells: a tenth of them, within these bounds
MOST: Final = 2_000  # words that tell, and as many lines: those that are said first
TIMES: Final = 1  # that each of them is shown for certain in one side, and in one piece
LINE_LEAST: Final = 16  # characters of a line that can be told from others
LINE_CHARS: Final = 400  # of a line that is shown; a longer one is several
GAP: Final = "…"

_RUN = re.compile(rf"[^\n]{{1,{LINE_CHARS}}}")


_HANDLE = re.compile(r"[a-z_]\w{0,80}:[\w.\-]{1,120}@[0-9a-f]{4}")


class Telling(Struct, frozen=True):
    """What makes a line worth its room: rare words, and lines as they stand."""

    words: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()

    def __or__(self, other: "Telling") -> "Telling":
        """Both together."""
        return Telling(self.words | other.words, self.lines | other.lines)

    def __bool__(self) -> bool:
        return bool(self.words or self.lines)

    def of(self, text: str) -> tuple[str, ...]:
        """What of it a text holds. O(text)."""
        if not self:
            return ()
        spelled = plain(text)
        return (*self.words.intersection(words_of(spelled)), *self.lines.intersection(_lines(spelled)))


NOTHING: Final = Telling()


def telling(said: Iterable[Piece], removed: Iterable[Piece], prefix: Sequence[Piece]) -> Telling:
    """What later steps say of what was removed.

    `prefix` is what was in view before, piece by piece: a word in more than RARE of them tells nothing. O(text).
    """
    rare = max(RARE[0], min(RARE[1], len(prefix) // 10))
    gone = [plain(piece.text) for piece in removed]
    gone_words = {word for text in gone for word in words_of(text)}
    gone_lines = {line for text in gone for line in _lines(text)}
    times = Counter(word for piece in prefix for word in gone_words.intersection(words_of(plain(piece.text))))
    words: dict[str, None] = {}
    lines: dict[str, None] = {}
    for piece in said:
        if piece.kind in ("call", "words"):
            text = plain(piece.text)
            words |= dict.fromkeys(word for word in words_of(text) if 0 < times[word] <= rare)
            lines |= dict.fromkeys(line for line in _lines(text) if line in gone_lines)
            if len(words) >= MOST and len(lines) >= MOST:
                break
    return Telling(frozenset(islice(words, MOST)), frozenset(islice(lines, MOST)))


def excerpts(pieces: Sequence[Piece], tells: Telling) -> tuple[str, ...]:
    """For each piece the lines of it that tell, each gap between them a line of its own; empty where none does. O(text).

    Nothing is shown more than TIMES for its own sake, in order of the pieces.
    """
    times: Counter[str] = Counter()
    found: list[str] = []
    for piece in pieces:
        fresh = frozenset(each for each in tells.of(piece.text) if times[each] < TIMES)
        times.update(fresh)
        found.append(_excerpt(piece.text, fresh) if fresh or _HANDLE.search(piece.text) else "")
    return tuple(found)


def _excerpt(text: str, fresh: frozenset[str]) -> str:
    tells = Telling(fresh, fresh)
    times: Counter[str] = Counter()
    shown: list[str] = []
    end = 0
    for line in _RUN.finditer(text):
        held = [each for each in tells.of(line[0]) if times[each] < TIMES]
        if held or _HANDLE.search(line[0]):
            times.update(held)
            if line.start() > end + 1:
                shown.append(GAP)
            shown.append(line[0])
            end = line.end()
    return "\n".join(shown)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text that are long enough to be told from others."""
    return (line for raw in text.split("\n") if len(line := raw.strip()) >= LINE_LEAST)
