"""The policies by name, as the command line and `Context(policy=…)` know them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, cast

from tenure.engine.policies.cwl import Cwl, CwlInferred, PiCwl
from tenure.engine.policies.graph import GraphPolicy
from tenure.engine.policies.peers import PEERS
from tenure.engine.policies.policy import Policy, chain
from tenure.engine.policies.tiered import Tiered
from tenure.errors import InputError
from tenure.plugins import names as plugin_names
from tenure.plugins import plugin

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType(
    {policy.name: policy for policy in (Cwl(), CwlInferred(), Tiered(), GraphPolicy())}
)

COMPAT: Final[Mapping[str, Policy]] = MappingProxyType(
    {"paper": Cwl.paper(), "pi-cwl": PiCwl()}
)  # published versions, followed exactly

# The names that type checkers know; several are joined by `chain`, or by + in a name.
PolicyName = Literal[
    "none",
    "graph",
    "cwl",
    "cwl-inferred",
    "tiered",
    "tiered+cwl",
    "tiered@60/70/85",
    "tiered@60/70/85,75/50",
    "tiered@60/70/85,50/25",
    "oldest-turn",
    "tool-prune",
    "tool-mask-prune",
    "hybrid",
    "observation-masking",
    "sliding-window",
    "opencode-prune",
    "cline",
    "cline-75-50",
    "clear-tool-uses",
    "langchain-clearing",
    "discard-75",
    "discard-all",
]

DEFAULT: Final = "graph"  # needs no annotation and no model; docs/evidence says what it is better at, and what not
RENAMED: Final[Mapping[str, str]] = MappingProxyType({"provenance": "graph"})  # what stored conversations may still name
UNBOUNDED: Final = "none"  # the policy that evicts nothing


def policy_named(name: str, compat: str = "") -> Policy | None:
    """The policy of that name, or the published version that `compat` names; None for `none`. Raises InputError, naming those there are."""
    if compat:
        if compat not in COMPAT:
            raise InputError("compat", repr(compat), "one of " + ", ".join(COMPAT))
        return COMPAT[compat]
    if name == UNBOUNDED:
        return None
    known: dict[str, Policy] = {**POLICIES, **PEERS}
    names = [RENAMED.get(each, each) for each in name.split("+")]
    for each in names:
        kind, at, shares = each.partition("@")
        if at and kind == "tiered":
            known[each] = Tiered.of_window(shares)
        elif each not in known and (added := plugin("policies", each)) is not None:
            known[each] = cast(Policy, added)
    if wrong := [each for each in names if each not in known]:
        alone = [] if len(names) > 1 else [UNBOUNDED]
        allowed = ", ".join([*known, *alone, *plugin_names("policies")])
        raise InputError("policy", repr(wrong[0]), f"one of {allowed}, or several joined by +")
    first, *others = (known[each] for each in names)
    return chain(first, *others) if others else first


def faithful_named(name: str, compat: str = "") -> Policy:
    """A rule of others that may run without our protection (`Setup.faithful`). Raises InputError for our own: they have no such version."""
    if compat or any(each not in PEERS for each in name.split("+")):
        asked = f"--compat {compat}" if compat else f"--policy {name}"
        raise InputError("--faithful", asked, "a published rule that knows no protection: " + ", ".join(PEERS))
    policy = policy_named(name)
    assert policy is not None
    return policy


__all__ = ["COMPAT", "DEFAULT", "PEERS", "POLICIES", "UNBOUNDED", "PolicyName", "chain", "faithful_named", "policy_named"]
