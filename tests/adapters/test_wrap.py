"""`tenure.wrap` with the official SDKs against a server that refuses what providers refuse: the caller passes his whole history, as ever."""

import asyncio
import gc
import json
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from inspect import iscoroutinefunction
from typing import Any, Final

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

import tenure
from tenure import Budget
from tenure.errors import InputError
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Broken, Call, Fault, Reply, Script

FILE: Final = "\n".join(f"{n:04} def function_{n}(): return {n * 7919}" for n in range(400))
STEPS: Final = 16
CLAUDE: Final = "claude-opus-4-5"
# A loop that ends leaves connections of a client that was not closed to the collector, which says so.
LEFT: Final = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


def read(n: int) -> Reply:
    return Reply(text=f"I look at {n}.", calls=(Call(name="read", arguments=json.dumps({"path": f"file_{n}.py"})),))


def work(steps: int = STEPS, recalled: int | None = None) -> Script:
    """An agent that reads file after file; before step `recalled` it brings one back by a tool of ours."""
    replies: list[Reply] = []
    for n in range(steps):
        if n == recalled:
            replies.append(Reply(calls=(Call(name="recall", arguments='{"handle":"read:1","lines":"7-8"}'),)))
        replies.append(read(n))
    return Script(replies=(*replies, Reply(text="Done.")))


