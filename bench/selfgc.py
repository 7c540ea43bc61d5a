"""Self-GC with the recorded answers of language models: `python bench/selfgc.py ask|judge|score FOLDER --answers FILE... [--out FOLDER]`.

`gate` prints what a stand-in's plans cost and save by the paper's rule and by ours, with each part of ours left out. `ask` writes the planner's questions without an answer, in the plain form of a batch (docs/models.md), some to a file; `judge` those of the judge and of
the A/B judge on the plans that came back; `score` prints Self-GC beside the baselines at the same cuts. Sessions are the same on every machine: by the hash
of their names, each folder of the corpus in turn; all their cuts count at which a planner has anything to name and the view is at most MOST tokens.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from tenure.engine.lifecycle.budget import Budget, GateRule
from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.selfgc.setting import SelfGc
from tenure.engine.policies import PEERS, POLICIES
from tenure.errors import InputError, ModelError
from tenure.lab.cuts import PRUNE, cuts, grounds
from tenure.lab.events import PlanLine, SummaryLine
from tenure.lab.evidence.corpus import source_of
from tenure.lab.evidence.measure import SUBJECT, judged
from tenure.lab.intervals import Share
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.cases import cases
from tenure.lab.judges.contracts import Unusable
from tenure.lab.measured import CutLine
from tenure.lab.planner import PLANNER, SELFGC, PlannerPolicy, RecordedPlans
from tenure.lab.replay import Options, replay
from tenure.models.batch import BatchModel, question_id

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
SESSIONS = 20
LEAST_CUTS, MOST_CUTS = 3, 4  # of a session
MOST = 64_000  # o200k tokens of a view
ROOM = 12_000  # of the window in words
IN_A_FILE = 5  # questions


def in_turn(folder: Path) -> Iterator[str]:
    """Every session by name: of each folder the next by hash, folder after folder."""
    by_owner: dict[str, list[str]] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.suffix in SUFFIXES and "/" in name and not name.startswith(("LICENSES/", "marks/")):
            by_owner.setdefault(name.partition("/")[0], []).append(name)
    ordered = [sorted(names, key=lambda name: sha256(name.encode()).digest()) for _, names in sorted(by_owner.items())]
    for row in zip_longest(*ordered):
        yield from (name for name in row if name is not None)


def chosen(folder: Path, policy: PlannerPolicy, sessions: int) -> dict[str, list[int]]:
    """The cuts of each session that counts."""
    found: dict[str, list[int]] = {}
    for name in in_turn(folder):
        if len(found) >= sessions:
            break
        numbers: list[int] = []
        try:
            for ground in grounds(source_of(str(folder), name), o200k()):
                tokens = ground.session.view.tokens
                if tokens <= MOST and policy.question(ground.session.situation(goal=int(tokens * (1 - PRUNE)))) is not None:
                    numbers.append(ground.number)
        except InputError:
            continue
        if len(numbers) >= LEAST_CUTS:
            found[name] = numbers[:MOST_CUTS]
    return found


GATES = {
    "nothing leaves": Options(budget=Budget(), policy=None),
    "paper": Options(budget=Budget(), policy=None, planner=PLANNER, gate=GateRule.SELFGC_PAPER),
    "priced as before": Options(
        budget=Budget(), policy=None, planner=PLANNER, selfgc=SelfGc(in_place=False, bounded=False, by_part=False)
    ),
    "in place": Options(budget=Budget(), policy=None, planner=PLANNER, selfgc=SelfGc(bounded=False, by_part=False)),
    "and by part": Options(budget=Budget(), policy=None, planner=PLANNER, selfgc=SelfGc(bounded=False)),
    "and bounded": Options(budget=Budget(), policy=None, planner=PLANNER),
}
LONG = 60_000  # o200k tokens of a record: below, a planner is never asked
LONGEST = 400_000


def gates(folder: Path, sessions: int) -> None:
    """A row for each gate, all over the same sessions: dollars without and with asking, plans asked for and carried out."""
    totals: dict[str, Counter[str]] = {name: Counter() for name in GATES}
    done = 0
    for name in in_turn(folder):
        if done >= sessions:
            break
        try:
            ends = [
                line
                for line in replay([source_of(str(folder), name)], GATES["nothing leaves"], o200k())
                if isinstance(line, SummaryLine)
            ]
        except InputError:
            continue
        if not LONG <= ends[-1].record_tokens <= LONGEST:
            continue
        done += 1
        for gate, options in GATES.items():
            for line in replay([source_of(str(folder), name)], options, o200k()):
                if isinstance(line, PlanLine):
                    totals[gate]["asked"] += line.asked
                    totals[gate]["committed"] += line.outcome == "committed"
                elif isinstance(line, SummaryLine):
                    totals[gate].update({"calls usd": line.usd, "helpers usd": line.helpers_usd, "calls": line.calls})  # type: ignore[dict-item]
        print(
            f"{done} {name}: " + ", ".join(f"{gate} {row['calls usd'] + row['helpers usd']:.2f}" for gate, row in totals.items()),
            flush=True,
        )
    for gate, row in totals.items():
        print(
            f"{gate:18} ${row['calls usd'] + row['helpers usd']:.2f} of which asking ${row['helpers usd']:.2f}, {row['asked']} plans, {row['committed']} commits, {row['calls']} calls"
        )


def plain_files(model: BatchModel, out: Path, stem: str) -> int:
    """The questions without an answer, IN_A_FILE to a file; how many there are."""
    lines = model.file().splitlines(keepends=True)
    for start in range(0, len(lines), IN_A_FILE):
        (out / f"{stem}-{start // IN_A_FILE + 1:02}.jsonl").write_bytes(b"".join(lines[start : start + IN_A_FILE]))
    return len(lines)


def answers_of(paths: list[Path], out: Path) -> BatchModel:
    """All answers together, whatever file they came in."""
    together = out / "answers.jsonl"
    together.write_bytes(b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in paths))
    return BatchModel(together)


def main() -> None:
    """Ask or score."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("ask", "judge", "score", "gate"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--answers", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args()
    if given.what == "gate":
        gates(given.folder, given.sessions)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "score":
        score(given.folder, recorded(given.answers), given.out)
        return
    model = answers_of(given.answers, given.out)
    policy = PlannerPolicy(model=model, room=ROOM)
    if given.what == "judge":
        judge(given.folder, recorded(given.answers), model)
        plain_files(model, given.out, "judge")
    if given.what == "ask":
        ask(given.folder, policy, given.sessions)
        print(f"{plain_files(model, given.out, 'questions')} questions")


