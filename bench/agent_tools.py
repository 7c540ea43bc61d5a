"""What the agent's tools take: `python bench/agent_tools.py [FILES]` searches a made-up repository, floods a command, and reads far into a file.

Beside each figure stands the longest time for which nothing else had its turn.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tenure.agent.tools.bash import Bash
from tenure.agent.tools.glob import Glob
from tenure.agent.tools.grep import Grep
from tenure.agent.tools.read import Read
from tenure.agent.tools.shell.judge import judge
from tenure.agent.tools.tool import Here, Tool
from tenure.agent.workspace import Workspace

TIMES = 3  # of which the fastest counts


def make(root: Path, files: int) -> None:
    """A repository of small sources in folders of a hundred."""
    chance = random.Random(1)
    words = [f"word{n}" for n in range(2_000)]
    for n in range(files):
        folder = root / f"pkg{n // 100 % 20}" / f"mod{n // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (" ".join(chance.choices(words, k=8)) for _ in range(40))
        (folder / f"file{n % 100}.{'py' if n % 2 else 'ts'}").write_text("\n".join(lines))
    (root / ".git").mkdir()


async def measured(tool: Tool, here: Here, **arguments: Any) -> tuple[float, float]:
    """Seconds of a call, and the longest that the loop was held up in it."""
    worst, over = 0.0, False

    async def beat() -> None:
        nonlocal worst
        while not over:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - before)

    beating = asyncio.ensure_future(beat())
    began = time.perf_counter()
    await tool.run(json.dumps(arguments), here)
    took = time.perf_counter() - began
    over = True
    await beating
    return took, worst


async def main(files: int) -> None:
    """Print a line for each call."""
    with tempfile.TemporaryDirectory() as folder:
        root, scratch = Path(folder) / "repository", Path(folder) / "scratch"
        make(root, files)
        scratch.mkdir()
        with (scratch / "large.txt").open("wb") as large:
            for _ in range(500):
                large.write(b"0123456789abcdef\n" * 65_536)
        here = Here(workspace=Workspace(root, scratch=scratch), environment=dict(os.environ))
        calls: tuple[tuple[Tool, dict[str, Any]], ...] = (
            (Glob(), {"pattern": "*.py"}),
            (Glob(), {"pattern": "**/mod1*/**/*7.py"}),
            (Glob(), {"pattern": "pkg3/**/*.py"}),
            (Grep(), {"pattern": "word17 word19"}),
            (Grep(), {"pattern": "word17"}),
            (Grep(), {"pattern": "word17", "mode": "files"}),
            (Grep(), {"pattern": "not there"}),
            (Grep(), {"pattern": "word17", "glob": "**/mod1*/*.py"}),
            (Bash(), {"command": "yes | head -c 1000000000"}),
            (Bash(), {"command": "true"}),
            (Read(), {"path": str(scratch / "large.txt"), "offset": 30_000_000, "limit": 10}),
            (Read(), {"path": str(scratch / "large.txt"), "offset": -10}),
        )
        for tool, arguments in calls:
            took, held = min([await measured(tool, here, **arguments) for _ in range(TIMES)])
            told = json.dumps(arguments).replace(folder, "")
            print(f"{tool.name:5} {took:7.3f} s, held up {held * 1000:4.0f} ms  {told}")
        began = time.perf_counter()
        for _ in range(200):
            judge("cd src && git status && find . -name '*.py' | xargs grep -n foo | head -20 && npm test", here.workspace)
        print(f"judging a command: {(time.perf_counter() - began) * 5:.2f} ms")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000))