# Each way to ask, as a caller of the SDK writes it: the client and his history in, the assistant's message and its calls out.
Ask = Callable[[Any, list[Any]], tuple[Any, list[tuple[str, str]]]]
ANTHROPIC_TOOLS: Final[list[Any]] = [
    {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
]
CHAT_TOOLS: Final[list[Any]] = [
    {
        "type": "function",
        "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
    }
]
ITEM_TOOLS: Final[list[Any]] = [
    {
        "type": "function",
        "name": "read",
        "strict": False,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]

CONTENT_CONFIG: Final[Any] = {
    "tools": [
        {
            "function_declarations": [
                {"name": "read", "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}}
            ]
        }
    ]
}


def anthropic_turn(message: Any) -> tuple[Any, list[tuple[str, str]]]:
    content = [block.model_dump(exclude_none=True) for block in message.content]
    for block in content:
        block.pop("caller", None)
    return [{"role": "assistant", "content": content}], [
        (block["id"], block["name"]) for block in content if block["type"] == "tool_use"
    ]


def create(client: Any, history: list[Any]) -> Any:
    assert client.messages.count_tokens(model=CLAUDE, tools=ANTHROPIC_TOOLS, messages=history).input_tokens < 48_000
    return anthropic_turn(client.messages.create(model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history))


def helper(client: Any, history: list[Any]) -> Any:
    with client.messages.stream(model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history) as stream:
        assert "recall" not in "".join(str(event) for event in stream)
        return anthropic_turn(stream.get_final_message())


def raw(client: Any, history: list[Any]) -> Any:
    response = client.messages.with_raw_response.create(model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history)
    assert response.status_code == 200
    return anthropic_turn(response.parse())


def streaming_response(client: Any, history: list[Any]) -> Any:
    asked = client.messages.with_streaming_response.create(
        model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history
    )
    with asked as response:
        return anthropic_turn(response.parse())


def parsed(client: Any, history: list[Any]) -> Any:
    return anthropic_turn(client.messages.parse(model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history))


def beta(client: Any, history: list[Any]) -> Any:
    return anthropic_turn(client.beta.messages.create(model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history))


def chat_turn(message: Any) -> Any:
    calls = [(call.id, call.function.name) for call in message.tool_calls or ()]
    return [message.model_dump(exclude_none=True)], calls


def chat(client: Any, history: list[Any]) -> Any:
    return chat_turn(client.chat.completions.create(model="gpt-5.1", tools=CHAT_TOOLS, messages=history).choices[0].message)


def chat_parsed(client: Any, history: list[Any]) -> Any:
    strict = [{**CHAT_TOOLS[0], "function": {**CHAT_TOOLS[0]["function"], "strict": True}}]
    return chat_turn(client.chat.completions.parse(model="gpt-5.1", tools=strict, messages=history).choices[0].message)


def chat_stream(client: Any, history: list[Any]) -> Any:
    with client.chat.completions.stream(model="gpt-5.1", tools=CHAT_TOOLS, messages=history) as stream:
        for _ in stream:
            pass
        return chat_turn(stream.get_final_completion().choices[0].message)


def items_turn(output: list[Any]) -> Any:
    return [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in output], [
        (item.call_id, item.name) for item in output if item.type == "function_call"
    ]


def items(client: Any, history: list[Any]) -> Any:
    return items_turn(client.responses.create(model="gpt-5.1", tools=ITEM_TOOLS, input=history, store=False).output)


def items_stream(client: Any, history: list[Any]) -> Any:
    with client.responses.stream(model="gpt-5.1", tools=ITEM_TOOLS, input=history, store=False) as stream:
        for _ in stream:
            pass
        return items_turn(stream.get_final_response().output)


def contents(client: Any, history: list[Any]) -> Any:
    reply = client.models.generate_content(model="gemini-3-flash", contents=history, config=CONTENT_CONFIG)
    return [reply.candidates[0].content], [(call.id or "", call.name) for call in reply.function_calls or ()]


def contents_turn(chunks: list[Any]) -> Any:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    calls = [(part.function_call.id or "", part.function_call.name) for part in parts if part.function_call]
    return [types.Content(role="model", parts=parts)], calls


def contents_stream(client: Any, history: list[Any]) -> Any:
    chunks = client.models.generate_content_stream(model="gemini-3-flash", contents=history, config=CONTENT_CONFIG)
    return contents_turn(list(chunks))


async def acreate(client: Any, history: list[Any]) -> Any:
    return anthropic_turn(
        await client.messages.create(model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history, timeout=60)
    )


async def ahelper(client: Any, history: list[Any]) -> Any:
    async with client.messages.stream(model=CLAUDE, max_tokens=2_000, tools=ANTHROPIC_TOOLS, messages=history) as stream:
        assert "recall" not in "".join([text async for text in stream.text_stream])
        return anthropic_turn(await stream.get_final_message())


async def achat(client: Any, history: list[Any]) -> Any:
    came = await client.chat.completions.create(model="gpt-5.1", tools=CHAT_TOOLS, messages=history)
    return chat_turn(came.choices[0].message)


async def aitems_stream(client: Any, history: list[Any]) -> Any:
    asked = await client.responses.create(model="gpt-5.1", tools=ITEM_TOOLS, input=history, store=False, stream=True)
    return items_turn([event async for event in asked][-1].response.output)


async def acontents(client: Any, history: list[Any]) -> Any:
    reply = await client.aio.models.generate_content(model="gemini-3-flash", contents=history, config=CONTENT_CONFIG)
    return [reply.candidates[0].content], [(call.id or "", call.name) for call in reply.function_calls or ()]


async def acontents_stream(client: Any, history: list[Any]) -> Any:
    chunks = await client.aio.models.generate_content_stream(model="gemini-3-flash", contents=history, config=CONTENT_CONFIG)
    return contents_turn([chunk async for chunk in chunks])


WAYS: Final[dict[str, tuple[str, Ask]]] = {
    "create": ("anthropic", create),
    "stream helper": ("anthropic", helper),
    "raw response": ("anthropic", raw),
    "streaming response": ("anthropic", streaming_response),
    "parse": ("anthropic", parsed),
    "beta": ("anthropic", beta),
    "chat": ("openai", chat),
    "chat parse": ("openai", chat_parsed),
    "chat stream": ("openai", chat_stream),
    "responses": ("openai-responses", items),
    "responses stream": ("openai-responses", items_stream),
    "gemini": ("gemini", contents),
    "gemini stream": ("gemini", contents_stream),
    "awaited": ("anthropic", acreate),
    "stream helper, awaited": ("anthropic", ahelper),
    "chat, awaited": ("openai", achat),
    "responses, streamed and awaited": ("openai-responses", aitems_stream),
    "gemini, awaited": ("gemini", acontents),
    "gemini, streamed and awaited": ("gemini", acontents_stream),
}


def plain_client(kind: str, url: str, *, awaited: bool = False) -> Any:
    if kind == "anthropic":
        return (anthropic.AsyncAnthropic if awaited else anthropic.Anthropic)(api_key="-", base_url=url, max_retries=0)
    if kind == "gemini":
        return genai.Client(api_key="-", vertexai=False, http_options={"base_url": url, "retry_options": {"attempts": 1}})
    return (openai.AsyncOpenAI if awaited else openai.OpenAI)(api_key="-", base_url=f"{url}/v1", max_retries=0)


def person(kind: str, text: str) -> Any:
    return {"role": "user", "parts": [{"text": text}]} if kind == "gemini" else {"role": "user", "content": text}


def results(kind: str, calls: list[tuple[str, str]], text: str) -> list[Any]:
    if kind == "anthropic":
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, _ in calls]}]
    if kind == "openai":
        return [{"role": "tool", "tool_call_id": id_, "content": text} for id_, _ in calls]
    if kind == "openai-responses":
        return [{"type": "function_call_output", "call_id": id_, "output": text} for id_, _ in calls]
    parts = [
        {"function_response": {**({"id": id_} if id_ else {}), "name": name, "response": {"output": text}}} for id_, name in calls
    ]
    return [{"role": "user", "parts": parts}]


