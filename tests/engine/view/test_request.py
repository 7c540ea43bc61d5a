"""How a record that is not as providers want it is sent all the same."""

from sent import shape

from tenure.engine.record.entry import Draft
from tenure.testing.builders import (
    call,
    end_expl,
    harness,
    human,
    reminder,
    reply,
    result,
    results,
    returned,
    start_expl,
    system,
    thinking,
)


def test_a_tidy_record_is_sent_as_it_is() -> None:
    drafts = [system("be kind"), human("go"), reply("ok", call("read")), result("text"), reply("done")]
    assert shape(*drafts) == ["be kind", "go", "ok + read?", "text", "done"]


def test_a_call_that_was_never_answered_gets_a_result_saying_so() -> None:
    assert shape(human("go"), reply(call("read")), human("stop")) == [
        "go", "read?", "[no result: the call was interrupted]", "stop",
    ]  # fmt: skip


def test_the_newest_call_still_waits_for_its_result() -> None:
    assert shape(human("go"), reply(call("read"))) == ["go", "read?"]


def test_a_result_that_answers_nothing_is_left_out() -> None:
    assert shape(human("go"), result("what?", "nobody"), reply("hm")) == ["go", "hm"]
    assert shape(human("go"), results(returned("what?", "nobody"), reminder("mind")), reply("hm")) == ["go", "mind", "hm"]


def test_what_was_said_before_a_result_stands_after_it() -> None:
    assert shape(human("go"), reply(call("read")), human("and hurry"), result("text"), reply("done")) == [
        "go", "read?", "text", "and hurry", "done",
    ]  # fmt: skip


def test_a_late_result_is_told_in_words() -> None:
    drafts: list[Draft] = [human("go"), reply(call("read", "a")), human("go on"), reply("well"), result("text", "a"), reply("oh")]
    assert shape(*drafts) == [
        "go", "read?", "[no result: the call was interrupted]", "go on", "well", "[late result of read:1]\ntext", "oh",
    ]  # fmt: skip


def test_results_of_a_reply_that_was_logged_in_pieces_stand_behind_their_calls() -> None:
    drafts = [human("go"), reply(call("read", "a")), reply(call("grep", "b")), results(returned("A", "a"), returned("B", "b"))]
    assert shape(*drafts) == ["go", "read?", "A", "grep?", "B"]


def test_words_beside_a_result_come_after_all_results() -> None:
    drafts = [human("go"), reply(call("read", "a"), call("grep", "b")), human(returned("A", "a"), "wait"), result("B", "b")]
    assert shape(*drafts, reply("ok")) == ["go", "read? + grep?", "A", "B", "wait", "ok"]


def test_words_beside_the_last_result_stay_there() -> None:
    drafts = [human("go"), reply(call("read", "a"), call("grep", "b")), human(returned("A", "a"), returned("B", "b"), "wait")]
    assert shape(*drafts, reply("ok")) == ["go", "read? + grep?", "A + B + wait", "ok"]


def test_reasoning_that_was_cut_short_is_left_out() -> None:
    assert shape(human("go"), reply("hm", thinking("so"))) == ["go", "hm"]
    assert shape(human("go"), reply(thinking("so")), human("well?")) == ["go", "well?"]


def test_a_reused_id_after_an_interrupted_call_answers_the_new_call() -> None:
    drafts = [human("go"), reply(call("read")), human("no"), reply(call("grep")), result("found"), reply("ok")]
    assert shape(*drafts)[3:] == ["no", "grep?", "found", "ok"]


def test_delimiters_are_calls_like_others() -> None:
    assert shape(human("go"), reply(start_expl("a", "1"), end_expl("A", "2")), results(returned("x", "1")), reply("ok")) == [
        "go", "delimiter? + delimiter?", "x", "[no result: the call was interrupted]", "ok",
    ]  # fmt: skip


def test_replies_that_meet_because_what_was_between_them_left_are_still_two() -> None:
    drafts = [human("go"), reply("hm", thinking("so")), harness("tick"), reply("ok")]
    assert shape(*drafts, without=(2,)) == ["go", "hm", "ok"]
