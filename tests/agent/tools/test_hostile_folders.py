"""What a folder's own files make of a command that only looks: repositories in odd places, ignore files, links. Each is run if it is free."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
from calling import called, here
from shell_attacks import SECRET

from tenure.agent.tools.bash import Bash
from tenure.agent.tools.shell.judge import judge
from tenure.agent.workspace import Workspace


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def _repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "-q")
    (folder / "f").write_text("1\n")
    _git(folder, "add", "f")
    _git(folder, "commit", "-qm", "one")
    return folder


def _configure(repository: Path, text: str) -> None:
    with (repository / ".git" / "config").open("a") as file:
        file.write(text)


def _filter(repository: Path, root: Path, before: str = "") -> None:
    """Let git run a program of the folder to tell whether a file has changed."""
    (root / "run").write_text(f"#!/bin/sh\ntouch {root}/out\ncat\n")
    (root / "run").chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=x\n")
    _configure(repository, f'[filter "x"]\n{before} clean = {root}/run\n')
    (repository / "f").write_text("2\n")


def _a_setting_behind_a_comment_that_seems_to_go_on(where: Workspace) -> None:
    _filter(_repository(where.root), where.root, before=" # x \\\n")


def _a_setting_behind_a_value_with_a_comment(where: Workspace) -> None:
    _filter(_repository(where.root), where.root, before=" smudge = cat # x \\\n")


def _a_repository_that_is_none_below_one_that_is(where: Workspace) -> None:
    _filter(_repository(where.root), where.root)
    (where.root / "sub" / ".git" / "objects").mkdir(parents=True)
    (where.root / "sub" / ".git" / "refs").mkdir()
    (where.root / "sub" / ".git" / "HEAD").write_text("x")


def _a_link_into_a_repository(where: Workspace) -> None:
    _repository(where.root)
    other = _repository(where.root.parent / "other")
    _filter(other, where.root)
    (other / "deep").mkdir()
    (where.root / "sub").symlink_to(other / "deep")


def _a_submodule_with_its_own_git_folder(where: Workspace) -> None:
    _repository(where.root)
    sub = _repository(where.root / "sub")
    _git(where.root, "add", "sub")
    _git(where.root, "commit", "-qm", "sub")
    _filter(sub, where.root)


def _a_submodule_whose_repository_is_elsewhere(where: Workspace) -> None:
    _a_submodule_with_its_own_git_folder(where)
    (where.root / "sub" / ".git").rename(where.root / "kept")
    (where.root / "sub" / ".git").write_text("gitdir: ../kept\n")


def _a_format_that_checks_signatures(where: Workspace) -> None:
    _configure(_repository(where.root), "[format]\n pretty = %G?\n")


def _revisions_to_ignore_that_are_a_key(where: Workspace) -> None:
    (where.home / "key.pem").write_text(f"{SECRET}\n")
    _configure(_repository(where.root), f"[blame]\n ignoreRevsFile = {where.home}/key.pem\n")


def _index_that_is_broken(where: Workspace) -> None:
    _a_submodule_with_its_own_git_folder(where)
    index = where.root / ".git" / "index"
    index.write_bytes(index.read_bytes()[:8] + b"\0\0\xff\xff" + index.read_bytes()[12:])


_GIT: Final[Mapping[Callable[[Workspace], None], tuple[str, ...]]] = {
    _a_setting_behind_a_comment_that_seems_to_go_on: ("git status", "git diff", "git ls-files -m", "git blame f"),
    _a_setting_behind_a_value_with_a_comment: ("git status", "git diff --stat"),
    _a_repository_that_is_none_below_one_that_is: ("git -C sub status", "cd sub && git status", "cd sub; git diff"),
    _a_link_into_a_repository: ("git -C sub status", "cd sub && git status"),
    _a_submodule_with_its_own_git_folder: ("git status", "git diff", "git diff HEAD", "git diff-files", "git ls-files -m --recurse-submodules"),
    _a_submodule_whose_repository_is_elsewhere: ("git status", "git diff"),
    _a_format_that_checks_signatures: ("git log", "git show -s"),
    _revisions_to_ignore_that_are_a_key: ("git blame f", "git annotate f"),
    _index_that_is_broken: ("git status",),
}  # fmt: skip


@pytest.mark.parametrize(("world", "line"), [(world, line) for world, lines in _GIT.items() for line in lines])
def test_a_repository_cannot_hide_what_it_makes_git_run(world: Callable[[Workspace], None], line: str, ws: Workspace) -> None:
    world(ws)
    assert judge(line, ws) is not None


@pytest.mark.parametrize("line", ["git status", "git diff", "git log --stat -1", "git blame f", "git -C sub status"])
def test_git_looks_unasked_where_submodules_and_settings_run_nothing(line: str, ws: Workspace) -> None:
    _repository(ws.root)
    _repository(ws.root / "sub")
    _git(ws.root, "add", "sub")
    _configure(ws.root, '[alias]\n x = "!f() { \\\n  echo; \\\n }; f"\n[blame]\n date = short\n')
    assert judge(line, ws) is None
    assert not called(Bash(), here(ws), command=line).error


def _ignored_in(name: str, text: str = "!.env\n") -> Callable[[Workspace], None]:
    def world(where: Workspace) -> None:
        for path in (where.root / "src" / ".env", where.root / name):
            path.parent.mkdir(parents=True, exist_ok=True)
        (where.root / name).write_text(text)
        (where.root / "src" / ".env").write_text(SECRET)

    return world


@pytest.mark.parametrize("name", [".ignore", ".gitignore", ".git/info/exclude", "src/.git/info/exclude", "../home/.config/git/ignore", "../.rgignore"])  # fmt: skip
@pytest.mark.parametrize("line", ["rg canary src", "cd src && rg canary", "rg canary"])
def test_a_key_that_an_ignore_file_elsewhere_lets_in_is_not_searched_unasked(name: str, line: str, ws: Workspace) -> None:
    _ignored_in(name)(ws)
    assert judge(line, ws) is not None
    _ignored_in(name, "*.log\n")(ws)
    assert judge(line, ws) is None


@pytest.mark.parametrize(
    ("line", "free"),
    [("diff -r src z", False), ("diff -rN z src", False), ("diff src/l z/l", False), ("diff z src", False), ("rg -L x src", False), ("grep -R x src", False),
     ("diff -r z src/b", True), ("diff src/a z/a", True), ("rg x src", True), ("grep -r x src", True)],
)  # fmt: skip
def test_a_link_in_a_folder_that_is_compared_or_searched_leads_to_no_keys_unasked(
    line: str, ws: Workspace, *, free: bool
) -> None:
    for name in ("src/b", "z/l"):
        (ws.root / name).mkdir(parents=True)
    for name in ("src/a", "z/a", "z/l/id"):
        (ws.root / name).write_text("x\n")
    (ws.home / "proj").mkdir()
    (ws.home / "proj" / "id_rsa").write_text(SECRET)
    (ws.root / "src" / "l").symlink_to(ws.home / "proj")
    assert (judge(line, ws) is None) == free


@pytest.mark.parametrize("pin", [".tool-versions", "mise.toml", "package.json"])
def test_a_stand_in_for_a_program_that_the_folder_may_choose_asks(pin: str, ws: Workspace) -> None:
    shims = ws.home / ".asdf" / "shims"
    shims.mkdir(parents=True)
    (shims / "jq").write_text("#!/bin/sh\n")
    (shims / "jq").chmod(0o755)
    assert judge("jq . a", ws, path=str(shims)) is None
    (ws.root / pin).write_text("jq path:./run\n")
    assert judge("jq . a", ws, path=str(shims)) is not None
    assert judge("cd src && jq . a", ws, path=str(shims)) is not None
    assert judge("jq . a", ws, path="/usr/bin") is None
