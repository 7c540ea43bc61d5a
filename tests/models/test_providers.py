import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from threading import enumerate as threads
from typing import Any

import pytest
from asking import EVERY, HALF, HI, KEY, Made, chat, google, messages, provided, responses
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tenure.apis import APIS
from tenure.apis.anthropic.markers import place_markers
from tenure.apis.api import Head
from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import Usage
from tenure.engine.view.piece import Piece
from tenure.errors import Failure, InputError, ModelError
from tenure.models import AnthropicModel, OpenAIModel, Patience, Question, model_named
from tenure.testing.builders import human, reply
from tenure.testing.provider import serve
from tenure.testing.script import Broken, Call, Fault, Reply

every = pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
anywhere = pytest.mark.parametrize("made", [*EVERY.values(), google], ids=[*EVERY, "gemini"])
SCHEMA = {"type": "object", "properties": {"plan": {"type": "string"}}, "required": ["plan"], "additionalProperties": False}


def failed(made: Made, *replies: Reply | Fault | Broken, question: Question = HI, **settings: Any) -> ModelError:
    """What the model says when a provider does this."""
    with provided(*replies) as (_, url), pytest.raises(ModelError) as caught:
        made(url, **settings)(question)
    shown = f"{caught.value} {caught.value!r} {caught.getrepr(showlocals=False)}"
    assert KEY not in shown
    return caught.value


# --- Answers


@anywhere
def test_an_answer_has_text_usage_and_price(made: Made) -> None:
    prices = Prices(uncached=1.0, write=0.0, read=0.0, output=100.0)
    with provided(Reply(text="Hello, you.", thinking="hm")) as (provider, url):
        answer = made(url, prices=prices)(HI)
    seen = provider.seen[0]
    assert (answer.text, answer.usage) == ("Hello, you.", seen.usage)
    assert answer.usage
    assert answer.cost_usd == answer.usage.uncached + 100 * answer.usage.output
    assert answer.stop in ("stop", "completed", "end_turn", "STOP")
    assert json.loads(seen.body).get("stream", True) is True


def test_a_price_is_known_by_the_provider_and_by_nothing_else() -> None:
    with provided(Reply(text="a"), Reply(text="b")) as (_, url):
        unknown, known = chat(url)(HI), chat(url, provider="openai")(HI)
    assert unknown.usage
    assert unknown.cost_usd is None
    assert known.cost_usd
    assert known.cost_usd > 0


@every
def test_system_messages_and_limit_reach_the_provider(made: Made) -> None:
    question = Question(system="Be brief.", messages=(human("hi"), reply("yes?"), "what is it?"), max_output=77)
    with provided(Reply(text="ok")) as (provider, url):
        made(url)(question)
    body = json.loads(provider.seen[0].body)
    assert body.get("max_tokens", body.get("max_output_tokens")) == 77
    spoken = body.get("messages") or body["input"]
    told = body.get("system") or body.get("instructions") or spoken[0]
    assert "Be brief." in json.dumps(told)
    assert [message["role"] for message in spoken][-3:] == ["user", "assistant", "user"]


def test_a_key_comes_from_the_environment_as_the_sdk_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with provided(*[Reply(text="a")] * 4) as (provider, url):
        for name in ("openai:gpt-5-mini", "openai-chat:gpt-5-mini", "openai-responses:gpt-5-mini", "anthropic:claude-opus-4-5"):
            base = f"{url}/v1" if name.startswith("openai") else url
            model = model_named(name, base_url=base)
            model(HI)
            assert KEY not in repr(model)
            assert KEY not in repr(vars(model))
    assert all(any(KEY in value for value in seen.headers.values()) for seen in provider.seen)
    assert [seen.dialect for seen in provider.seen] == ["openai-chat", "openai-chat", "openai-responses", "anthropic"]


def test_a_missing_key_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
        OpenAIModel("gpt-5-mini")
    assert caught.value.kind is Failure.NOT_ACCEPTED


