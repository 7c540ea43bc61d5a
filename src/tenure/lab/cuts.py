"""Cut-point replay: every policy prunes the same session at the same place by the same share, and the real future judges it.

Self-GC paper, "Cut-point replay"; DESIGN.md, Evaluation. No model is asked. Residues count as kept tokens.

Bounds: what could be kept at a cut by one who knows the future.

`oracle-objects` removes whole results and texts, always the one whose loss is least for each token given what has gone already; a step's call
goes with its result when that is not enough. `oracle-lines` removes everything but the lines that the future needs. Both obey the laws that bind
policies. What they take is judged as every policy's is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Entry, Origin, Role
from tenure.engine.record.index import NONE
from tenure.engine.view.edit import Drop, Edit, Replace
from tenure.errors import ModelError
from tenure.lab.events import EntryLine, spelled
from tenure.lab.harm.holdings import of_line, plain
from tenure.lab.harm.watch import Uses, after_cut, edits_after_cut, uses_of
from tenure.lab.loading import Loaded, load
from tenure.lab.measured import CutLine
from tenure.lab.protocols.runs import Tally
from tenure.lab.replay import Options
from tenure.lab.replay import replay as replayed
from tenure.lab.source import SessionSource, session_for

POINTS: Final = 5  # cuts of a session, evenly spread over its calls
PRUNE: Final = 0.45  # of the view's tokens
NEAR: Final = 0.03  # of the view's tokens: what shares may differ by that are served by one run
LEAST_CALLS: Final = 12
LEAST_TOKENS: Final = 8_000  # of a view at a cut: below there is little to choose from
_NOBODY: Final[Mapping[str, Policy]] = MappingProxyType({})


class Ground(Struct, frozen=True):
    """A session at a cut, and all that is known of its future. `session` moves on with the next cut: use it at once."""

    session: Session
    uses: Uses
    path: str
    number: int  # of the cut
    call: int  # that would come next
    whole: Loaded  # the session to its end


def grounds(one: SessionSource, tokenizer: Tokenizer, *, points: int = POINTS) -> Iterator[Ground]:
    """The cuts of a session; none of one too short to be cut. Raises InputError when it cannot be read."""
    loaded = load([one], tokenizer)
    at = places(loaded.entries, points)
    if not at:
        return
    lines = replayed([one], Options(budget=Budget(window=10**9), policy=None), tokenizer)
    uses = uses_of(of_line(line) for line in lines if isinstance(line, EntryLine))
    whole, model = Budget(window=10**9), next(iter(loaded.models), "")
    session = session_for(model, tokenizer, budget=whole, tenant=one.tenant(), read=loaded.entries.__getitem__)
    calls = 0
    for entry in loaded.entries:
        if entry.n in at and session.view.tokens >= LEAST_TOKENS:
            yield Ground(session, uses, one.path, at[entry.n], calls, loaded)
        calls += entry.role is Role.ASSISTANT
        session.follow(entry)


def cuts(
    one: SessionSource,
    policies: Mapping[str, Policy],
    tokenizer: Tokenizer,
    *,
    points: int = POINTS,
    prune: float = PRUNE,
    beside: Mapping[str, Policy] = _NOBODY,
    oracles: bool = False,
) -> Iterator[CutLine]:
    """Every policy at every cut of a session; with `oracles` those who know the future as well. Raises InputError when it cannot be read.

    Few rules take exactly what they are told to. So each policy of `beside` takes, once for each other policy, the share that that one
    took there (`matched` names it), or that of another that took at most NEAR more: one run serves all that took about the same.
    """
    for ground in grounds(one, tokenizer, points=points):
        found = list(_each(ground, policies, prune))
        yield from found
        for ours, other in beside.items():
            rivals = sorted((line for line in found if line.policy != ours and line.pruned > 0), key=lambda line: -line.pruned)
            mine: CutLine | None = None
            share = 0.0
            for line in rivals:
                if mine is None or line.pruned < share - NEAR:
                    share, mine = line.pruned, _cut(ground, other, ours, line.pruned)
                yield replace(mine, matched=line.policy, target=line.pruned)
        if oracles:
            for name, edits in oracle_edits(ground.session, ground.uses, int(ground.session.view.tokens * (1 - prune))):
                yield _judged(ground, name, prune, edits, ground.session.view.tokens)


def _each(ground: Ground, policies: Mapping[str, Policy], prune: float) -> Iterator[CutLine]:
    for name, policy in policies.items():
        with suppress(ModelError):  # a planner without an answer: no plan is not an empty one
            yield _cut(ground, policy, name, prune)


def places(entries: Iterable[Entry], points: int = POINTS) -> dict[int, int]:
    """The entries before which a session is cut, each with its number."""
    replies = [entry.n for entry in entries if entry.role is Role.ASSISTANT]
    if len(replies) < LEAST_CALLS:
        return {}
    return {replies[len(replies) * (n + 1) // (points + 1)]: n for n in range(points)}


def rehearsed(session: Session, policy: Policy, prune: float) -> Rehearsal:
    """What a policy takes of a session as it is now, to leave `1 - prune` of its view; nothing changes but the session's setup."""
    target = int(session.view.tokens * (1 - prune))
    session.setup = replace(session.setup, policy=policy, budget=Budget(ceiling=target, floor=target, window=10**9))
    return session.rehearse(policy, target, limit=target)


