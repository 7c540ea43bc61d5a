"""The one loop that all policies share: apply actions until the view fits.

What a policy proposes is compiled to edits on a copy of the view and counted as it goes; the result is a rehearsal, which changes nothing
until it is committed. Calls leave with their results, reasoning is not torn; an action that may do nothing, or would not pay, gives no edits.
"""

from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import UNSET, Struct

from tenure.engine.lifecycle.residues import CUE_SHARE, LINE_RESERVE, Layout, Residues, inserted, key_of, weights
from tenure.engine.lifecycle.state import SessionState
from tenure.engine.lifecycle.undo import lawful
from tenure.engine.meter.tokens import FRAMING
from tenure.engine.policies.policy import Policy, offered
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.action import LEVELS, Action, Level, Shorten, Strip, Take, Unstrip, at_level, is_reluctant
from tenure.engine.view.edit import Drop, Edit, Insert, LoggedAction, Remove, Replace, Restore, Standing
from tenure.engine.view.project import Projection, changed_from
from tenure.engine.view.residue import (
    ResidueLine,
    described_only,
    description_weight,
    is_pointer,
    place_of,
    start_of,
    stretch_line,
)
from tenure.engine.view.thinking import droppable, invalidated, is_closed, reopened


class Rehearsal(Struct, frozen=True, kw_only=True):
    """A plan applied without committing it: what would change, and what it would weigh."""

    actions: tuple[LoggedAction, ...]
    edits: tuple[Edit, ...]
    tokens_before: int
    tokens_after: int
    changed_from: int  # first record entry at or after which the view differs
    exhausted: bool  # the policy had nothing more to offer

    @property
    def saved(self) -> int:
        """Tokens that leave, net of residues."""
        return self.tokens_before - self.tokens_after


def fit(
    situation: Situation, policy: Policy, target: int, residues: Residues, number: str, *, limit: int | None = None
) -> tuple[Rehearsal, Projection]:
    """Apply actions one by one, stopping at the first view of at most `target` o200k tokens; the plan, and that view.

    `number` tells the keys of its inserts from those of other commits. Reluctant actions are applied only while the view is above `limit`, and
    not at all without one.
    """
    conduct = policy.conduct
    draft = _DraftView(situation, residues, number, in_one=conduct.amount != "limit" and not conduct.by_level)
    actions = offered(policy, situation)
    goal, exhausted = target, False
    while True:
        if draft.tokens > goal and not exhausted:
            exhausted = not _bring_down(draft, actions, -1 if conduct.amount == "all" else goal, limit)
        rehearsal, view = draft.finish(exhausted=exhausted)
        if exhausted or rehearsal.tokens_after <= target:
            return rehearsal, view
        goal -= rehearsal.tokens_after - target  # residues came out heavier than reserved


def rehearse(state: SessionState, policy: Policy, target: int, limit: int | None) -> tuple[Rehearsal, Projection]:
    """What a policy would do to a session's view to bring it to `target` o200k tokens, reluctantly down to `limit`, and the view that it makes."""
    residues = Residues.of(state.setup.budget.limit, policy.conduct.naming)
    return fit(state.situation(goal=target), policy, target, residues, f"{len(state.commits)}.", limit=limit)


def shortens(index: Index, action: Shorten) -> str:
    """The object that is shortened, as the log names it."""
    if action.span != NONE:
        return index.spans[action.span].object
    assert action.at is not None
    return f"entry:{action.at[0]}/{action.at[1]}"


def _bring_down(draft: "_DraftView", actions: Iterator[Action], goal: int, limit: int | None) -> bool:
    """Apply actions until the draft weighs at most `goal`; whether it does, or the actions gave out."""
    for action in actions:
        if isinstance(action, Strip) and action.episode in draft.gone:
            continue  # its other levels went with the whole
        if is_reluctant(action) and (limit is None or draft.tokens <= limit):
            return False
        if isinstance(action, Shorten | Take) and draft.tokens <= action.above:
            continue  # of a tier that the ones before made needless
        draft.apply(action, goal)
        if draft.tokens <= goal:
            return True
    return False


