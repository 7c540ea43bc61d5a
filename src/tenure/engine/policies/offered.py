"""What a policy offers, checked as it comes: a host's own policy that raises or yields nonsense is an error that names it."""

from collections.abc import Iterable, Iterator

from tenure.engine.policies.policy import Policy
from tenure.engine.policies.situation import Situation
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.action import Action, Shorten, Strip, Take, Unstrip
from tenure.engine.view.guard import At
from tenure.errors import InputError, TenureError


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
