"""The policies by name, as the command line and `Context(policy=…)` know them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.errors import InputError
from tenure.policies.cwl import Cwl
from tenure.policies.pi_cwl import PiCwl
from tenure.policies.policy import Policy

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({"cwl": Cwl()})
COMPAT: Final[Mapping[str, Policy]] = MappingProxyType(
    {"paper": Cwl.paper(), "pi-cwl": PiCwl()}
)  # published versions, followed exactly

UNBOUNDED: Final = "none"  # the policy that evicts nothing


def policy_named(name: str, compat: str = "") -> Policy | None:
    """The policy of that name, or the published version that `compat` names; None for `none`. Raises InputError, naming those there are."""
    if compat:
        if compat not in COMPAT:
            raise InputError("compat", repr(compat), "one of " + ", ".join(COMPAT))
        return COMPAT[compat]
    if name == UNBOUNDED:
        return None
    if name not in POLICIES:
        raise InputError("policy", repr(name), "one of " + ", ".join([*POLICIES, UNBOUNDED]))
    return POLICIES[name]


__all__ = ["COMPAT", "POLICIES", "UNBOUNDED", "policy_named"]
