"""Cache markers of a request: placed for a caller who places none, counted for one who does."""

import json
from typing import Any

import anthropic
import httpx
import pytest

from tenure import Budget, Context, InputError
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Usage
from tenure.testing.prefix import PrefixCache
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script
from tenure.testing.store import MemoryStore
from tenure.testing.validity import violations

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
MODEL = "claude-opus-5"
RULES = rules_for("anthropic", MODEL, "anthropic")
TOOL: dict[str, Any] = {"name": "read", "input_schema": {"type": "object"}}


def opened(**settings: Any) -> Context:
    return Context(**({"store": MemoryStore(), "budget": Budget(ceiling=80_000)} | settings))


def marked(body: dict[str, Any]) -> int:
    return json.dumps(body).count('"cache_control"')


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def price(usage: Usage) -> float:
    """Of a prompt, in the price of an uncached token."""
    return usage.uncached + 1.25 * usage.cache_write + 0.1 * usage.cache_read


def bill(*, markers: bool) -> tuple[float, int]:
    """The prompts of twelve turns of the README's example, each with a read of 2,000 tokens, and how many tokens they had."""
    read = Call(name="read", arguments='{"path":"a.py"}')
    provider = FakeProvider(Script(replies=tuple([Reply(text="Looking.", calls=(read,))] * 12)))
    with serve(provider.app) as url, anthropic.Anthropic(base_url=url, api_key="-", max_retries=0) as client:
        context = opened(policy="graph", markers=markers)
        context.extend([{"role": "user", "content": "Find out why the login test fails."}])
        for n in range(12):
            reply = client.messages.create(**context.request(model=MODEL, max_tokens=4096, tools=[]))
            context.append(reply)
            calls = [block for block in reply.content if block.type == "tool_use"]
            answers = [
                {"type": "tool_result", "tool_use_id": call.id, "content": f"{n}: " + "some words of a file " * 380}
                for call in calls
            ]
            context.extend([{"role": "user", "content": answers}])
    usages = [seen.usage for seen in provider.seen if seen.usage is not None]
    assert len(usages) == 12
    return sum(map(price, usages)), sum(usage.prompt for usage in usages)


def test_twelve_turns_of_the_readme_cost_a_third_of_what_they_cost_without_caching() -> None:
    cached, tokens = bill(markers=True)
    plain, same = bill(markers=False)
    assert tokens == same == plain  # without markers nothing is cached
    assert cached < plain / 3


@pytest.mark.parametrize("tools", [[], [TOOL]])
@pytest.mark.parametrize("system", [None, "Be brief.", [{"type": "text", "text": "Be brief."}]])
def test_five_marked_messages_give_a_request_with_our_markers_alone(system: Any, tools: list[Any]) -> None:
    context = opened()
    context.extend([user(f"Part {n}.", **MARK) for n in range(5)])
    context.extend([b'{"role":"user","content":[{"type":"text","text":"As bytes.","cache_control":{"type":"ephemeral"}}]}'])
    body = context.request(model=MODEL, max_tokens=9, tools=tools, **({"system": system} if system else {}))
    assert violations(body, RULES) == ()
    assert marked(body) == 2  # the head, and the newest message
    assert not any(b"cache_control" in entry.payload for entry in context.store.entries(context.conversation))


def test_the_callers_own_markers_in_the_head_count_and_stay() -> None:
    context = opened()
    context.extend([user("Go."), {"role": "assistant", "content": "Look."}, user("And?")])
    for own in range(5):
        tools = [TOOL | {"name": f"t{n}"} | (MARK if n < own - 1 else {}) for n in range(4)]
        system = [{"type": "text", "text": "Be brief.", **(MARK if own else {})}]
        body = context.request(model=MODEL, max_tokens=9, tools=tools, system=system)
        assert violations(body, RULES) == ()
        assert marked(body) == (3 if own == 0 else min(4, own + 2))
        if own:
            assert body["system"] == system
    with pytest.raises(InputError, match="at most 4"):
        context.request(model=MODEL, tools=[TOOL | {"name": f"t{n}"} | MARK for n in range(5)])


