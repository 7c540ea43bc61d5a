"""docs/protocols.md says what the code does."""

from importlib.resources import files
from pathlib import Path

import duckdb

from tenure.engine.lifecycle.budget import FLOOR_SHARE
from tenure.lab.protocols.accumulating import GAP_S, HUMAN_TOKENS, RARE_SHARE, RARE_TASKS, SHARED_NAMES
from tenure.lab.protocols.compaction import ASKED_TOKENS, EARLY, LATE, SUMMARY_TOKENS
from tenure.lab.protocols.runs import CEILINGS, USUAL
from tenure.lab.protocols.workload import HARD_RESULTS, HARD_SHARE, LEAST_HARD, RULES

PAGE = (Path(__file__).parents[3] / "docs" / "protocols.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())


def test_the_page_has_every_rule_of_the_classes_in_order() -> None:
    rows = [f"| {rule.workload} | {rule.says} |" for rule in RULES]
    assert "\n".join(rows) in PAGE


def test_the_page_has_every_claim_with_its_source() -> None:
    sql = files("tenure.lab.evidence").joinpath("claims.sql").read_text(encoding="utf-8")
    with duckdb.connect() as database:
        database.execute(sql.partition("create macro")[0])
        for claim, says, origin in database.execute("select claim, says, origin from published").fetchall():
            assert f"| {claim} | {says} | {origin} |" in PAGE


def test_the_figures_of_the_page_are_the_codes() -> None:
    told = (
        f"{USUAL.head_tokens:,} tokens of system prompt and tools",
        f"down to {FLOOR_SHARE:.0%} of it".replace("%", " %"),
        f"It begins {GAP_S:.0f} s after",
        f"One conversation holds {HUMAN_TOKENS:,} tokens",
        f"at least {SHARED_NAMES} of the same rare",
        f"in at most {RARE_TASKS} of its tasks or a quarter",
        f"at {LATE.trigger:,} tokens, keeping {LATE.keep:,}",
        f"at {EARLY.trigger:,}, keeping {EARLY.keep:,}",
        f"{ASKED_TOKENS:,} tokens of question",
        f"It weighs {SUMMARY_TOKENS:,} tokens",
        f"(at least {LEAST_HARD})",
    )
    assert [each for each in told if each not in FLAT] == []
    assert (RARE_SHARE, HARD_SHARE, HARD_RESULTS) == (0.25, 0.1, 0.5)  # a quarter, the tenth, half
    assert [f"{ceiling // 1000}k" in FLAT for ceiling in CEILINGS if ceiling] == [True] * (len(CEILINGS) - 1)
