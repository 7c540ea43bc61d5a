"""`tenure context`: what a session is made of, and what its model saw at any call, in a viewer."""

from pathlib import Path
from typing import Annotated

import typer

from tenure.cli.asked import SESSION_HELP, Light, StoreAt
from tenure.cli.talking import is_interactive
from tenure.errors import InputError


def context(
    session: Annotated[str, typer.Argument(metavar="SESSION", help=SESSION_HELP + " PATH#ID names one of several.")],
    store: StoreAt = "",
    light: Light = False,
) -> None:
    """Browse a session's window: turns, objects, calls and commits, and build new conversations from chosen turns.

    A conversation that is built goes to --store, by default with your own sessions.
    """
    if not is_interactive():
        raise InputError("context", "no terminal", "one; `tenure show` prints a summary")
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
