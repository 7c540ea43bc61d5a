"""Tables: markdown, psql and mysql boxes, aligned columns (ps, docker, kubectl), CSV and TSV.

Kept are the header with its rules, the first and the last rows, and the rows that differ: those that speak of an error where most do not,
and those with a rare value in a column that has few. Columns with few values are counted, so that a query's answer survives its rows.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from tenure.engine.clip.naming import first_names, name_weight
from tenure.engine.clip.shape import NOTE_ABOUT, Note, Piece, Shaped, fitted, plural, ranges, take_first, weight
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


SEPARATORS: Final = ("|", "\t", ",", ";", "")  # in the order they are tried; the empty one parts aligned columns


class Grid(Struct, frozen=True, kw_only=True):
    """A table, read: the lines of its frame, and its rows."""

    separator: str
    header: tuple[str, ...]
    starts: tuple[int, ...]  # of aligned columns
    above: tuple[int, ...]  # header, rules and what stands before them
    rows: tuple[int, ...]
    below: tuple[int, ...]  # rules, counts and what stands after the last row

    def cells(self, line: str) -> Sequence[str]:
        """The cells of a row."""
        return _cells(line[:2_000], self.separator, self.starts, len(self.header))


def fits(lines: Sequence[str]) -> bool:
    """Whether the lines are one table with a header."""
    return _separator(lines) is not None


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """Header, first rows, rows that differ, last rows; the note at the top says how many rows are left out."""
    separator = _separator(lines)
    grid = _read(lines, separator) if separator is not None else None
    if grid is None or len(grid.rows) < FEWEST:
        return None
    differing, values = _differing(lines, grid)
    pieces = fitted(lines, room, count, partial(_pieces, lines, grid, differing, values))
    why = "first and last rows" + (", rows that differ" if differing else "")
    return Shaped(pieces=pieces, why=why) if pieces else None


# Recognising


def _separator(lines: Sequence[str]) -> str | None:
    """What parts the cells of the table that the lines are; None when they are none."""
    first = _first(lines)
    sample = [line for line in lines[first : first + SAMPLE] if line and not line.isspace()]
    late = [line for line in lines[-SAMPLE:] if line and not line.isspace()] if len(lines) > SAMPLE else []
    if len(sample) < FEWEST + 1:
        return None
    for separator in SEPARATORS:
        if _is_table(sample, separator) and (len(late) < FEWEST or _goes_on(separator, sample, late)):
            return separator
    return None


def _first(lines: Sequence[str]) -> int:
    """The line that a table begins with: a title or legend may stand over a header that has a rule of several columns below it."""
    for n, line in enumerate(lines[1 : PREFACE + 2], 1):
        if line.strip() and lines[n - 1].strip() and _is_columned_rule(line):
            return n - 1
    return next((n for n, line in enumerate(lines) if line and not line.isspace()), 0)


def _is_rule(line: str) -> bool:
    return len(line) < 5_000 and _RULE.fullmatch(line) is not None


def _is_columned_rule(line: str) -> bool:
    return _is_rule(line) and len(_COLUMN.findall(line)) > 1


def _is_table(sample: Sequence[str], separator: str) -> bool:
    match separator:
        case "|":
            return _is_barred(sample)
        case "":
            return _is_aligned(sample)
        case _:
            return _is_separated(sample, separator, 2 if separator == "\t" else 3)


def _is_barred(sample: Sequence[str]) -> bool:
    """A rule in the first lines, and the same number of bars in nearly all rows; rules all over part records of many lines."""
    if not any(map(_is_rule, sample[:4])) or sum(map(_is_rule, sample)) > max(4, len(sample) * 0.1):
        return False
    bars = [len(_BAR.findall(line)) for line in sample if not _is_rule(line) and not _FOOTER.match(line)]
    usual, often = Counter(bars).most_common(1)[0] if bars else (0, 0)
    return len(bars) >= FEWEST and usual >= 1 and often >= (len(bars) - 2) * SHARE


def _is_separated(sample: Sequence[str], separator: str, least: int) -> bool:
    """The same number of cells in nearly all rows, and a header whose cells are names."""
    header = _separated(sample[0], separator)
    if not least <= len(header) <= 2_000 or not all(map(_is_name, header)) or len(set(header)) < len(header):
        return False
    rows = [_separated(line, separator) for line in sample[1:]]
    good = [row for row in rows if len(row) == len(header)]
    return len(good) >= len(rows) * SHARE and not any(row[0] == header[0] for row in good)


def _is_name(cell: str) -> bool:
    """Whether a header's cell names a column: words without quotes, braces or a path's separators."""
    cell = cell.strip()
    few = len(cell) <= 60 and cell.count(" ") <= 4 and cell.count("/") <= 1
    return few and _NAME.fullmatch(cell) is not None and cell.count("(") == cell.count(")")


def _is_aligned(sample: Sequence[str]) -> bool:
    """A header of capitals, or one with a rule below, whose columns the rows keep to."""
    header = sample[0]
    words = header.split()
    if len(header) > 2_000 or (header[0].isspace() and not _TITLE.match(header.lstrip())):
        return False
    starts = _starts(header)
    if len(starts) >= 2 and _is_columned_rule(sample[1]):
        rows = sample[2:]
        return sum(1 for line in rows if _keeps(line, starts)) >= len(rows) * 0.9
    if len(words) < 3 or sum(1 for word in words if _TITLE.fullmatch(word)) < len(words) * 0.8:
        return False
    rows = sample[1:]
    if len(starts) >= 3 and sum(1 for line in rows if _keeps(line, starts)) >= len(rows) * 0.9:
        return True
    return sum(1 for line in rows if len(line.split(None, len(words))) >= len(words)) >= len(rows) * SHARE


def _starts(header: str) -> tuple[int, ...]:
    """Where columns begin: after two blanks or more."""
    return tuple(match.start() for match in re.finditer(r"(?:^|(?<=\s\s)|(?<=\t))\S", header))


def _keeps(line: str, starts: Sequence[int]) -> bool:
    """Whether a blank stands before each column's beginning, and something at all but a few of them."""
    return len(line) > starts[min(1, len(starts) - 1)] and all(line[at - 1].isspace() for at in starts[1:] if at < len(line))


