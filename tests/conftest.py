import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time, so that a change fails for what it did; TENURE_EXAMPLES=300 looks for new ones, and for more.
settings.register_profile("fixed", derandomize=True, deadline=None)
if "TENURE_EXAMPLES" not in os.environ:
    settings.load_profile("fixed")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write what is shown now as what is right, for review")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Hold a whole view against the file of its name."""

    def held(name: str, shown: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--rewrite-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(shown, encoding="utf-8")
        assert shown == path.read_text(encoding="utf-8")

    return held
