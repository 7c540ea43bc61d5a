"""How far a simulated bill is from what providers reported.

A session is replayed as the recorded agent sent it: nothing leaves but by its own compactions. What its log leaves out, system prompt and tools,
is sized once from the reports (`tenure.lab.recorded`). Each call's tokens by what the cache did with them stand beside those that the provider reported; and
beside those that the same rules give for the prompts as they were reported, so that errors of size and of the cache are told apart.
"""

from typing import Any, Final

from msgspec import Struct, convert
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.cache import CachedCall, SimulatedCache, seconds_of
from tenure.engine.meter.price import Prices
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.record.entry import Usage
from tenure.lab.events import CallLine, ReplayLine, ReportedLine
from tenure.lab.measured import Amounts, Caching, Cause, Compared, Off
from tenure.lab.recorded import head_of, ratio_of, reports_of
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource

HALF: Final = 0.5  # of what should have been read: less is a miss
SHRUNK: Final = 0.02  # of a prompt: a greater loss that the log does not tell of is a clearing
_VAST: Final = 1_000_000_000  # a window that nothing fills

# What a call's error is put down to. The first is of sizes; the others are of what the cache's rules do not foresee.
CAUSES: Final[dict[Cause, str]] = {
    "sizes": "prompts are larger or smaller than what the log holds, with the head, foretells",
    "first call": "what of the first prompt another session had left in the cache",
    "compaction": "what a compaction that the log tells of left standing, or brought",
    "another model": "what a model found that was not the one before",
    "expired": "time was over, and most of it was gone",
    "held longer": "time was over, and most of it was still read",
    "cleared unseen": "the agent took something out of its prompt that its log does not tell of",
    "not found": "no time was over and nothing was taken out, and most of it was not read",
    "read in part": "all other calls: caches that read in steps, or not from the newest request",
}


class ComparedCall(Struct, frozen=True, kw_only=True):
    """One call, so that a deviation can be looked at."""

    call: int
    at: str
    idle_s: float | None
    cause: Cause
    reported: Amounts
    simulated: Amounts
    by_cache: Amounts


def compare(source: SessionSource, tokenizer: Tokenizer) -> Compared | None:
    """The error of one session; None for one that reports nothing. Two replays. Raises InputError when it cannot be read."""
    found = _compared(source, tokenizer)
    return found[0] if found else None


def places(source: SessionSource, tokenizer: Tokenizer) -> tuple[ComparedCall, ...]:
    """The calls of a session, the greatest error in money first."""
    found = _compared(source, tokenizer)
    return tuple(sorted(found[1], key=lambda each: -abs(each.simulated.usd - each.reported.usd))) if found else ()


def _compared(source: SessionSource, tokenizer: Tokenizer) -> tuple[Compared, tuple[ComparedCall, ...]] | None:
    alone = Options(budget=Budget(window=_VAST), policy=None)
    first, learned = _played(source, tokenizer, alone)
    told = [call for call in learned if _prompt_of(call)]
    if not told:
        return None
    reports = list(reports_of(source.events()[1], first.model, tokenizer))
    ratio, head = ratio_of(reports), head_of(reports).provider_tokens
    header, calls = _played(source, tokenizer, replace(alone, ratio=ratio, head=round(head / ratio)))
    writes = any(call.reported and call.reported.cache_write for call in told)
    reads = any(call.reported and call.reported.cache_read for call in told)
    caching = Caching.WRITES if writes else Caching.READS if reads else Caching.NONE
    walk = _CallWalk(convert(header.prices, Prices, from_attributes=True), writes=writes)
    found = tuple(place for call in calls if (place := walk.place(call)) is not None)
    causes: dict[Cause, float] = {"sizes": sum(place.simulated.usd - place.by_cache.usd for place in found)}
    times: dict[Cause, int] = {}
    for place in found:
        causes[place.cause] = causes.get(place.cause, 0.0) + place.by_cache.usd - place.reported.usd
        times[place.cause] = times.get(place.cause, 0) + 1
    amounts = ("reported", "simulated", "by_cache")
    sums: dict[str, Any] = {name: sum((getattr(each, name) for each in found), Amounts()) for name in amounts}
    compared = Compared(
        name=source.path,
        model=header.model,
        assumed=int(header.is_assumed),
        calls=len(found),
        unreported=len(calls) - len(found),
        caching=caching,
        ratio=ratio,
        head=head,
        **sums,
        plain=sum((walk.amounts(call) for call in told), Amounts()),
        off=sum((_off(place) for place in found), Off()),
        causes=causes,
        times=times,
    )
    return compared, found


