"""Reads a bash script into the commands it would run. Pure.

The nesting of commands is given up: one in a loop, a branch or a substitution counts as one that runs.
https://www.gnu.org/software/bash/manual/bash.html, sections 3.1 to 3.6.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import structs

from tenure.agent.tools.shell.script import Assignment, Command, Redirect, Script, Word
from tenure.agent.tools.shell.words import CLOSE, MADE, OPEN, PROCESS, Spelling, Unclosed, Words

LONGEST: Final = 100_000  # characters
_OPENERS: Final = frozenset({"!", "if", "then", "elif", "else", "while", "until", "do", "{", "fi", "done", "}", "coproc"})
_REDIRECT: Final = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|(&>>|&>)")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(\+)?=")
_DELIMITER: Final = re.compile(r"""[\w.!%+:@-]+|'[\w.!%+:@ -]+'|"[\w.!%+:@ -]+"|\\\w+""")
_FUNCTION: Final = re.compile(r"[ \t]*\([ \t]*\)")
_CONTROL: Final = re.compile(f"[\\x00-\\x08\\x0b-\\x1f\\x7f{OPEN}{CLOSE}]")


def parsed(text: str, known: Mapping[str, str] | None = None) -> Script:
    """The commands of a script; `known` are variables whose values are settled, such as HOME."""
    if len(text) > LONGEST:
        return Script(commands=(), odd=("it is too long to be looked through",))
    parser = _Parser(text, {name: value for name, value in (known or {}).items() if not _is_set(name, text)}, 0)
    parser.run("")
    odd = ("control characters",) if _CONTROL.search(text) else ()
    return Script(
        commands=tuple(structs.replace(each, feeds=n in parser.feeding) for n, each in enumerate(parser.commands)),
        odd=(*odd, *dict.fromkeys(parser.odd)),
        unknown=tuple(dict.fromkeys(parser.unknown)),
        variables=frozenset(parser.variables),
    )


def _is_set(name: str, text: str) -> bool:
    """Whether a script may change a variable: it names it other than to use it."""
    return re.search(rf"(?<![$\w]){name}\b", text.replace("${" + name + "}", "$")) is not None


class _Parser(Words):
    """Goes through a text once. Mutable."""

    def __init__(self, text: str, known: Mapping[str, str], depth: int) -> None:
        super().__init__(text, known, depth)
        self._cases = 0  # that are open
        self._closes = False  # whether what comes last is the end of several commands
        self._after = 0  # where the here-documents of this line end

    def run(self, end: str) -> None:
        """Read commands up to `end`; up to the end of the text when it is empty."""
        try:
            self._commands(end)
        except Unclosed:
            self.odd.append("something in it is never closed")

    def expand(self) -> None:
        """Read a text in which only expansions count: the body of a here-document."""
        try:
            self._quoted(Spelling(), "")
        except Unclosed:
            self.odd.append("something in it is never closed")

    def _commands(self, end: str) -> None:
        brackets = 0
        while True:
            self._skip_blanks()
            sign = self._text[self._at : self._at + 1]
            if not sign:
                if end or brackets:
                    raise Unclosed
                return
            if sign == end and not brackets:
                self._at += 1
                return
            if sign == "\n":
                self._at = max(self._at + 1, self._after)
            elif sign in "()":
                self._bracket(sign)
                brackets += 1 if sign == "(" else -1
                if brackets < 0:
                    raise Unclosed
            elif sign in ";&|" and not self._text.startswith("&>", self._at):
                self._separator()
            else:
                self._command()

    def _separator(self) -> None:
        """Go behind what ends a command; behind what ends a case's branch, its next patterns too."""
        if self._text.startswith("|", self._at) and not self._text.startswith("||", self._at):
            count = len(self.commands)
            self.feeding.update(range(0 if self._closes else count - 1, count))
        ends = next((each for each in (";;&", ";;", ";&") if self._text.startswith(each, self._at)), "")
        self._at += len(ends) or 1
        if ends and self._cases:
            self._patterns()
        elif ends:
            self.odd.append("the end of a case that never began")

    def _patterns(self) -> None:
        """The patterns of a case's branch, or its end."""
        while self._skip_blanks() == "\n":
            self._at = max(self._at + 1, self._after)
        if self._text.startswith("(", self._at):
            self._at += 1
        while sign := self._skip_blanks():
            if sign in ")|":
                self._at += 1
                if sign == ")":
                    return
                continue
            word = self._word()
            if word.text == "esac" and word.plain and not word.quoted:
                self._cases -= 1
                return
        raise Unclosed

    def _case(self) -> None:
        """`case WORD in`, up to its first branch."""
        self._skip_blanks()
        self._word()
        while self._skip_blanks() == "\n":
            self._at += 1
        if self._word().text != "in":
            self.odd.append("a case")
        self._cases += 1
        self._patterns()

    def _bracket(self, sign: str) -> None:
        self._at += 1
        self._closes = True
        if sign == "(" and self._text.startswith("(", self._at):
            self.unknown.append("arithmetic")

    def _command(self) -> None:
        """One simple command, keywords before it left out."""
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        while (sign := self._skip_blanks()) and (sign not in "\n;&|()" or self._text.startswith("&>", self._at)):
            if found := _REDIRECT.match(self._text, self._at):
                self._at = found.end()
                redirects.append(self._redirect(found[1] or found[2]))
            elif not words and (found := _ASSIGNMENT.match(self._text, self._at)):
                self._at = found.end()
                values: list[Word] = []
                value = self._value(values)
                if found[2]:
                    values = [*(values or [value]), Word(text="*", plain=False, template=f"{OPEN}{MADE}{CLOSE}")]
                assignments.append(Assignment(name=found[1], value=value, values=tuple(values)))
            else:
                word = self._word()
                keyword = "" if words or word.quoted or not word.plain else word.text
                function = _FUNCTION.match(self._text, self._at) if not words else None
                if keyword == "function" or function:  # its body counts as run, and so does whatever calls it
                    self._named(word, function)
                elif keyword == "case":
                    self._case()
                elif keyword == "esac" and self._cases:
                    self._cases -= 1
                elif keyword == "[[":
                    words += [word, *self._condition()]
                elif keyword not in _OPENERS:
                    words.append(word)
                elif keyword == "coproc":
                    self.unknown.append("a command in the background that others speak to")
        if self._text.startswith("(", self._at) and words:
            self.odd.append("a bracket behind a word")
        self._closes = not words
        if any(redirect.target.text == PROCESS for redirect in redirects):
            self.feeding.update(range(len(self.commands) + 1))
        if words or assignments or redirects:
            self.commands.append(Command(words=tuple(words), assignments=tuple(assignments), redirects=tuple(redirects)))

    def _named(self, word: Word, function: "re.Match[str] | None") -> None:
        """A function's name: `name ()` or `function name`. It may take the place of a program, or call itself for ever."""
        self.unknown.append("a function")
        if function is None:
            self._skip_blanks()
            word = self._word()
            function = _FUNCTION.match(self._text, self._at)
        if not word.plain:
            self.odd.append("a function without a name")
        self._at = function.end() if function else self._at

    def _value(self, values: list[Word]) -> Word:
        """What a variable is set to: a word, or a list of them in brackets, which go to `values`."""
        if not self._text.startswith("(", self._at):
            return self._word()
        self._at += 1
        while (sign := self._skip_blanks()) != ")":
            if not sign:
                raise Unclosed
            if sign == "\n":
                self._at += 1
            else:
                values.append(self._word())
                if sign == "[" and "=" in values[-1].text:  # a subscript is worked out
                    self.unknown.append("a list with subscripts")
        self._at += 1
        return Word(text=" ".join(word.text for word in values), plain=False)

    def _condition(self) -> list[Word]:
        """The words of `[[ … ]]`, in which signs are words."""
        words: list[Word] = []
        while True:
            while self._skip_blanks() == "\n":
                self._at += 1
            sign = self._text[self._at : self._at + 1]
            if not sign:
                raise Unclosed
            if sign in "<>()&|;":
                words.append(Word(text=sign))
                self._at += 1
                continue
            word = self._word()
            if word.text == "]]" and not word.quoted:
                return words
            words.append(word)

    def _redirect(self, sign: str) -> Redirect:
        self._skip_blanks()
        start = self._at
        target = self._word()
        if sign in ("<<", "<<-") and not _DELIMITER.fullmatch(self._text[start : self._at]):
            self.odd.append("a here-document")
        if sign not in ("<<", "<<-"):
            return Redirect(sign=sign, target=target)
        return Redirect(sign=sign, target=target, body=self._document(target, strip=sign == "<<-"))

    def _document(self, delimiter: Word, *, strip: bool) -> str | None:
        """The body of a here-document, None when something in it is expanded; what it runs is noted."""
        line_end = self._text.find("\n", self._at)
        rest = self._text[self._at : line_end]
        if (
            line_end < 0
            or "\\" in rest
            or any(rest.count(sign) % 2 for sign in "\"'`")
            or rest.count("(") != rest.count(")") != 0
        ):
            self.odd.append("a here-document")
        start = max(line_end + 1, self._after)
        lines: list[str] = []
        joined = ""  # lines that end with a backslash go on in the next, that of the delimiter too
        at = start
        while at < len(self._text):
            end = self._text.find("\n", at)
            end = len(self._text) if end < 0 else end
            line = self._text[at:end]
            at = end + 1
            if not delimiter.quoted and (len(line) - len(line.rstrip("\\"))) % 2:
                joined = f"{joined}{line[:-1]}"
                continue
            line, joined = joined + line, ""
            if strip:
                line = line.lstrip("\t")
            if line == delimiter.text:
                break
            lines.append(line)
        else:
            self.odd.append("a here-document that never ends")
        self._after = min(at, len(self._text))
        body = "\n".join(lines)
        if delimiter.quoted or not ("$" in body or "`" in body):
            return body
        self._inner(body).expand()
        return None

    def _script(self, text: str) -> None:
        self._inner(text).run("")

    def _inner(self, text: str) -> "_Parser":
        """A reader of another text, whose finds are this one's."""
        inner = _Parser(text, self._known, self._depth + 1)
        inner.commands, inner.odd, inner.unknown, inner.variables = self.commands, self.odd, self.unknown, self.variables
        inner.feeding = self.feeding
        return inner
