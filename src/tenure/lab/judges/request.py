"""A case as one question, in the room there is.

Self-GC paper, Evaluation Artifacts: "the retained prefix shows the context after pruning, inline context_prune_diff blocks show removed or folded
content for impacted turns, and ground-truth future turns show the real continuation". Session text stands between labels that bear a sign which
it cannot hold, so that nothing in it passes for a label.

Pieces in the room there is, and which lines of a text that is too long decide a verdict.

Each side of a case gets its share of the room, and what it does not need the others get. Where a side is too large, its largest pieces lose their
middle; where that is not enough, pieces leave from the middle of the side. The lines that tell give way last: those with a rare word, or a whole
line, that later steps say and that stood in what was removed (little else of what was removed can have been used to the letter, and hardly
anywhere else can it stand still or have been had again), and those with a handle, which is a way back.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby, islice
from typing import Final

from msgspec import Struct

from tenure.engine.planners.handoff.transcript import ends
from tenure.engine.record.entry import Count
from tenure.engine.view.edit import LoggedAction
from tenure.lab.harm.holdings import plain, words_of
from tenure.lab.judges.cases import INSERTED, Case, CaseNeed, CasePiece, Kind
from tenure.lab.judges.contracts import Contract
from tenure.models.question import Question

RARE: Final = (4, 24)  # pieces of the view that may hold a word that tells: a tenth of them, within these bounds
MOST: Final = 2_000  # words that tell, and as many lines: those that are said first
LINE_LEAST: Final = 16  # characters of a line that can be told from others
LINE_CHARS: Final = 400  # of a line that is shown; a longer one is several
GAP: Final = "…"

_RUN = re.compile(rf"[^\n]{{1,{LINE_CHARS}}}")
_HANDLE = re.compile(r"[a-z_]\w{0,80}:[\w.\-]{1,120}@[0-9a-f]{4}")


class Telling(Struct, frozen=True):
    """What makes a line worth its room: rare words, and lines as they stand."""

    words: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()

    def __or__(self, other: "Telling") -> "Telling":
        """Both together."""
        return Telling(self.words | other.words, self.lines | other.lines)

    def __bool__(self) -> bool:
        return bool(self.words or self.lines)

    def of(self, text: str) -> tuple[str, ...]:
        """What of it a text holds. O(text)."""
        if not self:
            return ()
        spelled = plain(text)
        return (*self.words.intersection(words_of(spelled)), *self.lines.intersection(_lines(spelled)))


NOTHING: Final = Telling()


def telling(future: Iterable[CasePiece], removed: Iterable[CasePiece], prefix: Sequence[CasePiece]) -> Telling:
    """What later steps say of what was removed.

    `prefix` is what was in view before, piece by piece: a word in more than RARE of them tells nothing. O(text).
    """
    rare = max(RARE[0], min(RARE[1], len(prefix) // 10))
    gone = [plain(piece.text) for piece in removed]
    gone_words = {word for text in gone for word in words_of(text)}
    gone_lines = {line for text in gone for line in _lines(text)}
    times = Counter(word for piece in prefix for word in gone_words.intersection(words_of(plain(piece.text))))
    words: dict[str, None] = {}
    lines: dict[str, None] = {}
    for piece in future:
        if piece.kind in ("call", "words"):
            text = plain(piece.text)
            words |= dict.fromkeys(word for word in words_of(text) if 0 < times[word] <= rare)
            lines |= dict.fromkeys(line for line in _lines(text) if line in gone_lines)
            if len(words) >= MOST and len(lines) >= MOST:
                break
    return Telling(frozenset(islice(words, MOST)), frozenset(islice(lines, MOST)))


def excerpts(pieces: Sequence[CasePiece], tells: Telling) -> tuple[str, ...]:
    """For each piece the lines of it that tell, each gap between them a line of its own; empty where none does. O(text).

    Nothing is shown more than once for its own sake, in order of the pieces.
    """
    seen: set[str] = set()
    found: list[str] = []
    for piece in pieces:
        fresh = frozenset(tells.of(piece.text)) - seen
        seen |= fresh
        found.append(_excerpt(piece.text, fresh) if fresh or _HANDLE.search(piece.text) else "")
    return tuple(found)


def _excerpt(text: str, fresh: frozenset[str]) -> str:
    tells = Telling(fresh, fresh)
    seen: set[str] = set()
    shown: list[str] = []
    end = 0
    for line in _RUN.finditer(text):
        held = set(tells.of(line[0])) - seen
        if held or _HANDLE.search(line[0]):
            seen |= held
            if line.start() > end + 1:
                shown.append(GAP)
            shown.append(line[0])
            end = line.end()
    return "\n".join(shown)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text that are long enough to be told from others."""
    return (line for raw in text.split("\n") if len(line := raw.strip()) >= LINE_LEAST)


LABEL: Final = 20  # o200k tokens that a piece weighs beside its text
EXCERPT: Final = 60  # beside what tells of it
SLACK: Final = 0.97  # of the room that pieces are planned for, since joints weigh too
TELLS: Final = "[of what is left out here, the lines that later steps may have used:]"

_ALL: Final[frozenset[Kind]] = frozenset({"system", "human", "words", "thinking", "call", "result", "note"})

# Who gives way first where a side is too large, and whether it holds words that tell: results give what came, calls and words what was done and
# wanted.
GIVES_WAY: Final[tuple[tuple[frozenset[Kind], bool], ...]] = (
    (frozenset({"thinking"}), False),
    (frozenset({"result"}), False),
    (_ALL, False),
    (_ALL, True),
)
# O200k tokens down to which a piece may be shortened, its label included; where that is not enough, pieces leave.
LEAST: Final[Mapping[Kind, int]] = {
    "system": 160,
    "human": 320,
    "words": 240,
    "thinking": 60,
    "call": 320,
    "result": 100,
    "note": 120,
}


