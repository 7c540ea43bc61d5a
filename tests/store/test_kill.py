"""A process killed at any moment loses at most the entry that it was writing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure.store.migrations import MIGRATIONS

KILLS = int(os.environ.get("TENURE_TEST_KILLS", "200"))  # of appending processes; an eighth more of migrating ones
NURSERY = Path(__file__).with_name("nursery.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    command = [sys.executable, str(NURSERY), str(tmp_path_factory.mktemp("nursery")), str(KILLS), "7"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of(deaths: list[dict[str, Any]], *doing: str) -> list[dict[str, Any]]:
    return [death for death in deaths if death["doing"] in doing]


def test_enough_processes_were_killed_while_they_appended(deaths: list[dict[str, Any]]) -> None:
    assert len(of(deaths, "entries", "clips")) == KILLS
    assert len(of(deaths, "clips")) >= KILLS // 5
    assert all(death["acknowledged"] > 0 for death in of(deaths, "entries", "clips"))


def test_every_acknowledged_entry_is_there_and_at_most_one_more(deaths: list[dict[str, Any]]) -> None:
    assert [death for death in of(deaths, "entries", "clips") if death["stored"] - death["acknowledged"] not in (0, 1)] == []


def test_every_hash_is_right_afterwards(deaths: list[dict[str, Any]]) -> None:
    assert [death for death in deaths if death["wrong"]] == []


def test_an_entry_and_its_clip_are_stored_together(deaths: list[dict[str, Any]]) -> None:
    broken = [
        death for death in of(deaths, "entries", "clips") if not death["commits"] == death["commits_expected"] == death["log"]
    ]
    assert broken == []


def test_a_killed_migration_leaves_one_version_or_the_other_and_can_be_repeated(deaths: list[dict[str, Any]]) -> None:
    migrations = of(deaths, "migration")
    assert len(migrations) == KILLS // 8
    assert [death for death in migrations if not death["whole"] or death["missed"]] == []
    assert {death["version"] for death in migrations} >= {len(MIGRATIONS)}
