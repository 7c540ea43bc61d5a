"""The adapters on the harnesses' own classes, where those are installed (Harbor and terminal-bench need Python 3.12)."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("harbor.agents.installed.base", reason="Harbor is not installed", exc_type=ImportError)

from harbor.models.agent.context import AgentContext  # type: ignore[import-not-found]
from harbor.models.trajectories import Trajectory  # type: ignore[import-not-found]

from tenure.lab.bench.harnesses.harbor import Tenure
from tenure.lab.bench.outcome import STORE

PROGRAM = "tenure"


class Folder:
    """A container that is a folder: commands run on this machine, whose /logs is inside. What an agent asks of an environment, and no more."""

    default_user = None
    environment_name = "made-up"

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "app").mkdir(parents=True)

    async def exec(self, command: str, **more: Any) -> SimpleNamespace:
        ran = await asyncio.create_subprocess_exec("bash", "-c", command, cwd=self.root / "app", stdout=-1, stderr=-1)
        out, errors = await ran.communicate()
        return SimpleNamespace(stdout=out.decode(), stderr=errors.decode(), return_code=ran.returncode)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target_path)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy2(source_path, target_path)


def agent(container: Folder, model: str, **options: Any) -> Any:
    remote = container.root / "logs"
    return Tenure(logs_dir=remote, model_name=model, environment_logs_dir=remote, program=program(container), **options)


def program(container: Folder) -> str:
    path = container.root / PROGRAM
    if not path.exists():
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m tenure.cli.main "$@"\n')
        path.chmod(0o755)
    return str(path)


def script(path: Path, *names: str) -> str:
    replies: list[dict[str, Any]] = []
    for name in names:
        write = {"name": "write", "arguments": {"path": name, "content": name}}
        replies += [{"text": "I write.", "calls": [write]}, {"text": f"Done {name}."}]
    path.write_text(json.dumps({"model": "claude-sonnet-4-5", "dialect": "anthropic", "replies": replies}))
    return f"scripted:{path}"


def test_a_task_is_played_and_its_figures_and_trajectory_are_harbors(tmp_path: Path) -> None:
    container = Folder(tmp_path / "one")
    played, context = agent(container, script(tmp_path / "s.json", "one"), ceiling="20k"), AgentContext()
    asyncio.run(played.run("Write one.", container, context))
    played.populate_context_post_run(context)
    assert (container.root / "app/one").read_text() == "one"
    assert context.n_input_tokens > context.n_cache_tokens > 0
    assert context.cost_usd > 0
    assert context.metadata["n_episodes"] == 2
    trajectory = Trajectory.model_validate_json((container.root / "logs/trajectory.json").read_text())
    assert trajectory.steps[-1].message == "Done one."
    assert trajectory.final_metrics.total_prompt_tokens == context.n_input_tokens


def test_tasks_go_on_in_one_session_kept_on_the_host(tmp_path: Path) -> None:
    model, host = script(tmp_path / "s.json", "one", "two"), tmp_path / "host"
    for name in ("one", "two"):
        container = Folder(tmp_path / name)
        played, context = agent(container, model, session=str(host)), AgentContext()
        asyncio.run(played.run(f"Write {name}.", container, context))
        played.populate_context_post_run(context)
        assert [path.name for path in host.iterdir()] == [STORE]
        assert context.metadata["tenure"]["first"] == (0 if name == "one" else 5)


def test_a_wrong_option_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    for wrong in ({"condition": "best"}, {"max_calls": -1}, {"unknown": 1}):
        with pytest.raises(Exception, match=r"best|max_calls|unknown"):
            Tenure(logs_dir=tmp_path, model_name="anthropic/x", **wrong)
