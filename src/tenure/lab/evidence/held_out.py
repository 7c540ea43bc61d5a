"""The provenance policy as it may be judged on a corpus: by weights that were learned without the source at hand.

`held_out.json` is written by `python bench/learn.py FOLDER --out FILE`: of each source, a folder of the corpus that the published weights were
learned from, the weights learned on all the others. A source that is not in it was not learned from.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec.structs import replace

from tenure.engine.policies.policy import Policy
from tenure.engine.policies.provenance import Provenance
from tenure.engine.policies.provenance.weights import Weights

_FILE: Final = "held_out.json"


def judged(policy: Policy | None, member: str) -> Policy | None:
    """The policy for a member of a corpus, whose first folder is its source."""
    if not isinstance(policy, Provenance):
        return policy
    weights = _weights().get(member.partition("/")[0])
    return policy if weights is None else replace(policy, weights=weights)


@cache
def _weights() -> dict[str, Weights]:
    told = json.loads(files("tenure.lab.evidence").joinpath(_FILE).read_text(encoding="utf-8"))
    return msgspec.convert(told, dict[str, Weights])
