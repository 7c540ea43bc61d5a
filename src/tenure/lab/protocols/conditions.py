"""What is the same for every run that is compared: prices, head, what of a log is replayed."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft, Role
from tenure.lab.events import Limits
from tenure.lab.protocols.measured import limits_of
from tenure.lab.replay import Options, Source
from tenure.logs.reader import Event, Rewritten

UNBOUNDED: Final = 10**9  # tokens: a window that nothing fills
WINDOW: Final = 267_000  # of which 80,000 are "approximately 30 %" (CWL paper, section 5): where its uncapped sessions end
CEILINGS: Final[tuple[int | None, ...]] = (50_000, 80_000, 120_000, 160_000, WINDOW, None)


class Conditions(Struct, frozen=True, kw_only=True):
    """Under what all runs are replayed.

    Prices are those of one `model`, tokens are o200k counts as they are (nothing is learned from a log's own reports, which are of another
    window), the head stands for system prompts and tools, and what the recorded agents did to their own windows is left out: they saw all
    they said, and every policy starts from the same record.
    """

    model: str = "claude-sonnet-4-5"
    cache_life: str = "5m"  # the provider's default, whatever a log's own requests asked for
    head_tokens: int = 20_000  # CWL paper, section 6.1: what the prompt and tools of a coding agent weigh
    faithful: bool = False  # peers' rules without our protection


USUAL: Final = Conditions()


def options(policy: Policy | None, budget: Budget, conditions: Conditions = USUAL) -> Options:
    """How a run is replayed."""
    return Options(
        budget=budget,
        policy=policy,
        model=conditions.model,
        cache_life=conditions.cache_life,
        head=conditions.head_tokens,
        learn=False,
        faithful=conditions.faithful and policy is not None,
    )


def budget_of(ceiling: int | None, *, floor: int | None = None) -> Budget:
    """A ceiling that is kept at once, down to `floor` (None: the usual share of it), and no other limit; None: no limit at all."""
    return Budget(ceiling=ceiling, floor=floor, window=UNBOUNDED)


def limits(budget: Budget) -> Limits:
    """As rows state it."""
    return limits_of(budget, unbounded=UNBOUNDED)


def told(source: Source) -> Source:
    """A source without its system messages, for which the head stands, and without what its agent did to its own window."""

    def events() -> tuple[str, Iterator[Event]]:
        name, found = source.events()
        return name, (event for event in found if not _is_left_out(event))

    return Source(source.path, events, source.sha256)


def _is_left_out(event: Event) -> bool:
    return isinstance(event, Rewritten) or (isinstance(event, Draft) and event.role is Role.SYSTEM)
