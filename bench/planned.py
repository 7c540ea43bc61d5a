"""Every session of a folder replayed with stand-ins for models: `python bench/planned.py FOLDER [planner|summariser|both...]`."""

import sys
import time
from collections import Counter
from pathlib import Path

from tenure.engine.lifecycle.automatic import Absolute
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer, o200k
from tenure.engine.policies import POLICIES
from tenure.errors import InputError
from tenure.lab.events import PlanLine, SummaryLine
from tenure.lab.loading import source
from tenure.lab.planner import PLANNER, SUMMARISER
from tenure.lab.replay import Options, replay

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
WAYS = {
    "planner": Options(budget=Budget(window=30_000), policy=None, planner=PLANNER),
    "summariser": Options(budget=Budget(window=30_000), policy=None, summariser=SUMMARISER),
    "both": Options(
        budget=Budget(ceiling=30_000),
        policy=POLICIES["tiered"],
        planner=PLANNER,
        summariser=SUMMARISER,
        handoff_at=Absolute(tokens=20_000),
    ),
}


def main() -> None:
    """Print what became of plans and briefs, the laws that were broken, and what could not be recovered."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "sessions")
    if not folder.is_dir():
        print(f"no folder {folder}; give one that holds sessions")
        return
    tokenizer = o200k()
    tokenizer("the vocabulary loads before the clock starts")
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in SUFFIXES and path.name not in ("MANIFEST.jsonl", "README.md", "FORMATS.md")
    )
    for name in sys.argv[2:] or WAYS:
        replay_all(name, files, tokenizer)


def replay_all(name: str, files: list[Path], tokenizer: Tokenizer) -> None:
    """Every file in one way."""
    told: Counter[str] = Counter()
    started, done, violations, lost, usd, helpers, without = time.perf_counter(), 0, 0, 0, 0.0, 0.0, 0.0
    for path in files:
        try:
            for line in replay([source(str(path))], WAYS[name], tokenizer):
                if isinstance(line, PlanLine) and {"selfgc", "handoff"} & {*line.policy.split("+")}:
                    told[f"{line.policy} {line.outcome}{'' if line.asked else ' after a wait'}"] += 1
                if isinstance(line, SummaryLine):
                    done, violations, lost = done + 1, violations + len(line.violations), lost + (line.recoverable_share < 1)
                    usd, helpers, without = usd + line.usd, helpers + line.helpers_usd, without + line.usd_uncapped
        except InputError:
            continue
    taken = time.perf_counter() - started
    bill = f"calls ${usd:.2f}, models ${helpers:.2f}, without eviction ${without:.2f}"
    print(f"{name:10} {done} sessions, {taken:.1f} s, {violations} violations, {lost} not all recoverable; {bill}")
    print(f"           {', '.join(f'{count} {what}' for what, count in told.most_common())}")


if __name__ == "__main__":
    main()
