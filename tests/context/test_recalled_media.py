"""Images and documents leave by plan and come back byte for byte: in words, beside a recall, in place, and as a file."""

import json
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pictures import png
from tenure import Budget, Context
from tenure.apis.media import medium_bytes
from tenure.cli.main import main
from tenure.engine.lifecycle.decision import Propose
from tenure.engine.record.recall import raw
from tenure.errors import InputError
from tenure.testing.model import ScriptedModel
from tenure.testing.store import MemoryStore

SHOT, PLAN = png(800, 600), png(1_600, 900, 1)
PDF = b"%PDF-1.4\n" + b"x" * 400


def image(data: bytes, kind: str = "image", media_type: str = "image/png") -> dict[str, Any]:
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}}


def shot(number: int, *content: object) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"s{number}", "name": "screenshot", "input": {"url": f"http://localhost/{number}"}}
    result = {"type": "tool_result", "tool_use_id": f"s{number}", "content": list(content)}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Look at the page."}]},
    *shot(1, image(SHOT)),
    *shot(2, {"type": "text", "text": "two of them"}, image(SHOT), image(PLAN)),
    *shot(3, image(PDF, "document", "application/pdf")),
    *(message for number in range(4, 10) for message in shot(number, {"type": "text", "text": f"plain {number}"})),
    {"role": "assistant", "content": "Seen."},
    {"role": "user", "content": "And now?"},
    {"role": "assistant", "content": "Now this."},
]


def worked(dialect: str = "anthropic", ceiling: int = 200_000) -> Context:
    context = Context(dialect=dialect, budget=Budget(ceiling=ceiling, window=10**6), store=MemoryStore(), markers=False)
    context.extend(MESSAGES if dialect == "anthropic" else converted(dialect))
    return context


def converted(dialect: str) -> list[dict[str, Any]]:
    """Two shots as the other providers have them; Chat Completions shows an image in a message of the user."""
    url = f"data:image/png;base64,{b64encode(SHOT).decode()}"
    if dialect == "openai-responses":
        return [
            {"role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "s1", "name": "screenshot", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "s1", "output": [{"type": "input_image", "image_url": url}]},
            {"role": "assistant", "content": "Seen."},
        ]
    call = {"id": "s1", "type": "function", "function": {"name": "screenshot", "arguments": "{}"}}
    content = [{"type": "text", "text": "shot"}, {"type": "image_url", "image_url": {"url": url}}]
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "s1", "content": content},
        {"role": "assistant", "content": "Seen."},
    ]


def taken(context: Context, **actions: str) -> None:
    """Carries out a plan, whatever it costs."""
    lists = "\n".join(f"<{action}>\n{target}\n</{action}>" for action, target in actions.items())
    plan = context.session.plan
    context.session.plan = lambda name, acts, **rest: plan(name, acts, **(rest | {"forced": True}))  # type: ignore[method-assign]
    answered = context.collect(ScriptedModel(f"<gc_plan>\n{lists}\n</gc_plan>"))
    assert answered is not None
    assert isinstance(answered.decision, Propose), answered


def sent(context: Context) -> str:
    return json.dumps(context.request(model="m")["messages"])


def asked(context: Context, dialect: str = "anthropic", **query: str) -> dict[str, Any]:
    """The answer to a recall that the model makes."""
    arguments = json.dumps(query)
    call: dict[str, Any]
    match dialect:
        case "anthropic":
            call = {"type": "tool_use", "id": "r", "name": "recall", "input": query}
            context.extend([{"role": "assistant", "content": [call]}])
        case "openai-responses":
            call = {"type": "function_call", "call_id": "r", "name": "recall", "arguments": arguments}
            context.extend([call])
        case _:
            call = {"id": "r", "type": "function", "function": {"name": "recall", "arguments": arguments}}
            context.extend([{"role": "assistant", "content": None, "tool_calls": [call]}])
    found = context.call(call)
    assert found is not None
    return found


@pytest.mark.parametrize("action", ["fold", "prune", "mask"])
def test_a_result_with_media_leaves_by_plan_and_comes_back_in_place_byte_for_byte(action: str) -> None:
    context = worked()
    before, tokens = sent(context), context.session.view.tokens
    taken(context, **{action: "screenshot:2 | two pages side by side; recall before comparing them"})
    assert b64encode(PLAN).decode() not in sent(context)
    assert context.session.view.tokens < tokens - 1_500  # what the two images weigh by the provider's rules, not their bytes
    assert context.restore("screenshot:2") is not None
    assert sent(context) == before
    assert context.session.view.tokens == tokens


def test_a_masked_result_with_media_keeps_its_words_and_says_what_was_left_out() -> None:
    context = worked()
    taken(context, mask="screenshot:2")
    said = sent(context)
    assert "two of them" in said
    assert f"left out: image/png, 800x600, {len(SHOT)} bytes (sha256" in said
    assert "image/png, 1600x900" in said


def test_in_words_a_recall_says_what_medium_it_is_and_how_it_comes_back() -> None:
    told = worked().recall("screenshot:1")
    assert f"image/png, 800x600, {len(SHOT)} bytes (sha256 {sha256(SHOT).hexdigest()[:12]})" in told
    assert "when the user restores it" in told
    assert "application/pdf" in worked().recall("screenshot:3")
    assert "1600x900" in worked().recall("entry:4/0/2")
    with pytest.raises(InputError, match="no medium 3"):
        worked().recall("entry:4/0/3")


