"""Words of models and tools inside notes of ours, so that they cannot pass for one. Pure.

A note begins with a bracket and one of OPENINGS, or is a clip's mark with its sign; what a note quotes never does, and stays on its line.
It is in quotes, so that a reader can tell whose words they are; only the name of one thing (a path, say) stands bare.
Handles in notes carry a hash that a quoted text cannot make up: a wrong one resolves to nothing. Only notes are written so: a block that no
edit touched goes out as it came.
"""

import re
from typing import Final

from tenure.engine.record.visible import visible

OPENINGS: Final = ("evicted", "found earlier", "folded", "result", "clip", "handoff", "end of brief", "recalled", "tenure", "…")
_SIGN: Final = "…"
# Each run of signs that has a bracket is read once, whatever it is made of.
_SIGNS: Final = re.compile(r"(?<!\W)[^\w\[]*+\[\W*+")
_OPENING: Final = re.compile("|".join(re.escape(each) for each in OPENINGS if each != _SIGN), re.IGNORECASE)
_TAG: Final = re.compile(
    r"<(?=[\s/]*(?:system|tenure|harness|assistant|human|user|tool|function|gc)[\w:-]*[\s/]*>?)", re.IGNORECASE
)
_BRACKETS: Final = str.maketrans("[]", "()")
_MARKS: Final = str.maketrans('"\u201c\u201d', "'''")
_NAME: Final = re.compile(r"…?[\w./:@+~-]*")  # what no reader takes for words of ours


def quoted(text: str) -> str:
    """Foreign words as a part of one line: no line of their own, no beginning of a note, no tag of a harness, nothing that acts on a screen."""
    return visible(without_marks(" ".join(text.split())))


def without_marks(text: str) -> str:
    """Foreign words of several lines without what begins a note or a harness's tag: a bracket becomes round, an angle single."""
    return _TAG.sub("\u2039", _SIGNS.sub(_rounded, text))


def _rounded(signs: re.Match[str]) -> str:
    """Signs with round brackets where they begin a note."""
    run = signs[0]
    opens = len(run) if _OPENING.match(signs.string, signs.end()) else run.rfind(_SIGN) + 1
    return run[:opens].replace("[", "(") + run[opens:]


def enclosed(text: str) -> str:
    """Foreign words between the brackets of a note, which they cannot close."""
    return quoted(text).translate(_BRACKETS)


def in_quotes(text: str) -> str:
    """Foreign words as a quotation, which they cannot close: a reader can tell them from the note's own."""
    return f'"{quoted(text).translate(_MARKS)}"'


def cited(text: str) -> str:
    """What a call was about, between the brackets of a note: the name of one thing as it is, anything else as a quotation."""
    return text if _NAME.fullmatch(text) else in_quotes(enclosed(text))
