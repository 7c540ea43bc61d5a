"""`Context.run` and `Context.arun` with the official SDKs against a server that refuses what providers refuse."""

import asyncio
from collections.abc import Callable
from threading import Event, get_ident
from typing import Annotated, Any

import anthropic
import msgspec
import openai
import pytest
from google import genai

from tenure import Budget, Context
from tenure.context.run import Hooks
from tenure.errors import InputError, ModelError
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Broken, Call, Fault, Reply, Script
from tenure.testing.store import MemoryStore

MODELS = {"anthropic": "claude-opus-4-5", "openai-chat": "gpt-5.1", "openai-responses": "gpt-5.1", "gemini": "gemini-3-flash"}
DIALECTS = list(MODELS)


def client_of(dialect: str, url: str, *, awaited: bool = False) -> Any:
    if dialect == "anthropic":
        kind: Any = anthropic.AsyncAnthropic if awaited else anthropic.Anthropic
        return kind(api_key="-", base_url=url, max_retries=0)
    if dialect == "gemini":
        client = genai.Client(api_key="-", vertexai=False, http_options={"base_url": url, "retry_options": {"attempts": 1}})
        return client.aio if awaited else client
    kind = openai.AsyncOpenAI if awaited else openai.OpenAI
    return kind(api_key="-", base_url=f"{url}/v1", max_retries=0)


def awaited_run(context: Context, url: str, dialect: str, prompt: str, **settings: Any) -> Any:
    """`arun` with a client that is closed in its loop."""

    async def scene() -> Any:
        client = client_of(dialect, url, awaited=True)
        try:
            return await context.arun(client, prompt, **settings)
        finally:
            await (client.aclose() if dialect == "gemini" else client.close())

    return asyncio.run(scene())


def context_of(dialect: str, store: MemoryStore | None = None, **settings: Any) -> Context:
    return Context(
        dialect=dialect,
        model=MODELS[dialect],
        provider="",
        store=store or MemoryStore(),
        budget=Budget(ceiling=20_000),
        **settings,
    )


def call(name: str, /, **arguments: object) -> Call:
    return Call(name=name, arguments=msgspec.json.encode(arguments).decode())


def read(path: Annotated[str, msgspec.Meta(description="of a file")], lines: int = 3) -> str:
    """Reads a file."""
    return "\n".join(f"line {n} of {path}" for n in range(lines))


def broken(path: str) -> str:
    """Fails."""
    raise RuntimeError(f"no {path}")


WORK = (
    Reply(text="I look.", calls=(call("read", path="a.py"), call("broken", path="b.py"))),
    Reply(calls=(call("read", path="c.py", lines="many"), call("nothing"), call("recall", handle="read:1"))),
    Reply(text="Done."),
)


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_are_carried_out_until_the_model_has_no_more_to_do(dialect: str, awaited: bool) -> None:
    provider, context = FakeProvider(Script(replies=WORK)), context_of(dialect)
    pieces: list[str] = []
    results: list[tuple[str, str]] = []
    hooks = Hooks(on_piece=lambda piece: pieces.append(piece.text), on_result=lambda name, text: results.append((name, text)))
    with serve(provider.app) as url:
        tools = {"read": read, "broken": broken}
        if awaited:
            outcome = awaited_run(context, url, dialect, "Look.", tools=tools, hooks=hooks)
        else:
            outcome = context.run(client_of(dialect, url), "Look.", tools=tools, hooks=hooks)
    assert [seen.violations for seen in provider.seen] == [(), (), ()]
    assert (outcome.reason, outcome.text, outcome.calls) == ("done", "Done.", 3)
    assert "Done." in "".join(pieces)
    (one, two, three, four, five) = results
    assert one == ("read", "line 0 of a.py\nline 1 of a.py\nline 2 of a.py")
    assert two == ("broken", "RuntimeError: no b.py")
    assert "arguments that do not fit" in three[1]
    assert "'nothing'" in four[1]
    assert "line 2 of a.py" in five[1]
    assert context.ledger.total.calls == 3


def test_functions_are_declared_by_their_signatures() -> None:
    provider, context = FakeProvider(Script(replies=(Reply(text="ok"),))), context_of("anthropic")
    with serve(provider.app) as url:
        context.run(client_of("anthropic", url), "Go.", tools={"read": read})
    tool = msgspec.json.decode(provider.seen[0].body)["tools"][0]
    assert (tool["name"], tool["description"]) == ("read", "Reads a file.")
    assert tool["input_schema"]["required"] == ["path"]
    assert tool["input_schema"]["properties"]["path"] == {"description": "of a file", "type": "string"}


