"""`tenure report`: managed conversations of a store beside those that were held out."""

from typing import Annotated

from rich.console import RenderableType

from tenure.cli import words
from tenure.cli.options import STDOUT, argument, option, output
from tenure.engine.record.visible import json_of
from tenure.errors import InputError, StoreError
from tenure.lab.split import SplitReport, split_of

_NAMES = {"managed": "managed", "control": "held out", "": "no part in it"}


def report(
    store: Annotated[str, argument("STORE", "A store of Tenure's own: a file or a database URL.")],
    json: Annotated[str, option("FILE", "Write the figures as JSON (- for standard output).")] = "",
) -> None:
    """Compare managed conversations with those that `Context(holdout=…)` held out: input tokens, dollars and misses.

    Tokens are as providers reported them, dollars include the models that plan and summarise, and a miss is a call of `recall`.
    """
    from tenure.store.store import Store

    url = store if "://" in store else f"sqlite:///{store}"
    try:
        with Store(url, read_only=True) as records:
            found = split_of(records)
    except StoreError as error:
        raise InputError(store, str(error), "a store of Tenure's own") from error
    with output(json) as out:
        if out is not None:
            out.write(json_of(found) + b"\n")
    console = words.screen(stderr=json == STDOUT)
    console.print(screen(found))
    for line in comparison(found):
        console.print(words.plain(line), soft_wrap=True)


def screen(found: SplitReport) -> RenderableType:
    """A row for each arm."""
    table = words.table(
        "arm", ">conversations", ">calls", ">input per call", ">USD", ">for helpers", ">USD per call", ">misses per 100 calls"
    )
    for row in found.rows:
        per_call = "" if row.usd_per_call is None else words.money(row.usd_per_call)
        table.add_row(
            _NAMES[row.arm],
            f"{row.conversations:,}",
            f"{row.calls:,}",
            "" if row.input_per_call is None else words.tokens(int(row.input_per_call)),
            words.money(row.usd) + ("+" if row.unpriced else ""),
            words.money(row.helpers_usd),
            per_call,
            "" if row.misses_per_100_calls is None else f"{row.misses_per_100_calls:.1f}",
        )
    return table


def comparison(found: SplitReport) -> list[str]:
    """How the arms differ, in sentences."""
    if not found.differences:
        return ["Nothing to compare: it takes calls in both arms (Context(holdout=…))."]
    lines = [
        f"{each.figure} per call, managed against held out: {each.ratio:.2f} times ({each.low:.2f} to {each.high:.2f} in 95 of 100 draws of conversations)"
        for each in found.differences
    ]
    if any(row.unpriced for row in found.rows):
        lines.append("+: of some calls nobody knows the price.")
    return lines
