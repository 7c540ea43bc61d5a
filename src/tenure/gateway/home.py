"""Where a gateway of one's own keeps its conversations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tenure.agent.access import state_folder

STORE: Final = "gateway.db"  # in the folder where sessions lie


def default_folder(environment: Mapping[str, str]) -> Path:
    """Where the store lies where nothing else is said."""
    return state_folder(environment, Path.home())
