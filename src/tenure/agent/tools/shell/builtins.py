"""What the shell's own commands do. Pure. What sets how others work, or works out what a variable holds, is no mere look."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tenure.agent.secrets import is_secret
from tenure.agent.tools.shell.effects import (
    FREE,
    OPAQUE,
    QUIET,
    Asks,
    Effects,
    Moves,
    Reads,
    Rule,
    RunsText,
    positional,
    reaches,
    texts,
)
from tenure.agent.tools.shell.grammar import CommandLine, Grammar, grammar
from tenure.agent.tools.shell.script import Word
from tenure.agent.tools.shell.variables import is_harmless, is_public

_SETS: Final = (Asks(reason="it sets a variable, which may change what other commands do"),)
_SHOWS: Final = (reaches("it shows the environment, where keys may be kept"),)
_NAMES: Final = (Asks(reason="it works out a variable's name"),)
_READ: Final = grammar("-rs -p: -d: -n: -N: -t: -u: -a: TEXT")
_MAPFILE: Final = grammar("-t -n: -d: -s: 1 TEXT")
_BINARY: Final = frozenset("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o =~".split())
_OF_FILES: Final = frozenset("-a -b -c -d -e -f -g -h -k -L -N -O -p -r -s -S -u -w -x -G".split())
_UNARY: Final = _OF_FILES | {"-n", "-t", "-z"}
_NUMERIC: Final = frozenset("-eq -ne -lt -le -gt -ge".split())
_NUMBER: Final = re.compile(r"-?\d+")
_FORMAT: Final = re.compile(r"(?:[^%]|%%|%[-+ #0]*\d*(?:\.\d*)?[bqdiouxXfFeEgGcs]|%\([^()]*\)T)*")


def _variables(rest: Sequence[Word]) -> Effects:
    """export, declare and the like. A value in brackets may be worked out as a list, and its subscripts as sums."""
    named = [word for word in rest if not (word.plain and re.fullmatch(r"-[xrgaA]+", word.text))]
    for word in named:
        name, _, value = word.text.partition("=")
        if not is_harmless(name, value) or set("(`[") & set(value):
            return _SETS
    return QUIET if named else _SHOWS


def _reading(known: Grammar) -> Rule:
    """A command that sets the variables that it names to what it reads."""

    def rule(rest: Sequence[Word]) -> Effects:
        line = CommandLine(known, rest)
        names = [*line.operands, *line.values("-a")]
        return (
            QUIET
            if not (line.unknown or line.doubtful) and all(word.plain and is_harmless(word.text) for word in names)
            else _SETS
        )

    return rule


def _for(rest: Sequence[Word]) -> Effects:
    if not (rest and rest[0].plain and is_harmless(rest[0].text)):
        return _SETS
    return (*QUIET, *(Reads(target=word, shows=False) for word in rest[2:]))


def _set(rest: Sequence[Word]) -> Effects:
    if not rest:
        return _SHOWS
    plain = all(word.plain and re.fullmatch(r"[-+][euxvfo]+|pipefail|errexit|nounset|xtrace", word.text) for word in rest)
    return QUIET if plain else (Asks(reason="it changes how the shell works"),)


def _test(rest: Sequence[Word]) -> Effects:
    """`test` and `[`. What is only known when it runs must stand where nothing could take it for an operator: `-v` works out a subscript."""
    words = [word for word in rest if not (word.plain and word.text == "]")]
    if all(word.plain for word in words):
        return _NAMES if {"-v", "-R"} & set(texts(words)) else _tested(words)
    while words and words[0].text == "!" and words[0].plain and len(words) > 1:
        words = words[1:]
    match words:
        case [word] if not word.loose:
            pass
        case [operator, word] if operator.plain and operator.text in _UNARY and not word.loose:
            pass
        case [one, operator, other] if operator.plain and operator.text in _BINARY and not one.loose and not other.loose:
            pass
        case _:
            return (Asks(reason="what it tests can only be told when it runs"),)
    return _tested(words)


def _tested(words: Iterable[Word]) -> Effects:
    return (*QUIET, *(Reads(target=word, shows=False) for test, word in pairwise(words) if test.text in _OF_FILES))


def _condition(rest: Sequence[Word]) -> Effects:
    """`[[`, which takes what stands beside a comparison of numbers for a sum, and a sum can run commands."""
    if any(word.plain and word.text in ("-v", "-R") for word in rest):
        return _NAMES
    for at, word in enumerate(rest):
        if word.text in _NUMERIC and word.plain:
            sides = [*rest[at - 1 : at], *rest[at + 1 : at + 2]]
            if not all(side.number or (side.plain and _NUMBER.fullmatch(side.text)) for side in sides):
                return (Asks(reason="it works out a sum that can only be told when it runs"),)
    return _tested(rest)


def _echo(rest: Sequence[Word]) -> Effects:
    """`echo`: what it says is no path unless it has a slash, or is one where keys are kept."""
    options = rest and re.fullmatch(r"-[neE]+", rest[0].text)
    harmless = not options and all("/" not in word.text and not is_secret(word.text, word.text) for word in rest)
    return QUIET if harmless else FREE


def _printf(rest: Sequence[Word]) -> Effects:
    words = rest[1:] if rest and rest[0].plain and rest[0].text == "--" else rest
    if not words:
        return FREE
    form = words[0]
    if form.loose or form.text[:1] == "-" or (not form.plain and (len(words) > 1 or form.text[:1] == "*")):
        return _SETS
    return FREE if _FORMAT.fullmatch(form.text) else _SETS


def _printenv(rest: Sequence[Word]) -> Effects:
    return FREE if rest and all(word.plain and is_public(word.text) for word in rest) else _SHOWS


def _eval(rest: Sequence[Word]) -> Effects:
    return (RunsText(text=Word(text=" ".join(texts(rest)))) if all(word.plain for word in rest) else OPAQUE,)


def _trap(rest: Sequence[Word]) -> Effects:
    named = positional(rest)
    return (RunsText(text=named[0]),) if len(named) > 1 and named[0].text not in ("", "-") else FREE


def _cd(rest: Sequence[Word]) -> Effects:
    named = positional(rest) or [Word(text="~")]
    return (*QUIET, *([Moves(folder=named[0])] if named[0].text != "-" else []))


BUILTINS: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _variables),
    "read": _reading(_READ),
    **dict.fromkeys(("mapfile", "readarray"), _reading(_MAPFILE)),
    **dict.fromkeys(("for", "select"), _for),
    "set": _set,
    **dict.fromkeys(("test", "["), _test),
    "[[": _condition,
    "echo": _echo,
    "printf": _printf,
    "printenv": _printenv,
    "eval": _eval,
    "trap": _trap,
    **dict.fromkeys(("cd", "pushd"), _cd),
}
