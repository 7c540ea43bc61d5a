"""Times as logs write them, in the one form the record keeps: ISO 8601 in UTC with a Z."""

import re
from datetime import UTC, datetime
from typing import Final

_UTC: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_MILLISECONDS_FROM: Final = 10**11  # as seconds that is the year 5138, so larger numbers count milliseconds


def utc(time: object) -> str:
    """`time` (ISO text, or seconds or milliseconds since 1970) in UTC; empty when there is none or it cannot be read."""
    if isinstance(time, str):
        return time if _UTC.fullmatch(time) else _from_text(time)
    if isinstance(time, int | float) and not isinstance(time, bool) and time > 0:
        return _from_number(time)
    return ""


def _from_text(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
        return _written(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return ""


def _from_number(number: float) -> str:
    try:
        return _written(datetime.fromtimestamp(number / 1000 if number >= _MILLISECONDS_FROM else number, UTC))
    except (ValueError, OverflowError, OSError):
        return ""


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")
