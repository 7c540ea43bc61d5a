"""Reads the words of a bash script: quotes, expansions, substitutions. Pure.

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
    r"\{(?:([A-Za-z_]\w*)(?:\[[@*\d]\])?|#[A-Za-z_]\w*(?:\[[@*\d]\])?|[0-9@*#?$!_-]"
    r"|([A-Za-z_]\w*)(?:(?::?[-+?]|%%?|##?|//?|\^\^?|,,?)[^$`@\"'\\{}<>\n]*|:[-\d ]+(?::[-\d ]+)?))\}"
)
_NAME: Final = re.compile(r"([A-Za-z_]\w*)|[0-9@*#?$!_-]")
_SUM: Final = re.compile(r"\(\([\w\s+\-*/%<>=!&|^~?:,()]*?\)\)")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")
# What is quoted may be anything; what is substituted counts as one.
_BRACE: Final = re.compile(
    r"""\{(?:[^ \t\n;|&<>()'"\\`$,.]|'[^']*'|"(?:[^"\\`$]|\\.)*"|\\.|\.(?!\.)|\$(?![({]))*+(?:,|\.\.|["`(]|\$[({])""", re.DOTALL
)
_ANSI: Final = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
OPEN, CLOSE = "\ue000", "\ue001"  # around the name of a variable in a word's template
NUMBER: Final = "#"  # in the place of a name: a number
OUTPUT: Final = "?"  # the output of a command
MADE: Final = "!"  # anything else that is made when it runs: of parts, of braces, of arguments
_UNKNOWN: Final = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def _is_number(name: str, text: str) -> bool:
    """Whether a variable is a number wherever a script sets it: in a sum, any other value could run a command."""
    values = re.findall(rf"(?<![\w$]){name}\+?=(-?\d+(?![^\s;&|)])|\$\(\([^()]*\)\)(?![^\s;&|)])|)", text)
    named = len(re.findall(rf"(?<![\w${{]){name}\b(?![^()]*\)\))", text))
    return bool(values) and len(values) == named and all(values) and not re.search(rf"\{{{name}:?=", text)


class Unclosed(Exception):
    """The script ends where something is still open."""


class Spelling:
    """A word that is being read. Mutable."""

    def __init__(self) -> None:
        self.text = ""
        self.plain = True
        self.glob = self.quoted = self.loose = False
        self.brace = -1  # where alternatives begin

    def unknown(self, name: str = MADE, *, loose: bool = False) -> None:
        """Something comes that is only known when it runs; `loose`: it may be several words, or none."""
        self.text += f"{OPEN}{name}{CLOSE}"
        self.plain = False
        self.loose = self.loose or (loose and name != NUMBER)

    def word(self) -> Word:
        """What was read."""
        template = self.text[: self.brace] + f"{OPEN}{MADE}{CLOSE}" if self.brace >= 0 else self.text
        text = _UNKNOWN.sub("*", template)
        glob = self.brace < 0 and self.glob and any(sign in text for sign in "*?]")
        number = not self.plain and not glob and set(_UNKNOWN.findall(template)) == {f"{OPEN}{NUMBER}{CLOSE}"}
        return Word(
            text=text,
            plain=self.plain and not glob and self.brace < 0,
            glob=glob and self.plain,
            quoted=self.quoted,
            loose=self.loose or glob or self.brace >= 0,
            number=number,
            template=template if text != template else "",
        )


class Words(ABC):
    """Goes through a text once, word by word. Mutable."""

    def __init__(self, text: str, known: Mapping[str, str], depth: int) -> None:
        """`known` are variables whose values are settled; `depth` is how many substitutions it stands in."""
        self.commands: list[Command] = []
        self.odd: list[str] = []
        self.unknown: list[str] = []
        self._text, self._at, self._known, self._depth = text, 0, known, depth
        self._sums = 0
        self._literal = -1  # where the last word begins that has a brace and no alternatives
        self.variables: set[str] = set()  # whose values are used
        self.feeding: set[int] = set()  # commands, by number, whose output goes to others
        self._numbers: dict[str, bool] = {}

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
                    self._backticks(spelling, quoted=False)
                case "<" | ">":
                    self._at += 1
                    self._substitution(spelling, PROCESS, quoted=True)
                case "~" if self._at - 1 == start:
                    self._tilde(spelling)
                case "{" if self._is_brace(start):
                    spelling.brace = len(spelling.text) if spelling.brace < 0 else spelling.brace
                    spelling.text += sign
                case _:
                    spelling.glob = spelling.glob or sign in "*?["
                    spelling.text += sign
        if self._at == start:  # a sign that cannot stand here: skip it, and say so
            self.odd.append("something that is no word")
            self._at += 1
        return spelling.word()

    def _is_brace(self, start: int) -> bool:
        """Whether alternatives begin here; if not at one brace of a word, then not at a later one either."""
        if self._literal == start or self._text.startswith("}", self._at):
            return False
        found = _BRACE.match(self._text, self._at - 1) is not None
        self._literal = self._literal if found else start
        return found

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
                self._backticks(spelling, quoted=True)
            else:
                spelling.text += sign
        self._at += 1

    def _dollar(self, spelling: Spelling, *, quoted: bool) -> None:
        """What comes after a dollar sign."""
        if found := _SUM.match(self._text, self._at):
            self._sums += 1
            if self._sums > _SUMS or not all(map(self._is_number, _VARIABLE.findall(found[0]))):
                self.unknown.append("a sum of what is not known")
            self._at = found.end()
            spelling.unknown(NUMBER)
        elif self._text.startswith("(", self._at):
            if self._text.startswith("((", self._at):
                self.unknown.append("arithmetic")
            self._at += 1
            self._substitution(spelling, "", quoted=quoted)
        elif self._text.startswith("[", self._at):  # the old way to write a sum
            self.unknown.append("arithmetic")
            spelling.unknown(loose=True)
        elif self._text.startswith("{", self._at):
            self._parameter(spelling, quoted=quoted)
        elif not quoted and (found := _ANSI.match(self._text, self._at)):
            self._at = found.end()
            self._ansi(spelling, found[1])
        elif not quoted and self._text.startswith('"', self._at):
            self._at += 1
            self._quoted(spelling, '"')
        elif found := _NAME.match(self._text, self._at):
            self._at = found.end()
            self._variable(spelling, found[1] or found[0], quoted=quoted)
        else:
            spelling.text += "$"

    def _parameter(self, spelling: Spelling, *, quoted: bool) -> None:
        if found := _PARAMETER.match(self._text, self._at):
            self._at = found.end()
            name = found[1] or found[2] or ""
            if name and not found[0].endswith((f"{{{name}}}", f"{name}[0]}}", f"{name}[@]}}", f"{name}[*]}}")):
                self.variables.add(name)  # a part of its value, or another one
                name = ""
            if name and not found[0].endswith(f"{{{name}}}"):
                self.variables.add(name)
                spelling.unknown(name, loose=True)
            else:
                special = found[0][1:-1]
                self._variable(spelling, name or (special if len(special) == 1 else ""), quoted=quoted)
            return
        self.unknown.append("an expansion ${…}")
        self._at += 1
        self._deeper()
        self._quoted(spelling, "}")
        self._depth -= 1
        spelling.unknown(loose=True)

    def _deeper(self) -> None:
        if self._depth >= DEEPEST:
            self.odd.append("too many expansions in each other")
            raise Unclosed
        self._depth += 1

    def _variable(self, spelling: Spelling, name: str, *, quoted: bool) -> None:
        """A variable's value; of no name: what a script makes of one."""
        if name in self._known:
            spelling.text += self._known[name]
        elif name in ("#", "?", "$", "!") or (name and self._is_number(name)):
            spelling.unknown(NUMBER)
        else:
            is_name = name[:1].isalpha() or name[:1] == "_"
            if is_name:
                self.variables.add(name)
            spelling.unknown(name if is_name else MADE, loose=not quoted or name == "@")

    def _is_number(self, name: str) -> bool:
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers) < _SUMS and _is_number(name, self._text)
        return self._numbers[name]

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

    def _substitution(self, spelling: Spelling, text: str, *, quoted: bool) -> None:
        """Commands in brackets, whose output takes their place."""
        self._deeper()
        first = len(self.commands)
        self._commands(")")
        self._depth -= 1
        spelling.text += text
        self.feeding.update(range(first, len(self.commands)))
        if not text:
            spelling.unknown(OUTPUT, loose=not quoted)

    def _backticks(self, spelling: Spelling, *, quoted: bool) -> None:
        found = re.compile(r"((?:[^`\\]|\\.)*)`", re.DOTALL).match(self._text, self._at)
        if found is None or self._depth >= DEEPEST:
            raise Unclosed
        self._at = found.end()
        first = len(self.commands)
        self._script(re.sub(r"\\([`\\$])", r"\1", found[1]))
        self.feeding.update(range(first, len(self.commands)))
        spelling.unknown(OUTPUT, loose=not quoted)

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
