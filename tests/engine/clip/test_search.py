import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shaping import COUNT, kept, lawful, notes, shown

from tenure.engine.clip import search
from tenure.engine.clip.shape import weighed

FOLDERS = ("src/core", "src/edge/deep", "tests", "docs")
STEMS = ("parse", "render", "index", "gate", "store")


def hits(files: dict[str, int], form: str = "{path}:{n}:    return handler({n})") -> list[str]:
    """Search hits: so many in each file, at ascending lines."""
    return [form.format(path=path, n=7 * k + 3) for path, count in files.items() for k in range(count)]


def numbers(text: str, pattern: str) -> int:
    """The sum of the numbers that a pattern finds."""
    return sum(int(found.replace(",", "")) for found in re.findall(pattern, text))


MODES = {
    "path, line": hits({"src/a.py": 9, "src/b.py": 3}),
    "path, line, column": hits({"src/a.py": 9, "src/b.py": 3}, "{path}:{n}:5:    return handler({n})"),
    "windows paths": hits({"C:\\src\\a.py": 9, "C:\\src\\b.py": 3}),
    "paths with blanks": hits({"My Notes/a file.md": 9, "My Notes/b file.md": 3}),
    "names without extension": hits({"Makefile": 9, "LICENSE": 3}),
    "context": ["src/a-1.py-2-before", "src/a-1.py:3:hit", "src/a-1.py-4-after", "--", *hits({"src/b.py": 5})],
    "heading": ["src/a.py", "3:one", "9:two", "", "src/b.py", "4:three", "5-beside", "", "src/c.py", "7:four"],
    "opencode": [
        "Found 4 matches",
        "/w/a.ts:",
        "  Line 3: one",
        "  Line 9: two",
        "",
        "/w/b.ts:",
        "  Line 4: three",
        "  Line 5: four",
    ],
    "gemini": [
        "Found 3 matches for pattern",
        "---",
        "File: src/a.py",
        "L3: one",
        "L9: two",
        "---",
        "File: src/b.py",
        "L4: three",
    ],
    "one file": [f"{n}:  handler({n})" for n in (3, 9, 12, 13, 40, 41, 90)],
    "counts": [f"src/{name}.py:{n}" for n, name in enumerate(("a", "b", "c", "d", "e", "f", "g"))],
    "files": ["Found 7 files", *(f"src/{name}.py" for name in "abcdefg")],
    "agent with a space": hits({"src/a.py": 9}, "{path}:{n}: return handler({n})"),
}

OTHERS = {
    "access log": [f'10.0.0.{n} - - [10/Oct/2025:13:55:{n:02} +0000] "GET /x:80 HTTP/1.1" 200 {n}' for n in range(40)],
    "bracketed access log": [f"[10/Oct/2025:13:55:{n:02} +0000] GET /x:80" for n in range(40)],
    "path before a time": [f"/var/log/x.log:12:30:{n:02} started worker {n}" for n in range(40)],
    "path before a two-digit time": [f"/var/log/x.log:{n % 24}:30:45 started" for n in range(40)],
    "iso times": [f"2026-11-12 12:00:{n:02} started worker" for n in range(40)],
    "iso times with T": [f"2026-11-12T12:00:{n:02}Z started worker" for n in range(40)],
    "slashed dates": [f"2026/11/12 10:12:{n:02} started worker" for n in range(40)],
    "python trace": [
        "Traceback (most recent call last):",
        *(f'  File "/a/b{n}.py", line {n}, in f' for n in range(20)),
        "ValueError: x",
    ],
    "javascript trace": ["Error: x", *(f"    at f (/srv/app/b{n}.js:{n}:5)" for n in range(1, 20))],
    "go trace": [line for n in range(1, 20) for line in ("main.f(0x1)", f"\t/srv/app/main.go:{n} +0x1d")],
    "addresses": [f"http://localhost:8080/x/{n}" for n in range(20)],
    "ports": [f"redis.example.com:6379: connection {n} refused" for n in range(20)],
    "yaml": [f"key_{n}: {n}" for n in range(40)],
    "yaml with numbers as keys": [f"{n}: name {n}" for n in range(1, 40)],
    "gcc": [f"src/a.c:{n}:5: error: expected ';' before x" for n in range(1, 40)],
    "mypy": [f"src/a.py:{n}: error: Incompatible types" for n in range(1, 40)],
    "ruff": [f"src/a.py:{n}:1: F401 unused import" for n in range(1, 40)],
    "go vet": [f"./main.go:{n}:2: undefined: x{n}" for n in range(1, 40)],
    "log with its source": [f"worker.py:{n * 37 % 101 + 1}: said {n}" for n in range(60)],
    "prose": ["It was a bright cold day in April, and the clocks were striking thirteen."] * 40,
    "clock": [f"12:30:{n:02} started" for n in range(40)],
    "durations": [f"step{n}.build:{n}" for n in (3, 3, 3, 3, 3, 3, 3)] * 3,
    "nothing": [""] * 40,
}


