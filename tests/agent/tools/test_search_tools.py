import os
from pathlib import Path

import pytest
from calling import at_once, called, here, refused, told, workspace

from tenure.agent.tools.glob import Glob
from tenure.agent.tools.grep import Grep
from tenure.agent.workspace import Workspace

GLOB, GREP = Glob(), Grep()
FILES = {
    "src/a.py": "foo\nbar\nfoo2\n",
    "src/b/c.ts": "foo\n",
    "src/b/d.tsx": "x\n",
    ".hidden/h.py": "foo\n",
    ".h.py": "foo\n",
    ".git/config": "foo\n",
    "sub/.git": "foo\n",
    "node_modules/m.py": "foo\n",
    "x.log": "foo\n",
    "keep.log": "foo\n",
    ".gitignore": "node_modules/\n*.log\n!keep.log\n/src/b/skip.py\n",
    "src/b/skip.py": "foo\n",
    "docs/x.md": "l1\nl2\nfoo\nl4\nl5\nl6\nfoo\n",
}


def made(tmp_path: Path, files: dict[str, str] = FILES) -> Workspace:
    """A workspace with files, the later ones newer."""
    ws = workspace(tmp_path)
    for n, (name, text) in enumerate(files.items()):
        path = ws.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline="")
        os.utime(path, (1_000_000 + n, 1_000_000 + n))
    return ws


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "*.py"}, "src/a.py"),
        ({"pattern": "*.py", "hidden": True}, ".h.py\n.hidden/h.py\nsrc/a.py"),
        ({"pattern": "*"}, "docs/x.md\nkeep.log\nsrc/b/d.tsx\nsrc/b/c.ts\nsrc/a.py"),
        ({"pattern": "src/**/*.{ts,tsx}"}, "src/b/d.tsx\nsrc/b/c.ts"),
        ({"pattern": "*.ts", "path": "src/b"}, "src/b/c.ts"),
        ({"pattern": "*.log"}, "keep.log"),
        ({"pattern": "*", "limit": 1}, "docs/x.md\n[4 more of 5: narrow the pattern, or set limit]"),
        ({"pattern": "*.rb"}, "no file matches *.rb (hidden and ignored files are left out)"),
        ({"pattern": "*.rb", "hidden": True, "path": "src"}, "no file matches *.rb in src (ignored files are left out)"),
        ({"pattern": "lib/**"}, "no file matches lib/**: there is no folder lib"),
        ({"pattern": "*", "path": "node_modules"}, "node_modules/m.py"),
    ],
)
def test_glob_finds_by_name_newest_first_and_never_what_git_ignores(
    arguments: dict[str, object], found: str, tmp_path: Path
) -> None:
    assert told(GLOB, made(tmp_path), **arguments) == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({}, "docs/x.md:3:foo\ndocs/x.md:7:foo\nkeep.log:1:foo\nsrc/a.py:1:foo\nsrc/a.py:3:foo2\nsrc/b/c.ts:1:foo"),
        ({"glob": "*.py"}, "src/a.py:1:foo\nsrc/a.py:3:foo2"),
        ({"glob": "*.py", "hidden": True}, ".h.py:1:foo\n.hidden/h.py:1:foo\nsrc/a.py:1:foo\nsrc/a.py:3:foo2"),
        ({"glob": "src/**/*.ts"}, "src/b/c.ts:1:foo"),
        ({"glob": "!*.py", "mode": "files"}, "docs/x.md\nkeep.log\nsrc/b/c.ts"),
        ({"mode": "count", "path": "src"}, "src/a.py:2\nsrc/b/c.ts:1\n[3 matching lines in 2 files]"),
        ({"mode": "count", "limit": 1}, "docs/x.md:2\n[6 matching lines in 4 files, of which 3 are not shown]"),
        ({"mode": "files", "limit": 1}, "docs/x.md\n[3 more of 4 files: narrow the pattern, path or glob, or set limit]"),
        (
            {"limit": 2},
            "docs/x.md:3:foo\ndocs/x.md:7:foo\n[4 more matching lines, in 3 files: narrow the pattern, path or glob, or set limit]",
        ),
        ({"limit": 1}, "docs/x.md:3:foo\n[5 more matching lines, in 4 files: narrow the pattern, path or glob, or set limit]"),
        ({"path": "docs", "context": 1}, "docs/x.md-2-l2\ndocs/x.md:3:foo\ndocs/x.md-4-l4\n--\ndocs/x.md-6-l6\ndocs/x.md:7:foo"),
        ({"path": "src/a.py"}, "src/a.py:1:foo\nsrc/a.py:3:foo2"),
        ({"path": ".h.py"}, ".h.py:1:foo"),
        ({"path": "node_modules"}, "node_modules/m.py:1:foo"),
        ({"pattern": "FOO2", "ignore_case": True}, "src/a.py:3:foo2"),
        ({"pattern": "^foo$", "glob": "*.py"}, "src/a.py:1:foo"),
        ({"pattern": "(?<=fo)o2"}, "src/a.py:3:foo2"),
        ({"pattern": "foo\\nbar"}, "src/a.py:1:foo\nsrc/a.py:2:bar"),
        ({"pattern": "foo\nbar", "literal": True}, "src/a.py:1:foo\nsrc/a.py:2:bar"),
        ({"pattern": "foo.bar", "multiline": True}, "src/a.py:1:foo\nsrc/a.py:2:bar"),
        ({"pattern": "foo.", "literal": True}, "no match for 'foo.' (hidden and ignored files are not searched)"),
        ({"pattern": "-v"}, "no match for '-v' (hidden and ignored files are not searched)"),
        (
            {"pattern": "q", "glob": "*.py", "path": "src"},
            "no match for 'q' in files *.py in src (hidden and ignored files are not searched)",
        ),
    ],
)
def test_grep_finds_by_content_by_path_and_never_in_what_git_ignores(
    arguments: dict[str, object], found: str, tmp_path: Path
) -> None:
    assert told(GREP, made(tmp_path), **{"pattern": "foo", **arguments}) == found


