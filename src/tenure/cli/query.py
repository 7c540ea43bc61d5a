"""`tenure query`: SQL over what happened in a session."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

from rich.text import Text

from tenure.cli import words
from tenure.cli.options import (
    SESSION_HELP,
    Ceiling,
    HeadTokens,
    LimitOptions,
    PricedAs,
    Target,
    argument,
    flag,
    head_of,
    option,
)
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import DEFAULT, UNBOUNDED, policy_named
from tenure.engine.record.visible import json_of, visible_json

TABLES: Final = "select table_name as \"table\" from information_schema.tables where table_name <> 'raw' order by 1"
_SHOWN_CHARS: Final = 2_000  # of a cell on a screen; --json has all
_OPENING: Final = b'{"type":"'  # of a file of events
_FIRST_LINE: Final = 1_000_000  # bytes of it that are looked at


def query(
    session: Annotated[str, argument("SESSION", SESSION_HELP + " Or a file of `tenure replay --json`.")],
    sql: Annotated[str, argument("SQL", "A query. Without one, the tables are listed.")] = TABLES,
    policy: Annotated[str, option("NAME", "Replay under this policy. Default: nothing leaves.")] = "",
    target: Target = "",
    ceiling: Ceiling = "",
    model: PricedAs = "",
    head_tokens: HeadTokens = "",
    json: Annotated[bool, flag("--json", "Print one JSON object per line and row.")] = False,
) -> None:
    """Ask a session with SQL: its messages, calls, commits, and what was needed after it left.

    The session is replayed as it was recorded, or under a budget where one is named. `describe TABLE` lists the columns of a table. Exit codes: 0
    done, 2 bad input.
    """
    from tenure.lab.bill import accounted
    from tenure.lab.loading import source
    from tenure.lab.query_process import answer
    from tenure.lab.replay import Options, replay

    if _holds_events(session):
        found = answer(Path(session), sql)
    else:
        evicts = bool(policy or target or ceiling)
        options = Options(
            budget=LimitOptions(target=target, ceiling=ceiling).budget(usual="ceiling" if evicts and policy != UNBOUNDED else ""),
            policy=policy_named(policy or (DEFAULT if evicts else UNBOUNDED)),
            model=model,
            head=head_of(head_tokens),
        )
        lines = replay([source(session)], options, o200k())
        found = answer(accounted(lines) if evicts else lines, sql)
    if json:
        for row in found.dicts:
            sys.stdout.buffer.write(visible_json(json_of(row)) + b"\n")
        sys.stdout.buffer.flush()
        return
    table = words.table()
    for at, name in enumerate(found.columns):
        is_number = bool(found.rows) and all(isinstance(row[at], int | float) for row in found.rows)
        table.add_column(Text(words.plain(name)), justify="right" if is_number else "left", overflow="fold")
    for row in found.rows:
        table.add_row(*(Text(_shortened(_text(value))) for value in row))
    words.screen().print(table)


def _holds_events(path: str) -> bool:
    """Whether a file holds events rather than a session."""
    try:
        if (
            not Path(path).is_file() or not Path(path).stat().st_size
        ):  # a pipe or a file of the kernel would be waited for; a session's reader refuses it
            return False
        with Path(path).open("rb") as file:
            return file.read(len(_OPENING)) == _OPENING and b'"version":' in file.readline(_FIRST_LINE)
    except (OSError, ValueError):
        return False


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}… ({len(text):,} characters)"


def _text(value: Any) -> str:
    """A value in one cell."""
    match value:
        case None:
            return ""
        case float():
            return f"{value:,.6g}"
        case bool() | str():
            return words.plain(str(value))
        case int():
            return f"{value:,}"
        case _:
            return words.plain(json_of(value).decode())
