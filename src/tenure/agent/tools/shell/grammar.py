"""Command lines that are known to only look: each program's options, as tables. Pure.

A grammar lists what is known; an option that is not in it, a shortened one, or a value where there should be none is not free. In a table:

    -abc  letters without a value        --name   an option without a value
    -n:   a letter with a value          --name=  with a value, in the same word or the next
    -n@   with a file that is read       --name=@ likewise
    -n?   with a value in the same word  --name=? likewise
    -#    a number for a letter: -20

and of the words that are no options: READ files whose content is shown, NAME files of which only the names are, TEXT anything else, at
most as many as a number before it says. PATTERN: the first is a text, unless one of the options with `!` behind them is given. DEEP=-r,-R:
with these all that is below a folder is read, always if there is no name; FOLLOWS=-R: links in it too; HIDES: but what is hidden. ANY: none of the program's options does anything but look, or reads a file or a folder, so that a
word which is only known when it runs may be one, if no option comes behind it. LISTS: it prints names of files; PASSES: it prints what comes in, or nothing; TELLS=-l,--format: with these it prints other text.
For programs that read options in their own way: LAST: a letter's value is the next word, never the rest of its own; ALONE: a word has one letter.
RESPONSES: a word that begins with `@` names a file with further words.

The value of a long option may stand in the next word only if that does not look like an option.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from tenure.agent.tools.shell.effects import Asks, Effect, Effects, Expects, Prints, Reads
from tenure.agent.tools.shell.script import Word

_OPTION: Final = re.compile(r"(-[\w#.]+|--[\w-]+)(?:=([@?])?|([:@?]))?(!)?")
_MARKS: Final = frozenset({"READ", "NAME", "TEXT", "PATTERN", "ANY", "LISTS", "PASSES", "LAST", "ALONE", "RESPONSES", "HIDES"})
_NUMBER: Final = re.compile(r"-\d+")
_SIMPLE: Final = re.compile(r"[\w.*?-]+")  # a pattern that means the same to every program
_WIDENS: Final = {"--iglob", "--type-add", "--glob-case-insensitive"}  # with these rg searches other files than with `--glob`
_OPTION_LIKE: Final = re.compile(r"-\D.*", re.DOTALL)
_HERE: Final = Word(text=".")


class Grammar(Struct, frozen=True, kw_only=True):
    """The options and operands with which a program only looks. Of options: "" has no value, ":" a text, "@" a file, "?" one in the same word."""

    options: Mapping[str, str]
    marks: frozenset[str]
    instead: frozenset[str] = frozenset()  # options that stand for the pattern
    most: int | None = None  # operands
    deep: frozenset[str] = frozenset()  # options that read folders; "" when it always does
    follows: frozenset[str] = frozenset()  # options with which it follows links in them; "" likewise
    tells: frozenset[str] = frozenset()  # options with which it prints other text

    def effects(self, program: str, words: Sequence[Word]) -> Effects:
        """What the program does with these words: `Asks` when they are not known to be only a look."""
        line, marks = CommandLine(self, words), self.marks
        given = line.given.keys()
        if "RESPONSES" in marks and any(word.text[:1] == "@" or (not word.plain and word.text[:1] in "*?[") for word in words):
            return (Asks(reason=f"`{program}` may read options from a file"),)
        if line.unknown:
            return (Asks(reason=f"`{program}` is not known to only look with {line.unknown}"),)
        operands = line.operands
        needed = line.needed
        if "PATTERN" in marks and operands and not self.instead & given:
            needed = [*needed, *([operands[0]] if operands[0].may_vanish else [])]
            operands = [*operands[1:], *([operands[0]] if operands[0].loose else [])]
        if self.most is not None and (len(operands) > self.most or any(word.loose or word.glob for word in operands)):
            return (Asks(reason=f"`{program}` is not known to only look with so many words"),)
        deep = bool(self.deep & {"", *given})
        effects: list[Effect] = [
            Expects(target=word) for word in (line.doubtful[: line.early] if "ANY" in marks else line.doubtful)
        ]
        effects += [Expects(target=word, needed=True) for word in needed]
        if "TEXT" not in marks:
            named = (
                operands
                if not deep or "READ" not in marks or not all(word.may_vanish for word in operands)
                else [*operands, _HERE]
            )
            effects += [self._reads(word, line, deep=deep) for word in named]
        effects += [Reads(target=word) for word in line.files]
        passes = "PASSES" in marks and not any(isinstance(effect, Reads) for effect in effects)
        if "TEXT" in marks and any("/" in word.text for word in operands):
            passes = False  # it may print a path that stands here
        lists = "LISTS" in marks
        return (*effects, Prints(names=lists)) if (lists or passes) and not self.tells & given else tuple(effects)

    def _reads(self, word: Word, line: "CommandLine", *, deep: bool) -> Reads:
        given = line.given.keys()
        globs = line.values("--include", "-g", "--glob")
        simple = deep and all(value.plain and _SIMPLE.fullmatch(value.text) for value in globs) and not _WIDENS & given
        return Reads(
            target=word,
            shows="READ" in self.marks,
            deep=deep,
            hidden="HIDES" not in self.marks or bool(globs or ({"--hidden", "-u", "-."} | _WIDENS) & given),
            follow=bool(self.follows & {"", *given}),
            only=tuple(value.text for value in globs) if simple else (),
        )


def grammar(table: str) -> Grammar:
    """A grammar as it is written in a table."""
    options: dict[str, str] = {}
    instead, marks = set[str](), set[str]()
    sets = {name: frozenset[str]() for name in ("DEEP", "FOLLOWS", "TELLS")}
    most: int | None = None
    for entry in table.split():
        mark, _, names = entry.partition("=")
        if found := _OPTION.fullmatch(entry):
            kind = found[2] or found[3] or ":" * ("=" in entry)
            for name in [found[1]] if found[1].startswith("--") else [f"-{letter}" for letter in found[1][1:]]:
                options[name] = kind
                instead |= {name} if found[4] else set()
        elif entry.isdigit():
            most = int(entry)
        elif mark in sets:
            sets[mark] = frozenset(names.split(","))
        else:
            assert entry in _MARKS, entry
            marks.add(entry)
    return Grammar(
        options=options,
        marks=frozenset(marks),
        instead=frozenset(instead),
        most=most if marks & {"READ", "NAME", "TEXT"} else 0,
        deep=sets["DEEP"],
        follows=sets["FOLLOWS"],
        tells=sets["TELLS"],
    )


class CommandLine:
    """The words behind a program's name as a grammar reads them. Mutable while it reads."""

    def __init__(self, known: Grammar, words: Sequence[Word]) -> None:
        self.operands: list[Word] = []
        self.given: dict[str, list[Word]] = {}
        self.files: list[Word] = []  # values that are read
        self.doubtful: list[Word] = []  # words that may turn out to be options
        self.early = 0  # how many of these stand before an option, of which they could take the place or the value
        self.needed: list[Word] = []  # values that may turn out to be no word, or several
        self.unknown = ""  # the first that the grammar does not know
        self._known, self._options = known, known.options
        self._waits = ""  # the option whose value comes next
        self._over = False  # no more options come
        for word in words:
            self._take(word)

    def values(self, *names: str) -> list[Word]:
        """What was given to options."""
        return [value for name in names for value in self.given.get(name, ())]

    def _take(self, word: Word) -> None:
        text = word.text
        starts = text[:1] in ("*", "?", "[") and not self._waits
        if not word.plain and not word.number and not self._over and (word.loose or starts):
            self.doubtful.append(word)
        if not self._waits and text.startswith("-"):
            self.early = len(self.doubtful)
        if self._waits:
            name, self._waits = self._waits, ""
            self.needed += [word] if word.loose else []
            # Where the value is not taken so, it would be an option.
            if _OPTION_LIKE.fullmatch(text) and name not in self._known.instead:
                self._refuse(word)
            self._value(name, word)
        elif self._over or text in ("-", "") or not text.startswith("-"):
            self.operands.append(word)
        elif text == "--" and word.plain:
            self._over = True
        elif text.startswith("--"):
            self._long(word)
        elif not ("-#" in self._options and _NUMBER.fullmatch(text.replace("*", "0") if word.number else text)):
            self._letters(word)

    def _long(self, word: Word) -> None:
        name, equals, value = word.text.partition("=")
        kind = self._options.get(name)
        if kind is None or (kind == "" and equals) or (not word.plain and not equals):
            self._refuse(word)
        elif equals:
            self._value(name, _rest(word, value))
        else:
            self.given.setdefault(name, [])
            self._waits = name if kind in (":", "@") else ""

    def _letters(self, word: Word) -> None:
        for at, letter in enumerate(word.text[1:], 2):
            name, rest = f"-{letter}", word.text[at:]
            kind = self._options.get(name)
            apart = {"": "ALONE", ":": "LAST"}.get(kind or "")
            if kind is None or (rest and apart in self._known.marks):
                self._refuse(word)
                return
            self.given.setdefault(name, [])
            if kind == "":
                continue
            if rest:
                self._value(name, _rest(word, rest))
            elif kind != "?":
                self._waits = name
            return

    def _value(self, name: str, word: Word) -> None:
        self.given.setdefault(name, []).append(word)
        if self._options[name] == "@":
            self.files.append(word)

    def _refuse(self, word: Word) -> None:
        self.unknown = self.unknown or word.text[:40]


def _rest(word: Word, text: str) -> Word:
    """The end of a word, behind an option that is known, as one of its own."""
    return structs.replace(word, text=text, template=word.template[len(word.text) - len(text) :])
