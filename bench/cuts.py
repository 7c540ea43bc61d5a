"""What the future of recorded sessions needed of what policies prune at a cut: `python bench/cuts.py FOLDER [POLICY...] [--prune 0.45]`.

Five cuts of each session of at least 12 calls and 8,000 tokens; every policy takes the same share of the same view.
"""

import argparse
import time
from pathlib import Path

from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.errors import InputError
from tenure.lab.cuts import cuts, outcomes
from tenure.lab.events import CutLine
from tenure.lab.loading import source

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")


def main() -> None:
    """One row for each policy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("policies", nargs="*", default=[*POLICIES, *PEERS])
    parser.add_argument("--prune", type=float, default=0.45)
    given = parser.parse_args()
    known = {**POLICIES, **PEERS}
    chosen = {name: known[name] for name in given.policies}
    started = time.perf_counter()
    lines: list[CutLine] = []
    for path in sorted(path for path in given.folder.rglob("*") if path.suffix in SUFFIXES):
        try:
            lines += cuts(source(str(path)), chosen, o200k(), prune=given.prune)
        except InputError as error:
            print(error)
    print(
        f"{'policy':20} {'cuts':>5} {'pruned':>7} {'short':>6} {'needs':>6} {'routed':>7} {'lost':>6} {'missed/cut':>10} {'no impact':>10}"
    )
    for found in outcomes(lines):
        missed = (found.routed + found.lost) / found.cuts
        print(
            f"{found.policy:20} {found.cuts:5} {found.pruned:7.1%} {found.short:6} {found.needs:6} {found.routed:7} {found.lost:6}"
            f" {missed:10.2f} {found.no_impact:10.1%}"
        )
    print(f"{len({line.source for line in lines})} sessions in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
