"""Cases out of recorded sessions, by cut-point replay (Self-GC paper, Evaluation Artifacts).

Every policy is cut at the same places and takes the same share of the same view, as in `evals.cuts`; nothing here asks a model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Planned, Policy
from tenure.engine.record.entry import Entry
from tenure.lab.cuts import POINTS, PRUNE, Ground, grounds, rehearsed
from tenure.lab.events import HarmLine, spelled
from tenure.lab.harm.watch import after_cut
from tenure.lab.judges.case import Case, Control, Facts, Need, Piece
from tenure.lab.judges.controls import holds, pair
from tenure.lab.judges.pieces import of_edits, of_future, of_view
from tenure.lab.replay import Source

CONTROLS: Final = "control"  # the name of what no policy planned


def cases(
    one: Source,
    policies: Mapping[str, Policy],
    tokenizer: Tokenizer,
    *,
    points: int = POINTS,
    prune: float = PRUNE,
    pairs: int = 0,
) -> Iterator[Case]:
    """Every policy at every cut of a session, and at the first cuts that allow it up to `pairs` pairs of controls.

    None for a session too short to be cut. Raises InputError when it cannot be read.
    """
    for ground in grounds(one, tokenizer, points=points):
        whole = ground.whole
        future = tuple(of_future(whole.entries[ground.session.length :], whole.index))
        for name, policy in policies.items():
            yield _case(ground, future, name, rehearsed(ground.session, policy, prune), tokenizer)
        if pairs:
            found = _pair(ground, prune)
            pairs -= bool(found)
            for control, plan in found:
                yield _case(ground, future, CONTROLS, plan, tokenizer, control)


def _pair(ground: Ground, prune: float) -> tuple[tuple[Control, Rehearsal], ...]:
    """The two controls of a cut; none where none can be made."""
    rehearsed(
        ground.session, Planned(name=CONTROLS, actions=()), prune
    )  # so that what is free does not hang on the policy before
    found = pair(ground.session.situation(), ground.uses, ground.whole.entries, prune)
    if found is None:
        return ()
    unused, needed = (rehearsed(ground.session, plan, prune) for plan in (found.unused, found.needed))
    if not holds(found, ground.uses, ground.session.length, unused.edits, needed.edits):
        return ()
    return ("unused", unused), ("needed", needed)


def _case(
    ground: Ground, future: tuple[Piece, ...], policy: str, plan: Rehearsal, count: Tokenizer, control: Control = ""
) -> Case:
    session, uses, entries = ground.session, ground.uses, ground.whole.entries
    read = ground.whole.read
    after = session.view.copy()
    after.apply(plan.edits)
    before = session.view.tokens
    return Case(
        facts=Facts(
            source=spelled(ground.path),
            cut=ground.number,
            before_call=ground.call,
            entry=session.length,
            line=entries[session.length].line,
            policy=policy,
            control=control,
            tokens=before,
            pruned=1 - after.tokens / before,
        ),
        acts=plan.actions,
        kept=tuple(of_view(after.freeze(), session.index, read)),
        removed=of_edits(plan.edits, session.view, session.index, read, count),
        future=future,
        calls={answer: number for answer, number in uses.calls.items() if answer >= session.length},
        needs=tuple(_needs(after_cut(uses, session.length, (), plan.edits), entries)),
    )


def _needs(lines: Iterable[HarmLine], entries: Sequence[Entry]) -> Iterator[Need]:
    for line in lines:
        if line.part != "thinking":
            yield Need(
                call=line.call,
                entry=line.entry,
                block=line.block,
                line=entries[line.entry].line,
                kind=line.kind,
                form=line.form,
                text=line.text,
                objects=line.objects,
                held=line.held,
                stands=line.verdict,
                category=line.category,
            )
