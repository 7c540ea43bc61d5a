"""Self-GC: a model says which objects may leave, code decides which of them do.

"Self-GC: Self-Governing Context for Long-Horizon LLM Agents" (the Self-GC paper). `ask` makes what a side-channel planner is sent behind the
conversation's own prefix, `reply.read` understands what it answers, `screened` holds that against the objects as they are by then, `actions_of`
says it in the engine's words. Nothing here carries out an edit.

Ours differs from the paper: objects are named in an index of the request's own; what is pruned stays recoverable too; a pruned turn is folded,
since a request without an answer would look open; so is a call that alone holds something exact; a pointer stands where its object stood, so that it
breaks no more of a cached prefix than the object does (`PAPER`: right after the person's words).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.clip import diff, table
from tenure.engine.clip.cut import cut
from tenure.engine.meter.figures import first_line
from tenure.engine.planners.selfgc.objects import ContextObject, objects_in
from tenure.engine.planners.selfgc.prompt import NO_STAKES, Form, PromptSpec, Stakes, prompt
from tenure.engine.planners.selfgc.reply import ACTIONS, PlanAction, Proposed, Target
from tenure.engine.planners.selfgc.setting import PAPER, SelfGc
from tenure.engine.policies.placeholder import trimmed
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Read, ToolResult
from tenure.engine.record.quotation import cited, enclosed, in_quotes
from tenure.engine.record.recall import described, media_in
from tenure.engine.view.action import Action, Shorten, Take

PROMPT_TOKENS: Final = 7_000  # o200k, of the whole request, the window apart
POINTER_CHARS: Final = 240  # of the plan's words in a pointer
PLANNER_SAYS: Final = "a planner's words:"  # before what a model wrote in a pointer
LEAST_FOLD: Final = 100  # o200k tokens; below, a pointer weighs as much as what it points to
MASK_HEAD: Final = 200  # o200k tokens kept of a masked result's beginning
MASK_TAIL: Final = 300

_NOT_NAMED: Final = frozenset({"assistant", "conversation", "system", "step", "entry", "episode", "turn"})
_EXACT: Final = (diff.fits, table.fits)  # shapes whose middle is not repetitive, however it looks
_TRACE: Final = re.compile(  # how stacks look in Python, on the JVM and in JavaScript, in Go, Rust and C#
    r"Traceback \(most recent call last\)|^[ \t]+at [^\n]{1,300}:\d+\)?[ \t]*$|^goroutine \d+ \[|panicked at |^Caused by: |^[ \t]+at [^\n]{1,300} in [^\n]{1,300}:line \d+",
    re.MULTILINE,
)


class Choice(Struct, frozen=True, kw_only=True):
    """An object that a plan takes: `fold` leaves a pointer, `mask` shortens a call's result, `prune` leaves nothing."""

    action: PlanAction
    object: ContextObject
    words: str = ""  # of the plan, about what is folded
    reason: str = ""  # of the plan, why


class RefusedTarget(Struct, frozen=True, kw_only=True, gc=False):
    """What a plan wanted and does not get, and why."""

    object: str
    action: str  # "" where it is not known
    why: str


class Screened(Struct, frozen=True, kw_only=True):
    """What is left of a plan: choices in record order that touch no block twice, and everything that was refused or changed."""

    choices: tuple[Choice, ...]
    refused: tuple[RefusedTarget, ...]


def ask(
    situation: Situation,
    /,
    *,
    read: Read | None = None,
    stakes: Stakes = NO_STAKES,
    limit: int = PROMPT_TOKENS,
    setting: SelfGc = PAPER,
    form: Form = "tags",
    in_words: bool = False,
) -> str:
    """What a planner is sent, in at most `limit` o200k tokens if its fixed part allows it; empty when nothing may be named.

    `read` gives record entries, for what is known of each object. `in_words`: the window stands above as a text, and not as the model's own messages.
    """
    objects = objects_in(situation, read=read, within_cut=not setting.keep_last_turn)
    if all(each.why is not None for each in objects):
        return ""
    asked = PromptSpec(
        tokens=situation.view.tokens,
        limit=limit,
        stakes=stakes,
        keep_last_turn=setting.keep_last_turn,
        form=form,
        in_words=in_words,
    )
    return prompt(objects, asked, situation.count)


def screened(proposed: Proposed, objects: Sequence[ContextObject]) -> Screened:
    """What of a plan may be done to the objects as they are now; the same for the same plan in any order of its lines.

    Only eligible objects come through, each once, with the action that leaves most behind; where a turn and something inside it are named, the
    finer wins. O(targets + blocks of what they name).
    """
    refused = [RefusedTarget(object=each.text, action="", why=each.why) for each in proposed.unread]
    chosen: dict[str, Choice] = {}
    known = _by_name(objects)
    for target in sorted(proposed.targets, key=lambda target: ACTIONS.index(target.action)):
        choice = _choice(target, known)
        if isinstance(choice, str):
            why = choice
        elif choice.object.id in chosen:
            why = "is named for an action that leaves more of it"
        else:
            chosen[choice.object.id] = choice
            if choice.action == target.action:
                continue
            why = _FOLDED[choice.object.kind == "turn"]
        refused.append(RefusedTarget(object=target.name, action=target.action, why=why))
    coarse = _coarse(chosen.values())
    why = "something inside it is named, which is finer"
    refused += [RefusedTarget(object=name, action="fold", why=why) for name in coarse]
    kept = sorted((each for name, each in chosen.items() if name not in coarse), key=lambda each: each.object.start)
    return Screened(choices=tuple(kept), refused=tuple(sorted(refused, key=lambda each: (each.object, each.action, each.why))))


