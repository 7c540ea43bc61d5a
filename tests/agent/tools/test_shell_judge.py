import subprocess
from pathlib import Path

import pytest
from calling import workspace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shell_commands import ASKING, CORES, DESTROYING, DISGUISES, FREE, OUTSIDE

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.tools.shell.judge import judge
from tenure.agent.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    where = workspace(tmp_path)
    (where.root / "src").mkdir()
    (where.root / "out").symlink_to("/etc")
    return where


@pytest.mark.parametrize("command", FREE)
def test_what_only_looks_is_free(command: str, ws: Workspace) -> None:
    assert judge(command, ws) is None


@pytest.mark.parametrize("command", ASKING)
def test_what_may_change_the_workspace_asks(command: str, ws: Workspace) -> None:
    found = judge(command, ws)
    assert found is not None
    assert found.act is CallEffect.COMMAND, found.reason
    assert found.exact == f"bash {command}"


@pytest.mark.parametrize("command", OUTSIDE)
def test_what_leaves_the_workspace_is_known_for_it(command: str, ws: Workspace) -> None:
    found = judge(command, ws)
    assert found is not None
    assert found.act is CallEffect.OUTSIDE, found.reason
    assert found.broad == ()


@pytest.mark.parametrize("command", DESTROYING)
def test_what_cannot_be_undone_is_known_in_every_disguise_and_never_remembered(command: str, ws: Workspace) -> None:
    found = judge(command, ws)
    assert found is not None
    assert found.act is CallEffect.DESTROY, found.reason
    assert (found.exact, found.broad) == ("", ())


