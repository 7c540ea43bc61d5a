"""The variables of a script: what they may hold, and which may be set or shown. Pure.

Every value that a script gives to a variable counts, in whatever order. A value is known when it is written there; what a command prints or a
file holds is not.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from tenure.agent.tools.shell.script import CLOSE, MADE, NUMBER, OPEN, OUTPUT, PRINTED, Command, ShellScript, Word

MOST: Final = 200  # values of one word
_DEEPEST: Final = 4  # variables in variables
_MARK: Final = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)

# Names that mean nothing to programs.
_OWN: Final = re.compile(r"[a-z_][a-z0-9_]*|[A-Z]|FILES?|DIRS?|NAMES?|PATTERN|COUNT|RESULT|OUT|ROOT|SRC|DST|START|END|ID")
_SETTINGS: Final = frozenset(
    "LC_ALL LC_CTYPE LC_COLLATE LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR COLUMNS LINES TERM CI DEBUG VERBOSE PYTHONDONTWRITEBYTECODE"
    " PYTHONUNBUFFERED PYTHONIOENCODING RUST_BACKTRACE RUST_LOG NODE_ENV".split()
)
# Variables of the environment that hold nothing secret.
_PUBLIC: Final = frozenset(
    "HOME USER LOGNAME PWD OLDPWD SHELL PATH LANG LANGUAGE TERM TMPDIR TMP TEMP HOSTNAME HOSTTYPE OSTYPE MACHTYPE UID EUID PPID RANDOM SECONDS LINENO SHLVL"
    " EPOCHSECONDS EPOCHREALTIME BASH BASH_VERSION BASHPID BASH_SOURCE FUNCNAME PIPESTATUS REPLY OPTARG OPTIND COLUMNS LINES EDITOR PAGER DISPLAY TZ CI"
    " VIRTUAL_ENV CONDA_PREFIX NVM_DIR GOPATH GOROOT GOBIN CARGO_HOME RUSTUP_HOME JAVA_HOME NODE_ENV PYTHONPATH XDG_CONFIG_HOME XDG_DATA_HOME"
    " XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR NO_COLOR COLORTERM".split()
)
_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|CRED|AUTH|DSN|COOKIE|SESSION|PRIVATE|SIGN|_URL|_URI|CERT", re.IGNORECASE)


def is_harmless(variable: str, value: str = "") -> bool:
    """Whether setting a variable changes nothing but the script's own words, or how something is printed."""
    if variable in _SETTINGS:
        return re.fullmatch(r"[\w.@:,+-]*" if variable != "TZ" else r"[\w.@:,+/-]*", value) is not None
    return _OWN.fullmatch(variable) is not None and variable not in _PUBLIC


def is_public(variable: str) -> bool:
    """Whether the value of a variable that comes from the environment may be shown."""
    return variable in _PUBLIC or variable.startswith("LC_")


def sounds_secret(variable: str) -> bool:
    """Whether a variable of the environment may hold a key, by its name."""
    return variable not in _PUBLIC and _SECRET.search(variable) is not None


class Bindings:
    """The values of variables, each as the words that it was set to."""

    def __init__(self, values: Mapping[str, Sequence[Word]]) -> None:
        self._values = values

    def of(self, script: ShellScript) -> "Bindings":
        """These, and those of a script that runs among them."""
        values = {name: list(words) for name, words in self._values.items()}
        for command in script.commands:
            for name, word in _set_by(command):
                values.setdefault(name, []).append(word)
        return Bindings(values)

    def knows(self, name: str) -> bool:
        """Whether the script sets a variable."""
        return name in self._values

    def is_output(self, word: Word) -> bool:
        """Whether a word is what a command prints and nothing else."""
        mark = _MARK.fullmatch(word.template)
        if mark is None or mark[1] in (NUMBER, MADE):
            return False
        return mark[1] == OUTPUT or all(
            self.texts(value) is not None or (value.template and self.is_output(value)) for value in self._values.get(mark[1], ())
        )

    def texts(self, word: Word, depth: int = 0) -> Sequence[str] | None:
        """What a word may be, as far as it is written in the script; None when it is made elsewhere. Patterns of file names stay what they are."""
        if not word.template:
            return [word.text] if word.plain or word.glob else None
        if depth > _DEEPEST:
            return None
        parts: list[Sequence[str]] = []
        count = 1
        for n, part in enumerate(_MARK.split(word.template)):
            values = [part] if n % 2 == 0 else ["0"] if part == NUMBER else self._values_of(part, depth)
            if not values or (count := count * len(values)) > MOST:
                return None
            parts.append(values)
        return ["".join(each) for each in product(*parts)]

    def _values_of(self, name: str, depth: int) -> Sequence[str] | None:
        values: dict[str, None] = {}
        for word in self._values.get(name, ()):
            if (texts := self.texts(word, depth + 1)) is None:
                return None
            values.update(dict.fromkeys(texts))
            if word.loose:  # in a list or a loop it is split
                values.update(dict.fromkeys(part for text in texts for part in text.split()))
        return list(values)


def _set_by(command: Command) -> Iterator[tuple[str, Word]]:
    """The variables that a command sets, and to what."""
    for each in command.assignments:
        yield from ((each.name, value) for value in each.values or (each.value,))
    words = command.words
    match words[0].text if words else "":
        case "for" | "select" if len(words) > 1:
            yield from ((words[1].text, word) for word in words[3:] or (PRINTED,))
        case "export" | "declare" | "typeset" | "local" | "readonly":
            for word in words[1:]:
                name, equals, value = word.text.partition("=")
                if equals:
                    yield name, Word(text=value) if word.plain else PRINTED
        case "read" | "mapfile" | "readarray":
            names = [word.text for word in words[1:] if _NAME.fullmatch(word.text)] or ["REPLY", "MAPFILE"]
            yield from ((name, PRINTED) for name in names)
        case _:
            pass
