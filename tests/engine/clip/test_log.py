import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaping import COUNT, kept, lawful, notes, shaped

from tenure.engine.clip import log
from tenure.engine.clip.log_failures import LogReading
from tenure.engine.clip.log_lines import (
    ERROR,
    FORMS,
    OTHER,
    PASSED,
    PHRASE,
    PROGRESS,
    SUMMARY,
    WARNING,
    Form,
    bare,
    class_of_form,
    classified,
    errors_in_long_lines,
    telling,
)

PYTEST = """\
============================= test session starts ==============================
platform linux -- Python 3.12.1, pytest-8.3.0, pluggy-1.5.0
collected 412 items

{passed}
tests/test_cart.py::test_total FAILED [ 99%]
tests/test_cart.py::test_empty PASSED [100%]

=================================== FAILURES ===================================
__________________________________ test_total __________________________________

    def test_total():
        cart = Cart()
        cart.add("pen", 2)
>       assert cart.total() == 4
E       assert 3 == 4
E        +  where 3 = total()

tests/test_cart.py:14: AssertionError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - assert 3 == 4
======================== 1 failed, 411 passed in 3.21s =========================""".replace(
    "{passed}", "\n".join(f"tests/test_cart.py::test_error_handling_{n} PASSED [ {n % 90 + 1:2d}%]" for n in range(410))
)

PYTHON = """\
Traceback (most recent call last):
  File "app/main.py", line 40, in <module>
    run()
  File "app/run.py", line 12, in run
    raise KeyError("rate")
KeyError: 'rate'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "app/main.py", line 42, in <module>
    recover()
app.errors.StartError: no rate is configured"""

NODE = """\
TypeError: Cannot read properties of undefined (reading 'id')
    at load (/srv/app/user.js:12:9)
    at async main (/srv/app/index.js:3:1)"""

JAVA = """\
Exception in thread "main" java.lang.RuntimeException: wrapped
\tat com.example.Main.main(Main.java:9)
Caused by: java.io.IOException: disk is gone
\tat com.example.Disk.LogReading(Disk.java:77)
\t... 1 more"""

GO = """\
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.pick(0x5)
\t/src/pick.go:8 +0x1d
exit status 2"""

RUST = """\
thread 'tests::adds' panicked at src/lib.rs:7:31:
assertion `left == right` failed: the sum is off
  left: 2
 right: 3
note: run with `RUST_BACKTRACE=1`"""

RUSTC = """\
error[E0308]: mismatched types
 --> src/lib.rs:1:46
  |
1 | pub fn f(a: i32) -> String { a }
  |                              ^ expected `String`, found `i32`"""

GCC = """\
src/a.c:12:5: error: expected ';' before '}' token
   12 |   return 1
      |           ^"""

TRACES = {"python": PYTHON, "node": NODE, "java": JAVA, "go": GO, "rust": RUST, "rustc": RUSTC, "gcc": GCC}


def info(size: int, start: int = 0) -> list[str]:
    """A service's calm messages."""
    return [
        f"2024-05-01 10:{n // 60 % 60:02d}:{n % 60:02d} INFO  request {n} served in {n % 7} ms"
        for n in range(start, start + size)
    ]


def seen(lines: Sequence[str], room: int) -> str:
    return "\n".join(lines[at] for at in kept(shaped(log, lines, room)))


# What is a log


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_a_service_log_with_a_trace_is_a_log(trace: str) -> None:
    assert log.fits([*info(50), *trace.split("\n"), *info(50)])


@pytest.mark.parametrize(
    "lines",
    [
        PYTEST.split("\n"),
        [f"ok {n} - handles failure {n}" for n in range(50)],
        [
            "=== RUN   TestA",
            "--- PASS: TestA (0.00s)",
            "=== RUN   TestB",
            "--- PASS: TestB (0.00s)",
            "PASS",
            "ok  \texample/pkg\t0.02s",
        ],
        [f"src/a.ts({n},3): error TS2304: Cannot find name 'x{n}'." for n in range(9)],
        ["src/a.js", *(f"  {n}:5  error  Missing semicolon  semi" for n in range(9)), "", "✖ 9 problems (9 errors, 0 warnings)"],
        ["Exit code 2", "gcc -c a.c", *GCC.split("\n"), "make: *** [Makefile:3: all] Error 1"],
        [f'{{"time":"2024-05-01T10:00:00Z","level":"INFO","msg":"step {n}"}}' for n in range(20)],
        [f"test\tbuild\t2024-05-01T10:00:{n:02d}.1234567Z step {n}" for n in range(20)],
        [f"web_1  | 10:00:{n:02d} GET /" for n in range(20)],
    ],
)
def test_the_output_of_runners_builds_and_services_is_a_log(lines: list[str]) -> None:
    assert log.fits(lines)


