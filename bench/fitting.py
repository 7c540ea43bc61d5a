"""How often what is noticed at a prompt is needed in that turn: `python bench/fitting.py FOLDER [--embeddings minilm] [--most 200]`.

At each prompt of a session but its first, what came before its newest 20 replies counts as gone. Of what fits the prompt (`tenure.engine.record.fitting`)
it is counted how much a step of that turn needs, by the detector of `tenure.lab.harm`, beside all that is gone and the newest of it.
"""

import argparse
from collections import Counter
from pathlib import Path
from time import monotonic

from tenure.agent.access import nearness
from tenure.agent.settings import World
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Origin
from tenure.engine.record.fitting import MOST, fitting
from tenure.engine.record.tools import is_virtual
from tenure.errors import InputError
from tenure.lab.harm.holdings import of_entry
from tenure.lab.harm.watch import uses_of
from tenure.lab.loading import Loaded, load, source
from tenure.store.vectors import Vectors

STEPS = 20
LEAST = 50  # tokens of a result that counts


def main() -> None:
    """One line for each way to choose."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embeddings", default="")
    parser.add_argument("--vectors", type=Path, default=None)
    parser.add_argument("--most", type=int, default=10_000)
    given = parser.parse_args()
    nearest = nearness(given.embeddings, World(), Vectors(given.vectors))
    said: Counter[str] = Counter()
    started = monotonic()
    for path in sorted(each for each in given.folder.rglob("*") if each.is_file())[: given.most]:
        try:
            loaded = load([source(str(path))], o200k())
        except (InputError, UnicodeError):
            continue
        if len(loaded.index.turns) > 1 and len(loaded.index.steps) > STEPS:
            said["sessions"] += 1
            said += measured(loaded, nearest)
    print(
        f"{said['sessions']} sessions, {said['prompts']:,} prompts with something gone, {said['prompts that need']:,} of them need some of it; {said['noticed at']:,} noticed something, {said['right']:,} something needed; {monotonic() - started:.0f} s"
    )
    for name in ("fits", "newest", "all gone"):
        of, needed = said[name], said[f"{name} needed"]
        print(f"{name:9} {needed:>7,} of {of:>9,} needed: {needed / max(1, of):.1%}")


def measured(loaded: Loaded, nearest) -> Counter[str]:
    """The counts of one session."""
    index, read, said = loaded.index, loaded.read, Counter()
    needs = [
        (use.entry, held.at)
        for use in uses_of(of_entry(read(n), index) for n in range(len(index))).found
        if use.part != "thinking"
        for wanted in use.wanted
        for held in wanted.holders
    ]
    for turn in index.turns[1:]:
        start = turn.start[0]
        before = [step for step in index.steps if step.entry < start]
        words = "\n".join(each.text for each in read(start).blocks if each.origin is Origin.HUMAN)
        if len(before) <= STEPS or not words.strip():
            continue
        edge = before[-STEPS].entry
        gone = [
            span
            for span in index.spans
            if span.result is not None
            and span.result[0] < edge
            and not is_virtual(span.tool)
            and index.block(span.result).tokens >= LEAST
        ]
        if not gone:
            continue
        end = index.turns[turn.number].start[0] if turn.number < len(index.turns) else len(index)
        later = {at for entry, at in needs if start <= entry < end}
        places = {span.result for span in gone}
        turn_needs = bool(later & places)
        said["prompts that need"] += turn_needs
        fits = {fit.object for fit in fitting(index, read, words, gone, nearest)}
        said["prompts"] += 1
        said["noticed at"] += bool(fits)
        said["right"] += any(each.object in fits and each.result in later for each in gone)
        chosen = {"fits": [each for each in gone if each.object in fits], "newest": gone[-MOST:], "all gone": gone}
        for name, spans in chosen.items():
            said[name] += len(spans)
            said[f"{name} needed"] += sum(span.result in later for span in spans)
    return said


if __name__ == "__main__":
    main()
