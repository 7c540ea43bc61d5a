"""When a policy that had nothing more to offer is asked again.

Asking costs a pass over the view, and a batch that cannot reach its floor breaks the prefix in vain; so a policy is asked again when something
changed that could change its answer, and ever more rarely while a limit cannot be met.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.gate import first_look, pays_now
from tenure.engine.lifecycle.held import RESIDUES, Holders, free_of
from tenure.engine.lifecycle.occasion import Occasion
from tenure.engine.lifecycle.state import SessionState
from tenure.engine.view.edit import Price

MOST_MISSES: Final = 4
PATIENCE: Final = 128  # times that a policy is asked in vain before it is asked more rarely
RETRY_SHARE: Final = 0.02  # a batch that fell short fires again only after this share of its limit has become free or new


class _LastOffer(Struct, frozen=True, kw_only=True, gc=False):
    """When a policy last had nothing more to offer: asking again before something changes would change nothing."""

    length: int  # of the record
    tokens: int  # of the record
    commits: int  # once what it had offered was committed
    rewrites: int  # of what had been shown, at the same time
    releases: int  # of holds
    price: Price | None = None  # of what it offered and was not worth it then
    deferred: int = 0  # o200k tokens that it offered to a limit that forces, and that were too few
    free: int = 0  # o200k tokens that nothing but its own rule kept then
    wait: float = 0.0  # entries after which it is asked again although the limit cannot be met


class Exhaustion:
    """Whether a session's policy has nothing more to offer. Mutable: it knows what came of the last offers."""

    def __init__(self, state: SessionState, holders: Holders) -> None:
        self._state, self._holders = state, holders
        self._last: _LastOffer | None = None
        self._misses = 0  # forced commits in a row that missed their limit all the same
        self._vain = 0  # times that the policy had nothing to offer to a limit that forces

    @property
    def price(self) -> Price | None:
        """Of what the policy offered last and was not worth it then."""
        return None if self._last is None else self._last.price

    def committed(self, *, missed: bool | None) -> None:
        """Note that a commit was taken in; `missed` says of a policy's own whether the limit that called for it is passed all the same."""
        if missed is not None:  # ever more must come before the prefix is broken in vain again
            self._misses = min(self._misses + 1, MOST_MISSES) if missed else 0
        if self._last is not None and self._last.commits == len(self._state.commits):
            self._last = replace(self._last, free=free_of(self._holders.weigh()))

    def keep(self, tokens: int) -> None:
        """Note that so many tokens are held that were free."""
        if self._last is not None:
            self._last = replace(self._last, free=max(0, self._last.free - tokens))

    def note(self, *, is_offered: bool = False, price: Price | None = None, deferred: int = 0) -> None:
        """Note that the policy has nothing more to offer now.

        `is_offered`: what it had is about to be committed. `price` is that of what was not worth it, `deferred` the o200k tokens of what was too
        little.
        """
        state, before = self._state, self._last
        again = before is not None and before.rewrites == state.rewrites  # in vain since the same commit
        self._last = _LastOffer(
            length=state.length,
            tokens=state.index.tokens,
            commits=len(state.commits) + is_offered,
            rewrites=state.rewrites + is_offered,
            releases=state.releases,
            price=price,
            deferred=deferred,
            free=0 if is_offered else free_of(self._holders.weigh()),
            wait=max(state.view.height * RETRY_SHARE, 2 * before.wait if before is not None and again else 0),
        )

    def note_vain(self, deferred: int, *, forced: bool) -> None:
        """Note that the policy has nothing to offer but `deferred` o200k tokens, which are too few."""
        self._vain += forced
        self.note(deferred=deferred)

    def lasts(self, call: Occasion) -> bool:
        """Whether nothing has changed since the policy last had nothing more to offer; without force a little change is not enough.

        What it offered and was not worth it then is looked at again when by a first look it is worth it now.
        """
        state, last = self._state, self._last
        if last is None or last.rewrites != state.rewrites or last.releases != state.releases:
            return False
        if last.commits != len(state.commits) and self._vain < PATIENCE:
            return False
        if last.price is not None:
            price = first_look(state, last.price, last.tokens, call.at)
            if call.forced or pays_now(state, price, call.total, call.moment, call.at):
                return False
        if state.length == last.length:
            return True
        if call.forced:
            return self._frees_little(last, call)
        return state.provider(state.index.tokens - last.tokens) < call.limit * RETRY_SHARE

    def is_little(self, saved: int, after: int, call: Occasion) -> bool:
        """Whether it is next to nothing beside the limit, and beside a view that cannot meet it."""
        return saved < max(call.limit, after) * RETRY_SHARE * 2**self._misses

    def deferred(self, free: int) -> int:
        """The o200k tokens that could leave and are too few to break the cache for, of `free` that only the policy's own rule keeps."""
        if self._last is None:
            return 0
        news = max(0, free - self._last.free) if self._vain >= PATIENCE else 0  # that was not worth asking for
        return self._last.deferred + news

    def _frees_little(self, last: _LastOffer, call: Occasion) -> bool:
        """Whether what became free since could neither meet a limit that forces nor be worth breaking the cache. O(what is new and the tail).

        A policy may have a rule of its own for what is old enough, so it is asked again after some entries in any case; after ever more of them
        where it was often asked in vain, and the limit could not be met by all that is free together.
        """
        state, held = self._state, self._holders.weigh()
        free = free_of(held)
        most = state.provider(free + held[RESIDUES])
        is_hopeless = self._vain >= PATIENCE and call.total - most > call.limit
        if is_hopeless and self.is_little(most, call.total - most, call):
            return True
        if state.length - last.length >= (last.wait if is_hopeless else state.view.height * RETRY_SHARE):
            return False
        freed = state.provider(last.deferred + max(0, free - last.free))
        return call.total - freed > call.limit and self.is_little(freed, call.total - freed * is_hopeless, call)
