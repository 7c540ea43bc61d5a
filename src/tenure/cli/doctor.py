"""`tenure doctor`: what a gateway finds on this machine, and what is wrong."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from tenure.cli import words
from tenure.cli.options import flag, option

_SIGNS: Final = {"ok": ("✓", "green"), "absent": ("·", "dim"), "wrong": ("✗", "bold red")}


def doctor(
    *,
    store: Annotated[Path | None, option("FOLDER", "Where conversations are kept.")] = None,
    as_json: Annotated[bool, flag("--json", "Print one JSON object per line.")] = False,
) -> None:
    """Look at what `tenure wrap` and `tenure serve` need: agents, keys, addresses, ports and the store.

    Nothing is changed, and no key is printed. Exit codes: 0 nothing is wrong, 1 something is.
    """
    from tenure.gateway.checkup import checkup
    from tenure.gateway.home import default_folder

    console = words.screen()
    wrong = 0
    area = ""
    for found in checkup(os.environ, Path.home(), store or default_folder(os.environ)):
        wrong += found.verdict == "wrong"
        if as_json:
            sys.stdout.write(
                json.dumps({"area": found.area, "name": found.name, "verdict": found.verdict, "text": found.text}) + "\n"
            )
            continue
        if found.area != area:
            area = found.area
            console.print(Text(area, style="bold"))
        sign, style = _SIGNS[found.verdict]
        line = Text.assemble((f"  {sign} ", style), (words.plain(found.name), ""), "  ", (words.plain(found.text), "dim"))
        console.print(line, soft_wrap=True)
    if not as_json:
        console.print(
            Text(f"{words.several(wrong, 'thing')} to mend" if wrong else "nothing is wrong", style="red" if wrong else "green")
        )
    raise typer.Exit(1 if wrong else 0)
