"""The one loop that all policies share: apply actions until the view fits.

What a policy proposes is compiled to edits on a copy of the view and counted as it goes; the result is a rehearsal, which changes nothing
until it is committed.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, assert_never

from msgspec import Struct

from tenure.engine.lifecycle.taking import shortened, shortens, taken
from tenure.engine.policies.offered import offered
from tenure.engine.policies.policy import Policy
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Origin
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.view.action import Action, Level, Shorten, Strip, Take, Unstrip, is_reluctant
from tenure.engine.view.edit import Act, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.engine.view.guard import At
from tenure.engine.view.levels import LEVELS, at_level
from tenure.engine.view.pointers import (
    POINTER,
    STRETCH_LINE,
    TURN_LINE,
    Line,
    is_pointer,
    is_stretch,
    is_whole,
    start_of,
    stretch_line,
    turn_line,
)
from tenure.engine.view.project import Projection, changed_from
from tenure.engine.view.residue import (
    DESCRIPTION_SHARE,
    NAME_SHARE,
    Residue,
    described_only,
    description_weight,
    findings_weight,
    named_by,
    place_of,
    role_of_residue,
    worth_naming,
)
from tenure.engine.view.thinking import bond, invalidated, settle
from tenure.engine.view.undo import lawful

FRAMING: Final = 4  # tokens an entry costs beside its text
RESIDUE_SHARE: Final = 0.05  # of the limit: what all residues together may weigh, apart from what was found in expl episodes
_LINE_RESERVE: Final = 60  # tokens set aside for one episode's part of a residue
_CUE_SHARE: Final = 0.25  # a residue that weighs more than this share of what it stands for names no calls


class Rehearsal(Struct, frozen=True, kw_only=True):
    """A plan applied without committing it: what would change, and what it would weigh."""

    actions: tuple[Act, ...]
    edits: tuple[Edit, ...]
    tokens_before: int
    tokens_after: int
    changed_from: int  # first record entry at or after which the view differs
    exhausted: bool  # the policy had nothing more to offer

    @property
    def saved(self) -> int:
        """Tokens that leave, net of residues."""
        return self.tokens_before - self.tokens_after


class Residues(Struct, frozen=True, kw_only=True):
    """How removals are named: `lines` merge and stay within `budget` tokens; without, an expl leaves its description (the paper)."""

    lines: bool = True
    descriptions: bool = True  # without these and without lines, nothing is left
    budget: int = 4_000
    described: int = 6_400  # tokens for the descriptions of expl episodes that have left; the newest stay
    named: int = 4_000  # tokens for the names of older ones

    @classmethod
    def of(cls, limit: int, *, lines: bool, descriptions: bool) -> "Residues":
        """Their shares of a limit."""
        shares = (RESIDUE_SHARE, DESCRIPTION_SHARE, NAME_SHARE)
        budget, described, named = (int(limit * share) for share in shares)
        return cls(lines=lines, descriptions=descriptions, budget=budget, described=described, named=named)


def fit(
    situation: Situation, policy: Policy, target: int, residues: Residues, prefix: str, *, limit: int | None = None
) -> tuple[Rehearsal, Projection]:
    """Apply actions one by one, stopping at the first view of at most `target` o200k tokens; the plan, and that view.

    Keys of inserts start with `prefix`. Reluctant actions are applied only while the view is above `limit`, and not at all without one.
    """
    draft = _Draft(situation, residues, prefix, in_one=policy.conduct.batch and policy.conduct.escalates)
    actions = offered(policy, situation)
    goal, exhausted = target, False
    while True:
        if draft.tokens > goal and not exhausted:
            exhausted = not _bring_down(draft, actions, -1 if policy.conduct.whole else goal, limit)
        rehearsal, view = draft.finish(exhausted=exhausted)
        if exhausted or rehearsal.tokens_after <= target:
            return rehearsal, view
        goal -= rehearsal.tokens_after - target  # residues came out heavier than reserved


def _bring_down(draft: "_Draft", actions: Iterator[Action], goal: int, limit: int | None) -> bool:
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


class _Draft:
    """A rehearsal in the making."""

    def __init__(self, situation: Situation, residues: Residues, prefix: str, *, in_one: bool) -> None:
        self._situation = situation
        self._residues = residues
        self._prefix = prefix
        self._in_one = in_one  # an episode all of which must go goes in one action
        self._view = situation.view.copy()
        self._free = dict(situation.free)
        self._returned: set[int] = set()  # what came back may go again
        self._edits: list[Edit] = []
        self._actions: list[Act] = []
        self.gone: dict[int, int] = {}  # fully evicted episodes, each with the tokens it weighed
        self._weight: dict[int, int] = {}
        standing = [insert for insert in self._view.inserts if _is_residue(insert) or is_pointer(insert)]
        weights = [_weights(situation.index, insert) for insert in standing]
        found = sum(described + named for _, described, named in weights)
        self._room = residues.budget - sum(lines for lines, _, _ in weights), residues.described + residues.named - found
        self._reserve = 0, 0  # for lines, and for what was found
        self._first = self._view.length  # first record entry changed so far

    @property
    def tokens(self) -> int:
        """What the view would weigh, residues included as far as they can be foreseen."""
        pairs = zip(self._reserve, self._room, strict=True)
        bounded = self._residues.lines
        return self._view.tokens + sum(min(reserve, max(0, room)) if bounded else reserve for reserve, room in pairs)

    def apply(self, action: Action, goal: int) -> None:
        """Compile one action and carry it out; one that would change nothing leaves no trace."""
        match action:
            case Strip(episode=ordinal, level=level):
                if not action.reluctant and self._must_go(ordinal, goal):
                    level = Level.EPISODE
                stripped, clean = self._strip(ordinal, level)
                if stripped:
                    self._actions.append(Act(kind="strip", object=self._object(ordinal), level=str(level)))
                if (clean and level is Level.EPISODE) or not self._shows_any(self._free.get(ordinal, ())):
                    self._leave(ordinal)
            case Unstrip(episode=ordinal):
                edits = lawful(
                    list(self._restores(ordinal)),
                    self._view,
                    self._situation.index,
                    self._situation.rules,
                    self._situation.loop_start,
                )
                self._view.apply(edits)
                self._edits += edits
                self._first = min(self._first, changed_from(self._situation.view, edits))
                self._set_free(ordinal)
                if edits:
                    self._actions.append(Act(kind="restore", object=self._object(ordinal)))
            case Shorten(how=how):
                edits = shortened(self._situation, self._view, action)
                self._carry_out(edits, Act(kind=how, object=shortens(self._situation.index, action)))
            case Take(how=how, object=object_):
                edits = taken(self._situation, self._view, action, f"{POINTER}{self._prefix[1:]}{len(self._actions)}")
                self._carry_out(edits, Act(kind=how, object=object_))
            case _:
                assert_never(action)

    def _carry_out(self, edits: Sequence[Edit], act: Act) -> None:
        if edits:
            self._view.apply(edits)
            self._edits += edits
            self._actions.append(act)
            self._first = min(self._first, changed_from(self._situation.view, edits))

    def finish(self, *, exhausted: bool) -> tuple[Rehearsal, Projection]:
        """The rehearsal so far, residues laid and bound reasoning gone; the draft can be continued afterwards."""
        view = self._view.copy()
        laid = _Laying(self._situation, view, self._residues, self._prefix).lay(self.gone, self._first if self._edits else None)
        view.apply(laid)
        edits = _net([*self._edits, *laid])
        first = min(self._first, changed_from(self._situation.view, laid))
        if self._situation.rules.thinking == "prefix_bound" and edits:
            spoilt = list(invalidated(self._situation.index, view, first))
            view.apply(spoilt)
            edits += spoilt
        rehearsal = Rehearsal(
            actions=tuple(self._actions),
            edits=tuple(edits),
            tokens_before=self._situation.view.tokens,
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
        for entry, blocks in _by_entry(self._places(ordinal, level)).items():
            row = view.row(entry)
            if row is None:
                continue
            chosen = blocks if row.whole else [block for block in blocks if row.shows(block)]
            drop: Sequence[int] = chosen
            if 0 < len(chosen) < len(row.blocks):
                tie = bond(situation.index, situation.rules, situation.loop_start, entry)
                drop = sorted(settle(situation.index, entry, row.blocks, chosen, tie))
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

    def _shows_any(self, places: Iterable[At]) -> bool:
        for entry, block in places:
            row = self._view.row(entry)
            if row is not None and row.shows(block):
                return True
        return False

    def _set_free(self, ordinal: int) -> None:
        """Let an episode that came back go again, unless something of it is held now."""
        index = self._situation.index
        places = [
            (entry, block)
            for entry in index.entries_of(index.episodes[ordinal])
            for block, facts in enumerate(index.entries[entry].blocks)
            if facts.episode == ordinal and facts.origin is not Origin.HUMAN
        ]
        if all(self._situation.guard.why(at) is None for at in places):
            self._free[ordinal] = places
            self._returned.add(ordinal)

    def _restores(self, ordinal: int) -> Iterator[Restore]:
        index = self._situation.index
        for entry in index.entries_of(index.episodes[ordinal]):
            for block, facts in enumerate(index.entries[entry].blocks):
                if facts.episode == ordinal and not self._view.shows(entry, block):
                    yield Restore(entry=entry, block=block)

    def _leave(self, ordinal: int) -> None:
        """Remember an episode that is fully evicted now, and set tokens aside for its residue."""
        situation = self._situation
        if ordinal in self.gone or situation.held.get(ordinal):
            return
        weight = self._weight.get(ordinal, 0)
        self.gone[ordinal] = weight
        episode = situation.index.episodes[ordinal]
        lines, found = self._reserve
        if self._residues.lines:
            lines += min(_LINE_RESERVE, int(weight * _CUE_SHARE))
            found += description_weight(situation.index, episode)
        elif episode.description and self._residues.descriptions:
            found += situation.count(_described(situation, episode)) + FRAMING
        self._reserve = lines, found


class _Laying:
    """Lays the residues of one commit and keeps all residues within their budget."""

    def __init__(self, situation: Situation, view: Projection, residues: Residues, prefix: str) -> None:
        self._situation = situation
        self._residues = residues
        self._prefix = prefix
        self._shown = [row.entry for row in view.rows()]
        self._standing = {insert.key: insert for insert in view.inserts if _is_residue(insert)}
        self._pointers = {insert.key: insert for insert in view.inserts if is_pointer(insert)}
        self._view = view
        self._weight = self._described = self._named = 0  # of pointers and lines; of descriptions; of names
        for insert in (*self._standing.values(), *self._pointers.values()):
            self._weigh_in(insert)
        self._removed: list[Remove] = []
        self._laid: dict[str, Insert] = {}
        self._numbers = count()

    def lay(self, gone: Mapping[int, int], changed_from: int | None) -> list[Edit]:
        """The edits that name the episodes `gone`, each with the tokens it weighed.

        `changed_from` is the first record entry at or after which the view differs already, None when it does not.
        """
        if changed_from is not None:
            self._bound_pointers(changed_from)
        episodes = [self._situation.index.episodes[ordinal] for ordinal in sorted(gone)]
        if self._residues.lines:
            self._lay_lines(episodes, gone)
        else:
            for episode in episodes:
                self._lay_description(episode)
        return [*self._removed, *self._laid.values()]

    def _lay_description(self, episode: Episode) -> None:
        if episode.description and self._residues.descriptions:
            index = self._situation.index
            routes = (index.handle(episode.object, episode.start[0]),)
            self._put(place_of(index, episode.start[0]), _described(self._situation, episode), routes)

    def _lay_lines(self, episodes: Iterable[Episode], gone: Mapping[int, int]) -> None:
        """One residue for each gap between shown entries, newest first; what their budget does not hold is merged."""
        groups: dict[int, list[Episode]] = {}
        for episode in episodes:
            groups.setdefault(self._gap(episode.start[0]), []).append(episode)
        standing: dict[int, list[Insert]] = {}
        for insert in self._standing.values():
            standing.setdefault(self._gap(insert.before_entry), []).append(insert)
        left: list[Episode] = []
        for gap, group in reversed(groups.items()):
            if self._weight > self._residues.budget:
                left += group
            else:
                self._lay_gap(group, standing.get(gap, []), sum(gone[episode.ordinal] for episode in group))
        residues = self._residues
        if left or self._weight > residues.budget or self._described > residues.described or self._named > residues.named:
            self._merge_oldest(left)

    def _bound_pointers(self, changed_from: int) -> None:
        """Merge pointers to folded objects when all residues together are over their budget, down to half of what the others leave.

        First older ones behind the first change, where the prefix is broken already. Then the oldest of all, which may break it further, and
        therefore seldom: what they are merged into makes room for many commits. What this commit folds is merged last.
        """
        budget = self._residues.budget
        weight = sum(insert.tokens for insert in self._pointers.values())
        goal = max((budget - self._weight + weight) // 2, budget // 4)
        for start, spared in ((changed_from, True), (0, False)):
            if self._weight <= budget or weight <= goal:
                return
            self._merge_turns(self._pointers_from(start, spared=spared), self._weight - weight + goal)
            weight = sum(insert.tokens for insert in self._pointers.values())
        if weight > goal + goal // 2:  # else so little room was made that the next commit would be back here
            self._merge_stretch(self._pointers_from(0, spared=False), self._weight - weight + goal)

    def _merge_turns(self, pointers: Iterable[Insert], goal: int) -> None:
        """One line for each turn's pointers, oldest turn first, until all residues together weigh `goal`."""
        groups: dict[int, list[Insert]] = {}
        for insert in pointers:
            if not is_stretch(insert):
                groups.setdefault(insert.before_entry, []).append(insert)
        for place, group in groups.items():
            if self._weight <= goal:
                return
            if len(group) > 1 or not group[0].key.startswith(TURN_LINE):
                self._merge_pointers(TURN_LINE, place, group, turn_line)

    def _merge_stretch(self, pointers: Iterable[Insert], goal: int) -> None:
        """One line for the oldest pointers and lines, as many as it takes for all residues together to weigh `goal`."""
        merged: list[Insert] = []
        left = self._weight
        for insert in pointers:
            if left <= goal - _LINE_RESERVE:
                break
            merged.append(insert)
            left -= insert.tokens
        if len(merged) > 1 or (merged and not is_stretch(merged[0])):
            self._merge_pointers(STRETCH_LINE, max(insert.before_entry for insert in merged), merged, stretch_line)

    def _pointers_from(self, start: int, *, spared: bool) -> list[Insert]:
        """Those at or behind an entry, in order. `spared`: without this commit's own, of which the lines for stretches are always spared."""
        index = self._situation.index
        own = f"{POINTER}{self._prefix[1:]}"
        standing = [
            insert
            for insert in self._pointers.values()
            if insert.before_entry >= start and not (insert.key.startswith(own) and (spared or is_stretch(insert)))
        ]
        return sorted(standing, key=lambda each: (each.before_entry, start_of(index, each.routes[0]), each.key))

    def _merge_pointers(
        self, letter: str, place: int, merged: Sequence[Insert], line: Callable[[Index, Iterable[str]], Line]
    ) -> None:
        """A line in place of pointers, unless it would be no lighter; what has come back is not named any more."""
        index = self._situation.index
        routes = [
            route for insert in merged for route in insert.routes if is_stretch(insert) or not is_whole(index, self._view, route)
        ]
        told = line(index, routes) if routes else None
        tokens = self._situation.count(told.text) + FRAMING if told is not None else 0
        if tokens >= sum(insert.tokens for insert in merged):
            return
        for insert in merged:
            self._remove(insert)
        if told is not None:
            self._put(place, told.text, told.routes, letter)

    def _gap(self, entry: int) -> int:
        return bisect_left(self._shown, entry)

    def _lay_gap(self, group: Iterable[Episode], old: Iterable[Insert], weight: int) -> None:
        """One residue for a gap, taking in those that stand in it already."""
        index = self._situation.index
        weight += sum(insert.tokens for insert in old)
        episodes, cues = [*group], [span for episode in group for span in self._spans_of(episode)]
        for insert in old:
            named, called = named_by(index, insert.routes)
            episodes, cues = episodes + named, called + cues
        room, names = self._residues.described, self._residues.named
        residue = Residue(index, episodes, cues, room=room, names=names)
        tokens = self._weigh(residue)
        if residue.cues and tokens > weight * _CUE_SHARE:
            residue = Residue(index, episodes, room=room, names=names)
            tokens = self._weigh(residue)
        if not (residue.described or residue.named) and tokens >= weight:
            return
        for insert in old:
            self._remove(insert)
        self._put(place_of(index, residue.last.start[0]), residue.text(), residue.routes())

    def _merge_oldest(self, episodes: list[Episode]) -> None:
        """One residue for the whole oldest stretch, as long as it takes for lines to weigh half of their budget, where they weigh too much.

        Where descriptions do, the newest stay that weigh three quarters of theirs, and of older ones the names.
        """
        residues = self._residues
        pointers = min(residues.budget, sum(insert.tokens for insert in self._pointers.values()))
        lines = pointers + (residues.budget - pointers) // 2 if episodes or self._weight > residues.budget else residues.budget
        room = residues.described * 3 // 4 if self._described > residues.described else residues.described
        merged: list[Insert] = []
        for insert in sorted(self._standing.values(), key=lambda insert: (insert.before_entry, insert.order, insert.key)):
            if self._weight <= lines and self._described <= room and merged:
                break
            merged.append(insert)
            self._remove(insert)
        if not (merged or episodes):
            return
        index = self._situation.index
        named = [episode for insert in merged for episode in named_by(index, insert.routes)[0]]
        residue = Residue(index, [*episodes, *named], room=room - self._described, names=residues.named - self._named)
        place = max((insert.before_entry for insert in merged), default=0)
        self._put(max(place, place_of(index, residue.last.start[0])), residue.text(), residue.routes())

    def _spans_of(self, episode: Episode) -> Iterator[Span]:
        index = self._situation.index
        for entry, block in self._situation.free.get(episode.ordinal, ()):
            facts = index.entries[entry].blocks[block]
            if facts.kind == "tool_call" and facts.span != NONE and worth_naming(index.spans[facts.span]):
                yield index.spans[facts.span]

    def _weigh(self, residue: Residue) -> int:
        return self._situation.count(residue.text()) + FRAMING

    def _put(self, before_entry: int, text: str, routes: tuple[str, ...], letter: str = "") -> None:
        number = next(self._numbers)
        prefix = f"{letter}{self._prefix[1:]}" if letter else self._prefix
        insert = Insert(
            before_entry=before_entry,
            order=number,
            key=f"{prefix}{number}",
            role=role_of_residue(),
            text=text,
            tokens=self._situation.count(text) + FRAMING,
            routes=routes,
        )
        (self._pointers if letter else self._standing)[insert.key] = self._laid[insert.key] = insert
        self._weigh_in(insert)

    def _weigh_in(self, insert: Insert, sign: int = 1) -> None:
        lines, described, named = _weights(self._situation.index, insert)
        self._weight += sign * lines
        self._described += sign * described
        self._named += sign * named

    def _remove(self, insert: Insert) -> None:
        del (self._pointers if insert.key in self._pointers else self._standing)[insert.key]
        self._weigh_in(insert, -1)
        if self._laid.pop(insert.key, None) is None:
            self._removed.append(Remove(key=insert.key))


def _described(situation: Situation, episode: Episode) -> str:
    return described_only(episode, situation.index.handle(episode.object, episode.start[0]))


def _by_entry(places: Sequence[At]) -> dict[int, list[int]]:
    """The blocks of each entry, in order."""
    entries: dict[int, list[int]] = {}
    for entry, block in places:
        if entry in entries:
            entries[entry].append(block)
        else:
            entries[entry] = [block]
    return entries


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


def _weights(index: Index, insert: Insert) -> tuple[int, int, int]:
    """About what of an insert are lines, descriptions and names."""
    described, named = findings_weight(index, insert.routes) if _is_residue(insert) else (0, 0)
    return max(0, insert.tokens - described - named), described, named


def _is_residue(insert: Insert) -> bool:
    return insert.key.startswith("r")