SOURCE = """\
import json

class ConfigError(Exception):
    pass

def load(path):
    try:
        return json.load(open(path))
    except ValueError as error:
        raise ConfigError("the file is broken") from error
    print("error: not reached")

def main():
    # Traceback (most recent call last):
    log.error("failed to start")
    return load("a.json")
"""


@pytest.mark.parametrize(
    "lines",
    [
        SOURCE.split("\n"),
        [f"{n:6d}→{line}" for n, line in enumerate(SOURCE.split("\n"), 1)],
        [f"{n:6d}\t{line}" for n, line in enumerate(PYTEST.split("\n"), 1)],
        [f"{n:05d}| {line}" for n, line in enumerate(PYTEST.split("\n"), 1)],
        [
            "# Errors",
            "",
            "A run may fail:",
            "",
            "```",
            *PYTHON.split("\n"),
            "```",
            "",
            "## Why",
            "",
            "Because error: x is raised.",
        ],
        ["{", '  "error": null,', '  "failed": 0,', '  "items": [', "  ]", "}"],
        ["diff --git a/a.py b/a.py", "--- a/a.py", "+++ b/a.py", "@@ -1,2 +1,2 @@", "-raise Error", "+error: x", " y"],
        ["An error is a thing that went wrong.", *(f"Sentence {n} goes on about failures." for n in range(20))],
        [],
        [""],
    ],
)
def test_files_prose_json_and_diffs_are_no_logs(lines: list[str]) -> None:
    assert not log.fits(lines)


# What a line is


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("tests/a.py::test_error_handling PASSED [ 10%]", PASSED),
        ("ok 3 - handles failure", PASSED),
        ("✓ rejects with an error (3 ms)", PASSED),
        ("test errors::panics_on_failure ... ok", PASSED),
        ("    --- PASS: TestError/fatal (0.00s)", PASSED),
        ("=== RUN   TestFailure", PROGRESS),
        ("tests/test_errors.py ......... [ 20%]", PROGRESS),
        (" 45%|████      | 12/100 [00:01<00:09]", PROGRESS),
        ("0 errors", SUMMARY),
        ("3 failed, 12 passed", SUMMARY),
        ("✖ 12 problems (3 errors, 9 warnings)", SUMMARY),
        ("Tests:       1 failed, 2 passed, 3 total", SUMMARY),
        ("test result: FAILED. 3 passed; 1 failed; 0 ignored", SUMMARY),
        ("[INFO] BUILD SUCCESS", SUMMARY),
        ("make: *** [all] Error 2", SUMMARY),
        ("Process completed with exit code 1.", SUMMARY),
        ('  "error": null,', OTHER),
        ("retries=0 error=None", OTHER),
        ("no errors found in 3 files", OTHER),
        ("the run went on without failures", OTHER),
        ("2024-05-01 10:00:00 INFO failed over to the replica", OTHER),
        ("copied src/errors.py to dist/error_handler.js", OTHER),
        ("not ok 5 - later # TODO", OTHER),
        ("not ok 4 - adds", ERROR),
        ("--- FAIL: TestX (0.00s)", ERROR),
        ("src/a.ts:1:2 - error TS2322: bad", ERROR),
        ("  12:5  error  Missing semicolon  semi", ERROR),
        ("npm ERR! code ELIFECYCLE", ERROR),
        ("error: disk is 95% full", ERROR),
        ('{"level":"error","msg":"x"}', ERROR),
        ('{"level":50,"msg":"x"}', ERROR),
        ("E0501 10:00:00.1 main.go:7] lost", ERROR),
        ("bash: foo: command not found", ERROR),
        ("> Task :compileJava FAILED", ERROR),
        ("10 exceptions; ValueError: bad", ERROR),
        ("a.py:3: DeprecationWarning: old", WARNING),
        ("level=warn msg=slow", WARNING),
    ],
)
def test_a_line_is_read_by_form(line: str, kind: int) -> None:
    assert classified(bare(line)) == kind


