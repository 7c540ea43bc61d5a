"""The baseline that summarises, on a recording whose future is known."""

import re
from pathlib import Path

import pytest
from logged import bulk, read, recording, run
from msgspec.structs import replace

from tenure.engine.meter.price import prices_for
from tenure.engine.meter.tokens import o200k
from tenure.engine.view.edit import Drop, Insert, Remove
from tenure.lab.events import CallLine, CommitLine, Line, PlanLine, SummaryLine
from tenure.lab.protocols.accumulating import ConversationTask, layout_of
from tenure.lab.protocols.compaction import ASKED_TOKENS, Compacting, Says, SummaryCompaction, charged, compacted
from tenure.lab.protocols.runs import USUAL, budget_of, options
from tenure.lab.replay import replay

TOKENIZER = o200k()
HEAD = 1_000
CONDITIONS = replace(USUAL, head_tokens=HEAD)
HOW = Compacting(trigger=12_000, keep=3_000, size=1_200)
WISH = "Fix the door of the barn, and leave the roof alone."


@pytest.fixture
def tasks(tmp_path: Path) -> tuple[ConversationTask, ...]:
    """A session that changes a file early, fills its window three times over, and then runs what it changed."""
    rows = (read(f"first/part_{number}.txt", bulk(80, f"part {number}")) for number in range(20))
    change = ("call", "Write", '{"file_path": "tools/barn/hinge.py", "content": "print(1)"}', "written")
    turns = (("human", WISH), change, run("ls", "docs/papers/roof-plan.md"), *rows)
    asks = (run("python tools/barn/hinge.py", "1"), read("docs/papers/roof-plan.md", "none"), ("say", "Ok."))
    (found,) = layout_of([recording(tmp_path / "s.jsonl", *turns, *asks)], TOKENIZER)
    return found


def lines_of(tasks: tuple[ConversationTask, ...], says: Says = "brief", how: Compacting = HOW) -> list[Line]:
    policy = SummaryCompaction(keep=how.keep, says=says, size=how.size)
    setting = options(policy, budget_of(how.trigger), replace(CONDITIONS, faithful=True))
    return list(charged(replay([task.as_source() for task in tasks], setting, TOKENIZER)))


def commits(lines: list[Line]) -> list[CommitLine]:
    return [line for line in lines if isinstance(line, CommitLine)]


def summaries(lines: list[Line]) -> list[Insert]:
    return [edit for commit in commits(lines) for edit in commit.edits if isinstance(edit, Insert)]


def test_a_window_is_compacted_near_its_limit_and_keeps_the_newest(tasks: tuple[ConversationTask, ...]) -> None:
    lines = lines_of(tasks)
    assert len(commits(lines)) >= 2
    for commit in commits(lines):
        assert commit.tokens_before + HEAD > HOW.trigger
        summary = sum(edit.tokens for edit in commit.edits if isinstance(edit, Insert))
        assert commit.tokens_after - summary <= HOW.keep + 100  # and the first message, with which a request must open
    assert max(line.view_tokens for line in lines if isinstance(line, CallLine)) <= HOW.trigger


def test_there_is_one_summary_at_a_time(tasks: tuple[ConversationTask, ...]) -> None:
    stood: set[str] = set()
    for commit in commits(lines_of(tasks)):
        stood -= {edit.key for edit in commit.edits if isinstance(edit, Remove)}
        stood |= {edit.key for edit in commit.edits if isinstance(edit, Insert)}
        assert len(stood) == 1


def test_no_request_is_broken_by_it(tasks: tuple[ConversationTask, ...]) -> None:
    last = lines_of(tasks)[-1]
    assert isinstance(last, SummaryLine)
    assert last.violations == ()


def test_a_reply_that_weighs_more_than_is_kept_stays_whole_with_its_results(tmp_path: Path) -> None:
    rows = [read(f"part_{number}.txt", bulk(300, f"part {number}")) for number in range(6)]
    (found,) = layout_of([recording(tmp_path / "s.jsonl", ("human", WISH), *rows, ("say", "Ok."))], TOKENIZER)
    lines = lines_of(found, how=replace(HOW, keep=500))
    assert commits(lines)
    assert isinstance(lines[-1], SummaryLine)
    assert lines[-1].violations == ()


