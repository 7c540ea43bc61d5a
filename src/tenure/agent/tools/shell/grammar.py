"""Command lines that are known to only look: each program's options, as tables. Pure.

A grammar lists what is known; an option that is not in it, a shortened one, or a value where there should be none is not free. In a table:

    -abc  letters without a value        --name   an option without a value
    -n:   a letter with a value          --name=  with a value, in the same word or the next
    -n@   with a file that is read       --name=@ likewise
    -n?   with a value in the same word  --name=? likewise
    -#    a number for a letter: -20

and of the words that are no options: READ files whose content is shown, NAME files of which only the names are, TEXT anything else, at
most as many as a number before it says. PATTERN: the first is a text, unless one of the options with `!` behind them is given. DEEP=-r,-R:
with these all that is below a folder is read. ANY: none of the program's options does anything but look, so that a word which is only known when
it runs may be one. LISTS: it prints names of files; PASSES: it prints what comes in, or nothing; TELLS=-l,--format: with these it prints other text.
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

_OPTION: Final = re.compile(r"(-[\w#.]+|--[\w-]+)(=[@?]?|[:@?])?(!)?")
_NUMBER: Final = re.compile(r"-\d+")
_SIMPLE: Final = re.compile(r"[\w.*?-]+")  # a pattern that means the same to every program
_WIDENS: Final = frozenset(
    {"--iglob", "--type-add", "--glob-case-insensitive"}
)  # options of rg by which other files are searched than by `--glob`
_OPTION_LIKE: Final = re.compile(r"-\D.*", re.DOTALL)
_HERE: Final = Word(text=".")


class Grammar(Struct, frozen=True, kw_only=True):
    """The options and operands with which a program only looks. Of options: "" has no value, ":" a text, "@" a file, "?" one in the same word."""

    options: Mapping[str, str]
    instead: frozenset[str] = frozenset()  # options that stand for the pattern
    operands: str = ""  # READ, NAME or TEXT
    most: int | None = None
    pattern: bool = False
    any_option: bool = False
    deep: frozenset[str] = frozenset()  # options that read folders; "" when it always does
    prints: str = ""
    tells: frozenset[str] = frozenset()  # options with which it prints other text
    letters: str = ""  # LAST or ALONE
    responses: bool = False

    def effects(self, program: str, words: Sequence[Word]) -> Effects:
        """What the program does with these words: `Asks` when they are not known to be only a look."""
        line = read(self, words)
        if self.responses and any(word.text[:1] == "@" or (not word.plain and word.text[:1] in "*?[") for word in words):
            return (Asks(reason=f"`{program}` may read options from a file"),)
        if line.unknown:
            return (Asks(reason=f"`{program}` is not known to only look with {line.unknown}"),)
        found: list[Effect] = [] if self.any_option else [Expects(word=word) for word in line.doubtful]
        operands = list(line.operands)
        if self.pattern and operands and not self.instead & line.given.keys():
            first = operands.pop(0)
            operands += [first] if first.loose else []
        if self.most is not None and (len(operands) > self.most or any(word.loose or word.glob for word in operands)):
            return (Asks(reason=f"`{program}` is not known to only look with so many words"),)
        deep = "" in self.deep or bool(self.deep & line.given.keys())
        if deep and not operands and self.operands == "READ":
            operands = [_HERE]
        if self.operands != "TEXT":
            found += [self._reads(word, line, deep=deep) for word in operands]
        found += [Reads(target=word) for word in line.files]
        passes = self.prints == "PASSES" and not any(isinstance(effect, Reads) for effect in found)
        if self.operands == "TEXT" and any("/" in word.text for word in operands):
            passes = False  # it may print a path that stands here
        lists = self.prints == "LISTS"
        tells = bool(self.tells & line.given.keys())
        return (*found, *([Prints(names=lists)] if (lists or passes) and not tells else []))

    def _reads(self, word: Word, line: "Line", *, deep: bool) -> Reads:
        globs = [value for name in ("--include", "-g", "--glob") for value in line.given.get(name, ())]
        simple = all(value.plain and _SIMPLE.fullmatch(value.text) for value in globs) and not _WIDENS & line.given.keys()
        only = tuple(value.text for value in globs) if simple else ()
        hidden = not deep or "" not in self.deep or bool(globs or ({"--hidden", "-u", "-."} | _WIDENS) & line.given.keys())
        follow = bool(
            {"-R", "--dereference-recursive", "--follow"} & line.given.keys() or ("" in self.deep and "-L" in line.given)
        )
        shows = self.operands == "READ"
        return Reads(target=word, shows=shows, deep=deep, hidden=hidden, follow=follow, only=only if deep else ())


class Line(Struct, frozen=True, kw_only=True):
    """Words as a grammar reads them. `unknown` is the first that it does not know."""

    operands: tuple[Word, ...] = ()
    given: Mapping[str, tuple[Word, ...]] = {}
    files: tuple[Word, ...] = ()  # values that are read
    doubtful: tuple[Word, ...] = ()  # which may turn out to be options
    unknown: str = ""


def grammar(table: str) -> Grammar:
    """A grammar as it is written in a table."""
    options: dict[str, str] = {}
    instead: set[str] = set()
    operands, most, prints, letters = "", None, "", ""
    deep = tells = frozenset[str]()
    for entry in table.split():
        if entry.startswith("-"):
            found = _OPTION.fullmatch(entry)
            assert found, entry
            kind = {"=": ":", "=@": "@", "=?": "?"}.get(found[2] or "", found[2] or "")
            for name in [found[1]] if found[1].startswith("--") else [f"-{letter}" for letter in found[1][1:]]:
                options[name] = kind
                instead |= {name} if found[3] else set()
        elif entry.isdigit():
            most = int(entry)
        elif entry in ("READ", "NAME", "TEXT"):
            operands = entry
        elif entry.startswith("DEEP"):
            deep = frozenset(entry.partition("=")[2].split(","))
        elif entry.startswith("TELLS"):
            tells = frozenset(entry.partition("=")[2].split(","))
        elif entry in ("LISTS", "PASSES"):
            prints = entry
        elif entry in ("LAST", "ALONE"):
            letters = entry
        else:
            assert entry in ("ANY", "PATTERN", "RESPONSES"), entry
    return Grammar(
        options=options,
        instead=frozenset(instead),
        operands=operands,
        most=most if operands else 0,
        pattern="PATTERN" in table.split(),
        any_option="ANY" in table.split(),
        deep=deep,
        prints=prints,
        tells=tells,
        letters=letters,
        responses="RESPONSES" in table.split(),
    )


def read(known: Grammar, words: Sequence[Word]) -> Line:
    """A command's words behind its name."""
    reader = _Reader(known)
    for word in words:
        reader.word(word)
    return Line(
        operands=tuple(reader.operands),
        given={name: tuple(values) for name, values in reader.given.items()},
        files=tuple(reader.files),
        doubtful=tuple(reader.doubtful),
        unknown=reader.unknown,
    )