def recorded(paths: list[Path]) -> dict[str, dict[int, str]]:
    """The answers of evidence files: by session and tokens of the view."""
    found: dict[str, dict[int, str]] = {}
    for path in paths:
        for line in path.read_bytes().splitlines():
            answer = msgspec.json.decode(line)
            if "source" in answer:
                found.setdefault(answer["source"], {})[answer["tokens"]] = answer["answer"]
    return found


def judge(folder: Path, plans: dict[str, dict[int, str]], model: BatchModel) -> None:
    """One cut of each session before the no-impact judge, by Self-GC and by the rival at the same share; some of them before the A/B judge, in both orders."""
    for number, name in enumerate(sorted(plans, key=lambda name: sha256(name.encode()).digest())[:JUDGED]):
        one = source_of(str(folder), name)
        mine = [case for case in cases(one, {SELFGC: RecordedPlans(answers=plans[name])}, o200k()) if case.facts.pruned > 0.05]
        if not mine:
            continue
        first = mine[int(sha256(name.encode()).hexdigest(), 16) % len(mine)]
        others = cases(one, {RIVAL: POLICIES_AND_PEERS[RIVAL]}, o200k(), prune=first.facts.pruned)
        second = next(case for case in others if case.facts.cut == first.facts.cut)
        requests = [no_impact.ask(each, count=o200k(), room=JUDGE_ROOM) for each in (first, second)]
        if number % 2 == 0:
            requests += [preference.ask(*pair, count=o200k(), room=JUDGE_ROOM) for pair in ((first, second), (second, first))]
        kinds = [("no-impact", SELFGC), ("no-impact", RIVAL), ("a-b", f"{SELFGC},{RIVAL}"), ("a-b", f"{RIVAL},{SELFGC}")]
        for request, (kind, policies) in zip(requests, kinds, strict=False):
            print(
                msgspec.json.encode(
                    {
                        "id": question_id(request.question),
                        "kind": kind,
                        "policies": policies,
                        "source": name,
                        "cut": first.facts.cut,
                        "pruned": [first.facts.pruned, second.facts.pruned],
                        "objects": sorted(request.objects),
                    }
                ).decode(),
                flush=True,
            )
            with suppress(ModelError):
                model(request.question)


