"""Drives a session through a transcript, with a decision before each reply, and stops wherever a law can be checked."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Decision, Propose, Unmet
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies import COMPAT, PEERS, POLICIES, chain
from tenure.engine.policies.policy import Policy
from tenure.engine.policies.tiered import Tiered
from tenure.engine.record.entry import Draft, Entry, Role
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Guard
from tenure.engine.view.piece import Piece
from tenure.engine.view.project import View
from tenure.engine.view.request import pieces
from tenure.engine.view.rules import Rules
from tenure.testing.builders import by_words, weigh_words
from tenure.testing.transcripts import transcripts

# Settings at which policies act on transcripts as small as these.
EAGER: Final[dict[str, Policy]] = {
    "tiered-eager": Tiered(
        name="tiered-eager", head=2, tail=3, turns=1, protect=0, minimum=0, steps=1, placeholders_above=0, middle_above=0
    )
}
EAGER["tiered-window"] = replace(
    Tiered.of_window("5/6/7,75/50"), name="tiered-window", head=2, tail=3, turns=1, protect=0, minimum=0, steps=1
)
EAGER["chained"] = chain(EAGER["tiered-eager"], POLICIES["cwl"])
NAMED: Final[dict[str, Policy]] = {**POLICIES, **PEERS, **COMPAT, **EAGER}
# Few each, since every law is held over every policy: thousands of sessions all in all. `make test-all` draws more, and others.
quick = settings(
    max_examples=int(os.environ.get("TENURE_EXAMPLES", "8")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)[: 3 if "TENURE_EXAMPLES" in os.environ else 4],
)

RULES: Final = [
    Rules(provider="t", dialect="openai-chat", thinking=thinking, reasoning_unit=unit, call_reasoning=calls, first_user=first)
    for thinking in ("none", "last_message", "open_loop", "prefix_bound")
    for unit, calls, first in ((False, False, True), (True, False, False), (False, True, False))
]


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    size = draw(st.sampled_from([10, 25, 50, 100, 200, 400, 1_000]))
    match draw(st.sampled_from(["ceiling", "floor", "target", "both", "window"])):
        case "ceiling":
            return Budget(ceiling=size)
        case "floor":
            return Budget(ceiling=size, floor=draw(st.integers(1, size)))
        case "target":
            return Budget(target=size)
        case "both":
            return Budget(target=size, ceiling=size * 2)
        case _:
            return Budget(window=size)


@dataclass(frozen=True)
class Case:
    """What a session is driven through, and what it is held to."""

    drafts: tuple[Draft, ...]
    budget: Budget
    rules: Rules
    extra: int
    ratio: float

    def setup(self, policy: Policy) -> Setup:
        return Setup(budget=self.budget, rules=self.rules, policy=policy)


def cases(*, wild: bool = True, longest: int = 24) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        drafts=transcripts(wild=wild, longest=longest),
        budget=budgets(),
        rules=st.sampled_from(RULES),
        extra=st.sampled_from([0, 0, 7, 200]),
        ratio=st.sampled_from([1.0, 1.0, 1.37, 0.8]),
    )


class Run:
    """One session under way."""

    def __init__(self, case: Case, policy: Policy) -> None:
        self.case = case
        self.entries: list[Entry] = []
        self.session = Session(case.setup(policy), weigh=weigh_words, count=by_words, read=lambda n: self.entries[n])
        self.session.ratio = case.ratio
        self.decision: Decision | None = None

    def replies(self) -> Iterator[None]:
        """Takes messages in, and stops before each reply, where a request goes out. No decision is made."""
        for draft in self.case.drafts:
            if draft.role is Role.ASSISTANT and (not self.entries or self.entries[-1].role is not Role.ASSISTANT):
                yield
                self.session.observe()
            self.entries += self.session.append(draft).entries
        yield

    def decisions(self) -> Iterator[Decision]:
        """Stops after each decision; its commit is not made yet."""
        for _ in self.replies():
            self.decision = self.session.decide(extra=self.case.extra)
            yield self.decision

    def commits(self) -> "Iterator[Made]":
        """Stops after each commit."""
        for decision in self.decisions():
            proposal = proposal_of(decision)
            if proposal is not None:
                made = Made(self.session.freeze(), self.session.guard(), proposal)
                self.session.commit(proposal.commit)
                yield made

    @property
    def tokens(self) -> int:
        """What a request weighs now, as the provider counts."""
        return int((self.session.view.tokens + self.case.extra) * self.session.ratio)

    def pieces(self) -> tuple[Piece, ...]:
        return pieces(self.session.freeze(), self.session.index, self.entries.__getitem__)

    def finish(self) -> "Run":
        for _ in self.commits():
            pass
        return self


@dataclass(frozen=True)
class Made:
    """A commit that was just made."""

    before: View
    guard: Guard
    proposal: Propose

    @property
    def commit(self) -> Commit:
        return self.proposal.commit


def proposal_of(decision: Decision) -> Propose | None:
    match decision:
        case Propose():
            return decision
        case Unmet(proposal=proposal):
            return proposal
        case _:
            return None


def stored(commit: Commit) -> Commit:
    """A commit as a store gives it back."""
    return msgspec.json.decode(msgspec.json.encode(commit), type=Commit)