class _Reader:
    """Goes through a command's words once. Mutable."""

    def __init__(self, known: Grammar) -> None:
        self.operands: list[Word] = []
        self.given: dict[str, list[Word]] = {}
        self.files: list[Word] = []
        self.doubtful: list[Word] = []
        self.unknown = ""
        self._options, self._form, self._instead = known.options, known.letters, known.instead
        self._waits = ""  # the option whose value comes next
        self._over = False

    def word(self, word: Word) -> None:
        """Take the next word."""
        text = word.text
        starts = text[:1] in ("*", "?", "[") and not self._waits
        if not word.plain and not word.number and not self._over and (word.loose or starts):
            self.doubtful.append(word)
        if self._waits:
            name, self._waits = self._waits, ""
            if _OPTION_LIKE.fullmatch(text) and name not in self._instead:  # where the value is not taken so, it would be one
                self._unknown(word)
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
            self._unknown(word)
        elif equals:
            self._value(name, _rest(word, value))
        elif kind in (":", "@"):
            self.given.setdefault(name, [])
            self._waits = name
        else:
            self.given.setdefault(name, [])

    def _letters(self, word: Word) -> None:
        for at, letter in enumerate(word.text[1:], 2):
            name = f"-{letter}"
            kind = self._options.get(name)
            rest = word.text[at:]
            if kind is None or (rest and ((self._form == "ALONE" and kind == "") or (self._form == "LAST" and kind == ":"))):
                self._unknown(word)
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

    def _unknown(self, word: Word) -> None:
        self.unknown = self.unknown or word.text[:40]


def _rest(word: Word, text: str) -> Word:
    """The end of a word, behind an option that is known, as one of its own."""
    return structs.replace(word, text=text, template=word.template[len(word.text) - len(text) :])
