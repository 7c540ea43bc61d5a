"""Learn what the provenance policy expects to be asked for: `python bench/learn.py FOLDER [--out FILE]`.

Five cuts of each session; a line or name of a result that may be shortened counts as asked for when the harm detector finds that a later step
needed it and nothing else that stays holds it. Prints the weights for policies/provenance/keeping.py, and how well the weights learned without
a source rank the lines of that source. `--out` keeps those, by source. Needs numpy.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from tenure.engine.meter.tokens import o200k
from tenure.engine.policies.provenance.keeping import ANCHOR_FEATURES, LINE_FEATURES, ModelWeights
from tenure.engine.policies.provenance.sight import Sight
from tenure.errors import InputError
from tenure.lab.cuts import Ground, grounds
from tenure.lab.loading import source

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
VERBATIM = ("lines", "target", "quote")
FEWEST = 4  # characters of a line
NEGATIVES = 8  # for each positive
STRENGTH = 3.0  # of the pull towards zero, in units of a standardised weight
ROUNDS = 12
SHARES = (0.1, 0.2, 0.36, 0.5)


def main() -> None:
    """Learn, tell, and keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    anchors, lines = Rows(), Rows()
    cut = 0
    for path in sorted(path for path in given.folder.rglob("*") if path.suffix in SUFFIXES and path.parent != given.folder):
        name = path.relative_to(given.folder).parts[0]
        try:
            for ground in grounds(source(str(path)), o200k()):
                cut += 1
                gather(ground, anchors, lines, name, cut)
        except InputError as error:
            print(error)
    found = {"anchor": anchors.arrays(), "line": lines.arrays()}
    sources = sorted(set(anchors.sources))
    print(f"{cut} cuts of {len(sources)} sources; {len(anchors.asked):,} names, {len(lines.asked):,} lines")
    for kind, data in found.items():
        scores = np.zeros(len(data.asked))
        for name in sources:
            weights, bias = fit(data, data.source != name)
            here = data.source == name
            scores[here] = data.features[here] @ weights + bias - np.log(data.size[here])
        by_age = -np.log1p(np.expm1(data.features[:, 1])) - np.log(data.size)
        told = ", ".join(f"{ranked(data, scores, share):.0%} in the best {share:.0%}" for share in SHARES)
        old = ", ".join(f"{ranked(data, by_age, share):.0%}" for share in SHARES)
        print(f"{kind}: of what was asked for, each source by weights learned without it: {told}; by age alone: {old}")
    learned = weights_of(found, "")
    for kind, names in (("anchor", ANCHOR_FEATURES), ("line", LINE_FEATURES)):
        print(kind, dict(zip(names, getattr(learned, kind), strict=True)))
    print(f"{found['line'].asked.sum() / found['line'].needs:.1f} lines are wanted together")
    print(learned)
    if given.out:
        held_out = {name: msgspec.to_builtins(weights_of(found, name)) for name in sources}
        given.out.write_text(json.dumps(held_out, indent=1) + "\n")


class Data:
    """Features, and whether each was asked for."""

    def __init__(
        self, features: np.ndarray, asked: np.ndarray, source: np.ndarray, cut: np.ndarray, size: np.ndarray, needs: float
    ) -> None:
        self.features, self.asked, self.source, self.cut, self.size, self.needs = features, asked, source, cut, size, needs


class Rows:
    """One kind of thing, over all cuts."""

    def __init__(self) -> None:
        self.features: list[tuple[float, ...]] = []
        self.asked: list[bool] = []
        self.sources: list[str] = []
        self.cuts: list[int] = []
        self.sizes: list[int] = []
        self.needs = 0.0  # that the things asked for were asked for in

    def add(self, features: tuple[float, ...], asked: bool, source: str, cut: int, size: int) -> None:
        """One row."""
        self.features.append(features)
        self.asked.append(asked)
        self.sources.append(source)
        self.cuts.append(cut)
        self.sizes.append(size)

    def arrays(self) -> Data:
        """All rows."""
        return Data(
            np.array(self.features, dtype=np.float64),
            np.array(self.asked, dtype=np.float64),
            np.array(self.sources),
            np.array(self.cuts),
            np.array(self.sizes),
            self.needs,
        )


