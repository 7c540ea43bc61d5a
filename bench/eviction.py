"""One eviction pass far over budget, and what deciding costs while nothing is to happen: `python bench/eviction.py`.

Tokens are estimated (characters / 4), so that the figures are the engine's and not the tokenizer's. The target is a tenth of the transcript.
"""

import time
from collections.abc import Sequence
from statistics import median

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose, Stay
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import weigh
from tenure.engine.policies.cwl import Cwl
from tenure.engine.record.entry import Draft
from tenure.engine.view.rules import Rules
from transcripts import SIZES, episodes

RUNS = 5
RULES = Rules(provider="anthropic", dialect="anthropic", thinking="open_loop")


def estimate(text: str) -> int:
    """Characters / 4."""
    return len(text) // 4 + 1


def grown(drafts: Sequence[Draft], ceiling: int) -> Session:
    """A session that has taken in `drafts` and decided nothing yet."""
    budget = Budget(ceiling=ceiling, floor=ceiling, window=max(ceiling, 10**9))
    session = Session(
        Setup(budget=budget, rules=RULES, policy=Cwl()), weigh=lambda blocks: weigh(blocks, estimate, "flat"), count=estimate
    )
    for draft in drafts:
        session.append(draft)
    return session


def ours(drafts: Sequence[Draft]) -> float:
    """Seconds of one pass down to a tenth: deciding, rehearsing, and taking the commit in. The median of some runs."""
    total = sum(len(block.text) for draft in drafts for block in draft.blocks) // 4
    taken: list[float] = []
    for _ in range(RUNS):
        session = grown(drafts, total // 10)
        started = time.perf_counter()
        decision = session.decide()
        assert isinstance(decision, Propose), decision
        session.commit(decision.commit)
        taken.append(time.perf_counter() - started)
        assert session.view.tokens <= total // 10
    return median(taken)


def within_budget(drafts: Sequence[Draft]) -> float:
    """Seconds of a decision that nothing is to happen."""
    session = grown(drafts, 10**9)
    started = time.perf_counter()
    for _ in range(1_000):
        assert isinstance(session.decide(), Stay)
    return (time.perf_counter() - started) / 1_000


def appending(drafts: Sequence[Draft]) -> float:
    """Median seconds to chain and index one message, without counting and without storing."""
    weights = {id(draft): weigh(draft.blocks, estimate, "flat") for draft in drafts}
    taken: list[float] = []
    session = Session(
        Setup(budget=Budget(window=10**9), rules=RULES, policy=Cwl()),
        weigh=lambda _blocks: weights[id(current)],  # counted beforehand
        count=estimate,
    )
    for current in drafts:
        started = time.perf_counter()
        session.append(current)
        taken.append(time.perf_counter() - started)
    return median(taken)


def main() -> None:
    """Print the table."""
    print(f"{'messages':>9} {'one pass':>12} {'within budget':>15} {'append + index':>16}")
    for size in SIZES:
        drafts = list(episodes(size))
        cells = (ours(drafts) * 1e3, within_budget(drafts) * 1e3, appending(drafts) * 1e3)
        print(f"{size:>9,} {cells[0]:>9.1f} ms {cells[1]:>12.4f} ms {cells[2]:>13.4f} ms")


if __name__ == "__main__":
    main()
