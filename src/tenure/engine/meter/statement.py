"""The ledger in words: one line for people, and a small table."""

from functools import partial
from typing import Final, NamedTuple

from tenure.engine.meter.figures import ASSUMED, first_line, money, share, short, spent
from tenure.engine.meter.ledger import Account, Ledger, Savings

# Tokens of prompts by what the provider's cache did with them, then of answers.
COLUMNS: Final = ("role", "model", "calls", "uncached", "write", "read", "output", "USD")
GAP: Final = "  "
LEAST_MODEL: Final = 8  # characters


class LedgerNote(NamedTuple):
    """A sentence below the table, and what it is about."""

    label: str
    text: str


def line(ledger: Ledger) -> str:
    """The whole ledger as one line that a person understands."""
    total = ledger.total
    if not total.calls:
        return "no call has reported what it used"
    used = total.usage
    cached = f" ({share(used.cache_read / used.prompt)} from the cache)" if used.prompt else ""
    words = f"{_calls(total.calls)}, {short(used.prompt)} tokens in{cached}, {short(used.output)} out, {spent(total.usd, total.unpriced)}"
    helpers = [account for account in ledger.accounts if account.helps]
    if helpers:
        words += f", {money(ledger.savings.helpers_usd)} of it for {_calls(sum(each.calls for each in helpers))} of helper models"
    return words + (f"; {_saved(ledger.savings)}" if _has_comparison(ledger) else "")


def table(ledger: Ledger, width: int = 80) -> str:
    """The accounts, a line each under a heading, in at most `width` columns where that is possible at all; their sum when there are several."""
    accounts = (*ledger.accounts, ledger.total) if len(ledger.accounts) > 1 else ledger.accounts
    rows = [COLUMNS, *(_cells(account) for account in accounts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    widths[1] = max(min(widths[1], LEAST_MODEL), widths[1] - max(0, over))
    return "\n".join(_row(row, widths) for row in rows)


def notes(ledger: Ledger) -> tuple[LedgerNote, ...]:
    """What the table does not say: unpriced calls, recalls, what was saved, and how that was found."""
    words: list[LedgerNote] = []
    if unpriced := ledger.total.unpriced:
        words.append(LedgerNote("unpriced", f"{_calls(unpriced)} of unknown price, not in the USD"))
    recalls = ledger.recalls
    if recalls.answers or recalls.calls.calls:
        brought = f"{recalls.answers:,} answer{'s' * (recalls.answers != 1)} brought back {short(recalls.tokens)} tokens"
        words.append(
            LedgerNote(
                "recall", f"{brought}; {_calls(recalls.calls.calls)} made for nothing else, {money(recalls.usd)} of the above"
            )
        )
    if _has_comparison(ledger):
        words += _compared(ledger.savings)
    return tuple(words)


def _has_comparison(ledger: Ledger) -> bool:
    """Whether there is anything to tell: something left, or somebody was paid to say what might."""
    return bool(ledger.compared.calls) and (ledger.compared.touched or any(each.helps for each in ledger.accounts))


def _saved(saved: Savings) -> str:
    """What came of it, in a few words."""
    if saved.beyond == saved.calls:
        return f"without eviction no call would have fitted into {short(saved.window)}"
    amount = partial(money, assumed=not saved.is_priced)
    if saved.net_usd >= 0:
        words = f"eviction saved {amount(saved.net_usd)} of a simulated {amount(saved.without_usd)}, net"
    else:
        words = f"eviction cost {amount(-saved.net_usd)} more than the simulated {amount(saved.without_usd)} without it"
    if saved.beyond:
        words += f"; {saved.beyond:,} of {_calls(saved.calls)} would not have fitted into {short(saved.window)} without it"
    return words


def _compared(saved: Savings) -> list[LedgerNote]:
    words: list[LedgerNote] = []
    if compared := saved.calls - saved.beyond:
        label, net = ("saved", saved.net_usd) if saved.net_usd >= 0 else ("lost", -saved.net_usd)
        amount = partial(money, assumed=not saved.is_priced)
        cost = f"{amount(saved.with_usd)} with it, {amount(saved.breaks_usd)} of that for broken caches"
        helped = f", and {money(saved.helpers_usd)} for helper models" if saved.helpers_usd else ""
        both = f"{_calls(compared)} would have cost {amount(saved.without_usd)} without eviction and cost {cost}{helped}"
        priced = "" if saved.is_priced else f", {ASSUMED} a mid-size model's where a model has none"
        how = f"both sides by list price{priced}, in a simulated cache"
        words.append(LedgerNote(label, f"{amount(net)} net: {both} ({how})"))
    if saved.beyond:
        peak = f"prompts of up to {short(saved.peak)} tokens, for a window of {short(saved.window)}"
        words.append(
            LedgerNote(
                "too large", f"{saved.beyond:,} of {_calls(saved.calls)} could not have been made without eviction: {peak}"
            )
        )
    return words


def _calls(count: int) -> str:
    return f"{count:,} call{'s' * (count != 1)}"


def _cells(account: Account) -> tuple[str, ...]:
    usage = account.usage
    figures = (usage.uncached, usage.cache_write, usage.cache_read, usage.output)
    usd = "?" if account.unpriced == account.calls else money(account.usd)
    model = first_line(account.model, 80) or ("" if account.role == "all" else "?")
    return account.role, model, f"{account.calls:,}", *map(short, figures), usd


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    names = [cells[0].ljust(widths[0]), _cut(cells[1], widths[1]).ljust(widths[1])]
    return GAP.join([*names, *(cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True))])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"
