"""What a conversation does not take, said in words that name what to do; nothing of it is read or recorded."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from tenure import Conflict, Context, InputError
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script
from tenure.testing.store import MemoryStore

READ = Call(name="read", arguments='{"path":"a.py"}')
CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
DIALECTS = ("anthropic", "openai-chat", "openai-responses")
FIELDS: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "claude-opus-5", "max_tokens": 99},
    "openai-chat": {"model": "gpt-5"},
    "openai-responses": {"model": "gpt-5"},
}


def opened(dialect: str = "anthropic", *messages: Any) -> Context:
    context = Context(dialect=dialect, store=MemoryStore())
    context.extend([{"role": "user", "content": "Go."}, *messages])
    return context


def resource(client: Any, dialect: str) -> Any:
    return {
        "anthropic": lambda: client.messages,
        "openai-chat": lambda: client.chat.completions,
        "openai-responses": lambda: client.responses,
    }[dialect]()


FINAL = {"anthropic": "get_final_message", "openai-chat": "get_final_completion", "openai-responses": "get_final_response"}


def client_of(dialect: str, url: str) -> Any:
    if dialect == "anthropic":
        return anthropic.Anthropic(base_url=url, api_key="-", max_retries=0)
    return openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0)


def async_client_of(dialect: str, url: str) -> Any:
    if dialect == "anthropic":
        return anthropic.AsyncAnthropic(base_url=url, api_key="-", max_retries=0)
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_is_refused_unread_and_its_final_reply_taken(dialect: str) -> None:
    provider = FakeProvider(Script(replies=(Reply(text="Looking.", calls=(READ,)), Reply(text="Done."), Reply(text="Bye."))))
    context = opened(dialect)
    with serve(provider.app) as url, client_of(dialect, url) as client:
        api = resource(client, dialect)
        with api.stream(**context.request(**FIELDS[dialect])) as stream:
            with pytest.raises(InputError, match=rf"context.append\(stream.{FINAL[dialect]}\(\)\)"):
                context.append(stream)
            context.append(getattr(stream, FINAL[dialect])())
        assert context.session.length == 2
        result = {
            "anthropic": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
            "openai-chat": {"role": "tool", "content": "x"},
            "openai-responses": {"type": "function_call_output", "output": "x"},
        }[dialect]
        made = context._durable.entry(1).blocks[-1].call_id  # type: ignore[union-attr]
        named = {"anthropic": "", "openai-chat": "tool_call_id", "openai-responses": "call_id"}[dialect]
        if named:
            result[named] = made
        else:
            result["content"][0]["tool_use_id"] = made  # type: ignore[index]
        context.extend([result])
        raw = api.create(**context.request(**FIELDS[dialect]), stream=True)
        with pytest.raises(InputError, match=rf"with client\..*stream\(…\) as stream: context.append\(stream.{FINAL[dialect]}"):
            context.append(raw)
        assert len(list(raw)) > 2  # nothing of it was read
        with pytest.raises(InputError, match=r"with client\..*stream\(…\) as stream"):
            context.append(api.stream(**context.request(**FIELDS[dialect])))
        with pytest.raises(InputError, match=r"context.append\(response.parse\(\)\)"):
            context.append(api.with_raw_response.create(**context.request(**FIELDS[dialect])))
    assert [seen.violations for seen in provider.seen] == [()] * 3
    assert "parsed" not in json.dumps(context.request(**FIELDS[dialect]))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_streams_and_coroutines_of_an_async_client_are_refused_in_its_words(dialect: str) -> None:
    provider = FakeProvider(Script(replies=(Reply(text="Done."), Reply(text="Bye."))))
    context = opened(dialect)

    async def work(url: str) -> None:
        async with async_client_of(dialect, url) as client:
            api = resource(client, dialect)
            with pytest.raises(InputError, match="await it first"):
                context.append(api.create(**context.request(**FIELDS[dialect])))
            async with api.stream(**context.request(**FIELDS[dialect])) as stream:
                with pytest.raises(InputError, match=rf"context.append\(await stream.{FINAL[dialect]}\(\)\)"):
                    context.append(stream)
                reply = await getattr(stream, FINAL[dialect])()
            raw = await api.create(**context.request(**FIELDS[dialect]), stream=True)
            with pytest.raises(InputError, match=r"async with client\..*await stream"):
                context.append(raw)
            async for _ in raw:
                pass
            context.append(reply)

    with serve(provider.app) as url:
        asyncio.run(work(url))
    assert context.session.length == 2


def test_messages_may_come_one_by_one_but_not_as_a_stream_of_the_sdk() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="Done."),)))
    context = opened()
    context.extend({"role": "user", "content": f"Part {n}."} for n in range(3))
    assert context.session.length == 4
    with serve(provider.app) as url, client_of("anthropic", url) as client:
        raw = client.messages.create(**context.request(**FIELDS["anthropic"]), stream=True)
        with pytest.raises(InputError, match="a stream"):
            context.extend(raw)
        assert len(list(raw)) > 2


@pytest.mark.parametrize("strange", ["a text", 5, None, [], object(), iter([1])])
def test_what_is_no_reply_is_refused(strange: Any) -> None:
    with pytest.raises(InputError):
        opened().append(strange)


def reply_of(dialect: str, *, calls: bool) -> dict[str, Any]:
    match dialect:
        case "anthropic":
            content = [{"type": "text", "text": "Yes."}, *([CALL] if calls else [])]
            return {"id": "m1", "role": "assistant", "content": content, "stop_reason": "end_turn"}
        case "openai-chat":
            message = {"role": "assistant", "content": "Yes.", **({"tool_calls": [CHAT_CALL]} if calls else {})}
            return {"id": "m1", "choices": [{"message": message}]}
        case _:
            said = {"type": "message", "id": "i1", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}
            call = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
            return {"id": "m1", "object": "response", "output": [said, *([call] if calls else [])]}


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_reply_a_second_time_is_refused(dialect: str, calls: bool) -> None:
    context = opened(dialect)
    context.append(reply_of(dialect, calls=calls))
    for again in (context, Context(dialect=dialect, store=context.store, conversation=context.conversation)):
        with pytest.raises(InputError, match="a second time"):
            again.append(reply_of(dialect, calls=calls))
    assert context.session.length == 2


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses"])
def test_a_call_that_the_record_has_is_refused_however_late_and_as_a_message_too(dialect: str) -> None:
    context = opened(dialect)
    first = reply_of(dialect, calls=True)
    message = {"role": "assistant", "content": first["content"]} if dialect == "anthropic" else first["output"][-1]
    result: dict[str, Any] = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    if dialect == "anthropic":
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}
    context.append(first)
    with pytest.raises(InputError, match=r"message 1: the call 'c1' of read:1 a second time"):
        context.extend([{"role": "user", "content": "Go on."}, message])
    context.extend([result])
    context.request(**FIELDS[dialect])
    context.append({**reply_of(dialect, calls=False), "id": "m2"})
    context.extend([{"role": "user", "content": "And?"}])
    for again in (context, Context(store=context.store, conversation=context.conversation)):
        with pytest.raises(InputError, match="a second time"):
            again.append(first)
    assert context.session.length == 5


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_words_in_answer_to_another_request_are_a_new_reply(dialect: str) -> None:
    context = opened(dialect)
    for _ in range(3):
        context.request(**FIELDS[dialect])
        context.append(reply_of(dialect, calls=False))
        context.extend([{"role": "user", "content": "And?"}])
    assert context.session.length == 7


PICTURE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
FOREIGN: list[tuple[str, dict[str, Any]]] = [
    ("anthropic", {"role": "assistant", "content": "Look.", "tool_calls": [CHAT_CALL]}),
    ("anthropic", {"role": "tool", "tool_call_id": "c1", "content": "x"}),
    ("anthropic", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}),
    ("anthropic", {"role": "user", "content": [{"type": "input_text", "text": "Go."}]}),
    ("anthropic", {"type": "function_call_output", "call_id": "c1", "output": "x"}),
    ("openai-chat", {"role": "assistant", "content": [CALL]}),
    ("openai-chat", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}),
    ("openai-chat", {"type": "function_call_output", "call_id": "c1", "output": "x"}),
    ("openai-responses", {"role": "assistant", "content": "Look.", "tool_calls": [CHAT_CALL]}),
    ("openai-responses", {"role": "tool", "tool_call_id": "c1", "content": "x"}),
    ("openai-responses", {"type": "tool_result", "tool_use_id": "c1", "content": "x"}),
    ("openai-responses", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}),
    ("openai-chat", {"role": "user", "content": [PICTURE]}),
    ("openai-responses", {"role": "user", "content": [PICTURE | {"type": "document"}]}),
    ("anthropic", {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}),
    ("openai-chat", {"role": "user", "parts": [{"text": "Go."}]}),
]


@pytest.mark.parametrize("write", [dict, lambda message: json.dumps(message).encode()])
@pytest.mark.parametrize(("dialect", "message"), FOREIGN)
def test_a_message_of_another_api_is_refused(dialect: str, message: dict[str, Any], write: Callable[[Any], Any]) -> None:
    context = opened(dialect)
    with pytest.raises(InputError, match="message 1"):
        context.extend([{"role": "user", "content": "Go."}, write(message)])
    assert context.session.length == 1  # all or none


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_in_the_background_is_no_reply_before_it_is_over(status: str) -> None:
    context = opened("openai-responses")
    with pytest.raises(InputError, match="retrieve"):
        context.append({"id": "resp_1", "object": "response", "status": status, "output": []})
    assert context.session.length == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_reply_among_messages_is_refused(dialect: str) -> None:
    context = opened(dialect)
    for given in ([reply_of(dialect, calls=True)], reply_of(dialect, calls=True), {"role": "user", "content": "Go."}, "Go."):
        with pytest.raises(InputError, match=r"append|list of messages"):
            context.extend(given)
    assert context.session.length == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_while_a_call_has_no_result_is_refused_until_the_user_goes_on(dialect: str) -> None:
    context = opened(dialect)
    context.append(reply_of(dialect, calls=True))
    for ask in (context.request, context.wire):
        with pytest.raises(InputError, match="no result yet for read:1"):
            ask(**FIELDS[dialect])
    context.extend([{"role": "user", "content": "Never mind."}])
    assert "the call was interrupted" in json.dumps(context.request(**FIELDS[dialect]))


@pytest.mark.parametrize(
    ("dialect", "field", "value"),
    [
        ("anthropic", "messages", [{"role": "user", "content": "Go."}]),
        ("openai-chat", "messages", [{"role": "user", "content": "Go."}]),
        ("openai-responses", "input", "Go."),
        ("openai-responses", "previous_response_id", "resp_1"),
        ("openai-responses", "conversation", {"id": "conv_1"}),
    ],
)
def test_a_second_history_beside_the_conversations_own_is_refused(dialect: str, field: str, value: Any) -> None:
    context = opened(dialect)
    with pytest.raises(InputError, match=field):
        context.request(**FIELDS[dialect], **{field: value})
    with pytest.raises(InputError, match=field):
        context.request(**FIELDS[dialect], extra_body={field: value})
    context.request(**FIELDS[dialect], **({field: openai.omit} if dialect == "openai-responses" else {}))


def test_the_second_of_two_writers_is_told_to_open_the_conversation_again() -> None:
    one = opened()
    other = Context(store=one.store, conversation=one.conversation)
    one.extend([{"role": "assistant", "content": "Yes."}])
    with pytest.raises(Conflict, match="open the conversation again"):
        other.extend([{"role": "user", "content": "Wait."}])


def test_the_time_of_a_reply_is_ours_and_not_its_servers() -> None:
    context = Context(dialect="openai-chat", store=MemoryStore(), clock=lambda: "2026-01-01T00:00:00Z")
    context.extend([{"role": "user", "content": "Go."}])
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    context.append(
        {"id": "m", "created": 4_000_000_000, "usage": usage, "choices": [{"message": {"role": "assistant", "content": "Yes."}}]}
    )
    assert [seen.at for seen in context.store.usages(context.conversation)] == ["2026-01-01T00:00:00Z"]
