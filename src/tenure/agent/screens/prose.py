"""A model's words on the screen: headings, code and emphasis are coloured, nothing is interpreted."""

import re
from collections.abc import Sequence
from typing import Final

from textual.content import Content

from tenure.agent.screens import clean

_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_HEADING: Final = re.compile(r"^#{1,6} ")
_CODE: Final = re.compile(r"(`[^`\n]{1,200}`|\*\*[^*\n]{1,200}\*\*)")


def prose(text: str, style: str = "") -> Content:
    """Words with their own signs, coloured; every character of it is shown."""
    parts: list[tuple[str, str] | str] = []
    fenced = False
    for line in clean.text(text).split("\n"):
        fence = _FENCE.match(line) is not None
        fenced ^= fence
        if fence or fenced:
            parts.append((line + "\n", "$quiet" if fence else "$text-accent"))
        elif _HEADING.match(line):
            parts.append((line + "\n", "bold"))
        else:
            for n, piece in enumerate(_CODE.split(line)):
                parts.append((piece, ("bold" if piece.startswith("**") else "$text-accent") if n % 2 else style))
            parts.append("\n")
    return Content.assemble(*parts).rstrip()


def change(text: str) -> Content:
    """A unified diff, a line of each kind in its colour."""
    return Content.assemble(*[(line + "\n", _tone(line)) for line in clean.text(text).split("\n")]).rstrip()


def hunks(lines: Sequence[str], margin: str = "  ") -> Content:
    """Changed lines without heads, each kind in its colour, behind a margin."""
    tones = {"+": "$text-success", "-": "$text-error", "⋯": "$quiet"}
    return Content("\n").join([Content.styled(margin + clean.text(line), tones.get(line[:1], "")) for line in lines])


def _tone(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "$quiet"
    return "$text-success" if line.startswith("+") else "$text-error" if line.startswith("-") else ""


def is_diff(text: str) -> bool:
    """Whether a text looks like a unified diff."""
    return text.startswith("--- ") and "\n@@ " in text