@pytest.mark.parametrize("function", [lambda *paths: "", lambda path, /: path, print])
def test_a_function_that_takes_no_names_is_refused_before_anything_is_sent(function: Callable[..., Any]) -> None:
    context = context_of("anthropic")
    with pytest.raises(InputError, match="by name"):
        context.run(anthropic.Anthropic(api_key="-"), "Go.", tools={"f": function})
    assert context.session.length == 0


def test_limits_end_a_run_and_the_next_goes_on() -> None:
    replies = tuple(Reply(calls=(call("read", path=f"{n}.py"),)) for n in range(3))
    provider, context = FakeProvider(Script(replies=(*replies, Reply(text="Done.")))), context_of("anthropic")
    with serve(provider.app) as url:
        client = client_of("anthropic", url)
        assert context.run(client, "Go.", tools={"read": read}, calls=1).reason == "calls"
        assert context.run(client, tools={"read": read}, usd=0.000001).reason == "usd"
        stop = Event()
        stop.set()
        assert context.run(client, tools={"read": read}, hooks=Hooks(stop=stop.is_set)).reason == "stopped"
        assert context.run(client, tools={"read": read}).reason == "done"
    assert [seen.violations for seen in provider.seen] == [()] * 4


def test_a_run_that_was_killed_in_a_call_goes_on_with_a_result_that_says_so() -> None:
    class Killed(BaseException): ...

    def dies(path: str) -> str:
        raise Killed

    store = MemoryStore()
    provider = FakeProvider(Script(replies=(Reply(calls=(call("read", path="a.py"),)), Reply(text="Done."))))
    context = context_of("anthropic", store)
    with serve(provider.app) as url:
        client = client_of("anthropic", url)
        with pytest.raises(Killed):
            context.run(client, "Go.", tools={"read": dies})
        again = Context(store=store, conversation=context.conversation)
        assert [each.name for each in again.unanswered] == ["read"]
        assert again.run(client, tools={"read": read}).reason == "done"
    assert b"interrupted" in provider.seen[-1].body
    assert provider.seen[-1].violations == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_reply_that_breaks_off_is_not_recorded_and_can_be_asked_for_again(dialect: str) -> None:
    whole = Reply(text="a longer answer of several words")
    provider = FakeProvider(Script(replies=(Broken(reply=whole, how="end", after=2), Fault(status=500), whole)))
    context = context_of(dialect)
    with serve(provider.app) as url:
        client = client_of(dialect, url)
        with pytest.raises(ModelError, match="cut short"):
            context.run(client, "Go.", tools={})
        with pytest.raises(Exception, match=r"500|server had an error"):
            context.run(client, tools={})
        assert context.run(client, tools={}).reason == "done"
    assert context.session.length == 2


def test_calls_of_one_reply_run_side_by_side_when_awaited() -> None:
    here = asyncio.Barrier(2)
    threads: set[int] = set()

    async def meet(name: str) -> str:
        await asyncio.wait_for(here.wait(), 20)
        return name

    def work(name: str) -> str:
        threads.add(get_ident())
        return name

    replies = (Reply(calls=(call("meet", name="a"), call("meet", name="b"), call("work", name="c"))), Reply(text="ok"))
    provider, context = FakeProvider(Script(replies=replies)), context_of("openai-chat")
    with serve(provider.app) as url:
        outcome = awaited_run(context, url, "openai-chat", "Go.", tools={"meet": meet, "work": work})
    assert outcome.reason == "done"
    assert get_ident() not in threads


def test_a_client_of_the_wrong_kind_is_refused_with_a_sentence() -> None:
    context = context_of("anthropic")
    with pytest.raises(InputError, match="arun"):
        context.run(anthropic.AsyncAnthropic(api_key="-"), tools={})
    with pytest.raises(InputError, match="a client of the SDK anthropic"):
        context.run(openai.OpenAI(api_key="-"), tools={})
    with pytest.raises(InputError, match="blocks"):
        asyncio.run(context.arun(anthropic.Anthropic(api_key="-"), tools={}))
