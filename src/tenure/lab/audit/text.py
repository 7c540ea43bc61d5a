"""Text and figures as the page shows them.

Sessions are hostile: they hold markup, control characters, escape sequences, overrides of the reading direction, and lines of megabytes. Only
`Markup` stands in a page as it is; `shown` makes every other value harmless where a template puts it in.
"""

import re
from html import escape
from typing import Final

from markupsafe import Markup

from tenure.engine.meter.figures import ASSUMED, signed
from tenure.engine.record.visible import visible

_LINE: Final = 120  # characters of a text in a line
_SCALES: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))
_WHOLE: Final = 10_000  # below it every token is shown
_LEAST: Final = 0.05  # percent that is written as more than nothing


def shown(value: object) -> Markup:
    """What a template puts in: markup as it is, all else as text."""
    return value if isinstance(value, Markup) else Markup("" if value is None else escape(visible(str(value))))  # noqa: S704 - escaped


def line(text: str, limit: int = _LINE) -> str:
    """`text` in one line of at most about `limit` characters; what is longer says how long it is. O(limit)."""
    cut = text[:limit]
    plain = visible(cut).replace("\n", "⏎").replace("\t", " ")
    return plain if len(cut) == len(text) else f"{plain}… ({len(text):,} characters)"


def shortened(path: str, limit: int = 60) -> str:
    """A path or a command, already in one line, of at most `limit` characters: what is longer is cut in its middle."""
    return path if len(path) <= limit else f"{path[: limit // 3]}…{path[-(limit - limit // 3) :]}"


def slug(text: str, taken: set[str]) -> str:
    """A name for a link: letters, digits, dots and hyphens, given once; it is added to `taken`."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", text[-200:]).strip("-.")[:60] or "unnamed"
    name, number = base, 1
    while name.lower() in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name.lower())
    return name


def tokens(count: int) -> str:
    """Such as 9,812 or 41.2k or 1.23M."""
    if abs(count) < _WHOLE:
        return signed(f"{count:,}")
    scale, unit = next((scale, unit) for scale, unit in _SCALES if abs(count) >= scale * 0.9995)
    value = count / scale
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return signed(f"{value:,.{digits}f}{unit}")


def rounded(count: int) -> str:
    """A round number of tokens, such as 50k: as limits and scales are."""
    return re.sub(r"\.0+(?=\D)", "", tokens(count))


def usd(amount: float, *, assumed: bool = False) -> str:
    """Such as $4.11; below ten cents with the digits that still count. `assumed`: by another model's price."""
    size = abs(amount)
    digits = 2 if size >= 0.1 or not size else 3 if size >= 0.01 else 4
    return signed(f"{ASSUMED * assumed}{'-' if amount < 0 else ''}${size:,.{digits}f}")


def percent(share: float) -> str:
    """A share (0 to 1) such as 12 %."""
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1\u202f%"
    return f"{value:.1f}\u202f%" if value < 10 and round(value, 1) % 1 else f"{value:.0f}\u202f%"


def change(value: float, before: float) -> str:
    """By how much `value` is more or less than `before`, such as −38 %; nothing where there is nothing to compare with."""
    if not before:
        return ""
    difference = 100 * (value - before) / before
    if abs(difference) < _LEAST:
        return "±0\u202f%"
    return signed(f"{difference:+.{0 if abs(difference) >= 10 else 1}f}\u202f%")
