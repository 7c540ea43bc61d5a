"""The Gemini API: what is particular to its contents, requests, replies and errors. What all APIs have alike is in the laws beside."""

import json
from typing import Any

import pytest

from tenure.apis import APIS
from tenure.apis.api import Head
from tenure.apis.gemini import whole
from tenure.apis.gemini.messages import NO_SIGNATURE
from tenure.apis.media import MediaSource
from tenure.apis.prefix import QuestionSettings
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.engine.view.piece import Piece
from tenure.errors import Failure, InputError
from tenure.models.failures import refusal
from tenure.models.request import forked

GEMINI = APIS["gemini"]
THREE, TWO = rules_for("google", "gemini-3-pro", "gemini"), rules_for("google", "gemini-2.5-flash", "gemini")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAC56t6BAAAAAElFTkSuQmCC"


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return {"parts": [{"text": part} if isinstance(part, str) else part for part in parts], "role": "model"}


def call(name: str, signature: str = "", **named: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"path": "a.py"}, **named}} | (
        {"thoughtSignature": signature} if signature else {}
    )


def response(name: str, said: Any = "x", **named: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": said if isinstance(said, dict) else {"output": said}, **named}}


def parsed(*contents: Any) -> list[Draft]:
    return list(GEMINI.parse(contents))


def shown(draft: Draft, *gone: int) -> Piece:
    kept = tuple(n for n in range(len(draft.blocks)) if n not in gone)
    blocks = tuple(draft.blocks[n] for n in kept)
    return Piece(role=draft.role, blocks=blocks, dialect="gemini", payload=draft.payload, kept=kept, edited=bool(gone))


def sent(*pieces: Piece, rules: Any = THREE) -> list[Any]:
    return [json.loads(each) for each in GEMINI.ordered(GEMINI.render(pieces), pieces, rules)]


# --- Contents


def test_parts_are_blocks_of_their_kinds() -> None:
    answer, results = parsed(
        model({"text": "hm", "thought": True}, "Look.", call("read", "c2ln", id="a1"), {"executableCode": {"code": "1"}}),
        user(response("read", id="a1"), {"inlineData": {"mimeType": "image/png", "data": PIXEL}}),
    )
    assert [type(block) for block in answer.blocks] == [Thinking, Text, ToolCall, Opaque]
    assert (answer.role, results.role) == (Role.ASSISTANT, Role.USER)
    result, image = results.blocks
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.text, result.origin) == ("a1", "x", Origin.TOOL)
    assert isinstance(image, Media)
    assert (image.media_type, image.width) == ("image/png", 2)


def test_members_are_read_in_snake_case_too_as_objects_of_the_sdk_write_them() -> None:
    camel = parsed(model(call("read", "c2ln")), user(response("read", {"result": "A"})))
    snake = parsed(
        model({"function_call": {"name": "read", "args": {"path": "a.py"}}, "thought_signature": "c2ln"}),
        user({"function_response": {"name": "read", "response": {"result": "A"}}}),
    )
    assert [draft.blocks for draft in camel] == [draft.blocks for draft in snake]


@pytest.mark.parametrize(
    ("said", "text", "error"),
    [
        ({"output": "A"}, "A", False),
        ({"result": "A"}, "A", False),
        ({"error": "A"}, "A", True),
        ({"output": {"n": 1}}, '{"n":1}', False),
        ({"a": 1, "b": 2}, '{"a":1,"b":2}', False),
        ({}, "", False),
    ],
)
def test_a_response_says_what_its_one_member_says_else_its_json(said: Any, text: str, error: bool) -> None:
    ((result,),) = (draft.blocks for draft in parsed(user(response("read", said))))
    assert isinstance(result, ToolResult)
    assert (result.text, result.error) == (text, error)


