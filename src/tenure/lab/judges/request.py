"""A case as one question, in the room there is.

Self-GC paper, Evaluation Artifacts: "the retained prefix shows the context after pruning, inline context_prune_diff blocks show removed or folded
content for impacted turns, and ground-truth future turns show the real continuation". Session text stands between labels that bear a sign which
it cannot hold, so that nothing in it passes for a label.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Final

from msgspec import Struct

from tenure.engine.planners.handoff.transcript import ends
from tenure.engine.record.entry import Count
from tenure.engine.view.edit import LoggedAction
from tenure.lab.harm.passage import plain as spelled
from tenure.lab.judges.cases import INSERTED, Case, CaseNeed, CasePiece, Kind
from tenure.lab.judges.contracts import Contract
from tenure.lab.judges.fitting import NOTHING, Side, SideTexts, fitted, parts, telling
from tenure.models.question import Question

ROOM: Final = 100_000  # o200k tokens of a question, the contract included
LEAST_ROOM: Final = 4_000
PLAN_TOKENS: Final = 600
OUTPUT_TOKENS: Final = 16_384  # what a judge may say, its thinking included
FUTURE: Final = "future"
FUTURE_FRONT: Final = 0.75  # of the future's room, where it is too large: for what came next
FENCES: Final = 300  # o200k tokens set aside for labels of the whole
TRIES: Final = 8

# How a question's room is shared out. What was removed decides the verdict, so it gets the most.
SHARES: Final[Mapping[str, float]] = {"retained": 0.25, "removed": 0.4, FUTURE: 0.35}


class CaseQuestion(Struct, frozen=True, kw_only=True):
    """One question to a judge, and what is known about it."""

    question: Question
    contract: str  # its version
    key: str  # the same for the same material
    tokens: int  # o200k, of all of it
    objects: frozenset[str]  # that a verdict may name
    in_sight: tuple[CaseNeed, ...]  # needs of which the question shows both the use and what was removed
    shortened: int  # pieces that lost their middle
    left_out: int


class Candidate(Struct, frozen=True, kw_only=True):
    """One plan in a question: the letter it goes by, none where it is the only one."""

    letter: str
    case: Case

    def side(self, name: str) -> str:
        """What labels call its retained prefix and what was removed."""
        return f"{self.letter} {name}" if self.letter else name


def request(candidates: Sequence[Candidate], contract: Contract, *, count: Count, room: int = ROOM) -> CaseQuestion:
    """The question about one plan, or about two at the same cut, in at most `room` o200k tokens as far as its fixed parts allow it.

    What is in sight is of the first. Pure, and the same for the same case on any machine.
    """
    frame = count(contract.system) + count(contract.closing)
    wanted = room = max(room, LEAST_ROOM)
    text, sides = "", dict[str, SideTexts]()
    for _ in range(TRIES):
        text, sides = _material(candidates, wanted - frame, count)
        over = count(text) + frame - room
        if over <= 0:
            break
        wanted -= max(over, room // 50)
    question = Question(
        system=contract.system,
        messages=(f"{text}\n\n{contract.closing}",),
        max_output=OUTPUT_TOKENS,
        schema=contract.schema,
    )
    return CaseQuestion(
        question=question,
        contract=contract.version,
        key=sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24],
        tokens=count(text) + frame,
        objects=frozenset(name for each in candidates for name in _objects(each.case)),
        in_sight=tuple(_in_sight(candidates[0], sides)),
        shortened=sum(side.shortened for side in sides.values()),
        left_out=sum(side.left_out for side in sides.values()),
    )


def _material(candidates: Sequence[Candidate], room: int, count: Count) -> tuple[str, dict[str, SideTexts]]:
    """All that is quoted of the session, and what of it is shown."""
    case = candidates[0].case
    plans = {each.letter: ends(plain(_plan(each.case.acts)), PLAN_TOKENS, count) for each in candidates}
    sides = _sides(candidates, room - sum(map(count, plans.values())) - FENCES, count)
    sign = sign_of([*plans.values(), *(text for side in sides.values() for _, text in side.rows if text is not None)])
    lines = [f"[{sign} case: cut before call {case.facts.before_call}, the agent's view weighed {case.facts.tokens:,} tokens]"]
    for each in candidates:
        lines += _candidate(sign, each, plans[each.letter], sides)
    lines += [
        f"[{sign} start of the real future]",
        *_labelled(sign, FUTURE, sides[FUTURE].rows, case.calls),
        f"[{sign} end of the real future]",
    ]
    return "\n".join(lines), sides


def _sides(candidates: Sequence[Candidate], room: int, count: Count) -> dict[str, SideTexts]:
    """The future and what each plan kept and removed, each in its part of the room."""
    future = candidates[0].case.future
    tells = NOTHING
    for each in candidates:
        tells |= telling(future, each.case.removed, (*each.case.kept, *each.case.removed))
    sides = [Side(name=FUTURE, share=SHARES[FUTURE], pieces=future, front=FUTURE_FRONT, telling=tells)]
    for each in candidates:
        for name, pieces in (("retained", each.case.kept), ("removed", each.case.removed)):
            share = SHARES[name] / len(candidates)
            sides.append(Side(name=each.side(name), share=share, pieces=pieces, telling=tells))
    rooms = parts(sides, room)
    return {side.name: fitted(side, rooms[side.name], count) for side in sides}


def _candidate(sign: str, each: Candidate, plan: str, sides: Mapping[str, SideTexts]) -> Iterator[str]:
    """One plan: its actions, then its retained prefix with a diff block behind each turn of which something was removed."""
    of = f" of candidate {each.letter}" if each.letter else ""
    yield f"[{sign} plan{of}: takes {each.case.facts.pruned:.0%} of the view out]\n{plan or 'nothing was removed'}"
    yield f"[{sign} start of the retained prefix{of}]"
    turns: dict[int, dict[str, list[tuple[CasePiece, str | None]]]] = {}
    for name in ("retained", "removed"):
        for piece, text in sides[each.side(name)].rows:
            turns.setdefault(piece.turn, {}).setdefault(name, []).append((piece, text))
    for turn, rows in sorted(turns.items()):
        yield from _labelled(sign, each.side("retained"), rows.get("retained", ()))
        if "removed" in rows:
            where = f"user:{turn}" if turn else "what came before the first turn"
            yield f"[{sign} start of context_prune_diff of {where}]"
            yield from _labelled(sign, each.side("removed"), rows["removed"])
            yield f"[{sign} end of context_prune_diff of {where}]"
    yield f"[{sign} end of the retained prefix{of}]"


def _plan(acts: Iterable[LoggedAction]) -> str:
    """A plan as the paper's planner would give it: each action with its objects, in order."""
    named: dict[str, list[str]] = {}
    for act in acts:
        named.setdefault(f"{act.kind} ({act.level})" if act.level else act.kind, []).append(act.object)
    return "\n".join(f"{kind}: {', '.join(objects)}" for kind, objects in named.items())


