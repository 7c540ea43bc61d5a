"""What each block was carried for: by how many calls, in how many tokens.

One pass over record and commits, O(blocks + edits): a block is counted when its weight changes, not at every call.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import At
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit, Drop, Insert, Remove, Replace, Restore
from tenure.engine.view.project import Projection


class Carried(Struct, frozen=True, kw_only=True, gc=False):
    """Of one block: the calls that were sent it, and their tokens together (o200k)."""

    calls: int = 0
    tokens: int = 0

    def plus(self, other: "Carried") -> "Carried":
        """Of two blocks of one object: as many calls as the one that was carried longest."""
        return Carried(calls=max(self.calls, other.calls), tokens=self.tokens + other.tokens)

    def usd(self, prices: Prices) -> float:
        """What it cost if it was written to the cache once, and read from it ever after."""
        if not self.calls:
            return 0.0
        once = self.tokens / self.calls
        return once * prices.write + (self.tokens - once) * prices.read


class _Count:
    """One block: what it weighs now and since which call, and what it was carried for until then."""

    __slots__ = ("calls", "since", "tokens", "weight")

    def __init__(self, weight: int, since: int) -> None:
        self.weight, self.since, self.calls, self.tokens = weight, since, 0, 0

    def weigh(self, weight: int, call: int) -> None:
        if self.weight:
            self.calls += call - self.since
            self.tokens += self.weight * (call - self.since)
        self.weight, self.since = weight, call


class Seen(Struct, frozen=True, kw_only=True, gc=False):
    """One call of the model: what it was sent, and what of that had changed since the call before."""

    call: int
    entry: int  # of the answer
    turn: int
    tokens: int  # o200k, of the view
    commits: tuple[int, ...]  # made since the call before
    came: int  # tokens of entries that came since
    left: int  # tokens that commits took since, net


class Lifetime(Struct, frozen=True, kw_only=True):
    """What all blocks were carried for, what every call saw, and the view as it is now."""

    blocks: dict[At, Carried]
    calls: tuple[Seen, ...]
    now: Projection


class _Play:
    """A session in the middle of being played again. Mutable."""

    def __init__(self, index: Index, commits: Sequence[Commit]) -> None:
        self.view = Projection(index)
        self.counts: dict[At, _Count] = {}
        self.calls: list[Seen] = []
        self._index = index
        self._due = list(reversed(commits))

    def to(self, length: int) -> tuple[tuple[int, ...], int]:
        """Go on until the record has so many entries; the commits on the way, and the tokens they took."""
        made: list[int] = []
        left = 0
        while self._due and self._due[-1].entries <= length:
            commit = self._due.pop()
            self._grow(commit.entries)
            before = self.view.tokens
            self.view.apply(commit.edits)
            left += before - self.view.tokens
            for at in _touched(commit):
                self.counts[at].weigh(self.view.weight(*at), len(self.calls))
            made.append(commit.n)
        self._grow(length)
        return tuple(made), left

    def call(self, entry: int) -> None:
        """The model is asked, and answers with an entry."""
        before = self.view.tokens
        commits, left = self.to(entry)
        tokens, turn = self.view.tokens, self._index.entries[entry].turn
        came = tokens - before + left
        self.calls.append(
            Seen(call=len(self.calls), entry=entry, turn=turn, tokens=tokens, commits=commits, came=came, left=left)
        )

    def _grow(self, length: int) -> None:
        for entry in range(self.view.length, length):
            for number, weight in enumerate(self._index.weights(entry)):
                self.counts[entry, number] = _Count(weight, len(self.calls))
            self.view.grow(entry)


def lifetime(index: Index, commits: Sequence[Commit]) -> Lifetime:
    """Play a session once more."""
    play = _Play(index, commits)
    for step in index.steps:
        play.call(step.entry)
    play.to(len(index))
    for count in play.counts.values():
        count.weigh(0, len(play.calls))
    carried = {at: Carried(calls=count.calls, tokens=count.tokens) for at, count in play.counts.items()}
    return Lifetime(blocks=carried, calls=tuple(play.calls), now=play.view)


def _touched(commit: Commit) -> Iterator[At]:
    for edit in commit.edits:
        match edit:
            case Drop(entry=entry, block=block) | Replace(entry=entry, block=block) | Restore(entry=entry, block=block):
                yield entry, block
            case Insert() | Remove():
                pass
