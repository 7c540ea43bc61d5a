"""What Codex's model had in its window: the drafts so far, less what compactions and rollbacks took out."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

USER_TOKENS: Final = 20_000  # of user messages that a compaction without a written-out history keeps, newest first
BYTES_A_TOKEN: Final = 4  # as Codex estimates

_MOST_KEPT: Final = 2**22  # drafts named by all changes of one file together; only a file made to hurt has more


class Place(Struct, frozen=True, kw_only=True, gc=False):
    """A draft, as far as changes of the window ask about it."""

    keys: tuple[int, ...] = ()  # one per item that the draft is made of
    calls: frozenset[int] = frozenset()  # those of them that call a tool
    asks: bool = False  # a human's message, or another agent's: a turn starts here
    context: bool = False  # the harness's words
    fixed: bool = False  # the system prompt, which no change of the history touches
    size: int = 0  # bytes of text, of what a human wrote
    number: int = 0  # in the order of all drafts


class Window:
    """Mutable while a file is read."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._turns: list[int] = []  # where in `_places` a turn starts
        self._named = 0

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: Place) -> None:
        """Put the newest draft in."""
        if place.asks:
            self._turns.append(len(self._places))
        self._places.append(place)

    def replace(self, keys: Sequence[int]) -> tuple[tuple[int, ...], list[int]] | None:
        """Let only items with these keys stay: the drafts that hold one, and which of the keys are of no draft.

        The newest of equal drafts stays. None when the file changes its window beyond measure.
        """
        if self._named > _MOST_KEPT:
            return None
        found: dict[int, list[int]] = {}
        for at, place in enumerate(self._places):
            for key in place.keys:
                found.setdefault(key, []).append(at)
        stayed: dict[int, list[int]] = {at: [] for at, place in enumerate(self._places) if place.fixed}
        new: list[int] = []
        for n in range(len(keys) - 1, -1, -1):
            if at := found.get(keys[n]):
                stayed.setdefault(at.pop(), []).append(n)
            else:
                new.append(n)
        for at in [at for at in stayed if not self._places[at].calls <= {keys[n] for n in stayed[at]}]:
            new += stayed.pop(
                at
            )  # words that stayed without the calls beside them: the draft cannot stay, its calls would be open
        return self._keep(set(stayed)), sorted(new)

    def shrink(self) -> tuple[int, ...] | None:
        """Let only what every request starts with and the newest user messages stay, as Codex does beside its summary."""
        if self._named > _MOST_KEPT:
            return None
        first = self._turns[0] if self._turns else len(self._places)
        kept = {at for at, place in enumerate(self._places) if place.fixed or (at < first and place.context)}
        left = USER_TOKENS
        for at in reversed(self._turns):
            left -= -(-self._places[at].size // BYTES_A_TOKEN)
            if left < 0:  # Codex keeps the two ends of this one; which, only its own code could tell
                break
            kept.add(at)
        return self._keep(kept)

    def roll_back(self, turns: int) -> tuple[int, ...] | None:
        """Take the newest turns out, with the context written for the oldest of them; the drafts that stay. None like `replace`."""
        if turns <= 0 or not self._turns:
            return tuple(place.number for place in self._places)
        first = self._turns[0]
        cut = self._turns[-turns] if turns <= len(self._turns) else first
        while cut > first and self._places[cut - 1].context:
            cut -= 1
        del self._places[cut:]
        while self._turns and self._turns[-1] >= cut:
            self._turns.pop()
        self._named += len(self._places)
        return None if self._named > _MOST_KEPT else tuple(place.number for place in self._places)

    def _keep(self, kept: set[int]) -> tuple[int, ...]:
        places = [self._places[at] for at in sorted(kept)]
        self._places, self._turns = [], []
        for place in places:
            self.add(place)
        self._named += len(places)
        return tuple(place.number for place in places)
