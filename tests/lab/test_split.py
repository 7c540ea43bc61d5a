"""Conversations in arms: assigned by a hash, kept with them, held out for good, and held against each other."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import Context
from tenure.cli.main import main
from tenure.engine.lifecycle.arms import arm_of
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError
from tenure.lab.split import ArmConversation, differences, split_of
from tenure.store.store import Store
from tenure.testing.model import ScriptedModel

RESULT = "\n".join(f"line {n} of the log" for n in range(400))


def worked(store: Store, account: str, *, calls: int = 12, holdout: float = 0.5) -> Context:
    """A conversation of an account in which a tool is called again and again, under a small ceiling."""
    context = Context(
        dialect="openai-chat",
        store=store,
        model="gpt-5",
        budget=Budget(ceiling=6_000),
        planner=ScriptedModel(),
        holdout=holdout,
        account=account,
    )
    context.extend([{"role": "user", "content": "Watch the log."}])
    for n in range(calls):
        context.request(model="gpt-5")
        call = {"id": f"c{n}", "type": "function", "function": {"name": "recall" if n == 7 else "tail", "arguments": "{}"}}
        usage = {"prompt_tokens": context.session.view.tokens, "completion_tokens": 20}
        context.append(
            {
                "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
                "usage": usage,
                "model": "gpt-5",
            }
        )
        context.extend([{"role": "tool", "tool_call_id": f"c{n}", "content": RESULT}])
    return context


@given(key=st.text(), first=st.floats(0, 1), second=st.floats(0, 1))
def test_who_is_held_out_stays_so_when_more_are(key: str, first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert arm_of(key, low) == arm_of(key, low)
    assert arm_of(key, low) == "managed" or arm_of(key, high) == "control"
    assert arm_of(key, 0) == "managed"


def test_about_as_many_are_held_out_as_were_wanted() -> None:
    held = sum(arm_of(f"user-{n}", 0.2) == "control" for n in range(5_000))
    assert 900 < held < 1_100


def test_a_held_out_conversation_loses_nothing_and_keeps_its_arm_and_the_report_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.db"
    with Store(f"sqlite:///{path}") as store:
        accounts = {
            arm: next(f"user-{n}" for n in range(99) if arm_of(f"user-{n}", 0.5) == arm) for arm in ("managed", "control")
        }
        managed, control = (worked(store, accounts[arm]) for arm in ("managed", "control"))
        assert (managed.arm, control.arm) == ("managed", "control")
        assert len(managed.session.commits)
        assert not len(control.session.commits)
        again = Context(store=store, conversation=control.conversation, planner=ScriptedModel())
        assert again.arm == "control"
        assert again.session.setup.policy is None
        assert Context(store=store).arm == ""
        rows = {row.arm: row for row in split_of(store).rows}
        assert rows["managed"].input_per_call is not None
        assert rows["control"].input_per_call is not None
        assert rows["managed"].input_per_call < rows["control"].input_per_call
        assert rows["control"].misses_per_100_calls == pytest.approx(100 / 12)
        assert rows[""].calls == 0
    assert main(["report", str(path), "--json", str(tmp_path / "r.json")]) == 0
    out = capsys.readouterr().out
    assert "held out" in out
    assert "input tokens per call, managed against held out: 0." in out
    assert json.loads((tmp_path / "r.json").read_text())["differences"][0]["ratio"] < 1


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="holdout"):
        Context(store="sqlite://", holdout=1.5)


def test_the_interval_holds_the_ratio_and_is_the_same_on_every_machine() -> None:
    found = [
        ArmConversation(
            id=str(n), arm="managed" if n % 2 else "control", calls=10, input_tokens=1_000 * (n % 7 + 1), usd=0.1 * (n % 5 + 1)
        )
        for n in range(40)
    ]
    first, again = list(differences(found)), list(differences(found))
    assert first == again
    assert [each.figure for each in first] == ["input tokens", "dollars"]  # no misses, no ratio of them
    for each in first:
        assert each.low <= each.ratio <= each.high
