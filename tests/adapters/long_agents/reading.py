"""What the long agents of all frameworks have in common: two people's conversations side by side, tools with large outputs, and a process that is killed."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

FILES: Final = {"ann": 200, "bob": 75}  # read in each conversation
KILLS: Final = (
    "ann_41",
    "ann_123",
)  # files at which the process is killed, once each: within a batch of parallel calls, and alone
LINES: Final = 120  # of a tool's output
WORDS: Final = "You read files and run their tests, one after the other, and you say what you see."


def question(name: str) -> str:
    """What a person asks: text that is easily harmed."""
    return f'I am {name}.\n\n\tRead my files up to {FILES[name]} – every line of them.  \nThe word is «Zürich» \\n "quoted" 🔑, and  it stays.'


GO_ON: Final = "Go on,\tplease – where you were  cut off."


def result(first: str) -> str:
    """A tool's output, whose first line names the file."""
    (stem,) = re.findall(r"\w+_\d+", first)
    return first + "\n" + "\n".join(f"{n:04} def {stem}_{n}(): return {n * 7919}" for n in range(LINES))


def read_file(path: str) -> str:
    """The text of a file, and the end of the process where a file is deadly."""
    stem, died = path.partition(".")[0], FOLDER / f"died_of_{path}"
    if stem in KILLS and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return result(path)


def run_command(command: str) -> str:
    """What a command prints."""
    return result(command)


FOLDER: Final = Path(sys.argv[1]) if len(sys.argv) > 2 else Path()
HOW: Final = sys.argv[2] if len(sys.argv) > 2 else ""  # how the framework is called: "called", "awaited" or "streamed"
STORE: Final = f"sqlite:///{FOLDER}/agent.db"


def together(converse: Callable[[str], Awaitable[object]]) -> None:
    """Hold both conversations side by side."""

    async def hold(name: str) -> None:
        keep(name, await converse(name))

    async def both() -> None:
        await asyncio.gather(*(hold(name) for name in FILES))

    asyncio.run(both())


def keep(name: str, history: object) -> None:
    """Write down for the test what the framework kept of a conversation."""
    from pydantic_core import to_jsonable_python  # every framework brings it

    kept = to_jsonable_python(history, serialize_unknown=True)
    (FOLDER / f"kept_{name}.json").write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
