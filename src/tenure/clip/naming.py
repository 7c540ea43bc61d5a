"""Many paths in few words: by folder, counts exact. Promise: nothing is named that is not there, and the numbers add up."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tenure.clip.filling import NOTE, plural
from tenure.clip.shape import weight

ABREAST: Final = 4  # folders with their counts on a line
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
        self._depths: dict[int, tuple[list[str], int]] = {}

    def every(self) -> str:
        """All paths, named."""
        rows = [_row(folder, _words(some, self._counts[folder])) for folder, some in self._names.items()]
        return self._below("\n".join(rows))

    def within(self, budget: int) -> Named | None:
        """All paths in about `budget` of estimated weight, in the order of their folders.

        When that is too little, the first names of each folder and the count of the others; when that is, folders with counts,
        from as deep as fits; when even that is, the largest of those. None only when nothing fits.
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
        """Folders with counts, from as deep as fits."""
        low, high = 1, min(max((folder.count("/") + folder.count("\\") for folder in self._names), default=0), DEEPEST)
        while low < high:
            depth = (low + high + 1) // 2
            if self._at(depth)[1] <= budget:
                low = depth
            else:
                high = depth - 1
        return _first(self._at(low)[0], budget)

    def _at(self, depth: int) -> tuple[list[str], int]:
        """Folders of at most that depth in words, the largest first, and what they weigh."""
        if (known := self._depths.get(depth)) is not None:
            return known
        files: Counter[str] = Counter()
        found: Counter[str] = Counter()
        for folder, n, hits in self._sums:
            cut = _upper(folder, depth)
            files[cut] += n
            found[cut] += hits
        rows = [_counted(folder, n, found[folder], self._what) for folder, n in files.most_common()]
        self._depths[depth] = rows, sum(map(weight, rows)) + NOTE * (len(rows) // ABREAST + 1)
        return self._depths[depth]

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


def _upper(folder: str, depth: int) -> str:
    """A folder's first `depth` parts."""
    if "\\" in folder:
        at = [n for n, sign in enumerate(folder) if sign in "/\\"]
        return folder[: at[depth - 1] + 1] if len(at) > depth else folder
    parts = folder.split("/", depth)
    return folder[: len(folder) - len(parts[-1])] if len(parts) > depth else folder


def _first(rows: list[str], budget: int) -> str:
    """Rows as far as they fit, several on a line: each line of a note has its price."""
    left = budget - 10
    taken = 0
    for at, row in enumerate(rows):
        left -= weight(row) + NOTE * (at % ABREAST == 0)
        if left < 0:
            break
        taken += 1
    if not taken:
        return ""
    lines = ["; ".join(rows[at : min(at + ABREAST, taken)]) for at in range(0, taken, ABREAST)]
    return "\n".join([*lines, *([f"and {plural(len(rows) - taken, 'more folder')}"] if taken < len(rows) else [])])


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
    return root if len(root) > 12 else ""
