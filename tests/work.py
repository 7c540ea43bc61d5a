"""How much a function does, counted and not timed: the same on a busy machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(run: Callable[[], object]) -> int:
    """Lines of Python that `run` executes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def growth(run_of: Callable[[int], Callable[[], object]], size: int) -> float:
    """How often as many steps a run of four times the size takes: 4 is linear, 16 quadratic. `run_of` makes its input before it is counted."""
    run_of(size + 1)()  # what is set up once is not counted; another size, since answers may be kept
    small, large = run_of(size), run_of(4 * size)
    return steps(large) / steps(small)
