"""The calls of a conversation as its provider sees them: when the last was, and what of it still stands."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.price import Prices
from tenure.engine.meter.warmth import Warmth
from tenure.engine.record.entry import Usage


class Calls(Struct, frozen=True, kw_only=True):
    """What is known of the cache at the other end. Times are ISO 8601; an empty one is not known."""

    warmth: Warmth = Warmth()
    last_at: str = ""  # of the newest answer
    standing: int = 0  # o200k tokens at the start of the view that are as they were sent last
    head: str = ""  # what stood before the view then; its tokens are not counted in `standing`
    expected: int = 0  # o200k tokens of the request in flight that were sent before
    sent_at: str = ""

    def idle_s(self, at: str) -> float | None:
        """Seconds since the last call; None when one of the two times is not known."""
        return _seconds(self.last_at, at)

    def broken(self, kept: int) -> "Calls":
        """After a change of the view that leaves its first `kept` o200k tokens as they were."""
        return replace(self, standing=min(self.standing, kept))

    def sent(self, *, view: int, head: str, head_tokens: int, at: str) -> "Calls":
        """After a request with so many o200k tokens behind that head went out."""
        same = self.standing > 0 and head == self.head
        expected = self.standing + head_tokens if same else 0
        return replace(self, expected=expected, standing=view, head=head, sent_at=at)

    def answered(self, *, at: str, usage: Usage | None, ratio: float, prices: Prices) -> "Calls":
        """After its answer came, with what the provider reported; what was not expected to be cached teaches nothing."""
        warmth = replace(self.warmth, collapse=None)
        if usage is not None:
            idle = _seconds(self.last_at, self.sent_at)
            warmth = self.warmth.learn(expected=int(self.expected * ratio), usage=usage, idle_s=idle, prices=prices)
        return replace(self, warmth=warmth, last_at=at or self.last_at, expected=0)


def _seconds(start: str, end: str) -> float | None:
    if not (start and end):
        return None
    try:
        passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (ValueError, TypeError):  # no time, or one of them without its zone
        return None
    return max(0.0, passed.total_seconds())
