import subprocess
from pathlib import Path

import pytest
from calling import workspace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shell_commands import ASKING, CORES, DESTROYING, DISGUISES, FREE, OUTSIDE

from tenure.agent.approval import Act
from tenure.agent.tools.shell.judge import judged
from tenure.agent.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    where = workspace(tmp_path)
    (where.root / "src").mkdir()
    (where.root / "out").symlink_to("/etc")
    return where


@pytest.mark.parametrize("command", FREE)
def test_what_only_looks_is_free(command: str, ws: Workspace) -> None:
    assert judged(command, ws) is None


@pytest.mark.parametrize("command", ASKING)
def test_what_may_change_the_workspace_asks(command: str, ws: Workspace) -> None:
    found = judged(command, ws)
    assert found is not None
    assert found.act is Act.COMMAND, found.reason
    assert found.exact == f"bash {command}"


@pytest.mark.parametrize("command", OUTSIDE)
def test_what_leaves_the_workspace_is_known_for_it(command: str, ws: Workspace) -> None:
    found = judged(command, ws)
    assert found is not None
    assert found.act is Act.OUTSIDE, found.reason
    assert found.broad == ()


@pytest.mark.parametrize("command", DESTROYING)
def test_what_cannot_be_undone_is_known_in_every_disguise_and_never_remembered(command: str, ws: Workspace) -> None:
    found = judged(command, ws)
    assert found is not None
    assert found.act is Act.DESTROY, found.reason
    assert (found.exact, found.broad) == ("", ())


@given(st.lists(st.sampled_from(DISGUISES), min_size=1, max_size=3), st.sampled_from(CORES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_disguise_however_deep_makes_a_destructive_command_free(ws: Workspace, disguises: list[str], core: str) -> None:
    command = core
    for disguise in disguises:
        if "'" in disguise and "'" in command:
            continue  # quotes within quotes end them
        command = disguise.format(command)
    found = judged(command, ws)
    assert found is not None, command
    assert found.act in (Act.DESTROY, Act.OUTSIDE, Act.COMMAND)


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("core", CORES)
def test_one_disguise_leaves_a_destructive_command_what_it_is(disguise: str, core: str, ws: Workspace) -> None:
    found = judged(disguise.format(core), ws)
    assert found is not None
    assert found.act is Act.DESTROY, found.reason


WORDS = st.sampled_from(
    "ls cat echo find sed sort head tee touch rm mv cp git bash sh eval xargs awk test [ ] -rf -delete -exec {} + \\; ; && || | & > >> < 2>&1 ( ) { } $("
    " ` \" ' 'a' \"b\" canary src . .. * $X ${X} if then fi for i in do done while true <<E E \n status reset --hard -i -n p s/a/b/w 1p -o -c -e x=1"
    " \\ # !".split(" ")
)


@given(st.lists(WORDS, min_size=1, max_size=9))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_free_changes_nothing_when_a_real_shell_runs_it(ws: Workspace, words: list[str]) -> None:
    command = " ".join(words)
    if judged(command, ws) is not None:
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
    found = judged(command, ws)
    assert found is not None
    assert found.broad == keys


def test_a_long_command_is_shown_in_a_line_and_whole_and_harmless(ws: Workspace) -> None:
    found = judged("make \x1b[31m" + "x" * 300 + "\nmake two", ws)
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
        "env " * 12_000,
        "eval " * 10_000,
        "rm " * 16_000,
        "A=b " * 12_000,
        "bash -c " * 6_000,
        "foo " + "bash -c 'x' " * 4_000,
        "git push " * 5_000,
        "echo " + "$((a+b)) " * 5_000,
        "cat <<A <<B\n" * 3_000,
        "find . " + "-exec ls {} + " * 3_000,
    ],
    ids=lambda command: command[:12],
)
def test_no_command_is_free_for_being_long_or_takes_for_ever(command: str, ws: Workspace) -> None:
    assert judged(command, ws) is not None


@given(st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_can_be_judged(ws: Workspace, command: str) -> None:
    judged(command, ws)
