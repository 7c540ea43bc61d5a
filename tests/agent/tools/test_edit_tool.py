import json
from pathlib import Path

import pytest
from calling import refused, told, workspace
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.agent.approval import CallEffect
from tenure.agent.tools.edit import Edit, Replacement, explain_miss, replace_text
from tenure.agent.tools.read import Read
from tenure.agent.tools.write import Write
from tenure.agent.workspace import Workspace
from tenure.errors import InputError

EDIT = Edit()
SOURCE = "def f(a):\n    if a:\n        return 'x'\n    return \"y\"\n\ndef g():\n\treturn 1\n\ndef f(a):\n    pass\n"


def miss(tmp_path: Path, old: str) -> str:
    ws = workspace(tmp_path)
    (ws.root / "s.py").write_text(SOURCE)
    text = refused(EDIT, ws, path="s.py", old=old, new="z")
    assert (ws.root / "s.py").read_text() == SOURCE
    return text.removeprefix("edit: s.py: ")


def test_what_stands_there_once_is_replaced(ws: Workspace) -> None:
    (ws.root / "s.py").write_text(SOURCE)
    assert told(EDIT, ws, path="s.py", old="        return 'x'", new="        return 'z'") == "Edited s.py: line 3."
    assert (ws.root / "s.py").read_text() == SOURCE.replace("'x'", "'z'")


def test_what_stands_there_more_than_once_is_said_to_with_the_lines(tmp_path: Path) -> None:
    assert miss(tmp_path, "def f(a):") == (
        "old is not unique: it is there 2 times, at lines 1, 9: give more lines around the one that is meant, or set replace_all"
    )
    ws = workspace(tmp_path)
    assert (
        told(EDIT, ws, path="s.py", old="def f(a):", new="def h():", replace_all=True)
        == "Edited s.py: 2 places, the first at line 1."
    )
    (ws.root / "many").write_text("a\n" * 100)
    assert (
        "it is there 100 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and more"
        in refused(EDIT, ws, path="many", old="a", new="b")
    )
    (ws.root / "aaa").write_text("aaa")
    assert "it is there 2 times" in refused(EDIT, ws, path="aaa", old="aa", new="b")  # within itself


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("if a:\n    return 'x'", "the same stands at lines 2 to 3 but for indentation (tabs, spaces, or how deep). The file has there:\n2\t    if a:\n3\t        return 'x'"),
        ("def g():\n    return 1", "but for indentation (tabs, spaces, or how deep). The file has there:\n6\tdef g():\n7\t\treturn 1"),
        ("def g():  \n\treturn 1 ", "the same stands at lines 6 to 7 but for spaces at the ends of lines"),
        ("        return \u2018x\u2019", "the same stands at line 3 but for quotes, dashes or other signs that look alike"),
        ("return  'x'", "but for spaces within lines"),
        ("DEF G():", "the same stands at line 6 but for upper and lower case"),
        ("2\t    if a:\n3\t        return 'x'", "your text begins its lines with the line numbers of a listing"),
        ("    if a:\r\n        return 'x'", "your text has CRLF line ends, and the file has LF"),
        ("if a:\\n        return 'x'", "your text is escaped once too often: it is there, at line 2"),
        ("if a: return 'x'", "the same words stand from line 2 on, broken into other lines:\n2\t    if a:\n3\t        return 'x'"),
        ("    if a:\n        return 'q'\n    return \"y\"", "nearest are lines 2 to 4, where 2 of 3 lines are the same:\n2\t    if a:"),
        ("        return 'x' or 1", "nearest is line 3:\n3\t        return 'x'"),
        ("nothing of the kind", "nothing like it is there: read the file, or grep for a word of it"),
        (" " * 20, "nothing like it is there"),
    ],
)  # fmt: skip
def test_a_miss_says_what_is_different_and_where(old: str, said: str, tmp_path: Path) -> None:
    assert said in miss(tmp_path, old)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "no old, expected old and new, or edits"),
        ({"old": "a"}, "no new, expected"),
        ({"old": "", "new": "a"}, "old is empty"),
        ({"old": "'x'", "new": "'x'"}, "old and new are the same"),
        ({"old": "a", "new": "b", "edits": [{"old": "a", "new": "b"}]}, "both old and new and edits"),
        ({"edits": [{"old": "a", "new": "b"}] * 101}, "101 of them, expected at most 100"),
        ({"edits": "[]"}, "edits: found a string, expected an array"),
    ],
)
def test_an_unclear_edit_is_refused_in_words(arguments: dict[str, object], said: str, ws: Workspace) -> None:
    (ws.root / "s.py").write_text(SOURCE)
    assert said in refused(EDIT, ws, path="s.py", **arguments)


