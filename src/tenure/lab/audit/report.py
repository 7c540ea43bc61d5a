"""The report of an audit, as values that cross a wire, and what several of them come to.

All tokens are o200k unless they are said to be provider tokens, which are o200k tokens times a call's `ratio`; budgets are in provider tokens.
Everything is bounded: what a long session has too much of is merged or counted, and says so.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Final, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from tenure.lab.events import (
    Bill,
    BudgetLine,
    EditTarget,
    HarmLine,
    HeadTokens,
    Line,
    Part,
    PricesLine,
    RecallLine,
    ReplayLine,
    SourceFile,
    Sum,
    fields_in,
)

VERSION: Final = 1  # of what is kept and written; a report of another one is made again

Waste = Literal["stale", "superseded", "duplicate"]

ROWS: Final = 200  # of a table; the rest is one row
POINTS: Final = 400  # of a series
REREADS: Final = 300  # the ones that cost most
COMMITS: Final = 400  # the first half and the last half of more
OBJECTS: Final = 24  # of one commit, the largest
HARMS: Final = 200  # of one run: lost before routed before visible, each in the order of the calls


class WindowRow(Struct, frozen=True, kw_only=True):
    """What one name stands for: a kind of block, a tool, a file or a turn."""

    name: str  # empty: what has none, such as what is said outside tools in the table of tools
    label: str = ""  # in words: of a kind what people call it, of a turn what the human said first
    objects: int = 0  # of kinds blocks, of tools and paths calls, of turns entries
    tokens: int = 0  # admitted: as they came in, once
    paid: int = 0  # over their lifetime: tokens times the calls that carried them
    usd: float = 0.0  # what carrying them cost
    share: float = 0.0  # of the session's `paid` (0 to 1), head apart


class WindowTable(Struct, frozen=True, kw_only=True):
    """Rows by what was carried of them, most first. With `rest` they sum to the record's tokens and to what its calls paid, head apart."""

    rows: tuple[WindowRow, ...] = ()
    merged: int = 0  # names that `rest` stands for
    rest: WindowRow | None = None


class Reread(Struct, frozen=True, kw_only=True):
    """A result, or a part of one, that stood in the window when nothing needed it there any more."""

    how: Waste
    object: str
    handle: str  # what `tenure recall` takes
    path: str  # of the file; of a duplicate that read none what the call was about
    entry: int  # of the result
    tokens: int  # that were needless: of a range that was read again in part, the share of its lines
    of: int  # tokens of the whole result
    by: str  # the later object that made it so
    by_entry: int
    before_call: int  # the first call that carried it needlessly
    calls: int  # that did
    paid: int  # `tokens` times `calls`
    usd: float


class Wasted(Struct, frozen=True, kw_only=True):
    """All of one sort of waste."""

    how: Waste
    objects: int = 0
    tokens: int = 0
    paid: int = 0
    usd: float = 0.0


class Point(Struct, frozen=True, kw_only=True):
    """The window at one call."""

    call: int
    at: str  # ISO 8601, empty where the log has no time
    ratio: float  # provider tokens per o200k token
    tokens: tuple[int, ...]  # by `Series.kinds`; with the head they are the request


class Series(Struct, frozen=True, kw_only=True):
    """The window over the session, stacked by kind. Of each stretch of `every` calls the one with the largest window is kept."""

    kinds: tuple[str, ...] = ()  # largest first, as the tables name them; "residues" is what stands for what left
    every: int = 1  # 1: nothing is left out
    points: tuple[Point, ...] = ()


class OwnCompaction(Struct, frozen=True, kw_only=True):
    """Where the recorded agent itself changed its window."""

    before_call: int
    entries: int
    reason: str
    tokens_before: int
    tokens_after: int


class AuditWindow(Struct, frozen=True, kw_only=True):
    """Where the window of the session went, as it was recorded."""

    by_kind: WindowTable
    by_tool: WindowTable
    by_path: WindowTable
    by_turn: WindowTable
    head: WindowRow  # system prompt and tools that the log leaves out; `Session.head` says how they are known
    wasted: tuple[Wasted, ...]  # stale, superseded, duplicate; every object counts once, as what it became first
    rereads: tuple[Reread, ...]  # dearest first
    series: Series
    compactions: tuple[OwnCompaction, ...]


