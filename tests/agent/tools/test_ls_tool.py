from calling import refused, told

from tenure.agent.tools.ls import Ls
from tenure.agent.workspace import Workspace

LS = Ls()


def test_folders_come_first_and_files_with_their_sizes(ws: Workspace) -> None:
    for name in ("src", ".git"):
        (ws.root / name).mkdir()
    (ws.root / "b.py").write_text("12345")
    (ws.root / ".env").write_text("")
    (ws.root / "a").symlink_to("b.py")
    (ws.root / "out").symlink_to("/etc")
    expected = ".git/\nout/ -> /etc, outside the workspace\nsrc/\n.env 0\na -> b.py\nb.py 5"
    assert told(LS, ws) == expected
    assert told(LS, ws, path=str(ws.root)) == expected
    assert told(LS, ws, path="src") == "[empty folder]"


def test_names_are_harmless_and_many_are_counted(ws: Workspace) -> None:
    (ws.root / "\x1b[31mred\nblue\t").write_text("")
    assert told(LS, ws) == "␛[31mred␊blue␉ 0"
    for n in range(1_200):
        (ws.root / f"f{n:04}").touch()
    text = told(LS, ws)
    assert text.endswith("\nf0998 0\n[201 more of 1,201; glob finds by name]")


def test_what_is_no_folder_is_said(ws: Workspace) -> None:
    (ws.root / "src").mkdir()
    (ws.root / "a.py").write_text("")
    assert refused(LS, ws, path="a.py") == "ls: a.py is a file, not a folder"
    assert refused(LS, ws, path="scr") == "ls: there is no folder scr. Did you mean src?"
    assert "expected the path" in refused(LS, ws, path="\0")
    assert LS.needs("{}", ws) is None


def test_links_in_a_circle_stand_in_the_list_like_any_other(ws: Workspace) -> None:
    (ws.root / "self").symlink_to("self")
    (ws.root / "nowhere").symlink_to("gone")
    (ws.root / "a.py").write_text("x")
    text = told(LS, ws)
    assert text.splitlines()[0] == "a.py 1"
    assert {line.partition(" -> ")[0] for line in text.splitlines()[1:]} == {"nowhere", "self"}
