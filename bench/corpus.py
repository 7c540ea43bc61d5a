"""Every session of a folder read and replayed: `python bench/corpus.py FOLDER [POLICY...|all|faithful]`. Skips what no reader knows, and says so."""

import sys
import time
from collections import Counter
from pathlib import Path

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer, o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.engine.policies.policy import Policy
from tenure.errors import InputError
from tenure.lab.events import SummaryLine
from tenure.lab.loading import source
from tenure.lab.replay import Options, replay

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")


def main() -> None:
    """Print the time, and what could not be read."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "sessions")
    names = sys.argv[2:] or ["cwl"]
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
    is_faithful = names == ["faithful"]  # the peers' rules without our protection
    for name in [*PEERS] if is_faithful else [*POLICIES, *PEERS] if names == ["all"] else names:
        replay_all(files, {**POLICIES, **PEERS}[name], tokenizer, faithful=is_faithful)


def replay_all(files: list[Path], policy: Policy, tokenizer: Tokenizer, *, faithful: bool = False) -> None:
    """Every file under one policy, with what came of it."""
    waived: Counter[str] = Counter()
    started, done, unknown, tokens, violations, usd, without, unmet = time.perf_counter(), 0, 0, 0, 0, 0.0, 0.0, 0
    for path in files:
        try:
            *_, last = replay(
                [source(str(path))], Options(budget=Budget(ceiling=80_000), policy=policy, faithful=faithful), tokenizer
            )
        except InputError:
            unknown += 1
            continue
        assert isinstance(last, SummaryLine)
        waived.update(last.waived)
        done, tokens, violations = done + 1, tokens + last.record_tokens, violations + len(last.violations)
        usd, without, unmet = usd + last.usd, without + last.usd_uncapped, unmet + (last.unmet > 0)
    taken = time.perf_counter() - started
    print(
        f"{policy.name:20} {done} sessions, {tokens:,} tokens, {taken:.1f} s, {violations} violations, {unmet} over their limit somewhere, "
        f"bill {usd / without - 1:+.0%}; {unknown} files of unknown formats" + (f"; waived: {dict(waived)}" if faithful else "")
    )


if __name__ == "__main__":
    main()
