import json

from session_reading import drafts, events, rewritten, said, skipped

from tenure.engine.record.entry import Origin, Thinking, Usage
from tenure.logs.pi import Pi


def test_a_linear_session_is_read_in_order() -> None:
    found = events("pi_linear.jsonl")
    assert [draft.role.value for draft in drafts(found)] == ["user", "assistant", "tool", "user", "user", "user"]
    assert drafts(found)[2].blocks[0].text == "a.py:1\nb.py:2"


def test_usage_and_seal_come_from_the_message() -> None:
    answer = drafts(events("pi_linear.jsonl"))[1]
    assert answer.usage == Usage(uncached=5, cache_write=8, cache_read=7, output=6)
    assert isinstance(answer.blocks[0], Thinking)
    assert answer.blocks[0].signed


def test_compaction_keeps_from_the_entry_it_names() -> None:
    for name, kept in (("pi_linear.jsonl", "Go on."), ("pi_tree.jsonl", "Second question.")):
        found = events(name)
        (compaction,) = rewritten(found)
        assert drafts(found)[compaction.drop_before].blocks[0].text == kept
        summary = drafts(found[found.index(compaction) :])[0]
        assert summary.blocks[0].origin is Origin.HARNESS


def test_a_command_of_the_human_is_human_unless_kept_from_the_model() -> None:
    last = drafts(events("pi_linear.jsonl"))[-1].blocks[0]
    assert last.text == "Ran `make`\n```\ndone\n```\n\nCommand exited with code 2"
    assert last.origin is Origin.HUMAN
    assert [skip.line for skip in skipped(events("pi_linear.jsonl"))] == [6, 10]


def test_a_tree_is_read_along_its_live_branch() -> None:
    texts = [text for _, text in said(events("pi_tree.jsonl"))]
    assert texts[:2] == ["First question.", "First answer."]
    assert "Left behind." not in texts
    assert texts[-1] == "Second answer."
    assert [skip.line for skip in skipped(events("pi_tree.jsonl"))] == [4]


def test_cyclic_and_missing_parents_end() -> None:
    def entry(id_: str, parent: str) -> str:
        return json.dumps({"type": "message", "id": id_, "parentId": parent, "message": {"role": "user", "content": id_}})

    for parents in (("b", "a"), ("a", "b"), ("lost", "gone")):
        found = list(Pi().read(["\n".join((entry("a", parents[0]), entry("b", parents[1]))).encode()]))
        assert ("Text", "b") in said(found)
