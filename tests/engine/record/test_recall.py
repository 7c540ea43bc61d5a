import re
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.record.entry import Draft, Entry
from tenure.engine.record.index import Index
from tenure.engine.record.query import LONGEST, Query
from tenure.engine.record.recall import CAP, LEAST, answer, raw, respond
from tenure.engine.record.search import MATCHES
from tenure.errors import InputError
from tenure.testing.builders import by_words, call, end_expl, human, placed, reply, result, results, returned, start_expl
from tenure.testing.transcripts import transcripts

GO_ON = re.compile(r'recall handle="([^"]*)"(?: lines="([^"]*)")?\]')


class Past:
    """A record to ask."""

    def __init__(self, *drafts: Draft) -> None:
        self.entries: tuple[Entry, ...] = placed(*drafts)
        self.index = Index()
        for entry in self.entries:
            self.index.grow(entry)

    def ask(
        self, *, cap: int = CAP, count: Callable[[str], int] = by_words, now: Callable[[], float] | None = None, **query: str
    ) -> str:
        return answer(self.index, self.entries.__getitem__, Query(**query), count=count, cap=cap, now=now)

    def respond(self, ordinal: int, *, stands: bool = True) -> str:
        """What the recall of that span gets."""
        span = self.index.spans[ordinal]
        arguments = self.entries[span.call[0]].blocks[span.call[1]].text
        return respond(self.index, self.entries.__getitem__, span, arguments, stands=lambda _: stands, count=by_words).text


def reads(*files: tuple[str, str]) -> Iterator[Draft]:
    for path, text in files:
        yield reply(call("read", path=path))
        yield result(text)


def long(lines: int, start: int = 1) -> str:
    return "\n".join(f"line {n} of a file" for n in range(start, start + lines))


def test_a_capped_answer_says_which_lines_it_left_out_and_how_to_go_on() -> None:
    past = Past(human("go"), *reads(("a.py", long(1_600))))
    told = past.ask(handle="read:1", cap=1_000)
    assert by_words(told) <= 1_000
    note = told.splitlines()[-1]
    first = len(told.split("[result]\n")[1].splitlines())
    assert note.startswith(f"[left out: lines {first}-1600 of 1600. Go on with: recall handle=")
    assert f'lines="{first}-1600"' in note


@settings(max_examples=60)
@given(st.text(st.sampled_from("ab \n\x00道"), max_size=6_000), st.integers(LEAST, 900))
def test_going_on_as_told_brings_back_every_byte_however_small_the_cap(text: str, cap: int) -> None:
    past = Past(human("go"), *reads(("a.py", text)))
    told = past.ask(handle="read:1", cap=cap, count=len).split("[result]\n", 1)[1]
    back = ""
    for _ in range(len(text) + 2):
        shown, _, note = told.rpartition("\n[left out: ")
        if not (shown or note.startswith(("line", "lines"))) or not (found := GO_ON.search(note)):
            back += told
            break
        back += shown + ("" if "@" in found[2] else "\n")
        told = past.ask(handle=found[1], lines=found[2], cap=cap, count=len)
    assert back == text


def test_a_gigantic_line_comes_in_parts_that_can_be_asked_for() -> None:
    past = Past(human("go"), *reads(("a.json", "x" * 50_000)))
    told = past.ask(handle="read:1", cap=1_000, count=len)
    assert "line 1 from character" in told
    assert len(told) <= 1_000


def test_several_handles_come_in_one_answer_and_what_has_no_room_is_named() -> None:
    past = Past(human("go"), *reads(("a.py", long(10)), ("b.py", long(900)), ("c.py", "see")))
    told = past.ask(handle="read:1, read:3 read:9")
    assert long(10) in told
    assert "\nsee" in told
    assert "read:1 to read:3" in told  # of the one that does not exist
    short = past.ask(handle="read:1 read:2 read:3", cap=500)
    assert 'lines="' in short
    assert 'recall handle="read:3"' in short
    with pytest.raises(InputError, match="no object"):
        past.ask(handle="read:8 read:9")
    with pytest.raises(InputError, match="at most 50 at once"):
        past.ask(handle=" ".join(f"read:{n}" for n in range(60)))


