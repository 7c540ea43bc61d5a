from functools import partial
from pathlib import Path

import pytest
from planted import Plant, in_memory, on_disk


@pytest.fixture(params=["memory", "disk"])
def plant(request: pytest.FixtureRequest, tmp_path: Path) -> Plant:
    """Make a place out of files, in memory or on a real disk."""
    return in_memory if request.param == "memory" else partial(on_disk, tmp_path)
