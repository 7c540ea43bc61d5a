"""What the model still sees, as far as something left."""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.view.edit import Drop, Edit, Insert, Remove, Replace, Restore
from tenure.lab.events import At
from tenure.lab.harm.holdings import Held, holds
from tenure.lab.harm.passage import plain


class Taken(Struct, frozen=True, gc=False):
    """What happened to a block: by which commit, how long the record was then, and what stands in its place."""

    commit: int
    entries: int
    instead: str = ""


class Residue(Struct, frozen=True, gc=False):
    """A text that a commit put into the view, and the handles that it says it names."""

    text: str
    routes: tuple[str, ...]


class Window:
    """The view, told by commits. Mutable."""

    def __init__(self) -> None:
        self.taken: dict[At, Taken] = {}
        self.unseen: set[At] = set()  # by the recorded agent itself, when it went on
        self._residues: dict[str | At, Residue] = {}  # by key of the inserted entry, or by the place of the replaced block

    def commit(self, number: int, entries: int, edits: tuple[Edit, ...], *, recorded: bool = False) -> None:
        """Take in a commit. O(its edits), and O(what had left) of one that the recorded agent made itself."""
        last = -1
        for edit in edits:
            match edit:
                case Drop():
                    self._take((edit.entry, edit.block), Taken(number, entries))
                    last = max(last, edit.entry)
                case Replace():
                    at, text = (edit.entry, edit.block), plain(edit.text)
                    self._take(at, Taken(number, entries, text))
                    self._residues[at] = Residue(text, edit.routes)
                case Restore():
                    self.taken.pop((edit.entry, edit.block), None)
                    self._residues.pop((edit.entry, edit.block), None)
                case Insert():
                    self._residues[edit.key] = Residue(plain(edit.text), edit.routes)
                case Remove():
                    self._residues.pop(edit.key, None)
        if recorded:
            self.unseen |= {(edit.entry, edit.block) for edit in edits if isinstance(edit, Drop | Replace)}
            self.unseen |= {at for at in self.taken if at[0] <= last}

    def shows(self, held: Held, text: str) -> bool:
        """Whether a passage still shows a text that it held."""
        taken = self.taken.get(held.at)
        return taken is None or (bool(taken.instead) and holds(taken.instead, text))

    def residues(self) -> Iterator[Residue]:
        """What commits put into the view and stands there now."""
        return iter(self._residues.values())

    def says(self, text: str) -> bool:
        """Whether a residue holds a text."""
        return any(text in residue.text and holds(residue.text, text) for residue in self._residues.values())

    def _take(self, at: At, taken: Taken) -> None:
        self._residues.pop(at, None)
        before = self.taken.get(at)
        # What was replaced before and is dropped now had left already, unless the replacement was all that showed it.
        self.taken[at] = taken if before is None or before.instead else before