def test_the_words_of_people_go_too(tmp_path: Path) -> None:
    rows = [read(f"part_{number}.txt", bulk(80, f"part {number}")) for number in range(20)]
    turns = (("human", "Hello."), ("say", "Yes?"), ("human", WISH), *rows, ("say", "Ok."))
    (found,) = layout_of([recording(tmp_path / "s.jsonl", *turns)], TOKENIZER)
    assert Drop(entry=2, block=0) in commits(lines_of(found))[0].edits


@pytest.mark.parametrize("says", ["nothing", "names"])
def test_a_summary_weighs_what_it_may_and_little_less(tasks: tuple[ConversationTask, ...], says: Says) -> None:
    for summary in summaries(lines_of(tasks, says)):
        assert HOW.size - 60 <= TOKENIZER(summary.text) <= HOW.size + 8


@pytest.mark.parametrize("says", ["nothing", "brief", "names"])
def test_a_summary_leads_nowhere(tasks: tuple[ConversationTask, ...], says: Says) -> None:
    assert not any(summary.routes or re.search(r":\d+@[0-9a-f]{4}", summary.text) for summary in summaries(lines_of(tasks, says)))
    assert compacted(tasks, replace(HOW, says=says), TOKENIZER, conditions=CONDITIONS).measured.misses.routed == 0


def test_what_a_summary_names_is_not_missed(tasks: tuple[ConversationTask, ...]) -> None:
    lost: dict[Says, int] = {}
    for says in ("nothing", "brief", "names"):
        lost[says] = compacted(tasks, replace(HOW, says=says), TOKENIZER, conditions=CONDITIONS).measured.misses.lost
    assert lost == {"nothing": 2, "brief": 1, "names": 1}  # the file that was changed; what a command printed nobody named


def test_names_are_carried_from_one_summary_to_the_next(tasks: tuple[ConversationTask, ...]) -> None:
    found = summaries(lines_of(tasks, "names"))
    assert len(found) >= 2
    assert all("tools/barn/hinge.py" in summary.text for summary in found)


def test_a_summary_costs_a_call_that_reads_the_window_from_the_cache(tasks: tuple[ConversationTask, ...]) -> None:
    lines, prices = lines_of(tasks), prices_for(USUAL.model, life=USUAL.cache_life)
    first = next(number for number, line in enumerate(lines) if isinstance(line, CommitLine))
    commit, plan = lines[first], next(line for line in reversed(lines[:first]) if isinstance(line, PlanLine))
    before = next(line for line in reversed(lines[:first]) if isinstance(line, CallLine))
    assert isinstance(commit, CommitLine)
    new = HEAD + commit.tokens_before + ASKED_TOKENS - before.view_tokens
    (summary,) = (edit for edit in commit.edits if isinstance(edit, Insert))
    assert plan.asked
    assert plan.usd == pytest.approx(before.view_tokens * prices.read + new * prices.write + summary.tokens * prices.output)


def test_the_price_of_summaries_is_in_the_bill_once(tasks: tuple[ConversationTask, ...]) -> None:
    lines = lines_of(tasks)
    plans = sum(line.usd for line in lines if isinstance(line, PlanLine))
    last = lines[-1]
    assert isinstance(last, SummaryLine)
    assert last.helpers_usd == pytest.approx(plans)
    bill = compacted(tasks, HOW, TOKENIZER, conditions=CONDITIONS).measured.bill
    assert bill.helpers_usd == pytest.approx(plans)
    assert bill.total_usd == pytest.approx(last.usd + plans)


def test_lines_without_a_compaction_are_billed_as_they_were(tasks: tuple[ConversationTask, ...]) -> None:
    setting = options(None, budget_of(None), CONDITIONS)
    lines = list(replay([task.as_source() for task in tasks], setting, TOKENIZER))
    again = list(charged(lines))
    assert [line for line in again if not isinstance(line, SummaryLine)] == lines[:-1]
    assert isinstance(again[-1], SummaryLine)
    assert isinstance(lines[-1], SummaryLine)
    assert again[-1].usd == pytest.approx(lines[-1].usd)