def _objects(case: Case) -> Iterator[str]:
    yield from (act.object for act in case.acts)
    for piece in case.removed:
        yield from [piece.name.partition("@")[0]] if piece.name else []
        yield f"entry:{piece.entry}"
        yield from [f"user:{piece.turn}"] if piece.turn else []


def _in_sight(candidate: Candidate, sides: Mapping[str, SideTexts]) -> Iterator[CaseNeed]:
    used, gone = sides[FUTURE].by_place, sides[candidate.side("removed")].by_place
    for need in candidate.case.needs:
        held = (gone.get(at, "") for at in need.held)
        if need.text in spelled(used.get((need.entry, need.block), "")) and any(need.text in spelled(text) for text in held):
            yield need


SIGN: Final = 8  # characters of a sign, or as many times as many


def sign_of(texts: Iterable[str]) -> str:
    """Characters that stand in none of the texts: from their hash, as many as it takes."""
    held = list(texts)
    digest = sha256("\0".join(held).encode("utf-8", "surrogatepass")).hexdigest()
    size = SIGN
    while size < len(digest) and any(digest[:size] in text for text in held):
        size += SIGN
    return digest[:size]


def _labelled(
    sign: str, side: str, rows: Iterable[tuple[CasePiece, str | None]], calls: Mapping[int, int] | None = None
) -> Iterator[str]:
    """A side as lines: each piece behind its label, each run of missing ones as one line. `calls`: their numbers, by the answering entry."""
    for is_missing, run in groupby(rows, key=lambda row: row[1] is None):
        if is_missing:
            weights = [piece.tokens for piece, _ in run]
            more = len(weights) > 1
            blocks = f"{len(weights):,} block{'s' * more} of {sum(weights):,} tokens {'are' if more else 'is'}"
            yield f"[{sign} {side}: {blocks} left out of this question, for room]"
            continue
        for piece, text in run:
            yield f"[{sign} {side} {_label(piece, calls or {})}]\n{plain(text or '')}"


def _label(piece: CasePiece, calls: Mapping[int, int]) -> str:
    """Such as `entry 12: result of read:3@41aa (error)`."""
    who = _WHO[piece.kind].format(piece.name or "an unknown call")
    call = f"call {calls[piece.entry]}, " if piece.entry in calls else ""
    place = "between entries" if piece.block == INSERTED else f"entry {piece.entry}"
    part = ", what of it is not shown any more" if piece.is_part else ""
    return f"{call}{place}: {who}{part}{' (error)' if piece.error else ''}"


_WHO: Final[dict[Kind, str]] = {
    "system": "system prompt",
    "human": "the person",
    "words": "the agent",
    "thinking": "the agent, thinking",
    "call": "call {}",
    "result": "result of {}",
    "note": "note of the program",
}


def plain(text: str) -> str:
    """What no provider refuses."""
    return text.replace("\0", "\ufffd")
