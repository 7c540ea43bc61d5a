"""Digests through the front door, with models that answer well, badly, late or not at all."""

from pathlib import Path
from typing import Any

import pytest

from tenure import Context
from tenure.engine.record.entry import Usage
from tenure.errors import InputError
from tenure.models.question import Answer, Question
from tenure.testing.model import Line, ScriptedModel
from tenure.testing.store import MemoryStore

LONG = "\n".join(f"line {n} of what was printed" for n in range(1_500))


def ran(model: Any, *texts: str, store: Any = None, **settings: Any) -> Context:
    context = Context(dialect="openai-chat", store=store or MemoryStore(), digest=model, **settings)
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": f'{{"command": "make {n}"}}'}}
        for n in range(len(texts))
    ]
    context.extend([{"role": "user", "content": "Go."}, {"role": "assistant", "content": None, "tool_calls": calls}])
    context.extend([{"role": "tool", "tool_call_id": f"c{n}", "content": text} for n, text in enumerate(texts)])
    return context


def shown(context: Context) -> list[str]:
    return [message["content"] for message in context.request(model="m")["messages"] if message["role"] == "tool"]


def test_a_large_result_is_shown_with_a_digest_and_is_intact() -> None:
    model = ScriptedModel("1,500 lines, all alike.", name="small-model")
    context = ran(model, LONG)
    (text,) = shown(context)
    assert "digest by small-model, not the tool's words" in text
    assert "1,500 lines, all alike." in text
    assert "make 0" in str(model.questions[0].messages[0])
    assert context.recall("bash:1").endswith(LONG)


def test_by_default_no_model_is_asked() -> None:
    assert "digest" not in shown(ran(None, LONG))[0]


def test_results_below_the_threshold_are_clipped_without_a_question() -> None:
    model = ScriptedModel()
    (text,) = shown(ran(model, LONG[: len(LONG) // 2]))
    assert text.startswith("[clip ")
    assert model.questions == []
    assert "digest by" in shown(ran(ScriptedModel("ok then"), LONG[: len(LONG) // 2], digest_above=4_000))[0]


def asleep(_: Question, *, cancel: Any = None) -> Answer:
    raise TimeoutError("no answer in time")


def unfit(_: Question, *, cancel: Any = None) -> Answer:
    raise InputError("question", "cannot be put")


@pytest.mark.parametrize(
    "model",
    [
        *[ScriptedModel(then=Line(play=play, text="half of it")) for play in ("down", "cut short")],
        *[ScriptedModel(Answer(text=text)) for text in ("", "none", "word " * 3_000)],
        asleep,
        unfit,
    ],
)
def test_a_model_that_fails_leaves_the_plain_clip(model: Any) -> None:
    assert shown(ran(model, LONG)) == shown(ran(None, LONG))


def test_a_model_that_never_answers_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.models.helpers.DIGEST_S", 0.0)
    model = ScriptedModel(then="slow", wait=lambda _: None)
    assert shown(ran(model, LONG)) == shown(ran(None, LONG))


def test_failures_of_one_result_are_none_of_the_next() -> None:
    model = ScriptedModel(Line(play="down"), "the second, then")
    plain, told = shown(ran(model, LONG, LONG + "\nlast"))
    assert "digest by" not in plain
    assert "the second, then" in told


def test_a_digest_is_stored_with_the_result_and_never_asked_for_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    with ran(ScriptedModel("1,500 lines, all alike."), LONG, store=url) as context:
        before, name = shown(context), context.conversation
    model = ScriptedModel()
    with Context(dialect="openai-chat", store=url, conversation=name, digest=model) as again:
        assert shown(again) == before
    assert model.questions == []


def test_what_digests_cost_is_in_the_ledger() -> None:
    usage = Usage(uncached=9_000, output=60)
    context = ran(ScriptedModel(Line(text="all alike", usage=usage, cost_usd=0.003)), LONG)
    (account,) = [account for account in context.ledger.accounts if account.role == "digest"]
    assert (account.calls, account.usage) == (1, usage)
