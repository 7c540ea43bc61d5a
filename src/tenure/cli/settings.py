"""`tenure settings`: everything that can be set for the agent, what holds here, and where it was set."""

from pathlib import Path
from typing import Annotated

from rich.table import Table

from tenure.cli import words
from tenure.cli.options import argument

WIDE = 110  # columns from which on what may be written is listed too


def settings(
    folder: Annotated[Path | None, argument("[FOLDER]", "The folder to work in. Default: this one.")] = None,
) -> None:
    """List the agent's settings: what each does, what may be written, and what holds in a folder.

    They are lines such as `ceiling = "50%"` in ~/.config/tenure/settings.toml, or in .tenure/settings.toml of a project, which may only say how
    the window is held. Options of the command line count before both; `/set` changes a session that is open.
    """
    from tenure.agent.settings import World
    from tenure.agent.settings_file import PROJECT, SETTINGS, file_settings, user_file

    world, place = World(), (folder or Path.cwd()).resolve()
    files, console = file_settings(place, world), words.screen()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    is_wide = console.width >= WIDE
    for title in ("setting", "value", "what it is", *(("what may be written",) if is_wide else ())):
        table.add_column(title, overflow="fold")
    for each in SETTINGS:
        mark = "" if each.name not in files.values else " (project)" if files.origins[each.name] != str(user_file(world)) else ""
        value = words.plain(files.values.get(each.name, "")) + mark
        form = (words.plain(each.form),) if is_wide else ()
        table.add_row(each.name + ("" if each.by_project else " *"), value or "·", each.about, *form)
    console.print(table)
    console.print()
    console.print(
        words.plain(f"The user's file: {user_file(world)}. The project's: {place / PROJECT}, without what has a *."),
        soft_wrap=True,
    )
    for notice in files.notices:
        console.print(words.plain(f"left out: {notice}"), soft_wrap=True)
