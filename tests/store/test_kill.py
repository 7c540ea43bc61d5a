"""A process killed at any moment loses at most what it was writing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tenure.store.migrations import MIGRATIONS

POSTGRES: Final = os.environ.get("TENURE_TEST_POSTGRES", "")
FEW, MANY = 24, 1_000  # processes; an eighth of them migrate
NURSERY: Final = Path(__file__).with_name("nursery.py")
WRITING: Final = ("entries", "clips", "commits", "forks", "spills")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

Deaths = list[dict[str, Any]]


@pytest.fixture(
    scope="module",
    params=[
        ("sqlite", FEW),
        pytest.param(("sqlite", MANY), marks=pytest.mark.long),
        pytest.param(("postgres", FEW), marks=pytest.mark.skipif(not POSTGRES, reason="no server")),
        pytest.param(("postgres", MANY), marks=[pytest.mark.long, pytest.mark.skipif(not POSTGRES, reason="no server")]),
    ],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def deaths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Deaths:
    kind, kills = request.param
    folder = tmp_path_factory.mktemp("nursery")
    folder = folder.rename(
        folder.with_name(f"{folder.name}-{os.getpid()}")
    )  # names the conversations, on a server that has others
    url = POSTGRES if kind == "postgres" else f"sqlite:///{folder}/killed.db"
    if kind == "postgres":
        url += f"{'&' if '?' in url else '?'}application_name={folder.name}"
    command = [sys.executable, str(NURSERY), url, str(folder), str(kills), "7"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1_200)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of(deaths: Deaths, *doing: str) -> Deaths:
    return [death for death in deaths if death["doing"] in doing]


def test_enough_processes_were_killed_while_they_wrote(deaths: Deaths) -> None:
    assert len(deaths) - 1 in (FEW, MANY)  # the last line is about all
    assert all(len(of(deaths, doing)) >= 4 for doing in WRITING)
    assert all(death["acknowledged"] > 0 for death in of(deaths, *WRITING))


def test_all_that_was_acknowledged_is_there_and_at_most_one_more(deaths: Deaths) -> None:
    assert [death for death in of(deaths, *WRITING) if death["stored"] - death["acknowledged"] not in (0, 1)] == []


def test_every_hash_is_right_afterwards(deaths: Deaths) -> None:
    assert [death for death in deaths if death["wrong"]] == []


def test_what_belongs_together_is_stored_together(deaths: Deaths) -> None:
    """An entry and its clip, a fork and its commits, a commit and their number."""
    broken = [death for death in of(deaths, *WRITING) if not death["commits"] == death["commits_expected"] == death["log"]]
    assert broken == []


def test_a_killed_migration_leaves_one_version_or_the_other_and_can_be_repeated(deaths: Deaths) -> None:
    migrations = of(deaths, "migration")
    assert len(migrations) == (len(deaths) - 1) // 8
    assert [death for death in migrations if not death["whole"] or death["missed"]] == []
    assert {death["version"] for death in migrations} <= {*range(1, len(MIGRATIONS) + 2)}
