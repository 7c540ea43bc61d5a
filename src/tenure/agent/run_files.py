"""Which files other programs run, by their names. Pure tables."""

import re
from collections.abc import Iterable
from typing import Final


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_AT: Final = r"(?:^|/)"
# What other programs run, or are told to run by: a change of it is one that is carried out later. AGENTS.md and CLAUDE.md are read, not run.
_RUN: Final = _any(
    # editors and agents
    rf"{_AT}\.(?:vscode|idea|zed|fleet|cursor|windsurf|claude|codex|gemini|qwen|opencode|continue|cline|devcontainer)(?:/|$)",
    rf"{_AT}(?:\.mcp\.json|opencode\.jsonc?|\.aider\.conf\.yml|\.vimrc|\.nvimrc|\.exrc|\.nvim\.lua|\.dir-locals\.el|\.editorconfig-run)$",
    # git and its hooks
    rf"{_AT}(?:\.husky|\.githooks|git-?hooks|\.lefthook)(?:/|$)|{_AT}(?:\.pre-commit-config\.ya?ml|\.?lefthook\.ya?ml|\.lintstagedrc[^/]*)$",
    rf"{_AT}\.(?:gitmodules|gitconfig|lfsconfig)$",
    # shells and interpreters
    rf"{_AT}\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|inputrc|kshrc|tmux\.conf|screenrc)$",
    rf"{_AT}(?:\.direnv(?:/.*)?|\.?mise(?:\.[\w-]+)?\.toml|\.tool-versions|\.gdbinit|\.lldbinit|\.Rprofile|\.irbrc|\.pryrc|\.psqlrc|\.sqliterc|\.pdbrc)$",
    rf"{_AT}(?:site|user)customize\.py$|\.pth$|{_AT}\.config/(?:fish|systemd|autostart|git)/",
    # programs and builds
    rf"{_AT}(?:\.venv|venv|node_modules/\.bin|\.yarn/(?:releases|plugins))(?:/|$)|{_AT}(?:\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs|\.bazelrc)$",
    rf"{_AT}\.cargo/config(?:\.toml)?$|{_AT}gradle/wrapper/",
    # what runs after a push
    rf"{_AT}\.github/(?:workflows|actions)(?:/|$)|{_AT}\.(?:circleci|buildkite|woodpecker|forgejo|gitea)(?:/|$)",
    rf"{_AT}(?:\.gitlab-ci\.ya?ml|\.travis\.yml|\.drone\.ya?ml|\.cirrus\.yml|Jenkinsfile|azure-pipelines\.ya?ml|bitbucket-pipelines\.ya?ml)$",
)  # fmt: skip

# Files that a program runs when it is called, and that a person may have allowed to be called again.
_RUN_BY: Final = (
    (_any(rf"{_AT}(?:GNU)?Makefile(?:\.[^/]*)?$|\.mk$"), ("make", "gmake")),
    (_any(rf"{_AT}justfile$|\.just$"), ("just",)),
    (_any(rf"{_AT}Taskfile\.ya?ml$"), ("task",)),
    (_any(rf"{_AT}package\.json$"), ("npm", "pnpm", "yarn", "bun", "npx", "turbo", "nx")),
    (_any(rf"{_AT}(?:conftest|noxfile)\.py$|{_AT}(?:pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml)$"), ("pytest", "python", "tox", "nox", "uv", "poetry", "hatch")),
    (_any(rf"{_AT}(?:setup\.py|setup\.cfg|pyproject\.toml)$"), ("pip", "pip3", "uv", "python", "python3", "poetry", "hatch")),
    (_any(rf"{_AT}(?:build\.rs|Cargo\.toml)$"), ("cargo",)),
    (_any(rf"{_AT}(?:Rakefile|Gemfile)$|\.gemspec$"), ("rake", "bundle")),
    (_any(rf"\.gradle(?:\.kts)?$|{_AT}gradlew$|{_AT}pom\.xml$|{_AT}mvnw$"), ("gradle", "./gradlew", "mvn", "./mvnw")),
    (_any(rf"{_AT}(?:Dockerfile[^/]*|(?:docker-)?compose[^/]*\.ya?ml)$"), ("docker", "podman")),
    (_any(rf"{_AT}CMakeLists\.txt$|\.cmake$"), ("cmake", "ctest", "make", "ninja")),
    (_any(rf"{_AT}(?:jest|vitest|vite|webpack|rollup|eslint|babel|next)\.config\.[cm]?[jt]s$"), ("npm", "pnpm", "yarn", "bun", "npx", "jest", "vitest", "vite", "eslint")),
)  # fmt: skip


def is_run(path: str) -> bool:
    """Whether other programs run it, or are told by it what to run."""
    return _RUN.search(path) is not None


def run_by(path: str) -> Iterable[str]:
    """The programs that run what stands there when they are called."""
    return tuple(dict.fromkeys(program for names, programs in _RUN_BY if names.search(path) for program in programs))
