"""aider's chat history taken apart: which lines a human typed, which the program printed, which the model said.

aider ends every line of its own (`#### ` a human's, `> ` the program's) with two spaces, and puts an empty line before what a
human typed and before what the model said; a text of several lines that it prints in one go has `> ` on its first line and the
two spaces on its last. A model's headings and quotations have neither, as a rule, and so stay the model's. Where an editor has
stripped the spaces, the empty lines and the wording decide; what is in doubt then is a human's where it looks typed, and else the
model's.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final

from msgspec import Struct

from tenure.logs.aider_notices import ADD_OUTPUT, AFTER_AN_ANSWER, SPANS_LINES, VERSION, is_notice

STARTED: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")

_TYPED, _PRINTED, _MARK = "#### ", "> ", "  "
_RUN: Final = ("/run ", "!")
_FENCE: Final = re.compile(r"\s*(`{3,}+|~{3,}+)(.*)")


class Writer(Enum):
    """Who wrote a part."""

    HUMAN = "human"
    PROGRAM = "program"
    MODEL = "model"


class AiderPart(Struct, frozen=True, gc=False):
    """What one of them wrote in one go."""

    writer: Writer
    text: str
    line: int  # 1-based

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text.encode())


class AiderChat(Struct, frozen=True):
    """From one start of aider to the next."""

    started: str  # local time, "2024-08-09 10:05:35"; empty for what stands before the first start in the file
    line: int
    parts: tuple[AiderPart, ...]


def chats(text: str) -> Iterator[AiderChat]:
    """The chats of a file, in order."""
    lines = text.split("\n") if "\r" not in text else [line.rstrip("\r") for line in text.split("\n")]
    started, first = "", 0
    for n, line in enumerate(lines):
        if line.startswith("# aider") and (found := STARTED.fullmatch(line)) and (n == 0 or not lines[n - 1].strip()):
            if started or n > first:
                yield AiderChat(started, first or 1, tuple(_AiderChat(lines[first:n], first).parts()))
            started, first = found[1], n + 1
    yield AiderChat(started, first or 1, tuple(_AiderChat(lines[first:], first, cut_off=not text.endswith("\n")).parts()))


class _AiderChat:
    """The lines of one chat, without those at its end that are empty."""

    def __init__(self, lines: list[str], before: int, *, cut_off: bool = False) -> None:
        while lines and not lines[-1].strip():
            lines.pop()
        self.lines, self.before = lines, before
        self.marked = any(line.endswith(_MARK) for line in lines if line.startswith((_TYPED, _PRINTED)))
        self._cut = len(lines) - 1 if cut_off else -1  # the line that may lack its end
        self._next = self._next_marked()
        self._begun = self._last_begun()
        self._version = self._first_printed(VERSION, 0)

    def _next_marked(self) -> list[int]:
        """For each line, the first from there on that ends with two spaces."""
        found, last = [0] * len(self.lines), len(self.lines)
        for at in reversed(range(len(self.lines))):
            last = at if self.lines[at].endswith(_MARK) else last
            found[at] = last
        return found

    def _last_begun(self) -> list[int]:
        """For each line, the last up to there that looks printed, with an empty one before it."""
        found, last = [0] * len(self.lines), -1
        for at in range(len(self.lines)):
            last = at if self._looks_printed(at) and self._is_empty(at - 1) else last
            found[at] = last
        return found

    def parts(self) -> Iterator[AiderPart]:
        at, last, ends = 0, None, VERSION
        while at < len(self.lines):
            if self._is_empty(at):
                at += 1
                continue
            writer = self._writer(at, last)
            end = self._end(writer, at, ends)
            text = self._text(writer, at, end)
            yield AiderPart(writer, text, self.before + at + 1)
            if writer is not Writer.PROGRAM or ends is ADD_OUTPUT:
                ends = ADD_OUTPUT if writer is Writer.HUMAN and text.startswith(_RUN) else None
            at, last = end, writer

    def _writer(self, at: int, last: Writer | None) -> Writer:
        """Who wrote the line at `at`, where no answer is under way."""
        if self._looks_typed(at):
            return Writer.HUMAN
        if not self._looks_printed(at):
            return Writer.MODEL
        new = last in (Writer.HUMAN, Writer.PROGRAM) and self._is_empty(at - 1)  # an answer may begin with a quotation
        return Writer.MODEL if new and self.marked and not self._ends(at) else Writer.PROGRAM

    def _end(self, writer: Writer, at: int, ends: re.Pattern[str] | None) -> int:
        match writer:
            case Writer.HUMAN:
                return self._end_of_typed(at)
            case Writer.PROGRAM:
                end = self._end_of_output(at, ends) if ends else 0
                return end or (self._end_of_printed(at) if self.marked else self._end_of_unmarked(at))
            case Writer.MODEL:
                return self._end_of_answer(at)

    def _end_of_output(self, at: int, ends: re.Pattern[str]) -> int:
        """Before the line that comes after output of many lines, whatever stands in it; 0 where there is none.

        The command line, which may hold a whole message, comes before the version; a command's output before a question.
        """
        if ends is VERSION:
            if at >= self._version:
                return 0
            alone = self._looks_printed(at + 1) or (self.marked and self._ends(at) and self._may_follow(at + 1))
            return 0 if alone else self._version
        return self._first_printed(ends, at + 1)

    def _first_printed(self, pattern: re.Pattern[str], at: int) -> int:
        """The first line from `at` on that was printed and fits, if nothing is typed before it; 0 for none."""
        for end in range(at, len(self.lines)):
            if self._looks_typed(end):
                return 0
            if self._looks_printed(end) and pattern.match(self.lines[end], len(_PRINTED)):
                return end
        return 0

    def _end_of_typed(self, at: int) -> int:
        at += 1
        while at < len(self.lines) and self._looks_typed(at):
            at += 1
        return at

    def _end_of_printed(self, at: int) -> int:
        """After the first line with two spaces at its end that something of aider's can follow."""
        if self._ends(at) and (at + 1 == len(self.lines) or self._is_empty(at + 1) or self._looks_printed(at + 1)):
            return at + 1
        at += 1
        while at < len(self.lines):
            if self._looks_printed(at) and self._ends(at):
                return at
            if self._is_empty(at - 1) and self._looks_typed(at):
                return at
            at += 1
            if self._ends(at - 1) and self._may_follow(at):
                return at
        return at

    def _may_follow(self, at: int) -> bool:
        if at >= len(self.lines) or self._looks_printed(at):
            return True
        return self._is_empty(at) and not self._is_empty(at + 1) and not self.lines[at + 1][0].isspace()

    def _end_of_unmarked(self, at: int) -> int:
        at += 1
        while at < len(self.lines) and not self._is_empty(at) and not self._looks_printed(at) and not self._looks_typed(at):
            at += 1
        return at

    def _end_of_answer(self, at: int) -> int:
        fence = ""
        while at < len(self.lines):
            if found := _FENCE.match(self.lines[at]):
                fence = _after(fence, found[1], found[2])
            at += 1
            if at < len(self.lines) and self._is_empty(at - 1) and self._ends_answer(at, fence):
                break
        return at

    def _ends_answer(self, at: int, fence: str) -> bool:
        """Whether the line at `at`, with an empty one before it, is aider's. In an open fence it takes more to believe that."""
        line = self.lines[at]
        if self._looks_typed(at):
            return self._is_empty(at - 2) or self._looks_printed(at - 2) or (self.marked and not fence)
        if not self._looks_printed(at):
            return False
        text = line.removeprefix(_PRINTED).strip()
        if not self.marked:
            return is_notice(text) or AFTER_AN_ANSWER.match(text) is not None
        if not self._ends(at):
            return SPANS_LINES.match(text) is not None or (not fence and self._leads_to_printed(at))
        return not fence or self._is_run_of_notices(at)

    def _is_run_of_notices(self, at: int) -> bool:
        """Whether something that only aider says is among the printed lines from `at` on."""
        while at < len(self.lines) and self._looks_printed(at) and self._ends(at):
            text = self.lines[at].removeprefix(_PRINTED).strip()
            if text and (AFTER_AN_ANSWER.match(text) is not None or is_notice(text)):
                return True
            at += 1
        return False

    def _leads_to_printed(self, at: int) -> bool:
        """Whether something of many lines starts at `at`: its last is marked, and followed by what aider prints next."""
        end = self._next[at]
        if end + 1 >= len(self.lines) or self._looks_printed(end) or self._looks_typed(end) or self._begun[end] != at:
            return False
        return self._looks_printed(end + 1) and self._ends(end + 1)

    def _looks_typed(self, at: int) -> bool:
        line = self.lines[at]
        return (line.startswith(_TYPED) or line == "####") and self._ends(at)

    def _looks_printed(self, at: int) -> bool:
        line = self.lines[at]
        return line.startswith(_PRINTED) or line == ">"

    def _ends(self, at: int) -> bool:
        return not self.marked or self.lines[at].endswith(_MARK) or at == self._cut

    def _is_empty(self, at: int) -> bool:
        return at < 0 or not self.lines[at].strip()

    def _text(self, writer: Writer, at: int, end: int) -> str:
        lines = self.lines[at:end]
        match writer:
            case Writer.HUMAN:
                return "\n".join("" if line.rstrip() == "####" else line[len(_TYPED) :].removesuffix(_MARK) for line in lines)
            case Writer.PROGRAM:
                return "\n".join((lines[0][len(_PRINTED) :], *lines[1:])).strip()
            case Writer.MODEL:
                return "\n".join(lines).strip()


def _after(fence: str, sign: str, rest: str) -> str:
    """The fence that is open after a line with `sign`, empty for none."""
    if not fence:
        return sign
    closes = sign[0] == fence[0] and len(sign) >= len(fence) and not rest.strip()
    return "" if closes else fence
