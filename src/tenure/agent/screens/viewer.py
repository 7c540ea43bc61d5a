"""The context viewer: what a session is made of, what the model saw at any call, and what to make of it (an edge)."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input, Static, TabbedContent, TabPane

from tenure.agent.screens import clean, viewer_tabs
from tenure.agent.screens.build import Picks
from tenure.agent.screens.contents import Segment, lists
from tenure.agent.screens.details import Details
from tenure.agent.screens.history import MOST, History, Occurrence, find
from tenure.agent.screens.themes import DARK, ThemedApp
from tenure.agent.screens.tree import end_of, nodes, start_of, turn_of, usual_open
from tenure.agent.screens.viewer_tabs import TABS
from tenure.agent.screens.widgets import MeasuredText, RowList
from tenure.engine.meter.price import prices_for
from tenure.errors import TenureError

if TYPE_CHECKING:
    from tenure.context import Context
    from tenure.store.records import Conversation

Builder = Callable[[History, Picks, Iterable[Segment]], "Conversation"]
_OBJECT_TABS: Final = ("tree", "objects", "found")
TREE: Final = "tree"


class Curated(Struct, frozen=True, kw_only=True):
    """What a person wants to go on with: a conversation that was built, or this one up to some entry, in a fork, with the files as they were or not."""

    built: str = ""
    entries: int = 0
    files: bool = False
    draft: str = ""  # what the person had said there


class ContextViewer(Screen[Curated | None]):
    """One session. Dismissed with what is to be gone on with, or nothing."""

    DEFAULT_CSS = """
    ContextViewer {
        #title { height: 1; padding: 0 1; background: $panel; color: $foreground; text-overflow: ellipsis; text-wrap: nowrap; }
        #body { layout: vertical; height: 1fr; }
        #lists { height: 3fr; }
        #detail { height: 2fr; border-top: solid $panel; padding: 0 1; scrollbar-size-vertical: 1; background: $background; }
        #detail:focus { border-top: solid $primary; }
        #search { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
        #search.-open { display: block; }
        TabPane { padding: 0 1; }
        Footer { background: $panel; }
        &.-wide {
            #body { layout: horizontal; }
            #lists { width: 3fr; height: 1fr; }
            #detail { width: 2fr; height: 1fr; border-top: none; border-left: solid $panel; }
            #detail:focus { border-left: solid $primary; }
        }
    }
    """
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close"),
        Binding("slash", "search", "Find", key_display="/"),
        Binding("space", "pick", "Choose"),
        Binding("right,l", "fold(False)", "Open", show=False),
        Binding("left,h", "fold(True)", "Fold", show=False),
        Binding("b", "build", "Build"),
        Binding("f", "fork", "Fork here"),
        Binding("w", "rewind", "Rewind"),
        Binding("d", "changes", "Changes only"),
        Binding("p", "pin", "Pin"),
        Binding("r", "restore", "Restore"),
        Binding("t", "recall", "To the end"),
        Binding("u", "undo", "Undo"),
        *(Binding(str(n), f"tab('{name}')", tab.title, show=False) for n, (name, tab) in enumerate(TABS.items(), 1)),
    ]

    def __init__(
        self,
        history: Callable[[], History],
        builder: Builder | None = None,
        *,
        busy: Callable[[], bool] = lambda: False,
        recall: Callable[[str], str] | None = None,
    ) -> None:
        """`history` is read anew once a live session was changed; `busy` says whether it may not be changed now.

        `recall` puts what a handle stands for at the end of a live window, and says what came of it.
        """
        super().__init__()
        self._source, self._builder, self._busy, self._recall = history, builder, busy, recall
        self._picks, self._is_open = Picks(), frozenset[str]()
        self._found: tuple[Occurrence, ...] = ()
        self._only_changes = True
        self._read()

    def _read(self) -> None:
        self._history = self._source()
        self._lists, self._prices = lists(self._history), prices_for(self._history.model)
        self._details = Details(self._history, self._lists, self._prices)
        self._is_open = self._is_open or usual_open(self._lists)

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with Container(id="body"):
            with TabbedContent(id="lists", initial=TREE):
                for n, (name, tab) in enumerate(TABS.items(), 1):
                    with TabPane(f"{n} {tab.title}", id=name):
                        yield RowList(*tab.columns, id=f"{name}-rows", empty=tab.empty)
            with VerticalScroll(id="detail"):
                yield MeasuredText(id="text")
        yield Input(id="search", placeholder="words to find in the whole record", compact=True)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#lists", TabbedContent).hide_tab("found")
        self._fill()
        self._rows("calls").go(str(len(self._lists.life.calls) - 1))
        self._rows(TREE).action_end(1)
        self._rows(TREE).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what makes sense here is offered."""
        del parameters
        tab, is_live = self._tab, self._history.context is not None
        return {
            "pin": is_live and tab in _OBJECT_TABS,
            "restore": is_live and tab in _OBJECT_TABS,
            "recall": self._recall is not None and tab in _OBJECT_TABS,
            "undo": is_live and tab == "commits",
            "pick": tab == TREE,
            "build": self._builder is not None and tab == TREE,
            "fork": is_live and tab == TREE,
            "rewind": is_live and tab == TREE,
            "changes": tab == "calls",
        }.get(action, True)

    def on_resize(self) -> None:
        self._show_title()

    # --- What is shown

    def _show_title(self) -> None:
        self.query_one("#title", Static).update(self._details.title(self._picks, self.size.width - 2))

    def _fill(self) -> None:
        self._fill_picks()
        self._rows("objects").show(list(viewer_tabs.object_rows(self._lists.objects, self._prices)))
        self._rows("calls").show(list(viewer_tabs.call_rows(self._history, self._lists.life.calls)))
        self._rows("commits").show(list(viewer_tabs.commit_rows(self._history.commits)))

    def _fill_picks(self) -> None:
        self._show_title()
        self._shown_nodes = {node.key: node for node in nodes(self._history, self._lists, self._is_open)}
        self._rows(TREE).show(list(viewer_tabs.tree_rows(self._shown_nodes.values(), self._picks, self._prices)))

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        if event.rows.id == f"{self._tab}-rows":
            self._show(self._tab, event.key)

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.query_one("#detail", VerticalScroll).focus()

    @on(TabbedContent.TabActivated)
    def _turned(self) -> None:
        rows = self._rows(self._tab)
        self._show(self._tab, rows.key)
        self.refresh_bindings()
        if not self.query_one("#search").has_focus:
            rows.focus()

    def _show(self, tab: str, key: str) -> None:
        self.query_one("#text", Static).update(self._details.of(tab, key, only_changes=self._only_changes) if key else "")
        self.query_one("#detail", VerticalScroll).scroll_home(animate=False)

    # --- Keys

    def action_leave(self) -> None:
        """Back: from the search, from the detail, and out."""
        search = self.query_one("#search", Input)
        if search.has_focus:
            search.remove_class("-open")
        elif not self.query_one("#detail").has_focus:
            self.dismiss(None)
            return
        self._rows(self._tab).focus()

    def action_tab(self, name: str) -> None:
        if name != "found" or self._found:
            self.query_one("#lists", TabbedContent).active = name

    def action_search(self) -> None:
        search = self.query_one("#search", Input)
        search.add_class("-open")
        search.focus()

    @on(Input.Submitted, "#search")
    def _searched(self, event: Input.Submitted) -> None:
        self._find(event.value)

    @work(thread=True, exclusive=True, group="find")
    def _find(self, words: str) -> None:
        found = find(self._history, words)
        self.app.call_from_thread(self._show_found, words, found)  # pyright: ignore[reportUnknownMemberType] - Textual's

    def _show_found(self, words: str, found: tuple[Occurrence, ...]) -> None:
        self._found = found
        self.query_one("#search", Input).remove_class("-open")
        if not found:
            self.notify(f"nothing in the record holds {clean.line(words, 60)!r}", markup=False)
            self._rows(self._tab).focus()
            return
        tabs = self.query_one("#lists", TabbedContent)
        tabs.show_tab("found")
        tabs.active = "found"
        rows = self._rows("found")
        rows.show(list(viewer_tabs.found_rows(self._history, found)))
        rows.focus()
        if len(found) == MOST:
            self.notify(f"the newest {MOST} places")

    def action_fold(self, folds: bool) -> None:
        """Open what is under the cursor, or fold it, or what it is in."""
        node = self._shown_nodes.get(self._rows(TREE).key) if self._tab == TREE else None
        if node is None:
            return
        if folds and not node.is_open:  # the row that it is in
            above = [each for each in self._shown_nodes.values() if each.depth < node.depth]
            before = list(self._shown_nodes)
            node = next((each for each in reversed(above) if before.index(each.key) < before.index(node.key)), node)
        self._is_open = self._is_open - {node.key} if folds else self._is_open | {node.key}
        self._fill_picks()
        self._rows(TREE).go(node.key)

    def action_pick(self) -> None:
        """Choose a turn or a brief for a new conversation, or let go of it; of a message, its turn."""
        node = self._shown_nodes.get(self._rows(TREE).key)
        if node is None:
            return
        if node.kind == "segment":
            assert node.segment is not None
            if not node.segment.key:
                self.notify("only a segment that a brief stands for can be chosen; choose its turns", severity="warning")
            self._picks = self._picks.brief(node.segment)
        else:
            number = node.number if node.kind == "turn" else turn_of(self._history, node.key)
            self._picks = self._picks.turn(number, self._lists.segments)
        self._fill_picks()
        self._rows(TREE).action_move(1)

    def action_fork(self) -> None:
        """Go on from the end of what is under the cursor, in a copy."""
        if (key := self._rows(TREE).key) and not self._waits():
            self.dismiss(Curated(entries=end_of(self._history, self._lists, key)))

    def action_rewind(self) -> None:
        """Go back to before a person's words, or to the end of another message, in a copy, with the files as they were then."""
        if (key := self._rows(TREE).key) and not self._waits():
            entries, words = start_of(self._history, self._lists, key)
            self.dismiss(Curated(entries=entries, files=True, draft=words))

    def action_build(self) -> None:
        """Make a conversation of what is chosen."""
        if self._builder is None or self._waits():
            return
        try:
            built = self._builder(self._history, self._picks, self._lists.segments)
        except TenureError as error:
            self._show_error(error)
            return
        self.dismiss(Curated(built=built.id))

    def action_changes(self) -> None:
        """All that the model saw, or what changed."""
        self._only_changes = not self._only_changes
        self._show("calls", self._rows("calls").key)

    def action_pin(self) -> None:
        self._change(_pin)

    def action_restore(self) -> None:
        self._change(_restore)

    def action_undo(self) -> None:
        self._change(_undo)

    def action_recall(self) -> None:
        """Put what left the window at its end, as if the model had recalled it."""
        if (recall := self._recall) is not None:
            self._change(lambda _, key: recall(key))

    # --- Inner

    def _change(self, change: "Callable[[Context, str], str]") -> None:
        """Change a live session by what is under the cursor, say what came of it, and read the session anew."""
        key, context = (
            self._rows(self._tab).key.partition("/")[0] if self._tab == TREE else self._rows(self._tab).key,
            self._history.context,
        )
        if context is None or not key or self._waits():
            return
        try:
            outcome = change(context, key)
        except TenureError as error:
            self._show_error(error)
            return
        self.notify(outcome, markup=False)
        self._read()
        self._fill()

    def _waits(self) -> bool:
        if is_busy := self._busy():
            self.notify("a turn is running: wait for it, or cancel it", severity="warning")
        return is_busy

    def _show_error(self, error: TenureError) -> None:
        self.notify(clean.line(str(error)), severity="error", markup=False)

    @property
    def _tab(self) -> str:
        return self.query_one("#lists", TabbedContent).active

    def _rows(self, tab: str) -> RowList:
        return self.query_one(f"#{tab}-rows", RowList)


def _pin(context: "Context", key: str) -> str:
    if context.unpin(key):
        return f"unpinned {key}"
    context.pin(key)
    return f"pinned {key}"


def _restore(context: "Context", key: str) -> str:
    commit = context.restore(key)
    return f"{key} is shown whole" if commit is None else f"{key} restored: commit {commit.n}"


def _undo(context: "Context", key: str) -> str:
    commit = context.undo(int(key))
    return f"commit {key} undone: commit {commit.n}"


class ViewerApp(ThemedApp):
    """Shows one session; returns the id of a conversation that was built."""

    def __init__(self, history: Callable[[], History], builder: Builder | None = None, *, theme: str = DARK) -> None:
        super().__init__(theme)
        self._history, self._builder = history, builder

    def on_mount(self) -> None:
        self.push_screen(ContextViewer(self._history, self._builder), lambda curated: self.exit(curated.built if curated else ""))
