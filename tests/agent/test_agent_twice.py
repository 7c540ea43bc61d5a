"""One session in the hands of two: the record stays one, and whoever came second is told so."""

import asyncio
from pathlib import Path

from holding import Outside, call, end, folder, heard, of, open_agent, recorded, results, says

from tenure.agent.events import CallStarted, Event, TurnDone, TurnFailed
from tenure.agent.loop import ELSEWHERE
from tenure.context import Context
from tenure.engine.record.entry import Role
from tenure.models.scripted import Playing, Script, ScriptedSpeaker


def speaker(*turns: object) -> ScriptedSpeaker:
    return ScriptedSpeaker(Script(replies=turns, playing=Playing()), now=lambda: 0.0, tokens=len)


def test_looking_into_a_session_whose_call_runs_elsewhere_leaves_that_call_alone(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("bash", command="sleep 0.05; echo done")), says("All done."))
    others: list[str] = []

    async def play() -> list[Event]:
        first = await open_agent(outside)

        async def look() -> None:
            second = await open_agent(outside, newest=True)
            others.append(second.id)

        looking: list[asyncio.Task[None]] = []
        events = await heard(
            first, "Go.", on=lambda event: isinstance(event, CallStarted) and looking.append(asyncio.ensure_future(look()))
        )
        await asyncio.gather(*looking)
        return events

    events = asyncio.run(play())
    assert end(events).text == "All done."
    assert len(others) == 1
    assert results(outside)[0].startswith("done")


def test_the_second_of_two_who_go_on_with_a_session_is_told_that_it_went_on_elsewhere(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Hello."))

    async def play() -> tuple[list[Event], list[Event], list[Event]]:
        await heard(await open_agent(outside), "Hello?")
        outside.speaker = speaker(says("I am the first."))
        first = await open_agent(outside, newest=True)
        outside.speaker = speaker(says("I am the second."), says("I go on behind the first."))
        second = await open_agent(outside, newest=True)
        one = await heard(first, "One.")
        two = await heard(second, "Two.")
        third = await open_agent(outside, newest=True)
        return one, two, await heard(third, "Three.")

    one, two, three = asyncio.run(play())
    assert end(one).text == "I am the first."
    assert of(two, TurnFailed)[0].text == ELSEWHERE
    assert end(two).reason == "failed"
    assert end(three).reason == "done"
    said = [block.text for entry in recorded(outside) if entry.role is not Role.SYSTEM for block in entry.blocks]
    assert said == ["Hello?", "Hello.", "One.", "I am the first.", "Three.", "I am the second."]


def test_a_turn_that_another_process_overtakes_ends_and_says_so(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("bash", command="echo 1")), says("not reached"))

    async def play() -> list[Event]:
        first = await open_agent(outside)

        def overtake(event: Event) -> None:
            if isinstance(event, CallStarted):
                context = Context(dialect="openai-chat", store=outside.store, conversation=first.id, tokenizer=len)
                context.extend([{"role": "tool", "tool_call_id": "call_0_0", "content": "from elsewhere"}])

        return await heard(first, "Go.", on=overtake)

    events = asyncio.run(play())
    assert isinstance(events[-1], TurnDone)
    assert end(events).why == ELSEWHERE
    assert results(outside) == ["from elsewhere"]
