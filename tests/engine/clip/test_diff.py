import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaping import COUNT, kept, lawful, notes, shaped

from tenure.engine.clip import diff
from tenure.engine.clip.diff import ADDED, CONTEXT, FILE, HUNK, REMOVED, read
from tenure.engine.clip.shape import fair


def hunk(changes: Sequence[str], context: int = 3, start: int = 1) -> list[str]:
    """A hunk with its head; `changes` carry their signs."""
    around = [f" context line {n} of the file" for n in range(context)]
    old = sum(line[0] == "-" for line in changes) + 2 * context
    new = sum(line[0] == "+" for line in changes) + 2 * context
    return [f"@@ -{start},{old} +{start},{new} @@ def work():", *around, *changes, *around]


def file(path: str, *hunks: list[str], extended: Sequence[str] = ()) -> list[str]:
    """A file's part of a git diff."""
    body = [line for each in hunks for line in each]
    return [f"diff --git a/{path} b/{path}", *extended, "index 1234567..89abcde 100644", f"--- a/{path}", f"+++ b/{path}", *body]


def changes(size: int, name: str = "value") -> list[str]:
    return [line for n in range(size) for line in (f"-    {name}_{n} = {n}", f"+    {name}_{n} = {n + 1}")]


COMMIT = [
    "commit 0123456789abcdef0123456789abcdef01234567",
    "Author: A. Writer <writer@example.org>",
    "Date:   Sat Mar 7 12:12:35 2026 +0100",
    "",
    "    Count the lines that changed",
    "",
    "    Because nobody did.",
    "",
]

COMBINED = [
    "diff --cc src/merge.py",
    "index 1234567,89abcde..fedcba9",
    "--- a/src/merge.py",
    "+++ b/src/merge.py",
    "@@@ -1,3 -1,3 +1,4 @@@",
    "  first",
    "- ours",
    " -theirs",
    "++both",
    "+ kept",
    "  last",
]


def seen(lines: Sequence[str], room: int) -> list[str]:
    return [lines[at] for at in kept(shaped(diff, lines, room))]


# What is a diff


@pytest.mark.parametrize(
    "lines",
    [
        file("a.py", hunk(changes(3))),
        [*COMMIT, *file("a.py", hunk(changes(3)))],
        COMBINED,
        ["diff --git a/old.py b/new.py", "similarity index 100%", "rename from old.py", "rename to new.py"],
        ["diff --git a/a.png b/a.png", "index 12..34 100644", "Binary files a/a.png and b/a.png differ"],
        ["--- a.txt\t2026-01-01", "+++ b.txt\t2026-01-01", "@@ -1 +1 @@", "-x", "+y"],
        ["On branch main", "---", *file("a.py", hunk(changes(3)))],
        ["@@ -1,2 +1,2 @@", "-x", "+y", " z"],
    ],
)
def test_what_git_and_diff_print_is_a_diff(lines: list[str]) -> None:
    assert diff.fits(lines)


@pytest.mark.parametrize(
    "lines",
    [
        ["# Changes", "", "- a bullet", "+ another bullet", "- a third", "", "--- a rule", "+++ b"],
        ["# Howto", *["prose about patches"] * 30, "```diff", *file("a.py", hunk(changes(3))), "```", *["more prose"] * 30],
        [f"{n:6d}→{line}" for n, line in enumerate(file("a.py", hunk(changes(9))), 1)],
        [f"{n:6d}\t{line}" for n, line in enumerate(file("a.py", hunk(changes(9))), 1)],
        ["total 8", "-rw-r--r-- 1 me me 12 a.py", "-rw-r--r-- 1 me me 12 b.py"],
        [" src/a.py | 12 ++++----", " 1 file changed, 6 insertions(+), 6 deletions(-)"],
        ["+1 on this", "-1 on that", "@someone said so"],
        [],
        [""],
    ],
)
def test_bullets_listings_and_numbered_files_are_no_diffs(lines: list[str]) -> None:
    assert not diff.fits(lines)


# How it is read


def test_files_are_counted_exactly() -> None:
    lines = [*file("src/a.py", hunk(["+x", "+y", "-z"]), hunk(["-w"], start=90)), *file("b.py", hunk(["+new"]))]
    assert [(found.path, found.added, found.removed) for found in read(lines).files] == [("src/a.py", 2, 2), ("b.py", 1, 0)]


def test_a_removed_line_that_looks_like_a_file_head_is_a_removed_line() -> None:
    lines = file("notes.sql", hunk(["--- a/old comment", "+++ b/new comment"], context=1))
    patch = read(lines)
    assert len(patch.files) == 1
    assert [patch.classes[at] for at in range(4, 9)] == [HUNK, CONTEXT, REMOVED, ADDED, CONTEXT]