def asked(kind: str, start: str) -> Generator[list[Any], Any, list[Any]]:
    """An agent by hand: its history, whole; each reply is sent in."""
    history: list[Any] = [person(kind, start)]
    while True:
        message, calls = yield history
        history += message
        if not calls:
            return history
        history += results(kind, calls, FILE)


def session(kind: str, ask: Ask, client: Any, start: str = "Look through the files.") -> list[Any]:
    steps, answer = asked(kind, start), None
    while True:
        try:
            history = steps.send(answer)
        except StopIteration as done:
            return done.value
        answer = ask(client, history)


async def asession(kind: str, ask: Ask, client: Any, start: str = "Look through the files.") -> list[Any]:
    steps, answer = asked(kind, start), None
    while True:
        try:
            history = steps.send(answer)
        except StopIteration as done:
            return done.value
        answer = await ask(client, history)


def texts(provider: FakeProvider) -> list[int]:
    return [len(seen.body) for seen in provider.seen]


@LEFT
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_ask_is_kept_to_the_budget_and_recalls_unseen(way: str) -> None:
    kind, ask = WAYS[way]
    provider = FakeProvider(work(recalled=STEPS - 2))
    with serve(provider.app) as url, Store("sqlite://") as store:
        awaited = iscoroutinefunction(ask)
        given = plain_client(kind, url, awaited=awaited)
        client = tenure.wrap(given, store=store, budget=Budget(ceiling=40_000))
        assert type(client) is type(given)
        history = asyncio.run(asession(kind, ask, client)) if awaited else session(kind, ask, client)
        assert "recall" not in str(history)
        assert len(provider.seen) == STEPS + 2  # one more than the caller asked for
        assert [seen.violations for seen in provider.seen] == [()] * (STEPS + 2)
        assert max(texts(provider)) < len(str(history)) * 0.7
        assert b"Look through the files." in provider.seen[-1].body
        assert b"0006 def function_6" in provider.seen[STEPS - 1].body
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        entries = sum(len(entry.blocks) for entry in store.entries(sheet.id))
        assert entries > STEPS * 2


