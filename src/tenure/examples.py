"""Where the examples lie: beside the sources in a checkout, inside the package in a wheel."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent


def example(name: str) -> Path:
    """The folder `name` of the examples."""
    packed = _PACKAGE / "examples"
    return (packed if packed.is_dir() else _PACKAGE.parents[1] / "examples") / name
