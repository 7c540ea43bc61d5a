"""The tour: six tasks in one session on real files, in which episodes open, close and leave a small window (`examples/tour`)."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct, convert

from tenure.engine.lifecycle.budget import Budget
from tenure.examples import example
from tenure.models.scripted import read_yaml

FILE: Final = example("tour") / "tour.yaml"  # also the script of the model


class Tour(Struct, frozen=True, kw_only=True):
    """What the agent is asked, and the window it works in."""

    ceiling: int  # provider tokens
    floor: int
    policy: str
    library: tuple[str, ...]  # modules of Python's own that are copied beside the project, so that there is something to read
    tasks: tuple[str, ...]
    more: str  # what the script can be asked besides, by whoever goes on with the session

    @property
    def budget(self) -> Budget:
        """Small, so that work leaves it."""
        return Budget(ceiling=self.ceiling, floor=self.floor)

    def lay_out(self, folder: Path) -> None:
        """Write the project into an empty folder."""
        shutil.copytree(example("tour") / "project", folder, dirs_exist_ok=True)
        (folder / "library").mkdir()
        for name in self.library:
            module = find_spec(name)
            if module is not None and module.origin is not None:
                shutil.copyfile(module.origin, folder / "library" / f"{name}.py")


def read_tour() -> Tour:
    """The tour, from its file."""
    return convert(read_yaml(FILE), Tour)
