"""Frameworks leave connections to be closed by the collector, which says so; and LiteLLM asks the network for prices when it is imported."""

import gc
import os
import warnings
from collections.abc import Iterator

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # without a network 1.105.3 blocks itself there


@pytest.fixture(autouse=True)
def left_connections() -> Iterator[None]:
    """Collect what a test left, quietly."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
