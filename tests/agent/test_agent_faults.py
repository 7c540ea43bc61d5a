"""What goes wrong between the agent and its model, and what a person would do about it."""

from pathlib import Path

import pytest
from holding import Outside, call, end, folder, of, played, recorded, results, says

from tenure.agent.approval import Mode
from tenure.agent.breaker import STOP_AFTER, TELL_AFTER
from tenure.agent.events import CallDone, LimitUnmet, Noticed, Retrying, TurnFailed
from tenure.agent.settings import Allowance
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import Role
from tenure.errors import Failure, InputError
from tenure.testing.script import Broken, Call, Fault, Reply


def test_what_streamed_before_a_cut_is_void_and_not_in_the_record(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), Broken(reply=says("lost words"), how="cut", after=3), says("Here."))
    events = played(outside, "Go.")
    (retrying,) = of(events, Retrying)
    assert (retrying.kind, retrying.discard, retrying.attempt) == (Failure.CUT_SHORT, True, 2)
    assert "lost" not in "".join(block.text for entry in recorded(outside)[1:] for block in entry.blocks)


def test_waits_grow_and_end(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), *[Fault(status=503)] * 9, says("never"))
    events = played(outside, "Go.")
    assert outside.waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0][: len(outside.waits)]
    assert end(events).reason == "failed"
    assert of(events, TurnFailed)[0].kind is Failure.UNAVAILABLE
    assert [entry.role for entry in recorded(outside)] == [Role.SYSTEM, Role.USER]


@pytest.mark.parametrize(
    "fault",
    [Fault(status=401), Fault(status=404), Fault(status=400, message="unknown field"), Fault(status=429, retry_after_s=7200)],
    ids=["key", "model", "request", "two hours"],
)
def test_what_cannot_pass_is_said_at_once(fault: Fault, tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), fault, says("never"))
    events = played(outside, "Go.")
    assert end(events).reason == "failed"
    assert not of(events, Retrying)


def test_an_empty_reply_is_asked_for_again_and_then_given_up(tmp_path: Path) -> None:
    events = played(Outside(folder(tmp_path), Reply(), says("Here.")), "Go.")
    assert end(events).text == "Here."
    outside = Outside(folder(tmp_path), *[Reply()] * 3, says("never"))
    events = played(outside, "Go.")
    assert (end(events).reason, end(events).why) == ("failed", "the model said nothing")
    assert [entry.role for entry in recorded(outside)] == [Role.SYSTEM, Role.USER]


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_a_malformed_call_is_answered_with_what_is_wrong_and_can_be_sent_again(dialect: str, tmp_path: Path) -> None:
    broken = (Call(name="read", arguments='{"path": "a.py'), Call(name="read", arguments="[1]"), call("red", path="a.py"))
    outside = Outside(folder(tmp_path, a_py="x\n"), says("", *broken), says("Done."), dialect=dialect)
    events = played(outside, "Go.")
    assert end(events).reason == "done"
    first, second, third = results(outside)
    assert "arguments are no JSON object" in first
    assert "list is no object" in second
    assert "There is no tool 'red'; did you mean read" in third
    assert [each.outcome for each in of(events, CallDone)] == ["error"] * 3


def test_a_call_that_was_cut_by_the_output_limit_is_said_to_be(tmp_path: Path) -> None:
    cut = Reply(text="I write.", calls=(Call(name="write", arguments='{"path": "a.py", "content": "def'),), stop="length")
    outside = Outside(folder(tmp_path), cut, says("Done."))
    events = played(outside, "Go.")
    assert "reached its output limit" in results(outside)[0]
    assert "the reply was cut short" in of(events, Noticed)[0].text
    assert end(events).reason == "done"


