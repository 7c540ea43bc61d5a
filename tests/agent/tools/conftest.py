from pathlib import Path

import pytest
from calling import workspace

from tenure.agent.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    """A workspace of its own, with a home and a scratch folder beside it."""
    return workspace(tmp_path)