def test_a_missing_key_of_anthropic_shows_with_the_first_question(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with provided() as (provider, url):
        model = AnthropicModel("claude-opus-4-5", base_url=url)
        with pytest.raises(ModelError) as caught:
            model(HI)
    assert caught.value.kind is Failure.NOT_ACCEPTED
    assert provider.seen == []


@pytest.mark.parametrize("name", ["gpt-5-mini", "bard:x", "openai:", ""])
def test_a_name_says_which_api_is_spoken(name: str) -> None:
    with pytest.raises(
        InputError, match="openai:NAME or anthropic:NAME or google:NAME or openai-chat:NAME or openai-responses:NAME"
    ):
        model_named(name)


# --- Prefixes

HEAD = {
    "openai-chat": '{ "model": "gpt-5-mini",\n "tools":[{"type":"function","function":{"name":"read","parameters":{"n":1E2}}}], "messages" : [',
    "openai-responses": '{ "model": "gpt-5-mini",\n "tools":[{"type":"function","name":"read","parameters":{"n":1E2}}], "instructions":"Caf\\u00e9", "include":[], "store":false, "input" : [',
    "anthropic": '{ "model": "claude-opus-4-5",\n "system":"Caf\\u00e9 1E2", "messages" : [',
}
LIMIT = {"openai-chat": "max_tokens", "openai-responses": "max_output_tokens", "anthropic": "max_tokens"}
SPOKEN = '{"role":"user",  "content":"go \\u2713"} , {"content":"yes?","role":"assistant"}'


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("rest", ["]}", ' ], "temperature": 1e0 }', '\n],"LIMIT":5,"stream":false}'])
def test_a_prefix_goes_out_as_exactly_its_bytes_with_the_tail_behind_it(name: str, rest: str) -> None:
    prefix = (HEAD[name] + SPOKEN + rest.replace("LIMIT", LIMIT[name])).encode()
    question = Question(prefix=prefix, messages=("what can go?",), max_output=50, schema=SCHEMA)
    with provided(Reply(text='{"plan":"all"}')) as (provider, url):
        answer = EVERY[name](url, structured=True)(question)
    sent = provider.seen[0].body
    assert sent.startswith((HEAD[name] + SPOKEN).encode() + b',{"role":"user","content":')
    body = json.loads(sent)
    assert (body["stream"], body[LIMIT[name]]) == (True, 50)
    assert not {"response_format", "output_config", "text", "tool_choice"} & body.keys()
    assert answer.text == '{"plan":"all"}'


@pytest.mark.parametrize("name", EVERY)
def test_settings_before_the_messages_are_set_where_they_stand_and_all_that_the_model_reads_stays(name: str) -> None:
    def opened(stream: str, limit: int) -> str:
        return HEAD[name].replace("{ ", f'{{ "stream": {stream}, "{LIMIT[name]}":{limit}, ', 1) + SPOKEN

    with provided(Reply(text="ok")) as (provider, url):
        prefix = (opened("false", 9000) + "]}").encode()
        EVERY[name](url)(Question(prefix=prefix, messages=("what can go?",), max_output=50))
    assert provider.seen[0].body.startswith(opened("true", 50).encode())


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_a_prefix_is_continued_by_the_api_it_was_rendered_for(name: str) -> None:
    prefix = (HEAD[name] + SPOKEN + "]}").encode()
    with provided(Reply(text="a"), Reply(text="b")) as (provider, url):
        model = chat(url, api=None)
        assert model(Question(prefix=prefix, messages=("what can go?",))).text == "a"
        assert model(HI).text == "b"
    assert [seen.dialect for seen in provider.seen] == [name, "openai-chat"]


ONLY: dict[str, Made] = EVERY | {"openai-chat": partial(chat, api="chat"), "openai-chat or openai-responses": chat}


@pytest.mark.parametrize(
    ("spoken", "found"), [(spoken, found) for spoken in ONLY for found in EVERY if found not in spoken.split(" or ")]
)
def test_a_prefix_of_another_api_is_refused_in_words_and_never_sent(spoken: str, found: str) -> None:
    prefix = (HEAD[found] + SPOKEN + "]}").encode()
    words = f"a request in {found}, expected one in {spoken}, which this model speaks"
    with provided() as (provider, url), pytest.raises(InputError, match=words):
        ONLY[spoken](url)(Question(prefix=prefix, messages=("x",)))
    assert provider.seen == []


def test_an_api_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="'chat' or 'responses'"):
        OpenAIModel("m", api="completions", api_key=KEY)  # type: ignore[arg-type]


