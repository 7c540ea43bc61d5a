"""One session of 80 million tokens under an 80k ceiling, stored as it goes: `python bench/long_session.py [MILLIONS] [FOLDER]`.

Messages are generated and streamed; tokens are estimated (characters / 4), so that the figures are the engine's. A request is built for every
call; human text stays under 20k tokens in all. Prints times of calls with and without a commit, and memory at the end.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tenure.context import Context
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Stay, Unmet

CEILING = 80_000
HUMAN_EVERY = 600  # steps
WORDS = "the parser reads each token of the stream and keeps the offset of its first byte for the error report\n"


def estimate(text: str) -> int:
    """Characters / 4."""
    return len(text) // 4 + 1


def steps(tokens: int) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]]:
    """What the human says before a step (mostly nothing), the reply, and the results: up to that many tokens in all."""
    made = number = 0
    while made < tokens:
        size = (number * 7919) % 900 + 200  # 200 to 1,100 tokens, as reads and commands give
        text = (WORDS * (size * 4 // len(WORDS) + 1))[: size * 4]
        calls = [
            {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"path": f"src/module_{number % 997}.py"}}
        ]
        said = {"type": "text", "text": f"Next I look at module {number % 997}, where step {number} continues."}
        human = [{"role": "user", "content": f"Go on with part {number // HUMAN_EVERY}."}] if number % HUMAN_EVERY == 0 else []
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"{number}\n{text}"}
        yield human, {"role": "assistant", "content": [said, *calls]}, [{"role": "user", "content": [result]}]
        made += size + 60
        number += 1


def main() -> None:
    """Run it and print the figures."""
    millions = float(sys.argv[1]) if len(sys.argv) > 1 else 80.0
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        run(int(millions * 1e6), Path(scratch) / "long.db")


def run(tokens: int, path: Path) -> None:
    """One session of that many tokens."""
    calm: list[float] = []
    committing: list[float] = []
    unmet = peak = 0
    started = time.perf_counter()
    with Context(budget=Budget(ceiling=CEILING), store=f"sqlite:///{path}", tokenizer=estimate) as context:
        for human, reply, results in steps(tokens):
            begun = time.perf_counter()
            context.extend(human)
            context.request(model="claude-opus-5", max_tokens=4096)
            taken = time.perf_counter() - begun
            (calm if isinstance(context.decision, Stay) else committing).append(taken)
            unmet += isinstance(context.decision, Unmet)
            peak = max(peak, context.gauge.tokens)
            context.extend([reply, *results])
        index = context.session.index
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
        print(f"{index.tokens / 1e6:.1f}M tokens, {len(index):,} messages, {len(calm) + len(committing):,} calls, peak {peak:,}")
        print(f"commits {len(committing):,}, unmet {unmet}, {path.stat().st_size / 1e6:,.0f} MB stored")
        for name, times in (("calls without a commit", calm), ("calls with a commit", committing)):
            if len(times) > 1:
                print(f"{name}: median {median(times) * 1e3:.2f} ms, p99 {quantiles(times, n=100)[98] * 1e3:.2f} ms")
        print(f"memory at the end {memory:,.0f} MB, whole run {time.perf_counter() - started:,.0f} s")


if __name__ == "__main__":
    main()
