"""What later steps needed of what policies removed: `python bench/harm.py FOLDER [POLICY...] [--ceiling 30k --ceiling 80k]`.

Every session is replayed on its own. Counted are needs in words and calls; those of reasoning stand apart.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from tenure.engine.lifecycle.budget import Budget, parse_tokens
from tenure.engine.meter.tokens import Tokenizer, o200k
from tenure.engine.policies import policy_named
from tenure.errors import InputError
from tenure.lab.events import CallLine, HarmLine, SummaryLine
from tenure.lab.harm.watch import Watch
from tenure.lab.loading import source
from tenure.lab.replay import Options, replay

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")


def main() -> None:
    """One row for each policy and ceiling."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("policies", nargs="*", default=["cwl", "tiered", "oldest-turn"])
    parser.add_argument("--ceiling", action="append", default=[])
    given = parser.parse_args()
    files = sorted(path for path in given.folder.rglob("*") if path.suffix in SUFFIXES)
    tokenizer = o200k()
    tokenizer("the vocabulary loads before the clock starts")
    for ceiling in given.ceiling or ["30k", "80k"]:
        for name in given.policies:
            measure(files, name, parse_tokens("--ceiling", ceiling, of=None), tokenizer)


def measure(files: list[Path], name: str, ceiling: int, tokenizer: Tokenizer) -> None:
    """All sessions under one policy and ceiling."""
    said: Counter[str] = Counter()
    thought: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    sessions = touched = calls = bad = evicted = 0
    started, watching = time.perf_counter(), 0.0
    for path in files:
        watch, here, hurt = Watch(), 0, set[int]()
        try:
            for line in replay(
                [source(str(path))], Options(budget=Budget(ceiling=ceiling), policy=policy_named(name)), tokenizer
            ):
                calls += isinstance(line, CallLine)
                evicted += line.evicted_tokens if isinstance(line, SummaryLine) else 0
                before = time.perf_counter()
                found = [each for each in watch.take(line) if isinstance(each, HarmLine)]
                watching += time.perf_counter() - before
                here += len(found)
                for harm in found:
                    (thought if harm.part == "thinking" else said)[harm.verdict] += 1
                    if harm.part != "thinking" and harm.verdict != "visible":
                        hurt.add(harm.call)
                        kinds[harm.kind] += 1
                        categories[harm.category] += 1
        except InputError:
            continue
        sessions, touched, bad = sessions + 1, touched + bool(here), bad + len(hurt)
    taken = time.perf_counter() - started
    needs = sum(said.values())
    print(
        f"{name:12} {ceiling:>7,}  {touched} of {sessions} sessions touched, {needs:,} needs ({needs / max(1, touched):.0f} a session touched), "
        f"visible {said['visible']:,}, routed {said['routed']:,}, lost {said['lost']:,}; {bad} of {calls:,} calls miss something; "
        f"{evicted:,} tokens left; in reasoning {dict(thought)}; {taken:.1f} s, of which {watching:.1f} s for this"
    )
    print(f"{'':22}{dict(kinds.most_common())} {dict(categories.most_common())}")


if __name__ == "__main__":
    main()
