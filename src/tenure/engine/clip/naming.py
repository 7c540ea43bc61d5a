"""Many paths in few words: by folder, counts exact."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import count, islice
from typing import Final

from msgspec import Struct

from tenure.engine.clip.shape import NOTE, plural, weight

ABREAST: Final = 4  # folders with their counts on a line
FEWEST_PARTS: Final = 4  # of a folder that are shown alone
DEEPEST: Final = 32  # folders of a path that are told apart
HEAD: Final = 6 + NOTE  # estimated tokens of the words beside a folder's name
_SEPARATOR: Final = re.compile(r"[/\\]")


class PathList(Struct, frozen=True, kw_only=True, gc=False):
    """Paths in words. `complete`: every path is named, not only its folder."""

    text: str
    complete: bool


class Names:
    """Paths by folder, read once and put in words for one budget after another."""

    def __init__(self, paths: Sequence[str], counts: Sequence[int] = (), what: str = "hit") -> None:
        """`counts` are how often `what` was found in each path; none when nothing is counted."""
        self._what = what
        self.size: Final = len(paths)
        self._root = _root(paths)
        self._names: dict[str, list[str]] = {}
        self._counts: dict[str, list[int]] = {}
        cut = len(self._root)
        for at, path in enumerate(paths):
            edge = path.rfind("/", 0, -1) + 1 if "\\" not in path else len(parted(path)[0])
            folder = path[cut:edge]
            if folder in self._names:
                self._names[folder].append(path[edge:])
            else:
                self._names[folder], self._counts[folder] = [path[edge:]], []
            if counts:
                self._counts[folder].append(counts[at])
        self._sums = [(folder, len(some), sum(self._counts[folder])) for folder, some in self._names.items()]
        self._fixed = sum(map(weight, self._names)) + HEAD * len(self._names) + (weight(self._root) + 3 if cut else 0)

    def every(self) -> str:
        """All paths, named."""
        return self._below("\n".join(self._row(folder, len(names)) for folder, names in self._names.items()))

    def within(self, budget: int) -> PathList | None:
        """All paths in about `budget` of estimated weight, in the order of their folders.

        When that is too little, the first names of each folder and the count of the others; when that is, folders with counts, parted
        as far as fits. None only when nothing fits.
        """
        if self._fixed > budget:
            text = self._rolled(budget - weight(self._root) - 3)
            return PathList(text=self._below(text), complete=False) if text else None
        taken = _by_turns(list(self._names.values()), 3 if any(self._counts.values()) else 0, budget - self._fixed)
        rows: list[str] = []
        for (folder, files, hits), take in zip(self._sums, taken, strict=True):
            if take == files:
                rows.append(self._row(folder, take))
            else:
                head = _folder(folder, files, hits, self._what)
                rows.append(f"{head}: {self._words(folder, take)}, and {files - take:,} more" if take else head)
        return PathList(text=self._below("\n".join(rows)), complete=sum(taken) == self.size)

    def _row(self, folder: str, take: int) -> str:
        return f"{folder}: {self._words(folder, take)}" if folder else self._words(folder, take)

    def _words(self, folder: str, take: int) -> str:
        names, counts = self._names[folder][:take], self._counts[folder]
        return ", ".join(f"{name} {n:,}" for name, n in zip(names, counts, strict=False)) if counts else ", ".join(names)

    def _rolled(self, budget: int) -> str:
        """Folders with counts: the largest is parted into the folders below it, again and again, as long as they fit."""
        top, what = self._tree, self._what
        left = budget - 10 - top.cost(what)
        rows: list[_Branch] = []
        heap = [(-top.files, 0, top)]
        order = count(1)
        while heap:
            branch = heappop(heap)[2]
            parts = branch.parts()
            more = sum(part.cost(what) for part in parts) - branch.cost(what) if parts else 0
            if more > left:
                telling = (
                    0 if left * 2 > budget else branch.files // 3
                )  # files in the largest parts for which these are worth their words
                parts = branch.largest(left + branch.cost(what), what, telling)
                more = sum(part.cost(what) for part in parts) - branch.cost(what)
            if not parts:
                rows.append(branch)
                continue
            left -= more
            for part in parts:
                heappush(heap, (-part.files, next(order), part))
        words = [row.words(what) for row in sorted(rows, key=lambda row: -row.files)]
        return "\n".join("; ".join(words[at : at + ABREAST]) for at in range(0, len(words), ABREAST)) if left >= 0 else ""

    @cached_property
    def _tree(self) -> "_Branch":
        """The folders below one another."""
        top = _Branch("")
        for folder, files, hits in self._sums:
            branch = top
            branch.files += files
            branch.hits += hits
            for separator in islice(_SEPARATOR.finditer(folder), DEEPEST):
                path = folder[: separator.end()]
                branch = branch.below.setdefault(path, _Branch(path))
                branch.files += files
                branch.hits += hits
            branch.own_files += files
            branch.own_hits += hits
        return top

    def _below(self, text: str) -> str:
        return f"below {self._root}:\n{text}" if self._root else text


def parted(path: str) -> tuple[str, str]:
    """A path's folder, with its separator, and its name; a folder's own name keeps its separator."""
    at = path.rfind("/", 0, -1) + 1
    if "\\" in path:
        at = max(at, path.rfind("\\", 0, -1) + 1)
    return path[:at], path[at:]


def name_weight(name: str, n: int = 0) -> int:
    """About how many tokens one more name weighs in a list of them."""
    size = (len(name) if name.isascii() else 2 * len(name.encode("utf-8", "surrogatepass"))) + (3 if n else 0)
    return (size + 5) // 3


def first_names(names: Sequence[str], costs: Sequence[int], budget: int) -> tuple[str, int]:
    """As many names as fit, with the count of the others; and how many they are."""
    taken = 0
    while taken < len(names) and (budget := budget - costs[taken]) > 0:
        taken += 1
    more = f", and {len(names) - taken:,} more" if taken < len(names) else ""
    return f"{', '.join(names[:taken])}{more}", taken


def _by_turns(folders: Sequence[Sequence[str]], counted: int, budget: int) -> list[int]:
    """How many names of each folder fit, taken in turns."""
    taken = [0] * len(folders)
    active = list(range(len(folders)))
    while active:
        going: list[int] = []
        for at in active:
            budget -= name_weight(folders[at][taken[at]], counted)
            if budget < 0:
                return taken
            taken[at] += 1
            if taken[at] < len(folders[at]):
                going.append(at)
        active = going
    return taken


@dataclass(slots=True)
class _Branch:
    """A folder with all that lies below it, or some of the folders below one."""

    folder: str
    files: int = 0
    hits: int = 0
    others: int = 0  # so many folders below it rather than the folder
    own_files: int = 0  # those in the folder itself
    own_hits: int = 0
    below: "dict[str, _Branch]" = field(default_factory=dict[str, "_Branch"])

    def parts(self) -> "list[_Branch]":
        """The folders below, and the files of its own; none when there is nothing below."""
        own = [_Branch(self.folder, self.own_files, self.own_hits)] if self.own_files and self.below else []
        return [*own, *self.below.values()]

    def largest(self, budget: int, what: str, telling: int) -> "list[_Branch]":
        """Its largest parts where there are too many, and the others together; none when these are few or hold less than `telling` files."""
        parts = self.parts()
        kept: list[_Branch] = []
        for part in sorted(parts, key=lambda part: -part.files):
            rest = _Branch(self.folder, self.files - sum(each.files for each in kept), self.hits, len(parts) - len(kept))
            if (budget := budget - part.cost(what)) < rest.cost(what):
                rest.hits = self.hits - sum(each.hits for each in kept)
                return [*kept, rest] if len(kept) >= FEWEST_PARTS and self.files - rest.files >= telling else []
            kept.append(part)
        return kept

    def words(self, what: str) -> str:
        """Its name with its counts."""
        folder = f"{self.folder} {plural(self.others, 'other folder')}," if self.others else self.folder
        return _folder(folder, self.files, self.hits, what)

    def cost(self, what: str) -> int:
        """About how many tokens these weigh in a list."""
        return weight(self.words(what)) + NOTE // ABREAST


def _folder(folder: str, files: int, hits: int, what: str) -> str:
    return f"{folder or './'} {plural(files, 'file')}{f', {plural(hits, what)}' if hits else ''}"


def _root(paths: Sequence[str]) -> str:
    """The folder that all paths share, when naming it once saves words."""
    if len(paths) < 2:
        return ""
    low, high = min(paths), max(paths)
    same = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    root = parted(low[:same] + "x")[0]
    return root if len(root) > 6 else ""
