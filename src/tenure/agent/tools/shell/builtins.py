"""What the shell's own commands do. Pure. What sets how others work, or works out what a variable holds, is no mere look."""

import re
from collections.abc import Callable, Mapping, Sequence
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
    Reaches,
    Reads,
    RunsText,
    positional,
    texts,
)
from tenure.agent.tools.shell.grammar import grammar, read
from tenure.agent.tools.shell.script import Word
from tenure.agent.tools.shell.tables import is_harmless, is_public

_SETS: Final = (Asks(reason="it sets a variable, which may change what other commands do"),)
_SHOWS: Final = (Reaches(reason="it shows the environment, where keys may be kept"),)
_READ: Final = grammar("-rs -p: -d: -n: -N: -t: -u: -a: TEXT")
_MAPFILE: Final = grammar("-t -n: -d: -s: 1 TEXT")
_BINARY: Final = frozenset("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o =~".split())
_UNARY: Final = frozenset("-a -b -c -d -e -f -g -h -k -L -n -N -O -p -r -s -S -t -u -w -x -z -G".split())
_OF_FILES: Final = frozenset("-a -b -c -d -e -f -g -h -k -L -N -O -p -r -s -S -u -w -x -G".split())
_NUMERIC: Final = frozenset("-eq -ne -lt -le -gt -ge".split())
_NUMBER: Final = re.compile(r"-?\d+")
_FORMAT: Final = re.compile(r"(?:[^%]|%%|%[-+ #0]*\d*(?:\.\d*)?[bqdiouxXfFeEgGcs]|%\([^()]*\)T)*")


def _variables(rest: Sequence[Word]) -> Effects:
    """export, declare and the like. A value in brackets may be worked out as a list, and its subscripts as sums."""
    named = False
    for word in rest:
        name, _, value = word.text.partition("=")
        if word.plain and re.fullmatch(r"-[xrgaA]+", word.text):
            continue
        if not is_harmless(name, value) or "(" in value or "`" in value or "[" in value:
            return _SETS
        named = True
    return QUIET if named else _SHOWS


def _read(rest: Sequence[Word]) -> Effects:
    line = read(_READ, rest)
    names = [*line.operands, *line.given.get("-a", ())]
    return QUIET if not line.unknown and all(word.plain and is_harmless(word.text) for word in names) else _SETS


def _mapfile(rest: Sequence[Word]) -> Effects:
    line = read(_MAPFILE, rest)
    return QUIET if not line.unknown and all(word.plain and is_harmless(word.text) for word in line.operands) else _SETS


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
        known = not {"-v", "-R"} & set(texts(words))
        return (*QUIET, *_tested(words)) if known else (Asks(reason="it works out a variable's name"),)
    while words and words[0].text == "!" and words[0].plain and len(words) > 1:
        words = words[1:]
    match words:
        case [word] if not word.loose:
            known = True
        case [operator, word] if operator.plain and operator.text in _UNARY and not word.loose:
            known = True
        case [one, operator, other] if operator.plain and operator.text in _BINARY and not one.loose and not other.loose:
            known = True
        case _:
            known = False
    return (*QUIET, *_tested(words)) if known else (Asks(reason="what it tests can only be told when it runs"),)


def _tested(words: Sequence[Word]) -> Effects:
    return tuple(Reads(target=word, shows=False) for test, word in pairwise(words) if test.text in _OF_FILES)


def _condition(rest: Sequence[Word]) -> Effects:
    """`[[`, which takes what stands beside a comparison of numbers for a sum, and a sum can run commands."""
    if any(word.plain and word.text in ("-v", "-R") for word in rest):
        return (Asks(reason="it works out a variable's name"),)
    for at, word in enumerate(rest):
        if word.text in _NUMERIC and word.plain:
            sides = [*rest[at - 1 : at], *rest[at + 1 : at + 2]]
            if not all(side.number or (side.plain and _NUMBER.fullmatch(side.text)) for side in sides):
                return (Asks(reason="it works out a sum that can only be told when it runs"),)
    return (*QUIET, *_tested(rest))


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
    if not all(word.plain for word in rest):
        return (OPAQUE,)
    return (RunsText(text=Word(text=" ".join(texts(rest)))),)


def _trap(rest: Sequence[Word]) -> Effects:
    named = positional(rest)
    return (RunsText(text=named[0]),) if len(named) > 1 and named[0].text not in ("", "-") else FREE


def _cd(rest: Sequence[Word]) -> Effects:
    named = positional(rest)
    if not named:
        return (*QUIET, Moves(folder=Word(text="~")))
    if named[0].text == "-":
        return QUIET
    return (*QUIET, Moves(folder=named[0]))


BUILTINS: Final[Mapping[str, Callable[[Sequence[Word]], Effects]]] = {
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _variables),
    "read": _read,
    **dict.fromkeys(("mapfile", "readarray"), _mapfile),
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
