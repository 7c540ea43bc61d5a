import json
import re
from collections.abc import Iterable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import o200k, weigh
from tenure.engine.policies import policy_named
from tenure.engine.policies.graph import GraphPolicy
from tenure.engine.policies.graph.texts import anchors, files, listed, unlisted
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Text
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, end_expl, human, reply, result, start_act, start_expl, thinking

RULES = Rules(provider="t", dialect="openai-chat")
FILLER = " ".join(["plain"] * 300)


def worked(*drafts: Draft, ceiling: int) -> tuple[Session, str]:
    """A session that was decided once, and the texts it then shows in place of results."""
    read: dict[int, Entry] = {}
    setup = Setup(budget=Budget(ceiling=ceiling, floor=ceiling), rules=RULES, policy=GraphPolicy())
    session = Session(setup, weigh=partial(weigh, tokenizer=o200k(), media=RULES.media), count=o200k(), read=read.__getitem__)
    for draft in drafts:
        read |= {entry.n: entry for entry in session.append(draft).entries}
    decision = session.decide()
    assert isinstance(decision, Propose), decision
    session.commit(decision.commit)
    return session, "\n".join(shown.text for row in session.view.rows() for _, shown in row.replaced)


def read_of(name: str, text: str) -> tuple[Draft, Draft]:
    return reply(call("read", f"c-{name}", path=f"src/{name}.py")), result(text, f"c-{name}")


def later(count: int) -> Iterable[Draft]:
    for n in range(count):
        yield from (reply(call("edit", f"e{n}", path="o.py", text="x")), result("ok", f"e{n}"))


def code(name: str, lines: int = 40) -> str:
    return "\n".join(f"    {name}_{n} = compute_{name}_{n}(value, {n})" for n in range(lines))


def test_what_is_kept_of_a_result_are_lines_of_it_in_their_order_below_a_note_that_names_the_handle() -> None:
    text = f"{FILLER}\n{code('parse_token')}\n{FILLER}"
    _, shown = worked(human("Go."), *read_of("used", text), *later(6), ceiling=900)
    note, *lines = shown.split("\n")
    assert note.startswith("[result of src/used.py shortened, ")
    assert "recall read:1@" in note
    kept = [line for line in lines if not line.startswith(("[names in it: ", "[… "))]
    assert kept
    places = [text.split("\n").index(line) for line in kept]
    assert places == sorted(places)


def test_a_view_is_brought_down_to_its_goal_and_hardly_below() -> None:
    session, _ = worked(human("Go."), *(each for n in "abcdef" for each in read_of(n, code(n))), *later(6), ceiling=1_500)
    assert 1_450 <= session.view.tokens <= 1_500


def test_names_that_nothing_else_shows_stay_in_a_list_when_their_lines_go() -> None:
    text = f"{FILLER} parseTokenStream {FILLER}\n{FILLER} lib/deep/reader.py {FILLER}"
    _, shown = worked(human("Go."), *read_of("used", text), *later(6), ceiling=330)
    assert "[names in it: " in shown
    assert "parseTokenStream" in shown
    assert "lib/deep/reader.py" in shown


def test_a_name_that_something_else_shows_is_not_kept_for_its_own_sake() -> None:
    text = f"{FILLER} parseTokenStream {FILLER}"
    _, shown = worked(human("Go."), *read_of("used", text), reply("I change parseTokenStream."), *later(6), ceiling=330)
    assert "parseTokenStream" not in shown


def test_recent_lines_stay_rather_than_old_ones() -> None:
    session, _ = worked(
        human("Go."), *read_of("old", code("old")), *later(30), *read_of("new", code("new")), *later(6), ceiling=1_500
    )
    texts = {row.entry: shown.text for row in session.view.rows() for _, shown in row.replaced}
    old = next(text for text in texts.values() if "src/old.py" in text)
    new = next((text for text in texts.values() if "src/new.py" in text), code("new"))
    assert len(old.split("\n")) < len(new.split("\n"))


def test_what_was_shortened_can_be_shortened_further_and_nothing_comes_back_of_itself() -> None:
    session, first = worked(human("Go."), *read_of("used", code("used")), *later(6), ceiling=560)
    session.setup = replace(session.setup, budget=Budget(ceiling=450, floor=450))
    decision = session.decide()
    assert isinstance(decision, Propose), decision
    session.commit(decision.commit)
    second = "\n".join(shown.text for row in session.view.rows() for _, shown in row.replaced)
    assert second.split("\n")[0] == first.split("\n")[0]
    assert len(second) < len(first)
    of_first = [line for line in first.split("\n") if not line.startswith(("[names", "[… "))]
    assert all(line in of_first for line in second.split("\n") if not line.startswith(("[names", "[… ")))


def test_a_tools_words_without_a_call_are_shortened_too_and_their_handle_brings_them_back() -> None:
    words = "\n".join(f"line {n} of the listing shows file_{n}.py" for n in range(80))
    told = Draft(role=Role.USER, blocks=(Text(text=words, origin=Origin.TOOL),))
    session, shown = worked(human("Go."), reply("ls"), told, *(reply(f"step {n}") for n in range(8)), ceiling=320)
    handle = re.search(r"recall (entry:2/0@[0-9a-f]{4})", shown)
    assert handle, shown
    assert blocks_of(session.index, parse_handle(handle[1])) == ((2, 0),)


