"""Google's official SDK over a whole conversation: it takes what a `Context` requests, and a `Context` takes what it gives."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from google import genai
from google.genai import types

from tenure import Context
from tenure.apis.gemini import whole
from tenure.engine.record.entry import ToolCall, ToolResult
from tenure.errors import Failure, InputError, ModelError
from tenure.models import Patience, Question, model_named
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Fault, Reply, Script

PATH = types.Schema(type=types.Type.OBJECT, properties={"path": types.Schema(type=types.Type.STRING)})
READ = types.Tool(function_declarations=[types.FunctionDeclaration(name="read", description="Reads.", parameters=PATH)])
CONFIG = types.GenerateContentConfig(temperature=0.2, system_instruction="Be brief.")
LOOK = Reply(
    thinking="hm", calls=(Call(name="read", arguments='{"path":"a"}'), Call(name="recall", arguments='{"words":"Hello"}'))
)


@contextmanager
def provided(*replies: Reply | Fault) -> Iterator[tuple[FakeProvider, Any, str]]:
    """A provider with a script, a client of the SDK for it, and where it is."""
    provider = FakeProvider(Script(replies=replies), clock=lambda: 0.0)
    with serve(provider.app) as url:
        client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
        yield provider, client, url
        client.close()


def answered(context: Context, reply: types.GenerateContentResponse) -> types.Content:
    """The results of a reply's calls, as objects of the SDK: those of our tools as the context answers them."""
    parts: list[types.Part] = []
    for call in reply.function_calls or ():
        ours = context.call(call)
        result = types.Part.from_function_response(name=call.name or "", response={"result": "AAA"})
        result.function_response.id = call.id  # pyright: ignore[reportOptionalMemberAccess] - just made
        parts.append(types.Part.model_validate(ours) if ours else result)
    return types.Content(role="user", parts=parts)


@pytest.mark.parametrize("model", ["gemini-3-pro", "gemini-2.5-flash"])  # whose calls have ids, and whose have none
def test_the_sdk_drives_a_conversation(model: str) -> None:
    with provided(LOOK, Reply(text="It says A."), Reply(thinking="so", text="Streamed.")) as (provider, client, _):
        context = Context(dialect="gemini", store="sqlite://", model=model)
        context.extend([types.UserContent("Hello")])
        first = client.models.generate_content(**context.request(model=model, tools=[READ], config=CONFIG))
        context.append(first)
        context.extend([answered(context, first)])
        context.append(client.models.generate_content(**context.request(model=model, tools=[READ], config=CONFIG)))
        context.extend([{"role": "user", "parts": [{"text": "More."}]}])
        request = context.request(model=model, tools=[READ], config=CONFIG, notes="[now]")
        context.append(whole(client.models.generate_content_stream(**request)))
    assert [seen.violations for seen in provider.seen] == [()] * 3
    entries = context.store.entries(context.conversation)
    blocks = [block for entry in entries for block in entry.blocks]
    read, recalled = (block.text for block in blocks if isinstance(block, ToolResult))
    assert read == "AAA"
    assert "entry:0/0" in recalled
    assert [block.name for block in blocks if isinstance(block, ToolCall)] == ["read", "recall"]
    assert context.ledger.accounts[0].usage.prompt == sum(seen.usage.prompt for seen in provider.seen if seen.usage)
    assert b"Be brief." in provider.seen[0].body


def test_the_asynchronous_client_does_so_too() -> None:
    async def play(client: Any) -> Context:
        context = Context(dialect="gemini", store="sqlite://", model="gemini-3-pro")
        context.extend([types.UserContent("Hello")])
        reply = await client.aio.models.generate_content(**context.request(model="gemini-3-pro", tools=[READ]))
        context.append(reply)
        context.extend([answered(context, reply)])
        stream = await client.aio.models.generate_content_stream(**context.request(model="gemini-3-pro", tools=[READ]))
        context.append(whole([chunk async for chunk in stream]))
        await client.aio.aclose()
        return context

    with provided(LOOK, Reply(text="It says A.")) as (provider, client, _):
        context = asyncio.run(play(client))
    assert [seen.violations for seen in provider.seen] == [()] * 2
    assert context.session.length == 4


def test_a_stream_is_refused_with_the_way_to_its_whole_reply() -> None:
    with provided(Reply(text="Hi")) as (_, client, _url):
        context = Context(dialect="gemini", store="sqlite://")
        context.extend([types.UserContent("Hello")])
        stream = client.models.generate_content_stream(**context.request(model="gemini-3-pro"))
        with pytest.raises(InputError, match=r"context\.append\(whole\(chunks\)\), of tenure\.apis\.gemini"):
            context.append(stream)
        list(stream)


@pytest.mark.parametrize("name", ["gemini:gemini-3-flash", "google:gemini-3-flash"])
def test_a_model_answers_questions(name: str) -> None:
    with provided(Reply(text='{"n": 1}'), Fault(status=429, message="Slow.", retry_after_s=3)) as (provider, _, url):
        model = model_named(name, base_url=url, api_key="k", patience=Patience(retries=0))
        answer = model(Question(messages=("How many?",), system="Count.", schema={"type": "object"}))
        with pytest.raises(ModelError) as caught:
            model(Question(messages=("How many?",)))
    assert answer.text == '{"n": 1}'
    assert answer.stop == "STOP"
    assert (caught.value.kind, caught.value.retry_after_s) == (Failure.RATE_LIMITED, 3.0)
    assert b"Count." in provider.seen[0].body


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "examples" / "gemini.py"
    look = Reply(
        calls=(Call(name="read", arguments='{"path":"pyproject.toml"}'), Call(name="recall", arguments='{"words":"tests"}'))
    )
    with provided(look, Reply(text="Those marked long.")) as (provider, _, url):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GEMINI_API_KEY", "k")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
        run_path(str(example), run_name="__main__")
    assert [seen.violations for seen in provider.seen] == [(), ()]
    assert capsys.readouterr().out.startswith("Those marked long.\n")