def test_a_merges_lines_are_counted_by_their_columns() -> None:
    (found,) = read(COMBINED).files
    assert (found.path, found.added, found.removed) == ("src/merge.py", 2, 2)


def test_a_plain_diff_of_several_files_names_each() -> None:
    lines = [line for name in ("a.txt", "b.txt") for line in (f"--- {name}", f"+++ {name}\tnow", "@@ -1 +1 @@", "-x", "+y")]
    assert [found.path for found in read(lines).files] == ["a.txt", "b.txt"]


def test_a_diff_that_was_cut_or_filtered_ends_each_hunk_at_the_next_head() -> None:
    lines = [
        "diff --git a/a b/a",
        "@@ -1,90 +1,90 @@",
        "-x",
        "+y",
        "@@ -200,9 +200,9 @@",
        "+z",
        "diff --git a/b b/b",
        "@@ -1 +1 @@",
        "+w",
    ]
    assert [(found.path, found.added, found.removed) for found in read(lines).files] == [("a", 2, 1), ("b", 1, 0)]


def test_a_removed_file_is_named_by_its_old_path() -> None:
    (found,) = read(["--- a/gone.txt", "+++ /dev/null", "@@ -1 +0,0 @@", "-x"]).files
    assert found.path == "gone.txt"


# What is shown


def test_files_and_hunks_stay_named_and_changed_lines_come_before_context() -> None:
    lines = [line for n in range(8) for line in file(f"src/part{n}.py", *(hunk(changes(4), 20, 100 * k + 1) for k in range(4)))]
    patch = read(lines)
    shown = set(kept(shaped(diff, lines, 5_000)))
    assert {at for at, kind in enumerate(patch.classes) if kind in (FILE, HUNK)} <= shown
    changed = [at for at, kind in enumerate(patch.classes) if kind in (ADDED, REMOVED)]
    assert sum(at in shown for at in changed) > 0.8 * len(changed)
    assert sum(patch.classes[at] == CONTEXT for at in shown) < len(changed)


def test_a_file_that_loses_lines_says_how_many_of_how_many() -> None:
    lines = file("src/big.py", hunk(changes(400)))
    found = shaped(diff, lines, 400)
    patch = read(lines)
    shown = kept(found)
    left = [400 - sum(patch.classes[at] == kind for at in shown) for kind in (ADDED, REMOVED)]
    assert f"+{left[0]} -{left[1]} of the file's +400 -400" in notes(found)


def test_a_small_file_is_not_starved_by_a_large_one() -> None:
    lines = [*file("large.py", hunk(changes(2_000))), *file("small.py", hunk(["-    limit = 1", "+    limit = 2"]))]
    text = seen(lines, 600)
    assert "-    limit = 1" in text
    assert "+    limit = 2" in text


def test_what_tools_write_comes_after_what_people_write() -> None:
    lines = [*file("package-lock.json", hunk(changes(2_000, "lock"))), *file("src/app.py", hunk(changes(20, "real")))]
    text = seen(lines, 900)
    assert sum("real" in line for line in text) == 40
    assert "diff --git a/package-lock.json b/package-lock.json" in text


def test_the_commit_keeps_its_head_and_subject() -> None:
    text = seen([*COMMIT, *file("a.py", hunk(changes(900)))], 400)
    assert text[:3] == COMMIT[:3]
    assert COMMIT[4] in text


def test_renames_modes_and_binaries_are_shown() -> None:
    lines = [
        "diff --git a/old.py b/new.py",
        "similarity index 100%",
        "rename from old.py",
        "rename to new.py",
        "diff --git a/run.sh b/run.sh",
        "old mode 100644",
        "new mode 100755",
        "diff --git a/logo.png b/logo.png",
        "index 12..34 100644",
        "Binary files a/logo.png and b/logo.png differ",
        *file("a.py", hunk(changes(900))),
    ]
    text = seen(lines, 500)
    for line in ("rename from old.py", "rename to new.py", "old mode 100644", "new mode 100755", lines[9]):
        assert line in text


def test_the_lines_of_a_binary_patch_are_only_counted() -> None:
    patch = ["diff --git a/a.bin b/a.bin", "index 12..34 100644", "GIT binary patch", "literal 9000"]
    lines = [*patch, *(f"zcmV;I1d0000{n:04d}PX+{n:04d}" for n in range(500)), "", *file("a.py", hunk(changes(3)))]
    found = shaped(diff, lines, 300)
    assert "502 lines of a binary patch" in notes(found)
    assert "+    value_0 = 1" in [lines[at] for at in kept(found)]


@pytest.mark.parametrize("room", [700, 1_000])
def test_every_file_is_named_even_in_a_small_room(room: int) -> None:
    lines = [line for n in range(60) for line in file(f"src/area_{n // 20}/part{n}.py", hunk(changes(9)))]
    text = "\n".join((notes(shaped(diff, lines, room)), *seen(lines, room)))
    assert all(f"part{n}.py" in text for n in range(60))


