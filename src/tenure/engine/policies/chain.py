"""Policies one after another."""

import itertools
from collections.abc import Iterator
from functools import reduce
from typing import Final

from msgspec import Struct

from tenure.engine.policies.policy import Conduct, Policy, marks_of
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Action, is_reluctant

_UNMARKED: Final = "older results and messages are shortened or leave, inside episodes and outside."


class Chain(Struct, frozen=True, kw_only=True):
    """All actions of the first policy, then all of the next; what the first took, the next finds gone.

    What one is reluctant to do, and all that it would do after that, comes when the others have nothing more to offer.
    """

    name: str
    policies: tuple[Policy, ...]
    conduct: Conduct

    @property
    def marks(self) -> str:
        """What leaves of marked work, and in which order; empty when none of the policies reads marks."""
        told = [marks_of(policy) for policy in self.policies]
        return " If that is not enough, ".join(text or _UNMARKED for text in told) if any(told) else ""

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """In the order of the policies."""
        reluctant: list[Iterator[Action]] = []
        for policy in self.policies:
            actions = policy(situation)
            for action in actions:
                if is_reluctant(action):
                    reluctant.append(itertools.chain((action,), actions))
                    break
                yield action
        yield from itertools.chain.from_iterable(reluctant)


def chain(first: Policy, *others: Policy) -> Chain:
    """The policies in this order: `chain(Tiered(), Cwl())`. What any of them leaves alone of the tail, all do."""
    policies = (first, *others)
    conduct = reduce(Conduct.joined, (policy.conduct for policy in policies))
    return Chain(name="+".join(policy.name for policy in policies), policies=policies, conduct=conduct)
