"""What a text says whatever stands around it: its lines, what each names, and what each looks like. Read once, and remembered while it is in use.

An anchor is a string whose form could be told apart later. The harm detector has an extractor of its own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Final

# Paths, dotted and joined names, names with capitals inside, ids and larger numbers.
_ANCHOR: Final = re.compile(r"[A-Za-z0-9_][\w./:@~-]{2,199}")
_TOKEN: Final = re.compile(r"\n|[A-Za-z0-9_][\w./:@~-]{2,199}")
_TELLING: Final = re.compile(r"[/_.:@]|[a-z][A-Z]|\d{3}")
_FILE: Final = re.compile(
    r"(?<![\w.-])[\w-][\w.-]{0,119}\.[A-Za-z]\w{0,5}\b(?![\w.-]{0,119}/)"
)  # tried once in each run, and bounded
_ENDS: Final = ".:-/"
_SHAPE: Final = re.compile(
    r"\s*(?:\d+[\t→|: ]+)?\s*(?:"
    r"((?:(?:export|public|private|protected|static|async|pub|default|abstract) )*"
    r"(?:def|class|func|function|interface|type|const|let|var|struct|enum|trait|impl|fn|module|package)\b)"
    r"|((?:import|from|use|require|#include)\b)"
    r"|(#|//|/?\*|--|<!--|\"\"\"))"
)
_SHAPES: Final = (0, 3, 2, 1)  # by group of _SHAPE: defines, imports, remarks
_DEFINES: Final = 3
_FAILS: Final = 4
_FAILURES: Final = re.compile("error|fail|panic|exception|traceback|warning|✗", re.IGNORECASE)
_START: Final = 160  # characters of a line in which it says that it defines something
_TELLING_LINE: Final = 15  # characters of a line that is no other's by accident
OF_CALL: Final = 300  # characters of a call's arguments in which the file stands that it is about
_PART: Final = re.compile(r'"(?:offset|limit|view_range|(?:start|end)_?line\w*|line_?(?:start|end)|range)"')
_REMEMBERED: Final = 2_048  # texts
NAMES_PER_LINE: Final = 5  # that are told apart


def anchors(text: str) -> Iterator[str]:
    """The strings of a text that can be told apart later, as often as they stand in it."""
    return filter(None, map(_anchor, _ANCHOR.findall(text)))


def files(text: str) -> Iterator[str]:
    """Names of files, without their folders."""
    return iter(_FILE.findall(text))


@lru_cache(maxsize=16_384)
def _anchor(found: str) -> str:
    """A candidate as an anchor; empty when it is none."""
    return found.rstrip(_ENDS) if _TELLING.search(found) else ""


class TextFacts:
    """A text, read as far as it is asked about."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def names(self) -> frozenset[str]:
        """Its anchors."""
        return frozenset(anchors(self.text))

    @cached_property
    def files(self) -> frozenset[str]:
        """The files that it names."""
        return frozenset(files(self.text))

    @cached_property
    def file(self) -> str:
        """The file that a call is about; empty for none."""
        return next(files(self.text[:OF_CALL]), "")

    @cached_property
    def is_part(self) -> bool:
        """Whether a call asks for a part of a file."""
        return _PART.search(self.text, 0, OF_CALL) is not None

    @cached_property
    def written(self) -> frozenset[str]:
        """The lines of a call's arguments that tell something."""
        plain = self.text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")
        return frozenset([line for raw in plain.split("\n") if len(line := raw.strip()) > _TELLING_LINE])

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its lines; nothing has none."""
        return tuple(self.text.split("\n")) if self.text else ()

    @cached_property
    def bare(self) -> tuple[str, ...]:
        """Its lines without the space around them."""
        return tuple([line.strip() for line in self.lines])

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """The lines that are no other's by accident."""
        return tuple([bare for bare in self.bare if len(bare) > _TELLING_LINE])

    @cached_property
    def said(self) -> tuple[tuple[str, ...], ...]:
        """The anchors of each line."""
        lines: list[tuple[str, ...]] = []
        names: list[str] = []
        for found in _TOKEN.findall(self.text):
            if found == "\n":
                lines.append(tuple(names))
                names = []
            elif name := _anchor(found):
                names.append(name)
        lines.append(tuple(names))
        return tuple(lines) if self.text else ()

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each anchor stands in it."""
        return Counter(chain.from_iterable(self.said))

    @cached_property
    def lengths(self) -> bytes:
        """Of each line, in steps of eight characters."""
        return bytes([min(len(bare) // 8, 16) for bare in self.bare])

    @cached_property
    def indents(self) -> bytes:
        """Of each line, in steps of two characters."""
        return bytes([min(len(line) - len(line.lstrip()), 24) // 2 for line in self.lines])

    @cached_property
    def named(self) -> bytes:
        """How many anchors each line has."""
        return bytes([min(len(said), NAMES_PER_LINE) for said in self.said])

    @cached_property
    def shapes(self) -> bytes:
        """Whether each line defines (3), imports (2), remarks (1) or tells of a failure (4)."""
        return bytes([_shape(line) for line in self.lines])

    @cached_property
    def defined(self) -> frozenset[str]:
        """The anchors of lines that define something."""
        pairs = zip(self.shapes, self.said, strict=True)
        return frozenset(chain.from_iterable(said for shape, said in pairs if shape == _DEFINES))


@lru_cache(maxsize=_REMEMBERED)
def facts_of(text: str) -> TextFacts:
    """The facts of a text that is likely to be asked about again."""
    return TextFacts(text)


def _shape(line: str) -> int:
    found = _SHAPE.match(line, 0, _START)
    if found:
        return _SHAPES[found.lastindex or 0]
    return _FAILS if _FAILURES.search(line, 0, _START) else 0


@lru_cache(maxsize=16_384)
def form_of(name: str) -> tuple[int, int, int]:
    """A name's length in steps of four characters, what it looks like, and how many folders it has."""
    return min(len(name) // 4, 12), _form(name), min(name.count("/"), 6)


def _form(name: str) -> int:
    if "/" in name:
        return 6 if "." in name.rpartition("/")[2] else 5
    if name.isdigit():
        return 0
    if name.isupper():
        return 1
    if "." in name or ":" in name:
        return 4 if _FILE.fullmatch(name) else 3
    return 7 if _is_camel(name) else 2


def _is_camel(name: str) -> bool:
    """Whether a capital stands behind a small letter."""
    if name.islower() or name.isupper():
        return False
    return any(a.islower() and b.isupper() for a, b in pairwise(name))


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
