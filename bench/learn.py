"""Learn what the default policy expects to be asked for: `python bench/learn.py FOLDER --out learned.json`.

A few cuts of each session; a line or name of a text that may be shortened counts as asked for when the harm detector finds that a later step needed it
and nothing else that stays holds it. Owners weigh alike, whatever they hold. Writes a forest for names and one for lines, of all owners (`*`) and, for
judging, of all but each. Needs LightGBM, which the policy does not. How many later edits had to find something in a text of each kind, for each of its
lines, is counted and printed: the tables at the head of policies/graph/keeping.py are written by hand after that.
"""

import argparse
import json
import pickle
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import lightgbm
import msgspec
import numpy as np

import cut_set
from tenure.engine.policies.graph.forest import Forest
from tenure.engine.policies.graph.keeping import SUPERSEDED
from tenure.engine.policies.graph.sight import ANCHOR_FEATURES, LINE_FEATURES, NEVER, OF_NAME, OF_PIECE, PieceKind, Sight
from tenure.engine.record.entry import At

VERBATIM = ("lines", "target", "quote")
KEPT = 0.12  # of the rows that nobody asked for, which then weigh more
KINDS = {
    "anchor": ("anchor", ANCHOR_FEATURES, len(OF_NAME)),
    "line": ("line", LINE_FEATURES, len(OF_PIECE)),
}


# What is older, or spoken of longer ago, is not asked for more: it holds for every owner, whatever one of them seems to say.
FALLING: dict[str, int] = dict.fromkeys(("age", "quiet", "turns", "stack", "newer", "used", "around", "near"), -1)


MODULE = '''"""What was learned from recorded sessions, as text; `python bench/learn.py FOLDER --module FILE` writes it."""

from typing import Final

from tenure.engine.policies.graph.forest import Forest
from tenure.engine.policies.graph.keeping import ModelWeights

_ANCHOR: Final = """
{}
"""
_LINE: Final = """
{}
"""
LEARNED: Final = ModelWeights(anchor=Forest(_ANCHOR), line=Forest(_LINE))
'''


@dataclass
class Rows:
    """One kind of thing, over all cuts."""

    features: list[tuple[int, ...]] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)


