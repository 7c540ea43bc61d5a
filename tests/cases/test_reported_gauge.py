"""What users of other tools reported of their token counts; each test is named after the symptom and cites where it was seen."""

import pytest
from reported import EVERY, MODEL, Agent, Body, by_character, said

from tenure import Budget
from tenure.apis import APIS
from tenure.engine.policies import POLICIES
from tenure.engine.view.edit import Insert, Replace


def reply(text: str, *, prompt: int, output: int, read: int = 0, write: int = 0) -> Body:
    """A whole response of Anthropic's API."""
    usage = {
        "input_tokens": prompt,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": output,
    }
    return {"id": "m", "type": "message", "model": MODEL, "stop_reason": "end_turn", "usage": usage} | said("assistant", text)


def test_output_tokens_are_not_counted_as_context() -> None:  # letta-ai/letta#3242: compacted twice
    agent = Agent(POLICIES["cwl"])
    agent.task(0)
    agent.context.extend([said("user", "Go on.")])
    agent.ask()
    used = agent.context.gauge.tokens
    agent.context.append(reply("Yes.", prompt=used, output=90_000))
    assert agent.context.gauge.tokens < used + 200
    agent.context.extend([said("user", "And?")])
    agent.ask()
    assert len(agent.context.session.commits) == 0


def test_cached_tokens_are_part_of_the_prompt_and_counted_once() -> None:  # efferent 59, cherry-studio#18351
    draft = APIS["anthropic"].parse_reply(reply("Yes.", prompt=10, read=100, write=50, output=5))
    assert draft.usage is not None
    assert draft.usage.prompt == 160
    assert (draft.usage.cache_read, draft.usage.cache_write, draft.usage.output) == (100, 50, 5)


@pytest.mark.parametrize("name", EVERY)
def test_what_stands_for_what_left_is_not_counted_as_new(name: str) -> None:  # aaif-goose/goose#11681
    agent = Agent(EVERY[name])
    agent.lived()
    session = agent.context.session
    for commit in session.commits:
        assert commit.tokens_after < commit.tokens_before
    replaced = {(e.entry, e.block): e for c in session.commits for e in c.edits if isinstance(e, Replace)}
    shown = 0
    for line in session.freeze().lines:
        if isinstance(line, Insert):
            shown += line.tokens
        else:
            facts = session.index.entries[line.entry].blocks
            notes = dict(line.replaced)
            shown += sum(notes[block].tokens if block in notes else facts[block].tokens for block in line.blocks)
            assert all(notes[block].text == replaced[line.entry, block].text for block in notes)
    assert session.view.tokens == shown < session.index.tokens


@pytest.mark.parametrize("name", EVERY)
def test_a_gauge_after_a_restart_does_not_count_what_left(name: str) -> None:  # efferent 61: archived rows were counted
    agent = Agent(EVERY[name])
    agent.lived()
    before = agent.context.gauge.tokens
    agent.restart()
    agent.ask()
    assert agent.context.gauge.tokens == before


def test_a_provider_that_counts_more_than_we_do_is_believed_before_its_window_is_full() -> None:  # mindroom#1575, agentscope#2385
    agent = Agent(POLICIES["cwl"], budget=Budget(ceiling=60_000, window=100_000))
    for n in range(12):
        agent.context.extend([said("user", f"Task {n}.")])
        agent.reads(parallel=2)
        body = agent.ask()
        real = int(1.63 * sum(by_character(str(part)) for message in body["messages"] for part in message["content"]))
        assert real < 100_000
        agent.context.append(reply("Next.", prompt=real, output=10))
    assert agent.context.session.ratio > 1.3
    assert len(agent.context.session.commits)


def test_usage_that_says_nothing_does_not_empty_the_gauge() -> None:  # a proxy that reports zeros
    agent = Agent(POLICIES["cwl"])
    agent.task(0)
    agent.context.extend([said("user", "Go on.")])
    agent.ask()
    used = agent.context.gauge.tokens
    agent.context.append(reply("Yes.", prompt=0, output=0))
    assert agent.context.gauge.tokens >= used


@pytest.mark.parametrize(("share", "severity"), [(0.65, "ok"), (0.75, "warn"), (0.95, "critical")])
def test_a_gauge_speaks_before_the_limit_and_not_at_it(share: float, severity: str) -> None:  # efferent 58, claude-code#42542
    agent = Agent(None, budget=Budget(window=100_000))
    agent.context.extend([said("user", "x" * int(100_000 * share))])
    assert agent.context.gauge.severity == severity


def test_tools_and_instructions_are_part_of_what_is_sent() -> None:  # pi-cwl: they were not counted; shotgun#458
    agent = Agent(POLICIES["cwl"])
    agent.context.extend([said("user", "Go.")])
    tools = [{"name": "read", "description": "reads " * 2_000, "input_schema": {"type": "object"}}]
    agent.context.request(model=MODEL, max_tokens=10)
    bare = agent.context.gauge.tokens
    agent.context.request(model=MODEL, max_tokens=10, tools=tools, system="Be brief. " * 500)
    assert agent.context.gauge.tokens > bare + 16_000
