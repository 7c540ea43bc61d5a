"""How near the inferred graph comes to marks: `python bench/inferred.py FOLDER MARKS`.

A boundary counts as found when one is inferred at the same reply or one beside it, each once; a dependency when the inferred episode in which the middle of a marked act
lies depends on one that lies in the marked expl, or is the same as that.
"""

import argparse
from pathlib import Path

import msgspec

import cut_set
from tenure.engine.record.index import Index, index_of
from tenure.engine.record.inferred import NO_WORK

NEAR = 1  # replies


def main() -> None:
    """One row for each session, and their sums; the same with a boundary at each turn and no other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("marks", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/tenure-cuts"))
    given = parser.parse_args()
    files = {path.stem: path for path in given.marks.glob("*.jsonl")}
    sums = [0] * 7
    for whole in cut_set.sessions(given.folder, given.cache, most=10**6, only=set(files)):
        name = Path(whole.path).name.partition(".")[0]
        marks = [msgspec.json.decode(line) for line in files[name].read_text().splitlines()]
        index = index_of(whole.entries)
        marked = sorted({mark["call"] + 1 for mark in marks if any(call["action"] == "start" for call in mark["calls"])})
        inferred = [index.entries[episode.start[0]].step for episode in index.inferred.episodes]
        turns = [index.entries[turn.start[0]].step + 1 for turn in index.turns]
        counts = [
            len(marked),
            len(inferred),
            matches(marked, inferred),
            len(turns),
            matches(marked, turns),
            *dependencies(marks, index),
        ]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        print(f"{name:44}", *counts)
    told, found, both, of_turns, at_turns, asked, had = sums
    print(
        f"{told} marked boundaries; inferred {found}: F1 {2 * both / (told + found):.2f}; at turns alone {of_turns}: F1 {2 * at_turns / (told + of_turns):.2f}"
    )
    print(f"{asked} marked dependencies: {had / max(1, asked):.0%} inferred")


def matches(marked: list[int], found: list[int]) -> int:
    """How many can be paired, each once."""
    left, count = list(found), 0
    for step in marked:
        near = min(left, key=lambda each: abs(each - step), default=None)
        if near is not None and abs(near - step) <= NEAR:
            left.remove(near)
            count += 1
    return count


def dependencies(marks: list[dict[str, object]], index: Index) -> tuple[int, int]:
    """Marked dependencies, and those that the inferred graph has."""
    spans: dict[str, list[int]] = {}
    wanted: list[tuple[str, str]] = []
    active = ""
    for mark in marks:
        for call in mark["calls"]:  # type: ignore[attr-defined]
            step = int(mark["call"]) + 1  # type: ignore[call-overload]
            if call["action"] == "start":
                active = call["name"]
                spans[active] = [step, step]
                wanted += [(active, name) for name in call.get("dependencies", ())]
            elif active:
                spans[active][1] = step
                active = ""
    if active:
        spans[active][1] = len(index.steps)
    had = 0
    for act, expl in wanted:
        if act in spans and expl in spans:
            acts, expls = (
                {index.inferred.of_step(step) for step in range(spans[name][0], spans[name][1] + 1)} - {NO_WORK}
                for name in (act, expl)
            )
            bases = acts.union(*(index.inferred.episodes[each].dependencies for each in acts))
            had += bool(bases & expls)
    return len(wanted), had


if __name__ == "__main__":
    main()
