import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import called, cut_off_after, here, refused, stopped_after, told, workspace

from tenure.agent.tools import landlock
from tenure.agent.tools.bash import Bash
from tenure.agent.tools.sandbox import CommandReach, Means, Sandbox, Wall, Walls, find_means, start
from tenure.agent.workspace import Workspace
from tenure.errors import InputError

BWRAP = find_means() is Means.BUBBLEWRAP
LANDLOCK = landlock.version() >= 3 and find_means({"PATH": "/nowhere"}) is Means.LANDLOCK
by_bubblewrap = pytest.param(Means.BUBBLEWRAP, marks=pytest.mark.skipif(not BWRAP, reason="needs bubblewrap and user namespaces"))
by_landlock = pytest.param(Means.LANDLOCK, marks=pytest.mark.skipif(not LANDLOCK, reason="needs Landlock"))
each = pytest.mark.parametrize("means", [by_bubblewrap, by_landlock])


def look(ws: Workspace, means: Means, command: str, **settings: object) -> str:
    """What a command that nobody was asked about prints, whatever comes of it."""
    return called(Bash(walls=Walls(means=means)), here(ws, reach=CommandReach.LOOK, **settings), command=command).text


def allowed(ws: Workspace, means: Means, command: str, **settings: object) -> str:
    """What a command that a person allowed prints."""
    return called(Bash(walls=Walls(means=means)), here(ws, reach=CommandReach.WORKSPACE, **settings), command=command).text


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is neither the workspace's nor one for temporary files."""
    temporary = ("/tmp", "/var/tmp", "/dev/shm", os.environ.get("TMPDIR", "/tmp"))
    places = [
        place
        for place in (Path(__file__).parents[3], Path.home())
        if not str(place).startswith(temporary) and os.access(place, os.W_OK)
    ]
    if not places:
        pytest.skip("needs a folder that is not for temporary files")
    folder = places[0] / f".outside-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@each
