"""One cut of a session, judged by all that the record says came after it (Self-GC paper: cut-point replay).

The uses of a session do not depend on any cut, so they are found once and serve all of them.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from tenure.engine.view.edit import Drop, Edit
from tenure.lab.events import At, HarmLine
from tenure.lab.harm.holdings import Holdings
from tenure.lab.harm.judge import judge
from tenure.lab.harm.passage import Message
from tenure.lab.harm.use import Use, uses
from tenure.lab.harm.window import Window


class Uses(Struct, frozen=True):
    """A session as every cut of it needs it: what its steps used, in order, and what holds what."""

    found: tuple[Use, ...]
    calls: dict[int, int]  # number of the call by the entry that answers it
    holdings: Holdings


def uses_of(messages: Iterable[Message]) -> Uses:
    """The uses of a whole session. One pass."""
    holdings = Holdings()
    found: list[Use] = []
    calls: dict[int, int] = {}
    for message in messages:
        if message.role == "assistant":
            calls[message.entry] = len(calls)
            found += uses(message, holdings)
        holdings.take(message)
    return Uses(tuple(found), calls, holdings)


def after_cut(
    session: Uses, entries: int, removed: Iterable[At], residues: Sequence[Edit] = (), *, until: int | None = None
) -> Iterator[HarmLine]:
    """What the steps from entry `entries` on (up to `until`) miss or might have missed of blocks that were removed there.

    `removed` are blocks of entries below `entries`; `residues` are edits that put something in their place.
    """
    window = Window()
    window.commit(0, entries, (*(Drop(entry=entry, block=block) for entry, block in removed), *residues))
    for use in session.found:
        if entries <= use.entry and (until is None or use.entry < until):
            found = judge(use, window, session.holdings, session.calls[use.entry])
            if found is not None:
                yield found
