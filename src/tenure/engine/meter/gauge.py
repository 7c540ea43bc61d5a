"""How full the window is, in one word.

It starts from what the provider reported of the newest prompt and adds what has come since. What a call wrote is no context until it
comes back as an entry, so no count of output tokens enters here.
"""

from typing import Final, Literal

from msgspec import Struct

Severity = Literal["ok", "warn", "critical"]

WARN: Final = 70.0  # percent of the limit, from here on
CRITICAL: Final = 90.0
ROUNDING: Final = 0.5


def severity(percent: float) -> Severity:
    """The one place where the thresholds are read; what is written as 70 or 90 % counts as that."""
    if percent >= CRITICAL - ROUNDING:
        return "critical"
    return "warn" if percent >= WARN - ROUNDING else "ok"


class Gauge(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens in the view, in provider tokens. `estimated`: no report of the provider's covers what is shown."""

    tokens: int
    limit: int  # the lowest level at which something may be evicted
    estimated: bool = True
    window: int = 0  # what the model can take; 0: the limit

    @property
    def of_window(self) -> "Gauge":
        """The same tokens against what the model can take, which is where room ends, rather than where eviction begins."""
        return Gauge(tokens=self.tokens, limit=self.window or self.limit, estimated=self.estimated)

    @property
    def percent(self) -> float:
        """Of the limit; above 100 when it is exceeded. Of no limit everything is too much."""
        if self.limit <= 0:
            return 0.0 if self.tokens <= 0 else float("inf")
        return 100.0 * self.tokens / self.limit

    @property
    def severity(self) -> Severity:
        """`ok`, `warn` or `critical`."""
        return severity(self.percent)


class Reported(Struct, frozen=True, kw_only=True, gc=False):
    """What the provider said of the newest prompt, and what we counted in it, in o200k tokens."""

    prompt: int  # provider tokens
    counted: int  # the view's
    head: int | None = None  # the head's, where it was counted
    is_stale: bool = False  # a commit has changed since what it was said of

    def now(self, counted: int, head: int | None, ratio: float) -> int:
        """Provider tokens of a view that now counts `counted` behind a head of `head`: the report, and what came or left since."""
        since = counted - self.counted
        if head is not None and self.head is not None:
            since += head - self.head
        return max(0, self.prompt + round(since * ratio))


def gauge(reported: Reported | None, *, counted: int, head: int | None, ratio: float, limit: int, window: int = 0) -> Gauge:
    """The window as far as anyone can tell; estimated where nothing was reported, or where a commit came after it."""
    if reported is None:
        return Gauge(tokens=int((counted + (head or 0)) * ratio), limit=limit, window=window)
    return Gauge(tokens=reported.now(counted, head, ratio), limit=limit, estimated=reported.is_stale, window=window)
