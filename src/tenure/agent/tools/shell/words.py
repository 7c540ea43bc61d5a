"""Reads the words of a bash script: quotes, expansions, substitutions. Pure. Promise: what can only be told when it runs is never taken for plain.

https://www.gnu.org/software/bash/manual/bash.html, sections 3.1.2 and 3.5.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from tenure.agent.tools.shell.script import Command, Word

DEEPEST: Final = 12  # substitutions within substitutions
PROCESS: Final = "/dev/fd/63"  # what a process substitution is to its command

_SUMS: Final = 50
_BREAKS: Final = frozenset(" \t\n;&|()<>")
_PARAMETER: Final = re.compile(
    r"\{(?:([A-Za-z_]\w*)|#?[A-Za-z_]\w*(?:\[[@*\d]\])?|[0-9@*#?$!_-]"
    r"|[A-Za-z_]\w*(?::?[-=+?]|%%?|##?|//?|:)[^$`@\"'\\{}<>\n]*)\}"
)
_NAME: Final = re.compile(r"([A-Za-z_]\w*)|[0-9@*#?$!_-]")
_SUM: Final = re.compile(r"\(\([\w\s+\-*/%<>=!&|^~?:,()]*?\)\)")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")
_BRACE: Final = re.compile(r"\{[^\s;|&<>]*?(?:,|\.\.)")
_ANSI: Final = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def _is_number(name: str, text: str) -> bool:
    """Whether a variable is a number wherever a script sets it: in a sum, any other value could run a command."""
    values = re.findall(rf"(?<![\w$]){name}\+?=(\(\(|\$\(\(|[\w-]*)", text)
    named = len(re.findall(rf"(?<![\w${{]){name}\b(?![^()]*\)\))", text))
    return bool(values) and len(values) == named and all(re.fullmatch(r"-?\d+|\$\(\(", value) for value in values)


class Unclosed(Exception):
    """The script ends where something is still open."""


class Spelling:
    """A word that is being read. Mutable."""

    def __init__(self) -> None:
        self.text = ""
        self.plain = True
        self.glob = self.quoted = False
        self.brace = -1  # where alternatives begin

    def unknown(self) -> None:
        """Something comes that is only known when it runs."""
        self.text += "*"
        self.plain = False

    def word(self) -> Word:
        """What was read."""
        text, glob = self.text, self.glob and ("*" in self.text or "?" in self.text or "]" in self.text)
        if self.brace >= 0:
            return Word(text=text[: self.brace] + "*", plain=False, quoted=self.quoted)
        return Word(text=text, plain=self.plain and not glob, glob=glob and self.plain, quoted=self.quoted)


class Words(ABC):
    """Goes through a text once, word by word. Mutable."""

    def __init__(self, text: str, known: Mapping[str, str], depth: int) -> None:
        """`known` are variables whose values are settled; `depth` is how many substitutions it stands in."""
        self.commands: list[Command] = []
        self.odd: list[str] = []
        self.unknown: list[str] = []
        self._text, self._at, self._known, self._depth = text, 0, known, depth
        self._sums = 0

    @abstractmethod
    def _commands(self, end: str) -> None:
        """Read commands up to `end`, and go behind it."""

    @abstractmethod
    def _script(self, text: str) -> None:
        """Read another text as a script; its finds are this one's."""

    def _word(self) -> Word:
        spelling = Spelling()
        start = self._at
        while (sign := self._text[self._at : self._at + 1]) and (sign not in _BREAKS or self._is_process(sign, start)):
            self._at += 1
            match sign:
                case "'":
                    end = self._find("'")
                    spelling.text += self._text[self._at : end]
                    spelling.quoted = True
                    self._at = end + 1
                case '"':
                    self._quoted(spelling, '"')
                case "\\":
                    escaped = self._text[self._at : self._at + 1]
                    self._at += 1
                    if escaped != "\n":
                        spelling.text += escaped
                        spelling.quoted = True
                case "$":
                    self._dollar(spelling, quoted=False)
                case "`":
                    self._backticks(spelling)
                case "<" | ">":
                    self._at += 1
                    self._substitution(spelling, PROCESS)
                case "~" if self._at - 1 == start:
                    self._tilde(spelling)
                case "{" if _BRACE.match(self._text, self._at - 1):
                    spelling.brace = len(spelling.text) if spelling.brace < 0 else spelling.brace
                    spelling.text += sign
                case _:
                    spelling.glob = spelling.glob or sign in "*?["
                    spelling.text += sign
        if self._at == start:  # a sign that cannot stand here: skip it, and say so
            self.odd.append("something that is no word")
            self._at += 1
        return spelling.word()

    def _is_process(self, sign: str, start: int) -> bool:
        return sign in "<>" and self._at == start and self._text.startswith("(", self._at + 1)

    def _quoted(self, spelling: Spelling, end: str) -> None:
        """What stands in double quotes, up to `end`, or to the end of the text when it is empty."""
        spelling.quoted = True
        while (sign := self._text[self._at : self._at + 1]) != end:
            if not sign:
                raise Unclosed
            self._at += 1
            if sign == "\\":
                escaped = self._text[self._at : self._at + 1]
                self._at += 1
                spelling.text += "" if escaped == "\n" else escaped if escaped in '$`"\\' else sign + escaped
            elif sign == "$":
                self._dollar(spelling, quoted=True)
            elif sign == "`":
                self._backticks(spelling)
            else:
                spelling.text += sign
        self._at += 1

    def _dollar(self, spelling: Spelling, *, quoted: bool) -> None:
        """What comes after a dollar sign."""
        if found := _SUM.match(self._text, self._at):
            self._sums += 1
            if self._sums > _SUMS or not all(_is_number(name, self._text) for name in _VARIABLE.findall(found[0])):
                self.unknown.append("a sum of what is not known")
            self._at = found.end()
            spelling.unknown()
        elif self._text.startswith("(", self._at):
            if self._text.startswith("((", self._at):
                self.unknown.append("arithmetic")
            self._at += 1
            self._substitution(spelling, "")
        elif self._text.startswith("{", self._at):
            self._parameter(spelling)
        elif not quoted and (found := _ANSI.match(self._text, self._at)):
            self._at = found.end()
            self._ansi(spelling, found[1])
        elif not quoted and self._text.startswith('"', self._at):
            self._at += 1
            self._quoted(spelling, '"')
        elif found := _NAME.match(self._text, self._at):
            self._at = found.end()
            self._variable(spelling, found[1] or "")
        else:
            spelling.text += "$"

    def _parameter(self, spelling: Spelling) -> None:
        if found := _PARAMETER.match(self._text, self._at):
            self._at = found.end()
            self._variable(spelling, found[1] or "")
            return
        self.unknown.append("an expansion ${…}")
        self._at += 1
        self._deeper()
        self._quoted(spelling, "}")
        self._depth -= 1
        spelling.unknown()

    def _deeper(self) -> None:
        if self._depth >= DEEPEST:
            self.odd.append("too many expansions in each other")
            raise Unclosed
        self._depth += 1

    def _variable(self, spelling: Spelling, name: str) -> None:
        if name in self._known:
            spelling.text += self._known[name]
        else:
            spelling.unknown()

    def _ansi(self, spelling: Spelling, text: str) -> None:
        spelling.quoted = True
        for part in re.findall(r"\\.|[^\\]+", text, re.DOTALL):
            if not part.startswith("\\"):
                spelling.text += part
            elif part[1] in _ESCAPES:
                spelling.text += _ESCAPES[part[1]]
            else:
                spelling.unknown()

    def _tilde(self, spelling: Spelling) -> None:
        follows = self._text[self._at : self._at + 1]
        if "HOME" in self._known and (not follows or follows in _BREAKS or follows == "/"):
            spelling.text += self._known["HOME"]
        else:
            spelling.unknown()

    def _substitution(self, spelling: Spelling, text: str) -> None:
        """Commands in brackets, whose output takes their place."""
        self._deeper()
        self._commands(")")
        self._depth -= 1
        spelling.text += text
        if not text:
            spelling.unknown()

    def _backticks(self, spelling: Spelling) -> None:
        found = re.compile(r"((?:[^`\\]|\\.)*)`", re.DOTALL).match(self._text, self._at)
        if found is None or self._depth >= DEEPEST:
            raise Unclosed
        self._at = found.end()
        self._script(re.sub(r"\\([`\\$])", r"\1", found[1]))
        spelling.unknown()

    def _find(self, sign: str) -> int:
        end = self._text.find(sign, self._at)
        if end < 0:
            raise Unclosed
        return end

    def _skip_blanks(self) -> str:
        """Go on to what comes next, which is returned; comments and joined lines are no more than blanks."""
        while True:
            sign = self._text[self._at : self._at + 1]
            if sign and sign in " \t":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif sign == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return sign
