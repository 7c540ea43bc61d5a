"""What a shell script is made of, as far as it must be known before it runs. Pure values."""

from typing import Final

from msgspec import Struct

OPEN, CLOSE = "\ue000", "\ue001"  # around the name of a variable in a word's template
NUMBER: Final = "#"  # in the place of a name: a number
OUTPUT: Final = "?"  # the output of a command
MADE: Final = "!"  # anything else that is made when it runs: of parts, of braces, of arguments
PROCESS: Final = "/dev/fd/63"  # what a process substitution is to its command


class Word(Struct, frozen=True, kw_only=True, gc=False):
    """One word of a command, its quotes taken away.

    `plain`: the shell takes it as it is. Otherwise `text` has `*` for whatever is only known when it runs; `glob` says that only file names
    are. `template` has the names of the variables instead of the stars, between `OPEN` and `CLOSE`.
    """

    text: str
    plain: bool = True
    glob: bool = False
    quoted: bool = False  # some of it was: it is no keyword then
    loose: bool = False  # it may become several words, or none, as a pattern of file names may
    number: bool = False  # what is not known of it are numbers
    template: str = ""

    @property
    def may_vanish(self) -> bool:
        """Whether it may become no word at all. A pattern of file names that fits none stays as it is."""
        return self.loose and not self.glob


PRINTED: Final = Word(text="*", plain=False, loose=True, template=f"{OPEN}{OUTPUT}{CLOSE}")  # what a command prints


class Redirect(Struct, frozen=True, kw_only=True, gc=False):
    """Where a command reads from or writes to."""

    sign: str  # `>`, `>>`, `<`, `<<<`, ...
    target: Word
    body: str | None = None  # of a here-document, when nothing in it is expanded


class Assignment(Struct, frozen=True, kw_only=True, gc=False):
    """A variable that is set."""

    name: str
    value: Word
    values: tuple[Word, ...] = ()  # of a list; and what it may become when it is added to


class Command(Struct, frozen=True, kw_only=True):
    """A simple command, wherever it stands: in a pipeline, a loop, a substitution."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    feeds: bool = False  # its output goes to another command


class ShellScript(Struct, frozen=True, kw_only=True):
    """All commands of a script in the order in which they stand."""

    commands: tuple[Command, ...]
    odd: tuple[str, ...] = ()  # what of it was not understood: there may be more commands
    unknown: tuple[str, ...] = ()  # what was, but has a value that can only be told when it runs
    variables: frozenset[str] = frozenset()  # whose values are used and not settled
