r"""Text of unknown origin that cannot act on a terminal or deceive a reader.

Escape sequences are taken out, a line that was written over and over (`\r`, backspaces) is left as it stood last, and what else has no
shape of its own is shown by one (`record.visible`).
"""

import codecs
import re
from collections.abc import Iterator
from typing import Final

from tenure.engine.record.visible import ACTS, visible

_SEQUENCE: Final = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and the like: titles, links, clipboard
    r"|[ -/]++[0-~]|[0-OQ-WYZ\\`-~])"  # character sets, single functions
    r"|\x9b[0-?]*+[ -/]*+[@-~]"
)
_CUT: Final = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+|[\]PX^_][^\x07\x1b\x9c]*+\x1b?|[ -/]*+)?\Z|\x9b[0-?]*+[ -/]*+\Z")
_NO_TEXT: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_ACTS: Final = re.compile(f"[{ACTS}\ufffd]")
_LONGEST_SEQUENCE: Final = 4_096  # characters; a longer one is no sequence
_LONGEST_LINE: Final = 2**16  # characters that are held back
_BINARY_SHARE: Final = 0.2  # of a line's characters, from which on it is no text
_BINARY_LEAST: Final = 8  # such characters, where no such line goes before


def plain(text: str) -> str:
    """A whole text as it would be read on a terminal."""
    return Cleaner().feed(text.encode("utf-8", "replace"), final=True)


class Cleaner:
    """Makes output harmless as it comes, in whatever pieces. Mutable: it holds the line that is being written, and half of a sequence."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""  # the start of an escape sequence
        self._line = ""  # what a carriage return may still take back
        self._acts = False  # whether there is anything in that line that is no plain text
        self._binary = 0  # characters of lines that are no text, since the last line that was
        self.binary = 0  # characters that were told as no text

    def feed(self, chunk: bytes, *, final: bool = False) -> str:
        """The lines that are complete by now and were not given before; with `final` all the rest."""
        text = self._held + self._decode(chunk, final)
        self._held = ""
        acts = _ACTS.search(text) is not None
        if acts:
            text = _SEQUENCE.sub("", text)
            cut = _CUT.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
            if cut is not None and not final:
                text, self._held = text[: cut.start()], text[cut.start() :]
        whole, newline, last = text.rpartition("\n")
        doubtful = acts or self._acts or self._binary > 0
        if newline:
            whole, self._line, self._acts = self._line + whole, "", False
        if final or len(self._line) + len(last) > _LONGEST_LINE:
            whole, newline, last, self._line, self._acts = whole + newline + self._line + last, "", "", "", False
        self._acts = self._acts or (acts and bool(last))
        self._line = _held(self._line + last) if self._acts else self._line + last
        if not doubtful:
            return whole + newline
        said = "".join(self._shown(whole, newline)) if whole or newline else ""
        return said + self._told() if final else said

    def _shown(self, whole: str, newline: str) -> Iterator[str]:
        lines = whole.split("\n")
        for n, line in enumerate(map(_written, lines)):
            end = "\n" if n < len(lines) - 1 else newline
            strange = len(_NO_TEXT.findall(line)) if _ACTS.search(line) else 0
            least = 1 if self._binary else _BINARY_LEAST
            if (strange >= least and strange >= _BINARY_SHARE * len(line)) or (self._binary and not line.strip()):
                self._binary += len(line + end)
            else:
                yield self._told() + visible(line) + end

    def _told(self) -> str:
        count, self._binary = self._binary, 0
        self.binary += count
        return f"[binary: {count:,} characters]\n" if count else ""


def _held(line: str) -> str:
    """An unfinished line as far as it can no longer change."""
    return _written(line) + ("\r" if line.endswith("\r") else "")


def _written(line: str) -> str:
    """A line as it stands once it was written over."""
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part), "")
    if "\b" not in line:
        return line
    kept: list[str] = []
    for sign in line:
        if sign != "\b":
            kept.append(sign)
        elif kept:
            kept.pop()
    return "".join(kept)
