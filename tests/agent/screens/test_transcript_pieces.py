import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll

from tenure.agent.events import CallDone, CallStarted
from tenure.agent.screens import clean
from tenure.agent.screens.commands import COMMANDS, is_command, matching
from tenure.agent.screens.pieces import DONE, HARD, SPLIT, TAIL, CallPiece, Words
from tenure.agent.screens.prose import prose
from tenure.agent.screens.status import StatusFacts, line, nudge
from tenure.agent.screens.widgets import MeasuredText, fitted, widths
from tenure.engine.meter.gauge import Gauge


def facts(tokens: int = 1_000) -> StatusFacts:
    return StatusFacts(
        model="anthropic:claude-sonnet-4-5",
        folder=Path("/home/kit"),
        gauge=Gauge(tokens=tokens, limit=10_000, estimated=False),
        cached_share=0.91,
        usd=0.132,
        episode="expl locate-auth",
    )


def test_a_script_is_named_by_its_file_and_what_is_cut_says_so() -> None:
    scripted = StatusFacts(model="scripted:/a/long/way/down/to/the/tour.json", folder=Path("/home/kit"), gauge=facts().gauge)
    assert "scripted:tour.json" in line(scripted, 120).plain
    assert clean.line("word " * 100, 12) == "word word w…"
    assert clean.line("word word", 12) == "word word"


@pytest.mark.parametrize("width", range(24, 130, 7))
def test_every_column_of_a_list_is_in_sight(width: int) -> None:
    rooms = widths([1, 22, 14, 6, 0], width)
    assert sum(rooms) + 2 * 4 <= max(width, 1 + 8 + 8 + 6 + 8)
    assert rooms[-1] >= 16 or max(rooms[:-1]) <= 8


@pytest.mark.parametrize("width", range(20, 170, 7))
def test_the_status_line_fits_and_never_drops_the_gauge(width: int) -> None:
    shown = line(facts(), width)
    assert shown.cell_length <= width
    assert "1.0k/10k 10 %" in shown.plain


def test_the_status_line_says_everything_where_there_is_room() -> None:
    shown = line(facts(), 160).plain
    for part in ("claude-sonnet-4-5", "kit", "ask", "█", "1.0k/10k 10 %", "cached 91 %", "$0.132", "expl locate-auth"):
        assert part in shown


@pytest.mark.parametrize(("tokens", "tone"), [(6_949, "success"), (6_950, "warning"), (8_949, "warning"), (8_950, "error")])
def test_the_gauge_has_the_colour_of_its_severity(tokens: int, tone: str) -> None:
    styles = {str(span.style) for span in line(facts(tokens), 160).spans}
    assert any(tone in style for style in styles)


def test_only_a_critical_window_that_makes_no_room_by_itself_asks_for_a_handoff() -> None:
    assert nudge(facts(8_949).gauge, evicts=False) is None
    assert nudge(facts(9_500).gauge, evicts=True) is None
    said = nudge(facts(9_500).gauge, evicts=False)
    assert said is not None
    assert "/handoff" in said.plain
    again = nudge(facts(9_500).gauge, evicts=False, can_hand_off=False)
    assert again is not None
    assert "/why" in again.plain


def test_the_gauge_is_of_the_models_window_and_the_limit_stands_beside_it() -> None:
    gauge = Gauge(tokens=72_000, limit=80_000, window=180_000, estimated=False)
    shown = line(replace(facts(1), gauge=gauge), 200).plain
    assert "72k/180k 40 %  evicts at 80k" in shown
    assert "evicts" not in line(replace(facts(1), gauge=gauge, evicts=False), 200).plain
    assert nudge(gauge, evicts=False) is None


def started(tool: str = "bash", arguments: str = "{}") -> CallStarted:
    return CallStarted(call="c", tool=tool, summary="make", arguments=arguments)


def test_a_flood_of_output_keeps_its_tail_and_counts_the_rest() -> None:
    piece = CallPiece(started())
    for n in range(100):
        piece.feed("".join(f"line {n * 1_000 + m}\n" for m in range(1_000)))
    shown = piece.drawn().plain.splitlines()
    assert len(shown) <= TAIL + 2
    assert shown[-1].strip() == "line 99999"
    assert shown[1].strip() == f"[{100_000 - TAIL:,} more lines]"


def test_a_line_without_an_end_takes_no_more_room_than_its_tail() -> None:
    piece = CallPiece(started())
    for _ in range(50):
        piece.feed("x" * 100_000)
    assert len(piece.drawn().plain) < 20_000


def test_a_result_shows_its_first_lines_and_counts_the_rest() -> None:
    piece = CallPiece(started())
    piece.finish(CallDone(call="c", tool="bash", text="\n".join(map(str, range(40)))))
    shown = piece.drawn().plain
    assert f"[{40 - DONE} more lines]" in shown


def test_an_edit_shows_what_it_changed() -> None:
    piece = CallPiece(started("edit", '{"path":"a.py","old":"one","new":"two"}'))
    piece.finish(CallDone(call="c", tool="edit", text="Edited a.py"))
    assert piece.drawn().plain.endswith("\n  -one\n  +two")


def test_an_edit_whose_arguments_are_broken_shows_its_result() -> None:
    piece = CallPiece(started("edit", '{"path":'))
    piece.finish(CallDone(call="c", tool="edit", text="edit: no JSON", outcome="error"))
    assert "edit: no JSON" in piece.drawn().plain


def test_a_long_reply_is_parted_between_paragraphs_and_nothing_of_it_is_lost() -> None:
    text = "\n\n".join(f"paragraph {n} " + "word " * 60 for n in range(60))
    said: list[str] = []
    piece = Words()
    for start in range(0, len(text), 17):
        rest = text[start : start + 17]
        while rest := piece.feed(rest):
            said.append(piece.text)
            piece = Words()
    said.append(piece.text)
    assert "\n\n".join(said) == text
    assert all(len(part) < SPLIT + 400 for part in said)