@given(st.lists(st.sampled_from(DISGUISES), min_size=1, max_size=3), st.sampled_from(CORES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_disguise_however_deep_makes_a_destructive_command_free(ws: Workspace, disguises: list[str], core: str) -> None:
    command = core
    for disguise in disguises:
        if "'" in disguise and "'" in command:
            continue  # quotes within quotes end them
        command = disguise.format(command)
    found = judge(command, ws)
    assert found is not None, command
    assert found.act in (CallEffect.DESTROY, CallEffect.OUTSIDE, CallEffect.COMMAND)


@pytest.mark.parametrize("core", CORES)
def test_one_disguise_leaves_a_destructive_command_what_it_is(core: str, ws: Workspace) -> None:
    found = {disguise: judge(disguise.format(core), ws) for disguise in DISGUISES}
    assert [disguise for disguise, each in found.items() if each is None or each.act is not CallEffect.DESTROY] == []


WORDS = st.sampled_from(
    "ls cat echo find sed sort head tee touch rm mv cp git bash sh eval xargs awk test [ ] -rf -delete -exec {} + \\; ; && || | & > >> < 2>&1 ( ) { } $("
    " ` \" ' 'a' \"b\" canary src . .. * $X ${X} if then fi for i in do done while true <<E E \n status reset --hard -i -n p s/a/b/w 1p -o -c -e x=1"
    " \\ # !".split(" ")
)


@given(st.lists(WORDS, min_size=1, max_size=9))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_free_changes_nothing_when_a_real_shell_runs_it(ws: Workspace, words: list[str]) -> None:
    command = " ".join(words)
    if judge(command, ws) is not None:
        return
    canary = ws.root / "canary"
    canary.write_text("a\nb\n")
    before = sorted(str(path) for path in ws.root.rglob("*"))
    subprocess.run(
        ["bash", "-c", command],
        cwd=ws.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert canary.read_text() == "a\nb\n", command
    assert sorted(str(path) for path in ws.root.rglob("*")) == before, command


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("npm test && npm run build", ("npm test", "npm run build")),
        ("cd src && make", ("make",)),
        ("git add . && git commit -m 'rm -rf is gone'", ("git add", "git commit")),
        ("python -m pytest -q tests", ("python -m pytest",)),
        ("uv run pytest -x; ls", ("uv run pytest",)),
        ("./run.sh a; pytest", ("./run.sh", "pytest")),
        ("python x.py", ("python x.py",)),
        ("echo hi > notes.txt", ("write notes.txt",)),
        ("python -c 'print(1)'", ()),
        ("uv run python -c 'print(1)'", ()),
        ("npm test; curl http://x", ()),
        ("uv run --with x pytest", ()),
        ("PATH=. make", ()),
    ],
)
def test_the_likes_of_a_command_are_its_programs_and_subcommands(command: str, keys: tuple[str, ...], ws: Workspace) -> None:
    found = judge(command, ws)
    assert found is not None
    assert found.broad == keys


def test_a_long_command_is_shown_in_a_line_and_whole_and_harmless(ws: Workspace) -> None:
    found = judge("make \x1b[31m" + "x" * 300 + "\nmake two", ws)
    assert found is not None
    assert found.summary.startswith("make ␛[31mxxx")
    assert found.summary.endswith("…")
    assert "\n" not in found.summary
    assert found.detail.endswith("\nmake two")
    assert "\x1b" not in found.detail


@pytest.mark.parametrize(
    "command",
    [
        "$(" * 20_000,
        "`" * 40_000,
        "${" * 20_000,
        "env " * 4_000,
        "eval " * 4_000,
        "rm " * 4_000,
        "A=b " * 4_000,
        "bash -c " * 4_000,
        "foo " + "bash -c 'x' " * 2_000,
        "git push " * 2_000,
        "echo " + "$((a+b)) " * 5_000,
        "cat <<A <<B\n" * 1_500,
        "find . " + "-exec ls {} + " * 1_500,
    ],
    ids=lambda command: command[:12],
)
def test_no_command_is_free_for_being_long_or_takes_for_ever(command: str, ws: Workspace) -> None:
    assert judge(command, ws) is not None


@given(st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_can_be_judged(ws: Workspace, command: str) -> None:
    judge(command, ws)


@pytest.mark.parametrize(
    "command",
    [
        "mv b.txt a.txt", "cp b.txt a.txt", "echo x > a.txt", "cat b.txt >| a.txt", "truncate -s 0 a.txt", "tee a.txt < b.txt", "rm a.txt",
        "cp b.txt .", "mv sub/a.txt .", "rsync -a --del b c", "git checkout a.txt", "git restore a.txt", "xargs --arg-file list rm -r", "./made.sh", "bash made.sh",
        "bash < made.sh", "python3 < made.sh", "git tag -d x", "git tag -f x", "hg purge", "docker push x",
        "echo 'ls' > new.sh; bash new.sh", "sh ./made.sh x",
    ],
)  # fmt: skip
def test_what_would_be_lost_for_good_asks_in_every_mode(command: str, ws: Workspace) -> None:
    (ws.root / "sub").mkdir()
    for name in ("a.txt", "b.txt", "sub/a.txt", "made.sh"):
        (ws.root / name).write_text("ls\n")
    ws.wrote(ws.root / "made.sh")
    found = judge(command, ws)
    assert found is not None
    assert found.act is CallEffect.DESTROY, found.reason


def test_what_git_or_a_copy_could_bring_back_may_be_overwritten(ws: Workspace) -> None:
    for name in ("a.txt", "b.txt"):
        (ws.root / name).write_text("ls\n")
    subprocess.run(["git", "init", "-q"], cwd=ws.root, check=True)
    subprocess.run(["git", "add", "a.txt"], cwd=ws.root, check=True)
    copied = Workspace(ws.root, home=ws.home, keeps=lambda path: path.name == "b.txt")
    acts = {
        name: [(judge(f"echo x > {name}", each) or found_nothing()).act for each in (ws, copied)]
        for name in ("a.txt", "b.txt", "new")
    }
    assert acts == {
        "a.txt": [CallEffect.COMMAND] * 2,
        "b.txt": [CallEffect.DESTROY, CallEffect.COMMAND],
        "new": [CallEffect.COMMAND] * 2,
    }


def found_nothing() -> Approval:
    raise AssertionError("free")


@pytest.mark.parametrize(
    "command",
    [
        "go build -o /opt/x .", "make -C /opt", "gcc a.c -o../x", "tar xf a.tar -C /opt", "tar xf a.tar --directory=/opt", "unzip a.zip -d /opt",
        "curl -o/opt/x http://x", "wget -P /opt http://x", "split a.txt /opt/x", "7z x a.7z -so /opt/x", "pip install x --target-dir=/opt", "cp -t /opt a",
        "cp --target-directory /opt a", "npm install --prefix /opt", "ln -s /etc etc", "ln /etc/passwd x", "echo x > out/../x", "cd out && cd .. && echo x > y",
        "cd src/../.. && touch x", "rsync -a x/ /opt/x", "convert a.png /opt/a.png", "echo x > ~root/x", "cd ~root && touch x", "mv /etc/hosts x", "git -C /opt commit -m x", "echo x > $OLDPWD/y",
    ],
)  # fmt: skip
def test_an_output_anywhere_else_is_outside_however_it_is_named(command: str, ws: Workspace) -> None:
    found = judge(command, ws)
    assert found is not None
    assert found.act is CallEffect.OUTSIDE, found.reason


def test_a_program_of_the_workspace_is_not_the_one_of_its_name(ws: Workspace) -> None:
    (ws.root / "bin").mkdir()
    (ws.root / "bin" / "ls").write_text("")
    for path in (f"{ws.root}/bin:/usr/bin", "bin:/usr/bin"):
        assert judge("ls", ws, path=path) is not None
        assert judge("cat a.txt", ws, path=path) is None


@pytest.mark.parametrize(("setting", "free"), [("[user]\n name = a", True), ('[diff "x"]\n textconv = ./run', False), ("[include]\n path = ../x", False), ("[core]\n fsmonitor = ./run", True), ("[diff]\n external = ./run", False), ('[filter "x"]\n clean = ./run', False), ('[remote "o"]\n uploadpack = ./run', False)])  # fmt: skip
def test_git_is_free_where_the_repository_names_no_programs(setting: str, free: bool, ws: Workspace) -> None:
    (ws.root / ".git").mkdir()
    (ws.root / ".git" / "config").write_text(setting)
    assert (judge("git diff", ws) is None) == free
    assert judge("ls", ws) is None


def test_a_search_of_a_whole_folder_is_free_unless_keys_are_in_it(ws: Workspace) -> None:
    searches = ("grep -rn x .", "find . -type f | xargs grep x", "rg x", "cat $(git ls-files)")
    assert [judge(each, ws) for each in searches] == [None] * 4
    (ws.root / "src" / ".env").write_text("x")
    assert [judge(each, ws) is None for each in searches] == [False, False, True, False]
    assert judge("grep -rn x . --include='*.py'", ws) is None


def test_a_command_that_ran_elsewhere_is_judged_without_this_disk(ws: Workspace) -> None:
    (ws.root / "src" / ".env").write_text("x")
    assert judge("grep -rn x .", ws) is not None
    assert judge("grep -rn x .", ws, disk=False) is None


@pytest.mark.parametrize("command", ["ls {}", "ls {}]", "sed '{}x' a", "dash -c '{}'", "awk '{}' a", "{}"])
@pytest.mark.parametrize("sign", ["[", "[:", " ", "{", "(", "1", "*", "<"])
def test_a_run_of_one_sign_without_end_is_judged_in_linear_time(command: str, sign: str, ws: Workspace) -> None:
    judge(command.format(sign * (49_000 // len(sign))), ws)  # minutes, were it quadratic
