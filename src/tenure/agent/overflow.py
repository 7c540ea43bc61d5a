"""A provider says that a request is too long although it was within what we knew. Pure. Promise: nothing is broken: it is believed at once.

Providers count otherwise than we do until they have reported, and servers are set up with other windows than a model's. What they say of it holds numbers,
mostly: how much came, and how much may.
"""

import re
from typing import Final

from msgspec.structs import replace

from tenure.lifecycle.budget import Budget

_NUMBER: Final = re.compile(r"\d{1,3}(?:[,_]\d{3})+|\d{4,}")
_SMALLEST: Final = 1_000  # tokens; a smaller number is none of a window
_UNTOLD: Final = 0.8  # of what was sent, where nobody says how much may


def shrunk(budget: Budget, words: str, *, sent: int, reserve: int) -> Budget:
    """The budget that a provider's refusal leaves. `sent` is what we took the request for, in provider tokens."""
    found = sorted({int(number.replace(",", "").replace("_", "")) for number in _NUMBER.findall(words)})
    numbers = [number for number in found if _SMALLEST <= number < 100_000_000]
    most = int(sent * _UNTOLD)
    if len(numbers) > 1:  # what may come and what came: our count is as far from the truth as that
        most = min(most, int(sent * max(_SMALLEST, numbers[0] - reserve) / numbers[-1]))
    elif numbers:
        most = min(most, max(_SMALLEST, numbers[0] - reserve))
    return bounded(budget, most)


def bounded(budget: Budget, window: int) -> Budget:
    """The budget within a model's window."""
    most = max(1, min(budget.window, window))
    target, ceiling = (None if limit is None else min(limit, most) for limit in (budget.target, budget.ceiling))
    least = min(limit for limit in (target, ceiling, most) if limit is not None)
    floor = None if budget.floor is None or budget.floor > least else budget.floor
    return replace(budget, window=most, target=target, ceiling=ceiling, floor=floor)
