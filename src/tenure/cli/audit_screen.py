"""The screens of an audit: one session on a small terminal, or many with a row each; the page and the lines have the rest."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from tenure.cli import words
from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.report import (
    Audit,
    PolicyTotal,
    SessionFacts,
    Total,
    UnreadSession,
    Wasted,
    WindowRow,
    WindowTable,
    sum_of,
    total_of,
)
from tenure.lab.events import BudgetLine, HeadTokens

LABEL: Final = 10  # columns of what a line is about, with the gap
WHY_CHARS: Final = 1_000  # of a reason
SHOWN_UNREAD: Final = 10  # sessions that could not be read, named
WIDE: Final = 120  # columns from which every figure of a policy has one
KINDS: Final = 3  # rows of the table by kind
_FILE_NAME: Final = 28  # columns of a file's name; of longer ones the last part tells it
_FIXED: Final = 60  # columns of a session's row without its policies
_EACH: Final = 9  # columns of a policy in it
_HOW: Final = {"stale": "stale", "superseded": "reread", "duplicate": "repeated"}
# Endings that say nothing of a session.
_ENDS = re.compile(r"(?:\.(?:jsonl?|ndjson|md|traj|eval|txt|log|messages))*(?:\.(?:xz|gz|zst))?$")


class AuditRow(Struct, frozen=True, kw_only=True):
    """What a row shows of a session."""

    name: str
    calls: int
    tokens: int
    peak: int
    needless: float  # share (0 to 1) of what the window carried
    bills: tuple[float, ...]  # by policy
    assumed: bool = False  # the money is by another model's price


def brief(audit: Audit) -> AuditRow:
    """The row of a session."""
    window = audit.window
    carried = sum(row.paid for row in (*window.by_kind.rows, window.by_kind.rest) if row is not None)
    return AuditRow(
        name=_ENDS.sub("", name_of(audit.session.path)),
        calls=audit.session.calls,
        tokens=audit.session.tokens,
        peak=audit.runs[0].peak,
        needless=sum(each.paid for each in window.wasted) / carried if carried else 0.0,
        bills=tuple(run.bill.total_usd for run in audit.runs),
        assumed=audit.session.is_assumed,
    )


def screen(audit: Audit, width: int) -> Group:
    """One session, in at most 24 lines with the policies of the default."""
    session, window, assumed = audit.session, audit.window, audit.session.is_assumed
    room = width - LABEL
    facts = Grid.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True, min_width=LABEL - 2)
    facts.add_column(overflow="fold")
    facts.add_row("by tool", _top(window.by_tool, room, "outside tools", lambda row: row.name))
    facts.add_row("by file", _top(window.by_path, room, "no file", _file))
    facts.add_row("by turn", _top(window.by_turn, room, "before the first", _turn))
    facts.add_row("needless", _needless(window.wasted, assumed=assumed))
    if session.skipped:
        facts.add_row("left out", _left_out(session))
    budget = next((run.budget for run in audit.runs if run.policy != UNBOUNDED), audit.runs[0].budget)
    broken = [f"{run.policy}: {run.violations[0]}" for run in audit.runs if run.violations]
    policies = _policies(total_of(audit).runs, budget, width, broken, assumed=assumed)
    return Group(*_titles(audit), "", _where(window.by_kind, assumed=assumed), facts, "", *policies)


def corpus(briefs: Sequence[AuditRow], total: Total, budget: BudgetLine, width: int) -> Group:
    """Many sessions: a row each, then the sums."""
    assumed = total.assumed > 0
    size = (
        f"{words.several(total.sessions, 'session')}, {words.several(total.calls, 'call')}, {words.tokens(total.tokens)} tokens"
    )
    broken = [f"{run.policy} {run.violations} times" for run in total.runs if run.violations]
    return Group(
        _sessions(briefs, [each.policy for each in total.runs], width),
        "",
        Text(size, style="bold"),
        _where(total.by_kind, assumed=assumed),
        Text(f"needless: {_needless(total.wasted, assumed=assumed)}"),
        "",
        *_policies(total.runs, budget, width, broken, assumed=assumed),
    )


def unreadable(unread: Sequence[UnreadSession]) -> Iterator[Text]:
    """What could not be read, and why."""
    if unread:
        yield Text(f"{words.several(len(unread), 'session')} could not be read:", style="yellow")
    for each in unread[:SHOWN_UNREAD]:
        yield Text(f"  {words.plain(each.path)}: {words.first_line(each.why, WHY_CHARS + 2 * len(each.path))}", style="yellow")
    if len(unread) > SHOWN_UNREAD:
        yield Text(f"  and {len(unread) - SHOWN_UNREAD} more (--json has all)", style="yellow")


def name_of(path: str) -> str:
    """The last part of a path, and what is meant inside it."""
    return words.plain(PurePosixPath(path.replace("\\", "/")).name or path)


def _sessions(briefs: Sequence[AuditRow], names: Sequence[str], width: int) -> Grid:
    """A row for each; of the policies as many as fit, each with how its bill differs from that of none."""
    fitting = list(names[1 : 1 + max(0, (width - _FIXED) // _EACH)])
    grid = words.table(gap=1, expand=True)
    grid.add_column("session", no_wrap=True, overflow="ellipsis", ratio=1)
    sizes = {"calls": 5, "tokens": 6, "peak": 5, "needless": 8, "bill": 7}
    for name, size in (*sizes.items(), *((each, _EACH - 1) for each in fitting)):
        grid.add_column(words.plain(name), justify="right", no_wrap=True, overflow="ellipsis", min_width=size, max_width=size)
    for each in briefs:
        bill = words.money(each.bills[0], assumed=each.assumed)
        changes = [words.change(usd, each.bills[0]) for usd in each.bills[1 : 1 + len(fitting)]]
        sizes_ = f"{each.calls:,}", words.short(each.tokens), words.short(each.peak), words.share(each.needless)
        grid.add_row(each.name, *sizes_, bill, *changes)
    return grid


def _titles(audit: Audit) -> Iterator[Text]:
    session = audit.session
    model = session.model if session.model_known else f"priced as {session.model}"
    title = ((name_of(session.path), "bold"), words.plain(f"  {session.format} · {model}"))
    yield Text.assemble(*title, no_wrap=True, overflow="ellipsis")
    size = (
        f"{words.several(session.calls, 'call')}, {words.several(session.turns, 'turn')}, {words.tokens(session.tokens)} tokens"
    )
    compacted = f", {words.several(times, 'compaction')}" if (times := len(audit.window.compactions)) else ""
    facts = f"{size}{_head(session.head)}{compacted}{_when(session)}"
    yield Text(facts, style="dim", no_wrap=True, overflow="ellipsis")


def _head(head: HeadTokens) -> str:
    """What stands before every view, in a few words."""
    match head.origin:
        case "reported":
            return f", head {words.short(head.provider_tokens)} by its reports"
        case "given":
            return f", head {words.short(head.tokens)} as given" if head.tokens else ""
        case "unknown":
            return ", head not known"


def _when(session: SessionFacts) -> str:
    """From when to when; nothing where the log has no times."""
    try:
        start, end = datetime.fromisoformat(session.started), datetime.fromisoformat(session.ended)
    except ValueError:
        return ""
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{end.day} {end:%b %H:%M}"
    return f", {start.day} {start:%b %Y %H:%M}–{until}"


def _file(row: WindowRow) -> str:
    short = "/".join(row.name.split("/")[-2:])
    return short if len(short) <= _FILE_NAME else row.name.rpartition("/")[2]


def _turn(row: WindowRow) -> str:
    number = row.name.partition(":")[2]
    return f"{number} “{words.first_line(row.label, 24)}”" if row.label else number


def _left_out(session: SessionFacts) -> Text:
    """What the reader left out: the first reason, never cut to the screen since it may end with the way out, and the rest counted."""
    first, others = session.skipped[0], len(session.skipped) - 1
    more = f"; and for {words.several(others, 'other reason')}" if others else ""
    place = f"line {first.line}: " if first.line else ""
    return Text(words.first_line(f"{place}{first.reason}", WHY_CHARS) + more, no_wrap=False, overflow="fold")


def _where(table: WindowTable, *, assumed: bool) -> Grid:
    """The kinds that were carried most: what came in once, and what it came to by being carried from call to call."""
    grid = words.table(gap=2)
    grid.add_column("where the window went", no_wrap=True)
    for name in ("came in", "carried", "cost", "share"):
        grid.add_column(name, justify="right", no_wrap=True, min_width=7)
    every = [*table.rows, *([table.rest] if table.rest else [])]
    shown = every if len(every) == KINDS + 1 else every[:KINDS]
    named = [(words.plain(row.label or row.name), row) for row in shown]
    if rest := every[len(shown) :]:
        named.append((f"{len(rest)} other kinds", sum_of(rest, name="")))
    for name, row in named:
        cost = words.money(row.usd, assumed=assumed)
        grid.add_row(name, words.short(row.tokens), words.short(row.paid), cost, words.share(row.share))
    return grid


def _top(table: WindowTable, width: int, none: str, text: Callable[[WindowRow], str]) -> str:
    """The names that were carried most in one line of `width` characters, each with its share; `none` is what the row without a name is called."""
    line = ""
    for row in table.rows:
        name = words.first_line(text(row) if row.name else none, width // 2)
        part = f"{', ' * bool(line)}{name} {words.share(row.share)}"
        if len(line) + len(part) > width or (line and row.share < 0.005):
            break
        line += part
    return line or "nothing"


def _needless(wasted: Sequence[Wasted], *, assumed: bool) -> str:
    """Results that stood in the window when nothing needed them there any more."""
    parts: list[str] = []
    for each in wasted:
        if each.objects:
            cost = f", {words.money(each.usd, assumed=assumed, digits=2)}" if each.usd >= 0.005 else ""
            parts.append(f"{each.objects:,} {_HOW[each.how]} ({words.short(each.tokens)}{cost})")
    return ", ".join(parts) or "no result was stale, reread or repeated"


def _policies(
    runs: Sequence[PolicyTotal], budget: BudgetLine, width: int, broken: Sequence[str], *, assumed: bool
) -> Iterator[RenderableType]:
    """A row for each policy: how large its window grew, what left, what of it was needed later, and the bill beside that of none; and notes."""
    acting = [runs[0], *(each for each in runs[1:] if each.commits or each.unmet)]
    named = (("ceiling", budget.ceiling), ("target", budget.target), ("window", budget.window))
    is_wide = width >= WIDE
    grid = words.table(gap=2 if is_wide else 1)
    grid.add_column(
        next(f"{name} {words.short(value)}" for name, value in named if value is not None), no_wrap=True, overflow="ellipsis"
    )
    rows = [_figures(each, runs[0], is_wide=is_wide, assumed=assumed) for each in acting]
    for name in rows[0]:
        grid.add_column(name, justify="right", no_wrap=True)
    for each, row in zip(acting, rows, strict=True):
        grid.add_row(words.plain(each.policy), *row.values())
    if idle := len(runs) - len(acting):
        grid.add_row(f"{idle} never act" if idle > 1 else "1 never acts")
    yield grid
    note = Text(f"dollars, simulated; output {words.money(runs[0].bill.output.usd, assumed=assumed)} in each bill", style="dim")
    if assumed:
        note.append(f"; {words.ASSUMED}: no price is listed, a mid-size model's stands in", style="yellow")
    if any(each.unmet for each in runs):
        note.append("; ! above the limit at times", style="yellow")
    yield note
    if broken:
        yield Text(words.plain("laws broken: " + "; ".join(broken)), style="bold red")


def _figures(each: PolicyTotal, none: PolicyTotal, *, is_wide: bool, assumed: bool) -> dict[str, str | Text]:
    """The figures of a policy by column; a wide screen has more of them."""

    def cents(usd: float) -> str:
        return words.money(usd, assumed=assumed).replace("$", "") if usd else "–"

    def count(number: int) -> str:
        return f"{number:,}" if each.commits else "–"

    bill = each.bill
    row: dict[str, str | Text] = {
        "peak": words.short(each.peak) + "!" * bool(each.unmet),
        "commits" if is_wide else "acts": str(each.commits) if each.commits else "–",
        "left": words.short(each.left) if each.commits else "–",
        **({"visible": count(each.visible)} if is_wide else {}),
        "routed": count(each.routed),
        "lost": count(each.lost),
    }
    if is_wide:
        row |= {"uncached": cents(bill.uncached.usd), "written": cents(bill.cache_write.usd), "read": cents(bill.cache_read.usd)}
        row |= {"output": cents(bill.output.usd), "recalls": cents(bill.recall.usd)}
    else:
        row |= {"new": cents(bill.uncached.usd + bill.cache_write.usd), "read": cents(bill.cache_read.usd)}
        row |= {"recall": cents(bill.recall.usd)}
    change = words.change(bill.total_usd, none.bill.total_usd) if each is not none else ""
    style = "green" if change.startswith("−") else "red" if change.startswith("+") else ""
    return row | {"bill": words.money(bill.total_usd, assumed=assumed), "vs none": Text(change, style=style)}
