"""The condenser in real agents of OpenHands' SDK, against a server that refuses what providers refuse."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any, Self

import pytest

pytest.importorskip("openhands.sdk")
from framework_work import FILE, RECALLED, human_texts, prefixes, summed_up, work
from openhands.sdk import LLM, Agent, Conversation, Tool, register_tool
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.conversation.response_utils import get_agent_final_response
from openhands.sdk.event import Condensation
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor

from tenure import Budget
from tenure.adapters.openhands import TenureCondenser
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")
BUDGET = Budget(ceiling=40_000)


class ReadAction(Action):
    """Which file."""

    path: str


class ReadObservation(Observation):
    """The text."""


class ReadExecutor(ToolExecutor[ReadAction, ReadObservation]):
    """Gives the same text for every path."""

    def __call__(self, action: ReadAction, conversation: Any = None) -> ReadObservation:
        return ReadObservation.from_text(text=f"{action.path}\n{FILE}")


class ReadTool(ToolDefinition[ReadAction, ReadObservation]):
    """A tool named `read`."""

    @classmethod
    def create(cls, *args: Any, **params: Any) -> Sequence[Self]:
        """The tool."""
        executor = ReadExecutor()
        return [cls(description="Reads.", action_type=ReadAction, observation_type=ReadObservation, executor=executor)]


register_tool("read", ReadTool)


def agent_of(kind: str, url: str, condenser: TenureCondenser, **more: Any) -> Agent:
    if kind != "anthropic":
        mode: Any = kind
        llm = LLM(model="openai/gpt-5.1", base_url=f"{url}/v1", api_key="-", num_retries=0, api_mode=mode, **more)
    else:
        llm = LLM(model="anthropic/claude-opus-4-5", base_url=url, api_key="-", num_retries=0, **more)
    return Agent(llm=llm, tools=[Tool(name="read"), Tool(name="tenure_recall")], condenser=condenser)


@pytest.mark.parametrize(
    ("kind", "how"), [("anthropic", "called"), ("chat", "awaited"), ("responses", "called"), ("anthropic", "streamed")]
)
def test_an_agent_is_kept_to_its_budget_and_recalls(kind: str, how: str, tmp_path: Path) -> None:
    provider = FakeProvider(work(30, recalled=26, recall="tenure_recall", thinking="hm" if kind == "anthropic" else ""))
    pieces: list[Any] = []
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = agent_of(kind, url, TenureCondenser(store=store, budget=BUDGET), stream=how == "streamed")
        listened: Any = {"token_callbacks": [pieces.append]} if how == "streamed" else {}
        conversation: Any = Conversation(agent=agent, workspace=tmp_path, visualizer=None, **listened)
        conversation.send_message("Look through the files.")
        if how == "awaited":
            asyncio.run(conversation.arun())
        else:
            conversation.run()
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        commits = sum(each.moment != "admission" for each in store.commits(sheet.id))
        events = list(conversation.state.events)
    assert get_agent_final_response(events) == "Done."
    assert bool(pieces) == (how == "streamed")
    assert [seen.violations for seen in provider.seen] == [()] * 32
    assert not any(isinstance(each, Condensation) for each in events)
    assert sum(len(each.model_dump_json()) for each in events) > 2 * max(len(seen.body) for seen in provider.seen)
    assert all(b"Look through the files." in seen.body for seen in provider.seen)
    assert RECALLED in provider.seen[27].body
    assert prefixes(provider.seen).count(False) <= commits < 10


def test_thinking_that_is_streamed_is_not_refused_at_the_second_request(tmp_path: Path) -> None:
    thoughts = ("First this, then that.", "ha" * 2, "Now that.")
    replies = [
        Reply(thinking=thought, calls=(Call(name="read", arguments=f'{{"path":"{n}"}}'),)) for n, thought in enumerate(thoughts)
    ]
    provider = FakeProvider(Script(replies=(*replies, Reply(text="Done."))))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = agent_of("anthropic", url, TenureCondenser(store=store, budget=BUDGET), stream=True)
        conversation: Any = Conversation(agent=agent, workspace=tmp_path, visualizer=None, token_callbacks=[lambda _: None])
        conversation.send_message("Look through the files.")
        conversation.run()
    assert [seen.violations for seen in provider.seen] == [()] * 4
    sent = [part for message in json.loads(provider.seen[-1].body)["messages"] for part in message["content"]]
    assert [part["thinking"] for part in sent if part["type"] == "thinking"] == [*thoughts]


def test_conversations_and_their_forks_keep_apart_side_by_side(tmp_path: Path) -> None:
    def answered(body: Any) -> Reply:
        """Reads, recalls the person's words, and is done."""
        newest = body["messages"][-1]
        if newest["role"] == "user":
            return Reply(calls=(Call(name="read", arguments='{"path":"a.py"}'),))
        recalled = sum("tenure_recall" in str(message.get("tool_calls")) for message in body["messages"])
        asked = sum(message["role"] == "user" for message in body["messages"])
        if recalled < asked:
            return Reply(calls=(Call(name="tenure_recall", arguments=f'{{"handle":"user:{asked}"}}'),))
        return Reply(text="Done.")

    provider = FakeProvider(answered)
    with serve(provider.app) as url, Store("sqlite://") as store:
        condenser = TenureCondenser(store=store, budget=BUDGET)

        def ask(conversation: Any, text: str) -> None:
            conversation.send_message(text)
            conversation.run()
            results = [each for each in conversation.state.events if type(each).__name__ == "ObservationEvent"]
            assert text in str(results[-1].observation.text), results[-1]

        def converse(name: str) -> None:
            conversation: Any = Conversation(agent=agent_of("chat", url, condenser), workspace=tmp_path, visualizer=None)
            ask(conversation, f"{name} asks first")
            fork = conversation.fork()
            ask(conversation, f"{name} asks here")
            ask(fork, f"{name} asks there")
            done.append(name)

        done: list[str] = []
        threads = [Thread(target=converse, args=(name,)) for name in ("Ann", "Bob")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == ["Ann", "Bob"]
        texts = [[text for text in human_texts(store, sheet.id) if " asks " in text] for sheet in store.conversations()]
    assert {seen.violations for seen in provider.seen} == {()}
    assert all(len({text.split()[0] for text in each}) == 1 for each in texts)
    assert not any({text.split()[-1] for text in each} >= {"here", "there"} for each in texts)


@pytest.mark.parametrize("is_managed", [False, True])
def test_what_left_has_a_handle_where_its_own_condenser_leaves_a_summary(is_managed: bool, tmp_path: Path) -> None:
    provider = FakeProvider(summed_up(work(30)))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = agent_of("chat", url, TenureCondenser(store=store, budget=BUDGET))
        if not is_managed:
            llm = agent.llm.model_copy(update={"usage_id": "condenser"})
            own = LLMSummarizingCondenser(llm=llm, max_size=1_000, max_tokens=40_000)
            agent = agent.model_copy(update={"condenser": own})
        conversation: Any = Conversation(agent=agent, workspace=tmp_path, visualizer=None)
        conversation.send_message("Look through the files.")
        conversation.run()
    assert get_agent_final_response(conversation.state.events) == "Done."
    assert {seen.violations for seen in provider.seen} == {()}
    assert all(json.loads(seen.body).get("tools") for seen in provider.seen) == is_managed, "one without tools asks for a summary"
    assert any(isinstance(each, Condensation) for each in conversation.state.events) != is_managed
    assert (b"read:1@" in provider.seen[-1].body) == is_managed
