"""The commits of a run, each with the objects that it touched and what left of them."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.view.edit import Act
from tenure.lab.audit.report import COMMITS, OBJECTS, Gone, Removal
from tenure.lab.events import At, CommitLine

RECORDED: Final = "recorded"  # the moment of what the recorded agent did itself, and what it is called as an action
NOT_OWN: Final = frozenset(
    {RECORDED, "admission"}
)  # moments of what no policy chose: a late result whose call is gone leaves too
PIECES: Final = "entry:"  # an action on such an object takes pieces of several


class _Sum(Struct):
    act: Act
    tokens: int = 0


class Attributed:
    """What left of each object in one commit. Mutable.

    A block belongs to the object of the commit's actions that it is part of; where there is none (an action may take pieces of many objects
    under one pointer), to the object that it is part of itself.
    """

    def __init__(self, actions: Sequence[Act]) -> None:
        self._actions = actions
        self._by_object = {act.object: act for act in actions}
        self._pieces = next((act.kind for act in actions if act.object.startswith(PIECES)), "")
        self._sums: dict[str, _Sum] = {act.object: _Sum(act) for act in actions}

    def take(self, at: At, objects: Iterable[str], tokens: int) -> None:
        """So many tokens of a block left; less than none came back."""
        names = (*objects, f"{PIECES}{at[0]}/{at[1]}", f"{PIECES}{at[0]}")
        act = next((self._by_object[name] for name in names if name in self._by_object), None)
        if act is None:
            act = Act(kind=self._pieces or (self._actions[0].kind if self._actions else RECORDED), object=names[0])
        self._sums.setdefault(act.object, _Sum(act)).tokens += tokens

    def removal(self, line: CommitLine) -> Removal:
        """The commit as a report has it."""
        gone = [
            Gone(object=each.act.object, kind=each.act.kind, level=each.act.level, tokens=each.tokens)
            for each in self._sums.values()
        ]
        gone.sort(key=lambda each: (-each.tokens, each.object))
        return Removal(
            commit=line.commit,
            before_call=line.before_call,
            entries=line.entries,
            policy=line.policy,
            moment=line.moment,
            why=line.reason,
            forced=line.forced,
            ratio=line.ratio,
            tokens_before=line.tokens_before,
            tokens_after=line.tokens_after,
            actions=dict(sorted(Counter(act.kind for act in line.actions).items())),
            objects=tuple(gone[:OBJECTS]),
            more=max(0, len(gone) - OBJECTS),
        )


class Ends:
    """The first and the last of many commits. Mutable."""

    def __init__(self, most: int = COMMITS) -> None:
        self._first: list[Removal] = []
        self._last: deque[Removal] = deque(maxlen=most // 2)
        self._half = most // 2

    def take(self, removal: Removal) -> None:
        """The next."""
        (self._first if len(self._first) < self._half else self._last).append(removal)

    @property
    def kept(self) -> tuple[Removal, ...]:
        """As many as a report lists."""
        return (*self._first, *self._last)
