import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.apis import APIS
from tenure.apis.openai_chat.speech import is_strict
from tenure.apis.openai_responses.speech import DETACHED, LEAST_OUTPUT
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Media, Origin
from tenure.errors import InputError
from tenure.models.question import Question
from tenure.models.request import apis_of, in_words, question_body
from tenure.testing.builders import call, harness, human, reply, result, system
from tenure.testing.validity import violations

BODIES: dict[str, Any] = {name: partial(question_body, api=name, is_at_home=False) for name in APIS}
chat_body, responses_body = BODIES["openai-chat"], BODIES["openai-responses"]
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
texts = st.text(max_size=12)
spaces = st.sampled_from(["", " ", "\n", " \t "])
contents = st.one_of(texts, st.lists(texts.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=3))
spoken = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": contents})
settings = st.dictionaries(
    st.sampled_from(["user", "tools", "temperature", "metadata", "stream", "instructions", *LIMITS, "n"]),
    st.one_of(texts, st.integers(), st.booleans(), st.none()),
)
OURS = ("stream", "stream_options", *LIMITS)


@given(
    name=st.sampled_from(sorted({*BODIES} - {"gemini"})),  # whose settings stand in a member of their own
    before=settings,
    after=settings,
    said=st.lists(spoken, min_size=1, max_size=4),
    space=spaces,
    ascii_=st.booleans(),
)
def test_what_the_model_reads_of_a_prefix_keeps_its_bytes_and_order(
    name: str, before: dict[str, Any], after: dict[str, Any], said: list[Any], space: str, ascii_: bool
) -> None:
    def members(fields: dict[str, Any]) -> list[str]:
        return [f"{json.dumps(key)}{space}:{space}{json.dumps(value, ensure_ascii=ascii_)}" for key, value in fields.items()]

    after = {key: value for key, value in after.items() if key not in before}
    messages = f",{space}".join(json.dumps(message, ensure_ascii=ascii_) for message in said)
    key = "input" if name == "openai-responses" else "messages"
    opening = f'"{key}":[' + space + messages
    prefix = "{" + ",".join([*members(before), opening + space + "]", *members(after)]) + "}"
    sent = BODIES[name](Question(prefix=prefix.encode("utf-8", "surrogatepass"), messages=("go on",)), "m").decode(
        "utf-8", "surrogatepass"
    )
    assert f'{opening},{{"role":"user","content":' in sent
    ours = OURS if name != "openai-responses" else ("stream", "max_output_tokens")
    kept = [part for part in members(before) if json.loads("{" + part + "}").keys().isdisjoint(ours)]
    at = [sent.index(part) for part in kept]
    assert at == sorted(at)
    head = sent[: sent.index(opening)]
    if not set(before) & set(ours):
        assert head == prefix[: prefix.index(opening)]
    body = json.loads(sent)
    assert body["stream"] is True
    assert {key: value for key, value in body.items() if key not in (*ours, "messages", "input", "model")} == {
        key: value for key, value in (before | after).items() if key not in ours
    }


@given(system=texts, said=st.lists(texts.filter(str.strip), min_size=1, max_size=3), limit=st.integers(min_value=1))
def test_any_question_in_words_is_a_valid_request(system: str, said: list[str], limit: int) -> None:
    question = Question(system=system, messages=tuple(said), max_output=limit)
    for name, body in BODIES.items():
        sent = body(question, "claude-opus-4-5")
        assert sent == body(question, "claude-opus-4-5")
        assert violations(json.loads(sent), rules_for("", "claude-opus-4-5", name)) == ()


def test_drafts_of_another_provider_are_rendered_for_this_one() -> None:
    spoken = (human("go"), reply("look", call("read", path="a.py")), result("body"), "what can go?")
    claude = APIS["anthropic"].parse([b'{"role":"user","content":[{"type":"text","text":"from Claude"}]}'])
    for name, body in BODIES.items():
        sent = json.loads(body(Question(messages=(*claude, *spoken)), "m"))
        assert violations(sent, rules_for("", "m", name)) == ()
        assert "from Claude" in json.dumps(sent)
        assert "body" in json.dumps(sent)


def test_where_turns_must_alternate_neighbours_become_one() -> None:
    sent = json.loads(chat_body(Question(messages=("one", "two", "three")), "gemini-2.5-pro"))
    assert [message["role"] for message in sent["messages"]] == ["user"]


