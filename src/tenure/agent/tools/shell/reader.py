"""Reads a bash script into the commands it would run, with tree-sitter-bash. Pure.

The grammar is more lenient than bash, so its tree is only trusted as far as it accounts for every character of the script: words that touch are
one word, what stands between two nodes must be blank, and what a node holds must be what bash takes for it. Everything else is `odd`.
The nesting of commands is given up: one in a loop, a branch or a substitution counts as one that runs.
https://www.gnu.org/software/bash/manual/bash.html, sections 3.1 to 3.6; https://github.com/tree-sitter/tree-sitter-bash
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from tenure.agent.tools.shell.script import (
    CLOSE,
    MADE,
    OPEN,
    OUTPUT,
    PROCESS,
    Assignment,
    Command,
    Redirect,
    ShellScript,
    Word,
)
from tenure.agent.tools.shell.words import Odd, Spelling, WordReader
from tenure.extras import not_installed

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST: Final = 100_000  # characters
NESTED: Final = 3_000  # brackets and bars, of which the grammar's time is the square
RUN: Final = 1_000  # of `<`, likewise
DEEPEST: Final = 12  # substitutions within substitutions

# Nodes of which only the children count.
_STRUCTURE: Final = frozenset(
    "program list pipeline command command_name redirected_statement file_redirect heredoc_redirect herestring_redirect compound_statement subshell"
    " do_group if_statement elif_clause else_clause while_statement for_statement negated_command test_command binary_expression unary_expression"
    " parenthesized_expression declaration_command unset_command variable_assignments".split()
)
_ENDS: Final = frozenset("\n ; & && || ;; ;& ;;& ( )".split(" "))
_PIPES: Final = frozenset({"|", "|&"})
_KEYWORDS: Final = frozenset("! if then elif else while until do { fi done } case esac".split())
_BEGINS: Final = frozenset("! if while until { case (".split())
_CLOSERS: Final = frozenset("} fi done esac )".split())
_CASE_ENDS: Final = frozenset(";; ;& ;;&".split())
_NEVER_PROGRAMS: Final = _KEYWORDS | {"for", "select", "function", "[[", "in"}
_REDIRECTS: Final = frozenset("< > >> << <<- <<< <> <& >& >| &> &>> <&- >&-".split())
_APART: Final = _ENDS | _PIPES | _REDIRECTS  # what may touch a keyword
_TESTS: Final = frozenset("= == != ! ]".split())  # signs that are words of `[`
_TOUCHING: Final = frozenset("< > ( ) && || ;".split())  # signs that end a word of `[[`

_GAP: Final = re.compile(r"(?:[ \t\n]|\\\n)*")
_DELIMITER: Final = re.compile(r"""[\w.!%+:@-]+|'[\w.!%+:@ -]+'|"[\w.!%+:@ -]+"|\\\w+""")
_CONTROL: Final = re.compile(f"[\\x00-\\x08\\x0b-\\x1f\\x7f{OPEN}{CLOSE}]")
_BACKTICKS: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)


def parse(text: str, known: Mapping[str, str] | None = None) -> ShellScript:
    """The commands of a script; `known` are variables whose values are settled, such as HOME."""
    if len(text) > LONGEST or text.count("(") + text.count("|") > NESTED or "<" * RUN in text:
        return ShellScript(commands=(), odd=("it is too long to be looked through",))
    reader = _ScriptReader(text, {name: value for name, value in (known or {}).items() if not _is_set(name, text)}, 0)
    odd = ("control characters",) if _CONTROL.search(text) else ()
    if not odd:
        reader.run()
    return ShellScript(
        commands=tuple(structs.replace(each, feeds=n in reader.feeding) for n, each in enumerate(reader.commands)),
        odd=(*odd, *dict.fromkeys(reader.odd)),
        unknown=tuple(dict.fromkeys(reader.unknown)),
        variables=frozenset(reader.variables),
    )


@cache
def _parser() -> "Parser":
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ModuleNotFoundError as error:
        raise not_installed(error) or error from error
    return Parser(Language(tree_sitter_bash.language()))


def _is_set(name: str, text: str) -> bool:
    """Whether a script may change a variable: it names it other than to use it."""
    return re.search(rf"(?<![$\w]){name}\b", text.replace("${" + name + "}", "$")) is not None


class _Token(NamedTuple):
    """A sign, a pattern of a case, or a word (no sign) of as many nodes as touch each other; `joined`: it touches the token before."""

    sign: str
    nodes: "list[Node]"
    joined: bool

    @property
    def kind(self) -> str:
        """Of the first node."""
        return self.nodes[0].type if self.nodes else ""


_LINE_END: Final = _Token("\n", [], joined=False)


class _ScriptReader(WordReader):
    """Goes through a script's tree once. Mutable."""

    def __init__(self, text: str, known: Mapping[str, str], depth: int) -> None:
        super().__init__(text, known, depth)
        self.commands: list[Command] = []
        self.odd: list[str] = []
        self.feeding: set[int] = set()  # commands, by number, whose output goes to others

    def run(self) -> None:
        """Read the whole script. A sign that is not ASCII is part of a word to bash, a wide blank too: so it is to the grammar."""
        root = _parser().parse(re.sub(r"[^\0-\x7f]", ",", self._text).encode()).root_node
        try:
            if root.has_error:
                raise Odd("something that cannot be read")
            self._commands([root], 0, len(self._text))
        except Odd as error:
            self.odd.append(str(error))
        except (IndexError, ValueError):  # a tree of a shape that is not known here
            self.odd.append("something that cannot be read")

    def _tokens(self, nodes: Sequence["Node"], at: int, end: int) -> list[_Token]:
        """Signs and words in their order, every character between `at` and `end` accounted for."""
        tokens: list[_Token] = []
        stack = [(node, False) for node in reversed(nodes)]
        while stack:
            node, in_pattern = stack.pop()
            kind, children = node.type, node.children
            if (kind in ("compound_statement", "test_command") and children[0].type == "((") or kind == "c_style_for_statement":
                self.unknown.append("arithmetic")
                self._inner_commands(node)
                self._gap(tokens, at, node.start_byte)
                at = node.end_byte
                tokens.append(_Token(";", [], joined=False))
            elif kind in _STRUCTURE:
                stack += [(child, False) for child in reversed(children)]
            elif kind == "function_definition":  # its body counts as run, and so does whatever calls it
                self.unknown.append("a function")
                self._gap(tokens, at, node.start_byte)
                body = node.child_by_field_name("body")
                at = body.start_byte if body else node.end_byte
                tokens.append(_LINE_END)
                stack += [(child, False) for child in reversed(children) if child.start_byte >= at]
            elif kind in ("case_statement", "case_item"):
                closing = next((n for n, child in enumerate(children) if child.type in ("in", ")")), 0)
                first = 0 if kind == "case_item" else 1
                stack += [(child, first <= n <= closing) for n, child in enumerate(children)][::-1]
            elif kind == "comment":
                self._gap(tokens, at, node.start_byte)
                if node.start_byte and self._text[node.start_byte - 1] not in " \t\n;&|()":
                    raise Odd("something that is no comment")
                at = node.end_byte
            elif kind == "heredoc_end":
                at = node.end_byte
                tokens.append(_LINE_END)
            elif kind != "heredoc_body":
                joined = not self._gap(tokens, at, node.start_byte)
                at = node.end_byte
                sign = "pattern" if in_pattern else "" if node.is_named else kind
                around = self._text[node.start_byte - 1] + self._text[at : at + 1]
                if in_pattern and kind == "in" and around.strip(" \t\n"):
                    raise Odd("a case")
                if sign and not in_pattern and self._of(node) != kind:
                    raise Odd("something that is no word")
                if joined and not sign and tokens and not tokens[-1].sign:
                    tokens[-1].nodes.append(node)
                else:
                    tokens.append(_Token(sign, [node], joined))
        self._gap(tokens, at, end)
        return tokens

    def _gap(self, tokens: list[_Token], start: int, end: int) -> bool:
        """What stands between two nodes: blanks only, and whether it is any. A line's end is a token."""
        gap = self._text[start:end]
        if not _GAP.fullmatch(gap):
            raise Odd("something that is no word")
        blanks = gap.replace("\\\n", "")
        if gap and not blanks:
            raise Odd("a line that goes on within a word")
        if "\n" in blanks:
            tokens.append(_LINE_END)
        return bool(blanks)

    def _commands(self, nodes: Sequence["Node"], at: int, end: int) -> None:
        """Note the commands below some nodes, which take up the script from `at` to `end`."""
        tokens = [*self._tokens(nodes, at, end), _LINE_END]
        draft = _OpenCommand()
        closes = False  # whether what comes last is the end of several commands
        is_closed = False  # whether a compound command has ended, and only redirections may follow
        place = 0
        while place < len(tokens):
            token = tokens[place]
            sign = token.sign
            is_structural = sign in _ENDS or sign in _KEYWORDS or sign in _PIPES
            is_redirect = sign in _REDIRECTS or token.kind == "file_descriptor"
            if is_closed and sign != "pattern" and not is_redirect and (not is_structural or sign in _BEGINS):
                raise Odd("something behind the end of a command")
            is_closed = sign in _CLOSERS if is_structural else is_closed
            if sign == "pattern":
                if token.nodes[0].is_named:
                    self._word(token.nodes)
            elif draft.test == "[[":
                self._condition(tokens, place, draft)
                is_closed = not draft.test
            elif sign == "":
                self._operand(tokens, place, draft)
            elif draft.test:
                if sign not in _TESTS or token.joined:
                    raise Odd("a sign in a test")
                draft.words.append(Word(text=sign))
                draft.test = "" if sign == "]" else draft.test
            elif sign in _REDIRECTS:
                place += self._redirect(tokens, place, draft)
            elif sign == "(" and draft.is_begun:
                raise Odd("a bracket behind a word")
            elif sign in _CASE_ENDS and not any(node.parent and node.parent.type == "case_item" for node in token.nodes):
                raise Odd("the end of a case that never began")
            elif sign in _ENDS or sign in _PIPES:
                closes = self._end(draft) if sign != "\n" or draft.is_begun else closes
                closes = closes or sign in "()"
                if sign in _PIPES or sign == "||":
                    self.feeding.update(range(0 if closes else len(self.commands) - 1, len(self.commands)))
                draft = _OpenCommand()
            elif sign in _KEYWORDS:
                if draft.words or draft.assignments or _touches(tokens, place):
                    raise Odd("a keyword behind a word")
                if draft.redirects:
                    self._end(draft)
                    draft = _OpenCommand()
            elif sign in ("((", "))", "`", "$", "$(") or _touches(tokens, place):
                raise Odd("something that is no word")
            else:  # `for`, `in`, `[`, `export` and the like
                draft.words.append(Word(text=sign))
                draft.test = sign if sign in ("[", "[[") else ""
            place += 1

    def _end(self, draft: "_OpenCommand") -> bool:
        """Note a command; whether it is none of its own, but the end of several."""
        if any(redirect.target.text == PROCESS for redirect in draft.redirects):
            self.feeding.update(range(len(self.commands) + 1))
        if draft.is_begun:
            self.commands.append(
                Command(words=tuple(draft.words), assignments=tuple(draft.assignments), redirects=tuple(draft.redirects))
            )
        return not draft.words

    def _operand(self, tokens: Sequence[_Token], place: int, draft: "_OpenCommand") -> None:
        """Take a word: an assignment, a number before a redirection, or a word of the command."""
        token, after = tokens[place], tokens[place + 1]
        if token.kind == "file_descriptor":
            is_alone = len(token.nodes) == 1 and self._of(token.nodes[0]).isdigit()
            if not (is_alone and after.joined and after.sign in _REDIRECTS):
                raise Odd("a number that is no descriptor")
        elif token.kind == "variable_assignment" and not draft.words:
            if len(token.nodes) > 1 or (after.joined and after.sign not in _APART - {"|&"}):
                raise Odd("a value that goes on")
            draft.assignments.append(self._assignment(token.nodes[0]))
        elif (word := self._whole_word(token, after)) is None:
            pass
        elif not draft.words and word.text == "coproc":
            self.unknown.append("a command in the background that others speak to")
        elif not draft.words and word.plain and not word.quoted and word.text in _NEVER_PROGRAMS:
            raise Odd("a keyword where none can stand")
        else:
            draft.words.append(word)

    def _whole_word(self, token: _Token, after: _Token) -> Word | None:
        """A word before another token; None for a number or a name that is a descriptor."""
        word = self._word(token.nodes)
        if after.joined and (after.sign in "({[" or after.sign in _KEYWORDS):
            raise Odd("a bracket behind a word")
        if not (after.joined and after.sign in _REDIRECTS and re.fullmatch(r"\d+|\{\w+\}", word.text)):
            return word
        if after.sign.startswith("&") or word.quoted:
            raise Odd("a descriptor that was not read as one")
        return None

    def _condition(self, tokens: Sequence[_Token], place: int, draft: "_OpenCommand") -> None:
        """Take the next of the words of `[[ … ]]`, in which signs are words."""
        sign, nodes, joined = tokens[place]
        if sign == "":
            draft.words.append(self._word(nodes))
            return
        if place + 1 == len(tokens):
            raise Odd("something in it is never closed")
        after = tokens[place + 1]
        if sign not in _TOUCHING and (
            (joined and tokens[place - 1].sign not in _TOUCHING) or (after.joined and after.sign not in (*_TOUCHING, *_ENDS, "|"))
        ):
            raise Odd("a sign in a test")
        if sign == "]]":
            draft.test = ""
        elif sign != "\n":
            draft.words += [Word(text=each) for each in (sign if sign in ("&&", "||") else (sign,))]

    def _redirect(self, tokens: Sequence[_Token], place: int, draft: "_OpenCommand") -> int:
        """Take a redirection; how many further tokens are its target."""
        sign, nodes, _ = tokens[place]
        target = tokens[place + 1]
        if sign.endswith("&-"):
            draft.redirects.append(Redirect(sign=sign[:2], target=Word(text="-")))
            if target.joined and not target.sign:
                raise Odd("a descriptor that was not read as one")
            return 0
        if sign in ("<<", "<<-"):
            draft.redirects.append(self._document(nodes[0], sign))
            return 1
        if target.sign or target.kind in ("file_descriptor", "variable_assignment"):
            raise Odd("something that is no word")
        word = self._whole_word(target, tokens[place + 2]) or Word(text="")
        draft.redirects.append(Redirect(sign=sign, target=word))
        return 1

    def _document(self, sign_node: "Node", sign: str) -> Redirect:
        """A here-document: its body where nothing in it is expanded; what it runs is noted."""
        parent = sign_node.parent
        assert parent is not None
        parts = {child.type: child for child in parent.children}
        start, body, end = parts.get("heredoc_start"), parts.get("heredoc_body"), parts.get("heredoc_end")
        if start is None or end is None or not _DELIMITER.fullmatch(raw := self._of(start)):
            raise Odd("a here-document")
        quoted = raw[:1] in "'\"\\"
        delimiter = raw.strip("'\"").removeprefix("\\")
        line_end = self._text.find("\n", start.end_byte)
        rest = self._text[start.end_byte : line_end]
        first = line_end + 1
        last = self._text.rfind("\n", 0, end.start_byte) + 1
        indent = "\t" if sign == "<<-" else "\0"
        lines = [line.lstrip(indent) for line in self._text[first:last].split("\n")[:-1]]
        closing = self._text[last:].partition("\n")[0]
        if (
            line_end < 0
            or self._text[sign_node.end_byte : start.start_byte].strip(" \t")
            or self._text[start.end_byte] not in " \t\n;&|<>)"
            or last < first
            or "<<" in rest
            or "\\" in rest
            or any(rest.count(each) % 2 for each in "\"'`")
            or rest.count("(") != rest.count(")") != 0
            or (body is not None and body.start_byte < first)
            or any(child.end_byte > line_end for child in parent.children if child not in (body, end))
            or closing.lstrip(indent) != delimiter
            or self._of(end).strip() != delimiter
            or delimiter in lines
            or (not quoted and any((len(line) - len(line.rstrip("\\"))) % 2 for line in lines))
        ):
            raise Odd("a here-document")
        text = "\n".join(lines)
        target = Word(text=delimiter, quoted=quoted)
        if quoted or not ("$" in text or "`" in text):
            return Redirect(sign=sign, target=target, body=text)
        self._mixed(Spelling(first), body.children if body else [], first, last, quote="")
        return Redirect(sign=sign, target=target)

    def _assignment(self, node: "Node") -> Assignment:
        name, sign, *value = node.children
        if name.type != "variable_name" or len(value) > 1 or (value and value[0].start_byte != sign.end_byte):
            raise Odd("a variable that is no name")
        values: list[Word] = []
        if value and value[0].type == "array":
            for token in self._tokens(value[0].children[1:-1], value[0].start_byte + 1, value[0].end_byte - 1):
                if token.sign == "\n":
                    continue
                if token.sign or len(token.nodes) > 1 or (token.joined and values):
                    raise Odd("a list")
                values.append(self._word(token.nodes))
                if self._of(token.nodes[0]).startswith("[") and "=" in values[-1].text:  # a subscript is worked out
                    self.unknown.append("a list with subscripts")
            word = Word(text=" ".join(word.text for word in values), plain=False)
        else:
            if not value:
                self.unknown.append("a variable without a value")
            word = self._word(value, sign.end_byte)
        if self._of(sign) == "+=":
            values = [*(values or [word]), Word(text="*", plain=False, template=f"{OPEN}{MADE}{CLOSE}")]
        return Assignment(name=self._of(name), value=word, values=tuple(values))

    def _substitution(self, spelling: Spelling, node: "Node", text: str, *, quoted: bool) -> None:
        """Commands in brackets or backticks, whose output takes their place."""
        if self._depth >= DEEPEST:
            raise Odd("too many expansions in each other")
        is_process = node.type == "process_substitution"
        if is_process and (quoted or node.start_byte != spelling.start):
            raise Odd("a bracket behind a word")
        self._depth += 1
        first = len(self.commands)
        if text.startswith("`"):
            ticks = _BACKTICKS.fullmatch(text)
            if ticks is None:
                raise Odd("something in it is never closed")
            self._inner(re.sub(r"\\([`\\$])", r"\1", ticks[1]))
        else:
            if text.startswith("$(("):
                self.unknown.append("arithmetic")
            self._commands(node.children[1:-1], node.children[0].end_byte, node.end_byte - 1)
        self._depth -= 1
        self.feeding.update(range(first, len(self.commands)))
        if is_process:
            spelling.text += PROCESS
        else:
            spelling.unknown(OUTPUT, loose=not quoted)

    def _inner(self, text: str) -> None:
        inner = _ScriptReader(text, self._known, self._depth)
        inner.commands, inner.odd, inner.unknown, inner.variables = self.commands, self.odd, self.unknown, self.variables
        inner.feeding = self.feeding
        inner.run()

    def _inner_commands(self, node: "Node") -> None:
        """Note the commands in what can only be told when it runs."""
        first = len(self.commands)
        stack = list(node.children)
        while stack:
            each = stack.pop()
            if each.type in ("command_substitution", "process_substitution"):
                self._substitution(Spelling(each.start_byte), each, self._of(each), quoted=False)
            else:
                stack += each.children
        if len(self.commands) == first and re.search(r"`|[$<>]\(", self._of(node)):
            raise Odd("a command in an expansion that cannot be read")


def _touches(tokens: Sequence[_Token], place: int) -> bool:
    """Whether a keyword is not a word of its own."""
    token, after = tokens[place], [each for each in tokens[place + 1 : place + 2] if each.joined]
    before = tokens[place - 1 : place] if token.joined else ()
    return any(each.sign not in _APART for each in [*before, *after]) or (token.sign in ("{", "!") and bool(after))


class _OpenCommand:
    """A command that is being read. Mutable."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.assignments: list[Assignment] = []
        self.redirects: list[Redirect] = []
        self.test = ""  # `[` or `[[`, as long as it is open

    @property
    def is_begun(self) -> bool:
        """Whether there is any of it."""
        return bool(self.words or self.assignments or self.redirects)
