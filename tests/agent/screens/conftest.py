"""A session whose first outputs have left its window, played once for all tests that go on with it."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tui_stage import COUNTED, SQUEEZED, Squeezed, made, spoken

from tenure.agent.screens.app import TenureApp
from tenure.testing.store import MemoryStore


@pytest.fixture(scope="session")
def squeezed(tmp_path_factory: pytest.TempPathFactory) -> Squeezed:
    """Makes an app that goes on with a copy of that session; `replies` are what its model says then."""
    store, place = MemoryStore(), tmp_path_factory.mktemp("squeezed")
    spoken(made(place, COUNTED, store=store, **SQUEEZED), "count")
    (sheet,) = (each for each in store.conversations(None) if each.length)

    def again(tmp_path: Path, *replies: dict[str, object], **settings: Any) -> TenureApp:
        copy = MemoryStore()
        vars(copy).update({name: deepcopy(value) for name, value in vars(store).items() if isinstance(value, dict)})
        return made(tmp_path, replies, store=copy, resume=sheet.id, **(SQUEEZED | settings))

    return again
