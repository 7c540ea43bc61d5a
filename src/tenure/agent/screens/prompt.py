"""Where a person types: several lines, a history, slash commands completed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from tenure.agent.screens import clean
from tenure.agent.screens.commands import SlashCommand, matching

KEPT: Final = 200  # entries of the history
OFFERED: Final = 50  # files
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

    @dataclass
    class Submitted(Message):
        """The text is to be sent."""

        text: str

    @dataclass
    class Wanted(Message):
        """Something of the list of completions: another one (`by`), or to take it."""

        by: int

    @dataclass
    class Pasted(Message):
        """One line was pasted, which may stand for an image."""

        text: str

    def __init__(self) -> None:
        super().__init__(
            id="draft",
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
            placeholder="a task, / for commands, @ for files, ! for a shell command",
        )
        self.cursor_blink = False  # nothing is drawn while nothing happens
        self._history: list[str] = []
        self._place = 0  # in the history; its length: below the newest
        self._kept = ""  # what was typed before the history was walked
        self.completing = False

    async def _on_paste(self, event: events.Paste) -> None:
        """One line may be a path or a data URL of an image: whoever holds the session says what is typed for it. The rest is Textual's."""
        if len(event.text.strip().splitlines()) == 1:
            event.stop()
            event.prevent_default()
            self.post_message(self.Pasted(event.text))

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
    """The draft, and above it what a beginning may become: commands behind a /, files behind an @."""

    class PathsWanted(Message):
        """The files of the folder are wanted: `offer` takes them."""

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

    def __init__(self) -> None:
        super().__init__()
        self._paths: Sequence[str] | None = None  # None: not asked for since a mention was begun

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

    def offer(self, paths: Sequence[str]) -> None:
        """The files that may be mentioned."""
        self._paths = paths
        self._complete()

    @on(TextArea.Changed)
    def _complete(self) -> None:
        mention = self._mention()
        if mention is None:
            self._paths = None
        elif self._paths is None:
            self._paths = ()
            self.post_message(self.PathsWanted())
        options = list(map(_command_option, matching(self.draft.text)))
        if mention is not None:
            options = [Option(clean.line(path), id=path) for path in nearest(mention, self._paths or ())]
        completions = self._completions
        completions.clear_options()
        completions.add_options(options)
        if options:
            completions.highlighted = 0
        completions.set_class(bool(options), "-open")
        self.draft.completing = bool(options)

    def _mention(self) -> str | None:
        """What stands behind the @ of the word before the cursor; None where there is none."""
        row, column = self.draft.cursor_location
        word = self.draft.document.get_line(row)[:column].rpartition(" ")[2]
        return word[1:] if word.startswith("@") else None

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
            if self._mention() is None:
                self.draft.text = ""
            else:
                self._completions.remove_class("-open")
                self.draft.completing = False
            event.stop()

    def _take(self) -> None:
        place = self._completions.highlighted
        if place is None:
            return
        wanted, mention, draft = self._completions.get_option_at_index(place).id, self._mention(), self.draft
        if mention is None:
            draft.put(f"/{wanted} ")
            return
        row, column = draft.cursor_location
        draft.replace(f"@{wanted} ", (row, column - len(mention) - 1), (row, column))


def _command_option(command: SlashCommand) -> Option:
    arguments = f" {command.arguments}" if command.arguments else ""
    text = Content.assemble((f"/{command.name}", "bold $text-accent"), arguments, (f"  {command.about}", "$quiet"))
    return Option(text, id=command.name)


def nearest(wanted: str, paths: Sequence[str], most: int = OFFERED) -> list[str]:
    """The paths that hold the letters of `wanted` in their order, those first whose name begins with or has it, then the shortest."""
    wanted = wanted.lower()

    def rank(path: str) -> tuple[int, int, str]:
        whole = path.lower()
        name = whole.rpartition("/")[2]
        places = (name.startswith(wanted), wanted in name, wanted in whole)
        return (places.index(True) if True in places else 3, len(path), path)

    return nsmallest(most, (path for path in paths if _has_letters(path.lower(), wanted)), key=rank)


def _has_letters(path: str, wanted: str) -> bool:
    letters = iter(path)
    return all(letter in letters for letter in wanted)