def test_responses_are_not_kept_at_the_provider_unless_the_prefix_keeps_them() -> None:
    prefixes = (b"", b'{"input":"x"}', b'{"input":"x","store":true}')
    with provided(*[Reply(text="ok")] * 3) as (provider, url):
        for prefix in prefixes:
            responses(url)(Question(prefix=prefix, messages=("y",)))
    assert [json.loads(seen.body).get("store") for seen in provider.seen] == [False, None, True]


def test_the_provider_reads_a_prefix_of_items_from_its_cache() -> None:
    items = [{"role": "user", "content": "word " * 20_000}, {"role": "assistant", "content": "yes?"}]
    prefix = json.dumps({"model": "gpt-5-mini", "instructions": "Be brief.", "input": items}).encode()
    with provided(Reply(text="first"), Reply(text="second")) as (_, url):
        model = responses(url)
        model(Question(prefix=prefix, messages=("one?",)))
        answer = model(Question(prefix=prefix, messages=("two?",)))
    assert answer.usage
    assert answer.usage.cache_read > 20_000


def test_the_provider_reads_a_prefix_from_its_cache() -> None:
    dialect = APIS["anthropic"]
    spoken = dialect.render([Piece(role=draft.role, blocks=draft.blocks) for draft in (human("word " * 20_000), reply("yes?"))])
    fields = {"model": "claude-opus-4-5", "max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 10_000}}
    body = dialect.join(Head(fields=fields), place_markers(spoken, [0]))
    with provided(Reply(text="first"), Reply(text="second")) as (provider, url):
        model = messages(url)
        model(Question(prefix=body, messages=("one?",)))
        answer = model(Question(prefix=body, messages=("two?",), max_output=50))
    assert answer.usage
    assert answer.usage.cache_read > 20_000
    assert answer.usage.cache_write == 0
    assert json.loads(provider.seen[1].body)["max_tokens"] == 10_050


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        (b"no json", "prefix"),
        (b"\xff{}", "UTF-8"),
        (b'{"messages":[]}', "no messages"),
        (b'{"model":"gpt-5-mini"}', "no messages"),
        (b'{"messages":"hi"}', "prefix, messages"),
        (b'{"model":"gpt-4","messages":[{"role":"user","content":"x"}]}', "a cache belongs to one model"),
        (b'{"messages":' + b"[" * 100_000, "prefix"),
    ],
)
def test_a_prefix_that_cannot_be_continued_is_never_sent(prefix: bytes, found: str) -> None:
    with provided() as (provider, url), pytest.raises(InputError, match=found):
        chat(url)(Question(prefix=prefix, messages=("x",)))
    assert provider.seen == []


# --- JSON


@every
def test_a_schema_is_a_setting_where_the_provider_takes_it_and_words_elsewhere(made: Made) -> None:
    question = Question(messages=("plan",), schema=SCHEMA)
    with provided(Reply(text='{"plan":"x"}'), Reply(text='Sure:\n```json\n{"plan":"x"}\n```')) as (provider, url):
        answers = [made(url, structured=structured)(question).text for structured in (True, False)]
    setting, words = (json.loads(seen.body) for seen in provider.seen)
    assert answers == ['{"plan":"x"}'] * 2
    where = (
        setting.get("output_config") or setting.get("text") or {"format": setting.get("response_format", {}).get("json_schema")}
    )
    assert SCHEMA in where["format"].values()
    assert "additionalProperties" not in json.dumps(setting.get("messages") or setting["input"])
    assert "additionalProperties" in json.dumps(words.get("messages") or words["input"])


@anywhere
def test_an_answer_that_was_to_be_json_and_is_not_is_a_bad_reply(made: Made) -> None:
    error = failed(made, Reply(text='{"plan": '), question=Question(messages=("plan",), schema=SCHEMA))
    assert error.kind is Failure.BAD_REPLY
    assert error.said == '{"plan": '
    assert error.usage


# --- Failures

