"""Choosing a session or a model from a list that is narrowed by typing."""

from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from tenure.agent.access import Available
from tenure.agent.catalogue import EXAMPLES, ModelChoice, chosen, is_scripted, listed, spec_of
from tenure.agent.screens import clean
from tenure.agent.screens.widgets import Column, ListRow, RowList
from tenure.agent.settings import Settings, World
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter import figures
from tenure.engine.meter.price import prices_for
from tenure.engine.record.entry import Origin, Role
from tenure.errors import Damaged, StoreError, TenureError
from tenure.models.hosts import KEY_VARIABLES, NAMED, is_known
from tenure.store.records import Conversation, Records

NEW: Final = "new"
NOTHING_FOUND: Final = f"No key found: set {KEY_VARIABLES}, or start a local server"
SESSIONS: Final = (
    Column("session", 8, "mark"),
    Column("begun", 16, "dim", above=56),
    Column("entries", 7, "dim", right=True),
    Column("model", 20, "dim", above=90),
    Column("about"),
)
MODELS: Final = (
    Column("model"),
    Column("window", 6, "dim", right=True),
    Column("in $/M", 7, "dim", right=True, above=50),
    Column("out $/M", 7, "dim", right=True, above=60),
    Column("here", 7, above=40),
)
_OPENING: Final = 6  # entries in which a person's first words are looked for
_SHOWN: Final = 200  # sessions
_SEARCHED: Final = 30  # sessions in which what was typed is looked for
_ENTRIES: Final = 2_000  # of each
_RECENT: Final = 100  # newest sessions whose models are looked at
_RECENTLY: Final = 6  # models of theirs that stand first
_BLANK: Final = ("", "")


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

    def __init__(self, heading: str, columns: Sequence[Column], rows: Sequence[ListRow], *, free: bool = False) -> None:
        """`free`: what was typed counts where no row fits it."""
        super().__init__()
        self.rows = rows
        self._heading, self._columns, self._free = heading, columns, free

    def compose(self) -> ComposeResult:
        empty = "nothing fits; Enter takes what is typed" if self._free else "nothing fits"
        with Vertical(id="box"):
            yield Label(self._heading, id="heading", markup=False)
            yield Input(id="narrow", placeholder="type to narrow", compact=True)
            yield RowList(*self._columns, id="choices", empty=empty)

    def on_mount(self) -> None:
        self._list.show(self.rows)
        words = self.query_one("#narrow", Input)
        words.cursor_blink = False
        words.focus()

    @on(Input.Changed, "#narrow")
    def _narrowed(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        self._list.show([row for row in self.rows if all(word in " ".join((row.key, *row.texts)).casefold() for word in words)])
        self._list.action_end(-1)

    @on(Input.Submitted, "#narrow")
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(self._list.key or (event.value.strip() if self._free else ""))

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        self.dismiss(event.key)

    def action_row(self, by: int) -> None:
        self._list.action_move(by)

    def action_page(self, by: int) -> None:
        self._list.action_page(by)

    @property
    def _list(self) -> RowList:
        return self.query_one("#choices", RowList)


def session_picker(store: Records, folder: str) -> Picker:
    """The sessions of a folder, newest first, and a new one."""
    return Picker("Sessions of this folder", SESSIONS, list(_sessions(store, folder)))


def model_picker(found: Sequence[Available], recent: Sequence[str] = ()) -> Picker:
    """The models of the newest sessions, then those that were found here, then those of the price list; another may be typed."""
    others = [each.spec for each in found if each.spec.endswith(":NAME")]
    heading = "Models: type a name, or " + ", ".join(others or EXAMPLES) if found else NOTHING_FOUND
    return Picker(heading, MODELS, list(_models(found, recent)), free=True)


def recent_models(settings: Settings, world: World, store: Records | None) -> tuple[str, ...]:
    """The models of the newest sessions, newest first, as `--model` takes them; none where there is no store to read. Never raises TenureError."""
    from tenure.agent.opening import store_url
    from tenure.store.store import Store

    url = store_url(settings, world)
    try:
        if store is not None:
            return _recent(store)
        if not url.startswith("sqlite:///") or not Path(url.removeprefix("sqlite:///")).is_file():
            return ()
        with Store(url, now=world.now) as opened:
            return _recent(opened)
    except TenureError:
        return ()


def _recent(store: Records) -> tuple[str, ...]:
    specs: dict[str, None] = {}
    for sheet in store.conversations(None)[:_RECENT]:
        url = Terms.stored(sheet.terms).base_url
        if sheet.model and is_known(url) and (spec := spec_of(sheet.dialect, sheet.model, url)) and not is_scripted(spec):
            specs.setdefault(spec)
    return tuple(specs)[:_RECENTLY]


class TypedPrompt(Struct, frozen=True):
    """What a person typed, and when."""

    text: str
    at: str


def prompts(store: Records, folder: str) -> list[TypedPrompt]:
    """What was typed in the newest sessions of a folder, newest first, each text once. A session that is damaged is left out."""
    found: dict[str, TypedPrompt] = {}
    for sheet in [sheet for sheet in store.conversations(folder) if sheet.length and not sheet.is_part][:_SEARCHED]:
        typed: list[TypedPrompt] = []
        with suppress(StoreError):
            for entry in store.entries(sheet.id, 0, _ENTRIES):
                if entry.role is Role.USER:
                    texts = [block.text for block in entry.blocks if block.origin is Origin.HUMAN and block.text.strip()]
                    typed += [TypedPrompt(text, entry.at or sheet.created) for text in texts]
        for each in reversed(typed):
            found.setdefault(each.text, each)
    return list(found.values())


def history_picker(found: Sequence[TypedPrompt]) -> Picker:
    """What was typed; the key of a row is its place."""
    rows = [ListRow(str(n), (each.at[:16].replace("T", " "), clean.line(each.text, 200))) for n, each in enumerate(found)]
    return Picker("What was typed in this folder", (Column("when", 16, "dim", above=56), Column("text")), rows)


def _sessions(store: Records, folder: str) -> Iterator[ListRow]:
    yield ListRow(NEW, ("new", _BLANK, _BLANK, _BLANK, ("begin afresh", "mark")))
    held = [sheet for sheet in store.conversations(folder) if sheet.length and not sheet.is_part]
    for sheet in held[:_SHOWN]:
        when = sheet.created[:16].replace("T", " ")
        yield ListRow(sheet.id, (sheet.id[:8], when, f"{sheet.length:,}", clean.line(sheet.model, 40), title_of(store, sheet)))


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


def _models(found: Sequence[Available], recent: Sequence[str]) -> Iterator[ListRow]:
    ready = {each.service for each in found}
    held = [chosen(spec) for spec in recent]
    held.sort(key=lambda model: model.provider not in ready)  # what has a key first, else the newest
    for each in held:
        yield _model_row(each, ready, "recent")
    for each in found:
        if NAMED[each.service].is_local and each.spec not in recent:
            yield ListRow(each.spec, (clean.line(each.spec, 60), _BLANK, _BLANK, _BLANK, ("running", "mark")))
    for each in sorted(listed(), key=lambda model: model.provider not in ready):
        if each.spec not in recent:
            yield _model_row(each, ready, "ready")


def _model_row(model: ModelChoice, ready: Set[str], here: str) -> ListRow:
    prices = prices_for(model.name, model.provider)
    cost = (f"{prices.uncached * 1e6:,.2f}", f"{prices.output * 1e6:,.2f}") if prices.known else ("", "")
    has_key = model.provider in ready or model.kind in ready
    return ListRow(
        model.spec,
        (clean.line(model.spec, 60), figures.short(model.window), *cost, (here, "mark") if has_key else ("no key", "dim")),
    )