def test_a_call_without_an_id_is_known_by_its_name_and_answered_in_order() -> None:
    answer, results = parsed(
        model(call("read"), call("ls"), call("read")), user(response("read", "1"), response("ls"), response("read", "2"))
    )
    assert [block.call_id for block in answer.blocks if isinstance(block, ToolCall)] == ["read", "ls", "read"]
    assert [block.call_id for block in results.blocks if isinstance(block, ToolResult)] == ["read", "ls", "read"]


def test_the_empty_part_at_a_streams_end_is_no_block_and_stays_with_what_is_left() -> None:
    (answer,) = parsed(model("Look.", call("read", "c2ln"), {"text": "", "thoughtSignature": "ZW5k"}))
    assert len(answer.blocks) == 2
    assert sent(shown(answer, 1))[0]["parts"] == [{"text": "Look."}, {"text": "", "thoughtSignature": "ZW5k"}]


# --- Requests


def test_neighbours_of_one_role_are_one_content_and_responses_come_first() -> None:
    drafts = parsed(model(call("read", "c2ln"), call("ls")), user("Wait."), user(response("read")), user(response("ls")))
    told, answered = sent(*map(shown, drafts))
    assert told["role"] == "model"
    assert [next(iter(part)) for part in answered["parts"]] == ["functionResponse", "functionResponse", "text"]


def test_a_first_call_without_its_signature_gets_the_one_that_stands_for_none() -> None:
    (answer,) = parsed(model(call("read", "c2ln"), call("ls")))
    (content,) = sent(shown(answer, 0), rules=TWO)
    assert content["parts"] == [{**call("ls"), "thoughtSignature": NO_SIGNATURE}]


def test_calls_of_other_apis_are_sent_unsigned_only_to_models_that_do_not_ask() -> None:
    made = Piece(role=Role.ASSISTANT, blocks=(ToolCall(call_id="toolu_1", name="read", arguments="{}"),))
    assert "thoughtSignature" not in sent(made, rules=TWO)[0]["parts"][0]
    assert sent(made)[0]["parts"][0] == {
        "functionCall": {"id": "toolu_1", "name": "read", "args": {}},
        "thoughtSignature": NO_SIGNATURE,
    }


def test_an_edited_text_loses_its_signature_and_an_edited_result_keeps_its_member() -> None:
    answer, results = parsed(model({"text": "long", "thoughtSignature": "c2ln"}), user(response("read", {"result": "long"})))
    text = Piece(
        role=answer.role,
        blocks=(Text(text="short", origin=Origin.MODEL),),
        dialect="gemini",
        payload=answer.payload,
        kept=(0,),
        edited=True,
    )
    result = Piece(
        role=results.role,
        blocks=(ToolResult(call_id="read", text="short"),),
        dialect="gemini",
        payload=results.payload,
        kept=(0,),
        edited=True,
    )
    assert sent(text)[0]["parts"] == [{"text": "short"}]
    assert sent(result)[0]["parts"][0]["functionResponse"]["response"] == {"result": "short"}


def test_words_of_a_system_between_the_others_are_a_reminder_and_the_first_are_the_instruction() -> None:
    system = Piece(role=Role.SYSTEM, blocks=(Text(text="Be brief.", origin=Origin.HARNESS),))
    later = Piece(role=Role.SYSTEM, blocks=(Text(text="In French.", origin=Origin.HARNESS),))
    prompts, rest = GEMINI.prompts([system, *map(shown, parsed(user("Hi"))), later], THREE, {})
    head = GEMINI.with_prompts({"systemInstruction": {"parts": [{"text": "You help."}]}}, prompts)
    assert head["systemInstruction"]["parts"] == [{"text": "You help."}, {"text": "Be brief."}]
    assert [each.role for each in rest] == [Role.USER, Role.USER]
    assert "<system-reminder>\nIn French." in rest[1].blocks[0].text


def test_notes_join_the_users_last_content() -> None:
    messages = GEMINI.render([*map(shown, parsed(user("Hi")))])
    assert json.loads(GEMINI.noted(messages, "[now]", THREE)[-1]) == user("Hi", "[now]")


