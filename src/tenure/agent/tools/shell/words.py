"""Reads the words of a bash script off the nodes of its tree: quotes, expansions, braces. Pure.

A sign that bash would take for more than a letter, where the tree has letters, is `Odd`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tenure.agent.tools.shell.script import CLOSE, MADE, NUMBER, OPEN, Word

if TYPE_CHECKING:
    from tree_sitter import Node

_SUMS: Final = 50
_EXPANSIONS: Final = frozenset(
    "simple_expansion expansion arithmetic_expansion command_substitution process_substitution".split()
)
_PARAMETER: Final = re.compile(
    r"\{(?:(?P<name>[A-Za-z_]\w*)(?P<index>\[[@*\d]\])?|#[A-Za-z_]\w*(?:\[[@*\d]\])?|(?P<special>[0-9@*#?$!_-])"
    r"|(?P<part>[A-Za-z_]\w*)(?:(?::?[-+?]|%%?|##?|//?|\^\^?|,,?)[^$`@\"'\\{}<>\n]*|:[-\d ]+(?::[-\d ]+)?))\}"
)
_NAME: Final = re.compile(r"([A-Za-z_]\w*)|[0-9@*#?$!_-]")
_SUM: Final = re.compile(r"\$\(\([\w\s+\-*/%<>=!&|^~?:,()]*?\)\)")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")
_STARTS_EXPANSION: Final = re.compile(r"[\w@*#?$!({\[-]")
# What is quoted may be anything; what is substituted counts as one.
_BRACE: Final = re.compile(
    r"""\{(?:[^ \t\n;|&<>()'"\\`$,.]|'[^']*'|"(?:[^"\\`$]|\\.)*"|\\.|\.(?!\.)|\$(?![({]))*+(?:,|\.\.|["`(]|\$[({])""", re.DOTALL
)
_ANSI: Final = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_UNKNOWN: Final = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


class Odd(Exception):
    """The tree is not what bash would read."""


def _is_number(name: str, text: str) -> bool:
    """Whether a variable is a number wherever a script sets it: in a sum, any other value could run a command."""
    values = re.findall(rf"(?<![\w$]){name}\+?=(-?\d+(?![^\s;&|)])|\$\(\([^()]*\)\)(?![^\s;&|)])|)", text)
    named = len(re.findall(rf"(?<![\w${{]){name}\b(?![^()]*\)\))", text))
    return bool(values) and len(values) == named and all(values) and not re.search(rf"\{{{name}:?=", text)


class Spelling:
    """A word that is being read. Mutable."""

    def __init__(self, start: int) -> None:
        self.text = ""
        self.plain = True
        self.glob = self.quoted = self.loose = False
        self.brace = -1  # where alternatives begin
        self.start = start  # in the script
        self.has_literal_brace = False  # then none of its later braces begins alternatives either

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


class WordReader(ABC):
    """Reads words; the commands in them are its heirs'. Mutable."""

    def __init__(self, text: str, known: Mapping[str, str], depth: int) -> None:
        """`known` are variables whose values are settled; `depth` is how many substitutions it stands in."""
        self.unknown: list[str] = []
        self.variables: set[str] = set()  # whose values are used
        self._text, self._known = text, known
        self._depth: int = depth
        self._sums = 0
        self._numbers: dict[str, bool] = {}

    @abstractmethod
    def _substitution(self, spelling: Spelling, node: "Node", text: str, *, quoted: bool) -> None:
        """Commands in brackets or backticks, whose output takes their place."""

    @abstractmethod
    def _inner_commands(self, node: "Node") -> None:
        """Note the commands in what can only be told when it runs."""

    def _of(self, node: "Node") -> str:
        return self._text[node.start_byte : node.end_byte]

    def _start(self, node: "Node") -> int:
        """Where an expansion begins: in quotes, the grammar counts blanks before it to it."""
        text = self._of(node)
        return node.start_byte + len(text) - len(text.lstrip(" \t\n"))

    def _word(self, nodes: Sequence["Node"], start: int = 0) -> Word:
        spelling = Spelling(nodes[0].start_byte if nodes else start)
        for node in nodes:
            self._spell(spelling, node)
        return spelling.word()

    def _spell(self, spelling: Spelling, node: "Node") -> None:
        text, kind, start, end = self._of(node), node.type, node.start_byte, node.end_byte
        if kind in _EXPANSIONS:
            self._expansion(spelling, node, quoted=False)
        elif kind == "concatenation":
            for child in node.children:
                if child.start_byte != start:
                    raise Odd("a word with a blank")
                self._spell(spelling, child)
                start = child.end_byte
        elif kind == "variable_assignment":
            name, sign, *value = node.children
            if name.type != "variable_name" or any(each.start_byte != sign.end_byte or each.type == "array" for each in value):
                raise Odd("a bracket behind a word")
            self._literal(spelling, start, sign.end_byte)
            for each in value:
                self._spell(spelling, each)
        elif kind in ("string", "translated_string"):
            inner = node if kind == "string" else node.children[-1]
            self._mixed(spelling, inner.children[1:-1], inner.start_byte + 1, end - 1, quote='"')
        elif kind == "raw_string" and re.fullmatch(r"'[^']*'", text):
            spelling.text += text[1:-1]
            spelling.quoted = True
        elif kind == "ansi_c_string" and (ansi := _ANSI.fullmatch(text)):
            spelling.quoted = True
            for part in re.findall(r"\\.|[^\\]+", ansi[1], re.DOTALL):
                if part.startswith("\\") and part[1] not in _ESCAPES:
                    spelling.unknown()
                else:
                    spelling.text += _ESCAPES[part[1]] if part.startswith("\\") else part
        else:
            self._literal(spelling, start, end)

    def _literal(self, spelling: Spelling, at: int, end: int) -> None:
        """What is not quoted. Raises Odd for signs that bash would take for more than letters."""
        while at < end:
            sign, following = self._text[at], self._text[at + 1 : at + 2]
            at += 1
            if sign == "\\":
                if following != "\n":
                    spelling.text += following
                    spelling.quoted = True
                at += 1
                continue
            if (
                sign in " \t\n;&|()<>'\"`"
                or (sign == "#" and at - 1 == spelling.start)
                or (sign == "$" and (_STARTS_EXPANSION.match(following) or following in ("'", '"', "`")))
            ):
                raise Odd("something that is no word")
            if sign == "~" and at - 1 == spelling.start:
                self._tilde(spelling, following)
                continue
            if sign == "{" and self._is_brace(spelling, at):
                spelling.brace = len(spelling.text) if spelling.brace < 0 else spelling.brace
            spelling.glob = spelling.glob or sign in "*?["
            spelling.text += sign
        if at > end:
            raise Odd("a word that goes on")

    def _is_brace(self, spelling: Spelling, at: int) -> bool:
        """Whether alternatives begin here; if not at one brace of a word, then not at a later one either."""
        if spelling.has_literal_brace or self._text.startswith("}", at):
            return False
        is_brace = _BRACE.match(self._text, at - 1) is not None
        spelling.has_literal_brace = not is_brace
        return is_brace

    def _tilde(self, spelling: Spelling, following: str) -> None:
        if "HOME" in self._known and (not following or following in " \t\n;&|()<>/"):
            spelling.text += self._known["HOME"]
        else:
            spelling.unknown()

    def _mixed(self, spelling: Spelling, nodes: Sequence["Node"], at: int, end: int, *, quote: str) -> None:
        """What stands in double quotes, or in a here-document: expansions, and between them text."""
        spelling.quoted = True
        for node in [*(each for each in nodes if each.type in _EXPANSIONS), None]:
            until = end if node is None else self._start(node)
            while at < until:
                sign, following = self._text[at], self._text[at + 1 : at + 2]
                at += 1
                if sign == "\\":
                    spelling.text += "" if following == "\n" else following if following in '$`"\\' else sign + following
                    at += 1
                elif sign == "`" or sign == quote or (sign == "$" and _STARTS_EXPANSION.match(following)):
                    raise Odd("something that is no text")
                else:
                    spelling.text += sign
            if at != until:
                raise Odd("a text that goes on")
            if node is not None:
                self._expansion(spelling, node, quoted=True)
                at = node.end_byte

    def _expansion(self, spelling: Spelling, node: "Node", *, quoted: bool) -> None:
        text = self._text[self._start(node) if quoted else node.start_byte : node.end_byte]
        match node.type:
            case "simple_expansion":
                found = _NAME.fullmatch(text, 1)
                if found is None or (found[1] and re.match(r"\w", self._text[node.end_byte : node.end_byte + 1])):
                    raise Odd("something that is no variable")
                self._variable(spelling, found[1] or found[0], quoted=quoted)
            case "expansion":
                self._parameter(spelling, node, text, quoted=quoted)
            case "arithmetic_expansion":
                self._sums += 1
                if not _SUM.fullmatch(text):
                    self.unknown.append("arithmetic")
                    self._inner_commands(node)
                elif self._sums > _SUMS or not all(map(self._is_number, _VARIABLE.findall(text))):
                    self.unknown.append("a sum of what is not known")
                spelling.unknown(NUMBER)
            case _:
                self._substitution(spelling, node, text, quoted=quoted)

    def _parameter(self, spelling: Spelling, node: "Node", text: str, *, quoted: bool) -> None:
        found = _PARAMETER.fullmatch(text, 1)
        if found is None:
            self.unknown.append("an expansion ${…}")
            self._inner_commands(node)
            spelling.unknown(loose=True)
            return
        name, index = found["name"] or "", found["index"] or ""
        if found["part"] or index not in ("", "[0]", "[@]", "[*]"):  # a part of its value, or another one
            self.variables.add(found["part"] or name)
            self._variable(spelling, "", quoted=quoted)
        elif index:
            self.variables.add(name)
            spelling.unknown(name, loose=True)
        else:
            self._variable(spelling, name or found["special"] or "", quoted=quoted)

    def _variable(self, spelling: Spelling, name: str, *, quoted: bool) -> None:
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
