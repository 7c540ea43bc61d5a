"""Absent a commit a request begins with the bytes of the one before it, up to that one's notes: whatever a session goes through."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from holding import Outside, call, end, folder, heard, says
from test_agent_pictures import png
from test_agent_wire import KEY, LINES, MODELS, bytes_of, every, provided, repository, without_notes

from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.events import ApprovalAsked, Event
from tenure.agent.session import Agent
from tenure.agent.settings import Settings
from tenure.models.speaker import SdkSpeaker
from tenure.testing.provider import Seen

OTHER = {"openai-chat": "gpt-5", "openai-responses": "gpt-5", "anthropic": "claude-opus-4-5", "gemini": "gemini-3-pro"}


async def opened(outside: Outside, dialect: str, url: str, **settings: object) -> Agent:
    base = f"{url}/v1" if dialect.startswith("openai") else url
    world = outside.world(speaker=lambda choice: SdkSpeaker(choice.name or MODELS[dialect], dialect, base_url=base, api_key=KEY))
    usual: dict[str, Any] = {"folder": outside.where, "model": f"{dialect}:{MODELS[dialect]}", "base_url": base, "mode": Mode.ASK}
    return await Agent.open(Settings(**(usual | settings)), world)


async def told(agent: Agent, text: str, answer: ApprovalAnswer = ApprovalAnswer.ONCE, images: Sequence[Path] = ()) -> list[Event]:
    events: list[Event] = []
    async for event in agent.run(text, images=images):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            agent.approve(event.call, answer, "not that one" if answer is ApprovalAnswer.NO else "")
    return events


def grows(requests: Sequence[Seen]) -> None:
    assert [seen.violations for seen in requests] == [()] * len(requests)
    for before, after in pairwise(requests):
        assert bytes_of(after).startswith(without_notes(before))


@every
def test_approvals_refusals_images_and_a_resume_break_no_prefix(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LINES)
    (where / "a.png").write_bytes(png())
    (where / "b.png").write_bytes(png() + b"\0")
    repository(where)
    outside = Outside(where)
    turns = (
        says("I see.", call("write", path="b.py", content="b\n"), thinking="is it?"),
        says("And look.", call("read", path="b.png"), call("read", path="a.py"), thinking="what is it?"),
        says("So."),
        says("Not?", call("bash", command="touch c"), call("write", path="d.py", content="d\n")),
        says("Then not."),
        says("Again.", call("delimiter", action="start", name="find", type="expl"), call("grep", pattern="line 7")),
        says("Found.", call("delimiter", action="end", description="it is in a.py"), thinking="there"),
        says("Done."),
    )

    async def play(url: str) -> list[Event]:
        agent = await opened(outside, dialect, url)
        await told(agent, "Look.", images=[where / "a.png"])
        await told(agent, "Go on.", ApprovalAnswer.NO)
        await agent.close()
        agent = await opened(outside, dialect, url, newest=True)
        events = await told(agent, "Once more.")
        await agent.close()
        return events

    with provided(*turns) as (provider, url):
        events = asyncio.run(play(url))
    assert end(events).text == "Done."
    assert len(provider.seen) == len(turns)
    grows(provider.seen)


@every
def test_a_part_breaks_no_prefix_of_its_parent_and_a_branch_begins_with_it(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LINES)
    turns = (
        says("I look.", call("read", path="a.py"), thinking="hm"),
        says("I delegate.", call("task", task="Count the lines.", seed="branch"), thinking="much"),
        says("I count.", call("bash", command="wc -l a.py"), thinking="how many?"),
        says("60."),
        says("And another.", call("task", task="Count the words.", seed="fresh")),
        says("Many."),
        says("Done."),
    )

    async def play(url: str) -> list[Event]:
        agent = await opened(Outside(where), dialect, url, mode=Mode.ALL)
        events = await heard(agent, "Go.")
        await agent.close()
        return events

    with provided(*turns) as (provider, url):
        events = asyncio.run(play(url))
    assert end(events).text == "Done."
    seen = provider.seen
    grows([seen[0], seen[1], seen[4], seen[6]])
    grows([seen[1], seen[2], seen[3]])  # the branch, behind what its parent had sent
    assert seen[1].usage
    assert seen[2].usage
    assert seen[2].usage.cache_read >= seen[1].usage.prompt - 60
    grows([seen[5]])


@every
def test_another_model_of_the_same_api_is_sent_the_same_messages(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LINES)
    outside = Outside(where)
    turns = (says("I look.", call("read", path="a.py")), says("So."), says("I too.", call("ls")), says("Done."))

    async def play(url: str) -> list[Event]:
        agent = await opened(outside, dialect, url)
        await told(agent, "Look.")
        base = f"{url}/v1" if dialect.startswith("openai") else url
        await agent.use(f"{dialect}:{OTHER[dialect]}", base_url=base)
        events = await told(agent, "And you?")
        await agent.close()
        return events

    with provided(*turns) as (provider, url):
        events = asyncio.run(play(url))
    assert end(events).text == "Done."
    key = {"openai-responses": b'"input":[', "gemini": b'"contents":['}.get(dialect, b'"messages":[')
    first, second = (without_notes(seen).partition(key)[2] for seen in provider.seen[1:3])
    assert second.startswith(first)
    assert dialect == "gemini" or OTHER[dialect].encode() in provider.seen[2].body  # Gemini's stands in the path
    grows(provider.seen[2:])


@pytest.mark.parametrize("other", MODELS)
@every
def test_a_session_goes_on_in_another_api_and_grows_there(dialect: str, other: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LINES)
    (where / "b.png").write_bytes(png())
    outside = Outside(where)
    turns = (
        says("I look.", call("read", path="a.py"), call("read", path="b.png"), thinking="hm"),
        says("So."),
        says("I too.", call("ls"), thinking="what is there?"),
        says("Once more.", call("grep", pattern="line 3")),
        says("Done."),
    )

    async def play(url: str) -> list[Event]:
        base = {name: f"{url}/v1" if name.startswith("openai") else url for name in MODELS}
        name = {name: MODELS[name] for name in MODELS}
        world = outside.world(
            speaker=lambda choice: SdkSpeaker(name[choice.api], choice.api, base_url=base[choice.api], api_key=KEY)
        )
        agent = await Agent.open(Settings(folder=where, model=f"{dialect}:{name[dialect]}", mode=Mode.ALL), world)
        await heard(agent, "Look.")
        await agent.use(f"{other}:{name[other]}")
        events = await heard(agent, "And you?")
        await agent.close()
        return events

    with provided(*turns) as (provider, url):
        events = asyncio.run(play(url))
    assert end(events).text == "Done."
    assert [seen.dialect for seen in provider.seen] == [dialect] * 2 + [other] * 3
    grows(provider.seen[:2])
    grows(provider.seen[2:])


@every
def test_an_image_without_words_is_a_message_all_the_same(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path)
    (where / "a.png").write_bytes(png())

    async def play(url: str) -> list[Event]:
        agent = await opened(Outside(where), dialect, url)
        events = await told(agent, "", images=[where / "a.png"])
        await agent.close()
        return events

    with provided(says("A dot.")) as (provider, url):
        events = asyncio.run(play(url))
    assert end(events).text == "A dot."
    assert b'"text":""' not in provider.seen[0].body
    grows(provider.seen)