@pytest.mark.parametrize("handle", ["user:1", "step:1", "read:1", "entry:2", "entry:2/0", "entry:0"])
def test_lines_work_for_all_kinds_of_objects_and_number_what_is_shown(handle: str) -> None:
    past = Past(human("go"), *reads(("a.py", long(20))))
    whole = past.ask(handle=handle)
    every = whole.split("[result]\n")[1].split("\n") if handle == "read:1" else whole.split("\n")
    every = every[1:] if handle == "entry:2/0" else every  # its label is no line of it
    assert past.ask(handle=handle, lines="1").split("\n") == every[:1]
    with pytest.raises(InputError, match="a range within"):
        past.ask(handle=handle, lines="4000-")


def test_long_arguments_do_not_crowd_out_the_result() -> None:
    past = Past(human("go"), reply(call("write", text="word " * 5_000)), result("written"))
    told = past.ask(handle="write:1", cap=1_000)
    assert told.endswith("[result]\nwritten")
    assert 'handle="entry:1/0"' in told
    assert by_words(told) <= 1_000


def test_a_search_by_words_ranks_and_gives_handle_line_and_how_many_more() -> None:
    files = [(f"{n}.py", f"import os\nthe token {n}\n") for n in range(30)]
    past = Past(human("go"), *reads(*files, ("auth.py", "import os\n\ndef verify_token(x):\n    pass"), ("z.py", "nothing")))
    told = past.ask(words="verify_token").splitlines()
    assert told[1] == f"{past.index.handle('read:31', 61)} line 3: def verify_token(x):"
    assert past.ask(handle="read:31", lines="3") == "def verify_token(x):"
    many = past.ask(words="token").splitlines()
    assert len(many) == MATCHES + 2
    assert "11 more texts matched" in many[-1]


def test_a_search_by_pattern_shows_matching_lines_newest_first_and_a_handle_narrows_it() -> None:
    past = Past(human("go"), *reads(("a.py", "def a():\n  x\ndef b():"), ("b.py", "\n".join(f"def f{n}():" for n in range(9)))))
    told = past.ask(pattern=r"^def (\w+)\(\):$").splitlines()
    assert [line.split(" ", 1)[1] for line in told[1:6]] == [
        "line 1: def f0():",
        "line 2: def f1():",
        "line 3: def f2():",
        "line 1: def a():",
        "line 3: def b():",
    ]
    assert "6 more lines matched" in told[-1]
    assert len(past.ask(pattern="def", handle="read:2").splitlines()) == 9 + 2


def test_a_path_is_found_in_calls_beyond_the_cue_and_in_results() -> None:
    far = "/a" * 60 + "/größe.py"
    past = Past(
        human("go"),
        reply(call("bash", command=f"cat {far}")),
        result("text"),
        reply(call("bash", command="ls")),
        result(f"one\n{far}"),
        reply(call("read", path="src\\win.py")),
        result("w"),
    )
    told = past.ask(path="größe.py").splitlines()
    assert told[1].startswith(past.index.handle("bash:1", 1))
    assert told[2].startswith(f"{past.index.handle('bash:2', 3)} line 2: ")
    assert "read:1" in past.ask(path="src\\win.py")
    assert "nothing names '/other/place/größe.py'" in past.ask(path="/other/place/größe.py")
    assert "line 1: text" in past.ask(path="größe.py", words="text")
    with pytest.raises(InputError, match="nothing in the record matches"):
        past.ask(path="größe.py", pattern="zzz")


@pytest.mark.parametrize("pattern", [r"(a|aa|.)+$y", r"(?:(a|aa)+)+b", r"(\w+\s*)+!"])
def test_a_pattern_that_takes_too_long_is_stopped_and_said(pattern: str) -> None:
    past = Past(human("go"), *reads(("a.py", "aa " * 4_000), ("b.py", "fine")))
    ticks = iter(range(10**9))
    try:
        told = past.ask(pattern=pattern, now=lambda: next(ticks) * 1.1)
    except InputError as error:
        told = str(error)
    assert "takes too long" in told or "nothing in the record" in told


