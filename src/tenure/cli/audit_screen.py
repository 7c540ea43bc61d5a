"""The screen of one audited session: what fits a small terminal; the page and the lines have the rest."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from tenure.cli import words
from tenure.cli.audit_tables import Outcome, needless, note, outcomes, policies, top, where
from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.report import Audit, Row, Session
from tenure.lab.events import Head

LABEL: Final = 10  # columns of what a line is about, with the gap
PARTS: Final = 2  # of a path that tell a file
WHY_CHARS: Final = 1_000  # of a reason
NAME: Final = 28  # columns of them; of longer ones the last part tells it


def screen(audit: Audit, width: int) -> Group:
    """One session, in at most 24 lines with the policies of the default."""
    session, window = audit.session, audit.window
    room = width - LABEL
    facts: list[tuple[str, str | Text]] = [
        ("by tool", top(window.by_tool, room, "outside tools", lambda row: row.name)),
        ("by file", top(window.by_path, room, "no file", _file)),
        ("by turn", top(window.by_turn, room, "before the first", _turn)),
        ("needless", needless(window.wasted, assumed=session.is_assumed)),
        ("left out", _left_out(session)),
    ]
    found = outcomes(audit)
    budget = next((run.budget for run in audit.runs if run.policy != UNBOUNDED), audit.runs[0].budget)
    parts: list[RenderableType] = [
        *_titles(audit),
        "",
        where(window.by_kind, assumed=session.is_assumed),
        _facts(facts),
        "",
        policies(found, budget, width),
    ]
    return Group(*parts, *notes(found, [f"{run.policy}: {run.violations[0]}" for run in audit.runs if run.violations]))


def notes(found: Sequence[Outcome], broken: Sequence[str]) -> Iterator[Text]:
    """What the figures of policies need to be understood, and what must never be."""
    yield note(found)
    if broken:
        yield Text(words.plain("laws broken: " + "; ".join(broken)), style="bold red")


def name_of(path: str) -> str:
    """The last part of a path, and what is meant inside it."""
    return words.plain(PurePosixPath(path.replace("\\", "/")).name or path)


def counted(count: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _titles(audit: Audit) -> Iterator[Text]:
    session = audit.session
    model = session.model if session.model_known else f"priced as {session.model}"
    yield _line(Text.assemble((name_of(session.path), "bold"), words.plain(f"  {session.format} · {model}")))
    size = f"{counted(session.calls, 'call')}, {counted(session.turns, 'turn')}, {words.tokens(session.tokens)} tokens"
    compacted = f", {counted(times, 'compaction')}" if (times := len(audit.window.compactions)) else ""
    yield _line(Text(f"{size}{_head(session.head)}{compacted}{_when(session)}", style="dim"))


def _head(head: Head) -> str:
    """What stands before every view, in a few words."""
    match head.origin:
        case "reported":
            return f", head {words.short(head.provider_tokens)} by its reports"
        case "given":
            return f", head {words.short(head.tokens)} as given" if head.tokens else ""
        case "unknown":
            return ", head not known"


def _facts(facts: Sequence[tuple[str, str | Text]]) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=LABEL - 2)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for name, said in facts:
        if said:
            grid.add_row(name, said)
    return grid


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _file(row: Row) -> str:
    short = "/".join(row.name.split("/")[-PARTS:])
    return short if len(short) <= NAME else row.name.rpartition("/")[2]


def _turn(row: Row) -> str:
    number = row.name.partition(":")[2]
    return f"{number} “{words.first_line(row.label, 24)}”" if row.label else number


def _left_out(session: Session) -> Text | str:
    """What the reader left out: the first reason, never cut to the screen since it may end with the way out, and the rest counted."""
    if not session.skipped:
        return ""
    first, others = session.skipped[0], len(session.skipped) - 1
    more = f"; and for {counted(others, 'other reason')}" if others else ""
    place = f"line {first.line}: " if first.line else ""
    return Text(words.first_line(f"{place}{first.reason}", WHY_CHARS) + more, no_wrap=False, overflow="fold")


def _when(session: Session) -> str:
    start, end = _moment(session.started), _moment(session.ended)
    if start is None or end is None:
        return ""
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{_day(end)} {end:%H:%M}"
    return f", {_day(start)} {start:%Y %H:%M}–{until}"


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b}"


def _moment(at: str) -> datetime | None:
    try:
        return datetime.fromisoformat(at) if at else None
    except ValueError:
        return None