FAULTS = [
    (Fault(status=429, retry_after_s=7), Failure.RATE_LIMITED),
    (Fault(status=500), Failure.UNAVAILABLE),
    (Fault(status=529), Failure.UNAVAILABLE),
    (Fault(status=503, raw="<html>bad gateway</html>"), Failure.UNAVAILABLE),
    (Fault(status=401, message=f"Incorrect API key provided: {KEY}"), Failure.NOT_ACCEPTED),
    (Fault(status=404), Failure.NOT_ACCEPTED),
    (Fault(status=400, message=f"what is {KEY}?"), Failure.NOT_ACCEPTED),
    (Fault(status=400, message="prompt is too long: 250000 tokens > 200000 maximum"), Failure.TOO_LONG),
    (Fault(status=400, message="This model's maximum context length is 8192 tokens."), Failure.TOO_LONG),
    (Fault(status=413), Failure.TOO_LONG),
]


@every
@pytest.mark.parametrize(("fault", "kind"), FAULTS, ids=[f"{fault.status}-{kind}" for fault, kind in FAULTS])
def test_an_error_of_the_provider_is_one_of_few_kinds(made: Made, fault: Fault, kind: Failure) -> None:
    error = failed(made, fault)
    assert error.kind is kind
    assert str(fault.status) in str(error)
    assert error.retry_after_s == fault.retry_after_s


def test_a_quota_that_is_used_up_is_not_waited_for() -> None:
    assert failed(chat, Fault(status=429, code="insufficient_quota")).kind is Failure.NOT_ACCEPTED


def test_a_port_of_this_machine_that_refuses_has_no_server() -> None:
    for made in EVERY.values():
        with pytest.raises(ModelError) as caught:
            made("http://name:password-of-mine@127.0.0.1:9")(HI)
        assert caught.value.kind is Failure.NO_SERVER
        assert "password-of-mine" not in str(caught.value)


@every
def test_the_sdk_tries_again_as_often_as_it_is_told(made: Made) -> None:
    busy = Fault(status=529, retry_after_s=0.001)
    with provided(busy, busy, Reply(text="at last")) as (provider, url):
        assert made(url, patience=Patience(retries=2))(HI).text == "at last"
    assert [seen.status for seen in provider.seen] == [529, 529, 200]
    assert failed(made, busy, busy, Reply(text="too late"), patience=Patience(retries=1)).kind is Failure.UNAVAILABLE


@pytest.mark.parametrize("patience", [{"retries": 99}, {"retries": -1}, {"total_s": 0}, {"connect_s": float("inf")}])
def test_patience_has_bounds(patience: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="patience"):
        Patience(**patience)


BROKEN = [
    ("cut", Failure.CUT_SHORT),
    ("end", Failure.CUT_SHORT),
    ("malformed", Failure.BAD_REPLY),
    ("error", Failure.UNAVAILABLE),
]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("how", "kind"), BROKEN)
def test_a_stream_that_breaks_says_what_had_come(name: str, how: Any, kind: Failure) -> None:
    error = failed(EVERY[name], Broken(reply=Reply(text="Hello, you."), how=how, after=HALF[name]))
    assert error.kind is kind
    assert error.said == "Hello"


@anywhere
@pytest.mark.parametrize("how", ["cut", "end", "malformed", "error"])
def test_a_stream_that_breaks_before_a_word_is_no_answer(made: Made, how: Any) -> None:
    error = failed(made, Broken(reply=Reply(text="Hello, you."), how=how, after=0))
    assert error.kind in (Failure.UNAVAILABLE, Failure.CUT_SHORT, Failure.BAD_REPLY)
    assert error.said == ""


SLOWLY = {"code": "rate_limit_exceeded", "message": f"Slowly, {KEY}."}
FAILED = [
    {"type": "error", **SLOWLY, "param": None},
    {"type": "error", "error": {"type": "tokens", **SLOWLY, "param": None}},
    {"type": "response.failed", "response": {"status": "failed", "error": SLOWLY, "usage": None}},
]


@pytest.mark.parametrize("event", FAILED, ids=["error", "error in an error", "response.failed"])
def test_a_response_that_fails_in_its_midst_is_one_of_few_kinds(event: dict[str, Any]) -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}

    async def answer(_: Request) -> Response:
        lines = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in (delta, event))
        return Response(lines, media_type="text/event-stream")

    with serve(Starlette(routes=[Route("/v1/responses", answer, methods=["POST"])])) as url, pytest.raises(ModelError) as caught:
        responses(url)(HI)
    assert (caught.value.kind, caught.value.said) == (Failure.RATE_LIMITED, "Hello")
    assert "Slowly, [key]" in str(caught.value)


