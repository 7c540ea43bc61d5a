"""The events that measurements of whole sessions write as JSON lines, and all tables of events that SQL sees."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from tenure.lab.events import (
    Bill,
    BudgetLine,
    CallLine,
    CommitLine,
    EditTarget,
    EntryLine,
    HarmLine,
    HoldLine,
    PlanLine,
    ProtectLine,
    RecallLine,
    ReplayLine,
    SkippedLine,
    Sum,
    SummaryLine,
    UnmetLine,
)


class Misses(Sum, frozen=True, kw_only=True):
    """Needs that a removal touched, once each at their first use after it; what was only thought is not counted."""

    visible: int = 0  # the view still showed it
    routed: int = 0  # one recall away
    lost: int = 0
    calls: int = 0  # answers of the model that missed something
    listed: int = 0  # of the visible: shown only as a name in a list of names
    objects: int = 0  # of which something was missed, once each
    edits: int = 0  # whose text to find had been touched
    broken_edits: int = 0  # of those: the view does not show all of it together

    @property
    def missed(self) -> int:
        """Needs that the view did not show, with a way back or without."""
        return self.routed + self.lost


class Measured(Struct, frozen=True, kw_only=True):
    """One replay, or several added up. Tokens are o200k, but those of the bill, which are the provider's."""

    sessions: int  # replays in it
    entries: int
    calls: int
    record_tokens: int
    view_tokens: int  # of all requests together, heads included
    peak_view_tokens: int  # of the largest request, head included
    commits: int  # that a policy or a plan made
    prefix_breaks: int  # calls that could not stand on the whole request before them
    bill: Bill
    misses: Misses
    evicted_tokens: int  # net of what stands in their place
    evicted_by_kind: dict[str, int]
    unmet: int  # calls before which a limit could not be met
    violations: tuple[str, ...]


class IsolatedRun(Struct, frozen=True, kw_only=True, tag="isolated", tag_field="type"):
    """One session under one policy and one budget."""

    source: str
    policy: str
    budget: BudgetLine
    head_tokens: int
    measured: Measured


class Annotation(Sum, frozen=True, kw_only=True):
    """What marks add to a session, in o200k tokens: the calls and their answers."""

    calls: int = 0
    refused: int = 0  # by the protocol
    tokens: int = 0


class MarkedRun(Struct, frozen=True, kw_only=True, tag="marked_run", tag_field="type"):
    """One session that has marks, as it was recorded (`plain`) or with them, under one policy and one budget."""

    source: str
    policy: str
    variant: Literal["plain", "marked"]
    budget: BudgetLine
    head_tokens: int  # without the tool that marks
    annotation: Annotation
    measured: Measured


class TaskMisses(Struct, frozen=True, kw_only=True):
    """What one task cost in its conversation, and what its steps missed."""

    conversation: int
    task: int
    source: str
    usd: float  # of its calls
    own: Misses  # of what its own entries held too
    across: Misses  # of what only entries of earlier tasks held
    dependent: Misses  # of those, what a task held that it depends on


class AccumulatingRun(Struct, frozen=True, kw_only=True, tag="accumulating", tag_field="type"):
    """One conversation, or several added up, under one policy and one budget; `policy` is `none` for no eviction."""

    policy: str
    variant: str = ""  # of a compaction: what its summaries say
    budget: BudgetLine
    head_tokens: int
    measured: Measured
    own: Misses
    across: Misses
    dependent: Misses
    tasks: tuple[TaskMisses, ...]


class Workload(StrEnum):
    """The classes, in the order in which their rules are asked."""

    TALK = "talk"
    WEB = "web and research"
    DIALOGUE = "tool dialogue"
    CODING = "coding with edits"
    COMMANDS = "commands and debugging"
    READING = "exploration and reading"
    MIXED = "mixed"


class Profile(Struct, frozen=True, kw_only=True, tag="profile", tag_field="type"):
    """What of a session is counted to class it. Tokens are o200k; the window is the recorded agent's own, its compactions included."""

    source: str
    format: str
    workload: Workload
    rule: str  # that decided
    is_hard: bool = False  # among those with the highest tool pressure of their corpus
    entries: int
    replies: int
    human_turns: int
    tokens: int
    result_tokens: int  # of what tools returned
    result_share: float
    peak_tokens: int  # of the window
    pressure_tokens: float  # of tool results in the window, a mean over all calls
    uses: dict[str, int]  # tool uses, most frequent first


class Reach(Struct, frozen=True, kw_only=True):
    """A point of the miss-ratio curve: only the newest `kept` tokens of the record are shown."""

    kept: int
    missed: int


class AgeBand(Struct, frozen=True, kw_only=True):
    """Needs of an age, and how much was so old when steps were made; from `start` up to below `stop`, None: without end."""

    start: int
    stop: int | None
    needs: int
    token_steps: int  # tokens of this age, summed over all steps