def test_a_fence_is_not_parted_unless_it_is_very_long() -> None:
    piece = Words()
    assert not piece.feed("```\n" + "code\n\n" * (SPLIT // 6 + 10))
    assert piece.feed("code\n" * (HARD // 5))


def test_a_literal_carriage_return_or_bell_does_not_reach_the_screen() -> None:
    assert clean.text("a\x1b]0;title\x07b\x1b[2Jc\x00") == "abc␀"
    assert "\u202e" not in clean.line("a\u202eb")


def test_a_gigantic_text_is_cut_in_the_middle() -> None:
    shown = clean.text("a" * 1_000_000, 1_000)
    assert len(shown) < 1_100
    assert "999,000 characters" in shown


MARKDOWN = """# Head with `code`
Some **bold**, *slanted* and [words](https://a.example/b).
Its second line, <b>as written</b>, snake_case_name and 2 * 3 * 4.

- one
- two
  1. first
  2. second

> quoted
> further

```python
def f(x):
    return "a"  # why
```

| name | size |
|---|---|
| a | 12 |
| **bc** | 3 |
"""
SHOWN = """Head with code
Some bold, slanted and words (https://a.example/b).
Its second line, <b>as written</b>, snake_case_name and 2 * 3 * 4.

• one
• two
  1. first
  2. second

▌ quoted
▌ further

  def f(x):
      return "a"  # why

name  size
────  ────
a     12
bc    3"""


def test_markdown_is_laid_out_and_nothing_is_obeyed() -> None:
    shown = prose(MARKDOWN)
    assert [line.rstrip() for line in shown.plain.split("\n")] == SHOWN.split("\n")
    assert prose("[bold]x[/bold] \x1b[31mred").plain == "[bold]x[/bold] red"
    assert {str(span.style) for span in shown.spans} >= {
        "bold",
        "italic",
        "underline",
        "$text-primary",
        "$text-success",
        "$text-accent",
    }


def test_while_a_text_streams_every_beginning_of_it_is_shown() -> None:
    for end in range(0, len(MARKDOWN), 3):
        shown = prose(MARKDOWN[:end]).plain
        assert all(word in shown for word in MARKDOWN[:end].split()[:-1] if word.isalpha()), end


@given(
    st.lists(
        st.sampled_from([*"aé \n#>-+*_`~|<&.1)(![]:\\\t", "```", "**", "__init__", "\n\n", "---", "|a|\n|-|\n|a|a|", "2*3*4"]),
        max_size=40,
    )
)
def test_no_text_breaks_the_layout_or_loses_a_letter(parts: list[str]) -> None:
    text = "".join(parts)
    shown = prose(text).plain
    assert sum(map(str.isalpha, shown)) >= sum(map(str.isalpha, text)) or "```" in text  # the language of a fence goes


def test_signs_that_are_a_part_of_a_name_or_a_sum_stay() -> None:
    text = "__init__.py, 2*3*4, a*b*c, *.py and *.js, _x_, [a]: https://a.example &lt;"
    assert prose(text).plain == text


@pytest.mark.parametrize(
    "text", ["> " * 5_000 + "x", "- " * 5_000 + "x", "[" * 5_000, "*a " * 5_000, "`" * 5_001, "|a" * 3_000 + "\n" + "|-" * 3_000]
)
def test_a_hostile_text_is_laid_out_all_the_same(text: str) -> None:
    assert prose(text[:12_000]).plain


def test_code_of_an_unknown_language_and_a_diff_are_shown_whole() -> None:
    assert prose("```nolang\nx = 1\n\ny\n```").plain == "  x = 1\n  \n  y"
    diff = prose("```diff\n-a\n+b\n```")
    assert {str(span.style) for span in diff.spans} >= {"$text-error", "$text-success"}


def test_a_cell_is_exactly_as_wide_as_its_column() -> None:
    assert [len(fitted(text, 6)) for text in ("", "ab", "abcdefghij")] == [6, 6, 6]
    assert fitted("漢字漢字", 5) == "漢字…"
    assert fitted("7", 3, right=True) == "  7"


def test_every_command_is_found_by_its_beginning() -> None:
    for command in COMMANDS:
        assert command in matching(f"/{command.name[:2]}")
    assert matching("/") == COMMANDS
    assert not matching("/budget 9k")
    assert not matching("words")


def test_what_looks_like_a_path_is_no_command() -> None:
    assert is_command("/help")
    assert not is_command("/etc/hosts")
    assert not is_command("/")


def test_a_text_that_changes_twice_around_another_widgets_layout_is_as_tall_as_its_newest_words() -> None:
    class Page(App[None]):
        def compose(self) -> ComposeResult:
            with VerticalScroll():
                yield MeasuredText("one", id="text")

    async def play() -> int:
        app = Page()
        async with app.run_test(size=(40, 20)) as pilot:
            text = app.query_one("#text", MeasuredText)
            text.update("another")
            app.screen._refresh_layout()  # what another widget asked for, before this one was idle
            text.update("one\ntwo\nthree")
            await pilot.pause()
            return text.size.height

    assert asyncio.run(play()) == 3


def test_a_call_holds_no_more_of_its_result_than_it_may_show() -> None:
    piece = CallPiece(CallStarted(call="1", tool="bash", summary="bash make", arguments="{}"))
    piece.finish(CallDone(call="1", tool="bash", text="line\n" * 1_000_000))
    assert piece.done is not None
    assert len(piece.done.text) <= 20_000
    assert f"[{1_000_000 - DONE:,} more lines]" in piece.drawn().plain