SAID = st.lists(
    st.one_of(
        st.sampled_from(
            "error errors failed warning: level= {'level': = : 0 1 12 no PASSED ok [INFO] 10:00:00 a.py:3: exit code % Tests FAIL".split(
                " "
            )
        ),
        st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n"), max_size=9),
    ),
    max_size=9,
).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(SAID, st.sampled_from("0123456789"))
def test_lines_that_differ_in_digits_only_are_of_one_class_or_looked_at_each(line: str, digit: str) -> None:
    other = "".join(digit if char in "0123456789" else char for char in line)
    found = class_of_form(line)
    assert found == 255 or found == classified(bare(line)) == classified(bare(other))


# What is shown


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_a_failure_is_shown_with_its_whole_trace(trace: str) -> None:
    lines = [*info(2_000), *trace.split("\n"), "", *info(2_000, 2_000)]
    assert trace in seen(lines, 1_000)


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_a_trace_is_one_failure(trace: str) -> None:
    reading = LogReading([*info(3), *trace.split("\n"), *info(3)])
    assert [(block.start, block.stop) for block in reading.blocks][:1] == [
        (3, 3 + trace.count("\n") + (0 if "exit status" in trace else 1))
    ]
    assert len(reading.blocks) == 1


def test_passing_tests_become_a_count_and_the_failure_stays_whole() -> None:
    lines = PYTEST.split("\n")
    found = shaped(log, lines, 700)
    text = "\n".join(lines[at] for at in kept(found))
    assert PYTEST[PYTEST.index("_____") : PYTEST.index("=========================== short")].strip() in text
    assert "1 failed, 411 passed" in text
    assert "FAILED tests/test_cart.py::test_total - assert 3 == 4" in text
    assert "410 passing tests" in notes(found)


def test_notes_count_exactly_what_a_gap_leaves_out() -> None:
    lines = [
        "$ make test",
        *(f"ok {n} - handles failure" for n in range(41)),
        "not ok 41 - adds",
        "  expected: 3",
        "1..42",
        "# fail 1",
    ]
    assert notes(shaped(log, lines, 60)) == "41 passing tests, 1 other line"


def test_a_test_with_go_keeps_what_it_said_before_the_verdict() -> None:
    quiet = [line for n in range(300) for line in (f"=== RUN   TestOk{n}", f"--- PASS: TestOk{n} (0.00s)")]
    lines = [
        *quiet,
        "=== RUN   TestSum",
        "    sum_test.go:12: got 3, want 4",
        "--- FAIL: TestSum (0.00s)",
        "FAIL",
        "FAIL\tpkg\t0.1s",
    ]
    assert "    sum_test.go:12: got 3, want 4\n--- FAIL: TestSum (0.00s)\nFAIL" in seen(lines, 200)


def test_a_linters_message_keeps_the_file_it_stands_under() -> None:
    files = [[f"/srv/src/f{n}.js", f"  {n + 1}:5  warning  'x{n}' is unused  no-unused-vars", ""] for n in range(300)]
    files[150].insert(1, "  7:1  error  Parsing failed: unexpected token")
    lines = [line for file in files for line in file]
    text = seen([*lines, "✖ 301 problems (1 error, 300 warnings)"], 300)
    assert "/srv/src/f150.js" in text
    assert "7:1  error  Parsing failed" in text
    assert "✖ 301 problems" in text


def test_a_warning_that_repeats_is_shown_once_with_its_count() -> None:
    warned = [f"2024-05-01 10:00:{n:02d} WARN  queue is {n} behind" for n in range(50)]
    lines = [line for pair in zip(warned, info(50), strict=True) for line in pair]
    found = shaped(log, lines, 150)
    assert sum("WARN" in lines[at] for at in kept(found)) == 1
    assert "49 more like the one above left out" in notes(found)


def test_the_first_of_each_kind_comes_before_repeats() -> None:
    same = [f"2024-05-01 10:00:00 ERROR worker {n} lost its connection" for n in range(2_000)]
    lines = [*same, "2024-05-01 10:00:00 ERROR the disk is read-only", *same]
    text = seen(lines, 200)
    assert same[0] in text
    assert "the disk is read-only" in text


def test_an_assertion_comes_before_messages_that_were_logged_on_purpose() -> None:
    logged = [f"[worker-{chr(97 + n % 26)}{chr(97 + n // 26)}] Task failed: no luck" for n in range(300)]
    lines = [
        *logged,
        "error: expect(received).toBe(expected)",
        "",
        "Expected: 1",
        "Received: 2",
        "(fail) cart > adds [0.2ms]",
        " 1 fail",
    ]
    text = seen(lines, 200)
    assert "error: expect(received).toBe(expected)\n\nExpected: 1\nReceived: 2\n(fail) cart > adds" in text


