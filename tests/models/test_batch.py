"""Questions that go out as a provider's batch file, and answers that come back as one."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.record.entry import Usage
from tenure.errors import Failure, InputError, ModelError
from tenure.models.batch import BatchModel, batch_named, question_id
from tenure.models.question import Question

HI = Question(messages=("How much is two and two?",), system="Be brief.", max_output=50)
JSON = Question(
    messages=("How much?",), schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False}
)


def asked(path: Path, *questions: Question, model: str = "") -> BatchModel:
    """The model after these questions, closed."""
    with BatchModel(path, model=model) as batch:
        for question in questions:
            with pytest.raises(ModelError) as failed:
                batch(question)
            assert failed.value.kind is Failure.WAITING
            assert failed.value.usage is None
    return batch


def answered(path: Path, *lines: object) -> BatchModel:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return BatchModel(path)


def chat(id_: str, text: str, stop: str = "stop") -> object:
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-5-mini-2025",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": stop}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}},
    }
    return {
        "id": "batch_req_1",
        "custom_id": id_,
        "response": {"status_code": 200, "request_id": "r", "body": body},
        "error": None,
    }


def responses(id_: str, text: str) -> object:
    body = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5",
        "status": "completed",
        "incomplete_details": None,
        "output": [
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        ],
        "usage": {"input_tokens": 9, "output_tokens": 2},
    }
    return {
        "id": "batch_req_2",
        "custom_id": id_,
        "response": {"status_code": 200, "request_id": "r", "body": body},
        "error": None,
    }


def claude(id_: str, text: str, stop: str = "end_turn") -> object:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop,
        "usage": {"input_tokens": 11, "output_tokens": 4},
    }
    return {"custom_id": id_, "result": {"type": "succeeded", "message": message}}


def gemini(id_: str, text: str) -> object:
    response = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2},
        "modelVersion": "gemini-2.5-flash",
    }
    return {"key": id_, "response": response}


def test_a_question_is_known_by_its_words_system_limit_and_schema() -> None:
    assert question_id(HI) == question_id(Question(messages=HI.messages, system="Be brief.", max_output=50))
    others = [
        Question(messages=HI.messages, max_output=50),
        Question(messages=HI.messages, system="Be brief.", max_output=51),
        Question(messages=("How much is two and three?",), system="Be brief.", max_output=50),
        Question(messages=HI.messages, system="Be brief.", max_output=50, schema={}),
    ]
    assert len({question_id(each) for each in [HI, *others]}) == 5


def test_unanswered_questions_go_out_in_the_plain_form_once_each(tmp_path: Path) -> None:
    batch = asked(tmp_path / "a.jsonl", HI, HI, JSON)
    lines = [json.loads(line) for line in (tmp_path / "a.questions.jsonl").read_text().splitlines()]
    assert lines[0] == {"id": question_id(HI), "system": "Be brief.", "user": "How much is two and two?", "max_output": 50}
    assert "JSON schema" in lines[1]["user"]
    assert len(lines) == len(batch.waiting) == 2


def test_they_go_out_as_openais_batch_lines(tmp_path: Path) -> None:
    asked(tmp_path / "a.jsonl", HI, JSON, model="openai:gpt-5-mini")
    first, second = [json.loads(line) for line in (tmp_path / "a.questions.jsonl").read_text().splitlines()]
    assert {key: first[key] for key in ("custom_id", "method", "url")} == {
        "custom_id": question_id(HI),
        "method": "POST",
        "url": "/v1/chat/completions",
    }
    assert first["body"]["model"] == "gpt-5-mini"
    assert first["body"]["messages"][-1] == {"role": "user", "content": "How much is two and two?"}
    assert "stream" not in first["body"]
    assert second["body"]["response_format"]["type"] == "json_schema"


def test_they_go_out_as_anthropics_requests(tmp_path: Path) -> None:
    asked(tmp_path / "a.jsonl", HI, JSON, model="anthropic:claude-haiku-4-5")
    (first, second) = json.loads((tmp_path / "a.questions.json").read_text())["requests"]
    assert first["custom_id"] == question_id(HI)
    assert first["params"]["max_tokens"] == 50
    assert first["params"]["model"] == "claude-haiku-4-5"
    assert "stream" not in first["params"]
    assert second["params"]["output_config"]["format"]["type"] == "json_schema"


def test_they_go_out_as_geminis_keyed_requests(tmp_path: Path) -> None:
    asked(tmp_path / "a.jsonl", HI, model="google:gemini-2.5-flash")
    (line,) = [json.loads(line) for line in (tmp_path / "a.questions.jsonl").read_text().splitlines()]
    assert line["key"] == question_id(HI)
    assert line["request"]["contents"][-1]["parts"] == [{"text": "How much is two and two?"}]
    assert "model" not in line["request"]


@pytest.mark.parametrize(
    ("line", "model", "usage"),
    [
        (chat, "gpt-5-mini-2025", Usage(uncached=15, cache_read=5, output=3)),
        (responses, "gpt-5", Usage(uncached=9, output=2)),
        (claude, "claude-haiku-4-5", Usage(uncached=11, output=4)),
        (gemini, "gemini-2.5-flash", Usage(uncached=7, output=2)),
        (lambda id_, text: {"id": id_, "answer": text, "model": "a reader"}, "a reader", None),
    ],
)
def test_answers_come_back_in_every_form(tmp_path: Path, line: object, model: str, usage: Usage | None) -> None:
    batch = answered(tmp_path / "a.jsonl", line(question_id(HI), "Four."))  # type: ignore[operator]
    answer = batch(HI)
    assert (answer.text, answer.model, answer.usage) == ("Four.", model, usage)
    assert batch.answered == 1
    assert not batch.waiting


def test_an_answer_that_was_cut_refused_failed_or_empty_is_a_failure_and_no_answer(tmp_path: Path) -> None:
    def kind(line: object, question: Question = HI) -> Failure:
        with pytest.raises(ModelError) as failed:
            answered(tmp_path / "a.jsonl", line)(question)
        return failed.value.kind

    id_ = question_id(HI)
    assert kind(chat(id_, "Fo", "length")) is Failure.CUT_SHORT
    assert kind(claude(id_, "Fo", "max_tokens")) is Failure.CUT_SHORT
    assert kind(claude(id_, "", "refusal")) is Failure.REFUSED
    assert kind({"custom_id": id_, "result": {"type": "errored", "error": {"type": "invalid_request"}}}) is Failure.UNAVAILABLE
    assert kind({"custom_id": id_, "result": {"type": "expired"}}) is Failure.UNAVAILABLE
    assert kind({"custom_id": id_, "response": None, "error": {"code": "batch_expired"}}) is Failure.UNAVAILABLE
    assert kind({"custom_id": id_, "response": {"status_code": 400, "body": {"error": {"message": "no"}}}}) is Failure.UNAVAILABLE
    assert kind({"id": id_, "answer": "  "}) is Failure.BAD_REPLY
    assert kind({"id": question_id(JSON), "answer": "four"}, JSON) is Failure.BAD_REPLY


@given(raw=st.binary(max_size=400) | st.text(max_size=200).map(lambda text: json.dumps({"id": text, "answer": 7}).encode()))
@settings(max_examples=60)
def test_any_file_is_read_and_what_is_no_answer_is_counted(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("batch") / "a.jsonl"
    path.write_bytes(raw)
    batch = BatchModel(path)
    assert batch.unknown <= raw.count(b"\n") + 1
    with pytest.raises(ModelError):
        batch(HI)


def test_a_second_round_asks_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    asked(path, HI)
    path.write_text(json.dumps({"id": question_id(HI), "answer": "Four."}) + "\n")
    with BatchModel(path) as batch:
        assert batch(HI).text == "Four."
        with pytest.raises(ModelError):
            batch(JSON)
    lines = (tmp_path / "a.questions.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [question_id(JSON)]


def test_names_say_the_file_and_perhaps_the_model(tmp_path: Path) -> None:
    batch = batch_named(f"batch:openai:gpt-5-mini@{tmp_path / 'a.jsonl'}")
    assert (batch.name, batch.path) == ("openai:gpt-5-mini", tmp_path / "a.jsonl")
    assert batch_named(f"batch:{tmp_path / 'a.jsonl'}").name == "batch"
    for wrong in ("batch:", f"batch:nobody:x@{tmp_path / 'a'}", f"batch:openai@{tmp_path / 'a'}"):
        with pytest.raises(InputError):
            batch_named(wrong)
    with pytest.raises(InputError, match="no file"):
        BatchModel(tmp_path)
    with pytest.raises(InputError, match="prefix"):
        batch(Question(messages=("x",), prefix=b'{"messages": [{"role": "user", "content": "x"}]}'))
