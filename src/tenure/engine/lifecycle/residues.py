"""How what leaves is named: residues and pointers of one commit, merged so that all of them stay within their budget."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from msgspec import Struct

from tenure.engine.meter.tokens import FRAMING
from tenure.engine.policies.policy import Naming
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Role
from tenure.engine.record.episodes import Episode
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.view.edit import LETTERS, Edit, Insert, Remove, Standing
from tenure.engine.view.project import Projection
from tenure.engine.view.residue import (
    DESCRIPTION_SHARE,
    NAME_SHARE,
    Residue,
    ResidueLine,
    described_only,
    findings_weight,
    is_pointer,
    is_stretch,
    is_whole,
    named_by,
    place_of,
    start_of,
    stretch_line,
    turn_line,
    worth_naming,
)

RESIDUE_SHARE: Final = 0.05  # of the limit: what all residues together may weigh, apart from what was found in expl episodes
LINE_RESERVE: Final = 60  # tokens set aside for one episode's part of a residue
CUE_SHARE: Final = 0.25  # a residue that weighs more than this share of what it stands for names no calls


class Residues(Struct, frozen=True, kw_only=True):
    """How removals are named, and the o200k tokens that it may take."""

    naming: Naming = "lines"
    budget: int = 4_000  # of lines and pointers
    described: int = 6_400  # for the descriptions of expl episodes that have left; the newest stay
    named: int = 4_000  # for the names of older ones

    @classmethod
    def of(cls, limit: int, naming: Naming) -> "Residues":
        """Their shares of a limit."""
        budget, described, named = (int(limit * share) for share in (RESIDUE_SHARE, DESCRIPTION_SHARE, NAME_SHARE))
        return cls(naming=naming, budget=budget, described=described, named=named)


def key_of(kind: Standing, suffix: str) -> str:
    """The key of an insert: its first letter tells a reader of a log what it stands for."""
    return f"{LETTERS[kind]}{suffix}"


def inserted(situation: Situation, kind: Standing, key: str, place: int, order: int, line: ResidueLine) -> Insert:
    """An entry of the harness's words; every provider accepts a user message between exchanges."""
    return Insert(
        before_entry=place,
        order=order,
        key=key,
        role=Role.USER,
        text=line.text,
        tokens=situation.count(line.text) + FRAMING,
        routes=line.routes,
        stands_for=kind,
    )


def weights(index: Index, insert: Insert) -> tuple[int, int, int]:
    """About what of an insert are lines, descriptions and names."""
    described, named = findings_weight(index, insert.routes) if insert.stands_for == "episodes" else (0, 0)
    return max(0, insert.tokens - described - named), described, named


