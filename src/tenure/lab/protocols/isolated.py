"""Each session alone, whole, under a budget: what it costs, and what its own later steps miss."""

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.lab.events import IsolatedRun
from tenure.lab.protocols.conditions import USUAL, Conditions, limits, options, told
from tenure.lab.protocols.measured import measured
from tenure.lab.replay import Source, replay


def isolated(
    source: Source, policy: Policy | None, budget: Budget, tokenizer: Tokenizer, *, conditions: Conditions = USUAL
) -> IsolatedRun:
    """The whole session under the budget; `policy` None evicts nothing. Raises InputError when the source cannot be read."""
    return IsolatedRun(
        source=source.path,
        policy=policy.name if policy else "none",
        budget=limits(budget),
        head_tokens=conditions.head_tokens,
        measured=measured(replay([told(source)], options(policy, budget, conditions), tokenizer)),
    )
