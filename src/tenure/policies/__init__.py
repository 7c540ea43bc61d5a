"""The policies by name, as the command line and `Context(policy=…)` know them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.policies.cwl import Cwl
from tenure.policies.policy import Policy

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({"cwl": Cwl(), "cwl-paper": Cwl.paper()})

__all__ = ["POLICIES"]
