"""`tenure context`: what a session is made of, and what its model saw at any call, in a viewer."""

from pathlib import Path
from typing import Annotated

import typer

from tenure.cli.talking import is_interactive
from tenure.errors import InputError


def context(
    session: Annotated[
        str, typer.Argument(help="A session file of any known agent, or a store of Tenure's own; PATH#ID for one of several.")
    ],
    store: Annotated[
        str, typer.Option(help="Where a conversation that is built is kept. By default in the user's state folder.")
    ] = "",
    light: Annotated[bool, typer.Option("--light", help="Dark letters on a light ground.")] = False,
) -> None:
    """Look at a session's window: segments, turns, objects, calls and commits; choose turns and build a new conversation from them."""
    if not is_interactive():
        raise InputError("tenure context", "no terminal", "one to show it on; `tenure show` prints a summary")
    from tenure.agent.opening import store_url
    from tenure.agent.settings import Settings, World
    from tenure.meter.tokens import o200k
    from tenure.store.records import Records
    from tenure.tui.building import Builder
    from tenure.tui.history import of_address
    from tenure.tui.themes import DARK, LIGHT
    from tenure.tui.viewing import ViewerApp

    count = o200k()
    history = of_address(session, count)
    url = store_url(Settings(folder=Path.cwd(), store=store), World())

    def opened() -> Records:
        from tenure.store.store import Store

        if url.startswith("sqlite:///"):
            Path(url.removeprefix("sqlite:///")).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Store(url)

    built = ViewerApp(lambda: history, Builder(opened, Path.cwd().resolve(), count), theme=LIGHT if light else DARK).run()
    if built:
        typer.echo(f"tenure --resume {built[:8]} goes on with what was built")
