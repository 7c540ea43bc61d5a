import shutil
import subprocess
from pathlib import Path

import pytest
from calling import called, here, refused, told, workspace

from tenure.agent.tools.bash import Bash
from tenure.agent.tools.sandbox import Sandbox
from tenure.errors import InputError


def works() -> bool:
    """Whether this machine lets bubblewrap work."""
    bwrap = shutil.which("bwrap")
    return (
        bwrap is not None
        and subprocess.run([bwrap, "--ro-bind", "/", "/", "--unshare-net", "true"], capture_output=True).returncode == 0
    )


shut_in = pytest.mark.skipif(not works(), reason="needs bubblewrap and user namespaces")


@shut_in
def test_the_workspace_can_be_written_and_the_rest_only_read(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    (ws.home / "note").write_text("words")
    command = f"echo in > inside; echo t > $TMPDIR/t; head -c 4 /etc/passwd; echo out > {ws.home}/note; echo new > /etc/new-file"
    text = refused(Bash(sandbox=Sandbox()), ws, command=command)
    assert text.startswith("root")
    assert "Read-only file system" in text
    assert (ws.root / "inside").read_text() == "in\n"
    assert ws.scratch is not None
    assert (ws.scratch / "t").read_text() == "t\n"
    assert (ws.home / "note").read_text() == "words"
    assert not Path("/etc/new-file").exists()


@shut_in
def test_the_network_is_shut_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    command = "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '"
    assert told(Bash(sandbox=Sandbox()), ws, command=command).startswith("lo\n[exit code 0")
    outside = told(Bash(), ws, command=command)
    assert told(Bash(sandbox=Sandbox(network=True)), ws, command=command).partition("[")[0] == outside.partition("[")[0]


@shut_in
def test_other_processes_and_hidden_files_are_out_of_sight(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    key, keys = ws.home / "key", ws.home / "keys"
    key.write_text("secret")
    keys.mkdir()
    (keys / "one").write_text("secret")
    sandbox = Sandbox(hidden=(key, keys, ws.home / "not there"))
    text = called(Bash(sandbox=sandbox), ws, command=f"cat {key} {keys}/one; ls /proc | grep -c '^[0-9]'").text
    assert "secret" not in text
    assert int(text.splitlines()[-2]) < 10


@shut_in
def test_what_leaves_its_group_in_a_sandbox_ends_with_it(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    refused(
        Bash(sandbox=Sandbox()),
        ws,
        command="setsid sh -c 'while :; do echo x >> beat; sleep 0.02; done' & sleep 30",
        timeout_s=0.3,
    )
    size = (ws.root / "beat").stat().st_size
    subprocess.run(["sleep", "0.2"], check=True)
    assert (ws.root / "beat").stat().st_size == size


def test_without_bubblewrap_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = workspace(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = refused(Bash(sandbox=Sandbox()), here(ws), command="echo ran > ran")
    assert "bubblewrap (`bwrap`) is not installed" in text
    assert "nothing was run" in text
    assert not (ws.root / "ran").exists()
    with pytest.raises(InputError):
        Sandbox().command(["true"], ws)
