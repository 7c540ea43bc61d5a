"""Many paths in few words: by folder, counts exact."""

from collections.abc import Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Final

from msgspec import Struct

from tenure.engine.clip.filling import NOTE, plural
from tenure.engine.clip.shape import weight

ABREAST: Final = 4  # folders with their counts on a line
FEWEST_PARTS: Final = 4  # of a folder that are shown alone
DEEPEST: Final = 32  # folders of a path that are told apart
HEAD: Final = 6 + NOTE  # estimated tokens of the words beside a folder's name


class Named(Struct, frozen=True, kw_only=True, gc=False):
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
        names, found = self._names, self._counts
        cut = len(self._root)
        for at, path in enumerate(paths):
            edge = path.rfind("/", 0, -1) + 1 if "\\" not in path else len(parted(path)[0])
            folder = path[cut:edge]
            if folder in names:
                names[folder].append(path[edge:])
            else:
                names[folder], found[folder] = [path[edge:]], []
            if counts:
                found[folder].append(counts[at])
        self._sums = [(folder, len(some), sum(found[folder])) for folder, some in names.items()]
        self._fixed = sum(map(weight, names)) + HEAD * len(names) + (weight(self._root) + 3 if cut else 0)

    def every(self) -> str:
        """All paths, named."""
        rows = [_row(folder, _words(some, self._counts[folder])) for folder, some in self._names.items()]
        return self._below("\n".join(rows))

    def within(self, budget: int) -> Named | None:
        """All paths in about `budget` of estimated weight, in the order of their folders.

        When that is too little, the first names of each folder and the count of the others; when that is, folders with counts, parted
        as far as fits. None only when nothing fits.
        """
        if self._fixed > budget:
            text = self._rolled(budget - weight(self._root) - 3)
            return Named(text=self._below(text), complete=False) if text else None
        taken = _fair(list(self._names.values()), 3 if any(self._counts.values()) else 0, budget - self._fixed)
        rows: list[str] = []
        complete = True
        for (folder, files, found), take in zip(self._sums, taken, strict=True):
            shown = _words(self._names[folder][:take], self._counts[folder])
            rest = files - take
            complete = complete and not rest
            if rest:
                head = _counted(folder, files, found, self._what)
                rows.append(f"{head}: {shown}, and {rest:,} more" if shown else head)
            else:
                rows.append(_row(folder, shown))
        return Named(text=self._below("\n".join(rows)), complete=complete)

    def _rolled(self, budget: int) -> str:
        """Folders with counts: the largest is parted into the folders below it, again and again, as long as they fit."""
        top = self._tree
        left = budget - 10 - top.cost(self._what)
        rows: list[_Branch] = []
        heap = [(-top.files, 0, top)]
        order = count(1)
        while heap:
            _, _, branch = heappop(heap)
            parts = branch.parts()
            more = sum(part.cost(self._what) for part in parts) - branch.cost(self._what) if parts else 0
            if more > left:
                telling = (
                    0 if left * 2 > budget else branch.files // 3
                )  # files in the largest parts for which these are worth their words
                parts = _largest(branch, parts, left + branch.cost(self._what), self._what, telling)
                more = sum(part.cost(self._what) for part in parts) - branch.cost(self._what)
            if not parts:
                rows.append(branch)
                continue
            left -= more
            for part in parts:
                heappush(heap, (-part.files, next(order), part))
        rows.sort(key=lambda row: -row.files)
        words = [row.words(self._what) for row in rows]
        return "\n".join("; ".join(words[at : at + ABREAST]) for at in range(0, len(words), ABREAST)) if left >= 0 else ""

    @cached_property
    def _tree(self) -> "_Branch":
        """The folders below one another."""
        top = _Branch("")
        for folder, files, found in self._sums:
            branch = top
            at = 0
            branch.add(files, found)
            for _ in range(DEEPEST):
                at = _next(folder, at)
                if not at:
                    break
                branch = branch.below.setdefault(folder[:at], _Branch(folder[:at]))
                branch.add(files, found)
            branch.own_files += files
            branch.own_found += found
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


def _fair(folders: Sequence[Sequence[str]], counted: int, budget: int) -> list[int]:
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


def _next(folder: str, at: int) -> int:
    """Where the part of a folder's path that begins there ends, behind its separator; 0 after the last."""
    end = folder.find("/", at) + 1
    if "\\" not in folder:
        return end
    other = folder.find("\\", at) + 1
    return min(end, other) if end and other else end or other


def _largest(branch: "_Branch", parts: "Sequence[_Branch]", budget: int, what: str, telling: int) -> "list[_Branch]":
    """The largest parts of a folder that has too many, and the others together; none when these are few or hold less than `telling` files."""
    kept: list[_Branch] = []
    for part in sorted(parts, key=lambda part: -part.files):
        rest = _Branch(branch.folder, branch.files - sum(each.files for each in kept), branch.found, len(parts) - len(kept))
        if (budget := budget - part.cost(what)) < rest.cost(what):
            rest.found = branch.found - sum(each.found for each in kept)
            return [*kept, rest] if len(kept) >= FEWEST_PARTS and branch.files - rest.files >= telling else []
        kept.append(part)
    return kept


class _Branch:
    """A folder with all that lies below it, or some of the folders below one."""

    __slots__ = ("below", "files", "folder", "found", "others", "own_files", "own_found")

    def __init__(self, folder: str, files: int = 0, found: int = 0, others: int = 0) -> None:
        self.folder = folder
        self.others = others  # so many folders below it rather than the folder
        self.files = files
        self.found = found
        self.own_files = 0  # those in the folder itself
        self.own_found = 0
        self.below: dict[str, _Branch] = {}

    def add(self, files: int, found: int) -> None:
        """So many files more lie in it or below."""
        self.files += files
        self.found += found

    def parts(self) -> "list[_Branch]":
        """The folders below, and the files of its own; none when there is nothing below."""
        if not self.below:
            return []
        return [*([_Branch(self.folder, self.own_files, self.own_found)] if self.own_files else []), *self.below.values()]

    def words(self, what: str) -> str:
        """Its name with its counts."""
        folder = f"{self.folder} {plural(self.others, 'other folder')}," if self.others else self.folder
        return _counted(folder, self.files, self.found, what)

    def cost(self, what: str) -> int:
        """About how many tokens these weigh in a list."""
        return weight(self.words(what)) + NOTE // ABREAST


def _counted(folder: str, files: int, hits: int, what: str) -> str:
    found = f", {plural(hits, what)}" if hits else ""
    return f"{folder or './'} {plural(files, 'file')}{found}"


def _row(folder: str, names: str) -> str:
    return f"{folder}: {names}" if folder else names


def _words(names: Sequence[str], counts: Sequence[int]) -> str:
    if not counts:
        return ", ".join(names)
    return ", ".join(f"{name} {n:,}" for name, n in zip(names, counts, strict=False))


def _root(paths: Sequence[str]) -> str:
    """The folder that all paths share, when naming it once saves words."""
    if len(paths) < 2:
        return ""
    low, high = min(paths), max(paths)
    same = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    root, _ = parted(low[:same] + "x")
    return root if len(root) > 6 else ""