def _goes_on(separator: str, sample: Sequence[str], late: Sequence[str]) -> bool:
    """Whether the end of the text is rows of the same table."""
    if separator == "|":
        usual = Counter(len(_BAR.findall(line)) for line in sample if not _is_rule(line)).most_common(1)[0][0]
        good = sum(1 for line in late if _is_rule(line) or len(_BAR.findall(line)) == usual)
    elif separator:
        cells = len(_separated(sample[0], separator))
        good = sum(1 for line in late if len(_separated(line, separator)) == cells)
    else:
        words, starts = len(sample[0].split()), _starts(sample[0])
        good = sum(1 for line in late if _keeps(line, starts) or len(line.split(None, words)) >= words)
    return good >= (len(late) - 2) * SHARE


# Reading


def _read(lines: Sequence[str], separator: str) -> Grid:
    first = _first(lines)
    body = first + 1
    if separator == "|":  # a rule below the header, or a box: rule, header, rule
        body = next((n for n in range(first + 1, min(first + 8, len(lines))) if _is_rule(lines[n])), first) + 1
    elif not separator and body < len(lines) and _is_rule(lines[body]):
        body += 1
    last = len(lines)
    while last > body and len(lines) - last < 4:
        line = lines[last - 1]
        if line and not line.isspace() and not (separator == "|" and _is_rule(line)) and not _FOOTER.match(line):
            break
        last -= 1
    rows = [n for n in range(body, last) if lines[n]]
    named = next((lines[n] for n in range(first, body) if not _is_rule(lines[n])), "")
    starts = () if separator else _starts(named)
    if len(starts) < 3 or not _is_left_aligned(lines, rows[:SAMPLE], starts):
        starts = ()
    return Grid(
        separator=separator,
        header=tuple(_cells(named, separator, starts, len(named.split()))),
        starts=starts,
        above=tuple(range(body)),
        rows=tuple(rows),
        below=tuple(range(last, len(lines))),
    )


def _is_left_aligned(lines: Sequence[str], rows: Sequence[int], starts: Sequence[int]) -> bool:
    """Whether cells begin below their titles, as those of numbers in `ps` do not."""
    begun = (sum(1 for n in rows if lines[n][at : at + 1].strip() and not lines[n][at - 1 : at].strip()) for at in starts[1:])
    return all(cells >= len(rows) * LEFT for cells in begun)