def test_a_prefix_that_names_its_limit_keeps_the_name() -> None:
    for key in ("max_tokens", "max_completion_tokens"):
        prefix = json.dumps({key: 9, "messages": [{"role": "user", "content": "x"}]}).encode()
        sent = json.loads(chat_body(Question(prefix=prefix, messages=("y",), max_output=7), "m"))
        assert {name: value for name, value in sent.items() if name.startswith("max")} == {key: 7}


RESPONSE = {"input": [{"role": "user", "content": "x"}]}


def sent_behind(fields: dict[str, Any], **settings: Any) -> dict[str, Any]:
    question = Question(prefix=json.dumps(RESPONSE | fields).encode(), messages=("y",), max_output=9)
    return json.loads(responses_body(question, "m", **settings))


def test_tools_of_a_prefix_are_forbidden_only_where_that_is_asked_for_and_there_are_any() -> None:
    tools = [{"type": "web_search"}]
    assert "tool_choice" not in sent_behind({}, is_at_home=True)
    assert sent_behind({"tools": tools, "tool_choice": "required"})["tool_choice"] == "required"
    forbidden = sent_behind({"tools": tools, "tool_choice": "required"}, is_at_home=True)
    assert (forbidden["tools"], forbidden["tool_choice"]) == (tools, "none")


def test_a_question_is_not_left_running_in_the_background() -> None:
    body = sent_behind({"background": True, "background_options": {"completion_window": "2h"}})
    assert not set(DETACHED) & body.keys()


def test_a_question_is_not_written_into_a_conversation_that_the_provider_keeps() -> None:
    with pytest.raises(InputError, match="a conversation that the provider keeps"):
        sent_behind({"conversation": "conv_1"})


def test_the_output_limit_is_never_below_what_the_responses_api_takes() -> None:
    assert sent_behind({})["max_output_tokens"] == LEAST_OUTPUT


def test_a_prefix_whose_input_is_a_string_is_continued_behind_it_as_it_is_spelled() -> None:
    prefix = b'{"input": "caf\\u00e9", "n":1}'
    sent = responses_body(Question(prefix=prefix, messages=("y",)), "m")
    assert sent.startswith(b'{"input": [{"role":"user","content":"caf\\u00e9"},{"role":"user","content":"y"}], "n":1')


SAID: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("fields", "dialects"),
    [
        (RESPONSE, ("openai-responses",)),
        ({"input": "x"}, ("openai-responses",)),
        (SAID, ("openai-chat", "anthropic")),
        (SAID | {"tools": "odd", "system": 3}, ("openai-chat", "anthropic")),
        (SAID | {"tools": [7, {"type": "function", "function": {"name": "read"}}]}, ("openai-chat",)),
        ({"messages": [{"role": "system", "content": "x"}]}, ("openai-chat",)),
        (SAID | {"system": "x"}, ("anthropic",)),
        (SAID | {"tools": [{"name": "read", "input_schema": {}}]}, ("anthropic",)),
    ],
)
def test_a_request_says_by_its_head_in_which_dialect_it_is(fields: dict[str, Any], dialects: tuple[str, ...]) -> None:
    assert apis_of(json.dumps(fields).encode()) == dialects


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_the_output_limit_goes_by_the_name_the_provider_knows(limit: Any) -> None:
    assert json.loads(chat_body(Question(messages=("x",), max_output=7), "m", limit=limit))[limit] == 7


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"messages": ()}, "at least one"),
        ({"messages": ("x",), "max_output": 0}, "above 0"),
        ({"messages": ("x",), "prefix": b"{}", "system": "y"}, "a prefix has its own"),
    ],
)
def test_a_question_that_makes_no_sense_is_none(fields: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError, match=found):
        Question(**fields)


def test_a_question_without_a_word_is_not_sent() -> None:
    for body in BODIES.values():
        with pytest.raises(InputError, match="something to ask"):
            body(Question(messages=("",)), "m")


def test_a_question_in_one_text_holds_all_of_its_words() -> None:
    picture = Media(media_type="image/png", sha256="0", text="a plan of the house", origin=Origin.HUMAN)
    question = Question(
        system="rules", messages=(system("more rules"), human("hi", picture), harness("note")), schema={"type": "array"}
    )
    said = in_words(question)
    assert all(words in said for words in ("rules", "more rules", "hi", "a plan of the house", "note", '{"type":"array"}'))


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({"type": "array", "items": CLOSED}, True),
        ({"type": "array", "items": CLOSED | {"required": []}}, False),
        (CLOSED | {"additionalProperties": True}, False),
        ({"type": "object"}, False),
        ({"type": "string"}, True),
    ],
)
def test_only_closed_schemas_are_asked_for_strictly(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) is strict
