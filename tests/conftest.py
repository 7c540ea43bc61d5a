import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time, so that a change fails for what it did; TENURE_EXAMPLES=300 looks for new ones, and for more.
EXAMPLES = os.environ.get("TENURE_EXAMPLES")
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("more", deadline=None, max_examples=int(EXAMPLES or 100))
settings.load_profile("more" if EXAMPLES else "fixed")

# No test speaks TLS, and the certificates of all authorities take 30 ms to read, for each client.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

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
