"""How full the window is, in one word. Promise: nothing is broken by a limit that came as a surprise."""

from typing import Final, Literal

from msgspec import Struct

Severity = Literal["ok", "warn", "critical"]

WARN: Final = 70.0  # percent of the limit, from here on
CRITICAL: Final = 90.0


def severity(percent: float) -> Severity:
    """The one place where the thresholds are read."""
    if percent >= CRITICAL:
        return "critical"
    return "warn" if percent >= WARN else "ok"


class Gauge(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens in the view against their limit, both in provider tokens."""

    tokens: int
    limit: int

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
