"""`/recall`: what left the window, to be looked at, and to be brought back for the model where the person wants that."""

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label

from tenure.agent.screens import clean
from tenure.agent.screens.contents import State
from tenure.agent.screens.details import object_content
from tenure.agent.screens.history import History
from tenure.agent.screens.widgets import Column, ListRow, MeasuredText, RowList, Tone
from tenure.engine.meter import figures
from tenure.engine.record.entry import At, Role
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.query import Query
from tenure.engine.record.recall import blocks_of
from tenure.engine.record.search import Hit, search
from tenure.engine.record.tools import is_delimiter
from tenure.errors import InputError

FOUND: Final = (
    Column(title="object", width=24),
    Column(title="window", width=7),
    Column(title="tokens", width=6, right=True, above=60),
    Column(title="words"),
)
MOST_SEEN: Final = 8  # rows at once
_STATES: Final[dict[str, str]] = {
    "whole": "in the window as it was",
    "smaller": "in the window, made smaller",
    "gone": "not in the window",
}
_TONES: Final[dict[State, Tone]] = {"whole": "", "smaller": "warn", "gone": "dim"}
_KEYS: Final = "b brings it back for the model   Enter reads   Esc closes"


class RecallScreen(ModalScreen[str]):
    """What was found, and all of what is under the cursor. Dismissed with the handle to be brought back, or an empty text."""

    DEFAULT_CSS = """
    RecallScreen {
        align: center middle;
        #page { width: 100%; max-width: 140; height: 90%; background: $surface; border: round $primary; padding: 0 1; }
        #name { text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; width: 100%; }
        RowList { height: auto; max-height: 40%; background: $surface; display: none; }
        RowList.-open { display: block; }
        RowList .rows--cursor { background: $panel; }
        RowList:focus .rows--cursor { background: $under-cursor; }
        #leaf { height: 1fr; margin: 1 0 0 0; scrollbar-size-vertical: 1; background: $surface; }
        #foot { color: $quiet; width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close"),
        Binding("b", "bring", "Bring back"),
        Binding("tab", "turn", "Other half", show=False, priority=True),
    ]

    def __init__(self, history: History, rows: Sequence[ListRow], wanted: str) -> None:
        """`rows` as `found` gives them, at least one."""
        super().__init__()
        self._history, self._found, self._wanted = history, rows, wanted

    def compose(self) -> ComposeResult:
        """Heading, what was found, the text, keys."""
        with Vertical(id="page"):
            yield Label(f"recall {clean.line(self._wanted, 60)}", id="name", markup=False)
            yield RowList(*FOUND, id="found")
            with VerticalScroll(id="leaf"):
                yield MeasuredText(id="text")
            yield Label(_KEYS, id="foot", markup=False)

    def on_mount(self) -> None:
        """One object needs no list."""
        rows = self.query_one(RowList)
        rows.set_class(len(self._found) > 1, "-open")
        rows.styles.height = min(len(self._found), MOST_SEEN) + 1
        rows.show(self._found)
        (rows if len(self._found) > 1 else self.query_one("#leaf")).focus()

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        row = next(row for row in self._found if row.key == event.key)
        size, state = row.cells[2], row.cells[1]
        head = Content.assemble((row.cells[0], "bold"), (f"  {size} tokens, {_STATES[state]}\n\n", "$quiet"))
        self.query_one("#text", MeasuredText).update(head + object_content(self._history, event.key))
        self.query_one("#leaf").scroll_home(animate=False)

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.query_one("#leaf").focus()

    def action_turn(self) -> None:
        """From what was found to the text and back."""
        rows, leaf = self.query_one(RowList), self.query_one("#leaf")
        (leaf if rows.has_focus or not rows.display else rows).focus()

    def action_leave(self) -> None:
        """Back to the list, then out."""
        rows = self.query_one(RowList)
        if rows.display and not rows.has_focus:
            rows.focus()
        else:
            self.dismiss("")

    def action_bring(self) -> None:
        """Bring it back, at the window's end."""
        row = self._found[self.query_one(RowList).cursor]
        if row.cells[1] == "whole":
            self.notify("nothing to bring back: the model sees it as it was")
            return
        self.dismiss(row.cells[0])


def found(history: History, wanted: str) -> tuple[ListRow, ...]:
    """What a person may mean: objects by handle, else by path, else by words, the best first. Raises InputError when there is nothing such."""
    is_handle = ":" in wanted and " " not in wanted.strip()
    unknown: InputError | None = None
    if is_handle:
        try:
            return tuple(_named(history, Query(handle=wanted).handles))
        except InputError as error:
            unknown = error
    queries = [Query(path=wanted)] if "/" in wanted and " " not in wanted.strip() else []
    for query in (*queries, Query(words=wanted)):
        hits = search(history.index, history.read, query, now=monotonic).hits
        if said := [hit for hit in hits if history.index.entries[hit.at[0]].role is not Role.SYSTEM]:  # that never leaves
            return tuple(_searched(history, said))
    raise unknown or InputError("/recall", f"nothing in the record speaks of {wanted[:80]!r}", "other words, a path, or a handle")


def _named(history: History, handles: Sequence[str]) -> Iterator[ListRow]:
    for handle in handles:
        object_ = parse_handle(handle).object
        yield _row(history, object_, blocks_of(history.index, parse_handle(handle)), "")


def _searched(history: History, hits: Sequence[Hit]) -> Iterator[ListRow]:
    """The objects of the hits, each once, with the words that were hit first."""
    index = history.index
    seen: set[str] = set()
    for hit in hits:
        object_ = _object_at(index, hit.at)
        if object_ not in seen:
            seen.add(object_)
            yield _row(history, object_, blocks_of(index, parse_handle(object_)), hit.shown)


def _object_at(index: Index, at: At) -> str:
    """What a person would call it: the call, the episode that a delimiter marks, or the block."""
    facts = index.block(at)
    if facts.span == NONE:
        return f"entry:{at[0]}/{at[1]}"
    span = index.spans[facts.span]
    marked = is_delimiter(span.tool) and facts.episode != NONE and index.episodes[facts.episode].declared
    return index.episodes[facts.episode].object if marked else span.object


def _row(history: History, object_: str, places: Sequence[At], words: str) -> ListRow:
    index = history.index
    tokens = sum(index.block(at).tokens for at in places)
    shown = _shown(history, places)
    state: State = "whole" if shown == tokens else "smaller" if shown else "gone"
    return ListRow(
        key=object_,
        cells=(index.handle(object_, places[0][0]), state, figures.short(tokens), clean.line(words)),
        tones=("mark", _TONES[state], "", "dim"),
    )


def _shown(history: History, places: Sequence[At]) -> int:
    """Tokens of it that the window has now."""
    assert history.context is not None, "only a live window is brought back into"
    return sum(history.context.session.view.weight(*at) for at in places)
