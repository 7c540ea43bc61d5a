"""What a shell command shows and changes, where that is plain."""

import pytest

from tenure.lab.audit.files import FileAccess, Showing, access_of, commanded


@pytest.mark.parametrize(
    ("command", "path", "start", "count"),
    [
        ("cat a.py", "a.py", 1, None),
        ("cd src && cat -n a.py", "src/a.py", 1, None),
        ("sed -n '10,20p' a.py", "a.py", 10, 11),
        ("sed -n 5p a.py", "a.py", 5, 1),
        ("nl -ba a.py | sed -n '120,260p'", "a.py", 120, 141),
        ("head -n 50 a.py", "a.py", 1, 50),
        ("head a.py", "a.py", 1, 10),
        ("tail -n +20 a.py | head -30", "a.py", 20, 30),
        ("cat a.py 2>/dev/null", "a.py", 1, None),
        ("export X=1; cat a.py;", "a.py", 1, None),
    ],
)
def test_a_command_that_does_nothing_but_show_a_file_is_a_read(command: str, path: str, start: int, count: int | None) -> None:
    assert commanded(command) == FileAccess(path=path, shows=Showing(path=path, start=start, count=count))


@pytest.mark.parametrize(
    "command",
    [
        "cat a b", "cat a && ls", "ls && cat a", "cat a | grep foo", "cat *.py", "cat $(ls)", "bash -c 'cat a'", "tail -20 a",
        "sed 's/x/y/' a", "grep x a", "cat a\nls", "cat 'a", "(cat a)", "", "   ", "&&", "cat",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_nothing(command: str) -> None:
    assert commanded(command) == FileAccess()


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("cat > a.py <<'EOF'\nx > y\nEOF", ("a.py",)),
        ("cat <<'EOF' > a.py\nfoo\nEOF\npython b > c", ("a.py",)),
        ("sed -i 's/a/b/' f.py g.py", ("f.py", "g.py")),
        ("cd src && perl -pi -e 's/a/b/' f.py", ("src/f.py",)),
        ("echo x >> log 2>&1", ("log",)),
        ("make | tee -a out.txt", ("out.txt",)),
        ("rm -f a b && mv c d", ("a", "b", "c", "d")),
        ("python t.py > /dev/null 2>&1", ()),
    ],
)
def test_a_command_changes_the_files_that_it_writes_to(command: str, changes: tuple[str, ...]) -> None:
    assert commanded(command).changes == changes


@pytest.mark.parametrize(
    "arguments",
    [
        "", "null", "[]", '"x"', '{"path": 7}', '{"path": ["a"]}', '{"path": ""}', '{"command": {"a": 1}}', "[" * 100_000,
        '{"path": "a", "offset": -1, "limit": 1e400}', '{"path": "a", "view_range": ["x", null]}', '{"command": "\\ud800 \\u0000"}',
        '{"command": "' + "> " * 200_000 + '"}', '{"input": "*** Begin Patch\\n*** Update File: "}', '{"path": "' + "../" * 100_000 + '"}',
    ],
)  # fmt: skip
def test_arguments_of_any_shape_are_harmless(arguments: str) -> None:
    for tool in ("read", "bash", "edit", "apply_patch", "str_replace_editor", "\0", ""):
        deed = access_of(tool, arguments)
        assert len(deed.path) <= 300
        assert all(path for path in deed.changes)
