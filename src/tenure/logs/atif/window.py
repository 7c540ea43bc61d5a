"""The window of the agent whose trajectory is read: which drafts a copied step repeats, and what a rewriting leaves.

A continuation says again what its agent was given to go on with. Where that is in the same file already it stays in the window.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Draft, Role
from tenure.logs.reader import Rewritten

LONGEST_PROLOGUE: Final = 16  # system drafts before anything else, which every rewriting leaves


class Said(Struct, frozen=True, gc=False):
    """A draft and the step it came from."""

    draft: Draft
    step: int
    copied: bool


class Boundary(Struct, frozen=True, gc=False):
    """A step at which the window was rewritten; -1 between trajectories."""

    event: Rewritten
    step: int


class Window:
    """What the model sees while trajectories of one file are read. Mutable."""

    def __init__(self) -> None:
        self.yielded = 0
        self._live: dict[int, deque[int]] = defaultdict(deque)  # the drafts in the window, by what they say

    def placed(self, said: Sequence[Said | Boundary], *, one_prompt: bool) -> Iterator[Draft | Rewritten]:
        """The drafts of one trajectory, less those that only repeat what stayed; with `one_prompt` its first draft always stays."""
        repeated: dict[int, int] = {}
        prologue: list[int] = []
        opening = True
        for at, item in enumerate(said):
            if isinstance(item, Boundary):
                if self.yielded:
                    matches = self._matches(said, list(_copies(said, at)))
                    repeated |= matches
                    yield self._rewritten(item, {*prologue, *matches.values()})
                continue
            if opening:
                opening = item.draft.role is Role.SYSTEM and not one_prompt
                if (opening or one_prompt) and len(prologue) < LONGEST_PROLOGUE:
                    prologue.append(repeated.get(at, self.yielded))
            if at not in repeated:
                self._live[_key(item.draft)].append(self.yielded)
                self.yielded += 1
                yield item.draft

    def _matches(self, said: Sequence[Said | Boundary], copies: list[int]) -> dict[int, int]:
        """The numbers of the live drafts that say what the copies say."""
        taken: dict[int, int] = defaultdict(int)
        matches: dict[int, int] = {}
        for place in copies:
            key = _key(cast(Said, said[place]).draft)
            found = self._live.get(key, ())
            if taken[key] < len(found):
                matches[place] = found[taken[key]]
                taken[key] += 1
        return matches

    def _rewritten(self, boundary: Boundary, kept: set[int]) -> Rewritten:
        live = ((key, deque(number for number in numbers if number in kept)) for key, numbers in self._live.items())
        self._live = defaultdict(deque, {key: numbers for key, numbers in live if numbers})
        return replace(boundary.event, drop_before=self.yielded, kept=tuple(sorted(kept)))


def _copies(said: Sequence[Said | Boundary], at: int) -> Iterator[int]:
    """Where the copied drafts stand that follow a boundary and what its own step says."""
    own = said[at].step
    for place in range(at + 1, len(said)):
        item = said[place]
        if isinstance(item, Boundary) or (item.step != own and not item.copied):
            return
        if item.step != own:
            yield place


def _key(draft: Draft) -> int:
    return hash((draft.role, tuple((type(block).__name__, block.text) for block in draft.blocks)))
