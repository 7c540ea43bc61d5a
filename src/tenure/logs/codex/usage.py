"""Token counts of Codex rollouts: which of them tell of an API call that was not counted yet.

Counts are written again on every change of the rate limits, after a resume and in forks; only one whose running total moved is new.
"""

from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import Usage


class Tokens(Struct, frozen=True, gc=False):
    """What a call used, or all calls so far. Input contains what was read from the cache and what was written to it."""

    input_tokens: int | None = 0
    cached_input_tokens: int | None = 0
    cache_write_input_tokens: int | None = 0
    output_tokens: int | None = 0  # reasoning included

    @property
    def usage(self) -> Usage:
        """In the record's terms."""
        read, write = self.cached_input_tokens or 0, self.cache_write_input_tokens or 0
        return Usage(
            uncached=max(0, (self.input_tokens or 0) - read - write),
            cache_write=write,
            cache_read=read,
            output=self.output_tokens or 0,
        )

    def since(self, before: "Tokens") -> "Tokens":
        """The difference; all of it when the running total started anew."""
        if (self.input_tokens or 0) < (before.input_tokens or 0):
            return self
        return Tokens(*(max(0, (getattr(self, name) or 0) - (getattr(before, name) or 0)) for name in _FIELDS))


_FIELDS: Final = Tokens.__struct_fields__


class Counts:
    """The counts of one file, as they come."""

    def __init__(self) -> None:
        self._total: Tokens | None = None
        self._last: Tokens | None = None
        self._spoken = False  # whether the model said anything since the last count that was new

    def spoke(self) -> None:
        """The model said something."""
        self._spoken = True

    def new(self, last: Tokens | None, total: Tokens | None) -> Usage | None:
        """The usage of one more call; None when it was counted before, or nothing was used."""
        if total is not None and total == self._total:
            return None
        if last is None and total is not None:
            last = total if self._total is None else total.since(self._total)
        self._total = total or self._total
        if last is None or not (last.input_tokens or last.output_tokens) or (last == self._last and not self._spoken):
            return None
        self._last, self._spoken = last, False
        return last.usage
