"""Jinja2 templates over events: a template asks with `query` and `one`, and writes tables with `table`. One filter for each kind of number.

In a query of `table` the name of a column says how it is written: `"bill|usd"` stands under the head "bill" as dollars. Columns of words are
aligned left, all others right; what is null is a dash.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from jinja2 import Environment, PackageLoader, StrictUndefined

from tenure.engine.meter import figures
from tenure.engine.meter.figures import NOTHING
from tenure.lab.intervals import sign_test, wilson

if TYPE_CHECKING:
    from tenure.lab.query import Events  # loads DuckDB, which a page without queries does without

TEXT: Final = "text"
WORDS: Final = (TEXT, "answer", "figures")  # the filters of columns of words


def cell(text: str) -> str:
    """Text as a cell of a Markdown table holds it: nothing in it ends the cell, and no file's name is taken for markup."""
    plain = "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def shared(counted: Mapping[str, int]) -> str:
    """A counted share, `{'hits': …, 'of': …}`, with Wilson's 95 % interval."""
    hits, of = counted["hits"], counted["of"]
    if not of:
        return NOTHING
    between = wilson(hits, of)
    return f"{figures.percent(hits / of)} ({between.low * 100:.0f}–{between.high * 100:.0f})"


def between(estimate: Mapping[str, float | None]) -> str:
    """A figure, `{'value': …, 'low': …, 'high': …}`, with its 95 % interval."""
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    if value is None:
        return NOTHING
    return figures.decimal(value) + ("" if low is None or high is None else f" ({figures.decimal(low)}–{figures.decimal(high)})")


def chance(split: Mapping[str, int]) -> str:
    """How likely a split, `{'first': …, 'second': …}`, at least this uneven is between equals."""
    return figures.decimal(sign_test(split["first"], split["second"]), 3)


def basis(named: str) -> str:
    """The numbers that a verdict rests on: JSON of `name`, `value` and `unit` each."""
    units: dict[str, Callable[[float], str]] = {"share": figures.percent, "times": "{:.2f}".format, "usd": figures.usd}
    return cell(
        "; ".join(f"{each['name']} {units.get(each['unit'], '{:,.0f}'.format)(each['value'])}" for each in json.loads(named))
    )


def error(share: float) -> str:
    """A signed share with one decimal."""
    text = f"{share * 100:+.1f} %"
    return "±0.0 %" if text in ("+0.0 %", "-0.0 %") else figures.signed(text)


# By the names that templates and columns use.
FILTERS: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType(
    {
        TEXT: lambda value: cell(str(value)),
        "count": lambda value: figures.tokens(round(value)),
        "limit": figures.limit,
        "usd": figures.usd,
        "assumed": lambda money: figures.usd(money["usd"], assumed=money["assumed"]),
        "figures": basis,
        "balance": lambda value: figures.signed(f"{value:+,.2f}"),
        "percent": figures.percent,
        "percent1": lambda value: figures.percent(value, 1),
        "decimal": figures.decimal,
        "decimal1": lambda value: figures.decimal(value, 1),
        "change": lambda ratio: figures.change(ratio, 1.0),
        "error": error,
        "shared": shared,
        "between": between,
        "chance": chance,
        "answer": lambda value: "yes" if value else "no",
    }
)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; `head` has for each column its name, a `|` and the filter that writes its cells."""
    columns = [(name.strip(), kind) for name, _, kind in (each.rpartition("|") for each in head)]
    rule = ["---" if kind in WORDS else "---:" for _, kind in columns]
    written = [[_written(value, kind) for value, (_, kind) in zip(row, columns, strict=True)] for row in rows]
    names = [cell(name) for name, _ in columns]
    return "\n".join("| " + " | ".join(line) + " |" for line in (names, rule, *written))


def _written(value: Any, kind: str) -> str:
    """A value by its filter; by several with dots between, a struct of as many values."""
    if "·" in kind and value is not None:
        return " · ".join(_written(each, one) for each, one in zip(value.values(), kind.split("·"), strict=True))
    return FILTERS[kind](value) if value is not None or kind == "limit" else NOTHING


def environment(package: str, folder: str = "templates", *, html: bool = False) -> Environment:
    """The templates of a package's folder; with `html` what they write is escaped."""
    loader = PackageLoader(package, folder)
    made = Environment(loader=loader, autoescape=html, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)  # noqa: S701 - Markdown
    cast("dict[str, Callable[..., str]]", made.filters).update(FILTERS | {"several": figures.several})  # pyright: ignore[reportUnknownMemberType]
    return made


def asking(events: "Events") -> dict[str, Any]:
    """The functions by which a template asks these events."""

    def tabled(sql: str, **values: object) -> str:
        answer = events.ask(sql, **values)
        return table(answer.columns, answer.rows)

    def query(sql: str, **values: object) -> list[dict[str, Any]]:
        return events.ask(sql, **values).dicts

    def one(sql: str, **values: object) -> dict[str, Any] | None:
        return next(iter(query(sql, **values)), None)

    return {"query": query, "one": one, "table": tabled}
