import pytest
from session_reading import FIXTURES, blocks, drafts, events, rewritten, said, skipped

from tenure.engine.record.entry import Draft, Origin, Role, Text, Thinking, Usage
from tenure.errors import InputError
from tenure.logs.aider import Aider
from tenure.logs.detect import read
from tenure.logs.reader import Event, SubAgent

FIXTURE = (FIXTURES / "aider.md").read_bytes()
START = "\n# aider chat started at 2024-05-05 10:00:00\n\n"
TOKENS = "> Tokens: 10 sent, 2 received.  \n"


def history(*written: str) -> list[Event]:
    return list(Aider().read(["".join((START, *written)).encode()]))


def typed(text: str) -> str:
    return "\n#### " + "  \n#### ".join(text.splitlines()) + "  \n"


def printed(*texts: str) -> str:
    return "".join(f"> {text}  \n" for text in texts)


def answered(text: str) -> str:
    return f"\n{text}\n\n"


def by(found: list[Event], origin: Origin) -> list[str]:
    return [block.text for block in blocks(found) if block.origin is origin]


def test_what_a_human_typed_is_there_without_the_marks_of_the_log() -> None:
    assert by(events("aider.md"), Origin.HUMAN) == [
        "Tidy the porch\n\nand sweep it",
        "oil it",
        "/run make check",
        "why  oil?",
        "build a gate",
        "Paint it",
        "/run make dry",
        "# Question: how do I stop?",
        "Where were we?",
    ]


def test_headings_and_quotations_of_the_model_stay_its_own() -> None:
    answer = by(events("aider.md"), Origin.MODEL)[0]
    assert answer.startswith("#### Plan\n\n> keep the mat\n\nporch.py\n```python\n")
    assert answer.endswith("mat = 2\n\n\nbroom = 1\n>>>>>>> REPLACE\n```\n\n#### Next\n\nSweep.")


def test_the_model_is_told_of_commits_lint_errors_refused_edits_and_added_output() -> None:
    found = events("aider.md")
    assert by(found, Origin.TOOL) == [
        "porch.py:3: E305 too few lines\n    broom = 1",
        "checking\n\n    3 squeaks  \n\nloudly\n> twice",
    ]
    assert by(found, Origin.HARNESS) == [
        "Commit abc1234 fix: swap the mat",
        "# 1 SEARCH/REPLACE block failed to match!\n\n## SearchReplaceNoExactMatch: nothing in porch.py fits\n\nLook again.",
        "Commit abc1235 style: add a line",
        "# Relevant docs:\n\n<doc>\nUse /exit.\n</doc>",
    ]


def test_what_only_the_user_saw_is_left_out_and_counted() -> None:
    reasons = "\n".join(skip.reason for skip in skipped(events("aider.md")))
    assert "command to aider: not sent to the model (4 times)" in reasons
    assert "command whose output was not added to the chat" in reasons
    assert "shown to the user" in reasons
    everything = "\n".join(text for _, text in said(events("aider.md")))
    for hidden in (
        "Added porch.py",
        "Tokens:",
        "--message",
        "/add",
        "/tokens",
        "/home",
        "Create new file",
        "<blank>",
        "make test",
    ):
        assert hidden not in everything


def test_usage_model_and_start_are_where_they_belong() -> None:
    found = drafts(events("aider.md"))
    answers = [draft for draft in found if draft.role is Role.ASSISTANT]
    assert [answer.model for answer in answers] == ["model-x"] * 6 + ["model-y"] * 4
    assert answers[0].usage == Usage(uncached=1200, output=300)
    assert answers[1].usage == Usage(uncached=1500, cache_write=1000, cache_read=9900, output=40)
    assert [draft.at for draft in found if draft.at] == ["2024-05-05T10:00:00Z", "2025-06-06T11:00:00Z", "2025-06-07T09:00:00Z"]


def test_cache_hits_below_what_was_sent_are_part_of_it() -> None:
    found = history(typed("hi"), answered("Hello."), printed("Tokens: 4.0k sent, 3.0k cache hit, 7 received."))
    assert drafts(found)[1].usage == Usage(uncached=1000, cache_read=3000, output=7)


def test_a_chat_and_clear_begin_a_new_window_but_a_restored_chat_goes_on() -> None:
    found = events("aider.md")
    assert [(event.reason, event.drop_before, event.kept) for event in rewritten(found)] == [
        ("/clear", 11, ()),
        ("new chat", 13, ()),
        ("retry: the answer broke off", 15, (13,)),
    ]


def test_an_answer_that_broke_off_stays_where_the_model_continues_its_own_answers() -> None:
    start = printed("Aider v0.86.1", "Main model: m with diff edit format, infinite output")
    found = history(start, typed("hi"), answered("Hel"), printed("Retrying in 0.2 seconds..."), answered("lo."), TOKENS)
    assert rewritten(found) == []


def test_reasoning_is_thinking() -> None:
    found = blocks(events("aider.md"))
    assert [block.text for block in found if isinstance(block, Thinking)] == ["Which colour?"]
    empty = history(typed("hi"), answered("<think>\n\n</think>\n\nHello."))
    assert [type(block) for block in blocks(empty)] == [Text, Text]


