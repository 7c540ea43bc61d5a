"""A Self-GC planner as a policy, wherever policies are held against each other: at cuts, before judges, in audits (an edge: a model is asked).

At a cut there is no request of the recorded agent's to stand behind, so the planner is told the window in words; and there is no gate, so all of its
plan that is allowed is carried out, as the Self-GC paper's offline evaluation has it.

What stands in for a planner and a summariser where no model is at hand.

They read nothing but the question, as a model would, and answer by plain rules: the same question, the same answer. What they plan and write
says nothing of how well a model would do it; it shows what the engine does with an answer.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from tenure.engine.lifecycle.gate import expected_calls
from tenure.engine.lifecycle.planning import OUTPUT_TOKENS
from tenure.engine.meter.figures import first_line
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.planners.handoff.sections import END, NONE, Sections
from tenure.engine.planners.handoff.sections import SECTIONS as _SECTIONS
from tenure.engine.planners.handoff.transcript import EARLIER, MARK
from tenure.engine.planners.selfgc.objects import CUE_CHARS, objects_in
from tenure.engine.planners.selfgc.plan import RefusedTarget, actions_of, ask, screened
from tenure.engine.planners.selfgc.prompt import SCHEMA, Stakes
from tenure.engine.planners.selfgc.reply import PlanAction, read
from tenure.engine.planners.selfgc.setting import OURS, SelfGc
from tenure.engine.planners.selfgc.window import in_words
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Action
from tenure.errors import Failure, ModelError
from tenure.models.model import TextModel
from tenure.models.question import Answer, Cancel, Model, Question, form_of, room_of

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


LARGE: Final = 300  # o200k tokens; what weighs less is left alone
OLD: Final = 4  # replies since; what is newer is left alone
SHARE: Final = 0.5  # of what is large and old, the oldest
TURN: Final[tuple[PlanAction, ...]] = ("fold", "mask", "prune")  # one object after another
QUOTED: Final = 160  # characters of a line that a brief quotes
NAMED: Final = 12  # objects that a brief names

_OBJECT: Final = re.compile(
    r"^ *(?P<id>[^\s·][^·\n]*) · (?P<size>[\d.]+)(?P<unit>[kM]?) · (?P<age>\d+) ago · [\d.]+[kM]? behind(?: · (?P<cue>[^\n]*))?$",
    re.MULTILINE,
)
_INDEX: Final = "\n\nIndex of what may be named"
_BARRED: Final = "\nNot to be named:"
_END: Final = "\n\nThe window weighs "
_UNITS: Final = {"": 1, "k": 1_000, "M": 1_000_000}
_NO_CALLS: Final = ("user", "skill")  # kinds of objects that are more than one call


class RuleModel(Struct, frozen=True, kw_only=True):
    """A `Model` that answers the last message of a question by a rule. It costs nothing and reports no usage."""

    rule: Callable[[str], str]
    name: str = "stand-in"

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:  # noqa: ARG002 - it answers at once
        """The rule's answer."""
        last = question.messages[-1]
        text = last if isinstance(last, str) else "\n".join(block.text for block in last.blocks)
        return Answer(text=self.rule(text), model=self.name, stop="stop")


def planned(question: str) -> str:
    """A plan out of a Self-GC question's index: the older half of all calls that are large and old is folded, masked and pruned in turn."""
    index = question.rpartition(_INDEX)[2].partition(_BARRED)[0].partition(_END)[0]
    found = [each for each in _OBJECT.finditer(index) if each["id"].partition(":")[0] not in _NO_CALLS]
    large = [each for each in found if _size(each) >= LARGE and int(each["age"]) >= OLD]
    lists: dict[PlanAction, list[str]] = {action: [] for action in TURN}
    for number, each in enumerate(large[: int(len(large) * SHARE + 0.5)]):
        action = TURN[number % len(TURN)]
        about = f" | {first_line(each['cue'] or 'what it gave', CUE_CHARS)}; recall to see it again" if action == "fold" else ""
        lists[action].append(each["id"] + about)
    said = [f"<{action}>\n" + "\n".join(lines) + f"\n</{action}>" for action, lines in lists.items() if lines]
    summary = "A stand-in for a planner chose by age and size alone."
    return "\n".join(
        [
            f"<above_conversation_summary>\n{summary}\n</above_conversation_summary>",
            "<gc_plan>",
            *said,
            "</gc_plan>",
        ]
    )


def _size(found: re.Match[str]) -> float:
    return float(found["size"]) * _UNITS[found["unit"]]


def briefed(question: str) -> str:
    """A brief of the transcript in a summariser's question, made of its own lines, with the sections that are asked for."""
    told = question.partition(f"{MARK} start of the transcript\n")[2].rpartition(f"\n{MARK} end of the transcript")[0]
    pieces = list(_pieces(told))
    sections = Sections(
        goal=_goal(pieces),
        state=_state(pieces),
        dead_ends="\n".join(filter(None, _failed(pieces))) or NONE,
        next_steps=_quoted("Go on from the newest reply", [text for label, text in pieces if label == "assistant"][-1:]) or NONE,
    )
    parts = [f"## {section.title}\n{getattr(sections, section.key)}" for section in _SECTIONS]
    return "\n\n".join([*parts, END])


def _pieces(transcript: str) -> Iterator[tuple[str, str]]:
    """Labels and what stands under them."""
    for piece in f"\n{transcript}".split(f"\n{MARK} ")[1:]:
        label, _, text = piece.partition("\n")
        yield label, text


def _goal(pieces: Sequence[tuple[str, str]]) -> str:
    earlier = next((text for label, text in pieces if label == EARLIER), "")
    carried = earlier.partition("## Goal\n")[2].partition("\n")[0]
    said = [text for label, text in pieces if label.startswith("user:")]
    first = carried if carried.startswith("A person asked first") else _quoted("A person asked first", said[:1])
    newest = _quoted("The newest wish", said[-1:])
    return "\n".join(filter(None, (first, newest))) or "What the work below was begun for; nobody said it in words."


def _state(pieces: Sequence[tuple[str, str]]) -> str:
    calls = [label.removeprefix("call ") for label, _ in pieces if label.startswith("call ")]
    named = ", ".join(map(_safe, calls[-NAMED:])) or "none"
    replies = [text for label, text in pieces if label == "assistant"]
    newest = _quoted("The newest reply", replies[-1:])
    return "\n".join(
        filter(None, (f"{len(calls)} calls were made and {len(replies)} replies given; newest calls: {named}.", newest))
    )


def _failed(pieces: Sequence[tuple[str, str]]) -> Iterator[str]:
    failed = [(label, text) for label, text in pieces if label.startswith("result of ") and label.endswith(" (error)")]
    for label, text in failed[-NAMED // 2 :]:
        yield _quoted(f"The call {_safe(label.removeprefix('result of ').removesuffix(' (error)'))} failed", [text])


def _quoted(words: str, texts: Sequence[str]) -> str:
    """The first line of a text that says anything, behind words that no heading and no chat begins with."""
    line = next((line for text in texts for line in text.splitlines() if line.strip()), "")
    return f'{words}: "{_safe(line)}"' if line else ""


def _safe(text: str) -> str:
    """One short line without a fence."""
    return first_line(text.replace("`", "'"), QUOTED)


PLANNER: Final = RuleModel(rule=planned)
SUMMARISER: Final = RuleModel(rule=briefed)
