"""JSON as models write it, read as far as it goes.

Forgiven are single and curly quotes, unquoted words, trailing and missing commas, comments, a key without a value, and an end that never
comes. What was cut off in the middle of a word is not given out as that word. The library json-repair was tried (0.64): it completes cut-off words (`"exec:1`,
which may have been exec:12), does not say whether a value was whole or where it ends, raises RecursionError on `[` × 10,000, and was 6 to 8 times
slower on quoted input.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

DEEPEST: Final = 40  # levels; what lies deeper ends the reading
ATTEMPTS: Final = 64  # places where a value is looked for
REREAD: Final = 4  # times its length that a text is read at most, so that looking stays linear

_SKIP: Final = re.compile(r"(?:[\s,;]++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)*+")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.|"(?![^\S\n]*+(?:[,:;=\]}/#\n]|\Z)))*+)("?)', re.DOTALL)
_SINGLE: Final = re.compile(r"'((?:[^'\\]|\\.|'(?![^\S\n]*+(?:[,:;=\]}/#\n]|\Z)))*+)('?)", re.DOTALL)
_WORD: Final = re.compile(r"(?:[^\s,;:=\[\]{}\"'#/]|:(?=\w)|/(?![/*])|=(?!>))++")
_COLON: Final = re.compile(r"\s*+(?::|=>|=)")
_CURLY: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'"})


@dataclass(slots=True)
class Node:
    """An object or an array: members in order, those of an array under the key ""."""

    items: list[tuple[str, "Value"]] = field(default_factory=list[tuple[str, "Value"]])


Value = Node | str


@dataclass(slots=True)
class Loose:
    """What was read from one place on."""

    value: Value
    end: int  # where the reading stopped
    whole: bool  # everything that was opened was closed
    cut: str = ""  # the start of a word that the end of the text cut off


def straight(text: str) -> str:
    """The text with straight quotes, as long as before."""
    return text.translate(_CURLY)


def loose(text: str, start: int = 0) -> Loose:
    """The value that begins at `start`; a missing one is an empty text. O(what is read); quotes have to be straight."""
    return _LooseReader(text, start).read()


def last_value(text: str, is_wanted: Callable[[Value], bool], brackets: str = "{[") -> Loose | None:
    """The last whole value of a text that is wanted, else the last one that was begun. Linear: what may be read over again is bounded."""
    best: Loose | None = None
    at, fuel = 0, REREAD * len(text)
    for _ in range(ATTEMPTS):
        at = min((place for bracket in brackets if (place := text.find(bracket, at)) >= 0), default=-1)
        if at < 0 or fuel <= 0:
            break
        hit = loose(text, at)
        fuel -= hit.end - at + 1
        wanted = is_wanted(hit.value)
        if wanted and (best is None or hit.whole or not best.whole):
            best = hit
        at = hit.end if hit.whole or wanted else at + 1
    return best


class _LooseReader:
    def __init__(self, text: str, start: int) -> None:
        self._text, self._at = text, start
        self._open: list[tuple[Node, str]] = []  # containers being read, with the brackets that close them
        self._keys: list[str] = [""]  # the key that waits for its value, by level
        self._done: Value | None = None
        self._cut = ""

    def read(self) -> Loose:
        text = self._text
        while self._done is None:
            self._at = _skip(text, self._at)
            if self._at >= len(text) or not self._step(text[self._at]):
                break
        if self._done is not None:
            return Loose(self._done, self._at, whole=not self._cut, cut=self._cut)
        root: Value = self._open[0][0] if self._open else ""
        return Loose(root, self._at, whole=False, cut=self._cut)

    def _step(self, char: str) -> bool:
        """Take in one token; False when the reading ends here."""
        if char in "{[":
            if len(self._open) >= DEEPEST:
                return False
            node = Node()
            self._put(node)
            self._open.append((node, "}" if char == "{" else "]"))
            self._keys.append("")
            self._at += 1
            return True
        if char in "}]":
            return self._close(char)
        if char in ":=>":
            self._at += 1
            return bool(self._open)
        return self._scalar(char)

    def _close(self, char: str) -> bool:
        self._at += 1
        while self._open:  # a bracket of the other kind closes what was forgotten, too
            node, closing = self._open.pop()
            self._keys.pop()
            if closing == char or not any(other == char for _, other in self._open):
                if not self._open:
                    self._done = node
                return True
        return False

    def _scalar(self, char: str) -> bool:
        if char in "\"'":
            hit = (_DOUBLE if char == '"' else _SINGLE).match(self._text, self._at)
            assert hit is not None
            self._at = hit.end()
            word, is_cut = _unescaped(hit[1]), not hit[2]
        else:
            hit = _WORD.match(self._text, self._at)
            if hit is None:
                self._at += 1
                return True
            self._at, word = hit.end(), hit[0]
            is_cut = self._at >= len(self._text) and bool(self._open)
        if is_cut:
            self._cut = word
            return False
        colon = _COLON.match(self._text, self._at) if self._open else None
        if colon is not None:
            self._at = colon.end()
            self._keys[-1] = word
        else:
            self._put(word)
        return True

    def _put(self, value: Value) -> None:
        if self._open:
            self._open[-1][0].items.append((self._keys[-1], value))
            self._keys[-1] = ""
        elif isinstance(value, str):
            self._done = value


def _skip(text: str, at: int) -> int:
    hit = _SKIP.match(text, at)
    assert hit is not None
    return hit.end()


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return msgspec.json.decode(f'"{text}"'.encode("utf-8", "replace"), type=str)
    except (msgspec.DecodeError, UnicodeError):
        return re.sub(r"\\(.)", lambda hit: {"n": "\n", "t": " ", "r": " "}.get(hit[1], hit[1]), text, flags=re.DOTALL)
