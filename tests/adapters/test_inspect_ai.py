"""Managed models in real evaluations of Inspect, against a server that refuses what providers refuse."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")
from framework_work import FILE, RECALLED, human_texts, prefixes, work
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.agent import as_tool, react
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.tool import tool

from tenure import Budget
from tenure.adapters.inspect_ai import tenure_model
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply

pytestmark = pytest.mark.filterwarnings("ignore")
BUDGET = Budget(ceiling=40_000)


@tool
def read() -> Any:
    async def execute(path: str) -> str:
        """Reads a file.

        Args:
            path: Which one.

        """
        return f"{path}\n{FILE}"

    return execute


def model_of(kind: str, url: str, store: Store, **more: Any) -> Any:
    if kind == "openai":
        inner = get_model("openai/gpt-5.1", base_url=f"{url}/v1", api_key="-", memoize=False, responses_api=False, **more)
    else:
        inner = get_model("anthropic/claude-opus-4-5", base_url=url, api_key="-", memoize=False, **more)
    return tenure_model(inner, store=store, budget=BUDGET)


def evaluated(task: Task, model: Any, folder: Path, **more: Any) -> Any:
    (log,) = evaluate(task, model=model, log_dir=str(folder), display="none", max_retries=0, **more)
    assert log.status == "success", log.error
    return log


@pytest.mark.parametrize("kind", ["anthropic", "openai", "thinking"])
def test_an_agent_is_kept_to_its_budget_and_recalls_unseen(kind: str, tmp_path: Path) -> None:
    provider = FakeProvider(work(30, recalled=26, thinking="hm" if kind == "thinking" else ""))
    with serve(provider.app) as url, Store("sqlite://") as store:
        solver = react(tools=[read()], submit=False)
        task = Task(dataset=[Sample(input="Look through the files.")], solver=solver)
        more = {"reasoning_tokens": 1024, "max_tokens": 4096} if kind == "thinking" else {}
        log = evaluated(task, model_of(kind, url, store), tmp_path, **more)
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        commits = sum(each.moment != "admission" for each in store.commits(sheet.id))
    (sample,) = log.samples
    assert sample.output.completion == "Done."
    assert [seen.violations for seen in provider.seen] == [()] * 32
    assert len(sample.messages) == 63
    assert "recall" not in str([getattr(each, "tool_calls", None) for each in sample.messages])
    assert sum(len(each.text) for each in sample.messages) > 2 * max(len(seen.body) for seen in provider.seen)
    assert all(b"Look through the files." in seen.body for seen in provider.seen)
    assert RECALLED in provider.seen[27].body
    assert prefixes(provider.seen).count(False) <= commits < 10
    total = sum(seen.usage.output for seen in provider.seen)
    assert sum(used.output_tokens for used in log.stats.model_usage.values()) == total


def test_samples_side_by_side_and_sub_agents_keep_apart(tmp_path: Path) -> None:
    """A chief hands everything to its helper, which reads a file first."""

    def answered(body: Any) -> Reply:
        newest = body["messages"][-1]
        if newest["role"] != "user":
            return Reply(text="Done.")
        if newest["content"].startswith("for-"):
            return Reply(calls=(Call(name="read", arguments='{"path":"a.py"}'),))
        return Reply(calls=(Call(name="helper", arguments=json.dumps({"input": f"for-{newest['content']}"})),))

    provider = FakeProvider(answered)
    with serve(provider.app) as url, Store("sqlite://") as store:
        helper = react(name="helper", description="Helps.", tools=[read()], submit=False)
        solver = react(tools=[as_tool(helper)], submit=False)
        samples = [Sample(input=f"{name} asks {name}") for name in ("Ann", "Bob", "Cleo", "Dan")]
        evaluated(Task(dataset=samples, solver=solver), model_of("openai", url, store), tmp_path)
        names = [{text.split()[0] for text in human_texts(store, sheet.id)} for sheet in store.conversations()]
    assert {len(each) for each in names} == {1}
    assert set[str]().union(*names) == {prefix + name for name in ("Ann", "Bob", "Cleo", "Dan") for prefix in ("", "for-")}
    assert {seen.violations for seen in provider.seen} == {()}


def test_the_model_that_was_handed_in_stays_as_it_was() -> None:
    provider = FakeProvider(lambda body: Reply(text="Done."))
    with serve(provider.app) as url, Store("sqlite://") as store:
        inner = get_model("openai/gpt-5.1", base_url=f"{url}/v1", api_key="-", memoize=False)
        assert tenure_model(inner, store=store).api is not inner.api
        output = asyncio.run(inner.generate([ChatMessageUser(content="Hello.")], tools=[read()]))
        assert output.completion == "Done."
        assert not store.conversations()