def test_a_recall_of_media_carries_them_and_they_weigh_what_media_weigh() -> None:
    context = worked()
    taken(context, fold="screenshot:2 | two pages")
    found = asked(context, handle="screenshot:2")
    words, *media = found["content"]
    assert "two of them" in words["text"]
    assert [b64decode(each["source"]["data"]) for each in media] == [SHOT, PLAN]
    before = context.session.view.tokens
    context.extend([{"role": "user", "content": [found]}])
    assert 1_500 < context.session.view.tokens - before < 3_000
    (pages,) = asked(worked(), handle="screenshot:3")["content"][1:]
    assert (pages["type"], b64decode(pages["source"]["data"])) == ("document", PDF)


def test_of_several_media_one_alone_can_be_asked_for_and_words_alone_bring_none() -> None:
    (one,) = asked(worked(), handle="entry:4/0/2")["content"][1:]
    assert b64decode(one["source"]["data"]) == PLAN
    assert isinstance(asked(worked(), words="two of them")["content"], str)
    assert isinstance(asked(worked(), handle="screenshot:2", lines="1")["content"], str)
    assert isinstance(asked(worked(), handle="screenshot:99")["content"], str)


def test_media_that_there_is_no_room_for_are_named_and_not_brought() -> None:
    found = asked(worked(ceiling=12_000), handle="screenshot:2")
    words, *media = found["content"]
    assert [b64decode(each["source"]["data"]) for each in media] == [SHOT]
    assert "is not shown: its 1,600 tokens are more than there is room for" in words["text"]


def test_an_answer_that_still_stands_is_pointed_to_and_not_repeated() -> None:
    context = worked()
    context.extend([{"role": "user", "content": [asked(context, handle="screenshot:1")]}])
    call = {"type": "tool_use", "id": "r2", "name": "recall", "input": {"handle": "screenshot:1"}}
    context.extend([{"role": "assistant", "content": [call]}])
    again = context.call(call)
    assert again is not None
    assert again["content"].startswith("[Still in your context")


def test_responses_take_an_image_in_a_calls_output() -> None:
    words, medium = asked(worked("openai-responses"), "openai-responses", handle="screenshot:1")["output"]
    assert words["type"] == "input_text"
    assert medium == {"type": "input_image", "image_url": f"data:image/png;base64,{b64encode(SHOT).decode()}"}


def test_chat_completions_cannot_and_the_answer_says_so() -> None:
    content = asked(worked("openai-chat"), "openai-chat", handle="screenshot:1")["content"]
    assert isinstance(content, str)
    assert "is not shown: a tool's result of this API cannot hold it" in content


def test_raw_writes_exactly_the_bytes_of_a_medium(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(MESSAGES), encoding="utf-8")
    for handle, wanted in {
        "screenshot:1": SHOT,
        "screenshot:2": b"two of them",
        "entry:4/0/1": SHOT,
        "entry:4/0/2": PLAN,
        "screenshot:3": PDF,
        "entry:6/0": PDF,
    }.items():
        assert main(["recall", str(path), handle, "--raw"]) == 0
        assert capfdbinary.readouterr().out == wanted, handle


def test_of_a_medium_that_is_only_an_address_there_are_no_bytes() -> None:
    context = Context(dialect="anthropic", store=MemoryStore())
    part = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    context.extend([{"role": "user", "content": "Look."}, *shot(1, part)])
    read = lambda n: context.store.entry(context.conversation, n)  # noqa: E731 - as the store has it
    with pytest.raises(InputError, match=r"only its address https://example\.org/a\.png"):
        raw(context.session.index, read, "screenshot:1", medium=medium_bytes)
    assert "known by its address only" in context.recall("screenshot:1")


def test_a_skill_is_recalled_pinned_restored_and_planned_by_its_name() -> None:
    context = Context(dialect="anthropic", budget=Budget(ceiling=200_000, window=10**6), store=MemoryStore(), markers=False)
    words = "\n".join(f"rule {n}: tag before you push" for n in range(60))
    context.extend([{"role": "user", "content": "Release it."}])
    for number in (1, 2):
        call = {"type": "tool_use", "id": f"k{number}", "name": "Skill", "input": {"skill": "release"}}
        result = {"type": "tool_result", "tool_use_id": f"k{number}", "content": f"load {number}\n{words}"}
        context.extend([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
    for number in range(6):
        context.extend(shot(number, {"type": "text", "text": "plain"}))
    context.extend([{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Next."}])
    assert "load 2\n" in context.recall("skill:release")
    handle = context.session.index.handle("skill:release", 3)
    assert context.recall(handle) == context.recall("skill:release")
    with pytest.raises(InputError, match="skill:release"):
        context.pin("skill:relase")
    before = sent(context)
    taken(context, prune="skill:release")
    assert "load 1" not in sent(context)
    assert "load 2" in sent(context)
    assert context.restore("function:skill:1") is not None
    assert sent(context) == before
    context.pin("skill:release")
    guard = context.session.guard()
    assert guard.why((3, 0)) == "pin"
    assert guard.why((4, 0)) == "pin"
    assert guard.why((1, 0)) != "pin"
    assert context.restore("skill:release") is None
    assert context.unpin("skill:release")
