"""What the future of recorded sessions needed of what policies prune at a cut: `python bench/cuts.py FOLDER [POLICY...] [--prune 0.45]`.

Five cuts of each session of at least 12 calls and 8,000 tokens; every policy takes the same share of the same view.
"""

import argparse
import time
from pathlib import Path

from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.errors import InputError
from tenure.lab.cuts import cuts
from tenure.lab.evidence.corpus import Corpus
from tenure.lab.evidence.measure import CorpusEvents
from tenure.lab.evidence.pages import events_of
from tenure.lab.loading import source
from tenure.lab.measured import CutLine
from tenure.lab.report.template import asking

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
ROWS = """
    select policy as 'policy|text', cuts as 'cuts|count', pruned as 'pruned|percent1', short as 'short|count', needs as 'needs|count', routed as 'routed|count',
        lost as 'lost|count', missed as 'missed/cut|decimal', no_impact as 'no impact|percent1'
    from cut_outcomes where g = '' order by first"""


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
    with events_of(CorpusEvents(corpus=Corpus(folder="", members=()), code="", lines=tuple(lines))) as events:
        print(asking(events)["table"](ROWS))
    print(f"{len({line.source for line in lines})} sessions in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
