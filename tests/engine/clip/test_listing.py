import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shaping import COUNT, kept, lawful, notes, shown

from tenure.engine.clip import listing
from tenure.engine.clip.shape import Shaped, weighed


def tree(folders: int, files: int) -> list[str]:
    """As `tree` prints it: so many folders with so many files each."""
    lines = ["."]
    for n in range(folders):
        lines.append(f"├── part{n}")
        lines += [f"│   {'└' if k + 1 == files else '├'}── module_{n}_{k}.py" for k in range(files)]
    return [*lines, "", f"{folders} directories, {folders * files} files"]


def long(n: int, where: str = "") -> list[str]:
    """As `ls -l` prints it."""
    return (
        [f"{where}:"] * bool(where)
        + ["total 48"]
        + [f"-rw-r--r--  1 dev staff {k * 7919:8} Jan {k % 28 + 1:2} 10:{k % 60:02} file_{k}.py" for k in range(n)]
    )


def entries(shaped: Shaped, mark: str) -> int:
    """Entries named and entries counted."""
    counted = [row for line in notes(shaped).split("\n")[1:] for row in line.split("; ") if not row.startswith("below ")]
    named = sum(row.count(mark) for row in counted if ": " in row or mark in row)
    more = sum(int(n.replace(",", "")) for row in counted for n in re.findall(r"and ([\d,]+) more$", row))
    files = [int(n.replace(",", "")) for row in counted if mark not in row for n in re.findall(r"([\d,]+) files?$", row)]
    return named + more + sum(files)


LISTINGS = {
    "find": [f"./src/part{n % 3}/m{n}.py" for n in range(40)],
    "glob": [f"/home/dev/repo/src/m{n}.py" for n in range(40)],
    "windows": [f"C:\\repo\\src\\m{n}.py" for n in range(40)],
    "found files": ["Found 40 files", *(f"src/part{n % 3}/m{n}.py" for n in range(40))],
    "paths with blanks": [f"./My Notes/m {n}.md" for n in range(40)],
    "ls -l": long(40),
    "ls -lR": [*long(20, "./src"), "", *long(20, "./tests")],
    "ls -R": [
        ".:",
        "src",
        "tests",
        "",
        "./src:",
        *(f"m{n}.py" for n in range(20)),
        "",
        "./tests:",
        *(f"t{n}.py" for n in range(20)),
    ],
    "tree": tree(4, 8),
    "ascii tree": [".", *(f"|-- m{n}.py" for n in range(40)), "", "0 directories, 40 files"],
    "dashed": ["- /home/dev/repo/", *(line for n in range(8) for line in (f"  - part{n}/", f"    - m{n}.py", f"    - n{n}.py"))],
}

OTHERS = {
    "prose": ["It was a bright cold day in April, and the clocks were striking thirteen."] * 40,
    "words": ["alpha", "beta", "gamma", "delta"] * 10,
    "markdown list": [f"- a thing that matters, number {n}" for n in range(40)],
    "yaml": [f"- name: x{n}" for n in range(40)],
    "urls": [f"https://example.com/x/{n}" for n in range(40)],
    "requests": [f"[GET] http://localhost:3000/x/{n} => [200] OK" for n in range(40)],
    "imports": [f"from a.b{n} import c" for n in range(40)],
    "hits": [f"src/a.py:{n}: x" for n in range(1, 40)],
    "diffstat": [f" src/a{n}.py | {n} ++--" for n in range(40)],
    "code": ["def f(a/b):", "    return a/b;", "x = y/z"] * 20,
    "log": [f"2026-01-01T12:00:{n:02} INFO src/a.py started" for n in range(40)],
    "nothing": [""] * 40,
}


@pytest.mark.parametrize("kind", LISTINGS)
def test_every_kind_of_listing_is_recognised(kind: str) -> None:
    assert listing.fits(LISTINGS[kind])


@pytest.mark.parametrize("other", OTHERS)
def test_what_only_looks_like_a_listing_is_not_taken_for_one(other: str) -> None:
    assert not listing.fits(OTHERS[other])


def test_paths_become_a_tree_that_names_them_all() -> None:
    lines = [f"/home/dev/repo/src/part{n % 6}/module_{n}.py" for n in range(120)]
    shaped, text = shown(listing, lines, 1_200)
    assert weighed(lines, shaped.pieces, COUNT) < COUNT("\n".join(lines)) * 0.6
    assert "120 paths in all:\nbelow /home/dev/repo/src/:" in text
    assert all(f"module_{n}.py" in text for n in range(120))


def test_folders_of_more_paths_than_fit_count_what_they_hold() -> None:
    lines = [f"src/part{n % 6}/module_{n}.py" for n in range(3_000)]
    _, text = shown(listing, lines, 500)
    assert sum(int(n) for n in re.findall(r"part\d/ (\d+) files", text)) == 3_000


