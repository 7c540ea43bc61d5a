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
from tenure.agent.screens.contents import State, state_of
from tenure.agent.screens.details import object_content
from tenure.agent.screens.history import History
from tenure.agent.screens.viewer_tabs import STATE_TONES
from tenure.agent.screens.widgets import Column, ListRow, MeasuredText, RowList
from tenure.engine.meter import figures
from tenure.engine.record.entry import At, Role
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.query import Query
from tenure.engine.record.recall import blocks_of
from tenure.engine.record.search import search
from tenure.engine.record.tools import is_delimiter
from tenure.errors import InputError

FOUND: Final = (
    Column("object", 24, "mark"),
    Column("window", 7),
    Column("tokens", 6, right=True, above=60),
    Column("words", tone="dim"),
)
MOST_SEEN: Final = 8  # rows at once
_STATES: Final[dict[State, str]] = {
    "whole": "in the window as it was",
    "smaller": "in the window, made smaller",
    "gone": "not in the window",
}


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

    def __init__(self, history: History, wanted: str) -> None:
        """Raises InputError when there is nothing such."""
        super().__init__()
        self._history, self._wanted, self._found = history, wanted, found(history, wanted)

    def compose(self) -> ComposeResult:
        with Vertical(id="page"):
            yield Label(f"recall {clean.line(self._wanted, 60)}", id="name", markup=False)
            yield RowList(*FOUND, id="found")
            with VerticalScroll(id="leaf"):
                yield MeasuredText(id="text")
            yield Label("b brings it back for the model   Enter reads   Esc closes", id="foot", markup=False)

    def on_mount(self) -> None:
        rows, are_many = self.query_one(RowList), len(self._found) > 1
        rows.set_class(are_many, "-open")  # one object needs no list
        rows.styles.height = min(len(self._found), MOST_SEEN) + 1
        rows.show(self._found)
        (rows if are_many else self.query_one("#leaf")).focus()

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        handle, state, size, _ = next(row for row in self._found if row.key == event.key).texts
        head = f"  {size} tokens, {_STATES[state]}\n\n"  # pyright: ignore[reportArgumentType] - a state
        content = object_content(self._history, event.key)
        self.query_one("#text", MeasuredText).update(Content.assemble((handle, "bold"), (head, "$quiet"), content))
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
        handle, state, *_ = self._found[self.query_one(RowList).cursor].texts
        if state == "whole":
            self.notify("nothing to bring back: the model sees it as it was")
            return
        self.dismiss(handle)


def found(history: History, wanted: str) -> Sequence[ListRow]:
    """What a person may mean: objects by handle, else by path, else by words, the best first. Raises InputError when there is nothing such."""
    unknown: InputError | None = None
    is_word = " " not in wanted.strip()
    if ":" in wanted and is_word:
        try:
            return list(_rows(history, [(parse_handle(handle).object, "") for handle in Query(handle=wanted).handles]))
        except InputError as error:
            unknown = error
    index = history.index
    for query in (*([Query(path=wanted)] if "/" in wanted and is_word else []), Query(words=wanted)):
        hits = search(index, history.read, query, now=monotonic).hits
        if hits := [hit for hit in hits if index.entries[hit.at[0]].role is not Role.SYSTEM]:  # which never leaves
            by_object = {_object_at(index, hit.at): hit.shown for hit in reversed(hits)}  # the first words of each
            order = dict.fromkeys(_object_at(index, hit.at) for hit in hits)
            return list(_rows(history, [(object_, by_object[object_]) for object_ in order]))
    raise unknown or InputError("/recall", f"nothing in the record speaks of {wanted[:80]!r}", "other words, a path, or a handle")


def _object_at(index: Index, at: At) -> str:
    """What a person would call it: the call, the episode that a delimiter marks, or the block."""
    facts = index.block(at)
    if facts.span == NONE:
        return f"entry:{at[0]}/{at[1]}"
    span = index.spans[facts.span]
    marked = is_delimiter(span.tool) and facts.episode != NONE and index.episodes[facts.episode].declared
    return index.episodes[facts.episode].object if marked else span.object


def _rows(history: History, objects: Sequence[tuple[str, str]]) -> Iterator[ListRow]:
    """A row for each object, with some of its words."""
    assert history.context is not None, "only a live window is brought back into"
    index, view = history.index, history.context.session.view
    for object_, words in objects:
        places = blocks_of(index, parse_handle(object_))
        tokens = sum(index.block(at).tokens for at in places)
        state = state_of(tokens, sum(view.weight(*at) for at in places))
        handle = index.handle(object_, places[0][0])
        yield ListRow(object_, (handle, (state, STATE_TONES[state]), figures.short(tokens), clean.line(words)))
