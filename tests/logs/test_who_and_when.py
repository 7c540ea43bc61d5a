import json

import pytest
from session_reading import FIXTURES, blocks, drafts, events, rewritten, said, skipped

from tenure.engine.record.entry import Draft, Origin, Role
from tenure.logs.detect import read
from tenure.logs.reader import Event
from tenure.logs.who_and_when import WhoAndWhen

NAMES = ("who_and_when_hand.json", "who_and_when_algo.json", "who_and_when_lines.jsonl")


def written(name: str) -> list[str]:
    """Every text of the histories, as the file has them."""
    found = []
    for line in (FIXTURES / name).read_text().split("\n{" if name.endswith("l") else "\0"):
        task = json.loads(line if line.startswith("{") else "{" + line)
        found += [text for text in (task.get("system_prompt") or {}).values() if text]
        found += [message["content"] for message in task["history"]]
    return found


def who(found: list[Event]) -> list[tuple[Role, Origin]]:
    return [(draft.role, block.origin) for draft in drafts(found) for block in draft.blocks]


@pytest.mark.parametrize("name", NAMES)
def test_every_text_is_there_once_and_no_label_is(name: str) -> None:
    found = events(name)
    assert [block.text for block in blocks(found)] == written(name)
    assert skipped(found) == []
    assert not any("overlooked" in text or "ignored" in text or "guessed" in text for _, text in said(found))


def test_magentic_one_the_team_is_the_model_and_its_surfers_and_terminals_are_tools() -> None:
    model, tool, frame = (
        (Role.ASSISTANT, Origin.MODEL),
        (Role.USER, Origin.TOOL),
        (Role.USER, Origin.HARNESS),
    )
    assert who(events("who_and_when_hand.json")) == [
        (Role.USER, Origin.HUMAN),
        model,
        model,
        model,
        frame,
        tool,
        tool,
        model,
        model,
        tool,
        frame,
    ]


def test_ag2_the_first_message_is_the_task_whoever_passes_it_on() -> None:
    assert who(events("who_and_when_algo.json")) == [
        (Role.SYSTEM, Origin.HARNESS),
        (Role.SYSTEM, Origin.HARNESS),
        (Role.USER, Origin.HUMAN),
        (Role.ASSISTANT, Origin.MODEL),
        (Role.USER, Origin.TOOL),
        (Role.USER, Origin.TOOL),
        (Role.USER, Origin.HARNESS),
        (Role.ASSISTANT, Origin.MODEL),
    ]


def test_several_tasks_have_a_window_each() -> None:
    assert [(event.reason, event.drop_before) for event in rewritten(events("who_and_when_lines.jsonl"))] == [("new sample", 2)]


def test_an_array_of_tasks_reads_like_one_on_each_line() -> None:
    lines = (FIXTURES / "who_and_when_lines.jsonl").read_bytes().splitlines()
    reader, found = read([b"[" + b",".join(lines) + b"]"])
    assert reader.name == "who-and-when"
    assert [draft.blocks for draft in drafts(found)] == [draft.blocks for draft in drafts(events("who_and_when_lines.jsonl"))]


def test_lines_are_those_of_the_file() -> None:
    lines = (FIXTURES / "who_and_when_hand.json").read_text().splitlines()
    for draft in drafts(events("who_and_when_hand.json")):
        assert lines[draft.line - 1].strip() == "{"
        assert json.loads("{" + lines[draft.line].rstrip(",") + "}")["content"] == draft.blocks[0].text


def test_a_message_in_another_shape_costs_that_message_or_that_field() -> None:
    task = json.loads((FIXTURES / "who_and_when_hand.json").read_text())
    task["history"][1] = "no message"
    task["history"][2]["role"] = 7
    task["history"][3]["content"] = [{"type": "text", "text": "Look"}, {"type": "text", "text": "again."}, 5]
    found = list(WhoAndWhen().read([json.dumps(task).encode()]))
    assert len(skipped(found)) == 2
    assert len(drafts(found)) == len(task["history"]) - 1
    assert "Look\nagain." in [block.text for block in blocks(found)]


def test_system_prompts_may_be_a_text_or_a_list() -> None:
    for prompts in ("Be brief.", ["Be brief.", None, ""]):
        task = {
            "history": [{"role": "human", "content": "Go"}],
            "mistake_step": "1",
            "is_correct": False,
            "system_prompt": prompts,
        }
        reader, found = read([json.dumps(task).encode()])
        assert reader.name == "who-and-when"
        assert [event.blocks[0].text for event in found if isinstance(event, Draft)] == ["Be brief.", "Go"]


def test_it_is_recognised_by_what_only_it_has() -> None:
    reader = WhoAndWhen()
    assert not reader.recognises(b'{"history": [{"role": "user", "content": "hi"}], "messages": []}')
    assert not reader.recognises(b'{"history": [], "instance_id": "x", "git_patch": ""}')
    assert not reader.recognises(json.dumps({"messages": (FIXTURES / NAMES[0]).read_text()}).encode())
    for name in NAMES:
        text = (FIXTURES / name).read_bytes()
        assert reader.recognises(text[:800])
        assert reader.recognises(b"\xef\xbb\xbf\n" + text)
