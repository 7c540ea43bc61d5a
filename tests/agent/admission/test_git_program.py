"""Real repositories, also such as were made to harm whoever looks into them."""

import os
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tenure.agent.admission.git_note import GitChange, GitStatus, git_note
from tenure.agent.admission.git_program import GitRepository, Ran, Run, run_bounded

QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"], "HOME": "/nowhere"}


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, "-C", str(folder), *arguments], env=QUIET, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("1\n")
    (folder / "src").mkdir()
    (folder / "src" / "b.py").write_text("1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def status(folder: Path) -> GitStatus | None:
    return GitRepository(folder, environment=QUIET, timeout_s=60).status()


def test_the_state_of_a_repository_is_fresh_each_time(repository: Path) -> None:
    looked = GitRepository(repository, environment=QUIET, timeout_s=60)
    assert git_note(looked.status()) == "[git status now: branch main, clean]"
    (repository / "a.py").write_text("2\n")
    (repository / "new.py").write_text("1\n")
    assert git_note(looked.status()) == "[git status now: branch main, 1 changed, 1 untracked]\n M a.py\n?? new.py"


def test_below_the_root_paths_are_given_from_there(repository: Path) -> None:
    (repository / "a.py").write_text("2\n")
    (repository / "src" / "c.py").write_text("2\n")
    found = status(repository / "src")
    assert found is not None
    assert found.changes == (GitChange(letters=" M", path="../a.py"), GitChange(letters="??", path="c.py"))


def test_ahead_and_behind_are_counted(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repository), "copy")
    copy = tmp_path / "copy"
    git(repository, "commit", "-q", "--allow-empty", "-m", "theirs")
    for _ in range(2):
        git(copy, "commit", "-q", "--allow-empty", "-m", "ours")
    git(copy, "fetch", "-q")
    assert git_note(status(copy)) == "[git status now: branch main, 2 ahead of and 1 behind origin/main, clean]"


def test_without_a_repository_or_without_git_there_is_no_note(tmp_path: Path) -> None:
    alone = {**QUIET, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    assert GitRepository(tmp_path, environment=alone).status() is None
    assert GitRepository(tmp_path / "gone", environment=alone).status() is None
    assert GitRepository(tmp_path, environment={**QUIET, "PATH": str(tmp_path)}).status() is None
    (tmp_path / "git").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "git").chmod(0o755)
    assert GitRepository(tmp_path, environment={**QUIET, "PATH": "."}).status() is None
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert GitRepository(tmp_path / "bare.git", environment=alone).status() is None


