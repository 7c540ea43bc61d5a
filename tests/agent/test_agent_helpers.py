"""Models that help a session without anybody's word: who is asked, when, and what is told of it."""

import asyncio
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, heard, of, open_agent, played, says

from tenure.agent.events import Committed, Noticed
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.errors import Failure, ModelError
from tenure.models.scripted import Playing, Script, ScriptedSpeaker
from tenure.testing.script import Fault

BRIEF = "\n\n".join(f"## {section.title}\nPart one; its {section.key}." for section in SECTIONS) + "\n[end of brief]"
LARGE = "\n".join(f"line {n} of a file that is read" for n in range(2_000))


def reading(n: int):
    return [says("", call("read", path="a.py", offset=1 + 100 * k, limit=100)) for k in range(n)]


def handing_off(tmp_path: Path, *helper, reads: int = 12, **settings) -> list:
    """A run that fills a small window; the briefs are another model's."""
    outside = Outside(folder(tmp_path, a_py=LARGE), *reading(reads), says("Done."))
    other = Outside(outside.where, *helper)
    world = {"speaker": lambda choice: outside.speaker if choice.spec == "scripted:-" else other.speaker}
    usual = {"budget": Budget(window=9_000), "policy": "none", "summariser": "scripted:briefs"}
    return played(outside, "Go.", world=world, **usual | settings)


def test_history_is_handed_off_within_one_run_when_the_window_is_nearly_full(tmp_path: Path) -> None:
    events = handing_off(tmp_path, says(BRIEF), says(BRIEF))
    assert end(events).reason == "done"
    commit = of(events, Committed)[0]
    assert commit.policy == "handoff"
    assert commit.tokens_after < commit.tokens_before / 2
    assert any("scripted:briefs writes a brief of earlier history" in each.text for each in of(events, Noticed))


def test_a_threshold_of_0_hands_nothing_off(tmp_path: Path) -> None:
    events = handing_off(tmp_path, says(BRIEF), reads=6, handoff_at="0")
    assert not of(events, Committed)


def test_a_threshold_in_tokens_counts_whatever_the_window(tmp_path: Path) -> None:
    events = handing_off(tmp_path, says(BRIEF), says(BRIEF), reads=12, handoff_at="5k", budget=Budget(window=40_000))
    assert {commit.policy for commit in of(events, Committed)} == {"handoff"}


def test_nothing_is_handed_off_while_messages_of_the_person_wait(tmp_path: Path) -> None:
    async def play() -> list:
        outside = Outside(folder(tmp_path, a_py=LARGE), *reading(8), says("Done."))
        agent = await open_agent(outside, budget=Budget(window=9_000), policy="none", summariser="same")
        agent.context.queued = True
        events = await heard(agent, "Go.")
        await agent.close()
        return events

    assert not of(asyncio.run(play()), Committed)


def test_a_script_is_asked_for_no_brief_unless_a_setting_says_so(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path, a_py=LARGE), *reading(8), says("Done."))
    events = played(outside, "Go.", budget=Budget(window=9_000), policy="none")
    assert end(events).text == "Done."
    assert not of(events, Committed)


def test_a_helper_that_fails_is_told_of_and_changes_nothing(tmp_path: Path) -> None:
    events = handing_off(tmp_path, Fault(status=400), Fault(status=400), reads=8)
    assert end(events).reason == "done"
    assert not of(events, Committed)
    assert any("the summariser failed, and nothing has changed" in each.text for each in of(events, Noticed))


def test_a_stopped_turn_stops_its_helper(tmp_path: Path) -> None:
    async def play() -> list:
        outside = Outside(folder(tmp_path, a_py=LARGE), *reading(12), says("Done."))
        slow = Outside(outside.where, says(BRIEF * 20))
        slow.speaker = ScriptedSpeaker(Script(replies=(says(BRIEF * 20),), playing=Playing(dialect="openai-chat", pace_s=0.2)))
        world = {"speaker": lambda choice: outside.speaker if choice.spec == "scripted:-" else slow.speaker}
        agent = await open_agent(outside, world, budget=Budget(window=9_000), policy="none", summariser="scripted:briefs")

        def stop(event) -> None:
            if isinstance(event, Noticed) and "brief" in event.text:
                agent.cancel()

        events = await heard(agent, "Go.", on=stop)
        await agent.close()
        return events

    events = asyncio.run(play())
    assert end(events).reason == "cancelled"
    assert not of(events, Committed)


def test_a_large_result_is_digested_by_the_helper(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LARGE)
    outside = Outside(where, says("", call("read", path="a.py", limit=1_500)), says("It lists lines."), says("Done."))
    events = played(outside, "Go.", digest="same", digest_above=1_000, clip=1_000)
    assert end(events).text == "Done."
    assert any("says what a very large result holds" in each.text for each in of(events, Noticed))


def test_a_helper_that_cannot_be_opened_is_a_notice(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path, a_py=LARGE), *reading(8), says("Done."))

    def speaker(choice):
        if choice.spec == "scripted:-":
            return outside.speaker
        raise ModelError(Failure.UNAVAILABLE, "no such model")

    events = played(
        outside, "Go.", world={"speaker": speaker}, budget=Budget(window=9_000), policy="none", summariser="openai:none"
    )
    assert end(events).reason == "done"
    assert any("no such model" in each.text for each in of(events, Noticed))


@pytest.mark.parametrize("moment", ["turn-end", "idle"])
def test_safe_boundaries_are_used(moment: str, tmp_path: Path) -> None:
    async def play() -> list[str]:
        outside = Outside(folder(tmp_path), says("Done."))
        agent = await open_agent(outside)
        seen: list[str] = []
        settle = agent.context.settle
        agent.context.settle = lambda moment="turn-end": (seen.append(moment), settle(moment))[1]
        await heard(agent, "Go.")
        agent.rest()
        await agent.close()
        return seen

    assert moment in asyncio.run(play())