@pytest.mark.parametrize(
    ("dialect", "stop", "reason", "words"),
    [
        ("openai-chat", "length", "cut short", "output limit"),
        ("anthropic", "length", "cut short", "output limit"),
        ("openai-responses", "length", "cut short", "output limit"),
        ("openai-chat", "refusal", "refused", "I cannot"),
        ("anthropic", "refusal", "refused", "refused to answer"),
        ("openai-responses", "refusal", "refused", "I cannot"),
        ("openai-chat", "filter", "refused", "content filter"),
    ],
)
def test_refusals_and_length_stops_are_said(dialect: str, stop: str, reason: str, words: str, tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), Reply(text="I cannot say more.", stop=stop), dialect=dialect)
    events = played(outside, "Go.")
    assert end(events).reason == reason
    assert words in end(events).why


def test_the_same_result_again_and_again_is_told_and_then_ends_the_turn(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), *[says("", call("bash", command="sleep 0.0; false"))] * 9, says("never"))
    events = played(outside, "Go.")
    assert (end(events).reason, end(events).steps) == ("stuck", STOP_AFTER)
    assert "the same call gave the same result 6 times in a row" in end(events).why
    assert ["in a row" in text for text in results(outside)] == [n >= TELL_AFTER for n in range(1, STOP_AFTER + 1)]


def test_two_steps_in_turn_that_lead_nowhere_end_the_turn_as_well(tmp_path: Path) -> None:
    pair = (says("", call("read", path="a.py")), says("", call("edit", path="a.py", old="z", new="y")))
    outside = Outside(folder(tmp_path, a_py="x\n"), *pair * 8, says("never"))
    events = played(outside, "Go.")
    assert end(events).reason == "stuck"
    assert "the same 2 steps" in end(events).why


def test_a_call_that_gives_something_new_each_time_is_progress(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), *[says("", call("bash", command="echo x >> n; wc -l < n"))] * 9, says("Done."))
    events = played(outside, "Go.")
    assert end(events).reason == "done"
    assert not any("in a row" in text for text in results(outside))


@pytest.mark.parametrize(
    ("allowance", "reason", "steps"),
    [(Allowance(steps=3), "step limit", 3), (Allowance(tokens=1), "token limit", 1), (Allowance(usd=1e-9), "money limit", 1)],
    ids=["steps", "tokens", "money"],
)
def test_a_limit_ends_the_turn_between_two_calls_and_the_session_can_go_on(
    allowance: Allowance, reason: str, steps: int, tmp_path: Path
) -> None:
    outside = Outside(folder(tmp_path), *[says("", call("bash", command=f"echo {n}")) for n in range(9)], model="claude-opus-4-5")
    events = played(outside, "Go.", allowance=allowance)
    assert (end(events).reason, end(events).steps) == (reason, steps)
    assert recorded(outside)[-1].role is Role.TOOL


def test_a_limit_of_money_that_could_not_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no price is known"):
        played(Outside(folder(tmp_path), model="mine"), "Go.", allowance=Allowance(usd=1.0))


def test_a_limit_that_nothing_can_keep_is_said_once(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), *[says("", call("ls")), says("", call("ls", path="."))], says("Done."))
    events = played(outside, "word " * 4_000, budget=Budget(ceiling=2_000, window=4_000))
    assert len(of(events, LimitUnmet)) == 1
    assert end(events).reason == "done"


def test_a_request_that_is_too_long_and_cannot_be_made_shorter_fails_with_the_providers_words(tmp_path: Path) -> None:
    outside = Outside(
        folder(tmp_path), Fault(status=400, message="prompt is too long: 5000 tokens > 4000 maximum"), says("never")
    )
    events = played(outside, "Go.", mode=Mode.ALL)
    assert end(events).reason == "failed"
    assert "prompt is too long" in of(events, TurnFailed)[0].text


def test_a_tool_that_fails_within_is_a_result_and_nothing_more(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("read", path="\0"), call("grep", pattern="(")), says("Done."))
    events = played(outside, "Go.")
    assert [each.outcome for each in of(events, CallDone)] == ["error", "error"]
    assert end(events).reason == "done"
