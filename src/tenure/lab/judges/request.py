"""A case as one question, in the room there is.

Self-GC paper, Evaluation Artifacts: "the retained prefix shows the context after pruning, inline context_prune_diff blocks show removed or folded
content for impacted turns, and ground-truth future turns show the real continuation". Session text stands between labels that bear a sign which
it cannot hold, so that nothing in it passes for a label.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.planners.handoff.transcript import ends
from tenure.engine.record.entry import Count
from tenure.engine.view.edit import Act
from tenure.lab.harm.passage import plain as spelled
from tenure.lab.judges.cases import INSERTED, Case, Kind, Need, Piece
from tenure.lab.judges.fitting import NOTHING, Shown, Side, fitted, parts, telling
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


class Contract(Struct, frozen=True, kw_only=True):
    """What a judge is told about its task, and the form of its answer. The version changes with every word of it."""

    version: str
    system: str
    closing: str
    schema: Mapping[str, Any]


class JudgeRequest(Struct, frozen=True, kw_only=True):
    """One question to a judge, and what is known about it."""

    question: Question
    contract: str  # its version
    key: str  # the same for the same material
    tokens: int  # o200k, of all of it
    objects: frozenset[str]  # that a verdict may name
    in_sight: tuple[Need, ...]  # needs of which the question shows both the use and what was removed
    shortened: int  # pieces that lost their middle
    left_out: int


class Candidate(Struct, frozen=True, kw_only=True):
    """One plan in a question: the letter it goes by, none where it is the only one."""

    letter: str
    case: Case

    def side(self, name: str) -> str:
        """What labels call its retained prefix and what was removed."""
        return f"{self.letter} {name}" if self.letter else name


def request(candidates: Sequence[Candidate], contract: Contract, *, count: Count, room: int = ROOM) -> JudgeRequest:
    """The question about one plan, or about two at the same cut, in at most `room` o200k tokens as far as its fixed parts allow it.

    What is in sight is of the first. Pure, and the same for the same case on any machine.
    """
    frame = count(contract.system) + count(contract.closing)
    wanted = room = max(room, LEAST_ROOM)
    text, sides = "", dict[str, Shown]()
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
    return JudgeRequest(
        question=question,
        contract=contract.version,
        key=sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24],
        tokens=count(text) + frame,
        objects=frozenset(name for each in candidates for name in _objects(each.case)),
        in_sight=tuple(_in_sight(candidates[0], sides)),
        shortened=sum(side.shortened for side in sides.values()),
        left_out=sum(side.left_out for side in sides.values()),
    )


def _material(candidates: Sequence[Candidate], room: int, count: Count) -> tuple[str, dict[str, Shown]]:
    """All that is quoted of the session, and what of it is shown."""
    case = candidates[0].case
    plans = {each.letter: ends(plain(plan_of(each.case.acts)), PLAN_TOKENS, count) for each in candidates}
    found = _sides(candidates, room - sum(map(count, plans.values())) - FENCES, count)
    sign = sign_of([*plans.values(), *(text for side in found.values() for text in side.texts if text is not None)])
    lines = [f"[{sign} case: cut before call {case.facts.before_call}, the agent's view weighed {case.facts.tokens:,} tokens]"]
    for each in candidates:
        lines += _candidate(sign, each, plans[each.letter], found)
    lines += [
        f"[{sign} start of the real future]",
        *told(sign, FUTURE, found[FUTURE], case.calls),
        f"[{sign} end of the real future]",
    ]
    return "\n".join(lines), found


def _sides(candidates: Sequence[Candidate], room: int, count: Count) -> dict[str, Shown]:
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


def _candidate(sign: str, each: Candidate, plan: str, found: Mapping[str, Shown]) -> Iterator[str]:
    """One plan: its actions, then its retained prefix with a diff block behind each turn of which something was removed."""
    of = f" of candidate {each.letter}" if each.letter else ""
    yield f"[{sign} plan{of}: takes {each.case.facts.pruned:.0%} of the view out]\n{plan or 'nothing was removed'}"
    yield f"[{sign} start of the retained prefix{of}]"
    retained, removed = (_by_turn(found[each.side(name)]) for name in ("retained", "removed"))
    for turn in sorted(retained.keys() | removed.keys()):
        if turn in retained:
            yield from told(sign, each.side("retained"), retained[turn])
        if turn in removed:
            where = f"user:{turn}" if turn else "what came before the first turn"
            yield f"[{sign} start of context_prune_diff of {where}]"
            yield from told(sign, each.side("removed"), removed[turn])
            yield f"[{sign} end of context_prune_diff of {where}]"
    yield f"[{sign} end of the retained prefix{of}]"


def plan_of(acts: Iterable[Act]) -> str:
    """A plan as the paper's planner would give it: each action with its objects, in order."""
    named: dict[str, list[str]] = {}
    for act in acts:
        named.setdefault(f"{act.kind} ({act.level})" if act.level else act.kind, []).append(act.object)
    return "\n".join(f"{kind}: {', '.join(objects)}" for kind, objects in named.items())


