"""All measures of one session, or of a stretch of it, together. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenure.engine.meter.ledger import Spent
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit
from tenure.lab.bench.measures.again import Explored, explored
from tenure.lab.bench.measures.annotation import Overhead, Typing, overhead, typing
from tenure.lab.bench.measures.calls import Read, calls_of
from tenure.lab.bench.measures.dependencies import Dependencies, dependencies


class Measured(Struct, frozen=True, kw_only=True):
    """What was measured of the entries from `first` up to `last`."""

    first: int
    last: int
    replies: int  # of the model
    calls: int  # of tools, bookkeeping apart
    recalls: int
    overhead: Overhead
    typing: Typing
    dependencies: Dependencies
    explored: Explored


def measured(
    index: Index,
    read: Read,
    count: Tokenizer,
    *,
    commits: Sequence[Commit] = (),
    spent: Mapping[int, Spent] | None = None,
    first: int = 0,
    last: int | None = None,
) -> Measured:
    """Measure a stretch. `commits` and `spent` (by the entry of the reply) are of the same record. O(the record up to its end)."""
    stop = len(index) if last is None else min(last, len(index))
    whole = calls_of(index, read, 0, stop)
    inside = calls_of(index, read, first, stop)
    return Measured(
        first=first,
        last=stop,
        replies=sum(first <= step.entry < stop for step in index.steps),
        calls=len(inside.made),
        recalls=len(inside.recalls),
        overhead=overhead(index, read, inside, spent or {}, count, first, stop),
        typing=typing(index, inside, first, stop),
        dependencies=dependencies(index, read, whole.made, first, stop),
        explored=explored(whole.made, commits, first),
    )