def gather(ground: Ground, anchors: Rows, lines: Rows, source: str, cut: int) -> None:
    """What a cut has of either kind."""
    sight = Sight(ground.session.situation())
    places = {piece.at: number for number, piece in enumerate(sight.pieces)}
    wanted: dict[int, set[str]] = {}
    named: set[str] = set()
    for use in needs(ground):
        missing = [
            (text, holders) for text, holders in use.strings if all(at in places for at in holders)
        ]  # else something stays
        for text, holders in missing:
            if use.form in VERBATIM:
                lines.needs += 1 / len(missing)
                for at in holders:
                    wanted.setdefault(places[at], set()).add(text)
            else:
                named |= {name for name in sight.mentions if text in name}
    for name in sight.mentions:
        anchors.add(sight.anchor_features(name), name in named, source, cut, len(name))
    for number, piece in enumerate(sight.pieces):
        texts = wanted.get(number, ())
        for line, features in zip(piece.lines, sight.line_features(piece), strict=True):
            if len(line.strip()) >= FEWEST:
                lines.add(features, any(text in line for text in texts), source, cut, len(line) + 1)


@dataclass(frozen=True)
class Need:
    """What a step needed together: each string with the places that held it before the cut."""

    form: str
    strings: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


def needs(ground: Ground) -> Iterator[Need]:
    """What the steps after a cut needed and did not have again before. Reasoning, which leaves first, holds nothing."""
    entries = ground.session.length
    for use in ground.uses.found:
        if use.entry < entries or use.part == "thinking":
            continue
        strings = []
        for each in use.wanted:
            holders = tuple(held.at for held in each.holders if held.at[0] < entries and held.kind != "thinking")
            again = any(held.at[0] >= entries and held.kind != "thinking" for held in each.holders)
            if holders and not again:
                strings.append((each.text, holders))
        yield Need(str(use.form), tuple(strings))


def weights_of(found: dict[str, Data], left_out: str) -> ModelWeights:
    """Learned on all sources but one."""
    (anchor, anchor_bias), (line, line_bias) = (fit(data, data.source != left_out) for data in found.values())
    together = found["line"].asked.sum() / found["line"].needs  # lines that are wanted in one need, which is missed once
    return ModelWeights(
        anchor=tuple(round(float(each), 3) for each in anchor),
        anchor_bias=round(anchor_bias, 3),
        line=tuple(round(float(each), 3) for each in line),
        line_bias=round(line_bias - float(np.log(together)), 3),
    )


def fit(data: Data, chosen: np.ndarray) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton's method, on all that was asked for and some that was not; the constant is set back to the true share."""
    rows = np.flatnonzero(chosen)
    positive = rows[data.asked[rows] > 0]
    negative = rows[data.asked[rows] == 0]
    some = np.random.default_rng(0).choice(negative, min(len(negative), NEGATIVES * len(positive)), replace=False)
    rows = np.concatenate([positive, some])
    x, y = data.features[rows], data.asked[rows]
    mean, spread = x.mean(0), x.std(0) + 1e-6
    x = np.hstack([(x - mean) / spread, np.ones((len(x), 1))])
    w = np.zeros(x.shape[1])
    ridge = np.full(x.shape[1], STRENGTH)
    ridge[-1] = 0.0
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-(x @ w)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.diag(ridge)
        w -= np.linalg.solve(hessian, x.T @ (p - y) + ridge * w)
    weights = w[:-1] / spread
    return weights, float(w[-1] - weights @ mean + np.log(len(some) / max(1, len(negative))))


def ranked(data: Data, scores: np.ndarray, share: float) -> float:
    """Of what was asked for, how much is in the best share of each cut; scores and shares are by characters."""
    order = np.lexsort((-scores, data.cut))
    asked, cut, size = data.asked[order], data.cut[order], data.size[order]
    starts = np.flatnonzero(np.r_[True, cut[1:] != cut[:-1]])
    kept = 0.0
    for start, stop in zip(starts, np.r_[starts[1:], len(cut)], strict=True):
        sums = np.cumsum(size[start:stop])
        kept += asked[start:stop][sums <= share * sums[-1]].sum()
    return float(kept / asked.sum())


if __name__ == "__main__":
    main()