def test_threads_share_a_client_and_their_conversations_keep_apart() -> None:
    def answer(body: Any) -> Reply:
        asked = sum(message["role"] == "user" for message in body["messages"])
        return read(asked) if asked < 6 else Reply(text="Done.")

    provider = FakeProvider(answer)
    with serve(provider.app) as url, Store("sqlite://") as store, ThreadPoolExecutor(4) as pool:
        client = tenure.wrap(plain_client("anthropic", url), store=store, budget=Budget(ceiling=20_000))
        ways = (create, helper, create, helper)
        histories = list(pool.map(lambda n: session("anthropic", ways[n], client, f"Thread {n} looks."), range(4)))
        assert {seen.violations for seen in provider.seen} == {()}
        assert [history[0]["content"] for history in histories] == [f"Thread {n} looks." for n in range(4)]
        sheets = store.conversations()
        assert len(sheets) == 4
        assert {store.verify(sheet.id) for sheet in sheets} == {None}


@LEFT
@pytest.mark.parametrize("awaited", [False, True])
def test_a_chat_of_googles_sdk_keeps_its_own_history_and_calls_functions_by_itself(awaited: bool) -> None:
    provider = FakeProvider(work(6))

    def read(path: str) -> str:
        """Reads a file."""
        return f"{path}\n{FILE}"

    with serve(provider.app) as url, Store("sqlite://") as store:
        client = tenure.wrap(plain_client("gemini", url), store=store, budget=Budget(ceiling=20_000))
        calling = types.AutomaticFunctionCallingConfig(maximum_remote_calls=20)
        config = types.GenerateContentConfig(tools=[read], automatic_function_calling=calling)
        if awaited:
            chat: Any = client.aio.chats.create(model="gemini-3-flash", config=config)
            assert asyncio.run(chat.send_message("Look.")).text == "Done."
        else:
            chat = client.chats.create(model="gemini-3-flash", config=config)
            assert chat.send_message("Look.").text == "Done."
        assert max(texts(provider)) < len(str(chat.get_history())) * 0.7
        assert len(store.conversations()) == 1
    assert [seen.violations for seen in provider.seen] == [()] * 7


@LEFT
def test_a_client_of_googles_is_managed_in_every_event_loop() -> None:
    pytest.importorskip("google.genai", minversion="3.4", reason="older ones keep connections of a loop that is closed")
    provider = FakeProvider(Script(replies=(read(0), read(1))))
    with serve(provider.app) as url, Store("sqlite://") as store:
        client = tenure.wrap(plain_client("gemini", url), store=store)
        for name in ("one", "two"):
            asyncio.run(acontents(client, [person("gemini", name)]))
        assert len(store.conversations()) == 2


def test_a_request_of_which_nothing_has_left_goes_out_byte_for_byte() -> None:
    wrapped, alone = FakeProvider(work(4)), FakeProvider(work(4))
    with serve(wrapped.app) as url, Store("sqlite://") as store:
        session(
            "anthropic", create, tenure.wrap(plain_client("anthropic", url), store=store, budget=Budget(ceiling=150_000), clip=0)
        )
    with serve(alone.app) as url:
        session("anthropic", create, plain_client("anthropic", url))
    assert [seen.body for seen in wrapped.seen] == [seen.body for seen in alone.seen]


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_clients_that_are_awaited_and_parallel_conversations_keep_apart(kind: str) -> None:
    provider = FakeProvider(Script(replies=tuple(Reply(text=f"answer {n}") for n in range(40))))

    async def scene(url: str, store: Store) -> None:
        if kind == "anthropic":
            given: Any = anthropic.AsyncAnthropic(api_key="-", base_url=url, max_retries=0)
        else:
            given = openai.AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0)
        async with tenure.wrap(given, store=store, budget=Budget(ceiling=30_000)) as client:

            async def converse(name: str) -> None:
                history: list[Any] = []
                for n in range(5):
                    history.append({"role": "user", "content": f"{name} asks {n}: {FILE[:4000]}"})
                    if kind == "anthropic" and n % 2:
                        async with client.messages.stream(
                            model=CLAUDE, max_tokens=99, tools=ANTHROPIC_TOOLS, messages=history
                        ) as stream:
                            message = await stream.get_final_message()
                    elif kind == "anthropic":
                        message = await client.messages.create(
                            model=CLAUDE, max_tokens=99, tools=ANTHROPIC_TOOLS, messages=history
                        )
                    else:
                        came = await client.chat.completions.create(model="gpt-5.1", tools=CHAT_TOOLS, messages=history)
                        message = came.choices[0].message
                    text = message.content[0].text if kind == "anthropic" else message.content
                    assert text.startswith("answer")
                    history.append({"role": "assistant", "content": text})

            await asyncio.gather(*(converse(name) for name in ("Ann", "Bob", "Cleo")))

    with serve(provider.app) as url, Store("sqlite://") as store:
        asyncio.run(scene(url, store))
        assert [seen.violations for seen in provider.seen] == [()] * 15
        sheets = store.conversations()
        assert len(sheets) == 3
        for sheet in sheets:
            said = {
                block.text.split(" asks")[0]
                for entry in store.entries(sheet.id)
                for block in entry.blocks
                if " asks" in block.text
            }
            assert len(said) == 1
            assert store.verify(sheet.id) is None