STOPS = [
    (Reply(text="Hello, y", stop="length"), Failure.CUT_SHORT),
    (Reply(text="I cannot.", stop="refusal"), Failure.REFUSED),
    (Reply(text="Well, ", stop="filter"), Failure.REFUSED),
    (Reply(text="Let me see.", calls=(Call(name="read"),)), Failure.BAD_REPLY),
    (Reply(thinking="hm"), Failure.BAD_REPLY),
    (Reply(text=" \n"), Failure.BAD_REPLY),
]


@anywhere
@pytest.mark.parametrize(("said", "kind"), STOPS, ids=[f"{kind}-{n}" for n, (_, kind) in enumerate(STOPS)])
def test_only_an_end_that_the_model_came_to_is_an_answer(made: Made, said: Reply, kind: Failure) -> None:
    error = failed(made, said)
    assert error.kind is kind
    assert error.usage
    assert error.usage.output


# --- Time


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("begun", [False, True])
def test_a_silent_stream_ends_when_time_is_up(name: str, begun: bool) -> None:
    stalled = Broken(reply=Reply(text="Hello, you."), how="stall", after=HALF[name] if begun else 0)
    error = failed(EVERY[name], stalled, patience=Patience(retries=0, total_s=1))
    assert error.kind is (Failure.CUT_SHORT if begun else Failure.UNAVAILABLE)
    assert "1 second" in str(error)


@every
def test_cancelling_closes_the_connection_in_the_midst_of_a_stream(made: Made) -> None:
    cancel = Event()
    with provided(Broken(reply=Reply(text="Hello, you."), how="stall", after=3)) as (provider, url):

        def asked_for() -> bool:
            return bool(provider.seen) or cancel.is_set()

        with pytest.raises(ModelError) as caught:
            made(url)(HI, cancel=asked_for)
    # The server's end waits for its connections: that the block above came to its end shows that ours is closed.
    assert caught.value.kind is Failure.CANCELLED
    assert not [thread for thread in threads() if thread.name == "tenure-model"]


@every
def test_cancelling_ends_the_wait_before_another_attempt(made: Made) -> None:
    with provided(Fault(status=529, retry_after_s=50)) as (provider, url), pytest.raises(ModelError) as caught:
        made(url, patience=Patience(retries=3))(HI, cancel=lambda: bool(provider.seen))
    assert caught.value.kind is Failure.CANCELLED
    assert len(provider.seen) == 1


@anywhere
def test_what_is_cancelled_before_it_began_is_never_sent(made: Made) -> None:
    cancel = Event()
    cancel.set()
    with provided() as (provider, url), pytest.raises(ModelError) as caught:
        made(url)(HI, cancel=cancel)
    assert (caught.value.kind, provider.seen) == (Failure.CANCELLED, [])


@anywhere
def test_an_error_of_the_callers_own_travels_and_leaves_nothing_open(made: Made) -> None:
    def broken() -> bool:
        if provider.seen:
            raise ZeroDivisionError
        return False

    with provided(Broken(reply=Reply(text="Hello"), how="stall", after=1)) as (provider, url), pytest.raises(ZeroDivisionError):
        made(url)(HI, cancel=broken)
    assert not [thread for thread in threads() if thread.name == "tenure-model"]


@anywhere
def test_a_model_can_be_asked_from_within_a_running_loop(made: Made) -> None:
    async def within() -> str:
        return made(url)(HI).text

    with provided(Reply(text="ok")) as (_, url):
        assert asyncio.run(within()) == "ok"


def test_usage_of_a_call_that_failed_is_known_as_far_as_it_was_told() -> None:
    error = failed(
        messages,
        Broken(reply=Reply(text="Hello, you."), how="cut", after=3),
        prices=Prices(uncached=1, write=1, read=1, output=0),
    )
    assert isinstance(error.usage, Usage)
    assert error.cost_usd == error.usage.prompt > 0


@contextmanager
def endless() -> Iterator[str]:
    """A server whose stream is one line that never ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(b"data: ")
                while True:
                    self.wfile.write(b"x" * 1_000_000)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@anywhere
def test_a_line_of_a_stream_that_never_ends_is_left_and_the_error_says_so(made: Made) -> None:
    with endless() as url, pytest.raises(ModelError, match="an event of the stream does not end within 16,000,000 bytes"):
        made(url)(HI)