class Side(Struct, frozen=True, kw_only=True):
    """Pieces in order that share a part of the room."""

    name: str
    share: float
    pieces: Sequence[CasePiece]
    front: float = 0.5  # of the room for what stays, where not all can: for the beginning
    telling: Telling = NOTHING  # of a shortened piece, the lines that hold something of it stay before others

    @property
    def weight(self) -> int:
        """O200k tokens of all of it, labels included."""
        return sum(_weight(piece) for piece in self.pieces)


class SideTexts(Struct, frozen=True):
    """The pieces of one side, each with the text that is shown of it; None for one that is left out."""

    rows: tuple[tuple[CasePiece, str | None], ...]

    @property
    def shortened(self) -> int:
        """How many lost their middle."""
        return sum(text is not None and text != piece.text for piece, text in self.rows)

    @property
    def left_out(self) -> int:
        """How many are not shown."""
        return sum(text is None for _, text in self.rows)

    @property
    def by_place(self) -> dict[tuple[int, int], str]:
        """The texts of record blocks that are shown, by (entry, block)."""
        return {piece.at: text for piece, text in self.rows if text is not None and piece.block != INSERTED}


def parts(sides: Sequence[Side], room: int) -> dict[str, int]:
    """How much each side gets: its share, or what it needs where that is less; what is left over is shared among the others."""
    found: dict[str, int] = {}
    left = int(room * SLACK)
    waiting: list[Side] = [*sides]
    while waiting:
        shares: float = sum(side.share for side in waiting) or 1.0
        content: list[Side] = [side for side in waiting if side.weight <= left * side.share / shares]
        for side in content or waiting:
            found[side.name] = side.weight if content else int(left * side.share / shares)
        if not content:
            break
        left -= sum(side.weight for side in content)
        waiting = [side for side in waiting if side.name not in found]
    return found


def fitted(side: Side, room: int, count: Count) -> SideTexts:
    """A side in its part of the room. O(n log n), and of a gigantic text only the ends are counted."""
    limits = [_weight(piece) for piece in side.pieces]
    if sum(limits) <= room:
        return SideTexts(tuple((piece, piece.text) for piece in side.pieces))
    found = excerpts(side.pieces, side.telling)
    floors = [
        max(LEAST[piece.kind], min(limits[n], count(found[n]) + EXCERPT if found[n] else 0))
        for n, piece in enumerate(side.pieces)
    ]
    for kinds, is_telling in GIVES_WAY:
        over = sum(limits) - room
        if over <= 0:
            break
        chosen = [n for n, piece in enumerate(side.pieces) if piece.kind in kinds and bool(found[n]) is is_telling]
        level = _level([limits[n] for n in chosen], over)
        for n in chosen:
            limits[n] = min(limits[n], max(level, floors[n]))
    kept = set(range(len(limits))) if sum(limits) <= room else _from_both_ends(side, limits, found, room)
    texts = (_text(piece, limits[n], found[n], count) if n in kept else None for n, piece in enumerate(side.pieces))
    return SideTexts(tuple(zip(side.pieces, texts, strict=True)))


def _weight(piece: CasePiece) -> int:
    return piece.tokens + LABEL


def _level(weights: Sequence[int], over: int) -> int:
    """The weight down to which the heaviest have to come for `over` to be saved; 0 when that is not enough."""
    ordered = sorted(weights, reverse=True)
    saved, level = 0, ordered[0] if ordered else 0
    for n, weight in enumerate(ordered):
        saved += n * (level - weight)
        if saved >= over:
            return weight + (saved - over) // n
        level = weight
    return max(0, level - -(-(over - saved) // len(ordered))) if ordered else 0


def _from_both_ends(side: Side, limits: Sequence[int], excerpts: Sequence[str], room: int) -> set[int]:
    """The pieces that stay where not all can: what people said, then what tells, then the rest, each from both ends inwards."""
    last, front, back = len(limits) - 1, max(side.front, 0.01), max(1 - side.front, 0.01)
    groups = [0 if piece.kind == "human" else 1 if excerpts[n] else 2 for n, piece in enumerate(side.pieces)]
    kept: set[int] = set()
    full: set[int] = set()
    for n in sorted(range(len(limits)), key=lambda n: (groups[n], min(n / front, (last - n) / back), n)):
        if limits[n] > room:
            full.add(groups[n])  # a gap, not a sieve
        elif groups[n] not in full:
            room -= limits[n]
            kept.add(n)
    return kept


def _text(piece: CasePiece, limit: int, excerpt: str, count: Count) -> str | None:
    """A piece in `limit` tokens, label included: its ends, and between them what of it tells. None where not even its ends fit."""
    if _weight(piece) <= limit:
        return piece.text
    room = limit - LABEL
    inner = ends(excerpt, room - LABEL, count) if excerpt else ""
    outer = ends(piece.text, room - LABEL - count(inner), count) if inner else ""
    if inner:
        return f"{outer}\n{TELLS}\n{inner}" if outer else f"{TELLS}\n{inner}"
    return ends(piece.text, room, count) or None


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
    plans = {each.letter: ends(clean(_plan(each.case.acts)), PLAN_TOKENS, count) for each in candidates}
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
        if need.text in plain(used.get((need.entry, need.block), "")) and any(need.text in plain(text) for text in held):
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
            yield f"[{sign} {side} {_label(piece, calls or {})}]\n{clean(text or '')}"


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


def clean(text: str) -> str:
    """What no provider refuses."""
    return text.replace("\0", "\ufffd")
