"""The session as it was recorded: what it is, where its window went, and what each block of it cost over its lifetime.

A block is paid for by every call that carries it: once written (or sent anew, where nothing is cached), then read from the cache. A request
is read as far as it shares its start with the one before, so where a block stands decides what it costs there (meter/cache.py).
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.view.edit import Drop, Edit, Insert, Remove, Replace, Restore
from tenure.lab.events import At, CallLine, CommitLine, EntryLine, PricesLine

Key = At | str  # a block of the record, or the key of an inserted entry


class Change(Struct, frozen=True, gc=False):
    """Something in the view weighs more or less than before, in o200k tokens; 0 is what is not shown."""

    key: Key
    before: int
    after: int


class Standing:
    """What every block weighs in the view. Mutable; each line costs what it changes."""

    def __init__(self) -> None:
        self.tokens = 0
        self._weights: dict[Key, int] = {}  # of what is shown
        self._record: list[tuple[int, ...]] = []

    def weight(self, key: Key) -> int:
        """What it weighs as it is shown; 0 when it is not."""
        return self._weights.get(key, 0)

    def entry(self, line: EntryLine) -> Iterator[Change]:
        """A message that was said."""
        weights = tuple([block.tokens or 0 for block in line.blocks])
        self._record.append(weights)
        for number, tokens in enumerate(weights):
            yield self._set((line.entry, number), tokens)

    def commit(self, line: CommitLine) -> Iterator[tuple[Edit, Change]]:
        """What a commit changed, edit by edit."""
        for edit in line.edits:
            match edit:
                case Drop():
                    yield edit, self._set((edit.entry, edit.block), None)
                case Replace():
                    yield edit, self._set((edit.entry, edit.block), edit.tokens)
                case Restore():
                    yield edit, self._set((edit.entry, edit.block), self._record[edit.entry][edit.block])
                case Insert():
                    yield edit, self._set(edit.key, edit.tokens)
                case Remove():
                    yield edit, self._set(edit.key, None)

    def _set(self, key: Key, tokens: int | None) -> Change:
        before = self._weights.pop(key, 0)
        if tokens is not None:
            self._weights[key] = tokens
        self.tokens += (tokens or 0) - before
        return Change(key, before, tokens or 0)


HEAD: At = (-1, 0)  # stands before every block


class Paid(Struct, gc=False):
    """What carrying a block came to so far."""

    weight: int = 0  # as it is shown now
    calls: int = 0  # that carried it
    tokens: int = 0
    usd: float = 0.0
    since_call: int = 0  # up to where the above is settled
    since_rate: float = 0.0


class Lifetimes:
    """The recorded agent's own window, which holds nothing that was inserted. Mutable. O(changes), and O(what is written) for each call.

    `rate` adds up what a token cost at each call where it is paid as most are; only where a request is read in part do the blocks behind
    that place pay the difference one by one.
    """

    def __init__(self, prices: PricesLine) -> None:
        self._prices = prices
        self._standing = Standing()
        self._paid: dict[At, Paid] = {HEAD: Paid()}
        self._order: list[At] = [HEAD]
        self._calls = 0
        self._rate = 0.0

    def entry(self, line: EntryLine) -> list[Change]:
        """A message that was said."""
        changes = list(self._standing.entry(line))
        for number, change in enumerate(changes):
            at = line.entry, number
            self._paid[at] = Paid(weight=change.after, since_call=self._calls, since_rate=self._rate)
            self._order.append(at)
        return changes

    def commit(self, line: CommitLine) -> list[Change]:
        """The recorded agent changed its window."""
        changes = [change for _, change in self._standing.commit(line)]
        for change in changes:
            if not isinstance(change.key, str):
                self.paid(change.key).weight = change.after
        gone = {change.key for change in changes if not change.after}
        if gone:
            self._order = [at for at in self._order if at not in gone or at == HEAD]
        back = [change.key for change in changes if change.after and not change.before and not isinstance(change.key, str)]
        if back:
            self._order = sorted({*self._order, *back})
        return changes

    def call(self, line: CallLine) -> None:
        """A request that carries all that is shown."""
        self.paid(HEAD).weight = line.head_tokens
        read, rest = self._rates(line)
        shared = line.shared_prefix_tokens if line.cache_read else 0
        self._calls += 1
        self._rate += read if shared else rest
        if shared and read != rest:
            self._pay_rest(line.view_tokens - shared, rest - read)

    def paid(self, at: At) -> Paid:
        """What a block came to, settled up to now."""
        paid = self._paid[at]
        if paid.weight:
            calls = self._calls - paid.since_call
            paid.calls += calls
            paid.tokens += paid.weight * calls
            paid.usd += paid.weight * (self._rate - paid.since_rate)
        paid.since_call, paid.since_rate = self._calls, self._rate
        return paid

    def all(self) -> Iterator[tuple[At, Paid]]:
        """Every block there ever was, without the head, in the order of the record."""
        return ((at, self.paid(at)) for at in sorted(self._paid) if at != HEAD)

    @property
    def calls(self) -> int:
        """How many there were."""
        return self._calls

    def _rates(self, line: CallLine) -> tuple[float, float]:
        """USD for an o200k token that is read, and for one that is not: so that all of a request comes to what the call was billed."""
        prices = self._prices
        read_usd, rest_usd = line.cache_read * prices.read, line.uncached * prices.uncached + line.cache_write * prices.write
        shared = line.shared_prefix_tokens if line.cache_read else 0
        rest = line.view_tokens - shared
        if not rest:  # what is rounded up belongs to what was read
            return (read_usd + rest_usd) / max(shared, 1), 0.0
        return read_usd / max(shared, 1), rest_usd / rest

    def _pay_rest(self, tokens: int, more: float) -> None:
        """The newest `tokens` of the request were not read."""
        for at in reversed(self._order):
            if tokens <= 0:
                return
            weight = min(self._paid[at].weight, tokens)
            self._paid[at].usd += weight * more
            tokens -= weight
