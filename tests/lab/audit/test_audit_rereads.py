"""Results that stood in the window when nothing needed them there any more: stale, superseded, duplicate."""

import pytest

from recordings import LINES, audited, step, worked
from tenure.engine.record.entry import Draft
from tenure.lab.audit.files import Showing, lines_shown
from tenure.lab.audit.report import Audit, Reread
from tenure.logs.reader import Rewritten
from tenure.testing.builders import human, reply

LEXER = LINES.replace("module", "lexer")


def rereads(*drafts: Draft) -> tuple[Reread, ...]:
    return audited(human("Go."), *drafts, reply("Done."), reply("Really.")).window.rereads


def found(*drafts: Draft) -> list[tuple[str, str, str]]:
    return [(each.how, each.object, each.by) for each in rereads(*drafts)]


def test_a_read_is_stale_once_its_file_was_changed() -> None:
    read, edit = step("read", LINES, path="a.py"), step("edit", "ok", path="a.py", old="1", new="2")
    assert found(*read, *edit) == [("stale", "read:1", "edit:1")]
    assert found(*read, *step("edit", "ok", path="b.py", old="1", new="2")) == []
    assert found(*read, *step("edit", "no such text", error=True, path="a.py", old="1", new="2")) == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"}),
        ("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "y"}),
        ("bash", {"command": "sed -i 's/x/y/' a.py"}),
        ("shell", {"command": ["bash", "-lc", "cat > a.py <<'EOF'\nx\nEOF"]}),
        ("mcp__files__write", {"path": "./a.py", "content": "x"}),
    ],
)
def test_a_file_is_changed_in_the_ways_of_many_tools(tool: str, arguments: dict[str, object]) -> None:
    assert [each[0] for each in found(*step("read", LINES, path="a.py"), *step(tool, "ok", **arguments))] == ["stale"]


def test_a_read_is_superseded_when_its_lines_are_read_again() -> None:
    first, again = step("read", LINES, path="a.py"), step("read", LEXER, path="a.py")
    assert found(*first, *again) == [("superseded", "read:1", "read:2")]
    assert found(*first, *step("bash", LEXER, command="cat a.py")) == [("superseded", "read:1", "bash:1")]


def test_only_the_part_that_was_read_again_counts_and_a_small_one_not_at_all() -> None:
    text = "\n".join(f"value_{n} stands here" for n in range(60))
    whole = step("read", text, path="a.py")
    (reread,) = rereads(*whole, *step("read", "\n".join(["it stands there"] * 40), path="a.py", limit=40))
    assert (reread.how, reread.of, reread.tokens) == ("superseded", 184, 184 * 40 // 60)
    assert found(*whole, *step("read", "\n".join(["it stands there"] * 29), path="a.py", limit=29)) == []
    assert found(*whole, *step("read", text.replace("here", "there"), path="a.py", offset=61)) == []


@pytest.mark.parametrize("sign", ["→", ": ", "\t", "|"])
def test_the_numbers_that_a_result_prints_say_which_lines_it_shows(sign: str) -> None:
    def numbered(start: int, stop: int) -> str:
        return (
            f"<file a.py>\n{chr(10).join(f'{n:6}{sign}a line with value_{n * 7919}' for n in range(start, stop))}\n(more below)"
        )

    first, below = step("read", numbered(1, 100), path="a.py"), step("read", numbered(100, 200), path="a.py")
    assert found(*first, *below) == []
    assert found(*first, *step("read", numbered(40, 200), path="a.py")) == [("superseded", "read:1", "read:2")]
    assert lines_shown("1: one\n2: two\n9: nine", Showing(path="notes.txt", start=7)) == range(7, 10)  # numbers of its own


def test_equal_bytes_are_a_duplicate_wherever_they_come_from() -> None:
    first, again = step("bash", LINES, command="make"), step("grep", LINES, pattern="line")
    assert found(*first, *again) == [("duplicate", "bash:1", "grep:1")]
    assert found(*step("bash", "ok", command="make"), *step("bash", "ok", command="make")) == []


def test_a_result_counts_once_as_what_it_became_first() -> None:
    read, edit = step("read", LINES, path="a.py"), step("edit", "ok", path="a.py", old="1", new="2")
    assert found(*read, *edit, *read) == [("stale", "read:1", "edit:1")]
    assert sorted(found(*read, *read, *edit)) == [("duplicate", "read:1", "read:2"), ("stale", "read:2", "edit:1")]


def test_what_it_cost_is_counted_from_the_first_call_that_carried_it_needlessly() -> None:
    (reread,) = rereads(*step("read", LINES, path="a.py"), *step("edit", "ok", path="a.py", old="1", new="2"))
    assert (reread.before_call, reread.calls, reread.tokens, reread.paid) == (2, 2, 424, 848)
    assert reread.usd == pytest.approx(848 * 3e-6)  # too short a prompt to be cached
    assert reread.handle.startswith("read:1@")


def test_a_result_that_the_recorded_agent_dropped_costs_nothing_any_more() -> None:
    read, edit = step("read", LINES, path="a.py"), step("edit", "ok", path="a.py", old="1", new="2")
    compacted = Rewritten(reason="compaction", drop_before=5)
    report = audited(human("Go."), *read, *edit, reply("So far."), compacted, reply("Done."), reply("Really."))
    assert [(each.how, each.calls) for each in report.window.rereads] == [("stale", 1)]
    dropped = audited(human("Go."), *read, Rewritten(reason="compaction", drop_before=3), *edit, reply("Done."))
    assert dropped.window.rereads == ()


def test_the_sums_are_those_of_what_is_listed() -> None:
    report = audited(*worked())
    assert_sums(report)
    assert {each.how: each.objects for each in report.window.wasted} == {"stale": 2, "superseded": 0, "duplicate": 1}


def assert_sums(report: Audit) -> None:
    for sort in report.window.wasted:
        listed = [each for each in report.window.rereads if each.how == sort.how]
        assert (sort.objects, sort.tokens, sort.paid) == (
            len(listed),
            sum(each.tokens for each in listed),
            sum(each.paid for each in listed),
        )
        assert sort.usd == pytest.approx(sum(each.usd for each in listed))
