"""What a text names, as the policy reads it.

Generous on purpose: a string counts when its form could be told apart later, and how likely it is to be asked for is learned, not decided here.
The harm detector has an extractor of its own.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

LONGEST: Final = 80  # characters of a name that a list of names may hold

# Paths, dotted and joined names, names with capitals inside, ids and larger numbers.
_ANCHOR: Final = re.compile(r"[A-Za-z0-9_][\w./:@~-]{2,199}")
_TELLING: Final = re.compile(r"[/_.:@]|[a-z][A-Z]|\d{3}")
_FILE: Final = re.compile(r"(?<![\w.-])[\w-][\w.-]{0,119}\.[A-Za-z]\w{0,5}\b")  # tried once in each run, and bounded
_ENDS: Final = ".:-/"


def anchors(text: str) -> Iterator[str]:
    """The strings of a text that can be told apart later, as often as they stand in it."""
    return (found.rstrip(_ENDS) for found in _ANCHOR.findall(text) if _TELLING.search(found))


class Anchors(dict[str, str]):
    """The anchors of many texts that name much the same: each candidate is looked at once. Mutable: candidate -> anchor, empty for none."""

    def __missing__(self, found: str) -> str:
        """Look at a new one."""
        name = self[found] = next(anchors(found), "")
        return name

    def of(self, text: str) -> list[str]:
        """What `anchors` gives."""
        return [name for found in _ANCHOR.findall(text) if (name := self[found])]


def files(text: str) -> Iterator[str]:
    """Names of files, without their folders."""
    return iter(_FILE.findall(text))


def listed(names: Iterable[str]) -> str:
    """Names in as few characters as there are: plain ones first, then the files of each folder behind it."""
    plain: list[str] = []
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, last = name.rpartition("/")
        if folder and last:
            folders.setdefault(folder, []).append(last)
        else:
            plain.append(name)
    alone = [f"{folder}/{lasts[0]}" for folder, lasts in folders.items() if len(lasts) == 1]
    shared = [f"{folder}/: {' '.join(lasts)}" for folder, lasts in folders.items() if len(lasts) > 1]
    return " ".join([*plain, *alone, *shared])


def unlisted(text: str) -> Iterator[str]:
    """The names that `listed` put together."""
    folder = ""
    for word in text.split():
        if word.endswith("/:"):
            folder = word[:-1]
        else:
            yield folder + word