class KindRow(Struct, frozen=True, kw_only=True):
    """What one kind of block weighs and how much of what was needed it held, as the newest holder."""

    kind: str
    tokens: int
    needs: int
    sole: int  # needs that no block of another kind held
    bands: tuple[AgeBand, ...]  # by replies


class Curves(Struct, frozen=True, kw_only=True, tag="curves", tag_field="type"):
    """The needs of one session, or of several added up."""

    sessions: int
    steps: int  # answers of the model
    tokens: int
    needs: int
    reach: tuple[Reach, ...]
    by_tokens: tuple[AgeBand, ...]
    by_steps: tuple[AgeBand, ...]
    by_kind: tuple[KindRow, ...]  # most tokens first


Cause = Literal[
    "sizes", "first call", "compaction", "another model", "expired", "held longer", "cleared unseen", "not found", "read in part"
]


class Caching(StrEnum):
    """What a session's reports tell of its cache."""

    WRITES = "writes"  # and reads
    READS = "reads"
    NONE = "none"


class Amounts(Sum, frozen=True, kw_only=True):
    """Prompt tokens by what the cache did with them, and what they cost without the answers."""

    uncached: int = 0
    cache_write: int = 0
    cache_read: int = 0
    usd: float = 0.0

    @property
    def new(self) -> int:
        """What was not read from the cache. Providers that do not charge for writing do not report it apart."""
        return self.uncached + self.cache_write

    @property
    def prompt(self) -> int:
        """All of it."""
        return self.uncached + self.cache_write + self.cache_read


class Off(Sum, frozen=True, kw_only=True):
    """Sums over calls of |simulated - reported|: errors that cancel in a session's sums are in here."""

    prompt: int = 0
    new: int = 0
    cache_read: int = 0
    usd: float = 0.0


class Compared(Struct, frozen=True, kw_only=True):
    """One session, or several together. All figures are of the calls that reported a prompt."""

    name: str
    model: str = ""
    sessions: int = 1
    assumed: int = 0  # sessions whose money is by another model's price
    calls: int
    unreported: int  # calls without a report, or with one of nothing
    caching: Caching
    ratio: float = 0.0  # provider tokens per o200k token
    head: int = 0  # provider tokens of system prompt and tools
    reported: Amounts
    simulated: Amounts
    by_cache: Amounts  # as the cache's rules alone would bill the prompts that were reported
    plain: Amounts  # as a replay that is told nothing bills it: no head, and the ratio learned as it goes
    off: Off  # of `simulated`
    causes: dict[Cause, float] = {}  # USD, simulated - reported; together all of it
    times: dict[Cause, int] = {}  # calls

    @property
    def error(self) -> float:
        """In money, signed: 0.05 is 5 % more than was reported."""
        return relative(self.simulated.usd, self.reported.usd)


def relative(simulated: float, reported: float) -> float:
    """How much more was simulated than reported, as a share of what was reported."""
    return simulated / reported - 1 if reported else 0.0


class CutLine(Struct, frozen=True, kw_only=True, tag="cut", tag_field="type"):
    """One policy at one cut, and what the session's future needed of what it took."""

    source: str
    policy: str
    matched: str = ""  # the policy whose share was the target; empty: the target that all were given
    cut: int
    before_call: int
    entries: int
    tokens: int  # of the view, in o200k tokens
    target: float  # share that was to leave
    pruned: float  # share that left, net of residues
    visible: int  # needs that something removed held, and the view still shows
    routed: int
    lost: int
    listed: int = 0  # of the visible: shown only as a name in a list of names
    calls: int = 0  # answers of the model that miss something
    objects: int = 0  # of which something is missed
    edits: int = 0  # whose text to find had been touched
    broken_edits: int = 0  # of those: the view does not show all of it together
    idle: bool = False  # the policy took nothing here, so there was nothing to miss

    @property
    def missed(self) -> int:
        """Needs that the view does not show, with a way back or without."""
        return self.routed + self.lost


class Needed(Struct, frozen=True, kw_only=True, tag="needed", tag_field="type"):
    """The needs of one session, whatever leaves."""

    source: str
    curves: Curves


class Billed(Struct, frozen=True, kw_only=True, tag="billed", tag_field="type"):
    """The simulated bill of one session beside what its provider reported."""

    compared: Compared


# The tables that SQL sees, by name (`tenure.lab.query`).
EVENTS: Final[Mapping[str, type[Struct]]] = MappingProxyType(
    {
        "replays": ReplayLine,
        "entries": EntryLine,
        "skipped": SkippedLine,
        "protections": ProtectLine,
        "plans": PlanLine,
        "commits": CommitLine,
        "holds": HoldLine,
        "unmet": UnmetLine,
        "calls": CallLine,
        "recalls": RecallLine,
        "needs": HarmLine,
        "edit_targets": EditTarget,
        "summaries": SummaryLine,
        "profiles": Profile,
        "cuts": CutLine,
        "runs": IsolatedRun,
        "conversations": AccumulatingRun,
        "marked_runs": MarkedRun,
        "curves": Needed,
        "bills": Billed,
    }
)