def test_a_raw_stream_and_one_that_is_left_early() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="a longer answer of words"), Reply(text="another"), Reply(text="third"))))
    with serve(provider.app) as url, Store("sqlite://") as store:
        client = tenure.wrap(plain_client("anthropic", url), store=store)
        history: list[Any] = [{"role": "user", "content": "one"}]
        with client.messages.create(model=CLAUDE, max_tokens=99, messages=history, tools=ANTHROPIC_TOOLS, stream=True) as stream:
            next(iter(stream))
        events = list(client.messages.create(model=CLAUDE, max_tokens=99, messages=history, tools=ANTHROPIC_TOOLS, stream=True))
        assert events[-1].type == "message_stop"
        history += [{"role": "assistant", "content": "another"}, {"role": "user", "content": "two"}]
        assert (
            client.messages.create(model=CLAUDE, max_tokens=99, messages=history, tools=ANTHROPIC_TOOLS).content[0].text
            == "third"
        )
    assert [seen.violations for seen in provider.seen] == [()] * 3


def test_a_restart_goes_on_with_the_same_conversation_and_the_same_bytes(tmp_path: Any) -> None:
    url_of_store, provider = f"sqlite:///{tmp_path}/agent.db", FakeProvider(work(STEPS))
    with serve(provider.app) as url:
        history: list[Any] = [person("anthropic", "Look.")]
        while True:
            with Store(url_of_store) as store:  # every call in a process of its own
                client = tenure.wrap(plain_client("anthropic", url), store=store, budget=Budget(ceiling=40_000))
                message, calls = create(client, history)
            history += message
            if not calls:
                break
            history += results("anthropic", calls, FILE)
    with Store(url_of_store) as store:
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        assert 0 < sum(each.moment != "admission" for each in store.commits(sheet.id)) <= STEPS / 3
    assert [seen.violations for seen in provider.seen] == [()] * (STEPS + 1)


