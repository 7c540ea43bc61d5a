"""The protocols of docs/protocols.md over folders of recorded sessions, as tables: `python bench/protocols.py FOLDER... [--policies cwl,...]`.

`--only` runs a part (workload, isolated, accumulating, sweep, curves), `--human 0` lays all tasks into one conversation, `--json FILE` writes
every struct as a line.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import policy_named
from tenure.errors import InputError
from tenure.lab.events import AccumulatingRun, Curves, IsolatedRun, Measured, Profile
from tenure.lab.loading import source
from tenure.lab.protocols.accumulating import accumulating, together
from tenure.lab.protocols.claims import Tested, tested
from tenure.lab.protocols.compaction import EARLY, LATE, Says, compacted
from tenure.lab.protocols.conditions import USUAL, Conditions, budget_of
from tenure.lab.protocols.curves import curves, merged
from tenure.lab.protocols.isolated import ClassRow, by_class, isolated
from tenure.lab.protocols.sweep import SweepRow, sweep_accumulating, sweep_isolated
from tenure.lab.protocols.tasks import HUMAN_TOKENS, Task, laid_out
from tenure.lab.protocols.workload import hard_set, profile

NO_SESSIONS: Final = ("MANIFEST.jsonl", "README.md", "FORMATS.md")
SUFFIXES: Final = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
PARTS: Final = ("workload", "isolated", "accumulating", "sweep", "curves")
SAYS: Final[tuple[Says, ...]] = ("nothing", "brief", "names")
CEILING: Final = 80_000
TOKENIZER: Final = o200k()


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--policies", default="cwl,provenance", help="names joined by commas")
    parser.add_argument("--only", default=",".join(PARTS), help="parts joined by commas: " + ", ".join(PARTS))
    parser.add_argument("--human", type=int, default=HUMAN_TOKENS, help="words of people that one conversation holds; 0: any")
    parser.add_argument("--head", type=int, default=USUAL.head_tokens, help="tokens of system prompt and tools")
    parser.add_argument("--floor", type=int, default=0, help="how far down a batch goes, in tokens; 0: as usual")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    only, names = given.only.split(","), given.policies.split(",")
    conditions = replace(USUAL, head_tokens=given.head)
    addresses = sorted(filter(_is_known, _files(given.folders)))
    told: list[msgspec.Struct] = []
    started = time.perf_counter()
    conversations = laid_out(addresses, TOKENIZER, human_tokens=given.human or None)
    tasks = [task for conversation in conversations for task in conversation]
    if not tasks:
        print("no session with an answer of a model in it")
        return
    told += tasks
    print(f"{len(tasks)} tasks in {len(conversations)} conversations, {sum(task.tokens for task in tasks):,} tokens\n")
    if "workload" in only or "isolated" in only:
        profiles = hard_set(profile(source(task.source), TOKENIZER) for task in tasks)
        told += profiles
        _print_profiles(profiles)
        if "isolated" in only:
            runs = list(_isolated(tasks, names, given.floor, conditions))
            told += runs
            _print_classes(by_class(runs, profiles))
    if "accumulating" in only:
        found = list(_accumulating(conversations, names, given.floor, conditions))
        told += found
        _print_accumulating(found)
    if "sweep" in only:
        policies = {name: policy for name in names if (policy := policy_named(name)) is not None}
        compactions = [replace(each, says="brief") for each in (LATE, EARLY)]
        rows = [*sweep_accumulating(conversations, policies, TOKENIZER, compactions=compactions, conditions=conditions)]
        rows += sweep_isolated([task.source for task in tasks], policies, TOKENIZER, conditions=conditions)
        claims = tuple(tested(rows))
        told += [*rows, *claims]
        _print_sweep(rows)
        _print_claims(claims)
    if "curves" in only:
        every = merged(curves(source(task.source), TOKENIZER) for task in tasks)
        told.append(every)
        _print_curves(every)
    if given.json:
        given.json.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in told))
    print(f"{time.perf_counter() - started:.0f} s")


def _files(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        every = [folder] if folder.is_file() else folder.rglob("*")
        yield from (str(path) for path in every if path.suffix in SUFFIXES and path.name not in NO_SESSIONS)


def _is_known(address: str) -> bool:
    try:
        source(address).events()
    except InputError as error:
        print(error, file=sys.stderr)
        return False
    return True


def _isolated(tasks: Sequence[Task], names: Sequence[str], floor: int, conditions: Conditions) -> Iterator[IsolatedRun]:
    for task in tasks:
        yield isolated(source(task.source), None, budget_of(None), TOKENIZER, conditions=conditions)
        for name in names:
            budget = budget_of(CEILING, floor=floor or None)
            yield isolated(source(task.source), policy_named(name), budget, TOKENIZER, conditions=conditions)


def _accumulating(
    conversations: Sequence[Sequence[Task]], names: Sequence[str], floor: int, conditions: Conditions
) -> Iterator[AccumulatingRun]:
    def run(name: str) -> AccumulatingRun:
        policy = policy_named(name)
        budget = budget_of(CEILING if policy else None, floor=(floor or None) if policy else None)
        return together([accumulating(tasks, policy, budget, TOKENIZER, conditions=conditions) for tasks in conversations])

    yield run("none")
    yield from map(run, names)
    for compacting in (LATE, EARLY):
        for says in SAYS:
            how = replace(compacting, says=says)
            yield together([compacted(tasks, how, TOKENIZER, conditions=conditions) for tasks in conversations])


def _print_profiles(profiles: Sequence[Profile]) -> None:
    print(f"{'class':26} {'sessions':>8} {'hard':>5} {'tokens':>11} {'of tools':>8} {'replies':>8}")
    for group in dict.fromkeys(sorted(each.workload for each in profiles)):
        found = [each for each in profiles if each.workload is group]
        tokens, results = sum(each.tokens for each in found), sum(each.result_tokens for each in found)
        hard, replies = sum(each.is_hard for each in found), sum(each.replies for each in found)
        print(f"{group:26} {len(found):8} {hard:5} {tokens:11,} {results / max(1, tokens):8.0%} {replies:8,}")
    print()


def _print_classes(rows: Sequence[ClassRow]) -> None:
    print(f"each session alone, ceiling {CEILING:,}\n{'class':26} {_HEADINGS} {'of none':>8}")
    for row in rows:
        none = next(each for each in rows if each.group == row.group and each.policy == "none")
        share = row.measured.bill.total_usd / (none.measured.bill.total_usd or 1.0)
        print(f"{row.group:26} {_cells(row.policy, row.measured)} {share:8.0%}")
    print()


def _print_accumulating(runs: Sequence[AccumulatingRun]) -> None:
    print(f"all tasks in one conversation after another\n{'ceiling':>8} {_HEADINGS} {'own':>6} {'across':>7} {'depend.':>8}")
    for run in runs:
        name = f"{run.policy} ({run.variant})" if run.variant else run.policy
        ceiling = "none" if run.budget.ceiling is None else f"{run.budget.ceiling:,}"
        parted = f"{run.own.missed:6} {run.across.missed:7} {run.dependent.missed:8}"
        print(f"{ceiling:>8} {_cells(name, run.measured)} {parted}")
    print()


def _print_sweep(rows: Sequence[SweepRow]) -> None:
    print(f"budgets\n{'protocol':13} {'ceiling':>8} {_HEADINGS}")
    for row in rows:
        name = f"{row.policy} ({row.variant})" if row.variant else row.policy
        ceiling = "none" if row.ceiling is None else f"{row.ceiling:,}"
        print(f"{row.protocol:13} {ceiling:>8} {_cells(name, row.measured)}")
    print()


def _print_claims(claims: Sequence[Tested]) -> None:
    for claim in claims:
        print(f"{claim.claim} [{claim.origin}] · {claim.policy}, {claim.protocol}: {claim.verdict}: {claim.because}")
        for figure in claim.figures:
            value = f"{figure.value:.0%}" if figure.unit == "share" else f"{figure.value:,.2f}"
            print(f"    {figure.name}: {value}")
    print()


def _print_curves(every: Curves) -> None:
    print(f"{every.needs:,} needs in {every.steps:,} answers of {every.sessions} sessions, {every.tokens:,} tokens\n")
    print(f"{'newest tokens kept':>20} {'needs missed':>13}")
    for reach in every.reach:
        print(f"{reach.kept:20,} {reach.share:13.1%}")
    for title, bands in (("age in tokens", every.by_tokens), ("age in answers", every.by_steps)):
        print(f"\n{title:>20} {'needs':>8} {'per million token-steps':>24}")
        for band in bands:
            print(
                f"{f'{band.start:,} to ' + (f'{band.stop:,}' if band.stop else '...'):>20} {band.needs:8,} {band.per_million:24.2f}"
            )
    print(f"\n{'last held by':26} {'tokens':>10} {'share':>7} {'needs':>7} {'share':>7} {'per 1,000':>10} {'no other kind':>14}")
    for row in every.by_kind:
        held = f"{row.needs:7,} {row.share_of_needs:7.1%} {row.per_thousand:10.2f} {row.sole:14,}"
        print(f"{row.kind:26} {row.tokens:10,} {row.share_of_tokens:7.1%} {held}")
    print()


_HEADINGS: Final = (
    f"{'policy':22} {'usd':>9} {'recalls':>8} {'again':>8} {'mean':>7} {'commits':>7} {'breaks':>7} {'routed':>7} {'lost':>6} {'calls':>6}"
    f" {'unmet':>6} {'wrong':>5}"
)


def _cells(name: str, one: Measured) -> str:
    bill, misses = one.bill, one.misses
    return (
        f"{name:22} {bill.total_usd:9.2f} {bill.recall.usd:8.2f} {bill.fetched_again.usd:8.2f} {one.mean_view_tokens:7,.0f} {one.commits:7}"
        f" {one.prefix_breaks:7} {misses.routed:7} {misses.lost:6} {misses.calls:6} {one.unmet:6} {len(one.violations):5}"
    )


if __name__ == "__main__":
    main()
