"""What a policy is: a pure callable from a situation to actions, cheapest loss first. One loop, shared by all, decides how many."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from msgspec import Struct

from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Action
from tenure.engine.view.guard import TAIL_EXCHANGES


class Conduct(Struct, frozen=True, kw_only=True):
    """How the shared loop is to carry out a policy's actions."""

    batch: bool = True  # down to the budget's floor at once, not just under the limit
    escalates: bool = True  # an episode all of which would have to go goes in one action, not level by level
    lines: bool = True  # what leaves is named by bounded, merging residues; without, an expl leaves its description only
    whole: bool = False  # the policy's own rule says how much goes: all of it is carried out, whatever the target
    descriptions: bool = True  # without these and without lines, nothing stands for what left
    tail_exchanges: int = TAIL_EXCHANGES  # newest completed exchanges left alone
    before_marks: bool = False  # what precedes the first mark stays for good (CWL paper, section 4.3)


class Policy(Protocol):
    """Proposes what the next view can do without. It yields each action as if the ones before it had been carried out."""

    @property
    def name(self) -> str:
        """As commits record it."""
        ...

    @property
    def conduct(self) -> Conduct:
        """How its actions are carried out."""
        ...

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Actions in the order in which the policy would accept losing them."""
        ...


@runtime_checkable
class Marked(Protocol):
    """A policy that reads the marks which an agent makes with `delimiter`."""

    @property
    def marks(self) -> str:
        """What leaves of marked work, and in which order: sentences to the agent, to follow "When the token budget is passed,"."""
        ...


def marks_of(policy: Policy | None) -> str:
    """What an agent is told of its marks under a policy; empty under one that does not read them."""
    return policy.marks if isinstance(policy, Marked) else ""