def test_files_too_many_to_be_named_are_folders_with_exact_counts_and_the_recall_that_names_them() -> None:
    lines = [line for n in range(2_000) for line in file(f"src/area_{n // 100}/part{n}.py", hunk(changes(1)))]
    first = notes(shaped(diff, lines, 800))
    assert first.startswith(
        '2,000 files with +2,000 -2,000, each with its changed lines; recall with pattern="^diff --git" names every one:'
    )
    assert sum(int(n.replace(",", "")) for n in re.findall(r"([\d,]+) files, [\d,]+ changed lines", first)) == 2_000
    assert sum(int(n.replace(",", "")) for n in re.findall(r"files, ([\d,]+) changed lines", first)) == 4_000


def test_a_file_changed_in_many_commits_is_named_once() -> None:
    commit = [
        line
        for n in range(80)
        for line in (f"commit {n:040x}", "Author: A", "", f"    Change {n}", "", *file("src/a.py", hunk(changes(2))))
    ]
    first = notes(shaped(diff, commit, 700))
    assert first.startswith("1 file with +160 -160")


def test_a_room_for_less_than_one_file_name_is_none() -> None:
    assert diff.choose(file("src/a.py", hunk(changes(90))), 3, COUNT) is None


# Laws

WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n"), max_size=50)
CHANGES = st.lists(st.tuples(st.sampled_from("+-"), WORDS).map("".join), max_size=30)
HUNKS = st.builds(hunk, CHANGES, st.integers(0, 5), st.integers(1, 900))
PATHS = st.from_regex(r"[a-z]{1,9}(/[a-z]{1,9}){0,3}\.(py|lock|md)", fullmatch=True)
FILES = st.builds(lambda path, hunks: file(path, *hunks), PATHS, st.lists(HUNKS, max_size=4))
DIFFS = st.lists(st.one_of(FILES, st.just(COMMIT), st.just(COMBINED)), min_size=1, max_size=8).map(
    lambda parts: [line for part in parts for line in part]
)
DAMAGED = st.tuples(DIFFS, st.lists(st.tuples(st.integers(0, 400), WORDS), max_size=6)).map(
    lambda both: [
        *both[0][: len(both[0]) * 2 // 3],
        *(text for _, text in both[1]),
        *both[0][len(both[0]) * 2 // 3 + len(both[1]) :],
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.one_of(DIFFS, DAMAGED), st.integers(10, 1_500))
def test_kept_lines_ascend_and_what_is_shown_fits_the_room(lines: list[str], room: int) -> None:
    lawful(diff, lines, room, 1.1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(PATHS, st.lists(CHANGES, max_size=4), st.integers(0, 4)), min_size=1, max_size=6))
def test_every_files_counts_are_exact(parts: list[tuple[str, list[list[str]], int]]) -> None:
    lines = [line for path, hunks, context in parts for line in file(path, *(hunk(each, context) for each in hunks))]
    expected = [(path, *(sum(line[0] == sign for each in hunks for line in each) for sign in "+-")) for path, hunks, _ in parts]
    assert [(found.path, found.added, found.removed) for found in read(lines).files] == expected


@settings(max_examples=40, deadline=None)
@given(st.one_of(DIFFS, DAMAGED))
def test_files_ascend_and_never_overlap(lines: list[str]) -> None:
    files = read(lines).files
    assert all(file.start < file.stop <= len(lines) for file in files)
    assert all(first.stop <= second.start for first, second in pairwise(files))


@settings(max_examples=60, deadline=None)
@given(DIFFS)
def test_everything_is_shown_where_there_is_room(lines: list[str]) -> None:
    if read(lines).files:
        assert kept(shaped(diff, lines, 60_000)) == list(range(len(lines)))


@given(st.lists(st.integers(0, 1_000), max_size=30), st.integers(0, 5_000))
def test_fair_parts_give_nobody_more_than_wanted_and_nothing_away(wants: list[int], room: int) -> None:
    parts = fair(wants, room)
    assert all(0 <= part <= want for part, want in zip(parts, wants, strict=True))
    assert sum(parts) <= room
    assert sum(parts) >= min(room, sum(wants)) - len(wants)


@pytest.mark.parametrize(
    "line", ["\0" * 9_000, "-" * 500_000, "@" * 500_000, "@@ -" * 50_000, "diff --git a/" + "x/" * 100_000, " " * 500_000]
)
def test_hostile_lines_are_harmless(line: str) -> None:
    lines = [line, *file("a.py", hunk(changes(3))), line]
    diff.fits(lines)
    found = diff.choose(lines, 300, COUNT)
    assert found is not None
    assert "diff --git a/a.py b/a.py" in [lines[at] for at in kept(found)]
