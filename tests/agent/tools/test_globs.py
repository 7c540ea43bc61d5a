from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.tools.glob import globs
from tenure.errors import InputError


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "src/deep/a.py"], ["a.pyc", "py"]),
        ("**/*.py", ["a.py", "src/deep/a.py"], ["a.txt"]),
        ("./*.py", ["a.py"], []),
        ("*.{py,ts}", ["a.py", "x/b.ts"], ["a.js"]),
        ("*.{p{y,l},ts}", ["a.py", "a.pl", "a.ts"], ["a.p"]),
        ("**/test_*.py", ["test_a.py", "x/y/test_b.py"], ["x/a_test_.py"]),
        ("**/api/**/*.py", ["api/a.py", "x/api/y/z/a.py"], ["x/apis/a.py"]),
        ("?.md", ["a.md"], ["ab.md"]),
        ("[a-c].md", ["b.md"], ["d.md"]),
        ("[!a-c].md", ["d.md"], ["b.md"]),
        ("[^a-c].md", ["d.md"], ["b.md"]),
        (r"\*.md", ["*.md"], ["a.md"]),
        ("a**b", ["axxb", "x/ab"], ["a/b"]),
        ("!*.py", ["a.ts"], ["a.py", "x/b.py"]),
        ("!src/*.py", ["a.py", "src/x/b.py"], ["src/b.py"]),
        ("**", ["a", "x/y"], []),
        ("[", ["["], ["a"]),
        ("{a", ["{a"], ["a"]),
    ],
)
def test_a_pattern_holds_for_what_gitignore_would_have_it_hold_for(pattern: str, yes: list[str], no: list[str]) -> None:
    found = globs(pattern)
    assert found.folder == ""
    assert [path for path in yes if not found.match(path)] == []
    assert [path for path in no if found.match(path)] == []


@pytest.mark.parametrize(
    ("pattern", "folder", "names", "depth", "yes", "no"),
    [
        ("src/**/*.ts", "src", "*.ts", 0, ["a.ts", "x/a.ts"], ["a.js"]),
        ("src/*.ts", "src", "*.ts", 1, ["a.ts"], ["x/a.ts"]),
        ("src/", "src", "", 0, ["a.ts", "x/a.ts"], []),
        ("/etc/*.conf", "/etc", "*.conf", 1, ["a.conf"], ["x/a.conf"]),
        ("../x/*", "../x", "*", 1, ["a"], ["b/a"]),
        ("src/a.py", "src", "a.py", 1, ["a.py"], ["b.py"]),
        ("{src,lib}/**/*.py", "", "*.py", 0, ["src/a.py", "lib/x/b.py"], ["a.py", "test/a.py"]),
        ("src/{a,b/c}.py", "src", "", 2, ["a.py", "b/c.py"], ["c.py"]),
    ],
)
def test_the_folder_that_a_pattern_begins_with_is_where_to_look(
    pattern: str, folder: str, names: str, depth: int, yes: list[str], no: list[str]
) -> None:
    found = globs(pattern)
    assert (found.folder, found.names, found.depth) == (folder, names, depth)
    assert [path for path in yes if not found.match(path)] == []
    assert [path for path in no if found.match(path)] == []


@pytest.mark.parametrize("pattern", ["", "  ", "!", "x" * 2_000, "a\0b", "{a,b}" * 20])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InputError):
        globs(pattern)


def test_no_pattern_takes_for_ever() -> None:
    for pattern in ("**/a" * 200, "*a" * 300 + "b", "[a" * 300, "{" * 500, "**/" * 300 + "*x", "{a,{b,{c,{d," * 20):
        with suppress(InputError):
            assert not globs(pattern).match("a/" * 100 + "a" * 200 + "?")


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_pattern_can_be_held_against_any_path(pattern: str, path: str) -> None:
    with suppress(InputError):
        globs(pattern).match(path)