@pytest.mark.parametrize("mode", MODES)
def test_every_output_mode_of_a_search_is_recognised(mode: str) -> None:
    assert search.fits(MODES[mode])


@pytest.mark.parametrize("other", OTHERS)
def test_what_only_looks_like_a_search_is_not_taken_for_one(other: str) -> None:
    assert not search.fits(OTHERS[other])


def test_two_hundred_files_are_all_named() -> None:
    files = {f"src/part{n % 9}/module_{n}.py": n % 7 + 1 for n in range(200)}
    shaped, text = shown(search, hits(files), 2_500)
    assert shaped.why == "every file named, first hits where there is room"
    assert all(path.rpartition("/")[2] in text for path in files)


def test_one_file_with_thousands_of_hits_fills_the_room() -> None:
    lines = hits({"src/a.py": 5_000})
    shaped, _ = shown(search, lines, 2_000)
    assert 1_800 <= weighed(lines, shaped.pieces, COUNT) <= 2_000
    assert f"{5_000 - len(kept(shaped)):,} more hits in this file" in notes(shaped)


def test_hits_are_spread_fairly() -> None:
    lines = hits({"src/many.py": 900, "src/few.py": 2, "src/some.py": 30})
    shaped, _ = shown(search, lines, 800)
    there = [lines[n] for n in kept(shaped)]
    assert sum(line.startswith("src/few.py") for line in there) == 2
    assert sum(line.startswith("src/some.py") for line in there) >= 10


def test_counts_are_exact_with_context() -> None:
    lines = [
        line
        for n in range(60)
        for line in (f"a/x.py-{n * 9 + 1}-before", f"a/x.py:{n * 9 + 2}:hit", f"a/x.py-{n * 9 + 3}-after", "--")
    ]
    shaped, _ = shown(search, lines, 400)
    assert "60 hits in 1 file, 120 lines of context" in notes(shaped)
    assert sum(":hit" in lines[n] for n in kept(shaped)) + numbers(notes(shaped), r"([\d,]+) more hits?") == 60


def test_a_file_that_context_names_in_full_is_one_file() -> None:
    lines = [
        line
        for n in range(40)
        for line in (
            f"/home/dev/repo/src/a.py-{n * 9 + 1}-x",
            f"src/a.py:{n * 9 + 2}:hit",
            f"/home/dev/repo/src/a.py:{n * 9 + 3}:hit",
        )
    ]
    shaped, _ = shown(search, lines, 400)
    assert notes(shaped).startswith("80 hits in 1 file")


def test_the_tools_own_words_stay() -> None:
    lines = ["Found 900 matches (showing first 400)", *hits({f"src/a{n}.py": 40 for n in range(10)}), "", "(Results truncated)"]
    _, text = shown(search, lines, 600)
    assert text.splitlines()[1] == "Found 900 matches (showing first 400)"
    assert text.splitlines()[-1] == "(Results truncated)"


