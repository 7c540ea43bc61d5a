"""Frameworks leave connections to be closed by the collector, which says so."""

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def left_connections() -> Iterator[None]:
    """Collect what a test left, quietly."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