def actions_of(
    situation: Situation, choices: Iterable[Choice], *, in_place: bool = True
) -> tuple[list[Action], list[RefusedTarget]]:
    """The choices in the engine's words; masks of what must stay exact are refused. `in_place`: see `SelfGc`."""
    actions: list[Action] = []
    refused: list[RefusedTarget] = []
    for each in choices:
        it = each.object
        if each.action == "mask":
            masked = _masked(situation, it, each.reason)
            if isinstance(masked, str):
                refused.append(RefusedTarget(object=it.id, action="mask", why=masked))
            else:
                actions.append(masked)
        elif each.action == "prune":
            actions.append(Take(how="prune", object=it.id, places=it.places, reason=each.reason))
        else:
            fold = Take(
                how="fold",
                object=it.id,
                places=it.places,
                pointer=pointer_to(it, each.words),
                before_entry=it.place if in_place else it.attach,
                routes=it.handles or (it.handle,),
                reason=each.reason,
            )
            actions.append(fold)
    return actions, refused


def pointer_to(object_: ContextObject, words: str) -> str:
    """What the model reads in place of a folded object: the plan's words, marked as a model's, and what is known of it without them."""
    own = first_line(enclosed(words), POINTER_CHARS)
    parts = [f"{PLANNER_SAYS} {in_quotes(own)}"] if own else []
    if object_.kind == "turn":
        parts.append(f"done there: {object_.done}" if object_.done else f"{object_.calls} calls")
    elif not own:
        sole = ", ".join(map(cited, object_.known.sole))
        parts.append(f"it alone holds {sole}" if sole else "its output")
    cue = f" {cited(object_.cue)}" if object_.cue else ""
    handles = object_.handles or (object_.handle,)
    back = "it" if len(handles) == 1 else "each"
    return f"[folded: {', '.join(handles)}{cue}, {object_.tokens:,} tokens: {'; '.join(parts)} · recall brings {back} back]"


_FOLDED: Final = {
    True: "folded instead: a request without a trace of what was done for it would look open",
    False: "folded instead: it alone holds something exact",
}


def _by_name(objects: Iterable[ContextObject]) -> Mapping[str, ContextObject | str]:
    """Objects by id, in any case; a load of a skill by what to name instead."""
    known: dict[str, ContextObject | str] = {}
    for each in objects:
        for load in each.loads:
            known[load.casefold()] = f"is a load of {each.id}, which is to be named"
        known[each.id.casefold()] = each
    return known


def _choice(target: Target, known: Mapping[str, ContextObject | str]) -> Choice | str:
    """The action on its object, or why there is none."""
    it = known.get(target.name.casefold())
    if it is None:
        kind = target.name.partition(":")[0]
        return "is nothing that a plan may name" if kind in _NOT_NAMED else "no such object is shown"
    if isinstance(it, str):
        return it
    own = it.handle.rpartition("@")[2]
    if target.hash and it.kind != "skill" and not (own.startswith(target.hash) or target.hash.startswith(own)):
        return "has the hash of another record"
    if it.why is not None:
        return it.why
    if target.action == "mask":
        if it.result is None:
            return "only a call with a result can be masked"
        return "is shortened already" if it.shortened else Choice(action="mask", object=it, reason=target.reason)
    is_pruned = target.action == "prune" and it.kind != "turn"
    if is_pruned and not it.known.is_last_holder:
        return Choice(action="prune", object=it, reason=target.reason)
    if it.tokens < LEAST_FOLD:
        if is_pruned:
            return f"alone holds {', '.join(it.known.sole)}, and is hardly larger than a pointer to it"
        return "is hardly larger than a pointer to it"
    return Choice(action="fold", object=it, words=target.words, reason=target.reason)


def _coarse(chosen: Collection[Choice]) -> set[str]:
    """The turns inside which something finer was named."""
    finer = {at for each in chosen if each.object.kind != "turn" for at in each.object.places}
    return {each.object.id for each in chosen if each.object.kind == "turn" and not finer.isdisjoint(each.object.places)}


def _masked(situation: Situation, it: ContextObject, reason: str) -> Shorten | str:
    """The result with its middle left out, or why that would lose something exact (DESIGN.md, actions: mask)."""
    assert it.result is not None
    block = situation.read(it.result[0]).blocks[it.result[1]]
    text = block.text if isinstance(block, ToolResult) else ""
    seen = "; ".join(map(described, media_in(block)))
    beside = f"[left out: {seen}; recall {it.handle} says how it comes back]" if seen else ""
    is_exact = _TRACE.search(text) is not None or any(fits(text.split("\n")) for fits in _EXACT)
    start, end, left_out = cut(text, MASK_HEAD, MASK_TAIL, situation.count)
    if not beside and (is_exact or not left_out):
        return "its middle is a table, a trace or a diff, which is not repetitive" if is_exact else "is too short to be masked"
    shown = text if is_exact or not left_out else f"{start}\n{trimmed(it.handle, left_out)}\n{end}"
    span = situation.index.block(it.result).span
    return Shorten(span=span, how="mask", text="\n".join(filter(None, (shown, beside))), routes=(it.handle,), reason=reason)