def _cells(line: str, separator: str, starts: Sequence[int], words: int) -> Sequence[str]:
    if separator == "|":
        return [cell.strip() for cell in _BAR.split(line)]
    if separator:
        return _separated(line, separator)
    if starts:
        return [line[start:end].strip() for start, end in zip(starts, (*starts[1:], len(line)), strict=True)]
    return line.split(None, max(words - 1, 0))


def _separated(line: str, separator: str) -> Sequence[str]:
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader((line,), delimiter=separator), [line])
    except csv.Error:  # a cell beyond the module's limit
        return line.split(separator)


def _differing(lines: Sequence[str], grid: Grid) -> tuple[list[int], list[str]]:
    """Rows that differ from most, the most telling first, and the counted columns in words."""
    step = max(-(-len(grid.rows) // READ), 1)
    read = grid.rows[::step]
    limit = max(int(len(read) * RARE), 1)
    faults = _faulty(lines, grid.rows)
    differing = dict.fromkeys(faults if len(faults) <= len(grid.rows) * UNCOMMON else ())
    cells = [grid.cells(lines[n]) for n in read]
    words: list[str] = []
    for column, name in enumerate(grid.header[:CELLS]):
        values = Counter(row[column] for row in cells if len(row) > column)
        if len(values) < 2 or len(values) > max(FEW, limit) or len(values) * FEW_OF > len(read):
            continue
        odd = {value for value, n in values.items() if n <= limit}
        if odd and sum(values[value] for value in odd) <= limit * 3:
            differing |= dict.fromkeys(n for n, row in zip(read, cells, strict=True) if len(row) > column and row[column] in odd)
        if step == 1 and len(values) <= FEW and all(len(value) <= WIDE for value in values):
            counts = ", ".join(f"{value.strip() or 'empty'} {n:,}" for value, n in values.most_common())
            words.append(f"{name.strip() or 'unnamed'}: {counts}")
    return list(differing), words


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
    faulty: dict[int, None] = {}
    before = row = 0
    for at in sorted(places):
        row += text.count("\n", before, at)
        before = at
        faulty[rows[row]] = None
    return list(faulty)


# Choosing


def _pieces(lines: Sequence[str], grid: Grid, differing: Sequence[int], values: Sequence[str], budget: int) -> tuple[Piece, ...]:
    kept = {*grid.above, *(n for n in grid.below if lines[n])}
    left = budget - sum(weight(lines[n]) for n in kept) - 3 * (NOTE_ABOUT + 8)
    if left <= 0:
        return ()
    words: list[str] = []
    for each in values:
        if weight(each) <= left // 10:
            words.append(each)
            left -= weight(each)
    names = _names(lines, grid, left)
    left -= sum(map(weight, names))
    spare = int(left * DIFFERING)
    for n in differing:
        cost = weight(lines[n]) + NOTE_ABOUT + 6
        if cost <= spare and n not in kept:
            spare -= cost
            left -= cost
            kept.add(n)
    left -= take_first(lines, reversed(grid.rows), kept, int(left * LAST))
    take_first(lines, grid.rows, kept, left)
    out = sum(1 for n in grid.rows if n not in kept)
    if out == len(grid.rows):
        return ()
    summary = Note("\n".join((f"{plural(len(grid.rows), 'row')} in all, {out:,} left out", *words, *names)))
    return (*((summary,) if out else ()), *ranges(kept))


def _names(lines: Sequence[str], grid: Grid, budget: int) -> list[str]:
    """The names of all rows, where these are much shorter than the rows; as many as fit."""
    last_words = [_WORD.findall(name.lower())[-1:] for name in grid.header]
    column = next((at for at, word in enumerate(last_words) if NAME_COLUMNS.issuperset(word) and word), -1)
    if column < 0 or grid.separator or len(grid.rows) > READ:
        return []
    cells = (grid.cells(lines[n]) for n in grid.rows)
    names = [_WIDE_BLANK.split(row[column].strip())[-1] for row in cells if len(row) > column]
    costs = [name_weight(name) for name in names]
    if sum(costs) * NARROW > sum(weight(lines[n]) for n in grid.rows) or len(set(names)) * 2 < len(names):
        return []
    share = ALL_NAMES if sum(costs) <= budget * ALL_NAMES else NAMES
    text, taken = first_names(names, costs, int(budget * share))
    return [f"names: {text}"] if taken else []