class _DraftView:
    """A rehearsal in the making."""

    def __init__(self, situation: Situation, residues: Residues, number: str, *, in_one: bool) -> None:
        self._situation = situation
        self._residues = residues
        self._number = number
        self._in_one = in_one  # an episode all of which must go goes in one action
        self._view = situation.view.copy()
        self._free = dict(situation.free)
        self._returned: set[int] = set()  # what came back may go again
        self._edits: list[Edit] = []
        self._actions: list[LoggedAction] = []
        self.gone: dict[int, int] = {}  # fully evicted episodes, each with the tokens it weighed
        self._weight: dict[int, int] = {}
        standing = [insert for insert in self._view.inserts if insert.stands_for == "episodes" or is_pointer(insert)]
        parts = [weights(situation.index, insert) for insert in standing]
        findings = sum(described + named for _, described, named in parts)
        self._room = residues.budget - sum(lines for lines, _, _ in parts), residues.described + residues.named - findings
        self._reserve = 0, 0  # for lines, and for what was found
        self._first = self._view.length  # first record entry changed so far

    @property
    def tokens(self) -> int:
        """What the view would weigh, residues included as far as they can be foreseen."""
        pairs = zip(self._reserve, self._room, strict=True)
        bounded = self._residues.naming == "lines"
        return self._view.tokens + sum(min(reserve, max(0, room)) if bounded else reserve for reserve, room in pairs)

    def apply(self, action: Action, goal: int) -> None:
        """Compile one action and carry it out; one that would change nothing leaves no trace."""
        situation, view = self._situation, self._view
        match action:
            case Strip(episode=ordinal, level=level):
                if not action.reluctant and self._must_go(ordinal, goal):
                    level = Level.EPISODE
                stripped, clean = self._strip(ordinal, level)
                if stripped:
                    self._actions.append(LoggedAction(kind="strip", object=self._object(ordinal), level=str(level)))
                if (clean and level is Level.EPISODE) or not any(view.shows(*at) for at in self._free.get(ordinal, ())):
                    self._leave(ordinal)
            case Unstrip(episode=ordinal):
                hidden = [at for at in _blocks_of(situation.index, ordinal) if not view.shows(*at)]
                back = [Restore(entry=entry, block=block) for entry, block in hidden]
                edits, _ = lawful(back, view, situation.index, situation.rules)
                self._carry_out(edits, LoggedAction(kind="restore", object=self._object(ordinal)))
                self._set_free(ordinal)
            case Shorten(how=how):
                edits = _shorten_edits(situation, view, action)
                self._carry_out(
                    edits, LoggedAction(kind=how, object=shortens(situation.index, action), reason=action.reason or UNSET)
                )
            case Take(how=how, object=object_):
                edits = _take_edits(situation, view, action, f"{self._number}{len(self._actions)}")
                self._carry_out(edits, LoggedAction(kind=how, object=object_, reason=action.reason or UNSET))
            case _:
                assert_never(action)

    def _carry_out(self, edits: Sequence[Edit], act: LoggedAction) -> None:
        if edits:
            self._view.apply(edits)
            self._edits += edits
            self._actions.append(act)
            self._first = min(self._first, changed_from(self._situation.view, edits))

    def finish(self, *, exhausted: bool) -> tuple[Rehearsal, Projection]:
        """The rehearsal so far, residues laid and bound reasoning gone; the draft can be continued afterwards."""
        situation, view = self._situation, self._view.copy()
        residue_edits = Layout(situation, view, self._residues, self._number).lay(self.gone, self._first if self._edits else None)
        view.apply(residue_edits)
        edits = _net([*self._edits, *residue_edits])
        first = min(self._first, changed_from(situation.view, residue_edits))
        if situation.rules.thinking == "prefix_bound" and edits:
            spoilt = list(invalidated(situation.index, view, first))
            view.apply(spoilt)
            edits += spoilt
        if situation.rules.thinking == "open_loop" and edits and not is_closed(situation.index, view):
            back = list(reopened(situation.index, view.freeze().lines))
            view.apply(back)
            edits = _without_drops_of(edits, back)
            first = min(first, changed_from(situation.view, back))
        rehearsal = Rehearsal(
            actions=tuple(self._actions),
            edits=tuple(edits),
            tokens_before=situation.view.tokens,
            tokens_after=view.tokens,
            changed_from=first,
            exhausted=exhausted,
        )
        return rehearsal, view

    def _object(self, ordinal: int) -> str:
        return self._situation.index.episodes[ordinal].object

    def _strip(self, ordinal: int, level: Level) -> tuple[bool, bool]:
        """Drop what a level drops of an episode, and what cannot stay without it; whether anything was dropped, and whether all was."""
        situation, view = self._situation, self._view
        before = view.tokens
        stripped, clean = False, True
        entries: dict[int, list[int]] = {}
        for entry, block in self._places(ordinal, level):
            entries.setdefault(entry, []).append(block)
        for entry, blocks in entries.items():
            row = view.row(entry)
            if row is None:
                continue
            chosen = blocks if row.whole else [block for block in blocks if row.shows(block)]
            drop: Sequence[int] = chosen
            if len(chosen) < len(row.blocks):
                drop = droppable(situation.index, situation.rules, row, chosen)
                clean &= len(drop) >= len(chosen)
            if drop:
                stripped = True
                view.drop(entry, drop)
                self._edits += [Drop(entry=entry, block=block) for block in drop]
                self._first = min(self._first, entry)
        self._weight[ordinal] = self._weight.get(ordinal, 0) + before - view.tokens
        return stripped, clean

    def _must_go(self, ordinal: int, goal: int) -> bool:
        """Whether even without an episode the view would be above `goal`, so that its levels need not be tried one by one."""
        if not self._in_one:
            return False
        entries = self._situation.index.entries
        weight = sum([entries[entry].blocks[block].tokens for entry, block in self._free.get(ordinal, ())])
        return self.tokens - weight > goal

    def _places(self, ordinal: int, level: Level) -> Sequence[At]:
        """What a level drops of an episode, as far as it has not left yet."""
        if level is Level.EPISODE:
            return self._free.get(ordinal, ())
        if ordinal not in self._returned and level in LEVELS[EpisodeType.EXPL]:
            return self._situation.layers(ordinal).get(level, ())
        return [at for at in self._free.get(ordinal, ()) if at_level(self._situation.index, at, level)]

    def _set_free(self, ordinal: int) -> None:
        """Let an episode that came back go again, unless something of it is held now."""
        index = self._situation.index
        places = [at for at in _blocks_of(index, ordinal) if index.block(at).origin is not Origin.HUMAN]
        if all(self._situation.guard.why(at) is None for at in places):
            self._free[ordinal] = places
            self._returned.add(ordinal)

    def _leave(self, ordinal: int) -> None:
        """Remember an episode that is fully evicted now, and set tokens aside for its residue."""
        situation = self._situation
        if ordinal in self.gone or situation.held.get(ordinal):
            return
        weight = self._weight.get(ordinal, 0)
        self.gone[ordinal] = weight
        episode = situation.index.episodes[ordinal]
        lines, findings = self._reserve
        if self._residues.naming == "lines":
            lines += min(LINE_RESERVE, int(weight * CUE_SHARE))
            findings += description_weight(situation.index, episode)
        elif self._residues.naming == "descriptions" and episode.description:
            findings += situation.count(described_only(situation.index, episode)) + FRAMING
        self._reserve = lines, findings


