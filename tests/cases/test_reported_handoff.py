"""What users of other tools reported of compaction; each test is named after the symptom and cites where it was seen."""

from contextlib import suppress

import pytest
from reported import EVERY, Agent, by_character, content, faults, said, shown, texts

from tenure import Budget, Propose
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.errors import ModelError
from tenure.testing.model import Line, ScriptedModel

BRIEF = (
    "\n\n".join(f"## {section.title}\nThe parser of part one keeps comments; its {section.key} is told." for section in SECTIONS)
    + "\n[end of brief]"
)
EASY = Budget(ceiling=170_000)


def worked(tasks: int = 3, policy: str = "cwl") -> Agent:
    """An agent that has done some tasks and is asked for another."""
    agent = Agent(EVERY[policy], budget=EASY)
    for n in range(tasks):
        agent.task(n)
    agent.context.extend([said("user", "What is left?")])
    return agent


def briefs(agent: Agent) -> list[str]:
    return [text for text in texts(agent.ask()) if text.startswith(OPENING)]


@pytest.mark.parametrize("room", [3_000, 6_000, 30_000])
def test_the_summarisers_own_prompt_does_not_overflow(room: int) -> None:  # deepagents#5913
    agent = Agent(EVERY["cwl"], budget=EASY)
    agent.context.extend([said("user", "Mend it. " + "These are the rules. " * 2_000), said("assistant", "I will.")])
    for n in range(1, 4):
        agent.task(n)
    model = ScriptedModel(BRIEF)
    agent.context.handoff(model, room=room)
    (question,) = model.questions
    assert by_character(str(question.system)) + sum(by_character(str(message)) for message in question.messages) <= room


def test_a_summary_is_not_taken_for_a_new_request() -> None:  # DCP#494
    agent = worked()
    assert agent.context.handoff(ScriptedModel(BRIEF)) is not None
    (brief,) = briefs(agent)
    assert "source of truth" in brief[:400]
    assert [*texts(agent.bodies[-1])][-1] == "What is left?"
    assert faults(agent.bodies) == []


def test_the_next_summary_is_not_a_summary_of_everything_again() -> None:  # efferent 42: cumulative, from what is new
    agent = worked()
    agent.context.handoff(ScriptedModel(BRIEF))
    agent.ask()
    agent.context.extend([said("assistant", "Much.")])
    agent.task(7)
    agent.context.extend([said("user", "And now?")])
    model = ScriptedModel(BRIEF)
    agent.context.handoff(model)
    asked = str(model.questions[0].messages[0])
    assert "keeps comments" in asked
    assert "Task 7" in asked
    assert "value_1_" not in asked
    assert len(briefs(agent)) == 1


def test_without_news_the_summariser_is_not_asked_again() -> None:  # codex#14120, openai-compact#8: 48 compactions, 0 writes
    agent = worked()
    agent.context.handoff(ScriptedModel(BRIEF))
    before = agent.ask()
    assert agent.context.handoff(ScriptedModel()) is None
    assert agent.ask() == before


@pytest.mark.parametrize(
    "said_instead", ["", "  \n", "Sure! Shall I go on?", BRIEF[: len(BRIEF) // 3], '{"brief": null}', "\x00" * 99]
)
def test_a_failed_summary_does_not_cost_the_history(said_instead: str) -> None:  # efferent 44, opencode#8394
    agent = worked()
    before = agent.ask()
    with suppress(ModelError):
        agent.context.handoff(ScriptedModel(Line(text=said_instead)))
    assert agent.ask() == before
    assert len(agent.context.session.commits) == 0


def test_a_summary_can_be_taken_back() -> None:  # opencode#41266, hermes-agent#81130
    agent = worked()
    before = shown(agent.ask())
    answered = agent.context.handoff(ScriptedModel(BRIEF))
    assert answered is not None
    assert isinstance(answered.decision, Propose)
    assert shown(agent.ask()) != before
    agent.context.undo(answered.decision.commit.n)
    assert shown(agent.ask()) == before


def test_what_was_summarised_comes_back_word_for_word_after_a_restart() -> None:  # headroom#1809, acp-kernel#285
    agent = worked()
    agent.context.handoff(ScriptedModel(BRIEF))
    (brief,) = briefs(agent)
    agent.restart()
    assert briefs(agent) == [brief]
    for number in range(1, agent.calls + 1):
        assert content(number) in agent.context.recall(f"read:{number}")


def test_standing_rules_and_pins_do_not_depend_on_the_summary() -> None:  # claude-code#44598, bolt-cli#286
    agent = worked()
    agent.context.pin("read:2")
    agent.context.handoff(ScriptedModel(BRIEF), rules={"AGENTS.md": "Never touch the lock file."})
    (brief,) = briefs(agent)
    assert "Never touch the lock file." in brief
    assert content(2) in texts(agent.bodies[-1])


def test_a_handoff_amid_a_run_never_parts_a_call_from_its_result() -> None:  # efferent 48, langchain#34282
    agent = Agent(EVERY["cwl"], budget=EASY)
    agent.context.extend([said("user", "Mend it all.")])
    for _ in range(12):
        agent.reads(parallel=3)
    agent.context.handoff(ScriptedModel(BRIEF))
    assert len(briefs(agent)) == 1
    assert faults(agent.bodies) == []


@pytest.mark.parametrize("policy", EVERY)
def test_a_policy_goes_on_after_a_summary_and_the_summary_stays(policy: str) -> None:  # DCP#440: two mechanisms at odds
    agent = worked(policy=policy)
    agent.context.handoff(ScriptedModel(BRIEF))
    (brief,) = briefs(agent)
    agent.context.extend([said("assistant", "Much.")])
    agent.budget = Budget(ceiling=60_000)
    agent.restart()
    for n in range(5, 10):
        agent.task(n)
    assert briefs(agent) == [brief]
    assert faults(agent.bodies) == []


def test_a_replacement_is_not_counted_as_new() -> None:  # aaif-goose/goose#11681
    agent = worked()
    agent.ask()
    before, recorded = agent.context.gauge.tokens, agent.context.session.index.tokens
    agent.context.handoff(ScriptedModel(BRIEF))
    agent.ask()
    session = agent.context.session
    assert agent.context.gauge.tokens < before
    assert session.view.tokens == session.commits[-1].tokens_after == session.freeze().tokens
    assert session.index.tokens == recorded


def test_a_summary_that_would_be_larger_than_what_it_replaces_is_not_used() -> None:  # codex#8878, #40619, cline#12703
    agent = Agent(EVERY["cwl"], budget=EASY)
    agent.context.extend([said("user", "Hi."), said("assistant", "Hello."), said("user", "Well?"), said("assistant", "Well.")])
    agent.context.extend([said("user", "So?"), said("assistant", "So."), said("user", "And?")])
    before = agent.ask()
    agent.context.handoff(ScriptedModel(BRIEF))
    assert agent.ask() == before