@pytest.mark.parametrize("listed", [list, tuple, iter])
def test_the_callers_markers_count_wherever_the_sdk_takes_them(listed: Any) -> None:
    context = opened()
    context.extend([user("Go."), {"role": "assistant", "content": "Look."}, user("And?")])
    system = listed([{"type": "text", "text": f"Rule {n}.", **MARK} for n in range(2)])
    body = context.request(model=MODEL, max_tokens=9, system=system, tools=[TOOL], extra_body=MARK)
    assert violations(body | body["extra_body"], RULES) == ()
    assert marked(body) == 4


def test_a_request_that_asks_for_automatic_caching_has_room_for_it() -> None:
    context = opened()
    context.extend([user("Go."), {"role": "assistant", "content": "Look."}, user("And?")])
    body = context.request(model=MODEL, max_tokens=9, system=[{"type": "text", "text": "a", **MARK}], tools=[TOOL | MARK], **MARK)
    assert violations(body, RULES) == ()
    assert marked(body) == 4


def test_none_of_our_markers_asks_for_longer_than_the_callers_before_it() -> None:
    context = opened(cache_life="1h", model=MODEL)
    context.extend([user("Go.")])
    short = context.request(max_tokens=9, model=MODEL, system=[{"type": "text", "text": "a", **MARK}])
    assert violations(short, RULES) == ()
    assert "ttl" not in json.dumps(short["messages"])
    assert '"ttl": "1h"' in json.dumps(context.request(max_tokens=9, model=MODEL)["messages"])
    automatic = opened()
    automatic.extend([user("Go.")])
    assert violations(automatic.request(max_tokens=9, model=MODEL, **LONG), RULES) == ()


def test_without_markers_the_callers_go_out_as_given() -> None:
    context = opened(markers=False)
    given = [user("Go.", **MARK), {"role": "assistant", "content": "Look."}, user("And?", **MARK)]
    context.extend(given)
    body = context.request(model=MODEL, max_tokens=9, system="Be brief.")
    assert body["messages"] == given
    assert body["system"] == "Be brief."
    assert marked(body) == 2


def test_a_record_that_was_kept_with_markers_is_sent_with_ours_alone() -> None:
    store = MemoryStore()
    before = opened(store=store, markers=False)
    before.extend([user(f"Part {n}.", **MARK) for n in range(5)])
    body = opened(store=store, conversation=before.conversation, markers=True).request(model=MODEL, max_tokens=9)
    assert violations(body, RULES) == ()
    assert json.dumps(body["messages"]).count("cache_control") == 1


def test_markers_stand_at_the_same_places_after_a_restart() -> None:
    store = MemoryStore()
    context = opened(store=store)
    context.extend([user("Go.")])
    for n in range(3):
        context.request(model=MODEL)
        context.extend([{"role": "assistant", "content": f"Step {n}."}, user("And?")])
    again = opened(store=store, conversation=context.conversation)
    assert again.request(model=MODEL) == context.request(model=MODEL)


def test_every_request_reads_what_the_one_before_it_wrote() -> None:
    cache, context = PrefixCache(lambda text: len(text) // 4 + 1), opened()
    context.extend([user("Go. " * 1_000)])
    written = 0
    for n in range(9):
        calls = [{"type": "tool_use", "id": f"c{n}_{m}", "name": "read", "input": {}} for m in range(15)]
        usage = cache.usage(context.request(model=MODEL, max_tokens=9, notes=f"[now: {n}]"), RULES, now=float(n))
        assert usage.cache_read == written
        written = usage.cache_read + usage.cache_write
        context.extend([{"role": "assistant", "content": calls}])
        context.extend(
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "x"} for call in calls]}]
        )


def test_fields_that_are_no_json_go_through_untouched() -> None:
    context = opened()
    context.extend([user("Go.")])
    timeout = httpx.Timeout(3)
    fields: dict[str, Any] = {"timeout": timeout, "thinking": anthropic.NOT_GIVEN, "output_format": anthropic.BaseModel}
    body = context.request(model=MODEL, system=anthropic.NOT_GIVEN, **fields)
    assert {name: body[name] for name in fields} == fields
    assert body["system"] is anthropic.NOT_GIVEN
    with pytest.raises(InputError, match="Timeout"):
        context.wire(model=MODEL, timeout=timeout)


def test_the_request_that_was_handed_out_is_the_callers_to_change() -> None:
    context = opened()
    context.extend([user("Go.")])
    first = context.request(model=MODEL)
    said = json.dumps(first)
    first["messages"][0]["content"][0]["text"] = "Stop."
    first["tools"].clear()
    assert json.dumps(context.request(model=MODEL)) == said
