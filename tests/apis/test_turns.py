"""Messages for providers that insist on turns: what is joined keeps all that was said, in order."""

import json
from typing import Any

from tenure.apis.turns import alternate

SIGNED = {
    "id": "c1",
    "type": "function",
    "function": {"name": "read", "arguments": "{}"},
    "extra_content": {"google": {"thought_signature": "CsYB+/8="}},
}


def joined(*messages: Any) -> list[Any]:
    return [json.loads(each) for each in alternate([json.dumps(message).encode() for message in messages])]


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def model(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def test_a_call_whose_words_have_left_is_joined_to_the_message_before_it_with_its_signature() -> None:
    (turn,) = joined(model("I look."), model(None, tool_calls=[SIGNED]))
    assert turn == model("I look.", tool_calls=[SIGNED])
    (turn,) = joined(model("I look."), model("", tool_calls=[SIGNED]))
    assert turn["content"] == "I look."


def test_words_and_parts_of_neighbours_stand_in_their_order() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}
    (turn,) = joined(user("one"), user([image, {"type": "text", "text": "two"}]), user("three"))
    assert turn["content"] == [
        {"type": "text", "text": "one"},
        image,
        {"type": "text", "text": "two"},
        {"type": "text", "text": "three"},
    ]
    assert joined(user("one"), user("two")) == [user("one\n\ntwo")]


def test_parts_of_the_responses_api_are_named_as_it_names_them() -> None:
    (turn,) = joined(user("one"), user([{"type": "input_text", "text": "two"}]))
    assert [part["type"] for part in turn["content"]] == ["input_text", "input_text"]


def test_results_that_are_messages_of_their_own_stay_apart() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    messages = [user("go"), model(None, tool_calls=[SIGNED]), result, result | {"tool_call_id": "c2"}, user("on")]
    assert joined(*messages) == messages


def test_reasoning_and_refusals_of_both_neighbours_are_kept() -> None:
    first = model("a", reasoning_content="think one", reasoning_details=[{"type": "x", "signature": "s1"}])
    second = model("b", reasoning_content="think two", reasoning_details=[{"type": "x", "signature": "s2"}], refusal="no")
    (turn,) = joined(first, second)
    assert turn["reasoning_content"] == "think one\n\nthink two"
    assert [part["signature"] for part in turn["reasoning_details"]] == ["s1", "s2"]
    assert turn["refusal"] == "no"
    (turn,) = joined(first, model("b"))
    assert (turn["reasoning_content"], len(turn["reasoning_details"])) == ("think one", 1)


def test_a_name_stays_where_both_have_it_and_annotations_that_no_longer_fit_go() -> None:
    assert joined(user("a", name="ann"), user("b", name="ann"))[0]["name"] == "ann"
    assert "name" not in joined(user("a", name="ann"), user("b", name="bob"))[0]
    assert "name" not in joined(user("a", name="ann"), user("b"))[0]
    cited = model("b", annotations=[{"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 1}}])
    assert "annotations" not in joined(model("a"), cited)[0]
    assert joined(model(None), cited)[0]["annotations"] == cited["annotations"]


def test_instructions_between_two_messages_of_the_user_do_not_part_them() -> None:
    prompt = {"role": "system", "content": "Help."}
    (first, turn) = joined(
        prompt, user("one"), {"role": "system", "content": [{"type": "text", "text": "Mind it."}]}, user("two")
    )
    assert first == prompt
    assert turn == user("one\n\n<system-reminder>\nMind it.\n</system-reminder>\n\ntwo")
