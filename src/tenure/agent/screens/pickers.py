"""Choosing a session or a model from a list that is narrowed by typing."""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from tenure.agent.access import Available
from tenure.agent.catalogue import EXAMPLES, listed
from tenure.agent.screens import clean
from tenure.agent.screens.widgets import Column, ListRow, RowList
from tenure.engine.meter import figures
from tenure.engine.meter.price import prices_for
from tenure.engine.record.entry import Origin, Role
from tenure.errors import Damaged, StoreError
from tenure.models.hosts import NAMED
from tenure.store.records import Conversation, Records

NEW: Final = "new"
NOTHING_FOUND: Final = "No key found: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local server"
SESSIONS: Final = (
    Column(title="session", width=8),
    Column(title="begun", width=16, above=56),
    Column(title="entries", width=7, right=True),
    Column(title="model", width=20, above=90),
    Column(title="about"),
)
MODELS: Final = (
    Column(title="model"),
    Column(title="window", width=6, right=True),
    Column(title="in $/M", width=7, right=True, above=50),
    Column(title="out $/M", width=7, right=True, above=60),
    Column(title="here", width=7, above=40),
)
_OPENING: Final = 6  # entries in which a person's first words are looked for
_SHOWN: Final = 200  # sessions


class Picker(ModalScreen[str]):
    """Rows, and words that narrow them. Dismissed with the key of a row, what was typed where nothing fits, or an empty text."""

    DEFAULT_CSS = """
    Picker {
        align: center middle;
        #box { width: 100%; max-width: 110; height: 80%; background: $surface; border: round $primary; padding: 0 1; }
        #heading { text-style: bold; width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
        #narrow { border: none; height: 1; padding: 0; margin: 0 0 1 0; background: $panel; }
        RowList { background: $surface; }
        RowList .rows--cursor { background: $under-cursor; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss('')", "Close"),
        Binding("down", "row(1)", "Down", show=False),  # no priority: it would overtake letters that wait
        Binding("up", "row(-1)", "Up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
    ]

    def __init__(
        self, heading: str, columns: Sequence[Column], rows: Callable[[], Sequence[ListRow]], *, free: bool = False
    ) -> None:
        """`free`: what was typed counts where no row fits it."""
        super().__init__()
        self._heading, self._columns, self._source, self._free = heading, columns, rows, free
        self._every: Sequence[ListRow] = ()

    def compose(self) -> ComposeResult:
        """Heading, words, rows."""
        with Vertical(id="box"):
            yield Label(self._heading, id="heading", markup=False)
            yield Input(id="narrow", placeholder="type to narrow", compact=True)
            yield RowList(
                *self._columns, id="choices", empty="nothing fits; Enter takes what is typed" if self._free else "nothing fits"
            )

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one("#narrow", Input).cursor_blink = False
        self._every = self._source()
        self._rows.show(self._every)
        self.query_one("#narrow").focus()

    @on(Input.Changed, "#narrow")
    def _narrowed(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        self._rows.show([row for row in self._every if _fits(row, words)])
        self._rows.action_end(-1)

    @on(Input.Submitted, "#narrow")
    def _taken(self, event: Input.Submitted) -> None:
        self.dismiss(self._rows.key or (event.value.strip() if self._free else ""))

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        self.dismiss(event.key)

    @property
    def rows(self) -> Sequence[ListRow]:
        """All there is to choose from."""
        return self._every

    def action_row(self, by: int) -> None:
        """Another row, while one types."""
        self._rows.action_move(by)

    def action_page(self, by: int) -> None:
        """A page of rows, while one types."""
        self._rows.action_page(by)

    @property
    def _rows(self) -> RowList:
        return self.query_one("#choices", RowList)


def _fits(row: ListRow, words: Sequence[str]) -> bool:
    text = " ".join((row.key, *row.cells)).casefold()
    return all(word in text for word in words)


def session_picker(store: Records, folder: str) -> Picker:
    """The sessions of a folder, newest first, and a new one."""
    return Picker("Sessions of this folder", SESSIONS, lambda: list(_sessions(store, folder)))


def model_picker(found: Sequence[Available]) -> Picker:
    """The models that were found here, then those of the price list; another may be typed."""
    others = [each.spec for each in found if each.spec.endswith(":NAME")]
    heading = "Models: type a name, or " + ", ".join(others or EXAMPLES) if found else NOTHING_FOUND
    return Picker(heading, MODELS, lambda: list(_models(found)), free=True)


def _sessions(store: Records, folder: str) -> Iterator[ListRow]:
    yield ListRow(key=NEW, cells=("new", "", "", "", "begin afresh"), tones=("mark", "", "", "", "mark"))
    held = [sheet for sheet in store.conversations(folder) if sheet.length and not sheet.is_part]
    for sheet in held[:_SHOWN]:
        when = sheet.created[:16].replace("T", " ")
        cells = (sheet.id[:8], when, f"{sheet.length:,}", clean.line(sheet.model, 40), title_of(store, sheet))
        yield ListRow(key=sheet.id, cells=cells, tones=("mark", "dim", "dim", "dim", ""))


def title_of(store: Records, sheet: Conversation) -> str:
    """A session's title: its own, or the first words of its person; of one that is damaged, what is wrong."""
    if sheet.title:
        return clean.line(sheet.title, 120)
    try:
        for entry in store.entries(sheet.id, 0, _OPENING):
            for block in entry.blocks:
                if entry.role is Role.USER and block.origin is Origin.HUMAN and block.text.strip():
                    return clean.line(block.text, 120)
    except StoreError as error:
        return clean.line(f"damaged: {error.what if isinstance(error, Damaged) else error}", 120)
    return "(no words yet)"


def _models(found: Sequence[Available]) -> Iterator[ListRow]:
    for each in found:
        if NAMED[each.service].is_local:
            yield ListRow(key=each.spec, cells=(clean.line(each.spec, 60), "", "", "", "running"), tones=("", "", "", "", "mark"))
    ready = {each.service for each in found}
    for each in sorted(listed(), key=lambda model: model.provider not in ready):
        prices = prices_for(each.name, each.provider)
        cost = (f"{prices.uncached * 1e6:,.2f}", f"{prices.output * 1e6:,.2f}") if prices.known else ("", "")
        key = "ready" if each.provider in ready else "no key"
        tones = ("", "dim", "dim", "dim", "mark" if each.provider in ready else "dim")
        yield ListRow(key=each.spec, cells=(each.spec, figures.short(each.window), *cost, key), tones=tones)
