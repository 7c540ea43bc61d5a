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

ALWAYS: Final = ("--no-config", "--no-messages", "--color=never", "--no-require-git", "--glob=!.git")
_ERROR_BYTES: Final = 2_000


class SearchEnd(Struct, frozen=True, kw_only=True):
    """How a search ended."""

    errors: str = ""  # what ripgrep said was wrong
    enough: bool = False  # it was stopped, since more would not have been shown
    cut_short: str = ""  # why it did not come to its end, if it did not


def program() -> str:
    """Where ripgrep is: in this environment, or on the path. Raises NotInstalled."""
    own = Path(sysconfig.get_path("scripts")) / "rg"
    program = str(own) if own.is_file() else shutil.which("rg")
    if program is None:
        raise NotInstalled("ripgrep")
    return program


async def searched(
    arguments: Sequence[str], folder: Path, here: Here, heard: Callable[[bytes], bool], *, hidden: bool
) -> SearchEnd:
    """Run ripgrep in a folder; `heard` takes what it prints, and says whether that is enough. Raises InputError when it cannot run."""
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    errors = bytearray()

    def take(chunk: bytes) -> None:
        if not done.done() and heard(chunk):
            done.set_result(True)

    def complain(chunk: bytes) -> None:
        errors.extend(chunk[: _ERROR_BYTES - len(errors)])

    command = [program(), *ALWAYS, *(("--hidden",) if hidden else ()), *arguments]
    child = Child(command, folder=folder, environment=scrubbed(here.environment), heard=take, complained=complain)
    child.exit.add_done_callback(lambda _: done.done() or done.set_result(False))
    try:
        end = await ended(done, here, here.limits.search_s)
        if end is End.DONE and not done.result():
            await child.rest()
    finally:
        child.kill(strays=False)
    late = f"stopped after {here.limits.search_s:g} s: narrow it by path or glob" if end is End.LATE else ""
    return SearchEnd(
        errors=errors.decode("utf-8", "replace").strip(),
        enough=done.done() and done.result(),
        cut_short="stopped by the user" if end is End.CANCELLED else late,
    )
