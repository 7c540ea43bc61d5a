"""What an agent is told of `delimiter` and `recall` follows from the policy in force."""

from typing import Any

import pytest

from tenure import Budget, Context
from tenure.engine.policies import COMPAT, PEERS, POLICIES, chain, policy_named
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.offer import delimiter_offer, offers, recall_offer
from tenure.engine.policies.policy import Policy
from tenure.engine.policies.tiered import Tiered
from tenure.testing.store import MemoryStore

MARKED: dict[str, Policy] = {
    "cwl": POLICIES["cwl"],
    "cwl-inferred": POLICIES["cwl-inferred"],
    "tiered+cwl": chain(Tiered(), Cwl()),
    "cwl+tiered": chain(Cwl(), Tiered()),
    "paper": COMPAT["paper"],
    "pi-cwl": COMPAT["pi-cwl"],
}
UNMARKED: dict[str, Policy | None] = {
    **{name: policy for name, policy in {**POLICIES, **PEERS}.items() if name not in ("cwl", "cwl-inferred")},
    "tiered+graph": policy_named("tiered+graph"),
    "none": None,
}


def told(policy: Policy) -> str:
    offer = delimiter_offer(policy)
    assert offer is not None
    return offer.description


@pytest.mark.parametrize("policy", MARKED.values(), ids=MARKED)
def test_a_policy_that_reads_marks_is_offered_with_the_tool_to_make_them(policy: Policy) -> None:
    assert [offer.name for offer in offers(policy)] == ["delimiter", "recall"]


@pytest.mark.parametrize("policy", UNMARKED.values(), ids=UNMARKED)
def test_a_policy_that_ignores_marks_is_not(policy: Policy | None) -> None:
    assert [offer.name for offer in offers(policy)] == ["recall"]
    assert "episode" not in recall_offer(policy).description


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"policy": "cwl"}, ["delimiter", "recall"]),
        ({"policy": "tiered+cwl"}, ["delimiter", "recall"]),
        ({"compat": "pi-cwl"}, ["delimiter", "recall"]),
        ({"policy": "graph"}, ["recall"]),
        ({}, ["recall"]),
        ({"policy": None}, ["recall"]),
    ],
)
def test_requests_offer_the_delimiter_only_where_the_policy_reads_marks(settings: dict[str, Any], names: list[str]) -> None:
    context = Context(store=MemoryStore(), budget=Budget(window=100_000), **settings)
    context.extend([{"role": "user", "content": "go"}])
    assert [tool["name"] for tool in context.request(model="m")["tools"]] == names


def test_the_order_that_is_told_is_the_policys_own() -> None:
    assert "finished episodes leave: the oldest act, else the oldest expl" in told(Cwl())
    assert "an expl that no act has used goes last" in told(Cwl())
    assert "an expl that no act has used goes last" not in told(Cwl.paper())
    assert "the oldest of either type" in told(COMPAT["pi-cwl"])
    assert "the reasoning of an expl, then search output and listings, then file reads and command output" in told(Cwl())
    assert "calls of bash, then calls of read, then all the rest" in told(COMPAT["pi-cwl"])


def test_a_chain_tells_its_policies_in_their_order() -> None:
    first, then = told(chain(Tiered(), Cwl())), told(chain(Cwl(), Tiered()))
    shortened, left = "older results and messages are shortened", "finished episodes leave"
    assert first.index(shortened) < first.index("If that is not enough, finished episodes") < first.index("the oldest act")
    assert then.index(left) < then.index("If that is not enough, older results")


def test_what_stays_is_told_as_the_conduct_has_it() -> None:
    assert "your latest calls" in told(Cwl())
    assert "your latest calls" not in told(Cwl.paper())
    assert "what came before your first mark" in told(Cwl.paper())
    assert "what came before your first mark" not in told(Cwl())
    assert "your description stays for good" in told(Cwl.paper())
    assert "for good" not in told(Cwl())
    assert "take more than 8% of the budget, of the oldest only the names stay, and of those at most 5%" in told(Cwl())
    assert "Nothing is left in the place of an episode" in told(COMPAT["pi-cwl"])


@pytest.mark.parametrize("policy", MARKED.values(), ids=MARKED)
def test_what_the_model_is_told_is_short(policy: Policy) -> None:
    assert len(told(policy)) < 2_000
    assert len(recall_offer(policy).description) < 600
