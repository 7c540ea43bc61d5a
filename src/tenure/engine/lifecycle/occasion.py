"""The occasion of a decision: the call that is to be made, and the limit that it passes."""

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.state import SessionState
from tenure.engine.view.edit import Moment


class Occasion(Struct, frozen=True, kw_only=True, gc=False):
    """The call that is to be made, what goes out beside the view, and the limit that it passes: ceiling and window force, a target is a matter of price."""

    moment: Moment
    at: str
    extra: int  # o200k tokens
    total: int  # provider tokens of all that goes out
    limit: int = 0  # provider tokens; 0: none is passed
    name: str = ""
    forced: bool = False
    by_share: bool = False  # the policy begins here by its own rule, whatever it costs


def occasion_of(state: SessionState, moment: Moment, *, extra: int, at: str) -> Occasion:
    """The occasion now. O(1)."""
    budget = state.setup.budget
    call = Occasion(moment=moment, at=at, extra=extra, total=state.provider(state.view.tokens + extra))
    for name, tokens in (("ceiling", budget.ceiling), ("window", budget.window)):
        if tokens is not None and call.total > tokens:
            return replace(call, limit=tokens, name=name, forced=True)
    begins = state.setup.policy.conduct.begins if state.setup.policy is not None else 0.0
    name, tokens = (f"{begins:.0%} of the window", int(begins * budget.room)) if begins else ("target", budget.target)
    if tokens is not None and call.total > tokens:
        return replace(call, limit=tokens, name=name, by_share=bool(begins))
    return call