def test_both_ends_are_shown() -> None:
    lines = ["$ ./deploy.sh production", *info(3_000), "ERROR: could not push", *info(3_000), "rolled back"]
    text = seen(lines, 500)
    assert text.startswith(lines[0])
    assert text.endswith(lines[-1])


def test_a_log_that_says_nothing_of_an_outcome_is_left_to_head_and_tail() -> None:
    assert log.choose(info(3_000), 500, COUNT) is None


def test_an_error_line_longer_than_the_room_is_counted_and_left_out() -> None:
    lines = [*info(100), "ERROR " + "x" * 100_000, *info(100), "ERROR: short"]
    found = shaped(log, lines, 300)
    assert 100 not in kept(found)
    assert 201 in kept(found)
    assert "1 error" in notes(found)


def test_colours_and_job_columns_hide_nothing() -> None:
    prefix = "test (linux)\tunit\t2024-05-01T10:00:00.1234567Z "
    lines = [prefix + line for line in [*info(500), "\x1b[31mError: boom\x1b[0m", "    at load (/srv/a.js:1:2)", *info(500)]]
    text = seen(lines, 1_000)
    assert lines[500] + "\n" + lines[501] in text


# Laws

LINES = st.sampled_from(
    [
        *PYTEST.split("\n")[-25:],
        *(line for trace in TRACES.values() for line in trace.split("\n")),
        *info(3),
        "",
        "  an indented line",
        "ok 3 - handles failure",
        "=== RUN   TestX",
        "--- FAIL: TestX (0.00s)",
        "warning: unused variable `x`",
        "x" * 3_000,
        "ERROR " + "y" * 900,
        "中文" * 200,
    ]
)
ANY = st.lists(
    st.one_of(LINES, st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n"), max_size=60)), max_size=120
)


@settings(max_examples=150, deadline=None)
@given(ANY, st.integers(20, 1_500))
def test_kept_lines_ascend_and_what_is_shown_fits_the_room(lines: list[str], room: int) -> None:
    lawful(log, lines, room, 1.1)


@settings(max_examples=100, deadline=None)
@given(ANY)
def test_every_failure_is_shown_with_its_trace_while_room_lasts(lines: list[str]) -> None:
    found = log.choose(lines, 40_000, COUNT)
    reading = LogReading(lines)
    failures = {at for block in reading.blocks for at in range(block.start, block.stop)}
    assert failures <= set(kept(found) if found else ())


@settings(max_examples=100, deadline=None)
@given(ANY)
def test_failures_ascend_and_never_overlap(lines: list[str]) -> None:
    end = 0
    reading = LogReading(lines)
    for block in sorted((*reading.blocks, *reading.warnings), key=lambda block: block.start):
        assert end <= block.start <= block.head < block.stop <= len(lines)
        end = block.stop


@settings(max_examples=60, deadline=None)
@given(st.integers(60, 400), st.integers(2, 40))
def test_no_repeat_is_shown_before_every_first(room: int, kinds: int) -> None:
    names = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(kinds)]
    lines = [f"2024-05-01 10:00:00 ERROR part {name} is lost, try {again}" for again in range(30) for name in names]
    found = log.choose(lines, room, COUNT)
    shown = kept(found) if found else []
    ends = set(range(len(lines) - 3, len(lines))) | {0, 1}
    if any(at >= kinds and at not in ends for at in shown):
        firsts = {lines[at].split(",")[0] for at in shown}
        assert len(firsts) == kinds


@pytest.mark.parametrize(
    "line",
    [
        "\0" * 50_000,
        "a" * 1_000_000,
        "(" * 50_000,
        "[" * 50_000,
        "_ " * 50_000,
        "\t" * 50_000,
        "=" * 50_000,
        "1:" * 50_000,
        "error " * 20_000,
    ],
)
def test_hostile_lines_are_harmless(line: str) -> None:
    lines = [line, "ERROR: found", line, *info(20)]
    log.fits(lines)
    found = log.choose(lines, 300, COUNT)
    assert found is not None
    assert 1 in kept(found)


# Logs in which hardly two lines are alike


