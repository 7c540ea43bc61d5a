"""What policies leave at cuts of recorded sessions: `python bench/compare_cuts.py FOLDER POLICY... [--prune 0.45]`.

Each owner's sessions count alike however many there are (`--most`); learned policies are judged by what was learned without the owner (`--weights`, as
bench/learn.py writes it). Read sessions are kept in `--cache`.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import msgspec
from msgspec.structs import replace

import cut_set
from tenure.engine.policies import policy_named
from tenure.engine.policies.graph.keeping import ModelWeights
from tenure.engine.policies.policy import Policy
from tenure.lab.cuts import rehearsed
from tenure.lab.harm.watch import after_cut, edits_after_cut

LEARNED: dict[Path, dict[str, object]] = {}


def main() -> None:
    """One row for each policy and share, then one for each owner."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("policies", nargs="+")
    parser.add_argument("--prune", type=float, nargs="+", default=[0.45])
    parser.add_argument(
        "--beside", nargs="+", default=[], help="policies at whose shares the others are run too, whatever --prune says"
    )
    parser.add_argument("--edits", action="store_true", help="only sessions that make edits")
    parser.add_argument("--most", type=int, default=12)
    parser.add_argument("--points", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/tenure-cuts"))
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--marks", type=Path, help="a folder of marks: only the sessions that have some")
    parser.add_argument("--inserted", action="store_true", help="with those marks")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    files = {path.stem: path for path in given.marks.glob("*.jsonl")} if given.marks else {}
    known = cut_set.sessions(given.folder, given.cache, most=10**6 if given.marks else given.most, only=set(files) or None)
    for whole in known:
        if given.inserted:
            whole = cut_set.marked(whole, files[Path(whole.path).name.partition(".")[0]])
        if given.edits and not whole.uses.edits:
            continue
        policies = {name: named(name, whole.owner, given.weights) for name in given.policies}
        for ground in cut_set.grounds(whole, given.points):

            def run(name: str, policy: Policy, share: float, label: str, ground: cut_set.CutGround = ground) -> float:
                of_cut = {"owner": ground.whole.owner, "path": ground.whole.path, "policy": name, "prune": label}
                rows.append(of_cut | outcome(ground, policy, share))
                return float(rows[-1]["pruned"])  # type: ignore[arg-type]

            shares = {f"{prune:.0%}": prune for prune in given.prune}
            for name in given.beside:
                shares[name] = run(name, named(name, whole.owner, given.weights), given.prune[0], name)
            for label, share in shares.items():
                for name, policy in policies.items():
                    run(name, policy, share, label)
    if given.out:
        given.out.write_text("\n".join(map(json.dumps, rows)) + "\n")
    report(rows)


def named(name: str, owner: str, weights: Path | None) -> Policy:
    """The policy, with what it learned without the owner, and perhaps a setting, as in `graph:skeleton=0.6`."""
    bare, _, setting = name.partition(":")
    policy = policy_named(bare)
    assert policy is not None
    if setting:
        field, _, value = setting.partition("=")
        policy = replace(policy, **{field: json.loads(value)})
    if weights is not None and hasattr(policy, "weights"):
        learned = LEARNED.setdefault(weights, json.loads(weights.read_text()) if weights not in LEARNED else {})
        if owner in learned:  # else it taught nothing
            policy = replace(policy, weights=msgspec.convert(learned[owner], ModelWeights))
    return policy


def outcome(ground: cut_set.CutGround, policy: Policy, prune: float) -> dict[str, float]:
    """What one policy leaves at one cut."""
    session = ground.session
    before = session.view.tokens
    started = time.process_time()
    plan = rehearsed(session, policy, prune)
    took = time.process_time() - started
    after = session.view.copy()
    after.apply(plan.edits)
    verdicts = [
        found.verdict for found in after_cut(ground.whole.uses, session.length, (), plan.edits) if found.part != "thinking"
    ]
    edits = list(edits_after_cut(ground.whole.uses, session.length, (), plan.edits))
    return {
        "cut": ground.number,
        "tokens": before,
        "pruned": 1 - after.tokens / before,
        "visible": verdicts.count("visible"),
        "routed": verdicts.count("routed"),
        "lost": verdicts.count("lost"),
        "edits": len(edits),
        "failed": sum(not edit.whole for edit in edits),
        "seconds": took,
    }


def report(rows: list[dict[str, object]]) -> None:
    """Means over cuts, and over owners."""
    groups: dict[tuple[object, ...], list[dict[str, float]]] = defaultdict(list)
    for row in rows:
        groups[row["prune"], row["policy"]].append(row)  # type: ignore[arg-type]
    print(
        f"{'policy':24}{'share':>16}{'cuts':>6}{'pruned':>8}{'missed':>8}{'lost':>7}{'none':>7}{'edits failed':>14}{'of':>6}{'by owner':>9}{'ms/10k':>8}"
    )
    for (prune, name), each in groups.items():
        missed = [row["routed"] + row["lost"] for row in each]
        owners: dict[object, list[float]] = defaultdict(list)
        for row, count in zip(each, missed, strict=True):
            owners[row["owner"]].append(count)
        of_owners = sum(sum(counts) / len(counts) for counts in owners.values()) / len(owners)
        n = len(each)
        print(
            f"{name:24}{prune!s:>16}{n:6}{sum(r['pruned'] for r in each) / n:8.3f}{sum(missed) / n:8.3f}{sum(r['lost'] for r in each) / n:7.3f}"
            f"{sum(m == 0 for m in missed) / n:7.1%}{sum(r['failed'] for r in each):14.0f}{sum(r['edits'] for r in each):6.0f}{of_owners:9.3f}"
            f"{1e7 * sum(r['seconds'] for r in each) / sum(r['tokens'] for r in each):8.1f}"
        )
    by_owner: dict[object, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    first = next((prune for prune, _ in reversed(groups)), "")
    names = [str(name) for prune, name in groups if prune == first]
    for row in rows:
        if row["prune"] == first:
            by_owner[row["owner"]][str(row["policy"])].append(row["routed"] + row["lost"])  # type: ignore[operator]
    for owner, each in sorted(by_owner.items(), key=lambda pair: str(pair[0])):
        print(
            f"  {owner!s:20}{len(each[names[0]]):4}"
            + "".join(f"{name[:14]:>16}{sum(each[name]) / len(each[name]):6.2f}" for name in names)
        )


if __name__ == "__main__":
    main()
