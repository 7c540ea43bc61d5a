"""Tables: markdown, psql and mysql boxes, aligned columns (ps, docker, kubectl), CSV and TSV.

Kept are the header with its rules, the first and the last rows, and the rows that differ: those that speak of an error where most do not,
and those with a rare value in a column that has few. Columns with few values are counted, so that a query's answer survives its rows.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct

from tenure.engine.clip.filling import NOTE_ABOUT, fitted, plural, runs
from tenure.engine.clip.naming import name_weight
from tenure.engine.clip.shape import Note, Piece, Shaped, weight
from tenure.engine.record.entry import Count

SAMPLE: Final = 300  # lines by which a table is recognised
FEWEST: Final = 8  # rows
SHARE: Final = 0.95  # of the sample's lines that must be rows
PREFACE: Final = 6  # lines over a header, at most
NAME_COLUMNS: Final = frozenset("name names package pod container id repository image".split())
NAMES: Final = 0.35  # of the room for names of what a command lists in wide rows
ALL_NAMES: Final = 0.6  # when that is enough for all
NARROW: Final = 5  # times heavier must a row be than its name
DIFFERING: Final = 0.4  # of the room for rows that differ
LAST: Final = 0.25  # of what is then left for the last rows; the first rows have the rest
RARE: Final = 0.02  # of the rows that hold a value, at most: then they differ
FEW: Final = 12  # values of a column that is counted
FEW_OF: Final = 4  # rows per value, at least, in a column that is counted
UNCOMMON: Final = 0.2  # of the rows that speak of an error, at most: then they differ
READ: Final = 8_000  # rows whose cells are compared; of more, every k-th: then counts of values are left out
LEFT: Final = 0.5  # of the cells of a column that begin below its title; else columns are parted at blanks
WIDE: Final = 24  # characters of a value that is counted; columns looked at
CELLS: Final = 40

_RULE: Final = re.compile(r"(?=.*?(?:--|==|[\u2500\u2501\u2550]{2}))[|+:\-=\u2500-\u257f\s]*+")
_COLUMN: Final = re.compile(r"-{3,}|={3,}|[\u2500\u2501\u2550]{3,}")
_BAR: Final = re.compile(r"[|\u2502\u2503\u2551]")
_WORD: Final = re.compile(r"[a-z]+")
_WIDE_BLANK: Final = re.compile(r"\s{2,}")  # between cells that the header does not part: dpkg's state and name
_FOOTER: Final = re.compile(r"\(?\d[\d,]* rows?\b.*|Query OK.*|Time: .*|Empty set.*", re.IGNORECASE)
FAULTS: Final = tuple(
    "error failed failure fatal panic exception crash timeout timed-out killed evicted unhealthy imagepull dead defunct denied refused "
    "invalid corrupt missing".split()
)
_NAME: Final = re.compile(r"[^\W\d][\w .,#%()/$\u20ac-]*[\w#%)$\u20ac]|[^\W\d]|#")
_TITLE: Final = re.compile(r"[A-Z%][A-Z0-9%_/()+.#-]*")


class Mode(Enum):
    """How a table was printed."""

    BARS = "cells between bars"
    ALIGNED = "aligned columns"
    COMMA = ","
    TAB = "\t"
    SEMICOLON = ";"


class Grid(Struct, frozen=True, kw_only=True):
    """A table, read: the lines of its frame, and its rows."""

    mode: Mode
    header: tuple[str, ...]
    starts: tuple[int, ...]  # of aligned columns
    above: tuple[int, ...]  # header, rules and what stands before them
    rows: tuple[int, ...]
    below: tuple[int, ...]  # rules, counts and what stands after the last row


class Table:
    """The frame, the first and last rows, and those that differ."""

    name = "table"

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether the lines are one table with a header."""
        return _mode(lines) is not None

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """Header, first rows, rows that differ, last rows; the notes between say how many rows are left out."""
        mode = _mode(lines)
        if mode is None:
            return None
        grid = _read(lines, mode)
        if len(grid.rows) < FEWEST:
            return None
        differing, values = _differing(lines, grid)
        pieces = fitted(lines, room, count, lambda budget: _rows(lines, grid, differing, values, budget))
        if pieces is None:
            return None
        return Shaped(pieces=pieces, why="first and last rows" + (", rows that differ" if differing else ""))


# Recognising -------------------------------------------------------------------------------------------------------------------------


