"""Every session of a folder read and replayed: `python bench/corpus.py FOLDER [POLICY]`. Skips what no reader knows, and says so."""

import sys
import time
from pathlib import Path

from tenure.errors import InputError
from tenure.evals.lines import SummaryLine
from tenure.evals.loading import source
from tenure.evals.replay import Options, replay
from tenure.lifecycle.budget import Budget
from tenure.meter.tokens import o200k
from tenure.policies import POLICIES

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")


def main() -> None:
    """Print the time, and what could not be read."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "sessions")
    policy = POLICIES[sys.argv[2] if len(sys.argv) > 2 else "cwl"]
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
    started, done, unknown, tokens, violations = time.perf_counter(), 0, 0, 0, 0
    for path in files:
        try:
            *_, last = replay([source(str(path))], Options(budget=Budget(ceiling=80_000), policy=policy), tokenizer)
        except InputError:
            unknown += 1
            continue
        assert isinstance(last, SummaryLine)
        done, tokens, violations = done + 1, tokens + last.record_tokens, violations + len(last.violations)
    taken = time.perf_counter() - started
    print(f"{done} sessions, {tokens:,} tokens, {taken:.1f} s, {violations} violations; {unknown} files of formats not known yet")


if __name__ == "__main__":
    main()