def test_several_edits_are_made_one_after_another_or_not_at_all(ws: Workspace) -> None:
    path = ws.root / "s.py"
    path.write_text(SOURCE)
    text = refused(EDIT, ws, path="s.py", edits=[{"old": "'x'", "new": "'z'"}, {"old": "missing", "new": "y"}])
    assert text.startswith("edit: s.py, edit 2 of 2: old is not in it")
    assert path.read_text() == SOURCE
    told(
        EDIT,
        ws,
        path="s.py",
        edits=[{"old": "'x'", "new": "'z'"}, {"old": "'z'", "new": "'w'"}, {"old": "def", "new": "DEF", "replace_all": True}],
    )
    assert path.read_text() == SOURCE.replace("'x'", "'w'").replace("def", "DEF")


def test_crlf_and_encodings_stay_as_they_are(ws: Workspace) -> None:
    path = ws.root / "u.txt"
    path.write_bytes("\ufeffhé\r\nb\r\n".encode("utf-16-be"))
    told(EDIT, ws, path="u.txt", old="hé\nb", new="hö\r\nc\nd")
    assert path.read_bytes() == "\ufeffhö\r\nc\r\nd\r\n".encode("utf-16-be")
    path.write_bytes(b"mixed\r\nends\n")
    told(EDIT, ws, path="u.txt", old="mixed\r\nends", new="same")
    assert path.read_bytes() == b"same\n"
    path.write_bytes(b"caf\xe9 x\n")
    assert "'€' is not in its encoding, latin-1" in refused(EDIT, ws, path="u.txt", old="x", new="€")


def test_what_cannot_be_edited_is_refused(ws: Workspace) -> None:
    (ws.root / "bin").write_bytes(bytes(range(256)) * 10)
    (ws.root / "broken").write_bytes(b"ok\n" * 30_000 + b"\xff")
    (ws.root / "s.py").write_text("x")
    assert "no text: binary" in refused(EDIT, ws, path="bin", old="a", new="b")
    assert "byte 90,000 is no utf-8" in refused(EDIT, ws, path="broken", old="a", new="b")
    assert refused(EDIT, ws, path="s.pyx", old="a", new="b").endswith("Did you mean s.py?")
    assert "this is a folder" in refused(EDIT, ws, path=".", old="a", new="b")


def test_an_edit_of_a_file_that_changed_says_so_and_does_not_count_as_having_read_it(ws: Workspace) -> None:
    path = ws.root / "s.py"
    path.write_text("a\nb\n")
    told(Read(), ws, path="s.py")
    path.write_text("a\nc\n")
    assert "It had changed since you read it" in told(EDIT, ws, path="s.py", old="a", new="z")
    assert "it has changed" in refused(Write(), ws, path="s.py", content="")
    told(Read(), ws, path="s.py")
    assert "changed" not in told(EDIT, ws, path="s.py", old="z", new="y")
    told(Write(), ws, path="s.py", content="all of it is known")


def test_an_edit_asks_with_a_difference_for_each_place(ws: Workspace) -> None:
    (ws.root / "s.py").write_text(SOURCE)
    arguments = {"path": "s.py", "edits": [{"old": "'x'", "new": "'z'\n# new"}, {"old": "    pass", "new": "    ..."}]}
    found = EDIT.needs(json.dumps(arguments), ws)
    assert found is not None
    assert (found.act, found.summary) == (CallEffect.EDIT, "edit s.py")
    assert "-        return 'x'\n+        return 'z'\n+# new\n" in found.detail
    assert found.detail.endswith("-    pass\n+    ...")
    impossible = EDIT.needs(json.dumps({"path": "s.py", "old": "q", "new": "r"}), ws)
    assert impossible is not None
    assert impossible.detail.startswith("It cannot be done as things are: ")
    assert EDIT.needs('{"path":"s.py"}', ws) is None


@given(st.text(), st.text(min_size=1), st.text())
def test_a_replacement_is_exact_once_or_nothing(text: str, old: str, new: str) -> None:
    assume(old != new)
    try:
        after, _ = replace_text(text, Replacement(old=old, new=new), "f")
    except InputError:
        assert text.count(old) != 1 or text.find(old, text.find(old) + 1) >= 0
    else:
        assert text.count(old) == 1
        assert after == text.replace(old, new)


@given(st.text(alphabet="ab \n\t\"'“", max_size=200), st.text(alphabet="ab \n\t\"'“", min_size=1, max_size=40))
def test_a_miss_always_has_something_to_say(text: str, old: str) -> None:
    assume(old not in text)
    assert explain_miss(text, old)


def test_many_empty_lines_that_are_not_in_a_file_are_looked_at_in_linear_time() -> None:
    assert explain_miss("a", "\n" * 200_000 + "b")  # minutes, were it quadratic
