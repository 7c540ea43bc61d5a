"""A plan that was made elsewhere, as a policy: the loop that all policies share carries it out."""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Action


class Planned(Struct, frozen=True, kw_only=True):
    """Its actions in order, whatever the target; what may not be done by now is left out by the loop."""

    name: str
    actions: tuple[Action, ...]
    conduct: Conduct = Conduct(lines=False, descriptions=False, whole=True)

    def __call__(self, _: Situation, /) -> Iterator[Action]:
        """All of them."""
        yield from self.actions
