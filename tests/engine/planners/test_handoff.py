from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.handoff.brief import brief
from tenure.engine.planners.handoff.facts import FailedCall, HandoffFacts, Quoted, Touched, facts_of
from tenure.engine.planners.handoff.request import SYSTEM, ask, cut
from tenure.engine.planners.handoff.sections import Sections, read
from tenure.engine.record.entry import Draft, Role
from tenure.engine.record.index import Index
from tenure.testing.builders import (
    by_words,
    call,
    harness,
    human,
    indexed,
    placed,
    reminder,
    reply,
    result,
    results,
    returned,
    system,
    thinking,
)
from tenure.testing.transcripts import transcripts

U, A, T, DONE = human("go"), reply(call("read")), result("x"), reply("done")

SESSION = (
    system("You are a coding agent."),
    human("The login test is flaky. Fix it; never add a dependency."),
    reply(thinking("Where is it?"), "I look.", call("grep", "g", pattern="login"), call("read", "r", path="tests/test_login.py")),
    results(
        returned("tests/test_login.py:4: def test_login()", "g"), returned("def test_login():\n    assert now() == now()", "r")
    ),
    reply(call("edit", "e", path="tests/test_login.py", old="now() == now()", new="clock.now() == clock.now()")),
    result("edited", "e"),
    reply(call("bash", "b", command="pytest tests/test_login.py")),
    result("NameError: name 'clock' is not defined\nExit code 1", "b", error=True),
    reply("The clock is not there yet."),
    human("use the fixture `frozen`", reminder("today is Monday")),
    reply(call("read", "r2", path="tests/conftest.py")),
    result("def frozen(): ...", "r2"),
)

TOLD = Sections(
    goal="Make tests/test_login.py stable.",
    state="test_login() compared two calls of now(); edited to clock.now() in edit:1.",
    in_progress="clock is not defined in tests/test_login.py.",
    dead_ends="none",
    next_steps="1. Use the fixture frozen.",
    constraints="Never add a dependency.",
)


@pytest.mark.parametrize(
    ("drafts", "keep", "place"),
    [
        ((U, A, T, A, T, A, T), 2, 3),
        ((U, A, T, A, T, A, T), 1, 5),
        ((U, A, T), 1, None),
        ((U, A, T), 2, None),
        ((U,), 1, None),
        ((U,), 0, None),
        ((), 0, None),
        ((), 2, None),
    ],
)
def test_the_newest_replies_are_kept_with_their_results(drafts: tuple[Draft, ...], keep: int, place: int | None) -> None:
    assert cut(indexed(*drafts), keep=keep) == place


def test_a_finished_exchange_may_be_handed_off_whole() -> None:
    assert cut(indexed(U, A, T, DONE), keep=0) == 4


def test_words_that_the_model_has_not_answered_stay() -> None:
    assert cut(indexed(U, A, T, DONE, human("and now?"), harness("mind")), keep=0) == 4


def test_results_that_the_model_has_not_seen_stay() -> None:
    assert cut(indexed(U, A, T, A, T), keep=0) == 3


def test_a_run_without_people_is_cut_between_its_steps() -> None:
    index = indexed(U, *[A, T] * 50)
    assert cut(index, keep=4) == 93
    assert index.entries[93].role is Role.ASSISTANT


def test_the_tail_stays_whatever_is_asked() -> None:
    assert cut(indexed(U, *[A, T] * 5, DONE), keep=0, tail=frozenset({7, 8, 9})) == 7


def test_a_call_is_kept_with_a_result_that_came_late() -> None:
    slow = (reply(call("bash", "slow")), human("go on"), reply(call("read", "q")), result("y", "q"), result("late", "slow"))
    assert cut(indexed(U, A, T, *slow, DONE), keep=2) == 3
    assert cut(indexed(U, A, T, *slow, DONE), keep=1) == 8


def test_a_reply_that_was_logged_in_pieces_is_not_cut_apart() -> None:
    assert cut(indexed(U, A, T, reply("so"), reply(call("read")), T), keep=1) == 3


def test_a_handoff_without_news_has_no_place() -> None:
    drafts = (U, A, T, DONE)
    assert cut(indexed(*drafts), keep=0, since=4) is None
    assert cut(indexed(*drafts, human("so?")), keep=0, since=4) is None
    assert cut(indexed(system("be kind"), U, DONE), keep=1) is None