def _cut(ground: Ground, policy: Policy, name: str, prune: float) -> CutLine:
    before = ground.session.view.tokens
    plan = rehearsed(ground.session, policy, prune)
    return _judged(ground, name, prune, plan.edits, before)


def _judged(ground: Ground, name: str, prune: float, edits: Sequence[Edit], before: int) -> CutLine:
    """What the future needed of what edits take."""
    session = ground.session
    after = session.view.copy()
    after.apply(edits)
    tally = Tally()
    for found in (*after_cut(ground.uses, session.length, (), edits), *edits_after_cut(ground.uses, session.length, (), edits)):
        tally.take(found)
    return CutLine(
        source=spelled(ground.path),
        policy=name,
        cut=ground.number,
        before_call=ground.call,
        entries=session.length,
        tokens=before,
        target=prune,
        pruned=1 - after.tokens / before,
        **asdict(tally.misses),
        idle=not edits,
    )


OBJECTS: Final = "oracle-objects"
LINES: Final = "oracle-lines"
_GONE: Final = "[removed]"  # in place of a result whose call stays
_FRAMING: Final = 4


class RemovableUnit(Struct, frozen=True):
    """What goes together: blocks, what stands in place of the first, and what that saves."""

    places: tuple[At, ...]
    saves: int
    edits: tuple[Edit, ...]


def oracle_edits(session: Session, uses: Uses, target: int) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """Both oracles' edits, to bring the view to `target` tokens."""
    situation = session.situation()
    wants = list(_wants(uses, session.length))
    yield OBJECTS, _objects(situation, wants, target)
    yield LINES, _lines(situation, wants, target)


def _wants(uses: Uses, entries: int) -> Iterator[tuple[int, str, tuple[At, ...]]]:
    """What the steps after the cut need and do not have again before: the use's number, the string, and its holders before the cut."""
    for number, use in enumerate(uses.found):
        if use.entry < entries or use.part == "thinking":
            continue
        for wanted in use.wanted:
            before = tuple(held.at for held in wanted.holders if held.at[0] < entries)
            if before and not any(held.at[0] >= entries and held.kind != "thinking" for held in wanted.holders):
                yield number, wanted.text, before


def _objects(situation: Situation, wants: Sequence[tuple[int, str, tuple[At, ...]]], target: int) -> tuple[Edit, ...]:
    """Lazy greedy: a loss only grows as more goes, so the least one that is still true is the least of all."""
    holders: dict[At, list[int]] = {}
    for number, (_, _, places) in enumerate(wants):
        for at in places:
            holders.setdefault(at, []).append(number)
    standing = [len(set(places)) for _, _, places in wants]
    missed: set[int] = set()
    edits: list[Edit] = []
    saved, gone = situation.view.tokens - target, set[At]()
    for units in (_results(situation), _rest(situation)):
        chosen = list(units)

        def loss(unit: RemovableUnit) -> float:
            falls: dict[int, int] = {}
            for at in unit.places:
                if at not in gone:
                    for number in holders.get(at, ()):
                        falls[number] = falls.get(number, 0) + 1
            uses = {wants[number][0] for number, count in falls.items() if standing[number] <= count}
            return len(uses - missed) / unit.saves

        heap = [(loss(unit), -unit.saves, number) for number, unit in enumerate(chosen)]
        heapify(heap)
        while heap and saved > 0:
            value, size, number = heappop(heap)
            unit = chosen[number]
            if (now := loss(unit)) > value + 1e-12:
                heappush(heap, (now, size, number))
                continue
            saved -= unit.saves
            edits += unit.edits
            for at in unit.places:
                if at not in gone:
                    gone.add(at)
                    for want in holders.get(at, ()):
                        standing[want] -= 1
                        if standing[want] == 0:
                            missed.add(wants[want][0])
    return _net(edits)


