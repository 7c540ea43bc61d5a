"""What storing costs: `python bench/append.py [DIRECTORY] [ENTRIES]` appends small entries to a new SQLite store and reads them back."""

import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from statistics import median, quantiles

from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Text
from tenure.store.records import Conversation
from tenure.store.store import Store


def small_entries(count: int) -> list[Entry]:
    """A conversation of short messages, about 300 bytes each."""
    chain = Chain()
    words = "the quick brown fox jumps over the lazy dog " * 5
    return [
        chain.place(
            Draft(role=Role.USER, blocks=(Text(text=f"{n} {words}", origin=Origin.HUMAN),), at="2026-01-01T00:00:00Z"), (60,)
        )
        for n in range(count)
    ]


def append_each(store: Store, entries: list[Entry]) -> list[float]:
    """Seconds of each append, one transaction each."""
    store.create(Conversation(id="c"))
    taken: list[float] = []
    for entry in entries:
        started = time.perf_counter()
        store.append("c", (entry,))
        taken.append(time.perf_counter() - started)
    return taken


def timed(label: str, count: int, started: float) -> None:
    """Print the time since `started`, for `count` entries."""
    took = time.perf_counter() - started
    print(f"{label:34} {took:8.2f} s {took / count * 1e6:8.1f} us each")


def main(directory: Path, count: int) -> None:
    """Append, read, verify, and measure the memory of reading."""
    entries = small_entries(count)
    for synchronous, some in (("NORMAL", entries), ("FULL", entries[:500])):
        path = directory / f"append-{synchronous}.db"
        with Store(f"sqlite:///{path}", synchronous=synchronous) as store:  # type: ignore[arg-type]
            taken = append_each(store, some)
        p99 = quantiles(taken, n=100)[98]
        print(
            f"append 1, synchronous={synchronous:8} n={len(some):6}  median {median(taken) * 1e6:.1f} us  p99 {p99 * 1e6:.1f} us"
        )
    path = directory / "append-NORMAL.db"
    print(f"bytes stored per entry {path.stat().st_size / count:.0f}")
    with Store(f"sqlite:///{path}") as store:
        started = time.perf_counter()
        assert sum(1 for _ in store.entries("c")) == count
        timed("read back", count, started)
        started = time.perf_counter()
        assert store.verify("c") is None
        timed("verify", count, started)
        tracemalloc.start()
        for _ in store.entries("c"):
            pass
        print(f"peak memory of reading {tracemalloc.get_traced_memory()[1] / 1e6:.2f} MB")
        tracemalloc.stop()
    with Store(f"sqlite:///{directory / 'batch.db'}") as store:
        store.create(Conversation(id="c"))
        started = time.perf_counter()
        store.append("c", entries)
        timed("append all in one transaction", count, started)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary), int(sys.argv[2]) if len(sys.argv) > 2 else 50_000)
