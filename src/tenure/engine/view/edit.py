"""The five edits that exist below every action, and the commit that carries them.

An edit names record entries by their place in the append-only chain, so it means the same on every machine and in every fork
that shares those entries. A commit is the only thing that changes a view.
"""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenure.engine.record.entry import Role


class Drop(Struct, frozen=True, kw_only=True, gc=False, tag="drop", tag_field="op"):
    """Take one block out of the view."""

    entry: int
    block: int


class Replace(Struct, frozen=True, kw_only=True, tag="replace", tag_field="op"):
    """Show `text` in place of a block. `routes` are the handles that the text names."""

    entry: int
    block: int
    text: str
    tokens: int
    routes: tuple[str, ...] = ()


Standing = Literal["episodes", "object", "turn", "stretch", "history"]


class Insert(Struct, frozen=True, kw_only=True, tag="insert", tag_field="op"):
    """Add an entry of one block before record entry `before_entry`; several at one place stand by `order`, then by `key`."""

    before_entry: int
    order: int
    key: str  # unique within the conversation, for ever
    role: Role
    text: str
    tokens: int  # framing included
    kind: Literal["text"] = "text"  # this and the next two are of version 1 of REPLAY.md, which could hold calls
    call_id: str = ""
    name: str = ""
    routes: tuple[str, ...] = ()
    stands_for: Standing | UnsetType = UNSET  # what left: episodes, a folded object, those of a turn or stretch, history


class Remove(Struct, frozen=True, kw_only=True, gc=False, tag="remove", tag_field="op"):
    """Take an inserted entry out again."""

    key: str


class Restore(Struct, frozen=True, kw_only=True, gc=False, tag="restore", tag_field="op"):
    """Show the record's own text of a block again."""

    entry: int
    block: int


Edit = Drop | Replace | Insert | Remove | Restore

Moment = Literal["admission", "before-call", "turn-end", "task-boundary", "idle", "manual", "recorded"]


class LoggedAction(Struct, frozen=True, kw_only=True, gc=False):
    """An action as the log keeps it: what was done (`kind`, perhaps a `level`) to which object, and why, where a planner said so."""

    kind: str
    object: str
    level: str = ""
    reason: str | UnsetType = UNSET  # in a planner's words


class Price(Struct, frozen=True, kw_only=True, gc=False):
    """The numbers behind a commit; DESIGN.md, Lifecycle. Money in USD, the rest in tokens or counts."""

    gain_usd: float
    d: int  # tokens removed, net of residue
    s: int  # tokens after the earliest changed position
    n: float  # calls still expected
    p: float  # probability that the cache is warm
    w: float  # USD per token written to the cache
    r: float  # USD per token read from the cache
    g: float = 0.0  # planning cost
    misses: float = 0.0  # expected recalls
    recall: float = 0.0  # USD per recall

    @property
    def spared_usd(self) -> float:
        """What the calls to come do not pay for what left: reading it each time, and writing it first, where the cache is cold."""
        return self.d * (self.w + self.r * (self.n - 1) - self.p * (self.w - self.r))

    @property
    def lost_usd(self) -> float:
        """What it costs if the session ends with the next call: the rest of `spared_usd` comes with the calls behind that."""
        return (self.w - self.r) * (self.p * (self.s + self.d) - self.d) - self.r * self.d + self.g

    @property
    def broken_usd(self) -> float:
        """What it costs more to write again what stands behind the change than to read it."""
        return self.p * (self.w - self.r) * self.s


class Commit(Struct, frozen=True, kw_only=True):
    """An accepted plan as compiled edits, the `n`-th of its conversation."""

    n: int
    entries: int  # record length when it was made; its edits touch only entries below
    policy: str
    moment: Moment
    reason: str
    forced: bool = False
    head: int = 0  # o200k tokens in front of the view that change with it, such as by a tool that is offered from then on
    tokens_before: int = 0  # o200k, of the view without head and notes
    tokens_after: int = 0
    ratio: float = 1.0  # provider tokens per o200k token, frozen here
    actions: tuple[LoggedAction, ...] = ()
    edits: tuple[Edit, ...] = ()
    price: Price | None = None


# The first letter of an insert's key, in which version 1 kept what it stands for.
LETTERS: Final[dict[Standing, str]] = {"episodes": "r", "object": "p", "turn": "t", "stretch": "s", "history": "p"}
_KINDS: Final = {letter: kind for kind, letter in LETTERS.items()}


def edits_v1_to_v2(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits as version 1 wrote them: of what a key with a `p` stands for, a brief alone names no routes."""

    def upgraded(insert: Insert) -> Insert:
        kind = _KINDS.get(insert.key[:1], UNSET)
        return replace(insert, stands_for="object" if kind == "history" and insert.routes else kind)

    return tuple(upgraded(edit) if isinstance(edit, Insert) and edit.stands_for is UNSET else edit for edit in edits)


def edits_v2_to_v1(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The inverse, for the lines of REPLAY.md."""
    return tuple(replace(edit, stands_for=UNSET) if isinstance(edit, Insert) else edit for edit in edits)
