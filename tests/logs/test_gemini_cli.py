from session_reading import blocks, calls, drafts, events, results, said, skipped

from tenure.engine.record.entry import ToolResult, Usage


def test_the_model_spoke_before_it_called_and_results_follow() -> None:
    found = events("gemini.json")
    kinds = [kind for kind, _ in said(found)]
    assert kinds == ["Text", "Thinking", "Text", "ToolCall", "ToolCall", "ToolCall", "ToolResult", "ToolResult", "Text"]


def test_a_call_without_a_result_stays_open() -> None:
    found = events("gemini.json")
    assert calls(found) == ["k1", "k2", "k3"]
    assert results(found) == ["k1", "k2"]


def test_a_result_is_what_the_model_read_and_not_what_was_displayed() -> None:
    texts = [(block.text, block.error) for block in blocks(events("gemini.json")) if isinstance(block, ToolResult)]
    assert texts == [("51 C", False), ("no such file", True)]


def test_cached_tokens_are_taken_out_of_the_input() -> None:
    assert drafts(events("gemini.json"))[1].usage == Usage(uncached=60, cache_read=40, output=15)


def test_records_by_line_replace_and_rewind() -> None:
    found = events("gemini_lines.jsonl")
    assert [text for _, text in said(found)] == ["First.", "Answer.", "Second."]
    assert ["taken back" in skip.reason for skip in skipped(found)] == [True]


def test_notices_are_counted_and_not_read() -> None:
    assert [skip.line for skip in skipped(events("gemini.json"))] == [4]
