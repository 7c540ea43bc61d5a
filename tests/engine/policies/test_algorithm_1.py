"""Algorithm 1 of the CWL paper, written out as naively as it reads, against the policy."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.fit import FRAMING
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies.cwl import Cwl
from tenure.engine.record.entry import Draft, Origin
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.index import NONE
from tenure.engine.view.action import Level
from tenure.engine.view.rules import Rules
from tenure.testing.builders import by_words, human, reply, session
from tenure.testing.transcripts import transcripts

At = tuple[int, int]
SEARCH, OTHERS = {"grep", "glob", "find", "ls"}, {"read", "bash", "task"}
FREE = Setup(budget=Budget(window=10**9), rules=Rules(provider="t", dialect="openai-chat"), policy=Cwl.paper())


class Algorithm1:
    """The paper's pseudocode; every question is answered by looking at everything again."""

    def __init__(self, read: Session) -> None:
        self.index = read.index
        self.shown = {(n, b) for n, entry in enumerate(self.index.entries) for b in range(len(entry.blocks))}
        self.descriptions: dict[str, int] = {}
        self.actions: list[tuple[str, str]] = []
        self.removed: set[int] = set()

    def run(self, token_budget: int) -> "Algorithm1":
        while self.count_tokens() > token_budget:  # 1
            candidates = [  # 2
                episode
                for episode in self.index.episodes
                if episode.closed
                and episode.ordinal not in self.removed
                and not self.is_prologue(episode)
                and all(self.is_fully_evicted(self.index.episodes[dependent]) for dependent in episode.dependents)
            ]
            if not candidates:  # 3
                break  # 4
            acts = [episode for episode in candidates if episode.type is EpisodeType.ACT]
            target = min(acts or candidates, key=lambda episode: episode.start)  # 6
            for level in ("reasoning", "bulk", "intermediate", "episode"):  # 7
                if level == "reasoning" and target.type is EpisodeType.ACT:  # 8
                    continue
                self.strip(target, level)  # 9
                if self.count_tokens() <= token_budget:  # 10
                    return self  # 11
        return self

    def count_tokens(self) -> int:
        return sum(self.index.block(at).tokens for at in self.shown) + sum(self.descriptions.values())

    def is_prologue(self, episode: Episode) -> bool:
        return not list(self.content(episode, everything=True))

    def is_fully_evicted(self, episode: Episode) -> bool:
        return not (set(self.content(episode, everything=True)) & self.shown)

    def content(self, episode: Episode, *, everything: bool = False) -> Iterator[At]:
        first = self.index.first_delimiter or (0, 0)
        for n, entry in enumerate(self.index.entries):
            for b, facts in enumerate(entry.blocks):
                place = self.index.spans[facts.span].call if facts.span != NONE else (n, b)  # a result stays with its call
                is_its = facts.episode == episode.ordinal and facts.origin is not Origin.HUMAN and place >= first
                if is_its and (everything or (n, b) in self.shown):
                    yield n, b

    def strip(self, episode: Episode, level: str) -> None:
        gone = {at for at in self.content(episode) if self.is_at(at, level)}
        for n in {at[0] for at in gone}:  # a message of reasoning alone is none
            left = [b for b in range(len(self.index.entries[n].blocks)) if (n, b) in self.shown - gone]
            while left and self.index.block((n, left[-1])).kind == "thinking":
                gone.add((n, left.pop()))
        self.shown -= gone
        if gone:
            self.actions.append((episode.object, level))
        if level == "episode":
            self.removed.add(episode.ordinal)
        if self.is_fully_evicted(episode) and episode.description and gone:
            handle = self.index.handle(episode.object, episode.start[0])
            self.descriptions[episode.object] = by_words(f"[evicted: {handle}] {episode.description}") + FRAMING

    def is_at(self, at: At, level: str) -> bool:
        facts = self.index.block(at)
        tool = self.index.spans[facts.span].tool if facts.span != NONE else ""
        match level:
            case "reasoning":
                return facts.kind == "thinking"
            case "bulk":
                return tool in SEARCH
            case "intermediate":
                return tool in OTHERS
            case _:
                return True


def opened(drafts: tuple[Draft, ...]) -> Session:
    """A session that rests: nothing is protected but what the paper protects."""
    return session(FREE, *drafts, reply("done"), human("go on"))


@given(drafts=transcripts(wild=False, annotated=True, longest=40), share=st.floats(0.0, 1.0))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_policy_does_what_algorithm_1_does(drafts: tuple[Draft, ...], share: float) -> None:
    read = opened(drafts)
    budget = int(read.view.tokens * share)
    rehearsal = read.rehearse(Cwl.paper(), budget)
    naive = Algorithm1(read).run(budget)
    assert [(act.object, act.level) for act in rehearsal.actions] == naive.actions
    view = read.view.copy()
    view.apply(rehearsal.edits)
    assert {(row.entry, block) for row in view.rows() for block in row.blocks} == naive.shown
    assert rehearsal.tokens_after == naive.count_tokens()


@given(drafts=transcripts(wild=False, longest=40))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_levels_come_in_the_papers_order(drafts: tuple[Draft, ...]) -> None:
    order = list(Level)
    acts = opened(drafts).rehearse(Cwl.paper(), 0).actions
    for before, after in pairwise(acts):
        assert before.object != after.object or order.index(Level(before.level)) < order.index(Level(after.level))
