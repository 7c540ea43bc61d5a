"""What a policy is: a pure callable from a situation to actions, cheapest loss first. One loop, shared by all, decides how many."""

import itertools
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Final, Literal, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.action import Action, Shorten, Strip, Take, Unstrip, is_reluctant
from tenure.engine.view.guard import TAIL_EXCHANGES
from tenure.errors import InputError, TenureError

# How much goes at once: just what a limit asks for, down to the budget's floor, or all that the policy's own rule says.
Amount = Literal["limit", "floor", "all"]
AMOUNTS: Final[tuple[Amount, ...]] = ("limit", "floor", "all")

# What names what left: no words, the description of an expl (the CWL paper), or bounded lines that merge.
Naming = Literal["nothing", "descriptions", "lines"]
NAMINGS: Final[tuple[Naming, ...]] = ("nothing", "descriptions", "lines")


class Conduct(Struct, frozen=True, kw_only=True):
    """How the shared loop is to carry out a policy's actions."""

    amount: Amount = "floor"
    deepens: bool = False  # a batch goes further down the more of the view is of earlier turns, where the budget sets no floor
    by_level: bool = False  # also of an episode all of which would have to go, one level goes after the other
    naming: Naming = "lines"
    tail_exchanges: int = TAIL_EXCHANGES  # newest completed exchanges left alone
    before_marks: bool = False  # what precedes the first mark stays for good (CWL paper, section 4.3)
    begins: float = 0.0  # of the window (0 to 1): it acts above this, in place of the budget's target, and asks no price; 0: at the budget's limits

    def joined(self, other: "Conduct") -> "Conduct":
        """Of two policies, the second of which acts when the first was not enough: what either leaves alone, both do."""
        return replace(
            self,
            amount=min(self.amount, other.amount, key=AMOUNTS.index),
            naming=max(self.naming, other.naming, key=NAMINGS.index),
            tail_exchanges=max(self.tail_exchanges, other.tail_exchanges),
            before_marks=self.before_marks or other.before_marks,
            begins=self.begins or other.begins,
        )


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


class Planned(Struct, frozen=True, kw_only=True):
    """A plan that was made elsewhere, as a policy: its actions in order; what may not be done by now is left out by the loop."""

    name: str
    actions: tuple[Action, ...]
    conduct: Conduct = Conduct(amount="all", naming="nothing")

    def __call__(self, _: Situation, /) -> Iterator[Action]:
        """All of them."""
        yield from self.actions


def offered(policy: Policy, situation: Situation) -> Iterator[Action]:
    """The actions of a policy. Raises InputError for one that raises, or that names what the record does not have. O(places named)."""
    try:
        for action in policy(situation):
            if wrong := _wrong(situation.index, action):
                raise InputError(f"policy {policy.name!r}", wrong, "an action on what the record has (tenure.engine.view.action)")
            yield action
    except TenureError:
        raise
    except Exception as error:
        raise InputError(f"policy {policy.name!r}", f"{type(error).__name__}: {error}", "actions") from error


def _wrong(index: Index, action: object) -> str:
    """What is wrong with an action; empty when nothing is."""
    match action:
        case Strip(episode=ordinal) | Unstrip(episode=ordinal):
            return "" if 0 <= ordinal < len(index.episodes) else f"episode {ordinal} of {len(index.episodes)}"
        case Shorten(text=str(), span=span, at=at):
            if at is not None:
                return _missing(index, (at,))
            return "" if NONE < span < len(index.spans) else f"span {span} of {len(index.spans)}"
        case Take(pointer=str(), places=places, before_entry=entry):
            return _missing(index, places) or (
                "" if 0 <= entry <= len(index) else f"a pointer before entry {entry} of {len(index)}"
            )
        case _:
            return repr(action)[:80]


def _missing(index: Index, places: Iterable[At]) -> str:
    def is_there(at: At) -> bool:
        return 0 <= at[0] < len(index) and 0 <= at[1] < len(index.entries[at[0]].blocks)

    return next((f"block {at[1]} of entry {at[0]}" for at in places if not is_there(at)), "")


_UNMARKED: Final = "older results and messages are shortened or leave, inside episodes and outside."


class PolicyChain(Struct, frozen=True, kw_only=True):
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


def chain(first: Policy, *others: Policy) -> PolicyChain:
    """The policies in this order: `chain(Tiered(), Cwl())`. What any of them leaves alone of the tail, all do."""
    policies = (first, *others)
    conduct = reduce(Conduct.joined, (policy.conduct for policy in policies))
    return PolicyChain(name="+".join(policy.name for policy in policies), policies=policies, conduct=conduct)