def test_a_clock_that_has_run_out_keeps_what_was_found_and_says_what_was_not_searched() -> None:
    past = Past(human("go"), *reads(*[(f"{n}.py", "hit") for n in range(5)]))
    ticks = iter(range(100))
    told = past.ask(pattern="^hit", now=lambda: next(ticks) * 0.5)
    assert "what is older was not searched" in told
    assert "line 1: hit" in told


@pytest.mark.parametrize(
    "pattern", ["(", "[", "a{99999999999999999999}", "(" * 900, "(?R)", "(a(?1)?b)", "x" * (LONGEST + 1), r"\L<x>"]
)
def test_what_is_no_pattern_is_refused_in_a_sentence(pattern: str) -> None:
    with pytest.raises(InputError, match="pattern"):
        Past(human("go")).ask(pattern=pattern)


def test_patterns_mean_what_they_mean_to_python() -> None:
    past = Past(human("go"), *reads(("a.py", "item_{i} = [x]\nfoo(1)")))
    assert "line 1: item_{i}" in past.ask(pattern="item_{i}")
    assert "line 2: foo(1)" in past.ask(pattern=r"foo\(?1\)")
    assert "line 1: item_{i}" in past.ask(pattern=r"\bitem_.{2,4} (?==)")


def test_a_search_finds_the_source_and_never_the_copy_that_a_recall_made() -> None:
    past = Past(
        human("go"),
        *reads(("a.py", "the flux")),
        reply(call("recall", handle="read:1")),
        result("[read:1: call of read]\nthe flux"),
        reply(call("recall", words="flux")),
        result("read:1 line 1: the flux"),
    )
    for query in ({"words": "flux"}, {"pattern": "flux"}, {"path": "a.py"}):
        told = past.ask(**query)
        assert "read:1@" in told
        assert "recall:" not in told


def test_a_recall_is_tied_to_its_source_and_one_of_a_recall_to_that_ones() -> None:
    past = Past(
        human("go"),
        *reads(("a.py", "flux"), ("b.py", "pure")),
        reply(call("recall", handle="read:1, user:1")),
        result("…"),
        reply(call("recall", handle="recall:1", lines="3-4")),
        result("…"),
        reply(call("recall", pattern="x")),
        reply(call("recall", query="a host's own")),
    )
    assert {past.index.spans[n].object: recalled.sources for n, recalled in past.index.recalls.items()} == {
        "recall:1": ("read:1", "user:1"),
        "recall:2": ("read:1", "user:1"),
        "recall:3": (),
    }
    assert [span.object for span in past.index.sources(past.index.spans[3])] == ["read:1"]
    assert [span.object for span in past.index.sources(past.index.spans[0])] == ["read:1"]


def test_a_turn_is_brought_back_without_the_copies_that_were_recalled_in_it() -> None:
    past = Past(human("go"), *reads(("a.py", "flux")), reply("Once more.", call("recall", handle="read:1")), result("COPY"))
    assert "Once more." in past.ask(handle="user:1")
    assert "COPY" not in past.ask(handle="user:1")
    assert "COPY" in past.ask(handle="recall:1")


def again(times: int, text: str = "f" * 2_000, **query: str) -> Past:
    """A record in which the same recall was made again and again, answered as it would be."""
    drafts = [human("go"), *reads(("a.py", text))]
    for n in range(times):
        drafts.append(reply(call("recall", f"c{n}", **query)))
        drafts.append(result(Past(*drafts).respond(n + 1), f"c{n}"))
    return Past(*drafts)


def test_the_same_recall_again_points_to_the_answer_that_still_stands() -> None:
    past = again(2, handle="read:1")
    told = [past.entries[span.result[0]].blocks[0].text for span in past.index.spans[1:] if span.result]
    assert "f" * 2_000 in told[0]
    assert "Still in your context: the same recall was answered 1 replies ago" in told[1]
    assert "ffff" not in told[1]
    assert "f" * 2_000 in past.respond(2, stands=False)  # once the first answer has left


