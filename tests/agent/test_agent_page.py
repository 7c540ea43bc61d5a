"""The page about the agent says what the code does."""

import re
from pathlib import Path

from tenure.agent.breaker import STOP_AFTER, TELL_AFTER
from tenure.agent.calls import TOGETHER
from tenure.agent.catalogue import UNKNOWN_WINDOW
from tenure.agent.retries import ASKED_S, PATIENCE
from tenure.agent.settings import CHILD_STEPS, CHILD_TOKENS, DEPTH
from tenure.cli.main import BAD_INPUT
from tenure.cli.run import EXIT
from tenure.errors import Failure
from tenure.models.scripted import parse_script
from tenure.store.records import OWN_STORE

PAGE = (Path(__file__).parents[2] / "docs" / "agent.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())


def test_figures_are_the_codes() -> None:
    for words in (
        f"at most {TOGETHER} at once",
        f"up to {ASKED_S / 60:g} minutes",
        f"at most {CHILD_STEPS} calls, {CHILD_TOKENS:,} tokens",
        f"{UNKNOWN_WINDOW:,} tokens are assumed",
        f"~/.local/state/tenure/{OWN_STORE}",
    ):
        assert words in FLAT
    assert (TELL_AFTER, STOP_AFTER, DEPTH) == (3, 6, 1)  # the third time, the sixth time, one level
    assert PATIENCE[Failure.UNAVAILABLE].first_s == 1.0


def test_every_exit_code_is_listed() -> None:
    listed = {int(row) for row in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert listed == {*EXIT.values(), BAD_INPUT}


def test_the_script_that_is_shown_is_one() -> None:
    shown = re.search(r"^    (\{\"model\".*?\]\})$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert len(parse_script(shown[1]).replies) == 4
