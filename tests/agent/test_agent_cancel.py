"""A turn that is stopped, wherever it stands, leaves a record from which the next one goes on."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from holding import E, Outside, call, end, folder, heard, of, open_agent, recorded, results, says

from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.calls import NOT_BEGUN
from tenure.agent.events import ApprovalAsked, CallOutput, EpisodeEnded, Event, Requested, SessionOpened, TextDelta
from tenure.agent.loop import INTERRUPTED
from tenure.agent.session import Agent
from tenure.apis import APIS
from tenure.apis.json_text import load
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Role, ToolCall, ToolResult
from tenure.models.scripted import Playing, Script, ScriptedSpeaker
from tenure.testing.script import Broken, Reply
from tenure.testing.validity import violations

NAMES = ("openai-chat", "openai-responses", "anthropic")


def script() -> tuple[Reply, ...]:
    return (
        says(
            "I look.", call("delimiter", action="start", name="find", type="expl"), call("read", path="a.py"), thinking="where?"
        ),
        says(
            "I try.", call("read", path="a.py"), call("write", path="b.py", content="b"), call("bash", command="cat b.py; echo x")
        ),
        says("Done."),
    )


def unanswered(outside: Outside) -> set[str]:
    """Ids of calls that have no result."""
    blocks = [block for entry in recorded(outside) for block in entry.blocks]
    made = {block.call_id for block in blocks if isinstance(block, ToolCall)}
    return made - {block.call_id for block in blocks if isinstance(block, ToolResult)}


def stopped_at(n: int, outside: Outside, *, leave: bool) -> tuple[list[Event], bytes, bool]:
    """A turn that is stopped at its `n`-th event, by a word or by leaving; the next request; and whether the turn was that long."""

    async def play() -> tuple[list[Event], bytes, bool]:
        agent = await open_agent(outside, alone=True)
        events: list[Event] = []
        turn = agent.run("Go.")
        async for event in turn:
            events.append(event)
            if len(events) == n:
                if leave:
                    break
                agent.cancel()
        await turn.aclose()
        assert not agent.is_running
        agent.context.extend([{"role": "user", "content": "And now?"}])
        body = agent.context.wire(tools=agent.parts.tools, **agent.parts.fields)
        await agent.close()
        return events, body, len(events) >= n

    return asyncio.run(play())


@pytest.mark.parametrize("leave", [False, True], ids=["cancelled", "left"])
@pytest.mark.parametrize("dialect", NAMES)
def test_a_turn_can_be_stopped_at_any_event_and_the_next_request_is_valid(dialect: str, leave: bool, tmp_path: Path) -> None:
    n, more = NAMES.index(dialect), True
    while more:
        n += 6  # the APIs stop at other events each
        place = tmp_path / str(n)
        place.mkdir()
        outside = Outside(folder(place, a_py="x\n"), *script(), dialect=dialect)
        events, body, more = stopped_at(n, outside, leave=leave)
        head, messages = APIS[dialect].split(body)
        request = dict(head.fields) | {
            "input" if dialect == "openai-responses" else "messages": [load(each.decode()) for each in messages]
        }
        assert violations(request, rules_for("", "scripted", dialect)) == (), n
        assert not unanswered(outside), n
        if more and not leave and n > 2:
            assert end(events).reason in ("cancelled", "done"), n
    assert n > 20


def stopped_on(
    outside: Outside, kind: type[E], when: Callable[[E], bool] = lambda _: True, **settings: Any
) -> tuple[list[Event], Agent]:
    """A turn that is stopped at the first event of a kind, at once: nothing is open or waits then."""

    async def play() -> tuple[list[Event], Agent]:
        agent = await open_agent(outside, **settings)

        def stop(event: Event) -> None:
            if isinstance(event, kind) and when(event):
                agent.cancel()

        events = await asyncio.wait_for(heard(agent, "Go.", on=stop), 20)
        assert agent.episode is None
        assert not agent.approve("call_0_0", ApprovalAnswer.ONCE)
        await agent.close()
        return events, agent

    events, agent = asyncio.run(play())
    assert end(events).reason == "cancelled"
    return events, agent


def test_what_the_model_had_said_stays_when_it_is_stopped(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Half of this is heard, and the other half is not."), pace_s=0.05)
    stopped_on(outside, TextDelta)
    last = recorded(outside)[-1]
    assert last.role is Role.ASSISTANT
    assert "Half of this is heard, and".startswith(last.blocks[0].text)


def test_a_stalled_stream_is_closed_at_once(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), Broken(reply=says("Half of this."), how="stall", after=2))
    stopped_on(outside, TextDelta)


def test_an_open_episode_is_closed_when_its_turn_is_stopped_and_says_what_it_had_looked_at(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path, a_py="x\n"), *script(), pace_s=0.01)
    events, agent = stopped_on(outside, Requested, lambda event: event.step == 2)
    (ended,) = of(events, EpisodeEnded)
    assert (ended.name, ended.aborted) == ("find", True)
    assert "a.py" in ended.description
    assert agent.episodes[0].closed


def test_a_command_is_ended_with_what_it_had_said_and_calls_behind_it_are_not_begun(tmp_path: Path) -> None:
    where = folder(tmp_path)
    calls = (call("bash", command="echo begun; sleep 60"), call("write", path="b.py", content="b"))
    outside = Outside(where, says("", *calls), says("not reached"))
    stopped_on(outside, CallOutput)
    assert results(outside)[0].startswith("begun")
    assert results(outside)[1] == NOT_BEGUN
    assert not (where / "b.py").exists()


def test_a_call_that_waits_for_a_person_is_stopped_too(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("write", path="b.py", content="b")))
    stopped_on(outside, ApprovalAsked, mode=Mode.ASK)
    assert results(outside) == [NOT_BEGUN]


def test_a_session_goes_on_in_another_process_and_calls_that_were_cut_off_say_so(tmp_path: Path) -> None:
    """What a kill leaves: the reply is there, its results are not."""
    outside = Outside(folder(tmp_path, a_py="x\n"), *script())

    async def killed() -> None:
        agent = await open_agent(outside)
        agent.context.extend([{"role": "system", "content": "s"}, {"role": "user", "content": "Go."}])
        made = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        agent.context.extend([{"role": "assistant", "content": None, "tool_calls": [made, made | {"id": "c2"}]}])
        agent.context.extend([{"role": "tool", "tool_call_id": "c1", "content": "one"}])

    async def again() -> list[Event]:
        outside.speaker = ScriptedSpeaker(Script(replies=(says("Here again."),), playing=Playing()))
        agent = await open_agent(outside, newest=True)
        events = await heard(agent)
        await agent.close()
        return events

    asyncio.run(killed())
    events = asyncio.run(again())
    assert end(events).text == "Here again."
    assert results(outside) == ["one", INTERRUPTED]
    assert [event.interrupted for event in of(events, SessionOpened)] == [1]


def test_which_session_goes_on_is_said_by_folder_by_id_or_by_its_start(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("One."), says("Two."))

    async def play() -> None:
        first = await open_agent(outside)
        await heard(first, "Go.")
        second = await open_agent(outside)  # nothing was said in it
        newest = await open_agent(outside, newest=True)
        by_id = await open_agent(outside, resume=first.id)
        by_start = await open_agent(outside, resume=first.id[:10])
        assert {newest.id, by_id.id, by_start.id} == {first.id} != {second.id}

    asyncio.run(play())


def test_a_turn_that_is_still_being_made_ready_can_be_cancelled(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("not reached"))
    events, _ = stopped_on(outside, SessionOpened)
    assert not of(events, Requested)
    assert [entry.role for entry in recorded(outside)] == [Role.SYSTEM, Role.USER]


def test_who_does_not_want_to_wait_for_a_stubborn_command_need_not_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    where = folder(tmp_path)
    command = "trap '' TERM; echo begun; while :; do echo x >> beats; sleep 0.01; done"
    outside = Outside(where, says("", call("bash", command=command)), says("On."))

    async def play() -> tuple[list[Event], list[Event]]:
        agent = await open_agent(outside)

        def stop(event: Event) -> None:
            if isinstance(event, CallOutput):
                agent.cancel()
                agent.abandon()

        first = await heard(agent, "Go.", on=stop)
        second = await heard(agent, "Go on.")
        await agent.close()
        return first, second

    first, second = asyncio.run(play())
    assert end(first).reason == "cancelled"
    beats = (where / "beats").stat().st_size
    time.sleep(0.1)
    assert (where / "beats").stat().st_size == beats
    assert results(outside) == [INTERRUPTED]
    assert end(second).text == "On."