@pytest.mark.parametrize("tool", [GLOB, GREP])
@pytest.mark.parametrize("path", [".git", ".git/hooks", "sub/.git"])
def test_gits_own_folder_is_never_searched(tool: Glob | Grep, path: str, tmp_path: Path) -> None:
    ws = made(tmp_path)
    assert "git's own" in refused(tool, ws, pattern="config", path=path)
    assert ".git/" not in called(tool, ws, pattern="*" if tool is GLOB else "foo", hidden=True).text


def test_the_rules_of_the_folders_above_hold_below(tmp_path: Path) -> None:
    ws = made(
        tmp_path,
        {".gitignore": "*.gen.py\n", "src/.gitignore": "!keep.gen.py\n", "src/a.gen.py": "foo", "src/keep.gen.py": "foo"},
    )
    assert told(GLOB, ws, pattern="*.py", path="src") == "src/keep.gen.py"
    assert told(GREP, ws, pattern="foo", glob="src/*.py") == "src/keep.gen.py:1:foo"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "unclosed group"),
        ("[z-a]", "invalid character class range"),
        ("(?<=f", "missing closing parenthesis"),
        ("x{1000}{1000}{1000}", "compiled regex exceeds size limit"),
    ],
)
def test_a_wrong_pattern_is_explained_in_a_line(pattern: str, said: str, tmp_path: Path) -> None:
    text = refused(GREP, made(tmp_path), pattern=pattern)
    assert said in text
    assert text.endswith("expected a regular expression, or literal")
    assert "\n" not in text


def test_a_missing_path_comes_with_names_like_it(tmp_path: Path) -> None:
    ws = made(tmp_path)
    assert refused(GREP, ws, pattern="foo", path="scr").endswith("expected one that there is: src")
    assert refused(GREP, ws, pattern="foo", path="zzz").endswith("expected a file or folder that there is")


def test_hostile_names_and_lines_are_harmless(tmp_path: Path) -> None:
    ws = made(
        tmp_path,
        {"a\nb:3:x.txt": "foo\n", "esc.txt": "\x1b[31mfoo\x07\n", "long.js": "foo" + "x" * 100_000, "crlf.txt": "foo\r\nbar\r\n"},
    )
    (ws.root / "bin").write_bytes(b"foo\n\0foo\n")
    lines = told(GREP, ws, pattern="foo").splitlines()
    assert lines[:3] == ["a␊b:3:x.txt:1:foo", "crlf.txt:1:foo", "esc.txt:1:␛[31mfoo␇"]
    assert lines[3].startswith("long.js:1:fooxxx")
    assert len(lines[3]) < 600
    assert lines[4:] == []
    assert told(GREP, ws, pattern="foo", path="bin") == "[no text, but it matches too: bin]"
    assert told(GLOB, ws, pattern="a*") == "a␊b:3:x.txt"


def test_far_too_many_matches_come_from_the_first_files_and_that_is_said(tmp_path: Path) -> None:
    ws = made(tmp_path, {f"f{n:03}.txt": ("match " * 60 + "\n") * 200 for n in range(50)})
    text = told(GREP, ws, pattern="match", limit=3)
    assert [line.partition(":m")[0] for line in text.splitlines()[:-1]] == ["f000.txt:1", "f000.txt:2", "f000.txt:3"]
    assert text.endswith("[there is more than the first 3: narrow the pattern, path or glob, or set limit]")


def test_what_a_result_may_hold_is_never_exceeded(tmp_path: Path) -> None:
    ws = made(tmp_path, {f"f{n}.txt": "foo bar baz\n" * 100 for n in range(9)})
    text = told(GREP, here(ws, limits={"output_bytes": 300}), pattern="foo", limit=1_000)
    assert len(text) < 450
    assert "more matching lines, in 9 files" in text


@pytest.mark.parametrize("tool", [GLOB, GREP])
def test_a_search_ends_with_its_time_and_with_the_users_patience(tool: Glob | Grep, tmp_path: Path) -> None:
    ws = made(tmp_path)
    late = here(ws, wait=at_once(), limits={"search_s": 7})
    tries = (
        called(tool, late, pattern="foo") for _ in range(50)
    )  # on a busy machine the search may be done before its time is looked at
    assert next(found.text for found in tries if found.error) == "[stopped after 7 s: narrow it by path or glob]"
    impatient = here(ws)
    impatient.cancel.set()
    tries = (called(tool, impatient, pattern="foo") for _ in range(50))
    assert next(found.text for found in tries if found.error) == "[stopped by the user]"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    ws = made(tmp_path)
    os.mkfifo(ws.root / "pipe")
    assert "there is no pipe to search" in refused(GREP, ws, pattern="foo", path="pipe")
    assert "docs/x.md:3:foo" in told(GREP, ws, pattern="foo")


def test_a_look_where_keys_are_kept_asks(tmp_path: Path) -> None:
    ws = made(tmp_path)
    assert GREP.needs('{"pattern":"x","path":"src"}', ws) is None
    assert GREP.needs('{"pattern":"x","path":"~/.ssh"}', ws) is not None
    assert GLOB.needs('{"pattern":"*"}', ws) is None
