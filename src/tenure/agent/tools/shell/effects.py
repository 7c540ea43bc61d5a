"""What a command does, as far as its words tell. Pure values: the rules of programs give them, the judge weighs them.

A command without an effect that changes something is free: it only looks.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from tenure.agent.approval import CallEffect
from tenure.agent.tools.shell.script import Word


class Asks(Struct, frozen=True, kw_only=True, gc=False):
    """It may change something; `act` says how bad that is. `key` is what a person can allow for the likes of it; empty: nothing."""

    reason: str
    key: str = ""
    act: CallEffect = CallEffect.COMMAND


class Writes(Struct, frozen=True, kw_only=True):
    """It changes what this word names. `ends`: what was there is gone, or the files of the names of `by` in that folder; perhaps for good."""

    target: Word
    ends: bool = False
    by: tuple[Word, ...] = ()


class Runs(Struct, frozen=True, kw_only=True):
    """It runs another command."""

    words: tuple[Word, ...]


class RunsFile(Struct, frozen=True, kw_only=True, gc=False):
    """It runs what stands in a file."""

    file: Word


class RunsText(Struct, frozen=True, kw_only=True, gc=False):
    """It runs a text as a script."""

    text: Word


class RunsInput(Struct, frozen=True, kw_only=True, gc=False):
    """It runs what it reads from its input: a shell's `script`, or one in another language."""

    script: bool


class Moves(Struct, frozen=True, kw_only=True, gc=False):
    """It goes to another folder."""

    folder: Word


class Reads(Struct, frozen=True, kw_only=True, gc=False):
    """It looks at what this word names: `shows` its content, or only its name; `deep`: all that lies below, if its name fits one of `only`."""

    target: Word
    shows: bool = True
    deep: bool = False
    hidden: bool = True  # hidden files too
    follow: bool = False  # links below it too
    only: tuple[str, ...] = ()


class Expects(Struct, frozen=True, kw_only=True, gc=False):
    """It only looks as long as this word, which is known when it runs, is no option, and no more than one word.

    `needed`: nor none at all. What stands behind would be taken for its value, and what stands behind that for something else again.
    """

    target: Word
    needed: bool = False


class GitSettings(Struct, frozen=True, kw_only=True, gc=False):
    """It does as the settings of the git repository say that is around a folder, this one or the current one; `blames`: what it blames as well."""

    folder: Word | None = None
    blames: bool = False


class Prints(Struct, frozen=True, kw_only=True, gc=False):
    """What it prints is no text of its own: names of files that there are, lines that it was given, or nothing."""

    names: bool = False  # of files below the folders it looks at


Effect = Asks | Writes | Runs | RunsFile | RunsText | RunsInput | Moves | Reads | Expects | GitSettings | Prints
Effects = tuple[Effect, ...]
Rule = Callable[[Sequence[Word]], Effects]  # of the words behind the program's name

FREE: Final[Effects] = ()
QUIET: Final[Effects] = (Prints(),)  # it only looks, and prints nothing of its own


def reaches(reason: str) -> Asks:
    """It acts beyond the workspace."""
    return Asks(reason=reason, act=CallEffect.OUTSIDE)


def destroys(reason: str) -> Asks:
    """It cannot be undone, or it cannot be told beforehand what it does."""
    return Asks(reason=reason, act=CallEffect.DESTROY)


OPAQUE: Final = destroys("what it runs can only be told when it runs")


def texts(words: Sequence[Word]) -> list[str]:
    """What words say."""
    return [word.text for word in words]


def positional(words: Sequence[Word], with_value: str = "") -> list[Word]:
    """The words that are no options; `with_value` are the letters of options that take the next word."""
    named: list[Word] = []
    skip = options_over = False
    for word in words:
        if skip:
            skip = False
        elif options_over or not word.text.startswith("-") or word.text == "-":
            named.append(word)
        elif word.text == "--":
            options_over = True
        else:
            skip = not word.text.startswith("--") and word.text[-1] in with_value
    return named


def has_option(words: Sequence[Word], letters: str = "", names: str = "") -> bool:
    """Whether one of these options is given: a letter alone or among others, a name in full, shortened or with a value."""
    for word in words:
        text = word.text
        if text == "--":
            return False
        if text.startswith("--"):
            given = text[2:].partition("=")[0]
            if any(name.startswith(given) for name in names.split()):
                return True
        elif text.startswith("-") and any(letter in text for letter in letters):
            return True
    return False
