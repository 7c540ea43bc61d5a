"""Plugins by entry point, in a process that finds them as an installed package."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tenure.plugins import plugin, usable

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
BROKEN = """
[project.entry-points."tenure.policies"]
broken = "no_such_module:POLICY"
shapeless = "tenure_example_plugin:MAGIC"

[project.entry-points."tenure.readers"]
raises = "bad_reader:READER"
"""


def install(folder: Path, project: str, source: Path | None = None) -> None:
    """What an installer leaves of a package: its modules, and its metadata beside them."""
    declared = tomllib.loads(project)["project"]
    info = folder / f"{declared.get('name', 'broken')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {declared.get('name', 'broken')}\nVersion: 0.1.0\n")
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in declared["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(points)
    if source is not None:
        shutil.copytree(source, folder, dirs_exist_ok=True)


def tenure(folder: Path, *arguments: str, code: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    done = subprocess.run([sys.executable, "-m", "tenure", *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    install(tmp_path / "site", (EXAMPLE / "pyproject.toml").read_text(), EXAMPLE / "src")
    (tmp_path / "chat.txt").write_text("#chat-lines\nyou: Where is the login test?\nnonsense\nmodel: In tests/test_login.py.\n")
    return tmp_path


def test_the_example_is_listed_and_its_policy_and_reader_work(folder: Path) -> None:
    site, chat = folder / "site", str(folder / "chat.txt")
    listed = tenure(site, "plugins")
    assert "policies  largest-first  tenure-example-plugin 0.1.0  ok" in listed
    assert "readers  chat-lines  tenure-example-plugin 0.1.0  ok" in listed
    assert "login test" in tenure(site, "show", chat)
    assert "tests/test_login.py" in tenure(site, "recall", chat, "entry:1")
    assert "policy largest-first" in tenure(site, "replay", chat, "--policy", "largest-first", "--ceiling", "50k")


def test_a_context_evicts_by_a_policy_of_another_package_and_resumes_by_its_name(folder: Path) -> None:
    script = """
from tenure import Budget, Context
context = Context(policy="largest-first", budget=Budget(ceiling=8_000), store="sqlite:///agent.db", clip=0, model="claude-opus-4-5")
context.extend([{"role": "user", "content": "Look."}])
for n in range(12):
    use = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": f"{n}.py"}}
    context.extend([{"role": "assistant", "content": [use]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "word " * 200 * n}]}])
assert "[cleared: recall read:" in str(context.request(model="claude-opus-4-5"))
again = Context(store="sqlite:///agent.db", conversation=context.conversation)
assert again.session.setup.policy.name == "largest-first"
"""
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_broken_plugin_costs_itself_and_is_said(folder: Path) -> None:
    install(folder / "site", BROKEN)
    (folder / "site" / "bad_reader.py").write_text(
        "class R:\n    name = 'raises'\n    def recognises(self, head): raise RuntimeError('mine')\n    def read(self, chunks): return ()\nREADER = R()\n"
    )
    site, chat = folder / "site", str(folder / "chat.txt")
    listed = tenure(site, "plugins", code=1)
    assert "broken 0.1.0  cannot be used: ModuleNotFoundError: No module named 'no_such_module'" in listed
    assert "tenure_example_plugin:MAGIC has no name, conduct, __call__" in listed
    assert "largest-first  tenure-example-plugin 0.1.0  ok" in listed
    assert "login test" in tenure(site, "show", chat)
    assert "ModuleNotFoundError" in tenure(site, "replay", chat, "--policy", "broken", code=2)


def test_what_is_not_installed_is_unknown_and_named_with_what_is(folder: Path) -> None:
    assert "largest-first" in tenure(folder / "site", "replay", str(folder / "chat.txt"), "--policy", "unknown", code=2)
    assert plugin("policies", "largest-first") is None
    assert usable("readers") == ()
