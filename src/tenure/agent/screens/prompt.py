"""Where a person types: several lines, a history, slash commands completed."""

from collections.abc import Mapping
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from tenure.agent.screens.commands import matching

KEPT: Final = 200  # entries of the history
_KEYS: Final[Mapping[str, str]] = {
    "enter": "submit",
    "shift+enter": "newline",
    "ctrl+j": "newline",
    "alt+enter": "newline",
    "tab": "complete",
    "ctrl+u": "clear",
}


class DraftInput(TextArea):
    """The text that is being typed."""

    class Submitted(Message):
        """The text is to be sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Wanted(Message):
        """Something of the list of completions: another one (`by`), or to take it."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self) -> None:
        super().__init__(
            id="draft", soft_wrap=True, compact=True, highlight_cursor_line=False, placeholder="a task, or / for commands"
        )
        self.cursor_blink = False  # nothing is drawn while nothing happens
        self._history: list[str] = []
        self._place = 0  # in the history; its length: below the newest
        self._kept = ""  # what was typed before the history was walked
        self.completing = False

    async def _on_key(self, event: events.Key) -> None:
        """Keys of our own, in the order in which they were pressed: a binding with priority would overtake letters that wait."""
        action = _KEYS.get(event.key)
        if action is None:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        getattr(self, f"action_{action}")()

    def remember(self, texts: list[str]) -> None:
        """The history of a session that goes on."""
        self._history = [text for text in texts if text.strip()][-KEPT:]
        self._place = len(self._history)

    def put(self, text: str) -> None:
        """Put a text in place of what is there, the cursor behind it."""
        self.text = text
        self.move_cursor(self.document.end)

    def action_submit(self) -> None:
        """Send what is typed; a line that ends with a backslash goes on."""
        if self.text.endswith("\\"):
            self.put(self.text[:-1] + "\n")
            return
        text = self.text.strip()
        if not text:
            return
        if not self._history or self._history[-1] != text:
            self._history = [*self._history, text][-KEPT:]
        self._place = len(self._history)
        self.text = ""
        self.post_message(self.Submitted(text))

    def action_newline(self) -> None:
        self.insert("\n")

    def action_complete(self) -> None:
        if self.completing:
            self.post_message(self.Wanted(0))

    def action_clear(self) -> None:
        self.text = ""

    def action_cursor_up(self, select: bool = False) -> None:
        """Up a line; on the first one, back in the history."""
        if self.completing:
            self.post_message(self.Wanted(-1))
        elif self.cursor_location[0] == 0 and not select and self._place > 0:
            self._walk(-1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Down a line; on the last one, forth in the history."""
        if self.completing:
            self.post_message(self.Wanted(1))
        elif self.cursor_location[0] == self.document.line_count - 1 and not select and self._place < len(self._history):
            self._walk(1)
        else:
            super().action_cursor_down(select)

    def _walk(self, by: int) -> None:
        if self._place == len(self._history):
            self._kept = self.text
        self._place += by
        self.put(self._history[self._place] if self._place < len(self._history) else self._kept)


class Prompt(Vertical):
    """The draft, and above it the commands that a beginning may become."""

    DEFAULT_CSS = """
    Prompt {
        height: auto; background: $surface; border-left: outer $primary;
        #completions { display: none; max-height: 8; border: none; background: $surface; padding: 0 1; scrollbar-size-vertical: 1; }
        #completions.-open { display: block; }
        #completions { text-wrap: nowrap; text-overflow: ellipsis; }
        #completions > .option-list--option-highlighted { background: $under-cursor; color: $foreground; }
        #draft { height: auto; max-height: 8; border: none; background: $surface; padding: 0 1; }
        #draft:focus { border: none; }
    }
    """

    def compose(self) -> ComposeResult:
        completions = OptionList(id="completions", compact=True, markup=False)
        completions.can_focus = False  # the draft keeps the keys
        yield completions
        yield DraftInput()

    @property
    def draft(self) -> DraftInput:
        """What is being typed."""
        return self.query_one(DraftInput)

    @property
    def _completions(self) -> OptionList:
        return self.query_one("#completions", OptionList)

    @on(TextArea.Changed)
    def _changed(self) -> None:
        found, completions = matching(self.draft.text), self._completions
        completions.clear_options()
        for each in found:
            arguments = f" {each.arguments}" if each.arguments else ""
            text = Content.assemble((f"/{each.name}", "bold $text-accent"), arguments, (f"  {each.about}", "$quiet"))
            completions.add_option(Option(text, id=each.name))
        if found:
            completions.highlighted = 0
        completions.set_class(bool(found), "-open")
        self.draft.completing = bool(found)

    @on(DraftInput.Wanted)
    def _wanted(self, event: DraftInput.Wanted) -> None:
        if event.by:
            (self._completions.action_cursor_down if event.by > 0 else self._completions.action_cursor_up)()
        else:
            self._take()

    @on(OptionList.OptionSelected, "#completions")
    def _clicked(self) -> None:
        self._take()
        self.draft.focus()

    def on_key(self, event: events.Key) -> None:
        """Escape closes the completions before anything else."""
        if event.key == "escape" and self.draft.completing:
            self.draft.text = ""
            event.stop()

    def _take(self) -> None:
        if (place := self._completions.highlighted) is not None:
            self.draft.put(f"/{self._completions.get_option_at_index(place).id} ")