def word(n: int) -> str:
    """A word of letters alone, another for each number."""
    return "".join("abcdefghij"[int(digit)] for digit in f"{n:05}")


def test_of_thousands_of_different_errors_each_is_shown_or_counted() -> None:
    lines = [f"ERROR the {word(n)} shard broke" for n in range(12_000)]
    found = shaped(log, lines, 1_000)
    counted = sum(int(n.replace(",", "")) for n in re.findall(r"([\d,]+) errors?\b", notes(found)))
    assert counted + len(kept(found)) == 12_000
    assert "by their words alone" in found.why


def test_a_log_of_some_hundred_different_errors_is_read_closely() -> None:
    assert "by their words alone" not in shaped(log, [f"ERROR the {word(n)} shard broke" for n in range(900)], 1_000).why


def test_an_error_among_thousands_of_different_warnings_is_shown() -> None:
    lines = [f"warning: the {word(n)} call is deprecated" for n in range(12_000)]
    lines[6_000] = "error: could not compile `engine` due to 2 previous errors"
    assert lines[6_000] in seen(lines, 1_000)


def test_the_last_failure_of_thousands_is_shown_with_its_trace() -> None:
    trace = ["Traceback (most recent call last):", '  File "late.py", line 3, in late', "    go()", "LateError: the last one"]
    lines = [*(f"ERROR the {word(n)} shard broke" for n in range(9_000)), *trace, "exit code 1"]
    found = seen(lines, 1_500)
    assert "\n".join(trace) in found


def test_failures_of_one_form_beyond_some_hundred_are_counted_with_the_others() -> None:
    lines = [f"ERROR shard {n} broke" for n in range(5_000)]
    found = shaped(log, lines, 600)
    more = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) more like the one above", notes(found))]
    assert sum(more) + len(kept(found)) == 5_000


def test_an_error_with_what_belongs_to_it_is_one_failure_however_often_its_form_comes() -> None:
    lines = [line for n in range(1_500) for line in (f"error: case {n}", f"  expected {n}", f"  received {n + 1}")]
    blocks = LogReading(lines).blocks
    assert [(block.start, block.stop) for block in blocks[:3]] == [(0, 3), (3, 6), (6, 9)]


@pytest.mark.parametrize(("line", "kind"), [("0 errors found", SUMMARY), ("errors: 0", OTHER), ("job done, exc_info=0", OTHER)])
def test_no_errors_are_none_beside_lines_that_differ_in_the_number(line: str, kind: int) -> None:
    bad = line.replace("0", "7")
    classes = LogReading([bad, line, bad, line]).classes
    assert classes[1] == classes[3] == kind


@given(
    st.lists(
        st.sampled_from(
            ["ok", "FAILED x", "error: a", "  at f (a.js:1:2)", "", "INFO calm", "___ t ___", "E   1", "\x1b[31merror: b"]
        )
    )
)
@settings(deadline=None)
def test_many_forms_are_read_as_few_are(lines: list[str]) -> None:
    calm = [f"{word(n)} is a calm line" for n in range(100)]
    assert bytes(LogReading([*calm, *lines]).classes[100:]) == bytes(LogReading(lines).classes)


def test_a_file_of_source_code_that_prints_an_error_at_its_end_is_no_log() -> None:
    lines = [line for n in range(200) for line in (f"def step_{n}(self):", f"    self.value = {n}", "    call(self.value)", "")]
    assert not log.fits([*lines, "usage =", "%(prog)s: error: %(message)s", "done"])


@pytest.mark.parametrize(
    "line", ["ERROR: x", "Error: x", "panic: x", "FAILED x", "SomeException: x", "ENOENT", "permission denied", "failed to x"]
)
def test_an_error_far_inside_a_long_line_is_found(line: str) -> None:
    at = errors_in_long_lines(["short", f"{'word ' * 200}{line}"])[1]
    assert 1_000 <= at < 1_000 + len(line)


# The table of error lines


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.example)
def test_the_line_that_a_row_was_written_for_is_an_error(form: Form) -> None:
    assert PHRASE.search(form.example.lower())
    assert classified(form.example) in (ERROR, SUMMARY)
    assert telling([form.example], [0]) == [0]


@pytest.mark.parametrize(
    "line",
    ["all files were found", "0 errors", "wrote 12 files", "reading manifest of the page", "broken lines: 0", "merge of a and b"],
)
def test_a_line_that_only_has_a_word_of_one_is_none(line: str) -> None:
    assert classified(line) != ERROR
