"""What left the window comes back at its end on a person's word, as if the model had recalled it."""

import asyncio
from pathlib import Path

import pytest
from holding import Outside, call, folder, heard, of, open_agent, says

from tenure.agent.events import CallDone, CallStarted, Noticed, Recalled
from tenure.agent.session import Agent
from tenure.apis import APIS
from tenure.apis.json_text import dump, load
from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError
from tenure.testing.validity import violations

LONG = "".join(f"line {n} of the file, which is long enough to be worth leaving\n" for n in range(60))


async def squeezed(outside: Outside) -> Agent:
    """A session from whose window the first of what was read has left, where that is much."""
    agent = await open_agent(outside, policy="cwl", clip=0, budget=Budget(ceiling=6_000))
    await heard(agent, "Read all.")
    return agent


def script() -> tuple:
    reads = [says("", call("read", path=name), thinking="which next?") for name in ("a.py", *["b.py", "c.py"] * 5)]
    return (*reads, says("All read."), says("I see it again."))


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
def test_what_was_recalled_on_a_persons_word_is_in_the_next_request_byte_for_byte_and_valid(dialect: str, tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path, a_py=LONG, b_py=LONG.upper(), c_py=LONG.title()), *script(), dialect=dialect)

    async def play() -> None:
        agent = await squeezed(outside)
        context = agent.context
        span = context.session.index.spans[0]
        assert span.result is not None
        assert context.session.view.weight(*span.result) < context.session.index.block(span.result).tokens
        length = len(context.session.index)
        events = agent.bring_back(context.session.index.handle(span.object, span.call[0]))
        assert [each.summary for each in of(events, CallStarted)] == [f"recall {span.object}@{events[0].summary[-4:]}"]
        assert of(events, CallDone)[0].outcome == "done"
        assert of(events, Recalled)[0].objects == (span.object,)
        bytes_of = context.store.entry(agent.id, span.result[0]).blocks[span.result[1]].text[:2_000]
        assert bytes_of in of(events, CallDone)[0].text
        assert len(context.session.index) == length + 3
        context.extend([{"role": "user", "content": "And now?"}])
        body = context.wire(tools=agent.parts.tools, **agent.parts.fields)
        assert dump(bytes_of).strip('"') in body.decode()
        head, messages = APIS[dialect].split(body)
        key = "input" if dialect == "openai-responses" else "messages"
        request = dict(head.fields) | {key: [load(each.decode()) for each in messages]}
        assert violations(request, rules_for("", "scripted", dialect)) == ()
        assert outside.store.verify(agent.id) is None
        await agent.close()

    asyncio.run(play())


def test_what_the_window_shows_is_not_brought_back(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path, a_py="x\n", b_py="y\n", c_py="z\n"), *script())

    async def play() -> None:
        agent = await squeezed(outside)
        length = len(agent.context.session.index)
        with pytest.raises(InputError, match="in the window as it was"):
            agent.bring_back("read:1")
        with pytest.raises(InputError, match="no object"):
            agent.bring_back("read:99")
        assert len(agent.context.session.index) == length
        await agent.close()

    asyncio.run(play())


@pytest.mark.parametrize("look_back", [True, False])
def test_what_left_and_fits_a_prompt_is_named_to_the_model_where_that_is_wanted(look_back: bool, tmp_path: Path) -> None:
    told = "".join(f"retry_after_seconds {n} of the backoff in the scheduler is doubled\n" for n in range(60))
    replies = (*script()[:-1], says("I know."), says("As before."))
    outside = Outside(folder(tmp_path, a_py=told, b_py=LONG.upper(), c_py=LONG.title()), *replies)
    sent: list[bytes] = []
    speak = outside.speaker.speak
    outside.speaker.speak = lambda body: (sent.append(body), speak(body))[1]

    async def play() -> list:
        agent = await open_agent(outside, policy="cwl", clip=0, budget=Budget(ceiling=6_000), look_back=look_back)
        await heard(agent, "Read all.")
        events = await heard(agent, "Why is retry_after_seconds doubled in the backoff of the scheduler?")
        events += await heard(agent, "Go on.")
        await agent.close()
        return events

    said = [each.text for each in of(asyncio.run(play()), Noticed)]
    assert [b"may fit this task: read:1@" in body for body in sent[-2:]] == [look_back, False]
    assert said == (["fits what you ask, and left the window: read:1; the model is told"] if look_back else [])
