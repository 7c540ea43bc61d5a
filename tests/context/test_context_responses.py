"""A conversation in the Responses API from end to end: agent, planner and summariser at one provider, over the official SDK."""

import json
from typing import Any

import openai
from msgspec.structs import replace

from tenure import Budget, Context, Propose
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.models import OpenAIModel, Patience
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Reply, Script
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"line {n} of a file that is long enough to matter" for n in range(120))
PLAN = json.dumps(
    {
        "above_conversation_summary": "x",
        "gc_plan": {"fold": [], "mask": [], "prune": [{"target": f"bash:{n}"} for n in (1, 2, 3)]},
    }
)
BRIEF = (
    "\n\n".join(f"## {section.title}\nPart one keeps comments now; its {section.key} is told here." for section in SECTIONS)
    + "\n[end of brief]"
)
MODEL = "gpt-5"


def worked() -> Context:
    """A context in which one turn is done and another begins."""
    context = Context(dialect="openai-responses", budget=Budget(ceiling=100_000), model=MODEL, store=MemoryStore())
    items: list[dict[str, Any]] = [{"role": "user", "content": "Mend the parser of part one."}]
    for n in range(12):
        items += [
            {"type": "function_call", "call_id": f"c{n}", "name": "bash", "arguments": json.dumps({"command": f"make {n}"})},
            {"type": "function_call_output", "call_id": f"c{n}", "output": LINES},
        ]
    context.extend([*items, {"role": "assistant", "content": "Mended."}, {"role": "user", "content": "And part two?"}])
    context.session.setup = replace(context.session.setup, calls_seen=(400,) * 200)  # sessions here are long
    return context


def test_a_planner_and_a_summariser_are_asked_behind_a_conversation_in_the_responses_api() -> None:
    context = worked()
    provider = FakeProvider(
        Script(replies=(Reply(text="I begin."), Reply(text=PLAN, thinking="hm"), Reply(text=BRIEF), Reply(text="Done."))),
        clock=lambda: 0.0,
    )
    with (
        serve(provider.app) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0) as client,
    ):
        model = OpenAIModel(MODEL, base_url=f"{url}/v1", api_key="-", patience=Patience(retries=0), provider="openai")

        sent = context.request(model=MODEL, instructions="Be brief.", store=False)
        client.responses.create(**sent)
        collected = context.collect(model)
        handed = context.handoff(model, rules={"AGENTS.md": "Never push."})
        shorter = context.request(model=MODEL, instructions="Be brief.", store=False)
        context.append(client.responses.create(**shorter))

    _, planned, summarised, last = provider.seen
    assert [seen.dialect for seen in provider.seen] == ["openai-responses", "openai-responses", "openai-chat", "openai-responses"]
    assert [seen.violations for seen in provider.seen] == [()] * 4

    # The planner's question stands behind the very request that the agent sent, and its cache is read.
    asked = json.loads(planned.body)
    assert asked["input"][: len(sent["input"])] == sent["input"]
    assert {key: asked[key] for key in ("tools", "instructions", "store")} == {
        key: sent[key] for key in ("tools", "instructions", "store")
    }
    assert "bash:2" in asked["input"][-1]["content"]
    assert planned.usage
    assert planned.usage.cache_read > 0.8 * planned.usage.prompt
    assert collected is not None
    assert isinstance(collected.decision, Propose)
    assert context.recall("bash:2").endswith("line 119 of a file that is long enough to matter")

    assert "Mend the parser of part one." in summarised.body.decode()
    assert handed is not None
    assert isinstance(handed.decision, Propose)
    said = [item["content"] for item in json.loads(last.body)["input"] if item.get("role") == "user"]
    assert (said[0], said[-1]) == ("Mend the parser of part one.", "And part two?")
    (brief,) = [words for words in said if words.startswith(OPENING)]
    assert "Never push." in brief
    assert len(last.body) < len(planned.body) / 2

    assert {(account.role, account.model) for account in context.ledger.accounts} >= {("planner", MODEL), ("summariser", MODEL)}


def test_a_server_that_has_only_the_responses_api_is_asked_for_a_brief_too() -> None:
    context = worked()
    provider = FakeProvider(Script(replies=(Reply(text=BRIEF),)), clock=lambda: 0.0)
    with serve(provider.app) as url:
        model = OpenAIModel(MODEL, api="responses", base_url=f"{url}/v1", api_key="-", patience=Patience(retries=0))
        handed = context.handoff(model)
    assert handed is not None
    assert isinstance(handed.decision, Propose)
    assert [seen.dialect for seen in provider.seen] == ["openai-responses"]
