"""The policies by name, as the command line and `Context(policy=…)` know them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.policies.cwl import Cwl
from tenure.policies.pi_cwl import PiCwl
from tenure.policies.policy import Policy

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({"cwl": Cwl()})
COMPAT: Final[Mapping[str, Policy]] = MappingProxyType(
    {"paper": Cwl.paper(), "pi-cwl": PiCwl()}
)  # published versions, followed exactly

__all__ = ["COMPAT", "POLICIES"]
