"""What the tool of every agent that is killed reads, and dies of."""

import os
import signal
from pathlib import Path

TEXT = "\n".join(f"{n:04} def function_{n}(): return {n * 7919}" for n in range(160))
KILLS = (70, 140)  # files at which the process is killed, once each


def read_file(folder: Path, path: str) -> str:
    """The text of a file."""
    n = int(path.partition("_")[2].partition(".")[0])
    died = folder / f"died_{n}"
    if n in KILLS and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{path}\n{TEXT}"
