"""The laws through the front door: `Context` driven at random in every dialect under every policy, requests checked on their JSON alone.

`TENURE_REQUESTS` sets how many requests the long run checks, 100,000 unless set.
"""

import os
from itertools import product
from pathlib import Path

import pytest
from context_driver import DIALECTS, Drive, drives

from tenure.engine.policies import COMPAT, PEERS, POLICIES

CHAINS = ("tiered+cwl", "cwl+graph", "tool-prune+oldest-turn")
NAMES = [*((name, "") for name in (*POLICIES, *CHAINS, "none", *PEERS)), *(("cwl", compat) for compat in COMPAT)]
LONG = int(os.environ.get("TENURE_REQUESTS", "100000"))
CASES = [
    pytest.param(policy, compat, dialect, id=f"{policy}{compat}-{dialect}")
    for (policy, compat), dialect in product(NAMES, DIALECTS)
]


@pytest.mark.parametrize(("policy", "compat", "dialect"), CASES)
def test_every_request_of_a_random_conversation_keeps_the_laws(policy: str, compat: str, dialect: str, tmp_path: Path) -> None:
    assert sum(drive.requests for drive in drives(tmp_path, policy, dialect, compat=compat, requests=10)) >= 10


@pytest.mark.long
@pytest.mark.parametrize(("policy", "compat", "dialect"), CASES)
def test_many_random_conversations_keep_the_laws(policy: str, compat: str, dialect: str, tmp_path: Path) -> None:
    for drive in drives(tmp_path, policy, dialect, compat=compat, requests=LONG // len(CASES), first=1_000):
        (tmp_path / drive.file).unlink(missing_ok=True)  # most are kept in memory


def test_words_of_a_pinned_calls_arguments_are_shown_however_the_api_spaces_them(tmp_path: Path) -> None:
    assert Drive(1019, tmp_path, "graph", "gemini").run(40).requests >= 17
