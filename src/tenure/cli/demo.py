"""`tenure demo`: the agent at work in a small window, on real files, without a model, a key or a network."""

from pathlib import Path
from typing import Annotated

from tenure.cli import words
from tenure.cli.options import flag, option
from tenure.errors import InputError


def demo(
    replay: Annotated[bool, flag("--replay", "Replay your own newest agent session instead; it is only read.")] = False,
    sample: Annotated[bool, flag("--sample", "Replay the demo's own session instead.")] = False,
    fast: Annotated[bool, flag("--fast", "Print without pauses.")] = False,
    folder: Annotated[
        Path | None, option("DIR", "An empty folder to work in. Default: a new temporary folder, which is kept.")
    ] = None,
) -> None:
    """Watch an agent do six small tasks in a small window: what fills it, what leaves, what comes back, what it costs.

    Needs no key and no network, and touches none of your sessions.

    Exit codes: 0 done, 1 something went wrong, 2 bad input, 130 interrupted.
    """
    from tenure.cli.demo_play import play_demo, replay_newest

    console = words.screen()
    if not (replay or sample):
        play_demo(folder, console, slow=console.is_terminal and not fast)
        return
    if fast or folder is not None:
        raise InputError("--replay", "--fast or --folder beside it", "one or the other: they are of the agent's demo")
    replay_newest(console, sample=sample)