def test_a_hit_in_a_minified_file_is_counted_and_not_shown() -> None:
    lines = ["dist/app.min.js:1:" + "var a=1;" * 50_000, *hits({"src/a.py": 300})]
    shaped, text = shown(search, lines, 500)
    assert 0 not in kept(shaped)
    assert "dist/: app.min.js 1" in text


def test_a_list_of_counts_keeps_every_file_and_the_largest_counts() -> None:
    lines = [f"src/part{n % 5}/m{n}.py:{(n * 37) % 50}" for n in range(300)]
    shaped, text = shown(search, lines, 2_500)
    total = sum((n * 37) % 50 for n in range(300))
    assert f"{total:,} hits in 294 files, none in 6 other files" in text
    assert any(lines[n].endswith(":49") for n in kept(shaped))
    assert numbers("\n".join(line.partition(":")[2] for line in text.splitlines() if "/: " in line), r"\.py ([\d,]+)") == total


def test_more_files_than_the_room_can_name_are_counted_by_folder() -> None:
    lines = hits({f"src/part{n % 40}/sub{n % 7}/module_{n}.py": 1 for n in range(5_000)})
    shaped, text = shown(search, lines, 1_000)
    assert shaped.why == "folders with counts, and first hits"
    assert "5,000 hits in 5,000 files" in text


@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=40),
    around=st.booleans(),
    room=st.integers(600, 4_000),
    words=st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=60),
)
def test_laws_of_a_shaped_search(counts: list[int], around: bool, room: int, words: str) -> None:
    files = {f"{FOLDERS[n % 4]}/{STEMS[n % 5]}_{n}.py": count for n, count in enumerate(counts)}
    lines = hits(files, "{path}:{n}:" + words.replace("{", "").replace("}", ""))
    if around:
        lines = [part for line in lines for part in (line, re.sub(r"^([^:]+):(\d+):.*", r"\1-\2-beside", line, flags=re.DOTALL))]
    shaped = lawful(search, lines, room)
    if shaped is None:
        return
    there = [lines[n] for n in kept(shaped)]
    said = notes(shaped)
    assert said.startswith(f"{sum(counts):,} hit")
    if shaped.why == "every file named, first hits where there is room":
        text = "\n".join((*there, said))
        assert all(path.rpartition("/")[2] in text for path in files)
        direct = sum(line.startswith(f"{path}:") for path in files for line in there)
        rest = numbers(said, r"([\d,]+) more hits?") + numbers(said, r"([\d,]+) hits? in [\d,]+ (?:more )?files?:")
        assert direct + rest == sum(counts)


@given(
    lines=st.lists(st.text(st.sampled_from("ab/.:-0123456789 \x00\ud800[é"), max_size=30), max_size=60), room=st.integers(1, 300)
)
def test_hostile_lines_are_harmless(lines: list[str], room: int) -> None:
    lawful(search, lines, room)


@pytest.mark.parametrize(
    "line", ["a" * 3_000_000, "a/" * 1_500_000, "a.b-1" * 600_000, " " * 3_000_000, "a:" * 1_500_000, "\x00" * 3_000_000]
)
def test_gigantic_lines_are_refused_in_no_time(line: str) -> None:
    assert not search.fits([line] * 8)


def test_what_grep_complained_of_between_its_hits_stays_once_of_each_kind() -> None:
    lines = hits({f"src/part{n}.py": 9 for n in range(100)})
    for n in range(30):
        lines.insert(20 * n + 50, f"grep: 'secret/{n}.key': Permission denied")
    lines.insert(300, "grep: src/gone.py: No such file or directory")
    _, text = shown(search, lines, 1_500)
    assert text.count("Permission denied") == 1
    assert "grep: src/gone.py: No such file or directory" in text
