"""The one loop that all policies share: apply actions until the view fits. Promise: nothing is broken.

What a policy proposes is compiled to edits on a copy of the view and counted as it goes; the result is a rehearsal, which changes nothing
until it is committed.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, assert_never

from msgspec import Struct

from tenure.policies.policy import Policy
from tenure.policies.situation import Situation
from tenure.record.episodes import Episode
from tenure.record.index import NONE, Span
from tenure.view.action import Action, Strip, Unstrip
from tenure.view.edit import Act, Drop, Edit, Insert, Remove, Restore
from tenure.view.guard import At
from tenure.view.levels import at_level
from tenure.view.project import Projection
from tenure.view.residue import Residue, described_only, named_by, place_of, role_of_residue, worth_naming
from tenure.view.thinking import invalidated, is_bound, settle

FRAMING: Final = 4  # tokens an entry costs beside its text
RESIDUE_SHARE: Final = 0.05  # of the limit: what all residues together may weigh
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
    budget: int = 4_000


def fit(situation: Situation, policy: Policy, target: int, residues: Residues, prefix: str) -> Rehearsal:
    """Apply actions one by one, stopping at the first view of at most `target` o200k tokens. Keys of inserts start with `prefix`."""
    draft = _Draft(situation, residues, prefix)
    actions = policy(situation)
    goal, exhausted = target, False
    while True:
        while draft.tokens > goal and not exhausted:
            action = next(actions, None)
            exhausted = action is None
            if action is not None:
                draft.apply(action)
        rehearsal = draft.finish(exhausted=exhausted)
        if exhausted or rehearsal.tokens_after <= target:
            return rehearsal
        goal -= rehearsal.tokens_after - target  # residues came out heavier than reserved


class _Draft:
    """A rehearsal in the making."""

    def __init__(self, situation: Situation, residues: Residues, prefix: str) -> None:
        self._situation = situation
        self._residues = residues
        self._prefix = prefix
        self._view = situation.view.copy()
        self._edits: list[Edit] = []
        self._actions: list[Act] = []
        self._gone: dict[int, int] = {}  # fully evicted episode -> tokens it weighed
        self._weight: dict[int, int] = {}
        self._reserve = 0

    @property
    def tokens(self) -> int:
        """What the view would weigh, residues included as far as they can be foreseen."""
        return self._view.tokens + self._reserve

    def apply(self, action: Action) -> None:
        """Compile one action and carry it out; one that would change nothing leaves no trace."""
        match action:
            case Strip(episode=ordinal, level=level):
                before = self._view.tokens
                chosen = [at for at in self._situation.free.get(ordinal, ()) if at_level(self._situation.index, at, level)]
                edits: list[Edit] = list(self._drops(chosen))
                self._carry_out(edits)
                self._weight[ordinal] = self._weight.get(ordinal, 0) + before - self._view.tokens
                self._note(Act(kind="strip", object=self._object(ordinal), level=str(level)), edits)
                self._leave(ordinal)
            case Unstrip(episode=ordinal):
                edits = list(self._restores(ordinal))
                self._carry_out(edits)
                self._note(Act(kind="restore", object=self._object(ordinal)), edits)
            case _:
                assert_never(action)

    def finish(self, *, exhausted: bool) -> Rehearsal:
        """The rehearsal so far, residues laid and bound reasoning gone; the draft can be continued afterwards."""
        view = self._view.copy()
        edits = [*self._edits]
        laid = _Laying(self._situation, view, self._residues, self._prefix).lay(self._gone)
        view.apply(laid)
        edits += laid
        changed_from = _changed_from(self._situation.view, edits)
        if self._situation.rules.thinking == "prefix_bound" and edits:
            spoilt = list(invalidated(self._situation.index, view, changed_from))
            view.apply(spoilt)
            edits += spoilt
        return Rehearsal(
            actions=tuple(self._actions),
            edits=tuple(edits),
            tokens_before=self._situation.view.tokens,
            tokens_after=view.tokens,
            changed_from=changed_from,
            exhausted=exhausted,
        )

    def _carry_out(self, edits: list[Edit]) -> None:
        self._view.apply(edits)
        self._edits += edits

    def _note(self, act: Act, edits: list[Edit]) -> None:
        if edits:
            self._actions.append(act)

    def _object(self, ordinal: int) -> str:
        return self._situation.index.episodes[ordinal].object

    def _drops(self, chosen: list[At]) -> Iterator[Drop]:
        by_entry: dict[int, set[int]] = {}
        for entry, block in chosen:
            if self._view.shows(entry, block):
                by_entry.setdefault(entry, set()).add(block)
        situation = self._situation
        for entry, blocks in by_entry.items():
            row = self._view.row(entry)
            assert row is not None
            bound = is_bound(situation.index, situation.rules, situation.loop_start, entry)
            for block in sorted(settle(situation.index, entry, row.blocks, blocks, bound=bound)):
                yield Drop(entry=entry, block=block)

    def _restores(self, ordinal: int) -> Iterator[Restore]:
        index = self._situation.index
        for entry in index.entries_of(index.episodes[ordinal]):
            for block, facts in enumerate(index.entries[entry].blocks):
                if facts.episode == ordinal and not self._view.shows(entry, block):
                    yield Restore(entry=entry, block=block)

    def _leave(self, ordinal: int) -> None:
        """Remember an episode that is fully evicted now, and set tokens aside for its residue."""
        situation = self._situation
        if ordinal in self._gone or situation.held.get(ordinal):
            return
        if any(self._view.shows(*at) for at in situation.free.get(ordinal, ())):
            return
        weight = self._weight.get(ordinal, 0)
        self._gone[ordinal] = weight
        description = situation.index.episodes[ordinal].description
        if self._residues.lines:
            self._reserve += min(_LINE_RESERVE, int(weight * _CUE_SHARE)) + (situation.count(description) if description else 0)
        elif description:
            self._reserve += situation.count(_described(situation, situation.index.episodes[ordinal])) + FRAMING


class _Laying:
    """Lays the residues of one commit and keeps all residues within their budget."""

    def __init__(self, situation: Situation, view: Projection, residues: Residues, prefix: str) -> None:
        self._situation = situation
        self._view = view
        self._residues = residues
        self._prefix = prefix
        self._shown = [row.entry for row in view.rows()]
        self._standing = {insert.key: insert for insert in view.inserts if _is_residue(insert)}
        self._edits: list[Edit] = []
        self._laid = 0

    def lay(self, gone: dict[int, int]) -> list[Edit]:
        """The edits that name the episodes `gone`, each with the tokens it weighed."""
        episodes = [self._situation.index.episodes[ordinal] for ordinal in sorted(gone)]
        if not self._residues.lines:
            for episode in episodes:
                if episode.description:
                    self._insert(
                        place_of(self._situation.index, episode.start[0]), _described(self._situation, episode), (episode,)
                    )
            return self._edits
        for group in self._gaps(episodes).values():
            self._lay_gap(group, sum(gone[episode.ordinal] for episode in group))
        self._keep_within_budget()
        return self._edits

    def _gaps(self, episodes: list[Episode]) -> dict[int, list[Episode]]:
        """The episodes by the gap between shown entries in which they stood."""
        gaps: dict[int, list[Episode]] = {}
        for episode in episodes:
            gaps.setdefault(bisect_left(self._shown, episode.start[0]), []).append(episode)
        return gaps

    def _lay_gap(self, group: list[Episode], weight: int) -> None:
        """One residue for a gap, taking in those that stand in it already."""
        index = self._situation.index
        gap = bisect_left(self._shown, group[0].start[0])
        old = [insert for insert in self._standing.values() if bisect_left(self._shown, insert.before_entry) == gap]
        weight += sum(insert.tokens for insert in old)
        episodes, cues = [*group], [span for episode in group for span in self._spans_of(episode)]
        for insert in old:
            named, called = named_by(index, insert.routes)
            episodes, cues = episodes + named, called + cues
        residue = Residue(index, episodes, cues)
        if self._weigh(residue) > weight * _CUE_SHARE:
            residue = residue.without_cues()
        if not residue.described and self._weigh(residue) >= weight:
            return
        for insert in old:
            self._remove(insert)
        self._insert_residue(place_of(index, residue.last.start[0]), residue)

    def _keep_within_budget(self) -> None:
        """Merge the oldest residues into one line for their whole stretch once all together weigh too much."""
        total = sum(insert.tokens for insert in self._standing.values())
        if total <= self._residues.budget:
            return
        merged: list[Insert] = []
        for insert in sorted(self._standing.values(), key=lambda insert: (insert.before_entry, insert.order, insert.key)):
            if total <= self._residues.budget // 2 and len(merged) > 1:
                break
            merged.append(insert)
            total -= insert.tokens
        episodes = [episode for insert in merged for episode in named_by(self._situation.index, insert.routes)[0]]
        for insert in merged:
            self._remove(insert)
        self._insert_residue(merged[-1].before_entry, self._cut(Residue(self._situation.index, episodes)))

    def _cut(self, residue: Residue) -> Residue:
        """The residue with its newest descriptions only, as many as half of the budget holds."""
        room = self._residues.budget // 2
        kept: list[Episode] = []
        for episode in reversed(residue.described):
            room -= self._situation.count(episode.description) + 12
            if room < 0:
                break
            kept.append(episode)
        return residue.describing(kept)

    def _spans_of(self, episode: Episode) -> Iterator[Span]:
        index = self._situation.index
        for entry, block in self._situation.free.get(episode.ordinal, ()):
            facts = index.entries[entry].blocks[block]
            if facts.kind == "tool_call" and facts.span != NONE and worth_naming(index.spans[facts.span]):
                yield index.spans[facts.span]

    def _weigh(self, residue: Residue) -> int:
        return self._situation.count(residue.text()) + FRAMING

    def _insert_residue(self, before_entry: int, residue: Residue) -> None:
        self._put(before_entry, residue.text(), residue.routes())

    def _insert(self, before_entry: int, text: str, named: tuple[Episode, ...]) -> None:
        self._put(before_entry, text, tuple(self._situation.index.handle(e.object, e.start[0]) for e in named))

    def _put(self, before_entry: int, text: str, routes: tuple[str, ...]) -> None:
        insert = Insert(
            before_entry=before_entry,
            order=self._laid,
            key=f"{self._prefix}{self._laid}",
            role=role_of_residue(),
            text=text,
            tokens=self._situation.count(text) + FRAMING,
            routes=routes,
        )
        self._laid += 1
        self._standing[insert.key] = insert
        self._edits.append(insert)

    def _remove(self, insert: Insert) -> None:
        del self._standing[insert.key]
        if insert in self._edits:
            self._edits.remove(insert)
        else:
            self._edits.append(Remove(key=insert.key))


def _described(situation: Situation, episode: Episode) -> str:
    return described_only(episode, situation.index.handle(episode.object, episode.start[0]))


def _is_residue(insert: Insert) -> bool:
    return insert.key.startswith("r")


def _changed_from(view: Projection, edits: list[Edit]) -> int:
    """The first record entry at or after which edits change the view; the record's length when there are none."""
    first = view.length
    for edit in edits:
        match edit:
            case Insert(before_entry=entry):
                first = min(first, entry)
            case Remove(key=key):
                standing = view.insert(key)
                first = min(first, standing.before_entry if standing else first)
            case _:
                first = min(first, edit.entry)
    return first