@given(st.lists(st.from_regex(r"[a-z_]{2,8}(/[a-z_]{2,8}){0,3}", fullmatch=True), unique=True))
def test_a_list_of_names_gives_back_the_names_that_were_put_in(names: list[str]) -> None:
    assert sorted(unlisted(listed(names))) == sorted(names)


@given(st.text(max_size=300))
def test_any_text_may_be_read_for_its_names(text: str) -> None:
    assert all(name for name in listed(anchors(text)).split())


def test_old_reasoning_goes_before_any_result() -> None:
    _, shown = worked(
        human("Go."),
        reply(thinking(FILLER), call("read", "c1", path="src/a.py")),
        result(FILLER, "c1"),
        *later(6),
        ceiling=620,
    )
    assert shown == ""


def lines_shown(session: Session, entry: int, text: str) -> int:
    texts = {row.entry: shown.text for row in session.view.rows() for _, shown in row.replaced}
    return len(set(texts.get(entry, text).split("\n")) & set(text.split("\n")))


def test_a_file_that_was_read_to_be_edited_stays_rather_than_one_that_was_edited_before() -> None:
    edit = (reply(call("edit", "e", path="src/done.py", old_string="x", new_string="y")), result("ok", "e"))
    session, _ = worked(
        human("Go."), *read_of("done", code("done")), *read_of("next", code("next")), *edit, *later(6), ceiling=1_000
    )
    assert lines_shown(session, 4, code("next")) > lines_shown(session, 2, code("done"))


def test_of_a_file_that_was_read_twice_the_older_reading_goes_first() -> None:
    again = (reply(call("read", "again", path="src/used.py")), result(code("used"), "again"))
    session, _ = worked(human("Go."), *read_of("used", code("used")), *again, *later(6), ceiling=1_000)
    assert lines_shown(session, 4, code("used")) > lines_shown(session, 2, code("used"))


def test_a_long_text_that_goes_leaves_names_that_tell_what_it_held() -> None:
    text = "\n".join(f"def parse_part_{n}(value): ..." for n in range(60))
    _, shown = worked(human("Go."), *read_of("used", text), *later(6), ceiling=480)
    assert re.search(r"^\[names in it: .*parse_part_\d+", shown, re.MULTILINE), shown


def test_a_run_of_characters_without_end_is_read_in_linear_time() -> None:
    for run in ("a" * 300_000, "a." * 150_000, " " * 300_000 + "x", "-" * 300_000, "/a" * 150_000):
        text = f"{run}\n{FILLER}\n{code('other')}"
        session, _ = worked(human("Go."), *read_of("used", text), *later(6), ceiling=900)  # hours, were it quadratic
        assert session.view.tokens <= 900


def test_long_words_of_the_agent_are_shortened_and_their_handle_brings_them_back() -> None:
    session, shown = worked(human("Go."), reply(code("said")), *(reply(f"step {n}") for n in range(8)), ceiling=400)
    handle = re.search(r"recall (entry:1/0@[0-9a-f]{4})", shown)
    assert handle, shown
    assert blocks_of(session.index, parse_handle(handle[1])) == ((1, 0),)


def test_of_a_call_the_long_texts_are_shortened_and_it_stays_json_with_its_other_arguments() -> None:
    session, shown = worked(
        human("Go."),
        reply(call("write", "w", path="src/new.py", text=code("new"))),
        result("written", "w"),
        *later(6),
        ceiling=500,
    )
    arguments = json.loads(shown)
    assert arguments["path"] == "src/new.py"
    note, *lines = arguments["text"].split("\n")
    assert re.fullmatch(r"\[result shortened, \d+ lines left out; recall write:1@[0-9a-f]{4} shows them\]", note)
    assert set(lines) <= set(code("new").split("\n"))
    assert session.view.shows(1, 0)


def test_a_gap_says_which_lines_are_not_there() -> None:
    text = code("used")
    _, shown = worked(human("Go."), *read_of("used", text), *later(6), ceiling=560)
    number = 1
    lines = [line for line in shown.split("\n")[1:] if not line.startswith("[names")]
    assert any(line.startswith("[… ") for line in lines)
    for line in lines:
        if gap := re.fullmatch(r"\[… (\d+)(?:-(\d+))?\]", line):
            assert int(gap[1]) == number
            number = int(gap[2] or gap[1])
        else:
            assert line == text.split("\n")[number - 1]
        number += 1
    assert number == len(text.split("\n")) + 1


def test_what_the_open_act_builds_on_stays_rather_than_what_is_over() -> None:
    def expl(name: str) -> Iterable[Draft]:
        yield from (reply(start_expl(f"look-{name}")), result("ok"))
        yield from read_of(name, code(name))
        yield from (reply(end_expl("seen")), result("ok"))

    session, _ = worked(
        human("Go."), *expl("base"), *expl("over"), reply(start_act("do", "look-base")), result("ok"), *later(6), ceiling=1_000
    )
    texts = {row.entry: shown.text for row in session.view.rows() for _, shown in row.replaced}
    assert len(texts.get(4, code("base"))) > len(texts.get(10, ""))


def test_a_conversation_that_was_held_under_the_name_of_old_goes_on() -> None:
    assert policy_named("provenance") == policy_named("graph")
    assert policy_named("tiered+provenance") == policy_named("tiered+graph")


def test_the_file_of_a_long_path_is_its_last_part_and_folders_with_dots_are_none() -> None:
    path = "/home/" + "a-long-folder/" * 12 + "github.com/x/parser.go"
    assert list(files(f'{{"replace_all":false,"file_path":"{path}"}}')) == ["parser.go"]
