"""Images that a person shows, and images that the agent reads, in every API."""

import asyncio
import base64
import json
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, recorded, says
from test_agent_wire import MODELS, every, provided

from pictures import png
from tenure.agent.approval import Mode
from tenure.agent.events import CallDone, Event
from tenure.agent.pictures import LARGEST, read_pictures
from tenure.agent.session import Agent
from tenure.agent.settings import Settings
from tenure.engine.record.entry import Origin
from tenure.errors import InputError
from tenure.models.speaker import SdkSpeaker


@every
def test_an_image_is_seen_whoever_brings_it(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path)
    (where / "a.png").write_bytes(png())
    (where / "b.png").write_bytes(png() + b"\0")
    outside = Outside(where)

    async def play(url: str) -> list[Event]:
        name, base = MODELS[dialect], f"{url}/v1" if dialect.startswith("openai") else url
        world = outside.world(speaker=lambda _: SdkSpeaker(name, dialect, base_url=base, api_key="-"))
        agent = await Agent.open(Settings(folder=where, model=f"{dialect}:{name}", mode=Mode.ALL), world)
        events = [event async for event in agent.run("Compare them.", images=[where / "a.png"])]
        await agent.close()
        return events

    with provided(says("", call("read", path="b.png"), call("ls")), says("Alike.")) as (provider, url):
        events = asyncio.run(play(url))
    assert end(events).text == "Alike."
    assert not any(seen.violations for seen in provider.seen)
    body = provider.seen[-1].body
    for data in (png(), png() + b"\0"):
        assert base64.b64encode(data) in body
    assert [event.media for event in events if isinstance(event, CallDone)] == [1, 0]
    humans = [block for entry in recorded(outside) for block in entry.blocks if block.origin is Origin.HUMAN]
    assert len(humans) == 2  # the words and the image of the person, and nothing that a tool showed
    assert json.loads(body)


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"GIF9", "another kind of file"), (b"", "another kind"), (b"\x89PNG\r\n\x1a\n" + bytes(LARGEST), "more than")],
)
def test_what_is_no_image_is_refused_by_name(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(InputError, match=words):
        read_pictures([tmp_path / "x"])


def test_documents_are_told_from_images(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(b"%PDF-1.7")
    (found,) = read_pictures([tmp_path / "x.pdf"])
    assert (found.media_type, found.image, found.name) == ("application/pdf", False, "x.pdf")
