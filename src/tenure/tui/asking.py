"""A call that waits for a person's word. Promise: nothing is broken: nobody agrees to what they cannot see."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tenure.agent.approval import Act, Answer, Approval
from tenure.agent.events import ApprovalAsked
from tenure.tui import clean
from tenure.tui.prose import change, is_diff

_GRAVE: Final = frozenset({Act.OUTSIDE, Act.DESTROY})


class Question(Vertical):
    """What the call would do, and the answers. Hidden while nothing waits."""

    DEFAULT_CSS = """
    Question {
        display: none; height: auto; max-height: 70%; background: $surface; border-left: outer $warning; padding: 0 1;
        &.-open { display: block; }
        &.-grave { border-left: outer $error; }
        #what { height: auto; }
        #detail-of { height: auto; max-height: 16; scrollbar-size-vertical: 1; background: $surface; }
        #answers { height: auto; border: none; padding: 0; background: $surface; background-tint: transparent; }
        #answers > .option-list--option-highlighted { background: $under-cursor; color: $foreground; text-style: bold; }
        #words { display: none; border: none; height: 1; padding: 0; background: $panel; }
        #words.-open { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "say('once')", "Yes", show=False),
        Binding("a", "say('exact')", "Always this", show=False),
        Binding("l", "say('broad')", "Always the likes", show=False),
        Binding("n,escape", "say('no')", "No", show=False),
        Binding("w", "words", "No, and why", show=False),
    ]

    class Answered(Message):
        """The person's word."""

        def __init__(self, call: str, answer: Answer, words: str = "") -> None:
            super().__init__()
            self.call, self.answer, self.words = call, answer, words

    def __init__(self) -> None:
        super().__init__(id="question")
        self._asked: list[ApprovalAsked] = []

    def compose(self) -> ComposeResult:
        """What, detail, answers."""
        yield Static(id="what")
        with VerticalScroll(id="detail-of", can_focus=False):
            yield Static(id="detail-text")
        yield OptionList(id="answers", compact=True, markup=False)
        yield Input(id="words", placeholder="why not? the model reads it", compact=True)

    @property
    def waits(self) -> bool:
        """Whether a call waits."""
        return bool(self._asked)

    def ask(self, asked: ApprovalAsked) -> None:
        """One more call waits; they are asked one after another."""
        self._asked.append(asked)
        if len(self._asked) == 1:
            self._show()

    def settled(self, call: str) -> None:
        """A call does not wait any more, whoever answered."""
        first = bool(self._asked) and self._asked[0].call == call
        self._asked = [asked for asked in self._asked if asked.call != call]
        if first:
            self._show()

    def clear(self) -> None:
        """The turn is over."""
        self._asked.clear()
        self._show()

    def action_say(self, answer: str) -> None:
        """Answer the first."""
        if not self._asked:
            return
        asked, wanted = self._asked[0], Answer(answer)
        if wanted in (Answer.EXACT, Answer.BROAD) and wanted not in dict(answers(asked.approval)):
            return
        self.post_message(self.Answered(asked.call, wanted))

    def action_words(self) -> None:
        """Say no, and why."""
        words = self.query_one("#words", Input)
        words.add_class("-open")
        words.focus()

    @on(OptionList.OptionSelected, "#answers")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_words() if event.option_id == "words" else self.action_say(event.option_id or "no")

    @on(Input.Submitted, "#words")
    def _said(self, event: Input.Submitted) -> None:
        event.stop()
        if self._asked:
            self.post_message(self.Answered(self._asked[0].call, Answer.NO, event.value))

    def _show(self) -> None:
        self.set_class(bool(self._asked), "-open")
        words = self.query_one("#words", Input)
        words.remove_class("-open")
        words.value = ""
        if not self._asked:
            return
        approval, more = self._asked[0].approval, len(self._asked) - 1
        self.set_class(approval.act in _GRAVE, "-grave")
        self.query_one("#what", Static).update(what(approval, more))
        detail = clean.text(approval.detail, 20_000)
        shown = change(detail) if is_diff(detail) else Content(detail)
        self.query_one("#detail-text", Static).update(shown)
        self.query_one("#detail-of").display = bool(detail.strip()) and detail.strip() != approval.summary.strip()
        listed = self.query_one("#answers", OptionList)
        listed.clear_options()
        listed.add_options([Option(Content(text), id=answer) for answer, text in answers(approval)])
        listed.add_option(Option("n  no", id="no"))
        listed.add_option(Option("w  no, and say why", id="words"))
        listed.highlighted = 0
        listed.focus()


def what(approval: Approval, more: int = 0) -> Content:
    """What a call would do, and why that is asked."""
    tone = "$text-error" if approval.act in _GRAVE else "$text-warning"
    return Content.assemble(
        (clean.line(approval.summary), "bold"),
        ("  " + clean.line(approval.reason), tone),
        (f"  ({more} more wait)" if more else "", "$quiet"),
    )


def answers(approval: Approval) -> tuple[tuple[Answer, str], ...]:
    """The ways to say yes, as far as there are any to be remembered."""
    found = [(Answer.ONCE, "y  yes, once")]
    if approval.exact:
        found.append((Answer.EXACT, "a  yes, and always this in this session"))
    if approval.broad:
        found.append((Answer.BROAD, f"l  yes, and always {clean.line(', '.join(approval.broad), 60)}"))
    return tuple(found)
