import json

import pytest
from calling import told

from tenure.agent.approval import CallEffect, CallVerdict, Grants, Mode, verdict
from tenure.agent.tools.change import approval
from tenure.agent.tools.child import for_command
from tenure.agent.tools.glob import Glob
from tenure.agent.tools.grep import Grep
from tenure.agent.tools.ls import Ls
from tenure.agent.tools.read import Read
from tenure.agent.tools.shell.judge import judge
from tenure.agent.workspace import Workspace


@pytest.mark.parametrize(
    "name",
    [
        ".envrc.example/../.cargo/config.toml", ".vscode/tasks.json", ".vscode/settings.json", ".mcp.json", ".husky/pre-commit", ".githooks/pre-push",
        ".pre-commit-config.yaml", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".claude/settings.json", ".codex/config.toml", ".bashrc", ".venv/bin/python",
        "node_modules/.bin/tsc", "sitecustomize.py", "deep/in/.vscode/tasks.json", "link/tasks.json",
        "scripts/hooks/pre-commit", "tools/commit-msg", "x.code-workspace", ".devcontainer.json", "mcp.json", ".roo/mcp.json", ".kiro/settings/mcp.json",
        "rust-toolchain.toml", "appveyor.yml", ".gitlab/ci/build.yml", ".helix/languages.toml",
    ],
)  # fmt: skip
def test_what_other_programs_run_is_no_mere_edit(name: str, ws: Workspace) -> None:
    (ws.root / ".vscode").mkdir()
    (ws.root / "link").symlink_to(".vscode")
    assert approval("write", ws.path(name), ws, "").act is CallEffect.COMMAND


@pytest.mark.parametrize(
    "name",
    [
        "src/a.py",
        "AGENTS.md",
        "CLAUDE.md",
        "docs/hooks.md",
        "config.toml",
        "Makefile",
        "package.json",
        ".github/CODEOWNERS",
        "hooks/pre-commit.py",
        "src/update",
    ],
)
def test_what_is_only_read_is_an_edit(name: str, ws: Workspace) -> None:
    assert approval("write", ws.root / name, ws, "").act is CallEffect.EDIT


def test_what_makes_a_folder_a_repository_belongs_to_git(ws: Workspace) -> None:
    (ws.root / "x" / "refs").mkdir(parents=True)
    acts = [
        approval("write", ws.root / name, ws, "").act for name in ("x/HEAD", "x/objects/a", "x/config", "y/HEAD", ".git/hooks/x")
    ]
    assert acts == [CallEffect.OUTSIDE, CallEffect.OUTSIDE, CallEffect.EDIT, CallEffect.EDIT, CallEffect.OUTSIDE]


@pytest.mark.parametrize(
    ("name", "granted"),
    [
        ("Makefile", "make"),
        ("package.json", "npm test"),
        ("tests/conftest.py", "pytest"),
        ("build.rs", "cargo build"),
        ("playwright.config.ts", "npx playwright"),
        (".eslintrc.cjs", "npm run"),
        ("gulpfile.js", "npx gulp"),
        (".pylintrc", "pylint"),
        ("flake.nix", "nix build"),
        ("x.bzl", "bazel build"),
    ],
)
def test_an_edit_of_what_an_allowed_command_runs_asks(name: str, granted: str, ws: Workspace) -> None:
    edit = approval("edit", ws.root / name, ws, "")
    assert verdict(edit, Mode.EDITS, Grants()) is CallVerdict.RUN
    assert verdict(edit, Mode.EDITS, Grants(granted=frozenset({granted}))) is CallVerdict.ASK
    assert verdict(edit, Mode.ALL, Grants(granted=frozenset({granted}))) is CallVerdict.RUN


@pytest.mark.parametrize(
    "path",
    [
        "~/.claude/.credentials.json", "~/.codex/auth.json", "~/.cargo/credentials.toml", "~/.git-credentials", "server.key", "tls.pem", ".env.local",
        "/proc/self/root/etc/shadow", "/proc/1/environ", "link/id_rsa", "~/.copilot/config.json", "~/.claude/settings.json", "~/.mcp-auth/x/tokens.json",
        "~/.curlrc", "~/.yarnrc.yml", "~/docs/server.key", "~/tests/x.pem", "prod.env", ".env-prod", ".env~", "deploy_rsa", "credentials.yml", "infra/x.tfstate",
        "kubeconfig", "keys/app.p8", "vault_pass.txt", "/etc/letsencrypt/live/x/privkey.pem",
    ],
)  # fmt: skip
def test_every_tool_that_looks_knows_where_keys_are(path: str, ws: Workspace) -> None:
    (ws.home / ".ssh").mkdir()
    (ws.root / "link").symlink_to(ws.home / ".ssh")
    for tool, arguments in (
        (Read(), {"path": path}),
        (Grep(), {"path": path, "pattern": "x"}),
        (Ls(), {"path": path}),
        (Glob(), {"path": path, "pattern": "*"}),
    ):
        found = tool.needs(json.dumps(arguments), ws)
        assert found is not None
        assert found.act is CallEffect.OUTSIDE
    assert judge(f"cat {path}", ws) is not None


@pytest.mark.parametrize(
    "path",
    [
        "tests/server.key",
        ".env.example",
        "prod.env.sample",
        ".env-example",
        "src/credentials.py",
        "id_rsa.pub",
        ".claude/settings.json",
        ".yarnrc.yml",
        "node_modules/x/cert.pem",
        "/etc/ssl/certs/x.pem",
        "keys.py",
        "/dev/null",
    ],
)
def test_what_holds_no_key_may_be_looked_at(path: str, ws: Workspace) -> None:
    assert Read().needs(json.dumps({"path": path}), ws) is None
    assert judge(f"cat {path}", ws) is None


def test_a_search_leaves_out_what_holds_keys_and_says_so(ws: Workspace) -> None:
    for name in ("a.txt", "server.key", ".env"):
        (ws.root / name).write_text("canary\n")
    text = told(Grep(), ws, pattern="canary", hidden=True)
    assert text == "a.txt:1:canary\n[left out, since keys or passwords are kept there: .env, server.key]"


def test_git_that_only_looks_runs_nothing_that_a_repository_names() -> None:
    given = {
        "GIT_DIR": "x",
        "GIT_EXTERNAL_DIFF": "x",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "a.b",
        "GIT_CONFIG_VALUE_0": "c",
        "LESSOPEN": "x",
        "OLDPWD": "/",
    }
    looks, other = for_command(given, looks=True), for_command(given)
    keys = [value for name, value in sorted(looks.items()) if name.startswith("GIT_CONFIG_KEY")]
    assert {"core.fsmonitor", "core.hooksPath", "core.pager", "safe.bareRepository", "protocol.allow"} <= set(keys)
    assert not {"GIT_DIR", "GIT_EXTERNAL_DIFF", "LESSOPEN", "OLDPWD"} & looks.keys()
    assert (other["GIT_CONFIG_COUNT"], other["GIT_CONFIG_KEY_0"], other["GIT_CONFIG_KEY_1"]) == (
        "2",
        "a.b",
        "safe.bareRepository",
    )
    assert "OLDPWD" not in other