def test_a_command_judged_free_by_mistake_changes_no_file(ws: Workspace, means: Means, outside: Path) -> None:
    canary = ws.root / "canary"
    canary.write_text("as it was")
    before = canary.stat()
    ways = [
        "echo x > canary", "rm canary", "mv canary gone", "truncate -s 0 canary", "ln canary linked", "mkdir new", "touch new", f"touch {outside}/new",
        "chmod 000 canary", "chown 1:1 canary", "touch -d 1999-01-01 canary", "mkfifo pipe", "ln -s canary link", "setfattr -n user.x -v 1 canary",
        f"{sys.executable} -c \"import os; os.truncate('canary', 0)\"",
        f"{sys.executable} -c \"import os; os.open('canary', os.O_RDONLY | os.O_TRUNC)\"",
    ]  # fmt: skip
    look(ws, means, "; ".join(ways))
    assert canary.read_text() == "as it was"
    assert (canary.stat().st_mode, canary.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert [path.name for path in ws.root.iterdir()] == ["canary"]
    assert not list(outside.iterdir())


@each
def test_a_command_judged_free_still_reads_and_runs_git_and_writes_to_its_temporary_folder(ws: Workspace, means: Means) -> None:
    (ws.root / "a").write_text("one\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], cwd=ws.root, check=True)
    (ws.root / "a").write_text("two\n")
    text = look(
        ws,
        means,
        "git status --short && git log --format=%s && git diff --stat | cat && cat <(echo process) && seq 3 | sort -r | head -1"
        " && echo kept > $TMPDIR/t && cat $TMPDIR/t && cat << END > /dev/null\nhere\nEND\necho err >&2 && head -c 4 /etc/passwd",
    )
    for part in (" M a", "first", "1 file changed", "process", "3", "kept", "err", "root", "exit code 0"):
        assert part in text, (part, text)


@each
def test_a_command_judged_free_cannot_read_keys(ws: Workspace, means: Means) -> None:
    places = [
        ws.home / ".ssh/id_x",
        ws.home / ".aws/credentials",
        ws.home / ".netrc",
        ws.root / ".env",
        ws.root / "deep/down/.env.local",
    ]
    places.append(ws.home / ".config/gh/hosts.yml")
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("CANARY")
    (ws.root / "link").symlink_to(ws.home / ".ssh")
    (ws.root / ".env.example").write_text("TEMPLATE")
    (ws.home / ".config/other").write_text("OTHER")
    text = look(
        ws,
        means,
        f"cat {' '.join(map(str, places))} link/id_x; grep -rs CANARY {ws.home} .; cat .env.example {ws.home}/.config/other",
    )
    assert "CANARY" not in text.replace("grep -rs CANARY", "")
    assert "TEMPLATE" in text
    assert "OTHER" in text


@each
def test_a_file_of_keys_that_the_repository_has_is_not_reported_as_changed(ws: Workspace, means: Means) -> None:
    (ws.root / ".env.development").write_text("PORT=1")
    (ws.root / ".env").write_text("CANARY")
    for command in ("init -q", "add .env.development", "-c user.name=a -c user.email=a@b commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=ws.root, check=True)
    text = look(ws, means, "git status --short; cat .env.development; cat .env")
    assert "PORT=1" in text
    assert "?? .env\n" in text
    assert " .env.development" not in text
    assert "CANARY" not in text


@each
def test_a_key_that_a_link_of_another_name_hides_behind_is_not_read(ws: Workspace, means: Means) -> None:
    (ws.home / "kept elsewhere").mkdir()
    (ws.home / "kept elsewhere/id").write_text("CANARY")
    (ws.home / ".ssh").symlink_to(ws.home / "kept elsewhere")
    assert "CANARY" not in look(ws, means, f"cat {ws.home}/.ssh/id '{ws.home}/kept elsewhere/id'")


@each
def test_a_command_judged_free_reaches_no_socket(tmp_path: Path, ws: Workspace, means: Means) -> None:
    listening = [socket.socket(socket.AF_INET), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    with listening[0] as tcp, listening[1] as path, listening[2] as abstract:
        tcp.bind(("127.0.0.1", 0))
        path.bind(str(tmp_path / "docker.sock"))
        abstract.bind(f"\0tenure-{os.getpid()}")
        for each_ in listening:
            each_.listen()
            each_.setblocking(False)
        (ws.root / "reach.py").write_text(
            "import socket\n"
            "for family, kind, at in [\n"
            f"    (socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', {tcp.getsockname()[1]})),\n"
            f"    (socket.AF_UNIX, socket.SOCK_STREAM, {str(tmp_path / 'docker.sock')!r}),\n"
            f"    (socket.AF_UNIX, socket.SOCK_STREAM, '\\0tenure-{os.getpid()}'),\n"
            "    (socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', 53)),\n"
            "]:\n"
            "    try:\n"
            "        socket.socket(family, kind).connect(at)\n"
            "        print('REACHED', at)\n"
            "    except OSError as error:\n"
            "        print('kept out', error)\n"
        )
        text = look(ws, means, f"{sys.executable} reach.py")
        assert "REACHED" not in text
        assert text.count("kept out") == 4, text
        for each_ in listening:
            with pytest.raises(BlockingIOError):
                each_.accept()


@each
def test_a_command_judged_free_sees_nothing_of_other_processes(ws: Workspace, means: Means) -> None:
    other = subprocess.Popen(["sleep", "60"], env={"CANARY": "CANARY", "PATH": os.environ["PATH"]})
    try:
        text = look(
            ws,
            means,
            f"cat /proc/{other.pid}/environ /proc/{other.pid}/cmdline; kill -9 {other.pid}; ls -l /proc/{other.pid}/fd/",
        )
        assert "CANARY" not in text
        assert "sleep" not in text
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@each
def test_a_command_that_was_allowed_changes_the_workspace_and_temporary_files_and_nothing_else(
    tmp_path: Path, means: Means, outside: Path
) -> None:
    ws = workspace(tmp_path)
    home = outside / "home"
    (home / ".cache").mkdir(parents=True)
    (home / "canary").write_text("as it was")
    ws = Workspace(ws.root, home=home, scratch=ws.scratch)
    text = allowed(
        ws,
        means,
        f"echo in > inside && mkdir -p d && mv inside d/ && echo t > $TMPDIR/t && echo c > {home}/.cache/c; echo out > {home}/canary; touch {outside}/new",
    )
    assert (ws.root / "d/inside").read_text() == "in\n"
    assert (home / ".cache/c").read_text() == "c\n"
    assert (home / "canary").read_text() == "as it was"
    assert not (outside / "new").exists()
    assert "it could change files only in the workspace" in text
    assert "unless the user allows more" in text


@each
def test_a_command_that_was_allowed_to_act_outside_does(tmp_path: Path, means: Means, outside: Path) -> None:
    tool = Bash(walls=Walls(means=means))
    told(tool, here(workspace(tmp_path), reach=CommandReach.ANYWHERE), command=f"touch {outside}/new")
    assert (outside / "new").exists()


@each
def test_a_command_that_was_allowed_keeps_the_network_but_cannot_read_the_agents_own_keys(ws: Workspace, means: Means) -> None:
    keys = ws.home / ".config/tenure"
    keys.mkdir(parents=True)
    (keys / "keys.toml").write_text("CANARY")
    with socket.socket(socket.AF_INET) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        tool = Bash(walls=Walls(means=means, hidden=(keys,)))
        text = called(
            tool, here(ws, reach=CommandReach.WORKSPACE), command=f"cat {keys}/keys.toml; echo hello > /dev/tcp/127.0.0.1/{port}"
        ).text
        assert "CANARY" not in text
        assert "exit code 0" in text
        with listening.accept()[0] as reached:
            assert reached.recv(9) == b"hello\n"


@each
def test_git_commit_in_a_work_tree_that_was_added_is_no_change_outside(tmp_path: Path, means: Means, outside: Path) -> None:
    git = "git -c user.name=a -c user.email=a@b"
    main, tree = outside / "main", outside / "tree"
    for command in (
        f"git init -q {main}",
        f"{git} -C {main} commit -q --allow-empty -m first",
        f"git -C {main} worktree add -q {tree}",
    ):
        subprocess.run(command.split(), check=True, capture_output=True)
    text = allowed(Workspace(tree, home=tmp_path), means, f"touch new && git add new && {git} commit -qm second")
    assert "exit code 0" in text
    log = subprocess.run(["git", "-C", str(tree), "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout == "second\nfirst\n"


@each
def test_a_git_file_that_names_a_folder_of_somebody_else_opens_no_door(tmp_path: Path, means: Means, outside: Path) -> None:
    (outside / "theirs").mkdir()
    (outside / "theirs/commondir").write_text("..")
    (outside / "ws").mkdir()
    (outside / "ws/.git").write_text(f"gitdir: {outside}/theirs")
    (outside / "linked").mkdir()
    (outside / "linked/.git").symlink_to(outside / "theirs")
    for folder in ("ws", "linked"):
        allowed(Workspace(outside / folder, home=tmp_path), means, f"touch {outside}/theirs/new {outside}/new")
    assert not (outside / "theirs/new").exists()
    assert not (outside / "new").exists()


@each
def test_in_a_sandbox_only_the_workspace_is_written_and_no_network_reached(ws: Workspace, means: Means) -> None:
    (ws.home / "note").write_text("words")
    tool = Bash(walls=Walls(means=means, sandbox=Sandbox()))
    with socket.socket(socket.AF_INET) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        text = refused(
            tool,
            ws,
            command=f"echo in > inside; echo t > $TMPDIR/t; head -c 4 /etc/passwd; echo x > /dev/tcp/127.0.0.1/{listening.getsockname()[1]} || echo ALONE;"
            " echo new > /etc/new-file",
        )
    assert "root" in text
    assert "ALONE" in text
    assert (ws.root / "inside").read_text() == "in\n"
    assert not Path("/etc/new-file").exists()


@each
def test_what_leaves_its_group_behind_a_wall_ends_with_it(ws: Workspace, means: Means) -> None:
    for walls, reach in (
        (Walls(means=means, sandbox=Sandbox()), CommandReach.ANYWHERE),
        (Walls(means=means), CommandReach.WORKSPACE),
    ):
        place = here(ws, reach=reach)
        command = "setsid sh -c 'while :; do echo x >> beat; sleep 0.02; done' & sleep 30"
        assert "stopped after 0.3 s" in refused(Bash(walls=walls), place, command=command, timeout_s=0.3)
        size = (ws.root / "beat").stat().st_size
        subprocess.run(["sleep", "0.2"], check=True)
        assert (ws.root / "beat").stat().st_size == size


@each
def test_a_look_behind_a_wall_is_stopped_and_cut_off_like_any_other(ws: Workspace, means: Means) -> None:
    tool = Bash(walls=Walls(means=means))
    outcome = stopped_after(0.3, tool, here(ws, reach=CommandReach.LOOK), command="echo begun; sleep 60")
    assert "begun" in outcome.text
    assert "stopped by the user" in outcome.text
    cut_off_after(0.3, tool, here(ws, reach=CommandReach.LOOK), command="exec sleep 61.5")
    left = subprocess.run(["pgrep", "-f", "sleep 61.5"], capture_output=True, text=True)
    assert left.stdout == ""


@each
def test_a_large_output_behind_a_wall_is_kept_whole(tmp_path: Path, ws: Workspace, means: Means) -> None:
    part = tmp_path / "part"
    outcome = called(
        Bash(walls=Walls(means=means)),
        here(ws, reach=CommandReach.LOOK, part=part, limits={"output_bytes": 1_000}),
        command="seq 5000",
    )
    assert outcome.spill is not None
    assert outcome.spill.size == len("".join(f"{n}\n" for n in range(1, 5001)))


@each
def test_a_server_that_is_to_stay_outlives_an_allowed_command(ws: Workspace, means: Means) -> None:
    text = allowed(ws, means, "setsid sleep 62.5 > log 2>&1 & echo $!")
    pid = int(text.split()[0])
    os.kill(pid, 9)  # raises when it is gone


def test_a_wall_that_was_announced_and_cannot_be_built_lets_nothing_run(
    tmp_path: Path, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (broken / "bwrap").chmod(0o755)
    environment = {"PATH": f"{broken}:{os.environ['PATH']}"}
    text = look(ws, Means.BUBBLEWRAP, "echo RAN; echo ran > ran", environment=environment)
    assert "RAN" not in text
    assert "no wall could be built by bubblewrap (bwrap: setting up uid map: Permission denied)" in text
    assert "nothing was run" in text
    assert not (ws.root / "ran").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    gone = look(ws, Means.BUBBLEWRAP, "echo RAN", environment={"PATH": str(tmp_path)})
    assert "RAN" not in gone
    assert "is gone" in gone


def test_where_there_is_no_wall_a_sandbox_runs_nothing(ws: Workspace) -> None:
    text = refused(Bash(walls=Walls(means=Means.NONE, sandbox=Sandbox())), here(ws), command="echo ran > ran")
    assert "neither bubblewrap (`bwrap`) nor Landlock works here" in text
    assert not (ws.root / "ran").exists()
    with pytest.raises(InputError):
        Walls(means=Means.NONE, sandbox=Sandbox()).around(CommandReach.LOOK, ws, {})


@pytest.mark.skipif(not LANDLOCK, reason="needs Landlock")
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_each_version_of_landlock_keeps_a_look_from_changing_and_from_sockets(tmp_path: Path, version: int) -> None:
    canary = tmp_path / "canary"
    canary.write_text("as it was")
    (tmp_path / "try.py").write_text(
        "import json, os, socket, sys\n"
        f"sys.path.insert(0, {str(Path(landlock.__file__).parent)!r})\n"
        "import landlock\n"
        f"landlock.restrict({{'looking': True, 'network': False, 'writable': [], 'hidden': [], 'version': {version}}})\n"
        f"canary = {str(canary)!r}\n"
        "ways = [lambda: open(canary, 'w'), lambda: os.truncate(canary, 0), lambda: os.open(canary, os.O_RDONLY | os.O_TRUNC),\n"
        "        lambda: os.chmod(canary, 0), lambda: os.rename(canary, canary + '2'), lambda: os.unlink(canary),\n"
        "        lambda: socket.socket(), lambda: socket.socket(socket.AF_UNIX), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]\n"
        "for n, way in enumerate(ways):\n"
        "    try:\n"
        "        way()\n"
        "        print('DONE', n)\n"
        "    except PermissionError:\n"
        "        print('refused')\n"
        "print(open(canary).read())\n"
    )
    text = subprocess.run([sys.executable, str(tmp_path / "try.py")], capture_output=True, text=True)
    assert text.stdout == "refused\n" * 9 + "as it was\n", (text.stdout, text.stderr)


def test_the_walls_of_this_machine_are_tried_out_before_they_are_announced(tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 0\n")  # which builds nothing
    (tmp_path / "bwrap").chmod(0o755)
    assert find_means({"PATH": str(tmp_path)}) is not Means.BUBBLEWRAP


def test_descriptors_of_a_wall_do_not_stay_open(tmp_path: Path) -> None:
    wall = Wall(means=Means.LANDLOCK, folder=tmp_path, writable=(), hidden=(), looking=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    begun = start(["true"], wall, {})
    begun.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
