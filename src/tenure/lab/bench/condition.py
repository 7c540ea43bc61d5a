"""Under which rules a session's window is kept: the conditions that are compared."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.policies import PEERS, POLICIES, UNBOUNDED, policy_named
from tenure.engine.policies.policy import marks_of
from tenure.errors import InputError

CEILING: Final = 80_000  # provider tokens; CWL paper, section 6.1


class Condition(Struct, frozen=True, kw_only=True):
    """A window's rules. `compacts`: nothing is evicted, and at the ceiling the session's model writes a summary in place of what was before."""

    name: str
    policy: str
    episodes: bool = False  # the agent is offered `delimiter`, and told how to use it
    compacts: bool = False

    def budget(self, ceiling: int, window: int) -> Budget:
        """The budget under this condition, in provider tokens. Without a policy there is only the model's window."""
        if self.policy == UNBOUNDED:
            return Budget(window=window)
        return Budget(ceiling=min(ceiling, window), window=window)


CWL: Final = Condition(name="cwl", policy="cwl", episodes=True)
COMPACTION: Final = Condition(name="compaction", policy=UNBOUNDED, compacts=True)
NO_EVICTION: Final = Condition(name="none", policy=UNBOUNDED)

# What the CWL paper compares (section 6.5), and what anyone would compare it with.
CONDITIONS: Final[Mapping[str, Condition]] = MappingProxyType({each.name: each for each in (CWL, COMPACTION, NO_EVICTION)})


def condition_named(name: str) -> Condition:
    """The condition of that name: one of the table, or a policy, for which the agent annotates if it reads marks. Raises InputError."""
    if found := CONDITIONS.get(name):
        return found
    try:
        policy = policy_named(name)
    except InputError as error:
        known = ", ".join([*CONDITIONS, *(each for each in (*POLICIES, *PEERS) if each not in CONDITIONS)])
        raise InputError("condition", repr(name), f"one of {known}, or several policies joined by +") from error
    return Condition(name=name, policy=name, episodes=bool(marks_of(policy)))
