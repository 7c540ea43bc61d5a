"""The agent's notes, from the record alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.engine.record.entry import Draft, Role, ToolCall
from tenure.engine.record.index import Index
from tenure.engine.record.notes import NOTES_TOKENS, Notes, fits
from tenure.testing.builders import call, human, placed, reply, result, results, returned

LONG = "x" * (NOTES_TOKENS * 4)


class Pad:
    """An agent that takes notes and gets its answers at once."""

    def __init__(self) -> None:
        self.index = Index()
        self.notes: Notes = self.index.notes

    def __call__(self, **arguments: object) -> str:
        return self.said(json.dumps(arguments))

    def said(self, arguments: str) -> str:
        self._grow(Draft(role=Role.ASSISTANT, blocks=(ToolCall(call_id="n", name="notes", arguments=arguments),)))
        answer = self.notes.answer(len(self.index.spans) - 1)
        self._grow(result(answer.text, "n"))
        return answer.text

    def _grow(self, draft: Draft) -> None:
        (entry,) = placed(draft)
        self.index.grow(replace(entry, n=len(self.index)))


def test_each_answer_is_the_whole_text() -> None:
    pad = Pad()
    assert pad(add="goal: mend the parser").endswith("tokens; they stay in your context]\ngoal: mend the parser")
    assert pad(add="tried: a regex, too slow").endswith("]\ngoal: mend the parser\ntried: a regex, too slow")
    assert pad().endswith("]\ngoal: mend the parser\ntried: a regex, too slow")
    assert pad(replace="done").endswith("]\ndone")
    assert pad(replace="") == "[your notes are empty]"
    assert pad.notes.text == ""


def test_a_text_that_grows_too_long_is_refused_and_nothing_changes() -> None:
    pad = Pad()
    pad(add="keep me")
    told = pad(add=LONG)
    assert told.startswith("notes refused: with this they would be about 2,002 tokens long, and at most 2,000 are kept")
    assert '{"replace":"…"}' in told
    assert pad.notes.text == "keep me"
    assert pad(replace=LONG).endswith(LONG)


@pytest.mark.parametrize(
    "arguments",
    ["not json", "[]", "3", '{"add": 3}', '{"text": "x"}', '{"add": "a", "replace": "b"}', '{"add": "\\ud800"}', "[" * 90_000],
)
def test_what_cannot_be_understood_is_refused_in_words(arguments: str) -> None:
    pad = Pad()
    pad(add="keep me")
    told = pad.said(arguments)
    assert told.startswith("notes refused: ")
    assert "expected {" in told
    assert len(told) < 400
    assert pad.notes.text == "keep me"


@given(st.lists(st.tuples(st.sampled_from(["add", "replace"]), st.text(max_size=60) | st.just(LONG[:7_950]))))
def test_notes_are_what_their_newest_answer_says_and_never_too_long(said: list[tuple[str, str]]) -> None:
    pad = Pad()
    for what, text in said:
        told = pad(**{what: text})
        if not told.startswith("notes refused"):
            assert told == "[your notes are empty]" if not pad.notes.text else told.split("\n", 1)[1] == pad.notes.text
            assert fits(told)
        assert len(pad.notes.text.encode()) <= NOTES_TOKENS * 4


def grown(*drafts: Draft) -> Index:
    index = Index()
    for entry in placed(*drafts):
        index.grow(entry)
    return index


A, AB = (f"[your notes, about 1 of 2,000 tokens; they stay in your context]\n{text}" for text in ("a", "a\nb"))


def test_calls_of_one_message_build_on_each_other_and_the_newest_answer_counts() -> None:
    both = reply(call("notes", "1", add="a"), call("notes", "2", add="b"))
    assert grown(human("go"), both, result(A, "1")).notes.text == "a"
    for answers in (results(returned(A, "1"), returned(AB, "2")), results(returned(AB, "2"), returned(A, "1"))):
        index = grown(human("go"), both, answers)
        assert (index.notes.text, index.notes.span) == ("a\nb", 1)


def test_a_call_that_was_interrupted_has_changed_nothing() -> None:
    index = grown(human("go"), reply(call("notes", "1", add="a")), human("stop"), reply(call("notes", "2", add="b")))
    assert index.notes.text == ""
    assert index.notes.answer(0).error
    assert index.notes.answer(1).text.endswith("]\nb")
    late = grown(human("go"), reply(call("notes", "1", add="a")), human("stop"), reply("well"), result(A, "1"))
    assert late.notes.span is None


def test_a_tool_of_that_name_that_answers_otherwise_holds_no_notes() -> None:
    index = grown(human("go"), reply(call("notes", "1", add="a")), result("created note 17", "1"))
    assert (index.notes.text, index.notes.span) == ("", None)


def test_notes_behind_a_servers_prefix_are_notes() -> None:
    index = grown(human("go"), reply(call("mcp__tenure__notes", "1", add="a")), result(A, "1"))
    assert index.notes.text == "a"


def test_only_the_answers_to_the_newest_reply_are_kept() -> None:
    pad = Pad()
    for n in range(50):
        pad(add=f"line {n}")
    assert pad.notes.text.count("\n") == 49
    assert len(pad.notes._answers) == 1
