"""Self-GC: a model says which objects may leave, code decides which of them do.

"Self-GC: Self-Governing Context for Long-Horizon LLM Agents" (the Self-GC paper). `ask` makes what a side-channel planner is sent behind the
conversation's own prefix, `read` understands what it answers, `screened` holds that against the objects as they are by then. Nothing here
carries out an edit: the outcome are values, rehearsed and compiled like any policy's actions.

Ours differs from the paper: objects are named in an index of the request's own and not marked in the conversation; what is pruned stays
recoverable too; a pruned turn is folded, since a request without an answer would look open.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.planners.selfgc.objects import WHY, At, ContextObject, Read, objects_in, one_line
from tenure.engine.planners.selfgc.prompt import prompt
from tenure.engine.planners.selfgc.reply import ACTIONS, Proposed, Target
from tenure.engine.policies.situation import Situation
from tenure.engine.record.quotation import cited, enclosed, in_quotes

PROMPT_TOKENS: Final = 6_000  # o200k, of the whole request
OUTPUT_TOKENS: Final = 4_096  # what the planner's answer may weigh
POINTER_CHARS: Final = 240  # of the plan's words in a pointer
PLANNER_SAYS: Final = "a planner's words:"  # before what a model wrote in a pointer
LEAST_FOLD: Final = 100  # o200k tokens; below, a pointer weighs as much as what it points to


class PlannerRequest(Struct, frozen=True, kw_only=True):
    """What a planner is sent: `text` as one more user message behind head, tools and view exactly as they were last sent."""

    text: str
    tokens: int  # o200k, of `text`
    objects: tuple[ContextObject, ...]  # as they were when it was asked
    output_tokens: int = OUTPUT_TOKENS


class Pointer(Struct, frozen=True, kw_only=True, gc=False):
    """What stands in place of something folded: words that say what it was and when it is wanted, and the handles that bring it back."""

    text: str
    handles: tuple[str, ...]  # one, but of a skill's loads one each
    before_entry: int  # where it is inserted: right after the human words of its turn


class Fold(Struct, frozen=True, kw_only=True):
    """The object leaves whole, and a pointer to it stays."""

    object: ContextObject
    pointer: Pointer


class Mask(Struct, frozen=True, kw_only=True):
    """The repetitive middle of a call's result leaves."""

    object: ContextObject

    @property
    def result(self) -> At:
        """The block to shorten."""
        assert self.object.result is not None
        return self.object.result


class Prune(Struct, frozen=True, kw_only=True):
    """The object leaves, and nothing stays in its place."""

    object: ContextObject


Planned = Fold | Mask | Prune


class Refused(Struct, frozen=True, kw_only=True, gc=False):
    """What a plan wanted and does not get, and why."""

    object: str
    action: str  # "" where it is not known
    why: str


class Screened(Struct, frozen=True, kw_only=True):
    """What is left of a plan: actions in record order that touch no block twice, and everything that was refused or changed."""

    actions: tuple[Planned, ...]
    refused: tuple[Refused, ...]

    @property
    def tokens(self) -> int:
        """o200k tokens that folds and prunes would take out, before pointers; masks are not foreseen."""
        return sum(action.object.tokens for action in self.actions if not isinstance(action, Mask))


def ask(
    situation: Situation,
    /,
    *,
    read: Read | None = None,
    aim: int = 0,
    limit: int = PROMPT_TOKENS,
    within_cut: bool = False,
) -> PlannerRequest | None:
    """The request to a planner, in at most `limit` o200k tokens if its fixed part allows it; None when nothing may be named.

    `read` gives record entries, for the first words of each turn. `aim`: o200k tokens worth freeing. `within_cut`: see `objects_in`.
    """
    objects = objects_in(situation, read=read, within_cut=within_cut)
    if all(each.why is not None for each in objects):
        return None
    text = prompt(objects, tokens=situation.view.tokens, limit=limit, aim=aim, count=situation.count)
    return PlannerRequest(text=text, tokens=situation.count(text), objects=objects)