def _mode(lines: Sequence[str]) -> Mode | None:
    first = _first(lines)
    sample = [line for line in lines[first : first + SAMPLE] if line and not line.isspace()]
    late = [line for line in lines[-SAMPLE:] if line and not line.isspace()] if len(lines) > SAMPLE else []
    if len(sample) < FEWEST + 1:
        return None
    checks = (
        (Mode.BARS, _barred),
        (Mode.TAB, _tabbed),
        (Mode.COMMA, _comma),
        (Mode.SEMICOLON, _semicolon),
        (Mode.ALIGNED, _aligned),
    )
    return next((mode for mode, holds in checks if holds(sample) and (len(late) < FEWEST or _goes_on(mode, sample, late))), None)


def _first(lines: Sequence[str]) -> int:
    """The line that a table begins with: a title or legend may stand over a header that has a rule of several columns below it."""
    for n, line in enumerate(lines[1 : PREFACE + 2], 1):
        if line and not line.isspace() and _is_rule(line) and lines[n - 1].strip() and len(_COLUMN.findall(line)) > 1:
            return n - 1
    return next((n for n, line in enumerate(lines) if line and not line.isspace()), 0)


def _barred(sample: Sequence[str]) -> bool:
    """A rule in the first lines, and the same number of bars in nearly all rows."""
    rules = sum(map(_is_rule, sample))
    if not any(_is_rule(line) for line in sample[:4]) or rules > max(
        4, len(sample) * 0.1
    ):  # rules all over: records of many lines
        return False
    bars = [len(_BAR.findall(line)) for line in sample if not _is_rule(line) and not _FOOTER.match(line)]
    if len(bars) < FEWEST:
        return False
    usual, often = Counter(bars).most_common(1)[0]
    return usual >= 1 and often >= (len(bars) - 2) * SHARE


def _is_rule(line: str) -> bool:
    return len(line) < 5_000 and _RULE.fullmatch(line) is not None


def _separated(sample: Sequence[str], sign: str, least: int) -> bool:
    """The same number of cells in nearly all rows, and a header whose cells are names."""
    header = _cells_of(sample[0], sign)
    if len(header) < least or len(header) > 2_000 or not all(_is_name(cell) for cell in header) or len(set(header)) < len(header):
        return False
    rows = [_cells_of(line, sign) for line in sample[1:]]
    good = [row for row in rows if len(row) == len(header)]
    return len(good) >= len(rows) * SHARE and not any(row[0] == header[0] for row in good)


def _is_name(cell: str) -> bool:
    """Whether a header's cell names a column: words without quotes, braces or a path's separators."""
    cell = cell.strip()
    return (
        len(cell) <= 60
        and _NAME.fullmatch(cell) is not None
        and cell.count(" ") <= 4
        and cell.count("/") <= 1
        and cell.count("(") == cell.count(")")
    )


def _tabbed(sample: Sequence[str]) -> bool:
    return _separated(sample, "\t", 2)


def _comma(sample: Sequence[str]) -> bool:
    return _separated(sample, ",", 3)


def _semicolon(sample: Sequence[str]) -> bool:
    return _separated(sample, ";", 3)


def _aligned(sample: Sequence[str]) -> bool:
    """A header of capitals, or one with a rule below, whose columns the rows keep to."""
    header = sample[0]
    if len(header) > 2_000 or (header[0].isspace() and not _TITLE.match(header.lstrip())):
        return False
    starts = _starts(header)
    ruled = _is_rule(sample[1]) and len(_COLUMN.findall(sample[1])) > 1 and len(starts) >= 2
    if not ruled and (len(header.split()) < 3 or not _capitals(header)):
        return False
    rows = sample[2:] if ruled else sample[1:]
    if len(starts) >= 3 or ruled:
        kept = sum(1 for line in rows if _keeps(line, starts))
        if kept >= len(rows) * 0.9:
            return True
    words = len(header.split())
    return not ruled and sum(1 for line in rows if len(line.split(None, words)) >= words) >= len(rows) * SHARE


def _capitals(header: str) -> bool:
    words = header.split()
    return sum(1 for word in words if _TITLE.fullmatch(word)) >= len(words) * 0.8


def _starts(header: str) -> tuple[int, ...]:
    """Where columns begin: after two blanks or more."""
    found = [match.start() for match in re.finditer(r"(?:^|(?<=\s\s)|(?<=\t))\S", header)]
    return tuple(found)