def _shorten_edits(situation: Situation, view: Projection, action: Shorten) -> tuple[Replace, ...]:
    """The text in place of what is shown now, where that may be touched, is longer, and carries no reasoning's seal."""
    index, at = situation.index, action.at
    if at is None:
        span = index.spans[action.span]
        at = span.call if action.part == "arguments" else span.result
    if at is None or not view.shows(*at) or not situation.is_free(at):
        return ()
    tokens = situation.count(action.text) + FRAMING * (at[1] == 0)
    if tokens >= view.weight(*at):
        return ()
    row = view.row(at[0])
    if index.block(at).origin is Origin.MODEL and row is not None and any(index.block((at[0], n)).signed for n in row.blocks):
        return ()  # signed reasoning that is shown vouches for what follows it
    return (Replace(entry=at[0], block=at[1], text=action.text, tokens=tokens, routes=action.routes),)


def _take_edits(situation: Situation, view: Projection, action: Take, number: str) -> tuple[Edit, ...]:
    """Drops, and the pointer whose key ends in `number`; nothing when that would not make the view smaller."""
    drops = [Drop(entry=entry, block=block) for entry, blocks in _droppable(situation, view, action) for block in blocks]
    if not drops:
        return ()
    standing = view.inserts if action.inserted else ()
    removed = [insert for insert in standing if _goes_too(situation, insert, action.before_entry)]
    edits: tuple[Edit, ...] = (*drops, *(Remove(key=insert.key) for insert in removed))
    if not action.pointer:
        return edits
    place = action.before_entry
    if place < len(situation.index):
        place = place_of(situation.index, place)  # never between a call and its result
    line = ResidueLine(text=action.pointer, routes=action.routes)
    kind: Standing = "object" if action.routes else "history"
    pointers = [inserted(situation, kind, key_of(kind, number), place, 0, line)]
    if routes := [route for insert in removed if is_pointer(insert) for route in insert.routes]:
        line = stretch_line(situation.index, routes)  # what was folded before stays on the way back
        key = key_of("stretch", f"{number}.0")  # a key that no merged line has
        pointers.append(inserted(situation, "stretch", key, place, 1, line))
    gained = sum(view.weight(drop.entry, drop.block) for drop in drops) + sum(insert.tokens for insert in removed)
    return (*edits, *pointers) if sum(insert.tokens for insert in pointers) < gained else ()


