import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.planners.handoff.facts import (
    FAILURE_CHARS,
    FAILURES,
    FILES,
    HandoffFacts,
    Quoted,
    Touched,
    facts_of,
    target_of,
)
from tenure.engine.record.entry import Draft, Role, ToolCall
from tenure.testing.builders import call, human, indexed, placed, reply, result, returned
from tenure.testing.transcripts import transcripts


def step(tool: str, text: str = "ok", *, error: bool = False, **arguments: object) -> tuple[Draft, Draft]:
    return reply(call(tool, "c", **arguments)), result(text, "c", error=error)


def failed(tool: str, text: str = "boom", **arguments: object) -> tuple[Draft, Draft]:
    return step(tool, text, error=True, **arguments)


def known(*steps: tuple[Draft, ...], cut: int | None = None, earlier: HandoffFacts | None = None) -> HandoffFacts:
    drafts = (human("go"), *(draft for each in steps for draft in each))
    return facts_of(indexed(*drafts), placed(*drafts), cut=cut, earlier=earlier)


def touched(*steps: tuple[Draft, ...]) -> dict[str, dict[str, int]]:
    return {file.path: dict(file.counts) for file in known(*steps).files}


def open_failures(*steps: tuple[Draft, ...]) -> list[tuple[str, str]]:
    return [(failure.target, failure.text) for failure in known(*steps).failures]


def test_files_are_known_with_what_was_done_to_them_and_how_often() -> None:
    assert touched(
        step("Edit", file_path="a.py"), step("edit", path="a.py"), step("Write", file_path="b.py"), step("read", path="c.py"),
        step("str_replace_editor", command="create", path="d.py"), step("str_replace_editor", command="view", path="e.py"),
        step("mcp__files__write_file", path="b.py"), step("delete_file", target_file="f.py"),
    ) == {"a.py": {"edited": 2}, "b.py": {"written": 2}, "d.py": {"created": 1}, "f.py": {"deleted": 1}}  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        lambda patch: msgspec.json.encode({"input": patch}).decode(),
        lambda patch: msgspec.json.encode({"command": ["apply_patch", patch]}).decode(),
        lambda patch: msgspec.json.encode({"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"}).decode(),
        lambda patch: patch,
    ],
)
def test_files_of_a_patch_are_known(arguments) -> None:
    patch = (
        "*** Begin Patch\n*** Add File: new.py\n+x\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** Delete File: c.py\n"
        "*** End Patch"
    )
    called = reply(ToolCall(call_id="c", name="shell", arguments=arguments(patch)))
    assert touched((called, result("Success", "c"))) == {
        "new.py": {"created": 1}, "a.py": {"edited": 1}, "b.py": {"moved": 1}, "c.py": {"deleted": 1},
    }  # fmt: skip


def test_the_file_touched_last_comes_first() -> None:
    files = known(step("edit", path="a"), step("edit", path="b"), step("edit", path="a")).files
    assert [file.path for file in files] == ["a", "b"]


def test_an_edit_that_failed_or_never_ended_touched_nothing() -> None:
    assert touched(failed("edit", path="a"), (reply(call("edit", "x", path="b")), human("stop"))) == {}


def test_what_comes_after_the_cut_is_not_told_but_resolves() -> None:
    steps = (failed("bash", command="make"), step("edit", path="a"), step("edit", path="b"), step("bash", command="make"))
    assert [file.path for file in known(*steps, cut=5).files] == ["a"]
    assert not known(*steps, cut=5).failures
    assert known(*steps[:2], cut=5).failures
    assert not known(failed("bash", command="make"), failed("bash", command="make"), cut=3).failures  # the newer one still stands


def test_a_failure_is_told_in_its_own_words() -> None:
    assert open_failures(failed("bash", "E  1 != 2\n\n  at a.py:3", command="pytest")) == [("pytest", "E  1 != 2\n\n  at a.py:3")]