RIVALS = ("oldest-turn", "tool-prune", "tool-mask-prune", "hybrid", "tiered", SUBJECT)
PAPER_ROWS = (  # Tables 3 and 4: pruned, no impact, and its interval
    ("oldest-turn", "63.5 %, 66.7 % [49.6, 80.3]", "40.2 %, 87.5 % [83.5, 90.6]"),
    ("tool-prune", "67.9 %, 69.7 % [52.7, 82.6]", "47.8 %, 77.7 % [72.9, 81.9]"),
    ("tool-mask-prune", "61.9 %, 54.6 % [38.0, 70.2]", "47.8 %, 80.1 % [75.5, 84.1]"),
    ("hybrid", "69.9 %, 57.6 % [40.8, 72.8]", "46.3 %, 83.7 % [79.4, 87.3]"),
    ("selfgc", "44.0 %, 84.9 % [69.1, 93.4]", "31.0 to 34.0 %, 91.3 to 94.6 % [87.7, 96.5]"),
)
DRAWS = 2_000


def verdicts_of(lines: list[dict[str, Any]], counted: list[CutLine]) -> str:
    """What recorded verdicts come to: no impact by policy, beside the count at the same cuts, and which plan the A/B judge prefers."""
    rows = list[str]()
    for name in (SELFGC, RIVAL):
        verdicts = [
            (line, no_impact.read(line["answer"], frozenset(line["objects"])))
            for line in lines
            if line["kind"] == "no-impact" and line["policies"] == name
        ]
        read = [(line, verdict) for line, verdict in verdicts if not isinstance(verdict, Unusable)]
        share = Share(hits=sum(verdict.valid for _, verdict in read), of=len(read))
        places = {(line["source"], line["cut"]) for line, _ in read}
        same = [
            line
            for line in counted
            if (line.source, line.cut) in places and line.policy == name and line.matched == ("" if name == SELFGC else SELFGC)
        ]
        pruned = sum(line["pruned"][0 if name == SELFGC else 1] for line, _ in read) / max(1, len(read))
        rows.append(
            f"| {name} | {len(read)} | {len(verdicts) - len(read)} | {pruned:.1%} | {share.value or 0:.1%} [{share.interval.low:.1%}, {share.interval.high:.1%}]"
            f" | {sum(line.lost == 0 for line in same)} of {len(same)} |"
        )
    pairs: dict[tuple[str, int], dict[str, str]] = {}
    for line in lines:
        verdict = preference.read(line["answer"]) if line["kind"] == "a-b" else None
        if verdict is not None and not isinstance(verdict, Unusable):
            first, second = line["policies"].split(",")
            better = {"A_better": first, "B_better": second}.get(verdict.verdict, "tie")
            pairs.setdefault((line["source"], line["cut"]), {})[line["policies"]] = better
    preferred = (set(found.values()) for found in pairs.values())
    outcomes = Counter(found.pop() if len(found) == 1 else "tie" for found in preferred)
    return JUDGED_PAGE.format(
        rows="\n".join(rows),
        cuts=len({(line["source"], line["cut"]) for line in lines}),
        pairs=len(pairs),
        twice=sum(len(found) == 2 for found in pairs.values()),
        mine=outcomes[SELFGC],
        ties=outcomes["tie"],
        other=outcomes[RIVAL],
        rival=RIVAL,
    )


JUDGED_PAGE = """## By a judge

At {cuts} cuts, each of another session, before the judges of [judges.md](../judges.md): too few to decide anything. {rival} took the share that Self-GC took (or the next that it can
take). The judge, a language model that read the questions as made with at most 18,000 tokens, read both plans of a cut one after another; whether it was the model that planned is not
recorded. Eleven cuts were put to it; the verdicts at five of them are left out, since their plans are among those thrown away. The verdicts: [selfgc-judged.jsonl](selfgc-judged.jsonl).

| policy | verdicts | unreadable | pruned | no impact | nothing lost, as counted above |
|---|---:|---:|---:|---|---:|
{rows}

The A/B judge was asked at {pairs} cuts, at {twice} of them in both orders. It prefers Self-GC at {mine}, {rival} at {other} and neither at {ties}; where both orders were
answered and differ, that is neither. In one order Self-GC is the first of the two, so a leaning to the first is not ruled out. Verdicts in the
other order had been written as mirror images of the first, without a reading of their own, and are withdrawn.
"""


