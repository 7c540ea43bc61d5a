"""`tenure plugins`: what other packages add."""

import typer

from tenure.cli import words
from tenure.plugins import KINDS, parts

BROKEN = 1  # exit code


def plugins() -> None:
    """List the policies and readers that other packages add, and what is wrong with one that cannot be used.

    Exit codes: 0 all can be used, 1 one cannot.
    """
    console, found = words.screen(), list(parts())
    for each in found:
        state = f"cannot be used: {each.wrong}" if each.wrong else "ok"
        console.print(words.plain(f"{each.kind}  {each.name}  {each.package} {each.version}  {state}"), soft_wrap=True)
    if not found:
        console.print(
            f"No installed package adds any: none has entry points named {' or '.join(f'tenure.{kind}' for kind in KINDS)}."
        )
    if any(each.wrong for each in found):
        raise typer.Exit(BROKEN)