def _lines(situation: Situation, wants: Sequence[tuple[int, str, tuple[At, ...]]], target: int) -> tuple[Edit, ...]:
    """Of each result the lines that the future needs, and of each string only its newest holder's."""
    newest: dict[At, list[str]] = {}
    for _, text, places in wants:
        newest.setdefault(max(places), []).append(text)
    edits: list[Edit] = []
    saved = situation.view.tokens - target
    for unit in sorted(_results(situation), key=lambda each: sum(at in newest for at in each.places) / each.saves):
        if saved <= 0:
            return tuple(edits)
        kept = _kept(situation, unit, newest)
        if kept is not None:
            edits.append(kept)
            saved -= situation.view.weight(kept.entry, kept.block) - kept.tokens
        elif not any(at in newest for at in unit.places):
            edits += unit.edits
            saved -= unit.saves
    taken = {(edit.entry, edit.block) for edit in edits if isinstance(edit, Drop)}
    for unit in sorted(_rest(situation), key=lambda each: sum(len(newest.get(at, ())) for at in each.places) / each.saves):
        if saved <= 0:
            break
        fresh = [edit for edit in unit.edits if isinstance(edit, Drop) and (edit.entry, edit.block) not in taken]
        edits += fresh
        saved -= sum(situation.view.weight(edit.entry, edit.block) for edit in fresh)
    return _net(edits)


def _kept(situation: Situation, unit: RemovableUnit, newest: dict[At, list[str]]) -> Replace | None:
    """A result cut down to what is wanted of it; None when it is no text that can be cut, or nothing would be saved."""
    at = unit.places[0]
    wanted = newest.get(at)
    if wanted is None or situation.index.block(at).kind == "thinking":
        return None
    lines = situation.read(at[0]).blocks[at[1]].text.split("\n")
    spelt = [plain(line) for line in lines]
    stay = {number for text in wanted for number, line in enumerate(spelt) if text in line}
    text = "\n".join([_GONE, *(lines[number] for number in sorted(stay))])
    tokens = situation.count(text) + _FRAMING * (at[1] == 0)
    if tokens >= situation.view.weight(*at):
        return None
    return Replace(entry=at[0], block=at[1], text=text, tokens=tokens)


def _results(situation: Situation) -> Iterator[RemovableUnit]:
    """Results of calls that stay, and reasoning."""
    words = situation.count(_GONE)
    for places in situation.free.values():
        for at in places:
            facts = situation.index.block(at)
            weight = situation.view.weight(*at)
            if facts.kind == "thinking" and not facts.signed:
                yield RemovableUnit((at,), weight or 1, (Drop(entry=at[0], block=at[1]),))
            elif facts.kind == "tool_result" or (facts.kind == "text" and facts.origin in (Origin.TOOL, Origin.HARNESS)):
                tokens = words + _FRAMING * (at[1] == 0)
                if weight > tokens:
                    yield RemovableUnit((at,), weight - tokens, (Replace(entry=at[0], block=at[1], text=_GONE, tokens=tokens),))


def _rest(situation: Situation) -> Iterator[RemovableUnit]:
    """Calls with their results, and the words of the model."""
    index = situation.index
    for places in situation.free.values():
        for at in places:
            facts = index.block(at)
            if facts.kind == "tool_call":
                result = index.spans[facts.span].result if facts.span != NONE else None
                pair = [each for each in (at, result) if each is not None and situation.view.shows(*each)]
                saves = sum(situation.view.weight(*each) for each in pair)
                yield RemovableUnit(tuple(pair), saves or 1, tuple(Drop(entry=each[0], block=each[1]) for each in pair))
            elif facts.kind == "text" and facts.origin is Origin.MODEL:
                yield RemovableUnit((at,), situation.view.weight(*at) or 1, (Drop(entry=at[0], block=at[1]),))


def _net(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The last edit of each block."""
    by_place = {(edit.entry, edit.block): edit for edit in edits if isinstance(edit, Drop | Replace)}
    return tuple(by_place.values())
