"""The session as it was recorded: what it is, where its window went, and what each block of it cost over its lifetime.

A block is paid for by every call that carries it: once written (or sent anew, where nothing is cached), then read from the cache. A request
is read as far as it shares its start with the one before, so where a block stands decides what it costs there (meter/cache.py).
"""

from collections.abc import Iterator

from msgspec import Struct

from tenure.lab.audit.runs import Change, ViewWeights
from tenure.lab.events import At, CallLine, CommitLine, EntryLine, PricesLine

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
        self._standing = ViewWeights()
        self._paid: dict[At, Paid] = {HEAD: Paid()}
        self._order: list[At] = [HEAD]
        self.calls = 0  # how many there were
        self._rate = 0.0

    def entry(self, line: EntryLine) -> None:
        """A message of the record."""
        for number, (_, _, weight) in enumerate(self._standing.entry(line)):
            at = line.entry, number
            self._paid[at] = Paid(weight=weight, since_call=self.calls, since_rate=self._rate)
            self._order.append(at)

    def commit(self, line: CommitLine) -> list[Change]:
        """The recorded agent changed its window."""
        changes = [change for _, change in self._standing.commit(line)]
        for key, _, after in changes:
            if not isinstance(key, str):
                self.paid(key).weight = after
        gone = {key for key, _, after in changes if not after}
        if gone:
            self._order = [at for at in self._order if at not in gone or at == HEAD]
        back = [key for key, before, after in changes if after and not before and not isinstance(key, str)]
        if back:
            self._order = sorted({*self._order, *back})
        return changes

    def call(self, line: CallLine) -> None:
        """A request that carries all that is shown."""
        self.paid(HEAD).weight = line.head_tokens
        read, rest = self._rates(line)
        shared = line.shared_prefix_tokens if line.cache_read else 0
        self.calls += 1
        self._rate += read if shared else rest
        if shared and read != rest:
            self._pay_rest(line.view_tokens - shared, rest - read)

    def paid(self, at: At) -> Paid:
        """What a block came to, settled up to now."""
        paid = self._paid[at]
        if paid.weight:
            calls = self.calls - paid.since_call
            paid.calls += calls
            paid.tokens += paid.weight * calls
            paid.usd += paid.weight * (self._rate - paid.since_rate)
        paid.since_call, paid.since_rate = self.calls, self._rate
        return paid

    def all(self) -> Iterator[tuple[At, Paid]]:
        """Every block there ever was, without the head, in the order of the record."""
        return ((at, self.paid(at)) for at in sorted(self._paid) if at != HEAD)

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