def test_a_later_success_of_the_same_command_resolves_a_failure() -> None:
    assert not open_failures(failed("bash", command="pytest -x"), step("bash", command="pytest -x"))
    assert open_failures(failed("bash", command="pytest -x"), step("bash", command="ls")) == [("pytest -x", "boom")]
    assert not open_failures(failed("bash", command="cd /a && pytest -x 2>&1 | tail -5"), step("shell", command="pytest  -x"))


def test_a_later_change_of_the_same_file_resolves_a_failure() -> None:
    assert not open_failures(failed("edit", path="a.py"), step("edit", path="a.py"))
    assert not open_failures(failed("read", path="a.py"), step("write", path="a.py"))
    assert open_failures(failed("edit", path="a.py"), step("read", path="a.py")) == [("a.py", "boom")]


def test_only_the_newest_failure_of_a_command_is_told() -> None:
    steps = (failed("bash", "old", command="make"), failed("bash", "b", command="b"), failed("bash", "new", command="make"))
    assert open_failures(*steps) == [("b", "b"), ("make", "new")]


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1\nboom", "boom\nProcess exited with code 2", "boom\n[The command completed with exit code 1.]", "boom\n\nExit Code: 127",
        "<returncode>1</returncode>\n<output>\nboom</output>", "boom\nCommand exited with code 1",
    ],
)  # fmt: skip
def test_a_command_that_says_it_failed_failed_though_its_host_does_not_say_so(text: str) -> None:
    assert open_failures(step("bash", text, command="make")) == [("make", text)]


@pytest.mark.parametrize("text", ["Exit code: 0", "exit code 10 means x is wrong\n" * 20 + "Exit code 0", "see exit codes", ""])
def test_a_command_that_went_well_is_no_failure(text: str) -> None:
    assert not open_failures(step("bash", text, command="make"))
    assert not open_failures(step("read", "Exit code 1", path="log.txt"))


def test_a_look_at_nothing_is_no_failure() -> None:
    assert not open_failures(
        step("bash", "Exit code 1", command=r"grep -rn 'foo\|b;r' src | sort"), failed("Grep", pattern="foo")
    )
    assert not open_failures(failed("bash", "ls: no such file\nExit code 2", command="cd a && ls b; cat c"))
    assert open_failures(failed("bash", "Exit code 2", command="ls a && make")) == [("ls a && make", "Exit code 2")]
    assert open_failures(failed("bash", "Exit code 127", command="ls a")) == [("ls a", "Exit code 127")]


@pytest.mark.parametrize(
    "text", ["The user doesn't want to proceed with this tool use.", "[Request interrupted by user for tool use]"]
)
def test_a_call_that_was_stopped_is_no_failure_and_resolves_none(text: str) -> None:
    assert open_failures(failed("bash", command="make"), failed("bash", text, command="make")) == [("make", "boom")]


def test_a_gigantic_failure_keeps_its_ends_and_names_its_handle() -> None:
    (failure,) = known(failed("bash", "start" + "x" * 1_000_000 + "end", command="make")).failures
    assert failure.text.startswith("startx")
    assert failure.text.endswith("xend")
    assert f"recall {failure.handle} for all of it" in failure.text
    assert len(failure.text) < FAILURE_CHARS + 100


def test_files_and_failures_are_bounded() -> None:
    steps = [step("edit", path=f"{n}.py") for n in range(FILES + 7)] + [failed("bash", command=f"make {n}") for n in range(20)]
    facts = known(*steps)
    assert (len(facts.files), facts.unlisted) == (FILES, 7)
    assert facts.files[0].path == f"{FILES + 6}.py"
    assert [failure.target for failure in facts.failures] == [f"make {n}" for n in range(20 - FAILURES, 20)]