def _goes_too(situation: Situation, insert: Insert, before_entry: int) -> bool:
    """Whether what a brief stands for includes an inserted entry: not a pointer, beside a person's words, to something that came later."""
    if insert.before_entry > before_entry:
        return False
    return not is_pointer(insert) or all(start_of(situation.index, route)[0] < before_entry for route in insert.routes)


def _droppable(situation: Situation, view: Projection, action: Take) -> Iterator[tuple[int, Sequence[int]]]:
    """By entry, the blocks that may go and can go together."""
    entries: dict[int, set[int]] = {}
    index = situation.index
    for place in action.places:
        span = index.block(place).span
        for at in (
            (place,) if span == NONE else (place, index.spans[span].call, index.spans[span].result)
        ):  # a call with its result
            if at is not None and view.shows(*at) and situation.is_free(at):
                entries.setdefault(at[0], set()).add(at[1])
    for entry, blocks in sorted(entries.items()):
        row = view.row(entry)
        assert row is not None
        if chosen := droppable(situation.index, situation.rules, row, sorted(blocks)):
            yield entry, chosen


def _blocks_of(index: Index, ordinal: int) -> Iterator[At]:
    """The blocks of an episode, in order."""
    for entry in index.entries_of(index.episodes[ordinal]):
        for block, facts in enumerate(index.entries[entry].blocks):
            if facts.episode == ordinal:
                yield entry, block


def _without_drops_of(edits: Sequence[Edit], back: Sequence[Restore]) -> list[Edit]:
    """The edits, with what comes back after all: it never left, or is restored."""
    places = {(edit.entry, edit.block) for edit in back}
    stayed = {(edit.entry, edit.block) for edit in edits if isinstance(edit, Drop)} & places
    kept = [edit for edit in edits if not (isinstance(edit, Drop) and (edit.entry, edit.block) in stayed)]
    return [*kept, *(edit for edit in back if (edit.entry, edit.block) not in stayed)]


def _net(edits: Sequence[Edit]) -> list[Edit]:
    """The edits without what one of them inserts or replaces and a later one removes, replaces or drops again."""
    removed = {edit.key for edit in edits if isinstance(edit, Remove)}
    passing = {edit.key for edit in edits if isinstance(edit, Insert) and edit.key in removed}
    last = {(edit.entry, edit.block): number for number, edit in enumerate(edits) if isinstance(edit, Replace | Drop | Restore)}
    return [
        edit
        for number, edit in enumerate(edits)
        if not (isinstance(edit, Insert | Remove) and edit.key in passing)
        and not (isinstance(edit, Replace) and last[edit.entry, edit.block] > number)
    ]
