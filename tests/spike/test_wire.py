"""Chain ids and payloads suffice to serve any client: shown over HTTP, with both official SDKs, in all three dialects."""

from collections.abc import Sequence
from itertools import pairwise
from threading import Thread
from typing import Any

import anthropic
import openai
import pytest
from spike_gateway import SpikeGateway, common_prefix, placed
from wire_clients import STEPS, chat_step, results, user, without_reasoning

from tenure.apis import APIS
from tenure.apis.anthropic.markers import strip_markers
from tenure.apis.rules import rules_for
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Text, Thinking, ToolCall
from tenure.testing.provider import FakeProvider, Seen, serve
from tenure.testing.script import Call, Reply, Script

NAMES = sorted(STEPS)
READ = Call(name="read", arguments='{"path": "a.py"}')
DELIMITER = Call(name="delimiter", arguments='{"open": "expl"}')


def scripted(*replies: Reply) -> FakeProvider:
    return FakeProvider(Script(replies=replies), clock=lambda: 0.0)


def sent(seen: Seen) -> tuple[bytes, ...]:
    messages = APIS[seen.dialect].split(seen.body)[1]
    return tuple(strip_markers(message) for message in messages)


def record(seen: Seen) -> tuple[Entry, ...]:
    return placed((), APIS[seen.dialect].parse(sent(seen)))


def ids(entries: Sequence[Entry]) -> list[str]:
    return [entry.id for entry in entries]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", NAMES)
def test_a_history_that_a_client_sends_again_has_the_ids_it_had(name: str, stream: bool) -> None:
    provider = scripted(Reply(thinking="hm", text="look", calls=(READ, READ)), Reply(text="done"), Reply(text="bye"))
    with serve(provider.app) as url, STEPS[name](url, stream=stream) as step:
        history, calls = step([user("go")])
        history, _ = step([*history, *results(name, calls)])
        step([*history, user("thanks")])
    assert [seen.violations for seen in provider.seen] == [(), (), ()]
    first, second, third = (ids(record(seen)) for seen in provider.seen)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", NAMES)
def test_a_reply_is_the_entry_that_the_client_sends_back(name: str, stream: bool) -> None:
    provider = scripted(Reply(thinking="hm", text="look", calls=(READ, READ)), Reply(text="done"))
    gateway = SpikeGateway(provider)
    with serve(gateway.app) as url, STEPS[name](url, stream=stream) as step:
        history, calls = step([user("go")])
        step([*history, *results(name, calls)])
    after_reply = [entries for entries in gateway.behind.values() if len(entries) == 2]
    assert ids(after_reply[0]) == ids(record(provider.seen[1]))[:2]


@pytest.mark.parametrize("name", NAMES)
def test_a_request_that_was_refused_reaches_the_client_as_its_sdks_error(name: str) -> None:
    provider = scripted(Reply(calls=(READ,)))
    with serve(provider.app) as url, STEPS[name](url, stream=False) as step:
        history, _ = step([user("go")])
        refused = anthropic.BadRequestError if name == "anthropic" else openai.BadRequestError
        with pytest.raises(refused, match=r"tool"):
            step([*history, user("never mind")])
    assert provider.seen[1].violations


def test_a_marker_that_moves_with_every_call_changes_no_entry() -> None:
    provider = scripted(Reply(calls=(READ,)), Reply(text="done"), Reply(text="bye"))
    with serve(provider.app) as url, STEPS["anthropic"](url, stream=False, mark=True) as step:
        history, calls = step([{"role": "user", "content": [{"type": "text", "text": "go"}]}])
        history, _ = step([*history, *results("anthropic", calls)])
        step([*history, user("thanks")])
    assert [seen.body.count(b"cache_control") for seen in provider.seen] == [1, 1, 1]
    second, third = provider.seen[1:]
    assert sent(third)[: len(sent(second))] == sent(second)
    assert ids(record(third))[: len(record(second))] == ids(record(second))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", NAMES)
def test_hidden_parallel_calls_are_spliced_out_and_in(name: str, stream: bool) -> None:
    provider = scripted(
        Reply(thinking="hm", text="look", calls=(DELIMITER, READ)),
        Reply(calls=(READ, DELIMITER)),
        Reply(text="done"),
        Reply(text="bye"),
    )
    gateway = SpikeGateway(provider)
    offered: list[str] = []
    with serve(gateway.app) as url, STEPS[name](url, stream=stream) as step:
        history: list[Any] = [user("go")]
        for _ in range(3):
            history, calls = step(history)
            offered += [tool for _, tool in calls]
            history += results(name, calls) if calls else [user("thanks")]
        step(history)
    assert offered == ["read", "read"]
    upstream = [sent(seen) for seen in provider.seen]
    for earlier, later in pairwise(upstream):
        assert later[: len(earlier)] == earlier
    calls = [block.name for entry in record(provider.seen[-1]) for block in entry.blocks if isinstance(block, ToolCall)]
    assert calls == ["delimiter", "read", "read", "delimiter"]
    assert not any(seen.violations for seen in provider.seen)