def test_a_flat_config_is_the_body_and_back() -> None:
    config = {"temperature": 0.5, "system_instruction": "Be brief.", "tool_config": {}, "http_options": {"timeout": 7}}
    fields = GEMINI.from_arguments({"model": "m", "config": config})
    body = json.loads(GEMINI.join(Head(fields=fields), ()))
    assert body == {
        "model": "m",
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "toolConfig": {},
        "generationConfig": {"temperature": 0.5},
        "contents": [],
    }
    assert GEMINI.arguments(fields, [{"parts": []}]) == {
        "model": "m",
        "contents": [{"parts": []}],
        "config": {**config, "system_instruction": {"parts": [{"text": "Be brief."}]}},
    }


def test_functions_stand_in_one_tool_beside_those_of_the_provider() -> None:
    tools = [{"function_declarations": [{"name": "a"}], "google_search": {}}, {"functionDeclarations": [{"name": "b"}]}]
    assert GEMINI.tools(GEMINI.declarations(tools)) == [
        {"functionDeclarations": [{"name": "a"}, {"name": "b"}]},
        {"google_search": {}},
    ]


def test_a_result_with_a_picture_holds_it_in_parts_of_its_own() -> None:
    made = GEMINI.result(
        ToolCall(call_id="look", name="look", arguments="{}"), "seen", media=[MediaSource(media_type="image/png", data=PIXEL)]
    )
    assert made["functionResponse"]["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    assert "id" not in made["functionResponse"]
    ((result,),) = (draft.blocks for draft in parsed(user(made)))
    assert isinstance(result, ToolResult)
    assert [media.media_type for media in result.media] == ["image/png"]
    assert GEMINI.text_of(GEMINI.with_text(made, " more")) == "seen more"


def test_a_question_behind_a_request_keeps_its_thinking_and_drops_its_format() -> None:
    request = b'{"generationConfig":{"stopSequences":["x"],"responseMimeType":"a","thinkingConfig":{"thinkingBudget":9}},"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}'
    assert list(json.loads(forked(request))) == ["generationConfig", "contents"]
    held = json.loads(forked(request))["generationConfig"]
    assert held == {"thinkingConfig": {"thinkingBudget": 9}}
    settings = GEMINI.speech.settings(QuestionSettings(max_output=50, prefix={"generationConfig": json.dumps(held)}))
    assert settings == {"generationConfig": {**held, "maxOutputTokens": 50}}


# --- Replies


def test_cached_tokens_count_once_and_thoughts_are_output() -> None:
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 40,
        "toolUsePromptTokenCount": 3,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
    }
    assert GEMINI.parse_usage(usage) == Usage(uncached=63, cache_read=40, output=12)
    assert GEMINI.parse_usage({"prompt_token_count": 100, "cached_content_token_count": 40}) == Usage(uncached=60, cache_read=40)


