"""Tables that can be sorted, folded and read without a script."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tenure.lab.audit.page.markup import Html, el, join, line

FOLDED: Final = 12  # rows that are shown at first where a script can show the rest
_LONG: Final = 40  # characters of a cell that may be cut off where the page is narrow
_PATH: Final = 60


class Column(Struct, frozen=True, kw_only=True):
    """A column's heading, and how its cells are set."""

    name: str
    class_: str = ""
    sort: str = ""  # "ascending" or "descending": how the rows stand to begin with
    swatch: str = ""  # the class of what the column's figures are drawn as


class Cell(Struct, frozen=True, kw_only=True):
    """A cell: what it shows, and what it is sorted by."""

    shown: Html
    value: str = ""
    class_: str = ""
    title: str | None = None
    is_name: bool = False  # names its row


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    ids: Sequence[str] = (),
    fold: bool = True,
    title: bool = False,
) -> Html:
    """A table in a box that scrolls sideways where it must. `ids` name the rows in links; without `title` the caption is only heard."""
    head = el("tr", *(_heading(column) for column in columns))
    body = [
        el("tr", *(_cell(cell, column) for cell, column in zip(row, columns, strict=True)), id=ids[n] if ids else None)
        for n, row in enumerate(rows)
    ]
    folds = fold and len(rows) > FOLDED + 3
    drawn = el(
        "table",
        el("caption", caption, class_=None if title else "heard"),
        el("thead", head),
        el("tbody", *body),
        class_="sortable foldable" if folds else "sortable",
    )
    more = el("button", f"Show all {len(rows):,}", type="button", class_="more js") if folds else None
    return el("div", el("div", drawn, class_="scroll"), more, class_="table")


def text(value: str, limit: int = 120, *, mono: bool = False, name: bool = False) -> Cell:
    """Words, in one line."""
    shown = line(value, limit)
    return Cell(
        shown=el("span", shown, class_="clip mono" if mono else "clip", title=shown if len(shown) > _LONG else None),
        value="",
        is_name=name,
    )


def path(value: str, limit: int = _PATH) -> Cell:
    """A path or a command, in one line of at most `limit` characters: what is longer is cut in its middle."""
    shown = line(value, 4 * limit)
    short = shown if len(shown) <= limit else f"{shown[: limit // 3]}…{shown[-(limit - limit // 3) :]}"
    return Cell(shown=el("span", short, class_="clip mono", title=shown if len(shown) > _LONG else None), is_name=True)


def figure(shown: str, value: float, under: str = "") -> Cell:
    """A number, and perhaps another one in small beneath it."""
    lower = el("small", under) if under else None
    return Cell(shown=join([shown, lower]), value=f"{value:.6g}", class_="n")


def _heading(column: Column) -> Html:
    swatch = el("i", class_=f"swatch {column.swatch}", aria_hidden="true") if column.swatch else None
    return el("th", swatch, column.name, scope="col", class_=column.class_ or None, aria_sort=column.sort or None)


def _cell(cell: Cell, column: Column) -> Html:
    class_ = " ".join(dict.fromkeys([*cell.class_.split(), *column.class_.split()])) or None
    value = cell.value or None
    if cell.is_name:
        return el("th", cell.shown, scope="row", class_=class_, data_v=value)
    return el("td", cell.shown, class_=class_, data_v=value)