@pytest.mark.parametrize("name", NAMES)
def test_reasoning_that_a_client_leaves_out_goes_upstream_all_the_same(name: str) -> None:
    provider = scripted(Reply(thinking="hm", text="look", calls=(DELIMITER, READ)), Reply(text="done"))
    gateway = SpikeGateway(provider)
    with serve(gateway.app) as url, STEPS[name](url, stream=False) as step:
        history, calls = step([user("go")])
        step([*without_reasoning(history), *results(name, calls)])
    assert provider.seen[1].violations == ()
    assert isinstance(record(provider.seen[1])[1].blocks[0], Thinking)


@pytest.mark.parametrize("name", NAMES)
def test_a_rewound_history_forks_at_the_longest_common_prefix(name: str) -> None:
    provider = scripted(Reply(text="one", calls=(DELIMITER, READ)), Reply(text="two"), Reply(text="three"), Reply(text="four"))
    gateway = SpikeGateway(provider)
    with serve(gateway.app) as url, STEPS[name](url, stream=False) as step:
        history, calls = step([user("go")])
        rewound, _ = step([*history, *results(name, calls)])
        step([*rewound, user("left")])
        step([*rewound, user("right")])
    left, right = provider.seen[2:]
    shared = common_prefix(ids(record(left)), ids(record(right)))
    assert shared == len(record(left)) - 1 == len(record(right)) - 1
    assert sent(left)[:-1] == sent(right)[:-1]
    assert b"delimiter" in right.body


@pytest.mark.parametrize("name", NAMES)
def test_the_same_request_twice_goes_out_as_the_same_bytes(name: str) -> None:
    provider = scripted(Reply(calls=(DELIMITER, READ)), Reply(text="a"), Reply(text="b"))
    gateway = SpikeGateway(provider)
    with serve(gateway.app) as url, STEPS[name](url, stream=False) as step:
        history, calls = step([user("go")])
        again = [*history, *results(name, calls)]
        retries = [Thread(target=step, args=[again]) for _ in range(2)]
        for retry in retries:
            retry.start()
        for retry in retries:
            retry.join()
    assert provider.seen[1].body == provider.seen[2].body
    ends = {entries[-1].id for entries in gateway.behind.values() if entries[-1].role is Role.ASSISTANT and len(entries) > 2}
    assert len(ends) == 2  # the model answered twice, so the conversation forks there


def test_two_writers_on_one_parent_make_two_entries() -> None:
    shared = placed((), [Draft(role=Role.USER, blocks=(Text(text="go", origin=Origin.HUMAN),))])
    writers = [Draft(role=Role.USER, blocks=(Text(text=text, origin=Origin.HUMAN),)) for text in ("left", "right")]
    left, right = (placed(shared, [draft])[-1] for draft in writers)
    assert left.parent == right.parent == shared[-1].id
    assert left.id != right.id
    assert placed(shared, [writers[0]])[-1] == left  # and a retry of one writer makes the entry that is there already
    chain = Chain()
    assert [chain.follow(entry) for entry in (*shared, left)] == [None, None]
    assert chain.follow(right) == "entry 1 stands where entry 2 should"


def test_prefix_caching_shows_in_what_the_sdk_reports() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="one"), Reply(text="two"))), clock=lambda: 0.0)
    with serve(provider.app) as url, chat_step(url, stream=False) as step:
        history, _ = step([user("word " * 2000)])
        step([*history, user("more")])
    first, second = (seen.usage for seen in provider.seen)
    assert first
    assert second
    assert (first.cache_read, second.cache_read) == (0, first.uncached)


def test_bound_thinking_survives_the_sdk_and_refuses_a_changed_past() -> None:
    rules = {"anthropic": rules_for("anthropic", "claude-fable-5-2", "anthropic")}
    replies = (Reply(thinking="hm", text="one"), Reply(thinking="so", text="two"), Reply(text="three"))
    provider = FakeProvider(Script(replies=replies), rules=rules, clock=lambda: 0.0)
    with serve(provider.app) as url, STEPS["anthropic"](url, stream=False, mark=True) as step:
        history, _ = step([user("go")])
        history, _ = step([*history, user("on")])
        step([*history, user("and on")])
        with pytest.raises(anthropic.BadRequestError, match="different conversation"):
            step([user("went"), *history[1:], user("and on")])
    assert [bool(seen.violations) for seen in provider.seen] == [False, False, False, True]