def main() -> None:
    """Learn, judge, and keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--module", type=Path, help="where the policy reads what was learned of all owners")
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/tenure-cuts"))
    parser.add_argument("--rows", type=Path, help="where gathered rows are kept")
    parser.add_argument("--trees", type=int, default=40)
    parser.add_argument("--leaves", type=int, default=16)
    parser.add_argument("--least", type=int, default=400)
    parser.add_argument("--rate", type=float, default=0.15)
    parser.add_argument("--whole", action="store_true", help="only what is learned of all owners")
    given = parser.parse_args()
    started = time.perf_counter()
    if given.rows and given.rows.exists():
        found = pickle.loads(given.rows.read_bytes())
    else:
        found = gathered(given)
        if given.rows:
            given.rows.write_bytes(pickle.dumps(found))
    print(f"{len(found['line'].asked):,} lines and {len(found['anchor'].asked):,} names in {time.perf_counter() - started:.0f} s")
    owners = sorted(set(found["line"].owners))
    learned: dict[str, dict[str, dict[str, str]]] = {owner: {} for owner in (["*"] if given.whole else ["*", *owners])}
    for kind, (rows, names, shared) in KINDS.items():
        data = arrays(found[rows])
        for left_out, forests in learned.items():
            forests[kind] = msgspec.to_builtins(forest(kind, data, names, shared, left_out, given))
    given.out.write_text(json.dumps({owner: each for owner, each in learned.items() if owner != "*"}))
    if given.module:
        given.module.write_text(MODULE.format(*(wrapped(str(learned["*"][kind]["text"])) for kind in KINDS)))
    print(f"done in {time.perf_counter() - started:.0f} s")


def gathered(given: argparse.Namespace) -> dict[str, Rows]:
    """What all cuts have of either kind."""
    found = {"anchor": Rows(), "line": Rows()}
    cut = 0
    rng = np.random.default_rng(0)
    counts: dict[str, int] = {}
    edits: dict[tuple[object, ...], list[float]] = {}
    for whole in cut_set.sessions(given.folder, given.cache, most=given.most):
        for ground in cut_set.grounds(whole, given.points):
            cut += 1
            counts[whole.owner] = counts.get(whole.owner, 0) + 1
            gather(ground, found["anchor"], found["line"], cut, rng)
            if ground.whole.uses.edits:
                count_edits(ground, edits)
    for key, (lines, sum_of_edits) in sorted(edits.items(), key=str):
        print(f"{' '.join(map(str, key)):32} {lines:9,.0f} lines {sum_of_edits:5.0f} edits {sum_of_edits / max(1, lines):9.5f}")
    for rows in found.values():
        rows.weights = [weight / counts[owner] ** 0.5 for weight, owner in zip(rows.weights, rows.owners, strict=True)]
    return found


def gather(ground: cut_set.CutGround, anchors: Rows, lines: Rows, cut: int, rng: np.random.Generator) -> None:
    """What a cut has of either kind."""
    sight = Sight(ground.session.situation())
    places = {piece.at: number for number, piece in enumerate(sight.pieces)}
    wanted: dict[int, dict[str, float]] = {}
    named: set[str] = set()
    mentions = list(sight.mentions)
    for form, strings in needs(ground):
        missing = [(text, holders) for text, holders in strings if all(at in places for at in holders)]
        for text, holders in missing:
            if form in VERBATIM:
                for at in holders:
                    of_piece = wanted.setdefault(places[at], {})
                    of_piece[text] = of_piece.get(text, 0) + 1 / len(missing)
            else:
                named |= {name for name in mentions if text in name}

    def add(rows: Rows, features: tuple[int, ...], asked: float, size: int) -> None:
        is_asked = asked > 0
        if not is_asked and rng.random() > KEPT:
            return
        rows.features.append(features)
        rows.asked.append(min(1.0, asked))
        rows.owners.append(ground.whole.owner)
        rows.weights.append(1.0 if is_asked else 1 / KEPT)
        rows.sizes.append(size)
        rows.cuts.append(cut)

    for head, names, columns in sight.names():
        for name, each in zip(names, zip(*columns, strict=True), strict=True):
            add(anchors, (*head, *each), float(name in named), len(name))
    for number, piece in enumerate(sight.pieces):
        values = [0.0] * len(piece.lines)
        for text, value in wanted.get(number, {}).items():
            for place, line in enumerate(piece.lines):
                if text in line:
                    values[place] += value
        head, columns = sight.lines(number)
        for line, value, each in zip(piece.lines, values, zip(*columns, strict=True), strict=True):
            add(lines, (*head, *each), value, len(line) + 1)


def count_edits(ground: cut_set.CutGround, counts: dict[tuple[object, ...], list[float]]) -> None:
    """Of the texts of each kind the lines, and the later edits that look for something in one of them, the newest that holds it."""
    sight = Sight(ground.session.situation())
    places = {piece.at: number for number, piece in enumerate(sight.pieces)}
    length = ground.session.length
    edits = [0] * len(sight.pieces)
    for edit in ground.whole.uses.edits:
        holders = [held.at for held in edit.holders]
        if edit.entry >= length and all(at in places for at in holders):
            edits[places[max(holders)]] += 1
    for number, piece in enumerate(sight.pieces):
        kind, age, _, _, edited, newer, turns = sight.lines(number)[0][:7]
        touched = "no" if edited == NEVER else "now" if edited == 0 else "before"
        key = (PieceKind(kind).name, "superseded") if newer >= SUPERSEDED else (PieceKind(kind).name, touched, age, min(turns, 2))
        lines, sum_of_edits = counts.setdefault(key, [0.0, 0.0])
        counts[key] = [lines + len(piece.lines), sum_of_edits + edits[number]]


def needs(ground: cut_set.CutGround) -> Iterator[tuple[str, list[tuple[str, tuple[At, ...]]]]]:
    """What the steps after a cut needed and did not have again before. Reasoning, which leaves first, holds nothing."""
    entries = ground.session.length
    for use in ground.whole.uses.found:
        if use.entry < entries or use.part == "thinking":
            continue
        strings: list[tuple[str, tuple[At, ...]]] = []
        for each in use.wanted:
            holders = tuple(held.at for held in each.holders if held.at[0] < entries and held.kind != "thinking")
            again = any(held.at[0] >= entries and held.kind != "thinking" for held in each.holders)
            if holders and not again:
                strings.append((each.text, holders))
        yield str(use.form), strings


def arrays(rows: Rows) -> dict[str, np.ndarray]:
    """The rows as arrays."""
    return {
        "x": np.array(rows.features, dtype=np.int16),
        "y": np.array(rows.asked),
        "w": np.array(rows.weights),
        "owner": np.array(rows.owners),
        "size": np.array(rows.sizes),
        "cut": np.array(rows.cuts),
    }


def forest(
    kind: str, data: dict[str, np.ndarray], names: tuple[str, ...], shared: int, left_out: str, given: argparse.Namespace
) -> Forest:
    """Learned on all owners but one. A tree asks features that a text's lines share, and at most one other: see Forest."""
    chosen = data["owner"] != left_out
    kinds = lightgbm.Dataset(
        data["x"][chosen], data["y"][chosen], weight=data["w"][chosen], feature_name=list(names), params={"verbose": -1}
    )
    settings = {
        "objective": "cross_entropy",
        "num_leaves": given.leaves,
        "learning_rate": given.rate,
        "min_data_in_leaf": given.least,
        "lambda_l2": 5.0,
        "num_threads": 1,
        "monotone_constraints": [FALLING.get(name, 0) for name in names],
        "monotone_constraints_method": "advanced",
        "interaction_constraints": [[*range(shared), other] for other in range(shared, len(names))],
        "verbose": -1,
        "seed": 1,
        "deterministic": True,
    }
    booster = lightgbm.train(settings, kinds, num_boost_round=given.trees)
    dump = booster.dump_model()
    grown = Forest(" ".join(node for tree in dump["tree_info"] for node in nodes(tree["tree_structure"])))
    if left_out == "*":
        gains = booster.feature_importance("gain")
        print(kind, {names[n]: round(float(gains[n] / gains.sum()), 3) for n in np.argsort(-gains)})
    else:
        here = ~chosen
        scores = np.asarray(booster.predict(data["x"][here], raw_score=True))
        print(f"{left_out:20} {kind:8} {ranked(data, here, scores):.2f} of what was asked for in the best fifth of each cut")
    return grown


