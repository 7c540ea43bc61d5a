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
    at, cut = start, ""
    nested: list[tuple[Node, str]] = []  # containers being read, with the brackets that close them
    keys = [""]  # the key that waits for its value, by level
    while (at := _skip(text, at)) < len(text):
        char = text[at]
        if char in "{[":
            if len(nested) >= DEEPEST:
                break
            node = Node()
            _put(node, nested, keys)
            nested.append((node, "}" if char == "{" else "]"))
            keys.append("")
            at += 1
        elif char in "}]" and nested:
            at += 1
            if (root := _close(char, nested, keys)) is not None:
                return Loose(root, at, whole=True)
        elif char in "}]:=>":
            at += 1
            if not nested:
                break
        elif (scalar := _scalar(text, at, is_nested=bool(nested))) is None:
            at += 1
        else:
            word, at, is_cut = scalar
            if is_cut:
                cut = word
                break
            if not nested:
                return Loose(word, at, whole=True)
            if (colon := _COLON.match(text, at)) is not None:
                at, keys[-1] = colon.end(), word
            else:
                _put(word, nested, keys)
    return Loose(nested[0][0] if nested else "", at, whole=False, cut=cut)


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


def _put(value: Value, nested: list[tuple[Node, str]], keys: list[str]) -> None:
    if nested:
        nested[-1][0].items.append((keys[-1], value))
        keys[-1] = ""


def _close(char: str, nested: list[tuple[Node, str]], keys: list[str]) -> Node | None:
    """Close containers up to one of the bracket's kind; the outermost once it is closed. A bracket of the other kind closes what was forgotten, too."""
    while nested:
        node, closing = nested.pop()
        keys.pop()
        if closing == char or all(other != char for _, other in nested):
            return None if nested else node
    return None


def _scalar(text: str, at: int, *, is_nested: bool) -> tuple[str, int, bool] | None:
    """A quoted text or a bare word, where it ends, and whether the end of the text cut it off; None where there is none."""
    if text[at] in "\"'":
        quoted = (_DOUBLE if text[at] == '"' else _SINGLE).match(text, at)
        assert quoted is not None
        return _unescaped(quoted[1]), quoted.end(), not quoted[2]
    word = _WORD.match(text, at)
    return None if word is None else (word[0], word.end(), word.end() >= len(text) and is_nested)


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