def _by_turn(found: Shown) -> dict[int, Shown]:
    turns: dict[int, list[int]] = {}
    for n, piece in enumerate(found.pieces):
        turns.setdefault(piece.turn, []).append(n)
    return {
        turn: replace(found, pieces=tuple(found.pieces[n] for n in chosen), texts=tuple(found.texts[n] for n in chosen))
        for turn, chosen in turns.items()
    }


def _objects(case: Case) -> Iterator[str]:
    yield from (act.object for act in case.acts)
    for piece in case.removed:
        yield from [piece.name.partition("@")[0]] if piece.name else []
        yield f"entry:{piece.entry}"
        yield from [f"user:{piece.turn}"] if piece.turn else []


def _in_sight(candidate: Candidate, sides: Mapping[str, Shown]) -> Iterator[Need]:
    used, gone = sides[FUTURE].by_place, sides[candidate.side("removed")].by_place
    for need in candidate.case.needs:
        held = (gone.get(at, "") for at in need.held)
        if need.text in spelled(used.get((need.entry, need.block), "")) and any(need.text in spelled(text) for text in held):
            yield need


SIGN: Final = 8  # characters of a sign, or as many times as many
NO_CALLS: Final[Mapping[int, int]] = MappingProxyType({})


def sign_of(texts: Iterable[str]) -> str:
    """Characters that stand in none of the texts: from their hash, as many as it takes."""
    held = list(texts)
    digest = sha256("\0".join(held).encode("utf-8", "surrogatepass")).hexdigest()
    size = SIGN
    while size < len(digest) and any(digest[:size] in text for text in held):
        size += SIGN
    return digest[:size]


def told(sign: str, side: str, found: Shown, calls: Mapping[int, int] = NO_CALLS) -> Iterator[str]:
    """A side as lines: each piece behind its label, each run of missing ones as one line. `calls`: their numbers, by the answering entry."""
    missing: list[Piece] = []
    for piece, text in zip(found.pieces, found.texts, strict=True):
        if text is None:
            missing.append(piece)
            continue
        if missing:
            yield _gap(sign, side, missing)
            missing = []
        yield f"[{sign} {side} {_label(piece, calls)}]\n{plain(text)}"
    if missing:
        yield _gap(sign, side, missing)


def _label(piece: Piece, calls: Mapping[int, int]) -> str:
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


def _gap(sign: str, side: str, missing: Sequence[Piece]) -> str:
    tokens = sum(piece.tokens for piece in missing)
    blocks = f"{len(missing):,} blocks of {tokens:,} tokens are" if len(missing) > 1 else f"1 block of {tokens:,} tokens is"
    return f"[{sign} {side}: {blocks} left out of this question, for room]"