def _keeps(line: str, starts: Sequence[int]) -> bool:
    """Whether a blank stands before each column's beginning, and something at all but a few of them."""
    inside = [at for at in starts[1:] if at < len(line)]
    return len(line) > starts[min(1, len(starts) - 1)] and all(line[at - 1].isspace() for at in inside)


def _goes_on(mode: Mode, sample: Sequence[str], late: Sequence[str]) -> bool:
    """Whether the end of the text is rows of the same table."""
    match mode:
        case Mode.BARS:
            usual = Counter(len(_BAR.findall(line)) for line in sample if not _is_rule(line)).most_common(1)[0][0]
            good = sum(1 for line in late if _is_rule(line) or len(_BAR.findall(line)) == usual)
        case Mode.ALIGNED:
            words = len(sample[0].split())
            starts = _starts(sample[0])
            good = sum(1 for line in late if _keeps(line, starts) or len(line.split(None, words)) >= words)
        case _:
            cells = len(_cells_of(sample[0], mode.value))
            good = sum(1 for line in late if len(_cells_of(line, mode.value)) == cells)
    return good >= (len(late) - 2) * SHARE


# Reading -----------------------------------------------------------------------------------------------------------------------------


def _read(lines: Sequence[str], mode: Mode) -> Grid:
    first = _first(lines)
    above = list(range(first + 1))
    body = first + 1
    if mode is Mode.BARS:
        rule = next((n for n in range(first, min(first + 8, len(lines))) if _is_rule(lines[n])), first)
        if rule == first:  # a box: rule, header, rule
            rule = next((n for n in range(first + 1, min(first + 8, len(lines))) if _is_rule(lines[n])), first)
        above = list(range(rule + 1))
        body = rule + 1
    elif mode is Mode.ALIGNED and body < len(lines) and _is_rule(lines[body]):
        above.append(body)
        body += 1
    last = len(lines)
    below: list[int] = []
    while last > body and len(below) < 4:
        line = lines[last - 1]
        if line and not line.isspace() and not (mode is Mode.BARS and _is_rule(line)) and not _FOOTER.match(line):
            break
        below.append(last - 1)
        last -= 1
    rows = [n for n in range(body, last) if lines[n]]
    named = next((lines[n] for n in above if n >= first and not _is_rule(lines[n])), "")
    starts = _starts(named) if mode is Mode.ALIGNED else ()
    if len(starts) < 3 or not _left(lines, rows[:SAMPLE], starts):
        starts = ()
    header = _cells(named, mode, starts, len(named.split()))
    return Grid(
        mode=mode, header=tuple(header), starts=starts, above=tuple(above), rows=tuple(rows), below=tuple(reversed(below))
    )


def _left(lines: Sequence[str], rows: Sequence[int], starts: Sequence[int]) -> bool:
    """Whether cells begin below their titles, as those of numbers in `ps` do not."""
    begun = (sum(1 for n in rows if lines[n][at : at + 1].strip() and not lines[n][at - 1 : at].strip()) for at in starts[1:])
    return all(cells >= len(rows) * LEFT for cells in begun)