class Gone(Struct, frozen=True, kw_only=True):
    """What a commit did to one object."""

    object: str
    kind: str  # the action
    level: str = ""
    tokens: int = 0  # that left of it, net of what is shown in their stead


class CommitSummary(Struct, frozen=True, kw_only=True):
    """One commit."""

    commit: int
    before_call: int
    entries: int
    policy: str
    moment: str
    why: str
    forced: bool
    ratio: float
    tokens_before: int
    tokens_after: int
    actions: dict[str, int]  # how many of each kind
    objects: tuple[Gone, ...]  # largest first
    more: int = 0  # objects that are not listed


class Harm(Struct, frozen=True, kw_only=True):
    """A need, and the very places: what the step says around it, and what stood around it where it was held."""

    line: HarmLine
    at: int  # line of the log where the step is; 0 where the format has none
    step: str  # an excerpt that holds `line.text`, or the start of the block
    held_at: int  # line of the log where it was held last
    held: str  # an excerpt of that
    held_handle: str  # that brings it back


class Harms(Struct, frozen=True, kw_only=True):
    """What later steps needed of what a policy took. What is only thought is not counted; see docs/audit.md."""

    visible: int = 0
    routed: int = 0
    lost: int = 0
    by_kind: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])  # kind -> verdict -> needs
    by_category: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    listed: tuple[Harm, ...] = ()  # in the order of the calls
    more: int = 0  # that are not listed


class PolicyRun(Struct, frozen=True, kw_only=True):
    """One policy over the session. `none` is the recorded agent's own window."""

    policy: str
    settings: dict[str, str | int | float | bool | None]
    budget: BudgetLine
    bill: Bill
    commits: tuple[CommitSummary, ...]  # at most COMMITS; also those no policy chose: their `moment` is "recorded" or "admission"
    commits_made: int  # by the policy, all of them
    series: Series
    harms: Harms
    peak: int  # provider tokens of the largest request
    left: int  # tokens that its commits took, net of residues
    evicted: dict[str, int]  # the same by kind, without the residues that were inserted
    unmet: int  # calls at which a limit could not be kept
    unmet_held_by: dict[str, int]  # at the first of them
    violations: tuple[str, ...]


class Skips(Struct, frozen=True, kw_only=True):
    """What the reader left out, for one reason."""

    reason: str
    count: int
    bytes: int
    line: int  # the first; 0 where there are no lines


class SessionFacts(Struct, frozen=True, kw_only=True):
    """What was audited."""

    path: str  # as it was asked for
    format: str
    sha256: str  # of the unpacked bytes
    model: str
    model_known: bool  # False: no model is named, and it is only priced as this
    calls: int
    entries: int
    turns: int
    tokens: int
    started: str  # ISO 8601, empty where the log has no times
    ended: str
    skipped: tuple[Skips, ...]
    prices: PricesLine
    head: HeadTokens = HeadTokens(origin="given")  # system prompt and tools that the log leaves out
    reported: Part = Part()  # prompt tokens that the log itself reports, in all; nothing where it reports none

    @property
    def is_assumed(self) -> bool:
        """Whether the money is by another model's price."""
        return not self.prices.known


class Audit(Struct, frozen=True, kw_only=True, tag="report", tag_field="type"):
    """The report of one session."""

    version: int = VERSION
    session: SessionFacts
    window: AuditWindow
    runs: tuple[PolicyRun, ...]  # "none" first


class UnreadSession(Struct, frozen=True, kw_only=True):
    """A session that could not be audited."""

    path: str
    why: str


class PolicyTotal(Struct, frozen=True, kw_only=True):
    """One policy over all sessions."""

    policy: str
    bill: Bill
    commits: int
    left: int
    visible: int
    routed: int
    lost: int
    peak: int  # the largest of all requests, in provider tokens
    unmet: int  # sessions with a call at which a limit could not be kept
    violations: int
    dearer: int  # sessions whose bill is above that of "none"


class Total(Struct, frozen=True, kw_only=True, tag="total", tag_field="type"):
    """All sessions of one audit together."""

    version: int = VERSION
    sessions: int = 0
    calls: int = 0
    entries: int = 0
    tokens: int = 0
    by_kind: WindowTable = WindowTable()
    by_tool: WindowTable = WindowTable()
    wasted: tuple[Wasted, ...] = ()
    runs: tuple[PolicyTotal, ...] = ()
    unread: tuple[UnreadSession, ...] = ()
    assumed: int = 0  # sessions whose money is by another model's price


