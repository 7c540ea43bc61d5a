"""The page about judges says what the code does."""

from pathlib import Path

from tenure.cli.judge import PAIRS
from tenure.lab.cuts import LEAST_CALLS, LEAST_TOKENS, POINTS, PRUNE
from tenure.lab.events import Category
from tenure.lab.judges.request import ROOM, SHARES
from tenure.lab.judges.running import IN_A_ROW

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "judges.md").read_text(encoding="utf-8").split())


def test_its_figures_are_the_codes() -> None:
    for words in (
        f"before {POINTS} of its calls",
        f"less than {LEAST_CALLS} calls, and views of less than {LEAST_TOKENS:,} tokens",
        f"takes {PRUNE:.0%}".replace("%", " %") + " of the view",
        f"at most {ROOM:,} tokens (`--room`)",
        f"prefix {SHARES['retained']:.0%}, removed {SHARES['removed']:.0%}, future {SHARES['future']:.0%}".replace("%", " %"),
        f"After {IN_A_ROW} in a row",
    ):
        assert words in PAGE, words
    assert PAIRS == 1  # one pair


def test_all_categories_are_listed() -> None:
    for category in Category:
        assert f"| `{category}` |" in PAGE
