"""Where the recorded window went, and what of it was waste."""

from collections.abc import Sequence
from typing import Final

from tenure.lab.audit.page.figures import bar, percent, tokens
from tenure.lab.audit.page.markup import Html, el, join
from tenure.lab.audit.page.session import Place
from tenure.lab.audit.page.tables import Cell, Column, figure, path, table, text
from tenure.lab.audit.report import Audit, Reread, Row, Table, Waste, Window
from tenure.lab.events import Head

# What each table tells, what it counts, and what a row without a name stands for.
_TABLES: Final = (
    ("by_kind", "kind", "blocks", ""),
    ("by_tool", "tool", "calls", "outside of tools"),
    ("by_path", "path", "calls", "without a path"),
    ("by_turn", "turn", "messages", "before the first turn"),
)

_PATH: Final = 44  # characters, where two tables stand side by side
_MEANINGS: Final[dict[Waste, str]] = {
    "stale": "its file was changed since",
    "superseded": "its lines were read again since",
    "duplicate": "the same bytes were shown again since",
}


def window_section(audit: Audit, place: Place, most: int) -> Html:
    """By kind, tool, path and turn, the dearest `most` of each."""
    window = audit.window
    tables = [_table(getattr(window, field), what, of, unnamed, most, place) for field, what, of, unnamed in _TABLES]
    return join(
        [
            place.heading("Where the window went"),
            el(
                "p",
                "As recorded. Tokens count once, as they came in; paid tokens count again at each call that carried them, which is what a large result costs when it stays.",
                _head(window, audit.session.head, place),
                class_="lead",
            ),
            el("div", *tables, class_="grid"),
        ]
    )


def waste_section(audit: Audit, place: Place, most: int) -> Html:
    """Stale, superseded and duplicate reads."""
    window = audit.window
    if not any(waste.objects for waste in window.wasted):
        return join(
            [place.heading("Waste"), el("p", "No stale, superseded or duplicate read was carried by any call.", class_="none")]
        )
    most = max(waste.paid for waste in window.wasted)
    columns = [
        Column(name="reads"),
        Column(name="objects", class_="n"),
        Column(name="tokens", class_="n"),
        Column(name="paid tokens", class_="wide"),
        Column(name="", class_="n"),
        Column(name="cost", class_="n"),
        Column(name="why it is waste", class_="words meaning"),
    ]
    rows = [
        [
            text(waste.how, name=True),
            figure(f"{waste.objects:,}", waste.objects),
            figure(tokens(waste.tokens), waste.tokens),
            Cell(shown=bar([("w", waste.paid)], most), value=str(waste.paid)),
            figure(tokens(waste.paid), waste.paid),
            figure(place.usd(waste.usd), waste.usd),
            text(_MEANINGS[waste.how]),
        ]
        for waste in window.wasted
    ]
    return join(
        [
            place.heading("Waste"),
            el(
                "p",
                "Results that the recorded window carried when nothing needed them there any more. Each counts once, as what it became first.",
                class_="lead",
            ),
            table("Waste by sort", columns, rows, fold=False),
            _rereads(window.rereads, most, place),
        ]
    )


# How the head is known.
_KNOWN: Final = {"reported": "as the first prompts that it reports reveal", "given": "as given"}


def _head(window: Window, head: Head, place: Place) -> str:
    if head.origin == "unknown":
        return (
            " System prompt and tools, which the log leaves out, are not counted: it reports no prompts that would reveal them."
        )
    if not window.head.paid:
        return ""
    return f" System prompt and tools, which the log leaves out, are counted apart, {_KNOWN[head.origin]}: {tokens(window.head.tokens)} tokens, {tokens(window.head.paid)} paid, {place.usd(window.head.usd)}."


def _table(rows: Table, what: str, of: str, unnamed: str, most_rows: int, place: Place) -> Html:
    every = [*rows.rows, *([rows.rest] if rows.rest else [])]
    most = max((row.usd for row in every), default=0.0)
    columns = [
        Column(name=what, class_="words"),
        Column(name=of, class_="n slim"),
        Column(name="tokens", class_="n slim"),
        Column(name="paid", class_="n slim"),
        Column(name="cost", class_="n narrow", sort="descending"),
    ]
    drawn = [_row(row, most, what, unnamed, place) for row in rows.rows[:most_rows]]
    if rows.rest:
        drawn.append(_row(rows.rest, most, "rest", f"{rows.merged:,} more", place))
    cut = len(rows.rows) > most_rows
    return table(f"By {what}: the {most_rows} dearest of {len(rows.rows):,}" if cut else f"By {what}", columns, drawn, title=cut)


def _row(row: Row, most: float, what: str, unnamed: str, place: Place) -> Sequence[Cell]:
    return [
        _name(row, what, unnamed),
        figure(f"{row.objects:,}", row.objects),
        figure(tokens(row.tokens), row.tokens),
        figure(tokens(row.paid), row.paid, percent(row.share)),
        Cell(
            shown=el("span", place.usd(row.usd), bar([("w", row.usd)], most), class_="barred"), value=f"{row.usd:.6g}", class_="n"
        ),
    ]


def _name(row: Row, what: str, unnamed: str) -> Cell:
    match what:
        case "rest":
            return text(unnamed, name=True)
        case "kind":
            return text(row.label or row.name or unnamed, name=True)
        case "turn":
            return text(f"{row.name}  {row.label}".strip() or unnamed, 160, name=True)
        case _:
            return path(row.name, _PATH) if row.name else text(unnamed, name=True)


def _rereads(rereads: Sequence[Reread], most: int, place: Place) -> Html:
    columns = [
        Column(name="how"),
        Column(name="what was read", class_="words"),
        Column(name="object"),
        Column(name="because of"),
        Column(name="tokens", class_="n"),
        Column(name="from call", class_="n slim"),
        Column(name="calls", class_="n slim"),
        Column(name="paid", class_="n"),
        Column(name="cost", class_="n", sort="descending"),
    ]
    rows = [
        [
            text(each.how),
            path(each.path),
            text(each.object, 48, mono=True),
            text(each.by, 48, mono=True),
            figure(tokens(each.tokens), each.tokens, f"of {tokens(each.of)}" if each.of != each.tokens else ""),
            figure(f"{each.before_call:,}", each.before_call),
            figure(f"{each.calls:,}", each.calls),
            figure(tokens(each.paid), each.paid),
            figure(place.usd(each.usd), each.usd),
        ]
        for each in rereads[:most]
    ]
    return table("The dearest of them", columns, rows, title=True)
