"""`tenure context`: what a session is made of, and what its model saw at any call, in a viewer."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.main import is_interactive
from tenure.cli.options import SESSION_HELP, Light, StoreAt, argument, option
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.store.records import Conversation


def context(
    session: Annotated[str, argument("SESSION", SESSION_HELP + " PATH#ID names one of several.")],
    chosen: Annotated[
        str, option("TURNS", "Without a screen: build a conversation of these, such as user:1,user:3,brief:1.", "--build")
    ] = "",
    fork: Annotated[
        str, option("AT", "Without a screen: fork a session of your own behind a turn or message: user:3, entry:40.")
    ] = "",
    store: StoreAt = "",
    light: Light = False,
) -> None:
    """Browse a session's window: turns, objects, calls and commits, and build new conversations from chosen turns.

    A conversation that is built goes to --store, by default into the session's own store, or with your own sessions.
    """
    if not (chosen or fork or is_interactive()):
        raise InputError("context", "no terminal", "one; or --build, or --fork; `tenure show` prints a summary")
    from tenure.agent.admission.place import place_on_disk
    from tenure.agent.admission.prompt import admit
    from tenure.agent.opening import store_url
    from tenure.agent.screens.build import Picks, build
    from tenure.agent.screens.contents import Segment, lists
    from tenure.agent.screens.history import History, of_address
    from tenure.agent.screens.themes import DARK, LIGHT
    from tenure.agent.screens.tree import end_of, picks_named
    from tenure.agent.screens.viewer import ViewerApp
    from tenure.agent.settings import Settings, World
    from tenure.engine.lifecycle.terms import Terms
    from tenure.engine.meter.tokens import o200k
    from tenure.lab.loading import spills_of
    from tenure.store.records import Conversation
    from tenure.store.spills import SUFFIX

    count = o200k()
    history = of_address(session, count)
    world, folder = World(), Path.cwd().resolve()
    own = spills_of(session).folder  # beside the session's store, where it is one of ours: there its handles are found
    url = store_url(Settings(folder=folder, store=store or (str(own).removesuffix(SUFFIX) if own else "")), world)

    def store_built(history: History, picks: Picks, segments: Iterable[Segment]) -> Conversation:
        from tenure.store.store import Store

        place = place_on_disk(folder, home=world.home, environment=world.environment, today=world.today)
        if url.startswith("sqlite:///"):
            Path(url.removeprefix("sqlite:///")).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Store(url) as records:
            system = admit(place, count=count).system
            return build(history, picks, segments, store=records, folder=folder, count=count, system=system)

    if fork:
        if history.sheet is None or own is None:
            raise InputError("--fork", f"{session!r}, which is not in a store of your own", "--build with turns of it")
        built = fork_at(str(own).removesuffix(SUFFIX), history.sheet, end_of(history, lists(history), fork))
    elif chosen:
        contents = lists(history)
        built = store_built(history, picks_named(contents, chosen.replace(",", " ").split()), contents.segments).id
    else:
        built = ViewerApp(lambda: history, store_built, theme=LIGHT if light else DARK).run() or ""
    if built:
        apart = "" if url == store_url(Settings(folder=folder), world) else f" --store {url.removeprefix('sqlite:///')}"
        held = history.sheet is not None and Terms.stored(history.sheet.terms).base_url
        typer.echo(f"tenure --resume {built[:8]}{apart}{'' if held else ' --model MODEL'} goes on with what was built")


def fork_at(path: str, sheet: "Conversation", entries: int) -> str:
    """Fork a conversation of the store at this path, with the changes of files that it may undo; the fork's id."""
    import os
    from uuid import uuid4

    from tenure.agent.snapshots import Snapshots
    from tenure.store.records import utc_now
    from tenure.store.store import Store

    with Store(f"sqlite:///{path}") as records:
        fork = records.fork(sheet.id, entries, uuid4().hex, f"fork of {sheet.id[:8]}").id
        if (spills := records.spills.folder) is not None:
            kept = Snapshots(Snapshots.beside(spills, spills), Path(sheet.tenant), sheet.id, environment=os.environ, now=utc_now)
            kept.share(fork, entries)
    return fork
