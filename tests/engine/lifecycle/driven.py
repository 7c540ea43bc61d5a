"""A session that is driven by hand, whose planner folds what it is told to and whose every commit is held to the laws."""

from collections.abc import Iterable, Iterator
from typing import Any

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Decision, Propose
from tenure.engine.lifecycle.planning import answer_handoff, answer_selfgc, ask_handoff, ask_selfgc
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.planners.selfgc.objects import objects_in
from tenure.engine.planners.selfgc.plan import RefusedTarget
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.record.query import Query
from tenure.engine.record.recall import answer, raw
from tenure.engine.view.action import Action
from tenure.engine.view.edit import Insert
from tenure.engine.view.laws import never_larger, protection, structural
from tenure.engine.view.project import project
from tenure.engine.view.residue import is_pointer
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, reply, result

COUNT = o200k()
RULES = Rules(provider="t", dialect="openai-chat")
CEILING = 20_000
BRIEF = (
    "\n\n".join(f"## {section.title}\nPart one is mended; {section.key} of it is told here." for section in SECTIONS)
    + "\n[end of brief]"
)


class Driven(Session):
    """A session that keeps its texts, folds what it is told to and is held to the laws at every commit."""

    def __init__(self, ceiling: int = CEILING, rules: Rules = RULES) -> None:
        self.kept: dict[int, Entry] = {}
        self.number = 0
        self.refused: tuple[RefusedTarget, ...] = ()
        super().__init__(
            Setup(budget=Budget(ceiling=ceiling), rules=rules),
            weigh=lambda blocks: tuple(COUNT(block.text) + 4 for block in blocks),
            count=COUNT,
            read=self.kept.__getitem__,
        )

    def plan(self, name: str, actions: Iterable[Action], **options: Any) -> Decision:  # type: ignore[override]
        """Whether it pays is not the question here."""
        return super().plan(name, actions, **(options | {"forced": True}))

    def say(self, *drafts: Draft) -> "Driven":
        for draft in drafts:
            self.kept |= {entry.n: entry for entry in self.append(draft).entries}
        return self

    def work(self, calls: int = 1, lines: int = 40) -> "Driven":
        for _ in range(calls):
            self.number += 1
            text = "\n".join(f"unit {self.number} line {n} of what was printed" for n in range(lines))
            self.say(reply(call("bash", f"c{self.number}", command=f"make part-{self.number}")), result(text, f"c{self.number}"))
        return self

    def turn(self, calls: int = 1, lines: int = 40) -> "Driven":
        return self.say(human(f"Do part {self.number}.")).work(calls, lines).say(reply(f"Done with {self.number}."))

    def planned(self, **actions: list[str]) -> Propose | None:
        """Carries out a planner's answer; None when nothing of it may leave."""
        asked = ask_selfgc(self)
        if asked is None:
            return None
        lists = "\n".join(f"<{action}>\n{chr(10).join(targets)}\n</{action}>" for action, targets in actions.items())
        answered = answer_selfgc(self, asked, f"<gc_plan>\n{lists}\n</gc_plan>")
        self.refused = answered.refused
        return self.carry_out(answered.decision) if isinstance(answered.decision, Propose) else None

    def carry_out(self, proposal: Propose) -> Propose:
        before, guard = self.freeze(), self.guard()
        self.commit(proposal.commit)
        after = self.freeze()
        wrong = [*protection(before, after, self.index, guard, self.setup.rules), *never_larger(before, after, proposal.commit)]
        wrong += structural(after, self.index, self.setup.rules)
        assert not wrong
        assert project(self.index, self.length, list(self.commits)) == after
        return proposal

    def handed_off(self) -> None:
        asked = ask_handoff(self, keep=2)
        assert asked is not None
        decision = answer_handoff(self, asked, BRIEF).decision
        assert isinstance(decision, Propose)
        self.carry_out(decision)

    @property
    def pointers(self) -> list[Insert]:
        return [insert for insert in self.view.inserts if is_pointer(insert)]

    @property
    def weight(self) -> int:
        return sum(insert.tokens for insert in self.pointers)

    def raw(self, handle: str) -> str:
        return raw(self.index, self.kept.__getitem__, handle).decode()

    def asked(self, **query: str) -> str:
        return answer(self.index, self.kept.__getitem__, Query(**query), count=COUNT)


def foldable(session: Driven, kind: str) -> Iterator[str]:
    for each in objects_in(session.situation(), read=session.kept.__getitem__, within_cut=True):
        if each.why is None and each.kind == kind:
            yield each.id


def folded(session: Driven, *names: str) -> Driven:
    assert session.planned(fold=[f"{name} | what {name} printed; recall for its lines" for name in names]) is not None
    return session
