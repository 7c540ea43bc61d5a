"""What the variables of a script may hold. Pure.

Every value that a script gives to a variable counts, in whatever order. A value is known when it is written there; what a command prints or a
file holds is not.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from tenure.agent.tools.shell.script import CLOSE, MADE, NUMBER, OPEN, OUTPUT, Command, Script, Word

MOST: Final = 200  # values of one word
_DEEPEST: Final = 4  # variables in variables
_MARK: Final = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OUTPUT: Final = Word(text="*", plain=False, loose=True, template=f"{OPEN}{OUTPUT}{CLOSE}")


class Bindings:
    """The values of variables, each as the words that it was set to."""

    def __init__(self, values: Mapping[str, Sequence[Word]]) -> None:
        self._values = values

    def of(self, script: Script) -> "Bindings":
        """These, and those of a script that runs among them."""
        values: dict[str, list[Word]] = {name: list(words) for name, words in self._values.items()}
        for command in script.commands:
            for name, word in _set_by(command):
                values.setdefault(name, []).append(word)
        return Bindings(values)

    def knows(self, name: str) -> bool:
        """Whether the script sets a variable."""
        return name in self._values

    def texts(self, word: Word) -> Sequence[str] | None:
        """What a word may be, as far as it is written in the script; None when it is made elsewhere. Patterns of file names stay what they are."""
        return self._texts(word, 0)

    def is_output(self, word: Word) -> bool:
        """Whether a word is what a command prints and nothing else."""
        found = _MARK.fullmatch(word.template)
        if found is None or found[1] in (NUMBER, MADE):
            return False
        if found[1] == OUTPUT:
            return True
        return all(
            self.texts(value) is not None or (value.template and self.is_output(value))
            for value in self._values.get(found[1], ())
        )

    def _texts(self, word: Word, depth: int) -> Sequence[str] | None:
        if not word.template:
            return [word.text] if word.plain or word.glob else None
        if depth > _DEEPEST:
            return None
        parts: list[Sequence[str]] = []
        count = 1
        for n, part in enumerate(_MARK.split(word.template)):
            if n % 2 == 0:
                parts.append([part])
                continue
            values = ["0"] if part == NUMBER else self._of(part, depth)
            if not values or (count := count * len(values)) > MOST:
                return None
            parts.append(values)
        return ["".join(each) for each in product(*parts)]

    def _of(self, name: str, depth: int) -> Sequence[str] | None:
        values: dict[str, None] = {}
        for word in self._values.get(name, ()):
            texts = self._texts(word, depth + 1)
            if texts is None:
                return None
            values.update(dict.fromkeys(texts))
        return list(values)


def _set_by(command: Command) -> list[tuple[str, Word]]:
    """The variables that a command sets, and to what."""
    found = [(each.name, value) for each in command.assignments for value in each.values or (each.value,)]
    words = command.words
    match words[0].text if words else "":
        case "for" | "select" if len(words) > 1:
            found += [(words[1].text, word) for word in words[3:]] or [(words[1].text, _OUTPUT)]
        case "export" | "declare" | "typeset" | "local" | "readonly":
            for word in words[1:]:
                name, equals, value = word.text.partition("=")
                if equals and word.plain:
                    found.append((name, Word(text=value)))
                elif equals:
                    found.append((name, _OUTPUT))
        case "read" | "mapfile" | "readarray":
            found += [(word.text, _OUTPUT) for word in words[1:] if _NAME.fullmatch(word.text)] or [
                ("REPLY", _OUTPUT),
                ("MAPFILE", _OUTPUT),
            ]
        case _:
            pass
    return found
