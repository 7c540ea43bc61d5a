"""What a request costs once an eviction has edited hundreds of entries: `python bench/edited.py`.

A session of 600 calls is brought down to half its size by one commit; then calls go on without another. One call was interrupted, so that the view has a
result of ours, whose id depends on what stands before it. Printed: how many shown entries are edited, and the median of building a request's bytes.
"""

import json
import time
from statistics import median
from typing import Any

from msgspec.structs import replace

from long_session import estimate, steps
from tenure import Budget, Context
from tenure.apis import APIS, USUAL
from tenure.engine.view.piece import Piece
from tenure.testing.store import MemoryStore

STEPS = 600
CALLS = 12
WINDOW = 10**9


def spelled(api: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of the usual API in the shape of another."""
    pieces = [Piece(role=draft.role, blocks=draft.blocks) for draft in APIS[USUAL].parse(messages)]
    return messages if api == USUAL else [json.loads(message) for message in APIS[api].render(pieces)]


def run(api: str, policy: str) -> tuple[int, float]:
    """Edited entries of the view, and the median of a request's milliseconds."""
    times: list[float] = []
    budget = Budget(ceiling=WINDOW, floor=WINDOW, window=WINDOW)
    with Context(dialect=api, budget=budget, policy=policy, store=MemoryStore(), tokenizer=estimate, clip=0) as context:
        for number, (human, reply, results) in enumerate(steps(WINDOW)):
            if number == STEPS:
                limit = context.session.view.tokens // 2
                budget = Budget(ceiling=limit, floor=limit * 4 // 5, window=WINDOW)
                context.session.setup = replace(context.session.setup, budget=budget)
            if number == STEPS + CALLS:
                break
            context.extend(spelled(api, human) if human else [])
            if number >= STEPS:
                started = time.perf_counter()
                context.wire(model="claude-opus-5", max_tokens=4096)
                times.append(time.perf_counter() - started)
            stopped = [{"role": "user", "content": "No, stop. Go on elsewhere."}]
            context.extend(spelled(api, [reply, *(stopped if number == STEPS - 1 else results)]))
        return sum(not row.whole for row in context.session.view.rows()), median(times[2:]) * 1e3


def main() -> None:
    """Print the table."""
    print(f"{'API':<18} {'policy':<16} {'edited':>7} {'a request':>12}")
    for api in APIS:
        for policy in ("graph", "tiered", "clear-tool-uses"):
            edited, took = run(api, policy)
            print(f"{api:<18} {policy:<16} {edited:>7} {took:>9.1f} ms")


if __name__ == "__main__":
    main()