def screened(proposed: Proposed, objects: Sequence[ContextObject]) -> Screened:
    """What of a plan may be done to the objects as they are now; the same for the same plan in any order of its lines.

    Only eligible objects come through, each once, with the action that leaves most behind; where a turn and something inside it are named, the
    finer wins. O(targets + blocks of what they name).
    """
    refused = [Refused(object=each.text, action="", why=each.why) for each in proposed.unread]
    chosen: dict[str, Planned] = {}
    known = _by_name(objects)
    for target in sorted(proposed.targets, key=lambda target: ACTIONS.index(target.action)):
        outcome = _planned(target, known)
        if isinstance(outcome, str):
            refused.append(Refused(object=target.name, action=target.action, why=outcome))
        elif outcome.object.id in chosen:
            refused.append(Refused(object=target.name, action=target.action, why="is named for an action that leaves more of it"))
        else:
            chosen[outcome.object.id] = outcome
            if isinstance(outcome, Fold) and target.action != "fold":
                why = "folded instead: a request without a trace of what was done for it would look open"
                refused.append(Refused(object=target.name, action=target.action, why=why))
    actions, coarse = _finest(chosen.values())
    refused += coarse
    return Screened(actions=tuple(actions), refused=tuple(sorted(refused, key=lambda each: (each.object, each.action, each.why))))


def pointer_to(object_: ContextObject, words: str) -> Pointer:
    """What the model reads in place of a folded object; without words of the plan, what is known of it."""
    said = one_line(enclosed(words), POINTER_CHARS)
    about = f"{PLANNER_SAYS} {in_quotes(said)}" if said else f"{object_.calls} calls" if object_.kind == "turn" else "its output"
    cue = f" {cited(object_.cue)}" if object_.cue else ""
    handles = object_.handles or (object_.handle,)
    back = "it" if len(handles) == 1 else "each"
    text = f"[folded: {', '.join(handles)}{cue}, {object_.tokens:,} tokens: {about} · recall brings {back} back]"
    return Pointer(text=text, handles=handles, before_entry=object_.attach)


def _by_name(objects: Iterable[ContextObject]) -> Mapping[str, ContextObject | str]:
    """Objects by id, in any case; a load of a skill by what to name instead."""
    known: dict[str, ContextObject | str] = {}
    for each in objects:
        for load in each.loads:
            known[load.casefold()] = f"is a load of {each.id}, which is to be named"
        known[each.id.casefold()] = each
    return known


def _planned(target: Target, known: Mapping[str, ContextObject | str]) -> Planned | str:
    """The action on its object, or why there is none."""
    found = known.get(target.name.casefold())
    if found is None:
        kind = target.name.partition(":")[0]
        return "is nothing that a plan may name" if kind in _NOT_NAMED else "no such object is shown"
    if isinstance(found, str):
        return found
    own = found.handle.rpartition("@")[2]
    if target.hash and found.kind != "skill" and not (own.startswith(target.hash) or target.hash.startswith(own)):
        return "has the hash of another record"
    if found.why is not None:
        return WHY[found.why]
    if target.action == "mask":
        if found.result is None:
            return "only a call with a result can be masked"
        return "is shortened already" if found.shortened else Mask(object=found)
    if target.action == "prune" and found.kind != "turn":
        return Prune(object=found)
    if found.tokens < LEAST_FOLD:
        return "is hardly larger than a pointer to it"
    return Fold(object=found, pointer=pointer_to(found, target.words))


_NOT_NAMED: Final = frozenset({"assistant", "conversation", "system", "step", "entry", "episode", "turn"})


def _finest(planned: Collection[Planned]) -> tuple[list[Planned], Iterator[Refused]]:
    """The actions in record order without those turns inside which something finer was named, and these turns."""
    finer = {at for each in planned if each.object.kind != "turn" for at in each.object.places}
    coarse = [each for each in planned if each.object.kind == "turn" and not finer.isdisjoint(each.object.places)]
    names = {each.object.id for each in coarse}
    kept = sorted((each for each in planned if each.object.id not in names), key=lambda each: each.object.start)
    why = "something inside it is named, which is finer"
    return kept, (Refused(object=each.object.id, action="fold", why=why) for each in coarse)
