"""Starting the terminal interface (an edge). Apart from the command line's own machinery, which takes longer to load than all the rest here."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.agent.settings import Settings


def is_interactive() -> bool:
    """Whether a person sits at both ends."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty())


def talk(settings: "Settings", *, light: bool = False) -> int:
    """Talk with the agent until the person leaves; the exit code."""
    from tenure.agent.screens.app import TenureApp
    from tenure.agent.screens.themes import DARK, LIGHT

    # What is loaded stays to the end: without this every collection looks through all of it, and keys wait for that up to 100 ms.
    app = TenureApp(settings, theme=LIGHT if light else DARK, loaded=gc.freeze)
    session = app.run()
    if session:
        sys.stdout.write(f"tenure --resume {session[:8]} goes on with this session\n")
    return app.return_code or 0


def talk_plainly(model: str, helper: str) -> int:
    """`tenure` and nothing else: every setting as it usually is. The exit code."""
    from tenure.agent.settings import Settings

    return talk(Settings(folder=Path.cwd(), model=model, helper=helper))
