"""What a person does to a view by hand: undo a commit, restore an object. Both are new commits; the log is only appended to."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from tenure.engine.lifecycle.state import SessionState
from tenure.engine.record.entry import At, Role
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.view.edit import Commit, Drop, Edit, Insert, LoggedAction, Remove, Replace, Restore
from tenure.engine.view.project import Projection, Row, Weights, changed_from, projection_of
from tenure.engine.view.residue import needless
from tenure.engine.view.rules import Rules
from tenure.engine.view.thinking import bond, invalidated, is_closed, reopened, settle
from tenure.errors import InputError


def undone(session: SessionState, number: int) -> Commit:
    """The commit that puts back what commit `number` changed, not yet taken in. Raises InputError for a commit that does not exist."""
    edits = undo(tuple(session.commits), number, session.length, session.index)
    return _by_hand(session, "undo", f"undo of commit {number}", edits)


def restored(session: SessionState, object_: str) -> Commit | None:
    """The commit that shows an object whole again where it stood, not yet taken in; None when it is shown whole.

    On the user's word: the view may become larger, and the next limit that is passed may take it again unless it is held. Raises InputError
    when the record has no such object.
    """
    view = session.view
    places = blocks_of(session.index, parse_handle(object_))
    edits: list[Edit] = [Restore(entry=n, block=b) for n, b in places if not view.shows(n, b) or view.instead(n, b) is not None]
    if not edits:
        return None
    return _by_hand(session, "restore", f"restore of {object_}", edits, (LoggedAction(kind="restore", object=object_),))


def _by_hand(
    session: SessionState, name: str, reason: str, edits: Sequence[Edit], actions: tuple[LoggedAction, ...] = ()
) -> Commit:
    view, index = session.view, session.index
    every, after = lawful(edits, view, index, session.setup.rules, pointers=bool(actions))
    return Commit(
        n=len(session.commits),
        entries=session.length,
        policy=name,
        moment="manual",
        reason=reason,
        tokens_before=view.tokens,
        tokens_after=after.tokens,
        ratio=session.ratio,
        actions=actions,
        edits=every,
    )


def undo(commits: Sequence[Commit], number: int, length: int, weights: Weights) -> tuple[Edit, ...]:
    """The edits that put everything commit `number` touched back to its state before it, which may be a clipped one.

    `length` is the record's present length. What a later commit removed that this one inserted stays removed. Raises InputError
    for a commit that does not exist.
    """
    if not 0 <= number < len(commits):
        raise InputError(
            "undo", f"commit {number}", f"one of 0 to {len(commits) - 1}" if commits else "a commit, of which there are none"
        )
    before = projection_of(weights, commits[number].entries, commits[:number])
    now = projection_of(weights, length, commits)
    blocks = (edit for edit in commits[number].edits if isinstance(edit, Drop | Replace | Restore))
    edits: list[Edit] = []
    for entry, block in dict.fromkeys((edit.entry, edit.block) for edit in blocks):
        edits += _back(entry, block, before, now)
    for edit in commits[number].edits:
        if isinstance(edit, Insert) and now.insert(edit.key):
            edits.append(Remove(key=edit.key))
        if isinstance(edit, Remove) and (gone := before.insert(edit.key)):
            edits.append(replace(gone, key=f"{gone.key}~{len(commits)}"))  # keys are never used twice
    return tuple(edits)


def lawful(
    edits: Sequence[Edit], view: Projection, index: Index, rules: Rules, *, pointers: bool = False
) -> tuple[tuple[Edit, ...], Projection]:
    """Edits that bring something back, what has to come or go with it so that the view stays valid, and the view after them.

    A call comes with its result, reasoning only with what it led to, and under `prefix_bound` no later signed reasoning stays. With `pointers`,
    those to what is shown whole again go too.
    """
    after = view.copy()
    after.apply(edits)
    done = [*edits]

    def also(more: Iterable[Edit]) -> None:
        chosen = list(more)
        after.apply(chosen)
        done.extend(chosen)

    if pointers:
        also(needless(index, after))
    touched = dict.fromkeys(edit.entry for edit in edits if isinstance(edit, Drop | Restore))
    for entry in list(touched):
        for partner in _partners(index, after, entry):
            touched[partner[0]] = None
            also([Restore(entry=partner[0], block=partner[1])])
    for entry in touched:
        if row := after.row(entry):
            also(_settled(index, rules, row))
    if rules.thinking == "prefix_bound" and done:
        also(invalidated(index, after, changed_from(view, done)))
    if rules.thinking == "open_loop" and done and not is_closed(index, after):
        also(reopened(index, after.freeze().lines))
    return tuple(done), after


def _partners(index: Index, view: Projection, entry: int) -> Iterator[At]:
    """The calls and results of which an entry shows the other half."""
    row = view.row(entry)
    for block in row.blocks if row else ():
        facts = index.block((entry, block))
        if facts.span != NONE:
            span = index.spans[facts.span]
            yield from (at for at in (span.call, span.result) if at is not None and not view.shows(*at))


def _settled(index: Index, rules: Rules, row: Row) -> Iterator[Edit]:
    """What makes an entry whole again where reasoning was torn from what it led to: it comes back if it may, else it goes."""
    facts = index.entries[row.entry].blocks
    if index.entries[row.entry].role is not Role.ASSISTANT or row.whole:
        return
    every = range(len(facts))
    gone = {number for number in every if number not in row.blocks}
    settled = settle(index, row.entry, every, gone, bond(index, rules, row.entry))
    yield from (Restore(entry=row.entry, block=number) for number in sorted(gone - settled))
    yield from (Drop(entry=row.entry, block=number) for number in sorted(settled - gone))


def _back(entry: int, block: int, before: Projection, now: Projection) -> list[Edit]:
    """The edits that show a block again as it was."""
    if not before.shows(entry, block):
        return [Drop(entry=entry, block=block)] if now.shows(entry, block) else []
    was = before.instead(entry, block)
    if now.shows(entry, block) and was == now.instead(entry, block):
        return []
    back: list[Edit] = [Restore(entry=entry, block=block)]
    if was is not None:
        back.append(Replace(entry=entry, block=block, text=was.text, tokens=was.tokens, routes=was.routes))
    return back
