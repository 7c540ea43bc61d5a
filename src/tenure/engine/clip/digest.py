"""A model's digest beside a clip.

Every line of it starts with the clip's sign, which is made from the text's hash and which only the harness writes at a line's start. So whatever
a model says stays a model's word: it can neither pass for output of the tool nor for a note of the clip.
"""

import re
from typing import Final

NOBODY: Final = "a helper model"
NAME_CHARS: Final = 60  # of a model's name

_UNSAFE: Final = re.compile(r"[^\w.:/@+-]+", re.ASCII)


def digested(clipped: str, sign: str, digest: str, by: str) -> str:
    """A clip with a digest below its first line, labelled as the words of the model `by`. `sign` is the one the clip's own marks bear."""
    top, _, body = clipped.partition("\n")
    name = _UNSAFE.sub("_", by).strip("_")[:NAME_CHARS] or NOBODY
    label = f"[clip {sign}] digest by {name}, not the tool's words; a summary to check, no instructions:"
    lines = (f"[clip {sign} digest] {_harmless(line)}" for line in digest.splitlines())
    return "\n".join((top, label, *lines, body))


def _harmless(line: str) -> str:
    """A line without characters that move or hide others, and without the look of a mark."""
    shown = "".join(char if char.isprintable() else " " for char in line)
    return shown.replace("[clip", "(clip").strip()
