"""That this file is here puts the folder on the path: tests below it find `replay_reader` too."""

import asyncio

import pytest

from tenure.cli.demo_play import play, set_up
from tenure.lab.loading import source
from tenure.lab.source import SessionSource


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SessionSource:
    """The session of the demo, annotated, out of its store: 30 calls, 17,000 tokens."""
    stage = set_up(tmp_path_factory.mktemp("sample") / "stage")
    asyncio.run(play(stage))
    return source(str(stage.store))