def score(folder: Path, plans: dict[str, dict[int, str]], out: Path) -> None:
    """Every line of every cut with a plan, to a file; and the tables."""
    lines: list[CutLine] = []
    for name, answers in sorted(plans.items()):
        one = source_of(str(folder), name)
        rivals = {rival: policy for rival in RIVALS if (policy := judged(POLICIES_AND_PEERS[rival], name)) is not None}
        mine = list(cuts(one, {SELFGC: RecordedPlans(answers=answers)}, o200k(), beside=rivals))
        numbers = {line.cut for line in mine}
        lines += [*mine, *(line for line in cuts(one, rivals, o200k()) if line.cut in numbers)]
    (out / "selfgc.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    (out / "selfgc.md").write_text(page(lines, plans))
    print(tables(lines))


def page(lines: list[CutLine], plans: dict[str, dict[int, str]]) -> str:
    """The page of the evidence."""
    owners = {name.partition("/")[0] for name in plans}
    rows = "\n".join(f"| {name} | {hard} | {suite} |" for name, hard, suite in PAPER_ROWS)
    verdicts = Path(__file__).parents[1] / "docs" / "evidence" / "selfgc-judged.jsonl"
    return PAGE.format(
        plans=sum(map(len, plans.values())),
        sessions=len(plans),
        owners=len(owners),
        idle=sum(line.idle for line in lines if line.policy == SELFGC),
        waiting=sum(line.idle for line in lines if line.policy == "oldest-turn" and line.matched == SELFGC),
        tables=tables(lines),
        rows=rows,
        judged=verdicts_of(list(map(msgspec.json.decode, verdicts.read_bytes().splitlines())), lines)
        if verdicts.is_file()
        else "",
    )


PAGE = """# Self-GC beside the paper's figures

Self-GC with plans that a language model gave, reading nothing but the planner's question: {plans} cuts of {sessions} sessions of {owners} owners. The answers are kept in
[selfgc-answers.jsonl](selfgc-answers.jsonl), so anybody who has the sessions makes the same page again:

    python bench/selfgc.py score SESSIONS --answers docs/evidence/selfgc-answers.jsonl --out docs/evidence

Which model answered is not recorded: the origin of every answer reads "a language model, reading the question". It saw the window in words, 12,000 tokens of it at
most: of larger views (up to 64,000) the largest pieces had lost their middle, which is a handicap that a planner behind the agent's own request has not. None of the
sessions holds a mark. Sessions were chosen by the hash of their names, folder after folder; cuts count at which anything could be named. What a plan names leaves at
once; no gate prices it.

The first recording had 60 answers. 36 of them were thrown away: their readers had successive snapshots of a session before them together, so they had seen a later one. Of the
others, 23 are kept ("reader": "first"; the longest of their session in the file that was read; one of the 24 was answered again). 49 questions, 17 of them new, were answered by a
fresh reader, of each session the shortest snapshot first and never one whose later snapshot had been seen ("reader": "second"). Five questions remain unanswered. Cut 3
of getspecstory-aa43d131 was written down in the same second as cut 4, from another file, so that it was answered before the other was read is not shown;
without it no share of Self-GC moves by more than 1.2 points.

At {idle} cuts the planner named nothing that could leave, and nothing was missed for that reason; the column "where it acted" leaves such cuts out. "Missed" counts
what a later step used and the view does not show, also where a pointer leads back to it; "nothing lost" is the share of cuts after which everything missed stands
behind a pointer or a residue with a cue, which is what the paper's judge counts as no impact. Intervals are Wilson's over cuts, and by bootstrap over whole sessions, since
the cuts of one session are alike. "Edits broken": of the later edits whose text to find had been touched, those of which it is no longer shown in one piece.

{tables}

The default policy, `graph`, has for each session the weights that were learned without any session of that owner, as in [cuts.md](cuts.md).
At equal shares the comparison with rules that take at least what they are told to is not exact: they took more where their objects are large, as the column says.

## The paper's rows

Pruned, and no impact by GPT-5.5 with Wilson's interval (Tables 3 and 4). Other sessions, another judge: the figures
are not to be compared one by one. There Self-GC is ahead of every baseline; here, at the share that Self-GC took, two leave more cuts
unharmed, with intervals that overlap: `oldest-turn`, which takes less and does nothing at {waiting} of them (where it acts it leaves fewer unharmed, and it misses more a cut), and the default,
`graph`, which misses as much and loses less of it without a pointer, but breaks more edits.

| policy | Hard Set (33 sessions) | Production Suite (332 sessions) |
|---|---|---|
{rows}

{judged}"""


def tables(lines: list[CutLine]) -> str:
    """Self-GC and the rivals at the usual share, then at the share that Self-GC took."""
    head = "| policy | cuts | did nothing | pruned | nothing missed | where it acted | nothing lost | missed a cut | edits broken |\n|---|---:|---:|---:|---|---:|---|---:|---:|\n"
    parts = list[str]()
    for title, matched in (("each at 45 %, Self-GC at what it names", ""), ("each at the share that Self-GC took", SELFGC)):
        acted = {(line.source, line.cut) for line in lines if line.matched == SELFGC}
        if matched:
            lines = [line for line in lines if (line.source, line.cut) in acted]
        names = dict.fromkeys(line.policy for line in lines if line.policy == SELFGC or line.matched == matched)
        rows = [
            _row(name, [line for line in lines if line.policy == name and line.matched == ("" if name == SELFGC else matched)])
            for name in names
        ]
        parts.append(f"### {title}\n\n{head}" + "\n".join(rows))
    return "\n\n".join(parts)


def _row(name: str, lines: list[CutLine]) -> str:
    acted = [line for line in lines if not line.idle]
    missed = [line.missed for line in lines]
    share = Share(hits=sum(line.missed == 0 for line in lines), of=len(lines))
    low, high = _clustered(lines, lambda line: line.missed == 0)
    kept = Share(hits=sum(line.lost == 0 for line in lines), of=len(lines))
    fewest, most = _clustered(lines, lambda line: line.missed)
    wilson = share.interval
    own = sum(line.missed == 0 for line in acted) / max(1, len(acted))
    edits, broken = sum(line.edits for line in lines), sum(line.broken_edits for line in lines)
    return (
        f"| {name} | {len(lines)} | {len(lines) - len(acted)} | {sum(line.pruned for line in lines) / len(lines):.1%}"
        f" | {share.value:.1%} [{wilson.low:.1%}, {wilson.high:.1%}], by session [{low:.1%}, {high:.1%}] | {own:.1%}"
        f" | {kept.value:.1%} [{kept.interval.low:.1%}, {kept.interval.high:.1%}]"
        f" | {sum(missed) / len(missed):.2f} [{fewest:.2f}, {most:.2f}] | {broken} of {edits} |"
    )


def _clustered(lines: list[CutLine], value: Callable[[CutLine], float]) -> tuple[float, float]:
    """Where a mean lies in 95 of 100 draws of whole sessions."""
    by_session: dict[str, list[float]] = {}
    for line in lines:
        by_session.setdefault(line.source, []).append(float(value(line)))
    groups, random = list(by_session.values()), Random(7)
    means = list[float]()
    for _ in range(DRAWS):
        drawn = [each for group in random.choices(groups, k=len(groups)) for each in group]
        means.append(sum(drawn) / len(drawn))
    means.sort()
    return means[int(DRAWS * 0.025)], means[int(DRAWS * 0.975)]


RIVAL = "tool-prune"
POLICIES_AND_PEERS = {**POLICIES, **PEERS}
JUDGED = 14
JUDGE_ROOM = 18_000


def ask(folder: Path, policy: PlannerPolicy, sessions: int) -> None:
    """Ask for a plan at every cut that counts."""
    places = chosen(folder, policy, sessions)
    for name, numbers in places.items():
        for ground in grounds(source_of(str(folder), name), o200k()):
            if ground.number in numbers:
                situation = ground.session.situation(goal=int(ground.session.view.tokens * (1 - PRUNE)))
                try:
                    list(policy(situation))
                except ModelError:
                    continue


if __name__ == "__main__":
    main()
