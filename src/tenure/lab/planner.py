"""A Self-GC planner as a policy, wherever policies are held against each other: at cuts, before judges, in audits (an edge: a model is asked).

At a cut there is no request of the recorded agent's to stand behind, so the planner is told the window in words; and there is no gate, so all of its
plan that is allowed is carried out, as the Self-GC paper's offline evaluation has it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tenure.engine.lifecycle.gate import expected_calls
from tenure.engine.lifecycle.planning import OUTPUT_TOKENS
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.planners.selfgc.objects import objects_in
from tenure.engine.planners.selfgc.plan import RefusedTarget, actions_of, ask, screened
from tenure.engine.planners.selfgc.prompt import SCHEMA, Stakes
from tenure.engine.planners.selfgc.reply import read
from tenure.engine.planners.selfgc.setting import OURS, SelfGc
from tenure.engine.planners.selfgc.window import in_words
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Action
from tenure.errors import Failure, ModelError
from tenure.models.model import TextModel
from tenure.models.question import Model, Question, form_of, room_of

SELFGC: Final = "selfgc"
_WHOLE: Final = Conduct(amount="all", naming="nothing")


@dataclass(frozen=True, kw_only=True)
class PlannerPolicy:
    """What a planner names, all of it. Raises ModelError where the model gives no answer: no answer is not an empty plan.

    `room`: o200k tokens of the window's words; 0: as many as the model is known to hold, else all. `refused` grows with every plan.
    """

    model: Model
    name: str = SELFGC
    room: int = 0
    setting: SelfGc = OURS
    prices: Prices = DEFAULT
    conduct: Conduct = _WHOLE
    refused: list[RefusedTarget] = field(default_factory=list[RefusedTarget])

    def question(self, situation: Situation) -> Question | None:
        """What the planner is asked; None when nothing may be named."""
        form = form_of(self.model)
        aim = max(0, situation.view.tokens - situation.goal) if situation.goal else 0
        rewrite = (self.prices.write - self.prices.read) / self.prices.read
        stakes = Stakes(aim=aim, calls=expected_calls(len(situation.index.steps)), rewrite=rewrite)
        text = ask(situation, read=situation.read, stakes=stakes, setting=self.setting, form=form, in_words=True)
        if not text:
            return None
        room = self.room or room_of(self.model)
        window = in_words(situation.view.freeze(), situation.index, situation.read, situation.count, room=room)
        return Question(messages=(window, text), max_output=OUTPUT_TOKENS, schema=SCHEMA if form == "json" else None)

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """The plan's actions, in record order."""
        question = self.question(situation)
        if question is None:
            return
        objects = objects_in(situation, read=situation.read, within_cut=not self.setting.keep_last_turn)
        plan = screened(read(self.model(question).text), objects)
        actions, exact = actions_of(situation, plan.choices, in_place=self.setting.in_place)
        self.refused.extend((*plan.refused, *exact))
        yield from actions


@dataclass(frozen=True, kw_only=True)
class RecordedPlans:
    """The plans that were given at cuts of one session, known by what the view weighed there; no answer is no plan."""

    answers: Mapping[int, str]  # by o200k tokens of the view
    name: str = SELFGC
    setting: SelfGc = OURS
    conduct: Conduct = _WHOLE
    refused: list[RefusedTarget] = field(default_factory=list[RefusedTarget])

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """The plan's actions. Raises ModelError where there is no answer."""
        answer = self.answers.get(situation.view.tokens)
        if answer is None:
            raise ModelError(Failure.WAITING, f"no plan for a view of {situation.view.tokens:,} tokens")
        planner = PlannerPolicy(model=TextModel(lambda _: answer), setting=self.setting, refused=self.refused)
        yield from planner(situation)