def test_errors_of_the_provider_come_as_the_sdk_raises_them() -> None:
    provider = FakeProvider(Script(replies=(Fault(status=429, retry_after_s=0.01), Fault(status=529), Reply(text="ok"))))
    with serve(provider.app) as url, Store("sqlite://") as store:
        client = tenure.wrap(plain_client("anthropic", url), store=store)
        asked = {"model": CLAUDE, "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}], "tools": ANTHROPIC_TOOLS}
        with pytest.raises(anthropic.RateLimitError):
            client.messages.create(**asked)
        retried = client.with_options(max_retries=2)  # a copy of the client is managed too
        assert retried.messages.create(**asked).content[0].text == "ok"
        assert len(store.conversations()) == 1


def test_a_store_that_fails_leaves_the_caller_with_an_unmanaged_client() -> None:
    provider = FakeProvider(work(3))
    with serve(provider.app) as url:
        store = Store("sqlite://")
        client = tenure.wrap(plain_client("anthropic", url), store=store)
        history: list[Any] = [person("anthropic", "Look.")]
        message, calls = create(client, history)
        store._database.writing = None  # type: ignore[assignment, method-assign]  # as if the disk were gone
        history += [*message, *results("anthropic", calls, FILE)]
        message, calls = create(client, history)
        assert calls
    assert [seen.violations for seen in provider.seen] == [(), ()]


def test_what_cannot_be_wrapped_is_refused_with_a_sentence() -> None:
    with Store("sqlite://") as store:
        with pytest.raises(InputError, match=r"a builtins\.str"):
            tenure.wrap("client", store=store)
        client = tenure.wrap(anthropic.Anthropic(api_key="-"), store=store)
        with pytest.raises(InputError, match="wrapped already"):
            tenure.wrap(client, store=store)


def test_the_original_may_be_forgotten_and_stays_unmanaged() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="one"), Reply(text="two"))))
    asked: dict[str, Any] = {
        "model": CLAUDE,
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": ANTHROPIC_TOOLS,
    }
    with serve(provider.app) as url, Store("sqlite://") as store:
        given = plain_client("anthropic", url)
        client = tenure.wrap(given, store=store)
        given.messages.create(**asked)
        assert store.conversations() == ()
        del given
        gc.collect()
        client.messages.create(**asked)
        assert len(store.conversations()) == 1
        client.close()


def test_a_thread_that_the_server_holds_passes_through_as_it_is() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="one"),)))
    with serve(provider.app) as url, Store("sqlite://") as store:
        client = tenure.wrap(plain_client("anthropic", url), store=store)
        client.beta.messages.create(
            model=CLAUDE,
            max_tokens=99,
            messages=[{"role": "user", "content": "hi"}],
            thread={"type": "create"},
            tools=ANTHROPIC_TOOLS,
        )
        assert store.conversations() == ()


@pytest.mark.parametrize("awaited", [False, True])
def test_a_tool_runner_of_the_sdk_goes_on_managed(awaited: bool) -> None:
    provider = FakeProvider(work(12))

    def read(path: str) -> str:
        """Reads a file.

        Args:
            path: of the file

        """
        return f"{path}\n{FILE}"

    async def aread(path: str) -> str:
        return read(path)

    aread.__name__, aread.__doc__ = read.__name__, read.__doc__
    tool: Any = anthropic.beta_async_tool(aread) if awaited else anthropic.beta_tool(read)
    with serve(provider.app) as url, Store("sqlite://") as store:
        client = tenure.wrap(plain_client("anthropic", url, awaited=awaited), store=store, budget=Budget(ceiling=30_000))
        runner = client.beta.messages.tool_runner(
            model=CLAUDE, max_tokens=999, tools=[tool], thread=False, messages=[{"role": "user", "content": "Look."}]
        )
        message = asyncio.run(runner.until_done()) if awaited else runner.until_done()
        assert message.content[0].text == "Done."
        assert max(texts(provider)) < 12 * len(FILE) * 0.7
    assert [seen.violations for seen in provider.seen] == [()] * 13


def test_a_stream_that_stalls_times_out_as_it_would_unwrapped_and_the_conversation_goes_on() -> None:
    provider = FakeProvider(Script(replies=(Broken(reply=read(0), after=2, how="stall"), read(1), read(2))))
    with serve(provider.app) as url, Store("sqlite://") as store:
        client = tenure.wrap(plain_client("anthropic", url), store=store).with_options(timeout=1.0)
        asked: dict[str, Any] = {"model": CLAUDE, "max_tokens": 99, "tools": ANTHROPIC_TOOLS}
        history = [person("anthropic", "Look.")]
        with pytest.raises(Exception, match="timed out"), client.messages.stream(messages=history, **asked) as stream:
            stream.until_done()
        message, calls = create(client, history)
        create(client, [*history, *message, *results("anthropic", calls, "text")])
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        assert len(tuple(store.entries(sheet.id))) == 4
