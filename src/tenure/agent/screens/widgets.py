"""Widgets that several screens use: a list of any length, a text that is as tall as its words, a page to read."""

from collections.abc import Sequence
from typing import ClassVar, Final, Literal

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import VisualType
from textual.widgets import Label, Static

Tone = Literal["", "dim", "good", "warn", "bad", "mark"]
Cell = str | tuple[str, Tone]  # a harmless text; with a tone, where that is not its column's
_GAP: Final = 2
_LEAST: Final = 16  # cells of the column that takes what is left
_NARROWEST: Final = 8  # cells that a column gives way down to


class Column(Struct, frozen=True, gc=False):
    """A column; width 0 takes what the others leave. Hidden where the list is narrower than `above` cells."""

    title: str
    width: int = 0
    tone: Tone = ""
    right: bool = False
    above: int = 0


class ListRow(Struct, frozen=True, gc=False):
    """One cell per column. `key` says what the row stands for."""

    key: str
    cells: tuple[Cell, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The cells without their tones."""
        return tuple(cell if isinstance(cell, str) else cell[0] for cell in self.cells)


class RowList(ScrollView, can_focus=True):
    """Rows under a header, one of which is under the cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"rows--{name}" for name in ("head", "cursor", "dim", "good", "warn", "bad", "mark")}
    DEFAULT_CSS = """
    RowList {
        height: 1fr; background: $background; color: $foreground; scrollbar-size-vertical: 1; overflow-x: hidden;
        & .rows--head { color: $quiet; text-style: underline; }
        & .rows--cursor { background: $panel; }
        & .rows--dim { color: $quiet; }
        & .rows--good { color: $text-success; }
        & .rows--warn { color: $text-warning; }
        & .rows--bad { color: $text-error; }
        & .rows--mark { color: $text-accent; }
        &:focus .rows--cursor { background: $under-cursor; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "end(-1)", "First", show=False),
        Binding("end,G", "end(1)", "Last", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, rows: "RowList", key: str) -> None:
            super().__init__()
            self.rows, self.key = rows, key

    class Chosen(Moved):
        """Enter was pressed on a row."""

    def __init__(self, *columns: Column, id: str | None = None, empty: str = "nothing here") -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._columns, self._empty = columns, empty
        self._rows: Sequence[ListRow] = ()
        self._places: dict[str, int] = {}

    def show(self, rows: Sequence[ListRow]) -> None:
        """Put other rows in place; the cursor stays on its row where that is still there."""
        wanted = self.key
        self._rows = rows
        self._places = {row.key: n for n, row in enumerate(rows)}
        self.virtual_size = Size(0, len(rows) + 1)
        self.cursor = self._places.get(wanted, min(self.cursor, max(0, len(rows) - 1)))
        self.call_after_refresh(self._follow)
        self.refresh()
        self._post_moved()

    def go(self, key: str) -> None:
        """Put the cursor on a row, if it is there."""
        self.cursor = self._places.get(key, self.cursor)

    @property
    def key(self) -> str:
        """Of the row under the cursor; empty when there is none."""
        return self._rows[self.cursor].key if 0 <= self.cursor < len(self._rows) else ""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self._rows) - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        if before != now:
            self._follow()
            self.refresh()
            self._post_moved()

    def on_resize(self) -> None:
        self._follow()  # so does a list that was hidden before

    def _follow(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 2), animate=False, immediate=True)

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, by: int) -> None:
        self.cursor += by * max(1, self.size.height - 2)

    def action_end(self, way: int) -> None:
        self.cursor = 0 if way < 0 else len(self._rows) - 1

    def action_choose(self) -> None:
        if self.key:
            self.post_message(self.Chosen(self, self.key))

    def on_click(self, event: events.Click) -> None:
        place = event.y - 1 + self.scroll_offset.y
        if event.y > 0 and place < len(self._rows):
            self.cursor = place
            if event.chain == 2:
                self.action_choose()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y == 0:
            head = base + self.get_component_rich_style("rows--head", partial=True)
            return self._strip([(column.title, "") for column in self._columns], head, width)
        place = y - 1 + self.scroll_offset.y
        if place >= len(self._rows):
            text = self._empty if not self._rows and y == 1 else ""
            return Strip([Segment(set_cell_size(text, width), base + self._style("dim"))], width)
        if place == self.cursor:
            base += self.get_component_rich_style("rows--cursor", partial=True)
        return self._strip(self._rows[place].cells, base, width)

    def _post_moved(self) -> None:
        if self.key:
            self.post_message(self.Moved(self, self.key))

    def _style(self, tone: Tone) -> Style:
        return self.get_component_rich_style(f"rows--{tone}", partial=True) if tone else Style()

    def _strip(self, cells: Sequence[Cell], base: Style, width: int) -> Strip:
        segments: list[Segment] = []
        columns = [(n, column) for n, column in enumerate(self._columns) if width >= column.above]
        rooms = widths([column.width for _, column in columns], width)
        for (n, column), room in zip(columns, rooms, strict=True):
            cell = cells[n]
            text, tone = (cell, column.tone) if isinstance(cell, str) else cell
            gap = " " * _GAP if n != columns[-1][0] else ""
            segments.append(Segment(fitted(text, room, right=column.right) + gap, base + self._style(tone)))
        return Strip(segments).adjust_cell_length(width, base)


def widths(wanted: Sequence[int], width: int) -> list[int]:
    """Cells of every column: one that wants 0 gets what is left, and at least `_LEAST`, for which the widest others give way."""
    rooms = list(wanted)
    while 0 in wanted and (left := width - sum(rooms) - _GAP * (len(rooms) - 1)) < _LEAST and max(rooms) > _NARROWEST:
        rooms[rooms.index(max(rooms))] -= 1
    left = width - sum(rooms) - _GAP * (len(rooms) - 1)
    return [room or max(0, left) for room in rooms]


def fitted(text: str, room: int, *, right: bool = False) -> str:
    """A line in exactly so many cells."""
    wide = cell_len(text)
    if wide > room:
        return set_cell_size(text, room - 1) + "…" if room > 0 else ""
    return " " * (room - wide) + text if right else text + " " * (room - wide)


class MeasuredText(Static):
    """A `Static` that is measured anew whenever it changes.

    Textual (8.2) remembers a widget's height by a count that it raises once for all changes up to the widget's next idle moment. A second change, behind
    a layout that some other widget had asked for meanwhile, is then drawn in the height of the first, and stays so; likewise one while it is mounted.
    """

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        self._layout_updates += 1
        self.clear_cached_dimensions()
        super().update(content, layout=layout)


class TextPage(ModalScreen[None]):
    """A heading and a text; any of Escape, q and Enter closes it."""

    DEFAULT_CSS = """
    TextPage {
        align: center middle;
        #page { width: 100%; max-width: 120; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1; }
        #name { text-style: bold; margin: 0 0 1 0; }
        #leaf { height: auto; max-height: 100%; scrollbar-size-vertical: 1; background: $surface; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Close")]

    def __init__(self, heading: str, text: Content) -> None:
        super().__init__()
        self._heading, self._text = heading, text

    def compose(self) -> ComposeResult:
        with Vertical(id="page"):
            yield Label(f"{self._heading}  (Esc closes)", id="name", markup=False)
            with VerticalScroll(id="leaf"):
                yield Static(self._text)

    def on_mount(self) -> None:
        self.query_one("#leaf").focus()
