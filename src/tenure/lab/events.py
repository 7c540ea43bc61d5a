"""The events that measurements write as JSON lines: those of a replay (REPLAY.md, version 1), and what was needed of what had left."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal, Self

from msgspec import UNSET, Struct, UnsetType

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.view.edit import Edit, LoggedAction, Moment, Price

VERSION = 1

Outcome = Literal["committed", "pending", "dropped"]
StepPart = Literal["call", "text", "thinking"]
Verdict = Literal["visible", "routed", "lost"]
At = tuple[int, int]  # entry, block


def spelled(path: str) -> str:
    """A path as JSON can hold it: bytes that are no UTF-8 are spelled out."""
    return path.encode("utf-8", "backslashreplace").decode()


def fields_in(value: object, kind: type[Struct], **more: object) -> dict[str, Any]:
    """The fields of a value that a struct of another kind has too, by name; and `more`, which go before them."""
    return {name: getattr(value, name) for name in kind.__struct_fields__ if hasattr(value, name)} | more


class Sum(Struct, frozen=True):
    """Figures that are added up field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class SourceFile(Struct, frozen=True, kw_only=True):
    """A session file that was read."""

    path: str
    format: str
    sha256: str = ""  # of the unpacked bytes


class BudgetLine(Struct, frozen=True, kw_only=True):
    """The budget, in provider tokens; `None`: no such limit."""

    target: int | None = None
    ceiling: int | None = None
    floor: int | None = None
    window: int | None = None

    @classmethod
    def of(cls, budget: Budget) -> Self:
        """A budget as lines have it."""
        return cls(target=budget.target, ceiling=budget.ceiling, floor=budget.floor_of(budget.limit), window=budget.window)


class PricesLine(Struct, frozen=True, kw_only=True):
    """USD per token, and the cache's behaviour."""

    uncached: float
    write: float
    read: float
    output: float
    ttl_s: int
    min_cache: int
    known: bool = True  # False: no list price stands behind them, but a mid-size model's


class HeadTokens(Struct, frozen=True, kw_only=True):
    """What stands before the view in every request (system prompt and tools), and how that is known."""

    tokens: int = 0  # o200k
    origin: Literal["reported", "given", "unknown"] = "unknown"  # by what the log's reports leave over; unknown: taken as 0
    provider_tokens: int = 0  # the same, as the reports have it
    reports: int = 0  # that it was learned from
    ratio: float = 0.0  # provider tokens per o200k token, by the same reports; 0: learned call by call


class ReplayLine(Struct, frozen=True, kw_only=True, tag="replay", tag_field="type"):
    """The first line."""

    version: int = VERSION
    sources: tuple[SourceFile, ...]
    policy: str
    settings: dict[str, str | int | float | bool | None]
    model: str
    model_known: bool  # False: nothing named one, and it is only priced as this
    budget: BudgetLine
    tokenizer: str
    framing: dict[str, int]
    prices: PricesLine
    rules: dict[str, str | bool]
    head_tokens: int  # o200k
    head: HeadTokens = HeadTokens(origin="given")  # how `head_tokens` is known

    @property
    def is_assumed(self) -> bool:
        """Whether the money is by another model's price."""
        return not self.prices.known


class MediaLine(Struct, frozen=True, kw_only=True):
    """The image or document of a block; of several in one tool result, the first one's hash and what all weigh."""

    sha256: str
    tokens: int
    all: tuple[str, ...] | UnsetType = UNSET  # hashes, where there are several


class BlockLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One block of an entry."""

    block: int | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    origin: str | UnsetType = UNSET
    objects: tuple[str, ...] | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    text: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    error: bool | UnsetType = UNSET
    signed: bool | UnsetType = UNSET
    media: MediaLine | UnsetType = UNSET


class EntryLine(Struct, frozen=True, kw_only=True, tag="entry", tag_field="type"):
    """A record entry, in the moment it was appended."""

    entry: int
    id: str
    parent: str
    sha256: str
    source: int
    line: int
    role: str
    turn: int
    at: str
    blocks: tuple[BlockLine, ...]


class SkippedLine(Struct, frozen=True, kw_only=True, tag="skipped", tag_field="type"):
    """What a reader left out."""

    source: int
    line: int
    bytes: int
    reason: str


class ProtectLine(Struct, frozen=True, kw_only=True, tag="protect", tag_field="type"):
    """A block that no policy may touch from here on, or may again."""

    op: Literal["add", "remove"]
    what: str
    entry: int
    block: int


class PlanLine(Struct, frozen=True, kw_only=True, tag="plan", tag_field="type"):
    """What became of a plan. One that was `pending` has a second line once it is carried out or dropped."""

    before_call: int
    policy: str
    outcome: Outcome
    commit: int | None
    reason: str
    refused: tuple[dict[str, str], ...] = ()
    asked: bool = False  # a model was asked just now, and this became of its answer
    usd: float = 0.0  # what asking it cost
    assumed: bool = False  # by another model's price


class CommitLine(Struct, frozen=True, kw_only=True, tag="commit", tag_field="type"):
    """A commit and its edits."""

    commit: int
    before_call: int
    entries: int
    policy: str
    forced: bool
    reason: str
    moment: Moment
    price: Price | None
    tokens_before: int
    tokens_after: int
    ratio: float
    actions: tuple[LoggedAction, ...]
    edits: tuple[Edit, ...]


class HoldLine(Struct, frozen=True, kw_only=True, tag="hold", tag_field="type"):
    """A plan that did not pay."""

    before_call: int
    reason: str
    price: Price | None


class UnmetLine(Struct, frozen=True, kw_only=True, tag="unmet", tag_field="type"):
    """A limit that cannot be met, and what holds the space."""

    before_call: int
    view_tokens: int
    ceiling: int
    held_by: dict[str, int]


class ReportedLine(Struct, frozen=True, kw_only=True):
    """What the recorded provider reported for the call."""

    cache_read: int
    cache_write: int
    uncached: int


class CallLine(Struct, frozen=True, kw_only=True, tag="call", tag_field="type"):
    """A model call: what was sent and what it cost."""

    call: int
    at: str
    model: str
    entries: int
    entry: int
    head_tokens: int
    notes: tuple[str, ...] = ()
    ratio: float
    view_tokens: int
    record_tokens: int
    shared_prefix_tokens: int
    uncached: int
    cache_write: int
    cache_read: int
    output: int
    usd: float
    reported: ReportedLine | None = None


class Category(StrEnum):
    """What future action becomes unsupported (Self-GC paper, Failure Categories and Case Studies, table 7)."""

    EVIDENCE = "evidence-detail"
    LOCATOR = "locator-handle"
    CONTRACT = "behavioral-contract"
    VERBATIM = "verbatim-source"
    LIVE = "live-state"
    ROUTING = "recovery-routing"


class HarmLine(Struct, frozen=True, kw_only=True, tag="harm", tag_field="type"):
    """A need that reached for something of which a part had left, and what became of it."""

    call: int
    entry: int  # the assistant's message
    block: int
    part: StepPart
    tool: str
    field: str  # the argument, empty in texts
    kind: str
    form: str
    text: str  # the first string that is missing; of a visible need, the first one that was touched
    listed: bool = False  # of a visible need: some of it is shown only as a name in a list of names that a policy wrote
    more: int = 0  # strings of the same need that are missing too
    held: tuple[At, ...]  # where the record held it, oldest first
    objects: tuple[str, ...]  # the same as objects, each once
    verdict: Verdict
    category: Category
    rule: str  # that decided the category
    route: str = ""  # the handle that leads to it
    commit: int  # that removed it


class EditTarget(Struct, frozen=True, kw_only=True, tag="edit_target", tag_field="type"):
    """An edit whose text to find stood in something of which a part had left, and whether the view still shows all of it together."""

    call: int
    entry: int  # the assistant's message
    block: int
    tool: str
    lines: int  # of the text, empty ones included
    held: tuple[At, ...]  # where the record held all of it
    whole: bool
    commit: int  # that removed it


class RecallLine(Struct, frozen=True, kw_only=True, tag="recall", tag_field="type"):
    """What a routed need brings back. It is accounting: the view is as recorded."""

    call: int  # before which it is brought back
    handle: str
    by: Literal["handle", "path", "pattern", "words", "lines"]
    tokens: int  # o200k, of what it brings back


class SummaryLine(Struct, frozen=True, kw_only=True, tag="summary", tag_field="type"):
    """The last line."""

    calls: int
    commits: int
    usd: float
    usd_uncapped: float
    peak_view_tokens: int
    violations: tuple[str, ...]
    entries: int
    record_tokens: int
    skipped: int
    unmet: int
    stayed_by_kind: dict[str, int]
    evicted_tokens: int
    evicted_by_kind: dict[str, int]
    recoverable_share: float
    prefix_reuse: float  # cache-read share of all prompt tokens
    prefix_reuse_uncapped: float
    prompt_tokens: int
    prompt_tokens_uncapped: int
    helpers_usd: float = 0.0  # of planners and summarisers; no part of `usd`, which is the sum of the calls
    waived: dict[str, int] = {}  # of a faithful replay: protected blocks that were changed, by what would have protected them
    needs: dict[str, int] = {}  # of what had left, by what became of them; where the replay was watched
    recalls: int = 0
    recalls_usd: float = 0.0  # the extra calls of routed needs, and carrying what they bring back; no part of `usd`

    @property
    def bill_usd(self) -> float:
        """What the calls cost, those who helped, and the recalls."""
        return self.usd + self.helpers_usd + self.recalls_usd


Line = ReplayLine | EntryLine | SkippedLine | ProtectLine | PlanLine | CommitLine | HoldLine | UnmetLine | CallLine | SummaryLine


class Part(Sum, frozen=True, kw_only=True):
    """One part of a bill: provider tokens, and USD."""

    tokens: int = 0
    usd: float = 0.0


class Bill(Sum, frozen=True, kw_only=True):
    """What a replay costs. The first four parts are the calls' own; `fetched_again` is in no sum."""

    calls: int = 0  # of the recorded agent; recalls are extra
    uncached: Part = Part()
    cache_write: Part = Part()
    cache_read: Part = Part()
    output: Part = Part()
    recalls: int = 0
    recall: Part = Part()  # the extra calls of routed needs, and what they bring back for as long as it is carried
    fetched_again: Part = Part()  # the same for lost needs, were they read or run again: what a model would do is not known
    helpers_usd: float = 0.0  # planners and summarisers

    @property
    def calls_usd(self) -> float:
        """What the calls cost that the recorded agent made."""
        return self.uncached.usd + self.cache_write.usd + self.cache_read.usd + self.output.usd

    @property
    def total_usd(self) -> float:
        """All that is known to be paid."""
        return self.calls_usd + self.recall.usd + self.helpers_usd


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