class Layout:
    """The residues of one commit, laid so that all residues together keep their budget."""

    def __init__(self, situation: Situation, view: Projection, residues: Residues, number: str) -> None:
        """`number` tells this commit's keys from all others."""
        self._situation, self._index = situation, situation.index
        self._residues = residues
        self._number = number
        self._shown = [row.entry for row in view.rows()]
        self._standing = {insert.key: insert for insert in view.inserts if insert.stands_for == "episodes"}
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
        index = self._index
        episodes = [index.episodes[ordinal] for ordinal in sorted(gone)]
        if self._residues.naming == "lines":
            self._lay_lines(episodes, gone)
        elif self._residues.naming == "descriptions":
            for episode in episodes:
                if episode.description:
                    routes = (index.handle(episode.object, episode.start[0]),)
                    line = ResidueLine(text=described_only(index, episode), routes=routes)
                    self._put("episodes", place_of(index, episode.start[0]), line)
        return [*self._removed, *self._laid.values()]

    def _lay_lines(self, episodes: Iterable[Episode], gone: Mapping[int, int]) -> None:
        """One residue for each gap between shown entries, newest first; what their budget does not hold is merged."""
        groups: dict[int, list[Episode]] = {}
        for episode in episodes:
            groups.setdefault(self._gap(episode.start[0]), []).append(episode)
        standing: dict[int, list[Insert]] = {}
        for insert in self._standing.values():
            standing.setdefault(self._gap(insert.before_entry), []).append(insert)
        left: list[Episode] = []
        residues = self._residues
        for gap, group in reversed(groups.items()):
            if self._weight > residues.budget:
                left += group
            else:
                self._lay_gap(group, standing.get(gap, []), sum(gone[episode.ordinal] for episode in group))
        if left or self._weight > residues.budget or self._described > residues.described or self._named > residues.named:
            self._merge_oldest(left)

    def _bound_pointers(self, changed_from: int) -> None:
        """Merge pointers to folded objects when all residues together are over their budget, down to half of what the others leave.

        First older ones behind the first change, where the prefix is broken already. Then the oldest of all, which may break it further, and
        therefore seldom: what they are merged into makes room for many commits. What this commit folds is merged last.
        """
        budget, weight = self._residues.budget, self._pointed()
        goal = max((budget - self._weight + weight) // 2, budget // 4)
        for start, spared in ((changed_from, True), (0, False)):
            if self._weight <= budget or weight <= goal:
                return
            self._merge_turns(self._pointers_from(start, spared=spared), self._weight - weight + goal)
            weight = self._pointed()
        if weight > goal + goal // 2:  # else so little room was made that the next commit would be back here
            self._merge_stretch(self._pointers_from(0, spared=False), self._weight - weight + goal)

    def _pointed(self) -> int:
        """The tokens of all pointers."""
        return sum(insert.tokens for insert in self._pointers.values())

    def _merge_turns(self, pointers: Iterable[Insert], goal: int) -> None:
        """One line for each turn's pointers, oldest turn first, until all residues together weigh `goal`."""
        groups: dict[int, list[Insert]] = {}
        for insert in pointers:
            if not is_stretch(insert):
                turn = self._index.entries[start_of(self._index, insert.routes[0])[0]].turn
                groups.setdefault(turn, []).append(insert)
        for group in groups.values():
            if self._weight <= goal:
                return
            if len(group) > 1 or group[0].stands_for != "turn":
                self._merge_pointers("turn", max(insert.before_entry for insert in group), group, turn_line)

    def _merge_stretch(self, pointers: Iterable[Insert], goal: int) -> None:
        """One line for the oldest pointers and lines, as many as it takes for all residues together to weigh `goal`."""
        merged: list[Insert] = []
        left = self._weight
        for insert in pointers:
            if left <= goal - LINE_RESERVE:
                break
            merged.append(insert)
            left -= insert.tokens
        if len(merged) > 1 or (merged and not is_stretch(merged[0])):
            self._merge_pointers("stretch", max(insert.before_entry for insert in merged), merged, stretch_line)

    def _pointers_from(self, start: int, *, spared: bool) -> list[Insert]:
        """Those at or behind an entry, in order. `spared`: without this commit's own, of which the lines for stretches are always spared."""
        own = key_of("object", self._number)
        standing = [
            insert
            for insert in self._pointers.values()
            if insert.before_entry >= start and not (insert.key.startswith(own) and (spared or is_stretch(insert)))
        ]
        return sorted(standing, key=lambda each: (each.before_entry, start_of(self._index, each.routes[0]), each.key))

    def _merge_pointers(
        self, kind: Standing, place: int, merged: Sequence[Insert], line_of: Callable[[Index, Iterable[str]], ResidueLine]
    ) -> None:
        """A line in place of pointers, unless it would be no lighter; what has come back is not named any more."""
        index, view = self._index, self._view
        routes = [route for each in merged for route in each.routes if is_stretch(each) or not is_whole(index, view, route)]
        line = line_of(index, routes) if routes else None
        if (self._weigh(line.text) if line is not None else 0) >= sum(insert.tokens for insert in merged):
            return
        for insert in merged:
            self._remove(insert)
        if line is not None:
            self._put(kind, place, line)

    def _lay_gap(self, group: Iterable[Episode], old: Iterable[Insert], weight: int) -> None:
        """One residue for a gap, taking in those that stand in it already."""
        index = self._index
        weight += sum(insert.tokens for insert in old)
        episodes, cues = [*group], [span for episode in group for span in self._spans_of(episode)]
        for insert in old:
            named, calls = named_by(index, insert.routes)
            episodes, cues = episodes + named, calls + cues
        room, names = self._residues.described, self._residues.named
        residue = Residue(index, episodes, cues, room=room, names=names)
        tokens = self._weigh(residue.text())
        if residue.cues and tokens > weight * CUE_SHARE:
            residue = Residue(index, episodes, room=room, names=names)
            tokens = self._weigh(residue.text())
        if not (residue.described or residue.named) and tokens >= weight:
            return
        for insert in old:
            self._remove(insert)
        place = self._behind_systems(place_of(index, residue.last.start[0]))
        self._put("episodes", place, ResidueLine(text=residue.text(), routes=residue.routes()))

    def _merge_oldest(self, episodes: list[Episode]) -> None:
        """One residue for the whole oldest stretch, as long as it takes for lines to weigh half of their budget, where they weigh too much.

        Where descriptions do, the newest stay that weigh three quarters of theirs, and of older ones the names.
        """
        residues = self._residues
        pointers = min(residues.budget, self._pointed())
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
        index = self._index
        named = [episode for insert in merged for episode in named_by(index, insert.routes)[0]]
        residue = Residue(index, [*episodes, *named], room=room - self._described, names=residues.named - self._named)
        place = max(place_of(index, residue.last.start[0]), *(insert.before_entry for insert in merged), 0)
        self._put("episodes", self._behind_systems(place), ResidueLine(text=residue.text(), routes=residue.routes()))

    def _gap(self, place: int) -> int:
        """Between which shown entries words for what stood at a place go."""
        return bisect_left(self._shown, self._behind_systems(place))

    def _behind_systems(self, place: int) -> int:
        """Where words for what stood at a place go: behind the next exchange, where the message before is a system's.

        Where a system's messages stand between the others, each waits behind the words of a user: directly behind it ours would push it back, and
        with it what the provider has cached.
        """
        entries, gap = self._index.entries, bisect_left(self._shown, place)
        shown = self._shown[gap : gap + 1]
        if not (self._situation.rules.system_messages and gap and shown) or entries[shown[0]].role is not Role.ASSISTANT:
            return place
        if entries[self._shown[gap - 1]].role is not Role.SYSTEM:
            return place
        place = shown[0] + 1
        while place < len(entries) and not entries[place].at_rest:
            place += 1
        return place

    def _spans_of(self, episode: Episode) -> Iterator[Span]:
        index = self._index
        for entry, block in self._situation.free.get(episode.ordinal, ()):
            facts = index.entries[entry].blocks[block]
            if facts.kind == "tool_call" and facts.span != NONE and worth_naming(index.spans[facts.span]):
                yield index.spans[facts.span]

    def _weigh(self, text: str) -> int:
        return self._situation.count(text) + FRAMING

    def _put(self, kind: Standing, place: int, line: ResidueLine) -> None:
        order = next(self._numbers)
        insert = inserted(self._situation, kind, key_of(kind, f"{self._number}{order}"), place, order, line)
        (self._standing if kind == "episodes" else self._pointers)[insert.key] = self._laid[insert.key] = insert
        self._weigh_in(insert)

    def _weigh_in(self, insert: Insert, sign: int = 1) -> None:
        lines, described, named = weights(self._index, insert)
        self._weight += sign * lines
        self._described += sign * described
        self._named += sign * named

    def _remove(self, insert: Insert) -> None:
        del (self._pointers if insert.key in self._pointers else self._standing)[insert.key]
        self._weigh_in(insert, -1)
        if self._laid.pop(insert.key, None) is None:
            self._removed.append(Remove(key=insert.key))
