"""Cut-point replay: every policy prunes the same session at the same place by the same share, and the real future judges it.

Self-GC paper, "Cut-point replay"; DESIGN.md, Evaluation. No model is asked. Residues count as kept tokens.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Entry, Role
from tenure.engine.view.edit import Edit
from tenure.errors import ModelError
from tenure.lab.events import CutLine, EntryLine, spelled
from tenure.lab.harm.passage import of_line
from tenure.lab.harm.watch import Uses, after_cut, edits_after_cut, uses_of
from tenure.lab.loading import Loaded, load
from tenure.lab.oracles import oracle_edits
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
    uses = uses_of(of_line(line) for line in replayed([one], _whole(), tokenizer) if isinstance(line, EntryLine))
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


def _whole() -> Options:
    return Options(budget=Budget(window=10**9), policy=None)
