"""The protocols of docs/protocols.md over folders of recorded sessions, as tables: `python bench/protocols.py FOLDER... [--policies cwl,...]`.

`--only` runs a part (workload, isolated, accumulating, sweep, curves), `--human 0` lays all tasks into one conversation, `--json FILE` writes
every event as a line. `tenure evidence` makes pages of the same, for all policies, and spreads the work.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import policy_named
from tenure.errors import InputError
from tenure.lab.evidence.corpus import Corpus, Member
from tenure.lab.evidence.measure import COMPACTIONS, CorpusEvents, Line
from tenure.lab.evidence.pages import events_of, sections
from tenure.lab.loading import source
from tenure.lab.measured import AccumulatingRun, IsolatedRun, Needed
from tenure.lab.protocols.accumulating import HUMAN_TOKENS, ConversationTask, accumulating, layout_of
from tenure.lab.protocols.compaction import compacted
from tenure.lab.protocols.curves import curves
from tenure.lab.protocols.runs import CEILINGS, USUAL, Conditions, budget_of, isolated
from tenure.lab.protocols.workload import hard_set, profile
from tenure.lab.query import write
from tenure.lab.report.template import asking

NO_SESSIONS: Final = ("MANIFEST.jsonl", "README.md", "FORMATS.md")
SUFFIXES: Final = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
PARTS: Final = ("workload", "isolated", "accumulating", "sweep", "curves")
SECTIONS: Final = {"workload": "sessions", "curves": "bounds"}  # of the evidence, that show a part; the others have tables here
CEILING: Final = 80_000
TOKENIZER: Final = o200k()
_CELLS: Final = """total_usd(m.bill) as 'usd|usd', m.bill.recall.usd as 'recalls|usd', m.bill.fetched_again.usd as 'again|usd', m.view_tokens / nullif(m.calls, 0) as 'mean|count',
    m.commits as 'commits|count', m.prefix_breaks as 'breaks|count', m.misses.routed as 'routed|count', m.misses.lost as 'lost|count', m.misses.calls as 'calls|count',
    m.unmet as 'unmet|count', len(m.violations) as 'wrong|count'"""
TABLES: Final = {
    "isolated": f"""select class as 'class|text', policy as 'policy|text', {_CELLS} from (
        select coalesce(g.name, 'all') as class, coalesce(g.place, 100) as place, policy, min(n) as n, added(measured) as m
        from (select *, null as name from runs where budget.ceiling is null or budget.ceiling = {CEILING} union all select runs.*, groups.name from runs join groups using (source)
            where budget.ceiling is null or budget.ceiling = {CEILING}) r left join rules g using (name) group by all) order by place, n""",
    "accumulating": f"""select called(policy, variant, ceiling) as 'policy|text', {_CELLS}, own.routed + own.lost as 'own|count', across.routed + across.lost as 'across|count',
        dependent.routed + dependent.lost as 'dependent|count' from (select policy, variant, budget.ceiling as ceiling, min(n) as n, added(measured) as m, misses(own) as own,
        misses(across) as across, misses(dependent) as dependent from conversations group by all) order by n""",
    "sweep": f"select protocol as 'protocol|text', called(policy, variant, ceiling) as 'policy|text', ceiling as 'ceiling|limit', {_CELLS} from (select *, measured as m from swept) order by first",
    "claims": "select claim as 'claim|text', policy as 'policy|text', protocol as 'protocol|text', verdict as 'verdict|text', because as 'because|text', figures as 'figures|figures' from claims order by n",
}  # fmt: skip


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--policies", default="cwl,graph", help="names joined by commas")
    parser.add_argument("--only", default=",".join(PARTS), help="parts joined by commas: " + ", ".join(PARTS))
    parser.add_argument("--human", type=int, default=HUMAN_TOKENS, help="words of people that one conversation holds; 0: any")
    parser.add_argument("--head", type=int, default=USUAL.head_tokens, help="tokens of system prompt and tools")
    parser.add_argument("--floor", type=int, default=0, help="how far down a batch goes, in tokens; 0: as usual")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    only, names, floor = given.only.split(","), given.policies.split(","), given.floor or None
    conditions = replace(USUAL, head_tokens=given.head)
    started = time.perf_counter()
    conversations = layout_of(sorted(filter(_is_known, _files(given.folders))), TOKENIZER, human_tokens=given.human or None)
    tasks = [task for conversation in conversations for task in conversation]
    if not tasks:
        print("no session with an answer of a model in it")
        return
    print(f"{len(tasks)} tasks in {len(conversations)} conversations, {sum(task.tokens for task in tasks):,} tokens\n")
    ceilings = CEILINGS if "sweep" in only else (CEILING, None)
    lines: list[Line] = [*tasks]
    if {"isolated", "sweep"} & set(only):
        lines += _isolated(tasks, names, ceilings, floor, conditions)
    if {"accumulating", "sweep"} & set(only):
        lines += _accumulating(conversations, names, ceilings, floor, conditions)
    if "curves" in only:
        lines += (Needed(source=task.source, curves=curves(source(task.source), TOKENIZER)) for task in tasks)
    profiles = hard_set(profile(source(task.source), TOKENIZER) for task in tasks) if {"workload", "isolated"} & set(only) else ()
    members = tuple(Member(name=each.source, tool=each.format, sha256="") for each in profiles)
    found = CorpusEvents(corpus=Corpus(folder="", members=members), code="", profiles=profiles, lines=tuple(lines))
    with events_of(found, {name: tuple(each for each in ceilings if each) for name in names}) as events:
        for part in (part for part in PARTS if part in only):
            shown = (
                [each.text for each in sections(events, [SECTIONS[part]])]
                if part in SECTIONS
                else [asking(events)["table"](TABLES[part])]
            )
            print("\n\n".join(shown), end="\n\n")
        if "sweep" in only:
            print(asking(events)["table"](TABLES["claims"]))
    if given.json:
        write(given.json, found.events)
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


def _ways(names: Sequence[str], ceilings: Sequence[int | None]) -> list[tuple[str, int | None]]:
    return [("none", None), *((name, ceiling) for name in names for ceiling in ceilings if ceiling is not None)]


def _isolated(
    tasks: Sequence[ConversationTask],
    names: Sequence[str],
    ceilings: Sequence[int | None],
    floor: int | None,
    conditions: Conditions,
) -> Iterator[IsolatedRun]:
    for task in tasks:
        for name, ceiling in _ways(names, ceilings):
            budget = budget_of(ceiling, floor=floor if ceiling else None)
            yield isolated(source(task.source), policy_named(name), budget, TOKENIZER, conditions=conditions)


def _accumulating(
    conversations: Sequence[Sequence[ConversationTask]],
    names: Sequence[str],
    ceilings: Sequence[int | None],
    floor: int | None,
    conditions: Conditions,
) -> Iterator[AccumulatingRun]:
    for name, ceiling in _ways(names, ceilings):
        budget = budget_of(ceiling, floor=floor if ceiling else None)
        for tasks in conversations:
            yield accumulating(tasks, policy_named(name), budget, TOKENIZER, conditions=conditions)
    for how in COMPACTIONS:
        yield from (compacted(tasks, how, TOKENIZER, conditions=conditions) for tasks in conversations)


if __name__ == "__main__":
    main()
