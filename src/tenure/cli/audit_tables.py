"""What the audit of one session and that of many show alike: where windows went, what was needless, what each policy comes to."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from rich.table import Table as Grid
from rich.text import Text

from tenure.cli import words
from tenure.lab.audit.report import Audit, PolicyTotal, Row, Table, Total, Wasted
from tenure.lab.audit.tables import one_row
from tenure.lab.events import Bill, BudgetLine

WIDE: Final = 120  # columns from which every figure of a policy has one
KINDS: Final = 3  # rows of the table by kind

_HOW: Final = {
    "stale": "stale",
    "superseded": "reread",
    "duplicate": "repeated",
}


class Outcome(Struct, frozen=True, kw_only=True):
    """What a policy came to, over one session or over many."""

    policy: str
    peak: int
    commits: int
    left: int
    visible: int
    routed: int
    lost: int
    bill: Bill
    unmet: bool
    assumed: bool  # the money is by another model's price


def outcomes(of: Audit | Total) -> list[Outcome]:
    """Of each policy, in the order of the report."""
    return [
        Outcome(
            policy=run.policy,
            peak=run.peak,
            commits=run.commits if isinstance(run, PolicyTotal) else run.commits_made,
            left=run.left,
            visible=run.visible if isinstance(run, PolicyTotal) else run.harms.visible,
            routed=run.routed if isinstance(run, PolicyTotal) else run.harms.routed,
            lost=run.lost if isinstance(run, PolicyTotal) else run.harms.lost,
            bill=run.bill,
            unmet=run.unmet > 0,
            assumed=of.session.is_assumed if isinstance(of, Audit) else of.assumed > 0,
        )
        for run in of.runs
    ]


def where(table: Table, *, assumed: bool) -> Grid:
    """The kinds that were carried most: what came in once, and what it came to by being carried from call to call."""
    grid = _grid()
    grid.add_column("where the window went", no_wrap=True)
    for name in ("came in", "carried", "cost", "share"):
        grid.add_column(name, justify="right", no_wrap=True, min_width=7)
    shown, rest = list(table.rows[:KINDS]), [*table.rows[KINDS:], *([table.rest] if table.rest else [])]
    if len(rest) == 1:
        shown, rest = [*shown, *rest], []
    for row in shown:
        grid.add_row(words.plain(row.label or row.name), *_figures(row, assumed=assumed))
    if rest:
        grid.add_row(f"{len(rest)} other kinds", *_figures(one_row("", rest), assumed=assumed))
    return grid


def top(table: Table, width: int, none: str, said: Callable[[Row], str]) -> str:
    """The names that were carried most in one line of `width` characters, each with its share; `none` is what the row without a name is called."""
    line = ""
    for row in table.rows:
        name = words.first_line(said(row) if row.name else none, width // 2)
        part = f"{', ' * bool(line)}{name} {words.share(row.share)}"
        if len(line) + len(part) > width or (line and row.share < 0.005):
            break
        line += part
    return line or "nothing"


def needless(wasted: Sequence[Wasted], *, assumed: bool) -> str:
    """Results that stood in the window when nothing needed them there any more."""
    parts: list[str] = []
    for each in wasted:
        if each.objects:
            cost = f", {words.money(each.usd, assumed=assumed, digits=2)}" if each.usd >= 0.005 else ""
            parts.append(f"{each.objects:,} {_HOW[each.how]} ({words.short(each.tokens)}{cost})")
    return ", ".join(parts) or "no result was stale, reread or repeated"


def policies(found: Sequence[Outcome], budget: BudgetLine, width: int) -> Grid:
    """A row for each policy: how large its window grew, what left, what of it was needed later, and the bill beside that of none."""
    acting = [found[0], *(each for each in found[1:] if each.commits or each.unmet)]
    grid = _wide(acting, _limit(budget)) if width >= WIDE else _narrow(acting, _limit(budget))
    if idle := len(found) - len(acting):
        grid.add_row(f"{idle} never act" if idle > 1 else "1 never acts")
    return grid


def note(found: Sequence[Outcome]) -> Text:
    """What the figures of policies need to be understood."""
    output = words.money(found[0].bill.output.usd, assumed=found[0].assumed)
    said = Text(f"dollars, simulated; output {output} in each bill", style="dim")
    if found[0].assumed:
        said.append(f"; {words.ASSUMED}: no price is listed, a mid-size model's stands in", style="yellow")
    if any(each.unmet for each in found):
        said.append("; ! above the limit at times", style="yellow")
    return said


def _limit(budget: BudgetLine) -> str:
    named = (("ceiling", budget.ceiling), ("target", budget.target), ("window", budget.window))
    return next(f"{name} {words.short(value)}" for name, value in named if value is not None)


def _narrow(found: Sequence[Outcome], limit: str) -> Grid:
    grid = _grid(1)
    grid.add_column(limit, no_wrap=True, overflow="ellipsis")
    for name in ("peak", "acts", "left", "routed", "lost", "new", "read", "recall", "bill", "vs none"):
        grid.add_column(name, justify="right", no_wrap=True)
    for each in found:
        bill = each.bill
        grid.add_row(
            words.plain(each.policy),
            _peak(each),
            *_taken(each),
            *_missed(each)[1:],
            _cents(bill.uncached.usd + bill.cache_write.usd, each),
            _cents(bill.cache_read.usd, each),
            _cents(bill.recall.usd, each),
            words.money(bill.total_usd, assumed=each.assumed),
            _change(each, found[0]),
        )
    return grid


def _wide(found: Sequence[Outcome], limit: str) -> Grid:
    grid = _grid()
    grid.add_column(limit, no_wrap=True, overflow="ellipsis")
    for name in (
        "peak", "commits", "left", "visible", "routed", "lost", "uncached", "written", "read", "output", "recalls", "bill", "vs none",
    ):  # fmt: skip
        grid.add_column(name, justify="right", no_wrap=True)
    for each in found:
        bill = each.bill
        parts = (bill.uncached, bill.cache_write, bill.cache_read, bill.output, bill.recall)
        grid.add_row(
            words.plain(each.policy),
            _peak(each),
            *_taken(each),
            *_missed(each),
            *(_cents(part.usd, each) for part in parts),
            words.money(bill.total_usd, assumed=each.assumed),
            _change(each, found[0]),
        )
    return grid


def _grid(gap: int = 2) -> Grid:
    return Grid(box=None, pad_edge=False, header_style="dim", padding=(0, gap, 0, 0))


def _figures(row: Row, *, assumed: bool) -> tuple[str, ...]:
    return words.short(row.tokens), words.short(row.paid), words.money(row.usd, assumed=assumed), words.share(row.share)


def _peak(each: Outcome) -> str:
    return words.short(each.peak) + "!" * each.unmet


def _taken(each: Outcome) -> tuple[str, str]:
    return (str(each.commits), words.short(each.left)) if each.commits else ("–", "–")


def _missed(each: Outcome) -> tuple[str, str, str]:
    counts = (each.visible, each.routed, each.lost)
    return (f"{counts[0]:,}", f"{counts[1]:,}", f"{counts[2]:,}") if each.commits else ("–", "–", "–")


def _cents(usd: float, each: Outcome) -> str:
    """An amount without its sign, as short as it says something."""
    return words.money(usd, assumed=each.assumed).replace("$", "") if usd else "–"


def _change(each: Outcome, none: Outcome) -> Text:
    if each is none:
        return Text("")
    said = words.change(each.bill.total_usd, none.bill.total_usd)
    return Text(said, style="green" if said.startswith("−") else "red" if said.startswith("+") else "")
