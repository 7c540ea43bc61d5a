"""Recorded sessions with stand-ins for a planner and a summariser: no law is broken, and what leaves comes back byte for byte.

A sample goes through both models beside a policy, and through each model alone; `bench/planned.py` takes all through everything.
"""

from collections import Counter
from pathlib import Path

import pytest

from corpus_sessions import needs_corpus, path_of, sample
from tenure.engine.lifecycle.automatic import Absolute
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import POLICIES
from tenure.lab.events import PlanLine, SummaryLine
from tenure.lab.loading import source
from tenure.lab.planner import PLANNER, SUMMARISER
from tenure.lab.replay import Options, replay

SESSIONS = [path_of(row) for row in sample()]
BOTH = Options(
    budget=Budget(ceiling=30_000),
    policy=POLICIES["tiered"],
    planner=PLANNER,
    summariser=SUMMARISER,
    handoff_at=Absolute(tokens=20_000),
)
ALONE = {
    "planner": Options(budget=Budget(window=30_000), policy=None, planner=PLANNER),
    "summariser": Options(budget=Budget(window=30_000), policy=None, summariser=SUMMARISER),
}

pytestmark = needs_corpus


def replayed(path: Path, options: Options) -> Counter[str]:
    """What became of plans and briefs; the laws are held to, and what left is read again."""
    told: Counter[str] = Counter()
    for line in replay([source(str(path))], options, o200k()):
        if isinstance(line, PlanLine) and line.asked:
            told[f"{line.policy} {line.outcome}"] += 1
        if isinstance(line, SummaryLine):
            assert line.violations == (), path.name
            assert line.recoverable_share == 1.0, path.name
    return told


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name)
def test_plans_and_briefs_beside_a_policy_keep_the_laws(path: Path) -> None:
    replayed(path, BOTH)


@pytest.mark.parametrize("name", ALONE)
def test_plans_alone_and_briefs_alone_keep_the_laws(name: str) -> None:
    told = sum((replayed(path, ALONE[name]) for path in SESSIONS), Counter[str]())
    assert told["selfgc committed" if name == "planner" else "handoff committed"] > 0