def test_a_repository_that_is_made_meanwhile_is_seen(tmp_path: Path) -> None:
    looked = GitRepository(tmp_path, environment={**QUIET, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert looked.status() is None
    git(tmp_path, "init", "-q")
    assert git_note(looked.status()) == "[git status now: branch main without a commit yet, clean]"


def test_an_environment_that_points_elsewhere_is_not_followed(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "other")
    environment = {
        **QUIET,
        "GIT_DIR": str(tmp_path / "other/.git"),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_INDEX_FILE": "/dev/null",
    }
    assert git_note(GitRepository(repository, environment=environment).status()) == "[git status now: branch main, clean]"


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a trace when it is run, and answers nothing."""
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\necho \"$0 $@\" >> '{tmp_path}/sprung'\n")
    program.chmod(0o755)
    return program


def sprung(trap: Path) -> bool:
    return (trap.parent / "sprung").exists()


def touched(repository: Path) -> None:
    """Make git look into the files to tell whether they have changed."""
    for path in (repository / "a.py", repository / "src/b.py"):
        path.write_text("1\n")
        os.utime(path, (1, 1))


HOSTILE = {
    "a file system monitor": ("core.fsmonitor", "{trap}"),
    "hooks elsewhere": ("core.hooksPath", "{trap}s"),
    "a filter": ("filter.evil.clean", "{trap}"),
    "a filter that goes on": ("filter.evil.process", "{trap}"),
    "a filter with dots in its name": ("filter.e.v.il.clean", "{trap}"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_that_a_repository_names_is_run(kind: str, repository: Path, trap: Path) -> None:
    key, value = HOSTILE[kind]
    git(repository, "config", key, value.format(trap=trap))
    if key.startswith("filter."):
        name = key.removeprefix("filter.").rpartition(".")[0]
        git(repository, "config", f"filter.{name}.required", "true")
        (repository / ".git/info/attributes").write_text(f"*.py filter={name}\n")
    hook = trap.parent / "traps" / "post-index-change"
    hook.parent.mkdir()
    hook.write_text(trap.read_text())
    hook.chmod(0o755)
    touched(repository)
    found = status(repository)
    assert found is not None
    assert (found.trouble, found.branch) == ("", "main")
    assert not sprung(trap)
    subprocess.run(["git", "-C", str(repository), "status"], env=QUIET, capture_output=True)
    assert sprung(trap), "this trap would not have sprung anyway"


def test_a_repositorys_own_hooks_are_not_run(repository: Path, trap: Path) -> None:
    hook = repository / ".git/hooks/post-index-change"
    hook.write_text(trap.read_text())
    hook.chmod(0o755)
    touched(repository)
    assert git_note(status(repository)) == "[git status now: branch main, clean]"
    assert not sprung(trap)
    git(repository, "status")
    assert sprung(trap)


def test_filters_that_are_included_are_switched_off_too(repository: Path, trap: Path) -> None:
    (repository / "more.config").write_text(f'[filter "deep"]\n\tclean = {trap}\n\tprocess = {trap}\n')
    git(repository, "config", "include.path", "../more.config")
    (repository / ".git/info/attributes").write_text("*.py filter=deep\n")
    touched(repository)
    found = status(repository)
    assert found is not None
    assert found.untracked == 1
    assert not sprung(trap)


def test_where_a_filter_cannot_be_switched_off_git_is_not_asked(repository: Path, trap: Path) -> None:
    git(repository, "config", "--file", ".git/config", "filter.a=b.clean", str(trap))
    (repository / ".git/info/attributes").write_text("*.py filter=a=b\n")
    touched(repository)
    assert git_note(status(repository)) == "[git status now: left out: there is a filter that cannot be switched off]"
    assert not sprung(trap)


def test_a_filter_of_the_user_is_not_run_either_since_a_repository_may_steer_it(repository: Path, trap: Path) -> None:
    settings = trap.parent / "gitconfig"
    settings.write_text(f'[filter "own"]\n\tclean = {trap}\n\trequired = true\n')
    (repository / ".git/info/attributes").write_text("*.py filter=own\n")
    touched(repository)
    found = GitRepository(repository, environment={**QUIET, "GIT_CONFIG_GLOBAL": str(settings)}, timeout_s=60).status()
    assert git_note(found) == "[git status now: branch main, clean]"
    assert not sprung(trap)


def test_a_submodule_is_not_entered(repository: Path, tmp_path: Path, trap: Path) -> None:
    git(tmp_path, "init", "-q", "part")
    git(tmp_path / "part", "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "part"), "part")
    git(repository, "commit", "-q", "-m", "part")
    git(repository / "part", "config", "core.fsmonitor", str(trap))
    (repository / "part" / "new").write_text("1")
    assert git_note(status(repository)) == "[git status now: branch main, clean]"
    assert not sprung(trap)


def test_objects_that_are_missing_are_not_fetched(repository: Path, trap: Path) -> None:
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    (repository / ".git/objects" / tree[:2] / tree[2:]).unlink()
    git(repository, "config", "core.repositoryFormatVersion", "1")
    git(repository, "config", "extensions.partialClone", "origin")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "remote.origin.url", f"ext::{trap}")
    git(repository, "config", "protocol.ext.allow", "always")
    found = status(repository)
    assert found is not None
    assert not sprung(trap)
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "status")
    assert sprung(trap)


def test_a_configuration_that_cannot_be_read_is_said(repository: Path) -> None:
    (repository / ".git/config").write_text("[core\n")
    assert git_note(status(repository)).startswith("[git status now: git failed (fatal: bad config")


def test_names_are_harmless_whatever_files_are_called(repository: Path) -> None:
    for name in (b"\x1b[2J", b"two\nlines", b"caf\xe9"):
        Path(os.fsdecode(os.fsencode(repository) + b"/" + name)).write_text("")
    assert git_note(status(repository)).splitlines()[1:] == ['?? "\\x1b[2J"', "?? caf\\xe9", '?? "two\\nlines"']


def impatient(without: str) -> Run:
    """Real git, but for calls with one argument, which take too long."""

    def run(command: list[str], environment: Mapping[str, str], /, *, timeout_s: float, most: int) -> Ran:
        late = any(without in word for word in command)
        return Ran(code=-9, out=b"", late=True) if late else run_bounded(command, environment, timeout_s=60, most=most)

    return run


def test_a_repository_that_takes_too_long_is_asked_for_less(repository: Path) -> None:
    (repository / "new").write_text("")
    looked = GitRepository(repository, environment=QUIET, run=impatient("--untracked-files=normal"))
    assert git_note(looked.status()) == "[git status now: no answer within 2 s; next time without untracked files]"
    assert git_note(looked.status()) == "[git status now: branch main, nothing changed, untracked files not looked for]"


@pytest.mark.parametrize("argument", ["rev-parse", "config", "status"])
def test_a_repository_that_still_takes_too_long_is_asked_no_more(repository: Path, argument: str) -> None:
    looked = GitRepository(repository, environment=QUIET, run=impatient(argument))
    assert git_note(looked.status()).endswith("next time without untracked files]")
    assert git_note(looked.status()).endswith("it is not asked again]")
    assert looked.status() is None


def test_a_list_that_git_was_stopped_in_is_told_as_far_as_it_came(repository: Path) -> None:
    for n in range(40):
        (repository / f"new-{n:02}").write_text("")

    def short(command: list[str], environment: Mapping[str, str], /, *, timeout_s: float, most: int) -> Ran:
        return run_bounded(command, environment, timeout_s=60, most=200 if "status" in command else most)

    told = git_note(GitRepository(repository, environment=QUIET, run=short).status())
    assert "and more: git was stopped]" in told
    assert "?? new-00" in told


def test_a_program_that_never_ends_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    ran = run_bounded(["sh", "-c", f"exec 3> '{tmp_path}/held'; sleep 600 & yes"], dict(os.environ), timeout_s=60, most=100_000)
    assert (len(ran.out), ran.cut, ran.late) == (100_000, True, False)
    assert select.select([held], [], [], 60)[0] == [held]
    assert os.read(held, 1) == b"", "somebody still holds it"
    os.close(held)


def test_a_program_whose_time_is_over_is_stopped() -> None:
    ran = run_bounded(["sleep", "600"], dict(os.environ), timeout_s=0, most=10)
    assert (ran.code, ran.late, ran.cut) == (-9, True, False)


def test_a_program_that_is_not_there_is_an_answer_too() -> None:
    ran = run_bounded(["/nowhere/git"], {}, timeout_s=1, most=10)
    assert (ran.code, ran.out) == (-1, b"")
    assert "No such file" in ran.said
