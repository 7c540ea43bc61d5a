"""ripgrep as a program that is asked (an edge).

https://github.com/BurntSushi/ripgrep. Its own `-g` is not used for what is wanted: it would bring back what `.gitignore` leaves out.
"""

import asyncio
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent.tools.child import Child
from tenure.agent.tools.environment import scrubbed
from tenure.agent.tools.tool import End, Here, ended
from tenure.extras import NotInstalled

ALWAYS: Final = ("--no-config", "--no-messages", "--color=never", "--no-require-git")
_ERROR_BYTES: Final = 2_000


class Search(Struct, frozen=True, kw_only=True):
    """How a search ended."""

    end: End
    errors: str = ""  # what ripgrep said was wrong
    enough: bool = False  # it was stopped, since more would not have been shown


def program() -> str:
    """Where ripgrep is: in this environment, or on the path. Raises NotInstalled."""
    own = Path(sysconfig.get_path("scripts")) / "rg"
    found = str(own) if own.is_file() else shutil.which("rg")
    if found is None:
        raise NotInstalled("ripgrep")
    return found


async def searched(arguments: Sequence[str], folder: Path, here: Here, heard: Callable[[bytes], bool], *, hidden: bool) -> Search:
    """Run ripgrep in a folder; `heard` takes what it prints, and says whether that is enough. Raises InputError when it cannot run."""
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    errors = bytearray()

    def take(chunk: bytes) -> None:
        if not done.done() and heard(chunk):
            done.set_result(True)

    def complain(chunk: bytes) -> None:
        errors.extend(chunk[: _ERROR_BYTES - len(errors)])

    command = [program(), *ALWAYS, *(("--hidden",) if hidden else ()), "--glob=!.git", *arguments]
    child = Child(command, folder=folder, environment=scrubbed(here.environment), heard=take, complained=complain)
    child.exit.add_done_callback(lambda _: done.done() or done.set_result(False))
    try:
        end = await ended(done, here, here.limits.search_s)
        if end is End.DONE and not done.result():
            await child.rest()
    finally:
        child.kill(strays=False)
    return Search(end=end, errors=errors.decode("utf-8", "replace").strip(), enough=done.done() and done.result())


def cut_short(search: Search, here: Here) -> str:
    """What is to be said of a search that did not come to its end; empty of one that did."""
    match search.end:
        case End.LATE:
            return f"stopped after {here.limits.search_s:g} s: narrow it by path or glob"
        case End.CANCELLED:
            return "stopped by the user"
        case End.DONE:
            return ""
