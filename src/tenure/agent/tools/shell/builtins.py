"""What the shell's own commands do. Pure. Promise: what sets how others work is no mere look."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tenure.agent.tools.shell.effects import FREE, OPAQUE, Asks, Effects, Moves, RunsText, may_be_option, positional, texts
from tenure.agent.tools.shell.script import Word
from tenure.agent.tools.shell.tables import ARITHMETIC, is_harmless


def _variables(rest: Sequence[Word]) -> Effects:
    """export, declare and the like."""
    for word in rest:
        name = word.text.partition("=")[0]
        if word.text in ("-p", "-x", "-r", "-g", "-a", "-A") or is_harmless(name):
            continue
        return (Asks(reason=f"it sets {name}"),)
    return FREE


def _read(rest: Sequence[Word]) -> Effects:
    named = positional(rest, "adeinNptu")
    harmless = all(word.plain and is_harmless(word.text) for word in named)
    return FREE if harmless else (Asks(reason="it sets a variable"),)


def _for(rest: Sequence[Word]) -> Effects:
    return FREE if rest and rest[0].plain and is_harmless(rest[0].text) else (Asks(reason="it sets a variable"),)


def _set(rest: Sequence[Word]) -> Effects:
    plain = all(re.fullmatch(r"[-+][euxvfo]+|pipefail|errexit|nounset|xtrace|--", word.text) for word in rest)
    return FREE if plain else (Asks(reason="it changes how the shell works"),)


def _test(rest: Sequence[Word]) -> Effects:
    return (Asks(reason="it works out a variable's name"),) if {"-v", "-R"} & set(texts(rest)) else FREE


def _condition(rest: Sequence[Word]) -> Effects:
    """`[[`, which takes what stands beside a comparison of numbers for a sum, and a sum can run commands."""
    if ARITHMETIC & set(texts(rest)) and not all(re.fullmatch(r"-?\w*|]]|[!&|()]", word.text) and word.plain for word in rest):
        return (Asks(reason="it works out a sum that can only be told when it runs"),)
    return _test(rest)


def _printf(rest: Sequence[Word]) -> Effects:
    return (Asks(reason="it sets a variable"),) if rest and (rest[0].text.startswith("-v") or may_be_option(rest[:1])) else FREE


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
        return (Moves(folder=Word(text="~")),)
    return FREE if named[0].text == "-" else (Moves(folder=named[0] if named[0].plain else None),)


def _stays(_: Sequence[Word]) -> Effects:
    return FREE


BUILTINS: Final[Mapping[str, Callable[[Sequence[Word]], Effects]]] = {
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _variables),
    "read": _read,
    **dict.fromkeys(("for", "select"), _for),
    "set": _set,
    **dict.fromkeys(("test", "["), _test),
    "[[": _condition,
    "printf": _printf,
    "eval": _eval,
    "trap": _trap,
    **dict.fromkeys(("cd", "pushd"), _cd),
    "popd": _stays,
}
