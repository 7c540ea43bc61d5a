"""The screen of many audited sessions: a row for each, and what they come to together."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from tenure.cli import words
from tenure.cli.audit_screen import WHY_CHARS, counted, name_of, notes
from tenure.cli.audit_tables import needless, outcomes, policies, where
from tenure.lab.audit.report import Audit, Total, Unread
from tenure.lab.events import BudgetLine

SHOWN_UNREAD: Final = 10  # sessions that could not be read, named
FIXED: Final = 60  # columns of a row without its policies
EACH: Final = 9  # columns of a policy


_ENDS = re.compile(
    r"(?:\.(?:jsonl?|ndjson|md|traj|eval|txt|log|messages))*(?:\.(?:xz|gz|zst))?$"
)  # that say nothing of a session


class Brief(Struct, frozen=True, kw_only=True):
    """What a row shows of a session."""

    name: str
    calls: int
    tokens: int
    peak: int
    needless: float  # share (0 to 1) of what the window carried
    bills: tuple[float, ...]  # by policy
    lost: tuple[int, ...]
    assumed: bool = False  # the money is by another model's price


def brief(audit: Audit) -> Brief:
    """The row of a session."""
    window = audit.window
    rows = (*window.by_kind.rows, *([window.by_kind.rest] if window.by_kind.rest else []))
    carried = sum(row.paid for row in rows)
    return Brief(
        name=_ENDS.sub("", name_of(audit.session.path)),
        calls=audit.session.calls,
        tokens=audit.session.tokens,
        peak=audit.runs[0].peak,
        needless=sum(each.paid for each in window.wasted) / carried if carried else 0.0,
        bills=tuple(run.bill.total_usd for run in audit.runs),
        lost=tuple(run.harms.lost for run in audit.runs),
        assumed=audit.session.is_assumed,
    )


def corpus(briefs: Sequence[Brief], total: Total, budget: BudgetLine, width: int) -> Group:
    """All of them: a row each, then the sums."""
    found = outcomes(total)
    parts: list[RenderableType] = [
        sessions(briefs, [each.policy for each in found], width),
        "",
        Text(
            f"{counted(total.sessions, 'session')}, {counted(total.calls, 'call')}, {words.tokens(total.tokens)} tokens",
            style="bold",
        ),
        where(total.by_kind, assumed=total.assumed > 0),
        Text(f"needless: {needless(total.wasted, assumed=total.assumed > 0)}"),
        "",
        policies(found, budget, width),
    ]
    broken = [f"{run.policy} {run.violations} times" for run in total.runs if run.violations]
    parts += notes(found, broken)
    return Group(*parts)


def sessions(briefs: Sequence[Brief], names: Sequence[str], width: int) -> Grid:
    """A row for each; of the policies as many as fit, each with how its bill differs from that of none."""
    fitting = list(names[1 : 1 + max(0, (width - FIXED) // EACH)])
    grid = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0), expand=True)
    grid.add_column("session", no_wrap=True, overflow="ellipsis", ratio=1)
    for name, size in (
        ("calls", 5),
        ("tokens", 6),
        ("peak", 5),
        ("needless", 8),
        ("bill", 7),
        *((each, EACH - 1) for each in fitting),
    ):
        grid.add_column(words.plain(name), justify="right", no_wrap=True, overflow="ellipsis", min_width=size, max_width=size)
    for each in briefs:
        changes = [words.change(usd, each.bills[0]) for usd in each.bills[1 : 1 + len(fitting)]]
        grid.add_row(
            each.name,
            f"{each.calls:,}",
            words.short(each.tokens),
            words.short(each.peak),
            words.share(each.needless),
            words.money(each.bills[0], assumed=each.assumed),
            *changes,
        )
    return grid


def unreadable(unread: Sequence[Unread]) -> Iterator[Text]:
    """What could not be read, and why."""
    if unread:
        yield Text(f"{counted(len(unread), 'session')} could not be read:", style="yellow")
    for each in unread[:SHOWN_UNREAD]:
        yield Text(f"  {words.plain(each.path)}: {words.first_line(each.why, WHY_CHARS + 2 * len(each.path))}", style="yellow")
    if len(unread) > SHOWN_UNREAD:
        yield Text(f"  and {len(unread) - SHOWN_UNREAD} more (--json has all)", style="yellow")