def test_the_same_recall_three_times_is_said_plainly() -> None:
    past = again(4, handle="read:1")
    assert "exactly this 3 times within 10 replies" in past.respond(3)
    assert "exactly this 4 times" in past.respond(4)
    lost = again(3, handle="read:77")
    assert "exactly this 3 times" in lost.respond(3)
    assert "exactly this" not in lost.respond(2)


def test_a_search_that_finds_more_than_before_is_answered_anew() -> None:
    drafts = [human("go"), *reads(*[(f"{n}.py", "flux " * 9) for n in range(9)]), reply(call("recall", words="flux"))]
    drafts.append(result(Past(*drafts).respond(9)))
    more = Past(*drafts, *reads(("new.py", "flux")), reply(call("recall", words="flux")))
    assert "read:10@" in more.respond(10 + 1)


@settings(max_examples=40)
@given(transcripts())
def test_every_object_of_any_conversation_comes_back(drafts: tuple[Draft, ...]) -> None:
    past = Past(*drafts)
    read = past.entries.__getitem__
    for span in past.index.spans:
        handle = past.index.handle(span.object, span.call[0])
        at = span.result or span.call
        text = past.entries[at[0]].blocks[at[1]].text
        assert raw(past.index, read, handle).decode() == text
        assert answer(past.index, read, Query(handle=handle), cap=0).endswith(text)
    for entry in past.entries:
        for number, block in enumerate(entry.blocks):
            assert answer(past.index, read, Query(handle=f"entry:{entry.n}/{number}"), cap=0).endswith(block.text)


@settings(max_examples=60)
@given(
    transcripts(),
    st.fixed_dictionaries({}, optional={name: st.text(max_size=30) for name in ("handle", "path", "words", "pattern", "lines")}),
)
def test_any_question_is_answered_or_refused_in_words(drafts: tuple[Draft, ...], query: dict[str, str]) -> None:
    with suppress(InputError):
        assert by_words(Past(*drafts).ask(cap=LEAST, **query)) <= LEAST


def test_two_results_of_one_message_are_read_apart() -> None:
    past = Past(human("go"), reply(call("read", "a"), call("read", "b")), results(returned("B", "b"), returned("A", "a")))
    assert past.ask(handle="read:1").endswith("\nA")
    assert past.ask(handle="read:2").endswith("\nB")


def test_an_episode_is_recalled_by_every_spelling_of_its_name_and_what_it_found_comes_first() -> None:
    past = Past(
        human("go"),
        reply(start_expl("look")),
        reply(call("read")),
        result(long(500)),
        reply(end_expl("auth lives in auth.py")),
        reply(start_expl("see: all"), end_expl("it is so")),
    )
    handle = past.index.handle("episode:look", 1)
    for spelling in ("look", "episode:look", handle):
        told = past.ask(handle=spelling, cap=500)
        assert told.startswith(f'[{handle}, which found: "auth lives in auth.py"]\n')
        assert by_words(told) <= 500
    both = past.ask(handle="look, episode:see: all")
    assert both.index('which found: "auth lives') < both.index('which found: "it is so')
    with pytest.raises(InputError, match="a handle such as"):
        past.ask(handle="nowhere")


def test_several_bare_names_are_recalled_at_once() -> None:
    past = Past(human("go"), reply(start_expl("a"), end_expl("A is so"), start_expl("b c"), end_expl("B is so")))
    assert "A is so" in past.ask(handle="a")
    assert "B is so" not in past.ask(handle="a")
    assert "B is so" in past.ask(handle="b c")
    past = Past(human("go"), reply(start_expl("a"), end_expl("A is so"), start_expl("b"), end_expl("B is so")))
    assert "A is so" in past.ask(handle="a, b")
    assert "B is so" in past.ask(handle="a b")


def test_handles_far_apart_are_told_apart_in_linear_time() -> None:
    handle = f"read:1{' ' * 200_000}read:2{' ,' * 100_000}"
    assert Query(handle=handle).handles == ("read:1", f"read:2{' ,' * 100_000}")  # minutes, were it quadratic
