"""Figures as people read them, and bars."""

import re
from collections.abc import Sequence
from typing import Final

from tenure.engine.meter.figures import ASSUMED
from tenure.lab.audit.page.markup import Html, el

_SCALES: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))
_WHOLE: Final = 10_000  # below it every token is shown
_MINUS: Final = "−"
_LEAST: Final = 0.05  # percent that is drawn and written as more than nothing


def tokens(count: int) -> str:
    """Such as 9,812 or 41.2k or 1.23M."""
    if abs(count) < _WHOLE:
        return _signed(f"{count:,}")
    scale, unit = next((scale, unit) for scale, unit in _SCALES if abs(count) >= scale * 0.9995)
    value = count / scale
    return _signed(
        f"{value:.2f}{unit}" if abs(value) < 9.995 else f"{value:.1f}{unit}" if abs(value) < 99.95 else f"{value:,.0f}{unit}"
    )


def rounded(count: int) -> str:
    """A round number of tokens, such as 50k: as limits and scales are."""
    return re.sub(r"\.0+(?=\D)", "", tokens(count))


def usd(amount: float, *, assumed: bool) -> str:
    """Such as $4.11; below ten cents with the digits that still count. `assumed`: by another model's price."""
    size = abs(amount)
    digits = 2 if size >= 0.1 or not size else 3 if size >= 0.01 else 4
    return _signed(f"{ASSUMED * assumed}{'-' if amount < 0 else ''}${size:,.{digits}f}")


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
    sign = "+" if difference > 0 else _MINUS
    return f"{sign}{abs(difference):.{0 if abs(difference) >= 10 else 1}f}\u202f%"


def count(number: int, one: str, many: str = "") -> str:
    """A number of things: `1 call`, `212 calls`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def bar(parts: Sequence[tuple[str, float]], whole: float, label: str = "") -> Html:
    """Parts of a whole, one after another, each with its class. An empty label: the figures stand beside it."""
    drawn: list[Html] = []
    start = 0.0
    for class_, value in parts:
        width = 100 * value / whole if whole else 0.0
        if width >= _LEAST:
            drawn.append(el("rect", class_=class_, x=f"{start:.2f}%" if start else None, width=f"{width:.2f}%"))
        start += width
    spoken = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return el("svg", *drawn, class_="bar", **spoken)


def _signed(text: str) -> str:
    return text.replace("-", _MINUS)