def chunk(*parts: Any, **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": model(*parts), **candidate}]}


def test_texts_of_a_stream_are_joined_but_never_across_a_signature() -> None:
    reply = json.loads(
        whole([
            chunk({"text": "h", "thought": True}), chunk({"text": "m", "thought": True}), chunk("It "), chunk("is"),
            chunk({"text": " so", "thoughtSignature": "c2ln"}), chunk({"text": ""}, finishReason="STOP"),
        ])
    )  # fmt: skip
    assert reply["candidates"][0]["content"]["parts"] == [
        {"text": "hm", "thought": True},
        {"text": "It is"},
        {"text": " so", "thoughtSignature": "c2ln"},
    ]


def test_arguments_that_come_by_paths_are_put_together() -> None:
    pieces = [
        {"jsonPath": "$.place.town", "stringValue": "New ", "willContinue": True},
        {"jsonPath": "$.place.town", "stringValue": "York"},
        {"jsonPath": "$.days[1]", "numberValue": 2},
    ]
    first = {"functionCall": {"name": "weather", "willContinue": True}, "thoughtSignature": "c2ln"}
    more = [chunk({"functionCall": {"partialArgs": [piece], "willContinue": True}}) for piece in pieces]
    stream = GEMINI.reply()
    deltas = [
        delta for event in [chunk(first), *more, chunk({"functionCall": {}}, finishReason="STOP")] for delta in stream.take(event)
    ]
    reply = stream.whole()
    assert reply is not None
    (made,) = reply.calls
    assert (made.tool, json.loads(made.arguments)) == ("weather", {"place": {"town": "New York"}, "days": [None, 2]})
    assert {delta.tool for delta in deltas} == {"weather"}
    assert json.loads(reply.reply)["candidates"][0]["content"]["parts"][0]["thoughtSignature"] == "c2ln"


@pytest.mark.parametrize(
    ("finish", "end"),
    [("STOP", "done"), ("MAX_TOKENS", "length"), ("SAFETY", "refused"), ("RECITATION", "refused"), ("A_NEW_ONE", "done")],
)
def test_the_word_of_the_end_says_how_a_reply_ended(finish: str, end: str) -> None:
    stream = GEMINI.reply()
    list(stream.take(chunk("Hi", finishReason=finish)))
    reply = stream.whole()
    assert reply is not None
    assert (reply.end, reply.stop) == (end, finish)


def test_a_call_that_cannot_be_read_leaves_the_reply_incomplete() -> None:
    stream = GEMINI.reply()
    list(stream.take({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}))
    assert stream.whole() is None
    assert stream.shortfall == "the model made a call that cannot be read"


def test_a_blocked_prompt_is_a_refusal_and_no_reply_to_record() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    stream = GEMINI.reply()
    list(stream.take(blocked))
    reply = stream.whole()
    assert reply is not None
    assert (reply.end, reply.why) == ("refused", "the prompt was blocked: PROHIBITED_CONTENT")
    with pytest.raises(InputError, match=r"blocked \(PROHIBITED_CONTENT\)"):
        GEMINI.parse_reply(blocked)


# --- Errors


def error(status: str, message: str, *details: Any) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "status": status, "details": list(details)}}


@pytest.mark.parametrize(
    ("status", "number", "kind"),
    [
        ("RESOURCE_EXHAUSTED", 429, Failure.RATE_LIMITED),
        ("UNAVAILABLE", 503, Failure.UNAVAILABLE),
        ("INTERNAL", 500, Failure.UNAVAILABLE),
        ("INVALID_ARGUMENT", 400, Failure.NOT_ACCEPTED),
        ("PERMISSION_DENIED", 403, Failure.NOT_ACCEPTED),
    ],
)
def test_an_errors_status_says_its_kind(status: str, number: int, kind: Failure) -> None:
    assert refusal(number, error(status, "No.")).kind is kind


def test_a_question_that_is_too_long_tells_its_figures() -> None:
    found = refusal(
        400, error("INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")
    )
    assert found.kind is Failure.TOO_LONG
    assert found.overflow is not None
    assert (found.overflow.prompt, found.overflow.allowed) == (1_200_000, 1_048_576)


def test_the_delay_that_an_error_asks_for_is_read() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    assert GEMINI.speech.errors.retry_after_s(error("RESOURCE_EXHAUSTED", "Slow.", {"@type": "x"}, info)["error"]) == 34.5


# --- Rules


def test_newer_models_ask_for_signatures_and_pro_caches_from_more_tokens_on() -> None:
    assert (THREE.thinking, TWO.thinking) == ("open_loop", "none")
    assert (THREE.cache_min_tokens, TWO.cache_min_tokens) == (4096, 1024)
    assert (THREE.first_user, THREE.media, THREE.dialect) == (True, "gemini", "gemini")