def test_earlier_facts_are_carried_on() -> None:
    first = known(step("edit", path="a"), step("edit", path="b"), failed("bash", command="make"), failed("bash", command="check"))
    drafts = (human("go"), *step("write", path="a"), *step("bash", command="make"))
    second = facts_of(indexed(*drafts), placed(*drafts), earlier=first, rules=[Quoted(label="AGENTS.md", text="be kind")])
    assert second.files == (
        Touched(path="a", counts=(("edited", 1), ("written", 1))),
        Touched(path="b", counts=(("edited", 1),)),
    )
    assert [failure.target for failure in second.failures] == ["check"]
    assert second.rules == (Quoted(label="AGENTS.md", text="be kind"),)
    assert facts_of(indexed(), (), earlier=second).rules == ()


def test_facts_of_two_stretches_are_those_of_the_whole() -> None:
    drafts = (
        human("go"), *step("edit", path="a"), *failed("bash", command="x"), *failed("bash", command="y"), *step("edit", path="b"),
        *step("bash", command="x"), *step("edit", path="a"),
    )  # fmt: skip
    index, entries = indexed(*drafts), placed(*drafts)
    for cut in (3, 5, 7, 9):
        first = facts_of(index, entries, cut=cut)
        assert facts_of(index, entries[cut:], earlier=first) == facts_of(index, entries)


def test_long_commands_are_told_apart() -> None:
    start = "python - <<'EOF'\n" + "import os\n" * 100
    first, second = target_of(start + "a()"), target_of(start + "b()")
    assert first != second
    assert max(len(first), len(second)) <= 160
    assert target_of("x" * 100_000 + "a") != target_of("x" * 100_000 + "b")


@pytest.mark.parametrize(
    "arguments",
    [
        "", "[]", "3", '"x"', "not json", '{"path":3}', '{"path":["a","b"]}', '{"path":{"a":1}}', "[" * 100_000, '{"path":"\\ud800"}',
        '{"path":"' + "a" * 1_000_000 + '"}', '{"path":"a\\nb\\u0000c"}', '{"command":"' + "| tail " * 100_000 + '"}',
        '{"command":"' + "cd a && " * 100_000 + '"}', "*** Begin Patch\n" + "*** Update File: \n" * 1_000,
    ],
)  # fmt: skip
def test_hostile_arguments_are_harmless(arguments: str) -> None:
    for tool in ("edit", "bash", "apply_patch"):
        for error in (True, False):
            drafts = (human("go"), Draft(role=Role.ASSISTANT, blocks=(ToolCall(call_id="c", name=tool, arguments=arguments),)))
            facts = known((*drafts[1:], result("x\0" * 100_000, "c", error=error)))
            assert all("\n" not in file.path and len(file.path) <= 300 for file in facts.files)
            assert all("\n" not in failure.target and "\0" not in failure.text for failure in facts.failures)


def test_a_result_that_answers_nothing_is_no_fact() -> None:
    drafts = (human("go"), result("boom", "nobody", error=True))
    assert facts_of(indexed(*drafts), placed(*drafts)) == HandoffFacts()


@given(drafts=transcripts(longest=14), data=st.data())
@settings(max_examples=80, deadline=None)
def test_any_conversation_has_facts_that_can_be_gathered_in_two_parts(drafts: tuple[Draft, ...], data: st.DataObject) -> None:
    index, entries = indexed(*drafts), placed(*drafts)
    place = data.draw(st.integers(0, len(entries)))
    whole = facts_of(index, entries)
    if any(span.result and span.call[0] < place <= span.result[0] for span in index.spans):
        return
    assert facts_of(index, entries[place:], earlier=facts_of(index, entries[:place])) == whole


def test_parallel_calls_are_told_apart() -> None:
    drafts = (
        human("go"),
        reply(call("bash", "a", command="x"), call("bash", "b", command="y")),
        human(returned("bad", "b", error=True), returned("good", "a")),
    )
    assert [failure.target for failure in facts_of(indexed(*drafts), placed(*drafts)).failures] == ["y"]
