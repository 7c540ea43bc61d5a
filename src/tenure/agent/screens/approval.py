"""A call that waits for a person's word."""

from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tenure.agent.approval import Approval, ApprovalAnswer, CallEffect
from tenure.agent.events import ApprovalAsked
from tenure.agent.screens import clean
from tenure.agent.screens.prose import change, is_diff
from tenure.agent.screens.widgets import MeasuredText

SHARE: Final = 0.7  # of the screen that a question may take
DETAIL: Final = 16  # lines of what a call would do that are seen at once
_GRAVE: Final = frozenset({CallEffect.REMOTE, CallEffect.OUTSIDE, CallEffect.DESTROY})


class ApprovalPrompt(Vertical):
    """What the call would do, and the answers. Hidden while nothing waits."""

    DEFAULT_CSS = """
    ApprovalPrompt {
        display: none; height: auto; max-height: 80%; background: $surface; border-left: outer $warning; padding: 0 1;
        &.-open { display: block; }
        &.-grave { border-left: outer $error; }
        #what { height: auto; }
        #detail-of { height: auto; max-height: 16; scrollbar-size-vertical: 1; background: $surface; }
        #more { display: none; color: $text-warning; }
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
        Binding("o", "say('outside')", "Yes, outside too", show=False),
        Binding("n,escape", "say('no')", "No", show=False),
        Binding("w", "words", "No, and why", show=False),
    ]

    @dataclass
    class Answered(Message):
        """The person's word."""

        call: str
        answer: ApprovalAnswer
        words: str = ""

    def __init__(self) -> None:
        super().__init__(id="question")
        self._asked: list[tuple[ApprovalAsked, str]] = []  # the calls that wait, and whose each is; empty: the agent's own

    def compose(self) -> ComposeResult:
        yield MeasuredText(id="what")
        with VerticalScroll(id="detail-of", can_focus=False):
            yield MeasuredText(id="detail-text")
        yield Static("PageDown shows the rest", id="more")
        yield OptionList(id="answers", compact=True, markup=False)
        yield Input(id="words", placeholder="why not? the model reads it", compact=True)

    @property
    def waits(self) -> bool:
        """Whether a call waits."""
        return bool(self._asked)

    def ask(self, asked: ApprovalAsked, *, by: str = "") -> None:
        """One more call waits; they are asked one after another. `by` says whose it is, where it is not the agent's own."""
        self._asked.append((asked, by))
        if len(self._asked) == 1:
            self._show()

    def settled(self, call: str) -> None:
        """A call does not wait any more, whoever answered."""
        first = bool(self._asked) and self._asked[0][0].call == call
        self._asked = [each for each in self._asked if each[0].call != call]
        if first:
            self._show()

    def clear(self) -> None:
        """The turn is over."""
        self._asked.clear()
        self._show()

    def scroll(self, way: int) -> bool:
        """A page of what is asked about; False where all of it is seen."""
        part = self.query_one("#detail-of", VerticalScroll)
        if not (self._asked and part.display and part.max_scroll_y):
            return False
        (part.scroll_page_up if way < 0 else part.scroll_page_down)(animate=False)
        return True

    def on_resize(self) -> None:
        """How much of it is seen depends on the room."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Give the detail what the question and every answer leave."""
        answered = self.query_one("#answers", OptionList).option_count + 2
        left = int(self.screen.size.height * SHARE) - self.query_one("#what").size.height - answered
        self.query_one("#detail-of").styles.max_height = max(2, min(DETAIL, left))
        self.call_after_refresh(self._say_more)

    def _say_more(self) -> None:
        part = self.query_one("#detail-of", VerticalScroll)
        self.query_one("#more").display = bool(self._asked and part.display and part.max_scroll_y)

    def action_say(self, answer: str) -> None:
        if not self._asked:
            return
        (asked, _), wanted = self._asked[0], ApprovalAnswer(answer)
        if wanted in (ApprovalAnswer.EXACT, ApprovalAnswer.BROAD, ApprovalAnswer.OUTSIDE) and wanted not in dict(
            answers(asked.approval)
        ):
            return
        self.post_message(self.Answered(asked.call, wanted))

    def action_words(self) -> None:
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
            self.post_message(self.Answered(self._asked[0][0].call, ApprovalAnswer.NO, event.value))

    def _show(self) -> None:
        self.set_class(bool(self._asked), "-open")
        words = self.query_one("#words", Input)
        words.remove_class("-open")
        words.value = ""
        if not self._asked:
            return
        (asked, by), more = self._asked[0], len(self._asked) - 1
        approval = asked.approval
        self.set_class(approval.act in _GRAVE, "-grave")
        self.query_one("#what", Static).update(what(approval, more, by))
        detail = clean.text(approval.detail, 20_000)
        shown = change(detail) if is_diff(detail) else Content(detail)
        self.query_one("#detail-text", Static).update(shown)
        part = self.query_one("#detail-of")
        part.display = bool(detail.strip()) and detail.strip() != approval.summary.strip()
        part.scroll_home(animate=False)
        self.query_one("#more").display = False
        self.call_after_refresh(self._fit)
        listed = self.query_one("#answers", OptionList)
        listed.clear_options()
        listed.add_options([Option(Content(text), id=answer) for answer, text in answers(approval)])
        listed.add_option(Option("n  no", id="no"))
        listed.add_option(Option("w  no, and say why", id="words"))
        listed.highlighted = 0
        listed.focus()


def what(approval: Approval, more: int = 0, by: str = "") -> Content:
    """What a call would do, why that is asked, and for whom where that is not the agent. What the detail says too is not said twice."""
    tone = "$text-error" if approval.act in _GRAVE else "$text-warning"
    start = " ".join(approval.summary.removesuffix("…").split())
    told = "\n" in approval.detail.strip() or len(approval.detail) > len(approval.summary)
    twice = told and " ".join(approval.detail[: 4 * len(start) + 80].split()).startswith(start)
    return Content.assemble(
        (f"{clean.line(by, 80)}: " if by else "", "$text-accent"),
        (clean.line(approval.tool if twice else approval.summary), "bold"),
        ("  " + clean.line(approval.reason), tone),
        (f"  ({more} more wait)" if more else "", "$quiet"),
    )


def answers(approval: Approval) -> tuple[tuple[ApprovalAnswer, str], ...]:
    """The ways to say yes, as far as there are any to be remembered."""
    found = [(ApprovalAnswer.ONCE, "y  yes, once")]
    if approval.exact:
        found.append((ApprovalAnswer.EXACT, "a  yes, and always this in this session"))
    if approval.broad:
        found.append((ApprovalAnswer.BROAD, f"l  yes, and always {clean.line(', '.join(approval.broad), 60)}"))
    if approval.walled:
        found.append((ApprovalAnswer.OUTSIDE, "o  yes, once, and it may change files outside the folder"))
    return tuple(found)
