"""A session's title, from a helper model: best effort, and billed to its session."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from holding import Outside, folder, heard, open_agent, says

from tenure.agent.catalogue import ModelChoice
from tenure.agent.helper import CHARS, entitled, shortened
from tenure.agent.session import Agent
from tenure.models.scripted import Script, ScriptedSpeaker
from tenure.models.speaker import Speaker
from tenure.testing.script import Fault, Reply

HELPER = "openai-chat:gpt-5-mini"


def titled(tmp_path: Path, *replies: Reply | Fault, text: str = "Rename the module.", helper: str = HELPER, **settings: Any):
    """What came of asking for a title, the title in the store, and the agent, closed."""
    outside = Outside(folder(tmp_path), says("Renamed."), says("Again."))
    asked = ScriptedSpeaker(Script(replies=replies), tokens=len)

    def speaker(choice: ModelChoice) -> Speaker:
        return asked if choice.spec == HELPER else outside.speaker

    async def play() -> tuple[str, str, Agent]:
        agent = await open_agent(outside, {"speaker": speaker}, helper=helper, **settings)
        if text:
            await heard(agent, text)
        found = await entitled(agent)
        await agent.close()
        return found, outside.store.conversation(agent.id).title, agent

    return asyncio.run(play())


def test_a_title_is_kept_and_its_call_is_billed_to_the_session_under_its_own_role(tmp_path: Path) -> None:
    found, kept, agent = titled(tmp_path, says("**Rename the parser module.**\n"))
    assert found == kept == "Rename the parser module"
    (spent,) = agent.context.store.asides(agent.id)
    assert (spent.role, spent.usage.prompt > 0) == ("title", True)
    roles = {account.role: account.calls for account in agent.context.ledger.accounts}
    assert roles == {"agent": 1, "title": 1}
    assert agent.context.ledger.savings.helpers_usd == 0  # eviction is not what it was for


@pytest.mark.parametrize(
    ("replies", "text"),
    [((), "Go."), ((Fault(status=500),), "Go."), ((says(""),), "Go."), ((says("``` \n ###"),), "Go."), ((says("A title"),), "")],
    ids=["no answer", "fault", "empty", "marks alone", "no words yet"],
)
def test_whatever_goes_wrong_a_session_stays_without_a_title_and_nothing_is_raised(
    replies: tuple[Reply | Fault, ...], text: str, tmp_path: Path
) -> None:
    found, kept, _ = titled(tmp_path, *replies, text=text)
    assert (found, kept) == ("", "")


def test_a_helper_that_cannot_be_spoken_to_is_no_error(tmp_path: Path) -> None:
    assert titled(tmp_path, says("A title"), helper="nobody")[:2] == ("", "")


def test_a_script_that_plays_the_agent_is_never_asked_for_a_title(tmp_path: Path) -> None:
    found, kept, agent = titled(tmp_path, says("A title"), helper="")
    assert (found, kept, agent.context.store.asides(agent.id)) == ("", "", ())


def test_a_title_that_is_there_stays(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Renamed."))

    async def play() -> None:
        agent = await open_agent(outside, helper=HELPER)
        await heard(agent, "Rename it.")
        outside.store.entitle(agent.id, "Mine")
        assert await entitled(agent) == ""
        assert outside.store.conversation(agent.id).title == "Mine"
        await agent.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ('"Fix the parser."', "Fix the parser"),
        ("# Title: Fix the parser", "Fix the parser"),
        ("\n\n- Fix   the\tparser\nbecause it is broken", "Fix the parser"),
        ("\x1b[31mFix\x1b[0m the \u202eparser", "Fix the parser"),
        ("word " * 40, "word word word word word word word word word word word word…"),
        ("x" * 500, "x" * CHARS + "…"),
        ("", ""),
    ],
)
def test_a_title_is_one_short_harmless_line(answer: str, title: str) -> None:
    assert shortened(answer) == title
