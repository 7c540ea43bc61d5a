"""A corpus of a few sessions that were never had, and rows that were never measured."""

import json
from pathlib import Path
from typing import Literal

from tenure.lab.events import Bill, BudgetLine, Part
from tenure.lab.measured import AccumulatingRun, Annotation, CutLine, IsolatedRun, MarkedRun, Measured, Misses, TaskMisses

ROW_TOKENS = 17  # about


def bulk(rows: int) -> str:
    """Text that nobody asks for again."""
    return "\n".join(f"{n}: nothing here is ever wanted again, row {n * n}" for n in range(rows))


def session(path: Path, *, reads: int, wanted: int = 1, rows: int = 70) -> Path:
    """Reads of a log, part by part; the last call names a ticket that the `wanted`-th part returned."""
    messages: list[dict[str, object]] = [{"role": "user", "content": f"Look through all parts of {path.stem}."}]
    for n in range(reads):
        name = f"TICKET-{path.stem}-90417753.txt" if n == reads - 1 else f"part_{n}.txt"
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": name})}}
        ticket = f"\nsee TICKET-{path.stem}-90417753.txt for the rest\n" if n == wanted else "\n"
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"part {n} of {path.stem}{ticket}{bulk(rows)}"},
        ]
    messages.append({"role": "assistant", "content": "All parts are looked through."})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


LONG = 64_000 // 10 // ROW_TOKENS  # rows of each of ten parts, with which a session is over 80,000 tokens with its head


def corpus(folder: Path, rows: int = 7) -> Path:
    """Two projects, one session of too few calls to be cut, with as many rows in each part, one that is cut, a copy, a file that is none."""
    session(folder / "observatory" / "long.json", reads=10, wanted=2, rows=rows)
    short = session(folder / "observatory" / "short.json", reads=4)
    session(folder / "site" / "middling.json", reads=12)
    (folder / "site" / "again.json").write_bytes(short.read_bytes())
    (folder / "site" / "notes.txt").write_text("Nothing that an agent said.", encoding="utf-8")
    return folder


def cut(
    policy: str, number: int, *, target: float = 0.45, pruned: float | None = None, matched: str = "", missed: int = 0
) -> CutLine:
    """A policy at a cut of the session `a.json`."""
    return CutLine(
        source="a.json",
        policy=policy,
        matched=matched,
        cut=number,
        before_call=number + 10,
        entries=2 * number,
        tokens=40_000,
        target=target,
        pruned=target if pruned is None else pruned,
        visible=2,
        routed=missed // 2,
        lost=missed - missed // 2,
        edits=missed,
        broken_edits=missed // 2,
        idle=pruned == 0.0,
    )


def measured(usd: float, *, calls: int = 200, routed: int = 0, lost: int = 0, unmet: int = 0, peak: int = 90_000) -> Measured:
    """What a replay came to; of its bill half is for reading from the cache."""
    return Measured(
        sessions=1,
        entries=2 * calls,
        calls=calls,
        record_tokens=150_000,
        view_tokens=70_000 * calls,
        peak_view_tokens=peak,
        commits=3,
        prefix_breaks=3,
        bill=Bill(
            calls=calls,
            cache_read=Part(tokens=10**6, usd=usd / 2),
            cache_write=Part(tokens=10**5, usd=usd / 4),
            output=Part(tokens=10**4, usd=usd / 4),
            recalls=routed,
            recall=Part(tokens=100 * routed, usd=0.01 * routed),
        ),
        misses=Misses(visible=5, routed=routed, lost=lost, calls=routed + lost),
        evicted_tokens=60_000,
        evicted_by_kind={"results of bulk tools": 60_000},
        unmet=unmet,
        violations=(),
    )


def alone(
    source: str, policy: str, usd: float, *, ceiling: int | None = 80_000, target: int | None = None, **more: int
) -> IsolatedRun:
    """A session by itself."""
    limited = None if policy == "none" or target else ceiling
    return IsolatedRun(
        source=source,
        policy=policy,
        budget=BudgetLine(target=target, ceiling=limited),
        head_tokens=20_000,
        measured=measured(usd, **more),
    )


def with_marks(policy: str, variant: Literal["plain", "marked"], usd: float, lost: int) -> MarkedRun:
    """A session that has marks, under a policy."""
    return MarkedRun(
        source="a.json",
        policy=policy,
        variant=variant,
        budget=BudgetLine(ceiling=60_000, floor=44_000),
        head_tokens=20_000,
        annotation=Annotation(calls=12, refused=1, tokens=900) if variant == "marked" else Annotation(),
        measured=measured(usd, lost=lost),
    )


def together(policy: str, usd: float, *, ceiling: int | None = 80_000, variant: str = "", **more: int) -> AccumulatingRun:
    """A conversation of one task."""
    found = measured(usd, **more)
    misses = found.misses
    return AccumulatingRun(
        policy=policy,
        variant=variant,
        budget=BudgetLine(ceiling=None if policy == "none" else ceiling),
        head_tokens=20_000,
        measured=found,
        own=misses,
        across=Misses(lost=2),
        dependent=Misses(lost=1),
        tasks=(TaskMisses(conversation=0, task=0, source="a.json", usd=usd, own=misses, across=Misses(lost=2), dependent=Misses(lost=1)),),
    )  # fmt: skip