@given(drafts=transcripts(longest=16), keep=st.integers(0, 4), since=st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_a_cut_never_splits_a_pair_or_a_reply(drafts: tuple[Draft, ...], keep: int, since: int) -> None:
    index = indexed(*drafts)
    place = cut(index, keep=keep, since=since)
    if place is None:
        return
    assert since < place <= len(index)
    for span in index.spans:
        if span.result is not None:
            assert (span.call[0] < place) == (span.result[0] < place)
    if place < len(index):
        facts = index.entries[place]
        assert facts.role in (Role.USER, Role.ASSISTANT)
        assert facts.role is Role.USER or facts.reply == place
        assert not any(span.result is None and span.call[0] < place for span in index.spans_in(index.reply, len(index)))


def asked(drafts: tuple[Draft, ...], room: int = 10_000, **options: str) -> str:
    request = ask(placed(*drafts), indexed(*drafts), room=room, count=by_words, **options)
    return request.user if request else ""


def test_the_summariser_gets_one_message_that_ends_in_what_it_is_to_do() -> None:
    user = asked(SESSION)
    assert user.startswith("§§ start of the transcript\n§§ user:1\nThe login test is flaky.")
    assert user.endswith("Do not continue the conversation.")


def test_a_first_transcript_has_the_words_of_both_the_calls_and_how_they_ended() -> None:
    user = asked(SESSION)
    for told in (
        "never add a dependency",
        "I look.",
        "§§ call grep:1",
        "tests/conftest.py",
        "§§ result of bash:1 (error)",
        "NameError",
    ):
        assert told in user
    assert "You are a coding agent" not in user


def test_a_second_handoff_is_told_the_first_brief_and_what_is_new_but_not_what_was_handed_off() -> None:
    index, entries = indexed(*SESSION), placed(*SESSION)
    first = brief(TOLD, HandoffFacts(files=(Touched(path="gone.py", counts=(("edited", 1),)),)))
    request = ask(entries[9:], index, room=10_000, count=by_words, previous=first)
    assert request is not None
    assert request.user.index("Make tests/test_login.py stable") < request.user.index("use the fixture")
    assert "flaky" not in request.user
    assert "gone.py" not in request.user  # code carries it on


def test_nothing_new_is_not_asked_about() -> None:
    assert ask((), indexed(U), room=10_000, count=by_words, previous=brief(TOLD, HandoffFacts())) is None
    assert asked((system("be kind"),)) == ""


def test_a_room_too_small_for_anything_is_not_asked_in() -> None:
    assert asked(SESSION, room=10) == ""


def test_what_a_person_wants_kept_is_passed_on() -> None:
    assert "in the words of the person: the fixture" in asked(SESSION, focus="the fixture")


@pytest.mark.parametrize("room", [900, 1_100, 2_000])
def test_the_whole_request_fits_its_room(room: int) -> None:
    long = (*SESSION, reply(call("bash", "z", command="make")), result("a line of output\n" * 5_000, "z"))
    count = o200k()
    request = ask(placed(*long), indexed(*long), room=room, count=count, focus="all of it " * 2_000 if room > 1_500 else "")
    assert request is not None
    assert count(SYSTEM) + count(request.user) <= room


def test_the_prompt_and_the_brief_of_a_small_session_are_as_reviewed(golden: Callable[[str, str], None]) -> None:
    index, entries = indexed(*SESSION), placed(*SESSION)
    place = cut(index, keep=1)
    assert place == 10
    request = ask(entries[:place], index, room=10_000, count=by_words, focus="the fixture")
    assert request is not None
    golden("handoff-prompt.txt", f"{SYSTEM}\n\n--- user ---\n\n{request.user}\n")
    answer = "## Goal\n" + "\n## ".join(
        (TOLD.goal, f"State and work done\n{TOLD.state}", f"Work in progress\n{TOLD.in_progress}", "Dead ends\nNone.",
         f"Next steps\n{TOLD.next_steps}", f"Constraints and preferences\n{TOLD.constraints}\n[end of brief]")
    )  # fmt: skip
    sections = read(answer, transcript=request.transcript)
    assert sections == TOLD
    rules = (Quoted(label="AGENTS.md", text="Run `pytest -q`.\n```\nmake test\n```"),)
    facts = facts_of(index, entries, cut=place, rules=rules)
    assert facts.failures[0].text.startswith("NameError")
    golden("handoff-brief.txt", brief(TOLD, facts) + "\n")


def test_a_failure_names_the_handle_that_brings_it_back() -> None:
    index: Index = indexed(*SESSION)
    (failure,) = facts_of(index, placed(*SESSION)).failures
    assert failure == FailedCall(
        handle=index.handle("bash:1", 6),
        target="pytest tests/test_login.py",
        text="NameError: name 'clock' is not defined\nExit code 1",
    )
