"""The events of a replay as JSON lines (REPLAY.md, version 1), and what was needed of what had left. Those of other measurements: measured.py."""

from enum import StrEnum
from typing import Any, Literal, Self

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
