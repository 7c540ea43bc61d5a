"""Noticing that no progress is made. Pure.

It goes by results: a call that is made again and gives something new is progress, be it the tenth. A cycle is one step of the same calls with the
same results, or two or three steps in turn (read, edit that fails, read, edit that fails). First the model is told, in the result; if it goes on all the
same, the turn ends.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct, structs

TELL_AFTER: Final = 3  # times that a cycle came
STOP_AFTER: Final = 6
LONGEST: Final = 3  # steps of a cycle
_KEPT: Final = STOP_AFTER * LONGEST

# What differs from run to run without meaning anything: durations, clock times, addresses in memory.
_PASSING: Final = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|secs|seconds|m)\b|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\b|\b0x[0-9a-f]{6,}\b"
)


class CallAndResult(Struct, frozen=True, kw_only=True, gc=False):
    """A call and what came of it."""

    tool: str
    arguments: str
    result: str


class Cycle(Struct, frozen=True, kw_only=True, gc=False):
    """What is to be done about a cycle: nothing, tell the model, or stop."""

    times: int = 1  # that it came, in a row
    steps: int = 1  # it has

    @property
    def tells(self) -> bool:
        """Whether the model is to be told."""
        return self.times >= TELL_AFTER

    @property
    def stops(self) -> bool:
        """Whether the turn is to end."""
        return self.times >= STOP_AFTER

    @property
    def words(self) -> str:
        """What happened, in a clause."""
        what = "the same call gave the same result" if self.steps == 1 else f"the same {self.steps} steps gave the same results"
        return f"{what} {self.times} times in a row"


class Breaker(Struct, frozen=True, kw_only=True):
    """What the newest steps of a turn came to, as digests."""

    steps: tuple[bytes, ...] = ()

    def after(self, deeds: Sequence[CallAndResult]) -> "Breaker":
        """After one more step of the model, with all its calls."""
        return structs.replace(self, steps=(*self.steps, _digest(deeds))[-_KEPT:])

    @property
    def cycle(self) -> Cycle:
        """The worst cycle that the newest steps are in."""
        found = [Cycle(times=self._times(length), steps=length) for length in range(1, LONGEST + 1)]
        return max(found, key=lambda each: each.times)

    def _times(self, length: int) -> int:
        """How often in a row the newest `length` steps came. A longer cycle must have different steps, or it is a shorter one."""
        newest = self.steps[-length:]
        if len(newest) < length or (length > 1 and len(set(newest)) == 1):
            return 1
        times, end = 0, len(self.steps)
        while end >= length and self.steps[end - length : end] == newest:
            times, end = times + 1, end - length
        return max(1, times)


def note(cycle: Cycle) -> str:
    """What the model reads behind the result."""
    return (
        f"\n[{cycle.words}. Doing it again will not change that: find out why, try another way, or say what keeps you. "
        f"After {STOP_AFTER} times this turn ends.]"
    )


def _digest(deeds: Sequence[CallAndResult]) -> bytes:
    """Calls that were made together count in any order."""
    each = sorted(
        sha256(
            "\0".join((deed.tool, _sorted(deed.arguments), _PASSING.sub("#", deed.result))).encode("utf-8", "replace")
        ).digest()
        for deed in deeds
    )
    return sha256(b"".join(each)).digest()


def _sorted(arguments: str) -> str:
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return arguments