class AuditLine(Struct, frozen=True, kw_only=True, tag="audit", tag_field="type"):
    """The first line of a session: what was asked."""

    version: int = VERSION
    source: SourceFile
    policies: tuple[str, ...]  # in the order of their runs; "none" first
    budget: BudgetLine
    model: str  # as asked for; empty: as the log says
    head_tokens: int  # o200k
    head: HeadTokens = HeadTokens(origin="given")  # how it is known


class RunLine(ReplayLine, frozen=True, kw_only=True, tag="run", tag_field="type"):
    """The first line of one policy: what a replay's first line says."""


AuditOutput = AuditLine | RunLine | Line | HarmLine | EditTarget | RecallLine | Audit | Total


REST: Final = "(others)"
S = TypeVar("S", bound=Struct)


def sum_of(values: Sequence[S], **named: object) -> S:
    """Several values of one kind as one: numbers and bills are added up, other fields are the first one's, or as `named`."""
    first = values[0]
    added = [name for name in first.__struct_fields__ if isinstance(getattr(first, name), int | float | Sum)]
    return replace(first, **{name: reduce(add, (getattr(each, name) for each in values)) for name in added} | named)


def table(rows: Iterable[WindowRow], rests: Sequence[WindowRow] = (), merged: int = 0) -> WindowTable:
    """Rows of one name as one, those that cost most first, and as many as a report has; the others are one, with the `merged` that `rests` are."""
    by_name: dict[str, list[WindowRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    sums = [sum_of(each) for each in by_name.values()]
    total = sum(row.paid for row in (*sums, *rests))
    sums.sort(key=lambda row: (-row.paid, -row.usd, -row.tokens, row.name))
    rest = [*rests, *sums[ROWS:]]
    rows_and_rest = [*sums[:ROWS], *([sum_of(rest, name=REST, label="")] if rest else [])]
    shared = [replace(row, share=row.paid / total if total else 0.0) for row in rows_and_rest]
    return WindowTable(rows=tuple(shared[:ROWS]), merged=merged + len(sums[ROWS:]), rest=shared[-1] if rest else None)


def total_of(audit: Audit) -> Total:
    """One session as a total."""
    session, window, recorded = audit.session, audit.window, audit.runs[0].bill.total_usd if audit.runs else 0.0
    runs: list[PolicyTotal] = []
    for run in audit.runs:
        needs = {verdict: getattr(run.harms, verdict) for verdict in ("visible", "routed", "lost")}
        counts = {"commits": run.commits_made, "unmet": int(run.unmet > 0), "violations": len(run.violations)}
        dearer = int(run.bill.total_usd > recorded)
        runs.append(PolicyTotal(**fields_in(run, PolicyTotal, **needs, **counts, dearer=dearer)))
    tables = {"by_kind": window.by_kind, "by_tool": window.by_tool, "wasted": window.wasted}
    assumed = int(session.is_assumed)
    return Total(**fields_in(session, Total, **tables, sessions=1, runs=tuple(runs), assumed=assumed))


def together(first: Total, second: Total) -> Total:
    """Both together: rows of one name, wastes of one sort and runs of one policy are one."""
    wasted = {each.how: each for each in first.wasted}
    for each in second.wasted:
        wasted[each.how] = sum_of((wasted[each.how], each)) if each.how in wasted else each
    runs = {each.policy: each for each in first.runs}
    for run in second.runs:
        known = runs.get(run.policy)
        runs[run.policy] = run if known is None else sum_of((known, run), peak=max(known.peak, run.peak))
    return sum_of(
        (first, second),
        version=VERSION,
        by_kind=_joined((first.by_kind, second.by_kind)),
        by_tool=_joined((first.by_tool, second.by_tool)),
        wasted=tuple(wasted.values()),
        runs=tuple(runs.values()),
    )


def total(audits: Iterable[Audit], unread: Sequence[UnreadSession] = ()) -> Total:
    """All sessions of an audit."""
    return reduce(together, map(total_of, audits), Total(unread=tuple(unread)))


def _joined(tables: Sequence[WindowTable]) -> WindowTable:
    rests = [each.rest for each in tables if each.rest is not None]
    return table((row for each in tables for row in each.rows), rests, sum(each.merged for each in tables))