def test_very_many_folders_are_counted_together() -> None:
    lines = [f"src/part{n % 6}/sub{n}/module.py" for n in range(3_000)]
    _, text = shown(listing, lines, 300)
    counts = re.findall(r"(?:part\d/|sub\d+/|other folders,) ([\d,]+) files?", text)
    assert sum(int(n.replace(",", "")) for n in counts) == 3_000


def test_every_folder_of_a_tree_is_named_and_its_entries_add_up() -> None:
    lines = tree(12, 80)
    shaped, text = shown(listing, lines, 1_500)
    assert all(f"part{n}/" in text for n in range(12))
    assert entries(shaped, "module_") == 960
    assert "960 paths in all" in text
    assert text.splitlines()[-1] == "12 directories, 960 files"


def test_sections_of_ls_are_named_and_their_entries_add_up() -> None:
    lines = [line for n in range(8) for line in ("", *long(90, f"./part{n}"))][1:]
    shaped, text = shown(listing, lines, 3_000)
    assert all(f"part{n}/" in text for n in range(8))
    assert entries(shaped, "file_") == 720


def test_a_long_listing_of_all_names_shows_more_of_its_lines_where_there_is_room() -> None:
    lines = long(200)
    shaped, text = shown(listing, lines, 3_000)
    assert all(f"file_{n}.py" in text for n in range(200))
    assert len(kept(shaped)) > 40
    assert weighed(lines, shaped.pieces, COUNT) >= 2_700


def test_a_folder_and_its_parent_are_no_entries_of_ls() -> None:
    lines = [
        "./a:",
        "total 8",
        *(f"drwxr-xr-x  2 dev staff  4096 Jan  1 10:00 {name}" for name in (".", "..", *(f"d{n}" for n in range(40)))),
    ]
    assert "40 paths in all" in shown(listing, lines, 500)[1]


def test_what_find_complained_of_is_no_path_and_one_of_each_kind_stays() -> None:
    lines = [f"/srv/part{n % 6}/module_{n}.py" for n in range(3_000)]
    for n in range(40):
        lines.insert(50 * n + 30, f"find: \u2018/srv/secret{n}\u2019: Permission denied")
    lines.insert(1_234, "find: File system loop detected: No such file or directory")
    _, text = shown(listing, lines, 900)
    assert text.count("Permission denied") == 1
    assert "No such file or directory" in text
    assert "3,000 paths in all, 41 other lines" in text


def test_many_folders_in_one_are_the_largest_and_the_count_of_the_others() -> None:
    lines = [f"./lib/pkg{n}/file_{k}.py" for n in range(900) for k in range(1 + n % 5)]
    shaped, text = shown(listing, lines, 600)
    assert weighed(lines, shaped.pieces, COUNT) >= 480
    counts = re.findall(r"(?:pkg\d+/|other folders,) ([\d,]+) files?", text)
    assert sum(int(n.replace(",", "")) for n in counts) == len(lines)


@given(
    paths=st.lists(st.lists(st.text("abcö_-.", min_size=1, max_size=8), min_size=2, max_size=5), min_size=12, max_size=200),
    room=st.integers(200, 2_000),
)
def test_laws_of_a_shaped_list_of_paths(paths: list[list[str]], room: int) -> None:
    lawful(listing, ["/".join(parts) + ".py" for parts in paths], room)


@given(folders=st.integers(1, 30), files=st.integers(1, 60), room=st.integers(200, 2_000))
def test_laws_of_a_shaped_tree(folders: int, files: int, room: int) -> None:
    lines = tree(folders, files)
    shaped = lawful(listing, lines, room)
    if shaped is not None:
        assert entries(shaped, "module_") == folders * files


@given(counts=st.lists(st.integers(1, 80), min_size=1, max_size=12), room=st.integers(300, 2_000))
def test_laws_of_shaped_sections(counts: list[int], room: int) -> None:
    lines = [line for n, count in enumerate(counts) for line in ("", *long(count, f"./part{n}"))][1:]
    shaped = lawful(listing, lines, room)
    if shaped is not None:
        assert entries(shaped, "file_") == sum(counts)


@given(lines=st.lists(st.text(st.sampled_from("ab/.:- │├─\x00\ud800é"), max_size=30), max_size=60), room=st.integers(1, 300))
def test_hostile_lines_are_harmless(lines: list[str], room: int) -> None:
    lawful(listing, lines, room)


@pytest.mark.parametrize(
    "line", ["a" * 3_000_000, "a/" * 1_500_000, "│   " * 750_000, " " * 3_000_000, "- " * 1_500_000, "\x00" * 3_000_000]
)
def test_gigantic_lines_are_refused_in_no_time(line: str) -> None:
    assert not listing.fits([line] * 20)


def test_a_tree_nested_very_deeply_is_harmless() -> None:
    lawful(listing, [f"{'│   ' * (n % 60)}├── d{n}" for n in range(5_000)], 500)