def _played(source: SessionSource, tokenizer: Tokenizer, options: Options) -> tuple[ReplayLine, list[CallLine]]:
    lines = replay([source], options, tokenizer)
    header = next(lines)
    assert isinstance(header, ReplayLine)
    return header, [line for line in lines if isinstance(line, CallLine)]


def _prompt_of(call: CallLine) -> int:
    told = call.reported
    return told.uncached + told.cache_write + told.cache_read if told is not None else 0


class _Before(Struct, frozen=True, kw_only=True):
    """The call before that reported, and the least share of its prompt that stood unchanged in all requests since."""

    prompt: int
    at: float | None
    model: str
    stands: float = 1.0


class _CallWalk:
    """The calls of one session, each beside what it reported. Mutable.

    Without `writes`, what is written counts as uncached, as the session's provider has it.
    """

    def __init__(self, prices: Prices, *, writes: bool) -> None:
        self._prices, self._writes = prices, writes
        self._cache = SimulatedCache(prices=prices)
        self._before: _Before | None = None
        self._view = 0  # o200k tokens of the request before

    def place(self, call: CallLine) -> ComparedCall | None:
        """The next call; None for one that reported no prompt."""
        before = self._before
        if before is not None and self._view:
            before = replace(before, stands=min(before.stands, call.shared_prefix_tokens / self._view))
        self._view, self._before = call.view_tokens, before
        prompt, at = _prompt_of(call), seconds_of(call.at)
        if call.reported is None or not prompt:
            return None
        if _is_other(before, call):
            self._cache = SimulatedCache(prices=self._prices)
        shared = 0 if before is None else round(before.prompt * before.stands)
        charge, after = self._cache.send(CachedCall(prompt_tokens=prompt, shared_prefix_tokens=shared, at=at))
        reported, by_cache = self.amounts(call.reported), self.amounts(charge.usage)
        found = ComparedCall(
            call=call.call,
            at=call.at,
            idle_s=None if before is None or at is None or before.at is None else at - before.at,
            cause=_cause(before, call, reported, by_cache, is_warm=self._cache.is_warm(at)),
            reported=reported,
            simulated=self.amounts(call),
            by_cache=by_cache,
        )
        self._cache, self._before = after, _Before(prompt=prompt, at=at, model=call.model)
        return found

    def amounts(self, used: Usage | CallLine | ReportedLine) -> Amounts:
        """What was used, as this session's provider would tell it."""
        write = used.cache_write if self._writes else 0
        told = Usage(uncached=used.uncached + used.cache_write - write, cache_write=write, cache_read=used.cache_read)
        return Amounts(uncached=told.uncached, cache_write=write, cache_read=told.cache_read, usd=self._prices.cost_usd(told))


def _cause(before: _Before | None, call: CallLine, reported: Amounts, by_cache: Amounts, *, is_warm: bool) -> Cause:
    if before is None:
        return "first call"
    if before.stands < 1:
        return "compaction"
    if _is_other(before, call):
        return "another model"
    if not is_warm:
        return "held longer" if reported.cache_read > HALF * before.prompt else "expired"
    if reported.cache_read >= HALF * by_cache.cache_read:
        return "read in part"
    return "cleared unseen" if reported.prompt < (1 - SHRUNK) * before.prompt else "not found"


def _is_other(before: _Before | None, call: CallLine) -> bool:
    return before is not None and "" not in (before.model, call.model) and before.model != call.model


def _off(place: ComparedCall) -> Off:
    return Off(**{name: abs(getattr(place.simulated, name) - getattr(place.reported, name)) for name in Off.__struct_fields__})