def _cells(line: str, mode: Mode, starts: Sequence[int], words: int) -> Sequence[str]:
    match mode:
        case Mode.BARS:
            return [cell.strip() for cell in _BAR.split(line)]
        case Mode.ALIGNED:
            if starts:
                ends = (*starts[1:], len(line))
                return [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
            return line.split(None, max(words - 1, 0))
        case _:
            return _cells_of(line, mode.value)


def _cells_of(line: str, sign: str) -> Sequence[str]:
    if '"' not in line:
        return line.split(sign)
    try:
        return next(csv.reader((line,), delimiter=sign), [line])
    except csv.Error:  # a cell beyond the module's limit
        return line.split(sign)


def _differing(lines: Sequence[str], grid: Grid) -> tuple[list[int], list[str]]:
    """Rows that differ from most, the most telling first, and the counted columns in words."""
    step = max(-(-len(grid.rows) // READ), 1)
    read = grid.rows[::step]
    limit = max(int(len(read) * RARE), 1)
    faults = _faulty(lines, grid.rows)
    telling = dict.fromkeys(faults) if len(faults) <= len(grid.rows) * UNCOMMON else {}
    cells = [_cells(lines[n][:2_000], grid.mode, grid.starts, len(grid.header)) for n in read]
    width = min(len(grid.header), CELLS)
    rare: dict[int, None] = {}
    words: list[str] = []
    for column in range(width):
        values = Counter(row[column] for row in cells if len(row) > column)
        if len(values) < 2 or len(values) > max(FEW, limit) or len(values) * FEW_OF > len(read):
            continue
        odd = {value for value, n in values.items() if n <= limit}
        if odd and sum(values[value] for value in odd) <= limit * 3:
            rare |= dict.fromkeys(n for n, row in zip(read, cells, strict=True) if len(row) > column and row[column] in odd)
        if step == 1 and len(values) <= FEW and all(len(value) <= WIDE for value in values):
            words.append(_counted(grid.header[column], values))
    return list(telling | rare), words


def _faulty(lines: Sequence[str], rows: Sequence[int]) -> list[int]:
    """Rows with a word for a fault at a word's beginning, found in one text because most rows have none."""
    text = "\n".join([lines[n] for n in rows]).lower()
    places: list[int] = []
    for word in FAULTS:
        at = text.find(word)
        while at >= 0:
            if not (at and text[at - 1].isalpha()):
                places.append(at)
            at = text.find(word, at + len(word))
    places.sort()
    found: dict[int, None] = {}
    before = row = 0
    for at in places:
        row += text.count("\n", before, at)
        before = at
        found[rows[row]] = None
    return list(found)


def _counted(name: str, values: Counter[str]) -> str:
    return f"{name.strip() or 'unnamed'}: " + ", ".join(f"{value.strip() or 'empty'} {n:,}" for value, n in values.most_common())


# Choosing ----------------------------------------------------------------------------------------------------------------------------


def _rows(lines: Sequence[str], grid: Grid, differing: Sequence[int], values: Sequence[str], budget: int) -> tuple[Piece, ...]:
    kept = {*grid.above, *(n for n in grid.below if lines[n])}
    left = budget - sum(weight(lines[n]) for n in kept) - 3 * (NOTE_ABOUT + 8)
    if left <= 0:
        return ()
    told: list[str] = []
    for words in values:
        if weight(words) <= left // 10:
            told.append(words)
            left -= weight(words)
    names = _named(lines, grid, left)
    left -= sum(map(weight, names))
    spare = int(left * DIFFERING)
    for n in differing:
        cost = weight(lines[n]) + NOTE_ABOUT + 6
        if cost <= spare and n not in kept:
            spare -= cost
            left -= cost
            kept.add(n)
    left -= _taken(lines, reversed(grid.rows), kept, int(left * LAST))
    _taken(lines, grid.rows, kept, left)
    out = sum(1 for n in grid.rows if n not in kept)
    if out == len(grid.rows):
        return ()
    told += names
    pieces = runs(sorted(kept))
    return (
        (Note("\n".join((f"{plural(len(grid.rows), 'row')} in all, {out:,} left out", *told))), *pieces) if out else tuple(pieces)
    )


def _named(lines: Sequence[str], grid: Grid, budget: int) -> list[str]:
    """The names of all rows, where these are much shorter than the rows; as many as fit."""
    column = next(
        (
            at
            for at, name in enumerate(grid.header)
            if _WORD.findall(name.lower())[-1:] and _WORD.findall(name.lower())[-1] in NAME_COLUMNS
        ),
        -1,
    )
    if column < 0 or grid.mode is not Mode.ALIGNED or len(grid.rows) > READ:
        return []
    cells = (_cells(lines[n][:2_000], grid.mode, grid.starts, len(grid.header)) for n in grid.rows)
    names = [_WIDE_BLANK.split(row[column].strip())[-1] for row in cells if len(row) > column]
    costs = [name_weight(name) for name in names]
    if sum(costs) * NARROW > sum(weight(lines[n]) for n in grid.rows) or len(set(names)) * 2 < len(names):
        return []
    left = int(budget * (ALL_NAMES if sum(costs) <= budget * ALL_NAMES else NAMES))
    taken = 0
    while taken < len(names) and (left := left - costs[taken]) > 0:
        taken += 1
    more = f", and {len(names) - taken:,} more" if taken < len(names) else ""
    return [f"names: {', '.join(names[:taken])}{more}"] if taken else []


def _taken(lines: Sequence[str], rows: Iterable[int], kept: set[int], budget: int) -> int:
    """What the next rows weigh, as many as fit; they are added to those kept."""
    used = 0
    for n in rows:
        if n in kept:
            continue
        cost = weight(lines[n])
        if used + cost > budget:
            break
        used += cost
        kept.add(n)
    return used