def test_an_editor_and_a_fixer_of_lint_errors_are_agents() -> None:
    found = [event for event in events("aider.md") if isinstance(event, SubAgent)]
    assert [(agent.id, agent.messages) for agent in found] == [("editor-1", 3), ("linter-2", 2)]
    editor = drafts(read([FIXTURE], agent="editor-1")[1])
    assert [(draft.role, draft.blocks[0].origin, draft.blocks[0].text) for draft in editor[:2]] == [
        (Role.USER, Origin.MODEL, "Two posts and a bar."),
        (Role.ASSISTANT, Origin.MODEL, "gate.py\n```\nposts = 2\n```"),
    ]
    (errors, fixed) = drafts(read([FIXTURE], agent="linter-2")[1])
    assert errors.blocks == (Text(text="gate.py:1: W1 odd", origin=Origin.TOOL),)
    assert fixed.blocks[0].text == "Even now."
    assert list(Aider().read_agent([FIXTURE], "editor-9")) == []


def test_output_that_was_added_without_a_question_is_a_failing_test() -> None:
    failing = history(typed("/test pytest"), "> one\n  two  \n", printed("one", "two"), answered("Fixed."))
    assert said(failing)[:2] == [("Text", "/test pytest"), ("Text", "one\n  two")]
    passing = history(typed("/test pytest"), "> one\n  two  \n", typed("good"), answered("Yes."))
    assert [text for _, text in said(passing)] == ["good", "Yes."]


def test_errors_are_not_sent_when_nobody_wants_them_fixed_or_aider_stops() -> None:
    for end in (("Attempt to fix lint errors? n",), ("Attempt to fix lint errors? y", "Only 3 reflections allowed, stopping.")):
        found = history(typed("hi"), answered("Done."), TOKENS, printed("Applied edit to a.py", "a.py:1: bad", *end))
        assert by(found, Origin.TOOL) == []


def test_older_versions_print_errors_of_many_lines_in_one_go() -> None:
    found = history(typed("hi"), answered("Done."), "> a.py:1: bad\n\n    x = 1  \n", printed("Attempt to fix lint errors? y"))
    assert by(found, Origin.TOOL) == ["a.py:1: bad\n\n    x = 1"]
    assert by(found, Origin.MODEL) == ["Done."]


def test_pasted_text_is_the_humans() -> None:
    found = history(typed("/paste"), "> a poem\nof two lines  \n", answered("Nice."))
    assert by(found, Origin.HUMAN) == ["a poem\nof two lines"]


def test_a_command_may_be_shortened_and_an_unknown_one_is_kept() -> None:
    found = history(typed("/ex"), typed("/ponder the sea"), answered("Blue."))
    assert by(found, Origin.HUMAN) == ["/ponder the sea"]
    again = history(typed("hi"), answered("Hello."), typed("/cl"), typed("bye"))
    assert [event.reason for event in rewritten(again)] == ["/cl"]


def test_a_question_answered_once_for_several_files_is_no_human_turn() -> None:
    found = history(typed("hi"), typed("Add file to the chat? (Y)es/(N)o/(A)ll/(S)kip all [Yes]: all"), answered("Hello."))
    assert by(found, Origin.HUMAN) == ["hi"]


def test_an_interrupted_answer_leaves_its_fence_open_and_hides_nothing() -> None:
    cut = printed("foo.py", "Create new file? (Y)es/(N)o [Yes]: n")
    found = history(typed("hi"), answered("```md\n# Title\n\n> quoted\n\n#### Heading"), cut, typed("go on"), answered("Yes."))
    assert [text for _, text in said(found)] == ["hi", "```md\n# Title\n\n> quoted\n\n#### Heading", "go on", "Yes."]


def test_a_file_whose_line_ends_were_stripped_reads_alike() -> None:
    plain = (
        FIXTURE.decode().replace("#### Where\n", "Where\n").replace("#### Plan\n", "Plan\n")
    )  # now in doubt, so taken for typed
    stripped = "\n".join(line.rstrip() for line in plain.split("\n"))
    found = list(Aider().read([stripped.encode()]))
    assert by(found, Origin.HUMAN) == by(events("aider.md"), Origin.HUMAN)
    assert by(found, Origin.MODEL)[-1] == "At the gate."


def test_a_file_may_start_within_a_chat_and_end_within_a_line() -> None:
    whole = FIXTURE.decode()
    within = whole[whole.index("#### Tidy the porch  ") :]
    assert read([within.encode()])[0].name == "aider"
    assert drafts(read([within.encode()])[1])[0].blocks == drafts(events("aider.md"))[0].blocks
    assert by(history(typed("hi"), "\n#### good by"), Origin.HUMAN) == ["hi", "good by"]


def test_what_is_no_chat_history_is_said() -> None:
    reader = Aider()
    assert not reader.recognises(b"# notes\n\n> quoted\n\n#### more\n")
    assert not reader.recognises(b'{"text": "\n# aider chat started at 2024-05-05 10:00:00\n"}')
    assert reader.recognises(b"\xef\xbb\xbf\r\n# aider chat started at 2024-05-05 10:00:00\r\n")
    with pytest.raises(InputError, match="found neither the start of a chat"):
        list(reader.read([b"Dear diary"]))


def test_lines_are_those_of_the_file() -> None:
    lines = FIXTURE.decode().split("\n")
    for draft in drafts(events("aider.md")):
        if isinstance(draft, Draft) and draft.role is Role.ASSISTANT and isinstance(draft.blocks[0], Text):
            assert lines[draft.line - 1] == draft.blocks[0].text.split("\n")[0]