def wrapped(text: str) -> str:
    """In lines of a source file."""
    return "\n".join(textwrap.wrap(text, 120))


def nodes(node: dict[str, object]) -> Iterator[str]:
    """A tree's nodes in order."""
    if "leaf_value" in node:
        yield str(round(1000 * float(node["leaf_value"])))  # type: ignore[arg-type]
        return
    yield f"{node['split_feature']}<{int(np.floor(float(node['threshold'])))}"  # type: ignore[arg-type]
    yield from nodes(node["left_child"])  # type: ignore[arg-type]
    yield from nodes(node["right_child"])  # type: ignore[arg-type]


def ranked(data: dict[str, np.ndarray], here: np.ndarray, scores: np.ndarray, share: float = 0.2) -> float:
    """Of what was asked for, how much is in the best share of each cut, by characters."""
    y, w, cut, size = (data[name][here] for name in ("y", "w", "cut", "size"))
    density = scores - np.log(size)
    kept = 0.0
    for each in np.unique(cut):
        mine = np.flatnonzero(cut == each)
        order = mine[np.argsort(-density[mine])]
        sums = np.cumsum((size * w)[order])
        kept += float(y[order][sums <= share * sums[-1]].sum())
    return kept / max(1e-9, float(y.sum()))


if __name__ == "__main__":
    main()
