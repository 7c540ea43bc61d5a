"""What a replay costs in all, line by line; and the recalls that its needs ask for, against a reader that imports nothing of ours."""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bill_reader import recalls_usd
from hypothesis import given
from hypothesis import strategies as st

from tenure.context.answers import CALL, LEAST
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.gate import RECALL_OUTPUT
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import POLICIES
from tenure.engine.record.query import CAP
from tenure.engine.view.edit import Drop, Moment, Replace
from tenure.engine.view.guard import RECALL_CALLS, RECALL_SHARE
from tenure.lab.bill import Billing, Watched, accounted, bill_of, limit_of
from tenure.lab.events import (
    Bill,
    BlockLine,
    BudgetLine,
    CallLine,
    Category,
    CommitLine,
    EntryLine,
    HarmLine,
    Part,
    PlanLine,
    PricesLine,
    RecallLine,
    ReplayLine,
    SummaryLine,
    Verdict,
)
from tenure.lab.recorded import FIRST
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource

# Prices of which every kind shows: a bill of 1,002,003,004 has 1 token of output, 2 written, 3 read and 4 uncached.
PRICES = PricesLine(uncached=1.0, read=1e3, write=1e6, output=1e9, ttl_s=300, min_cache=100)
LIMIT = 80_000
A, B = "read:1", "read:2"


def header(limit: int = LIMIT) -> ReplayLine:
    return ReplayLine(
        sources=(),
        policy="test",
        settings={},
        model="m",
        model_known=True,
        budget=BudgetLine(target=None, ceiling=limit, floor=None, window=180_000),
        tokenizer="o200k_base",
        framing={"entry": 4},
        prices=PRICES,
        rules={},
        head_tokens=0,
    )


def entry(n: int, *blocks: BlockLine) -> EntryLine:
    return EntryLine(entry=n, id="", parent="", sha256="", source=0, line=0, role="tool", turn=1, at="", blocks=blocks)


def block(object_: str, tokens: int, tool: str = "read") -> BlockLine:
    return BlockLine(kind="tool_result", objects=(object_, "user:1"), tokens=tokens, name=tool)


def call(n: int, view: int = 10_000, *, shared: int | None = None, warm: bool = True, ratio: float = 1.0) -> CallLine:
    """A call of a view that has not grown since the one before, unless `shared` says so; a cold one reads nothing."""
    stands = view if shared is None else shared
    prompt = round(view * ratio)
    read = min(prompt, round(stands * ratio)) if warm else 0
    kept = prompt >= PRICES.min_cache
    return CallLine(
        call=n,
        at="",
        model="m",
        entries=n,
        entry=n,
        head_tokens=0,
        ratio=ratio,
        view_tokens=view,
        record_tokens=view,
        shared_prefix_tokens=stands,
        uncached=0 if kept else prompt,
        cache_write=prompt - read if kept else 0,
        cache_read=read if kept else 0,
        output=7,
        usd=0.0,
    )


def commit(before_call: int, *dropped: int, moment: Moment = "before-call") -> CommitLine:
    return CommitLine(
        commit=0,
        before_call=before_call,
        entries=before_call,
        policy="test",
        forced=True,
        reason="",
        moment=moment,
        price=None,
        tokens_before=0,
        tokens_after=0,
        ratio=1.0,
        actions=(),
        edits=tuple(Drop(entry=n, block=0) for n in dropped),
    )


def harm(
    call_: int,
    verdict: Verdict,
    object_: str = A,
    *,
    part: Any = "call",
    text: str = "x",
    held: tuple[tuple[int, int], ...] = ((0, 0),),
) -> HarmLine:
    return HarmLine(
        call=call_,
        entry=call_,
        block=0,
        part=part,
        tool="edit",
        field="path",
        kind="locator",
        form="path",
        text=text,
        held=held,
        objects=(object_,),
        verdict=verdict,
        category=Category.LOCATOR,
        rule="",
        route=f"{object_}@3fa9" if verdict == "routed" else "",
        commit=0,
    )


RECORD = (entry(0, block(A, 400), block(A, 100)), entry(1, block(B, 2_000)))


def billed(*lines: Watched, limit: int = LIMIT) -> Bill:
    return bill_of((header(limit), *RECORD, *lines))


def brought(*lines: Watched, limit: int = LIMIT) -> list[RecallLine]:
    billing = Billing()
    return [recall for line in (header(limit), *RECORD, *lines) for recall in billing.take(line)]


def cost(*, uncached: int = 0, write: int = 0, read: int = 0, output: int = 0) -> Part:
    usd = uncached * PRICES.uncached + write * PRICES.write + read * PRICES.read + output * PRICES.output
    return Part(tokens=uncached + write + read + output, usd=usd)


def test_the_page_on_bills_says_the_codes_figures() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "bill.md").read_text(encoding="utf-8").split())
    for words in (
        f"written in {RECALL_OUTPUT} tokens of output",
        f"({RECALL_SHARE:.0%} of the budget less {CALL}, at least {LEAST:,}, at most {CAP:,})".replace("%", " %"),
        f"with the {RECALL_OUTPUT} tokens that asked for it",
        f"It stays for {RECALL_CALLS} calls",
        f"more than {RECALL_SHARE:.0%} of the budget together".replace("%", " %"),
        f"what the first {FIRST} reports leave",
    ):
        assert words in page


# --- Calls


def test_a_bill_is_the_sum_of_its_calls_part_by_part() -> None:
    bill = billed(call(0, 1_000, shared=0, warm=False), call(1, 1_200, shared=1_000))
    assert (bill.calls, bill.recalls) == (2, 0)
    assert bill.cache_write == Part(tokens=1_200, usd=1_200e6)
    assert bill.cache_read == Part(tokens=1_000, usd=1_000e3)
    assert bill.output == Part(tokens=14, usd=14e9)
    assert bill.uncached == bill.recall == bill.fetched_again == Part()
    assert bill.total_usd == bill.calls_usd == 1_200e6 + 1_000e3 + 14e9


def test_asking_models_is_in_the_total() -> None:
    plan = PlanLine(before_call=0, policy="selfgc", outcome="dropped", commit=None, reason="", asked=True, usd=0.25)
    bill = billed(plan, plan)
    assert (bill.helpers_usd, bill.total_usd) == (0.5, 0.5)


def test_bills_of_several_sessions_add_up() -> None:
    one = billed(call(0), harm(0, "routed"))
    two = billed(call(0, 50), harm(0, "lost"))
    both = one + two
    assert both.calls == 2
    assert both.recalls == 1
    assert both.total_usd == one.total_usd + two.total_usd
    assert both.recall.tokens == one.recall.tokens
    assert both.fetched_again == two.fetched_again


# --- Recalls


def test_a_routed_need_costs_a_call_of_the_whole_request_and_what_it_brings() -> None:
    bill = billed(call(0, 10_000), harm(0, "routed"))
    assert bill.recalls == 1
    assert bill.recall == cost(read=10_000, output=RECALL_OUTPUT, write=500 + RECALL_OUTPUT)
    assert brought(call(0), harm(0, "routed")) == [RecallLine(call=0, handle="read:1@3fa9", by="handle", tokens=500)]


def test_one_recall_serves_all_needs_of_a_call_that_one_handle_leads_to() -> None:
    needs = [harm(0, "routed", text=text) for text in ("x", "y", "z")]
    assert billed(call(0), *needs) == billed(call(0), needs[0])


def test_each_handle_is_a_recall_of_its_own_and_the_second_carries_the_first() -> None:
    bill = billed(call(0, 10_000), harm(0, "routed", A), harm(0, "routed", B))
    first, second = 500 + RECALL_OUTPUT, 2_000 + RECALL_OUTPUT
    assert bill.recalls == 2
    assert bill.recall == cost(read=10_000 + 10_000 + first, output=2 * RECALL_OUTPUT, write=first + second)


def test_what_was_brought_back_is_read_by_every_later_call_and_needed_at_no_cost() -> None:
    bill = billed(call(0), harm(0, "routed"), call(1), harm(1, "routed"), call(2), call(3), harm(3, "routed"))
    once = billed(call(0), harm(0, "routed"))
    assert bill.recalls == 1
    assert bill.recall.usd - once.recall.usd == 3 * (500 + RECALL_OUTPUT) * PRICES.read


def test_tokens_are_the_providers() -> None:
    bill = billed(call(0, 10_000, ratio=1.5), harm(0, "routed"))
    assert bill.recall == cost(read=15_000, output=RECALL_OUTPUT, write=round(1.5 * (500 + RECALL_OUTPUT)))


@pytest.mark.parametrize(("later", "recalls"), [(RECALL_CALLS - 1, 1), (RECALL_CALLS, 2)])
def test_a_batch_takes_what_was_brought_back_once_enough_calls_have_seen_it(later: int, recalls: int) -> None:
    seen = [call(n) for n in range(1, later)]
    lines = [call(0), harm(0, "routed"), *seen, commit(later, 1), call(later), harm(later, "routed")]
    assert billed(*lines).recalls == recalls


def test_a_clipped_result_at_its_birth_takes_nothing() -> None:
    seen = [call(n) for n in range(1, 9)]
    lines = [call(0), harm(0, "routed"), *seen, commit(9, 1, moment="admission"), call(9), harm(9, "routed")]
    assert billed(*lines).recalls == 1


@pytest.mark.parametrize(("dropped", "recalls"), [(3, 2), (2, 2), (1, 1)])
def test_a_compaction_of_the_recorded_agent_takes_at_once_all_that_stood_before_what_it_dropped(
    dropped: int, recalls: int
) -> None:
    """What was brought back before call 2 stands between entries 1 and 2."""
    lines = [call(0), call(1), call(2), harm(2, "routed"), commit(3, dropped, moment="recorded"), call(3), harm(3, "routed")]
    assert billed(*lines).recalls == recalls


def test_a_batch_leaves_only_as_many_fresh_recalls_as_a_live_session_would() -> None:
    """Of two that weigh 2,060 and 560 tokens the older goes, for a limit whose tenth holds only the newer."""
    limit = 8_000
    assert RECALL_SHARE * limit < 2_060
    lines = [call(0), harm(0, "routed", B), call(1), harm(1, "routed", A), commit(2, 1), call(2), harm(2, "routed", A)]
    assert billed(*lines, limit=limit).recalls == 2
    assert billed(*lines, harm(2, "routed", B), limit=limit).recalls == 3


def test_a_broken_prefix_writes_what_was_brought_back_again() -> None:
    """A commit changes the view before it, while it is still fresh."""
    start = (call(0, 10_000), harm(0, "routed"))
    broken = (*start, commit(1, 1), call(1, 6_000, shared=3_000))
    carried = billed(*broken).recall.usd - billed(*start).recall.usd
    assert carried == (500 + RECALL_OUTPUT) * PRICES.write
    after = billed(*broken, call(2, 6_500, shared=6_000)).recall.usd - billed(*broken).recall.usd
    assert after == (500 + RECALL_OUTPUT) * PRICES.read


def test_a_cold_cache_writes_what_was_brought_back_again() -> None:
    start = (call(0), harm(0, "routed"))
    assert billed(*start, call(1, warm=False)).recall.usd - billed(*start).recall.usd == (500 + RECALL_OUTPUT) * PRICES.write


def test_what_is_too_short_to_be_cached_is_never_read() -> None:
    bill = bill_of((header(), entry(0, block(A, 5)), call(0, 20), harm(0, "routed")))
    assert bill.recall == cost(uncached=20 + 5 + RECALL_OUTPUT, output=RECALL_OUTPUT)


def test_an_answer_is_cut_as_live_to_a_share_of_the_budget() -> None:
    large = entry(2, block("read:3", 50_000))
    lines = (large, call(0), harm(0, "routed", "read:3"))
    (recall,) = brought(*lines, limit=20_000)
    assert recall.tokens == int(20_000 * RECALL_SHARE) - CALL
    (recall,) = brought(*lines, limit=2_000)
    assert recall.tokens == LEAST
    (recall,) = brought(*lines, limit=180_000)
    assert recall.tokens == CAP


def test_a_handle_of_an_entry_or_a_turn_brings_that_entry_or_turn() -> None:
    (recall,) = brought(call(0), harm(0, "routed", "entry:0/1"))
    assert recall.tokens == 100
    (recall,) = brought(call(0), harm(0, "routed", "user:1"))
    assert recall.tokens == 2_500


def test_a_handle_that_no_block_names_brings_what_held_the_need() -> None:
    (recall,) = brought(call(0), harm(0, "routed", "skill:release", held=((1, 0),)))
    assert recall.tokens == 2_000


# --- Needs that cost nothing, or nobody knows what


def test_needs_that_are_visible_or_only_thought_of_cost_nothing() -> None:
    assert billed(call(0), harm(0, "visible"), harm(0, "routed", part="thinking"), harm(0, "lost", part="thinking")) == billed(
        call(0)
    )


def test_a_lost_need_is_estimated_apart_and_is_in_no_total() -> None:
    bill = billed(call(0, 10_000), harm(0, "lost"), harm(0, "lost", text="y"))
    assert bill.fetched_again == cost(read=10_000, output=RECALL_OUTPUT, write=500 + RECALL_OUTPUT)
    assert bill.total_usd == billed(call(0, 10_000)).total_usd
    assert (bill.recalls, bill.recall) == (0, Part())


def test_a_lost_need_of_words_fetches_the_block_and_not_the_turn_it_was_said_in() -> None:
    said = entry(2, BlockLine(kind="text", objects=("user:1",), tokens=30))
    bill = billed(said, call(0, 10_000), harm(0, "lost", "user:1", held=((0, 0), (2, 0))))
    assert bill.fetched_again == cost(read=10_000, output=RECALL_OUTPUT, write=30 + RECALL_OUTPUT)


@given(st.permutations([harm(0, "routed", A), harm(0, "routed", A, text="y"), harm(0, "lost", B), harm(0, "visible", B)]))
def test_the_order_of_a_calls_needs_does_not_matter(needs: Sequence[HarmLine]) -> None:
    assert billed(call(0), *needs, call(1)) == billed(call(0), harm(0, "routed", A), harm(0, "lost", B), call(1))


# --- A replay


def written(sample: SessionSource, ceiling: int) -> list[Watched]:
    return list(accounted(replay([sample], Options(budget=Budget(ceiling=ceiling), policy=POLICIES["cwl"]), o200k())))


@pytest.mark.parametrize("ceiling", [7_000, 10_000])
def test_an_independent_reader_comes_to_the_same_recalls(sample: SessionSource, ceiling: int) -> None:
    lines = written(sample, ceiling)
    summary = lines[-1]
    assert isinstance(summary, SummaryLine)
    read: Iterable[dict[str, Any]] = (json.loads(msgspec.json.encode(line)) for line in lines)
    recalls, usd = recalls_usd(read)
    assert recalls == summary.recalls > 0
    assert usd == pytest.approx(summary.recalls_usd)


def test_the_parts_of_a_bill_come_to_what_the_replay_says(sample: SessionSource) -> None:
    lines = written(sample, 8_000)
    summary, bill = lines[-1], bill_of(lines)
    assert isinstance(summary, SummaryLine)
    assert bill.calls == summary.calls
    assert bill.calls_usd == pytest.approx(summary.usd)
    assert (bill.recalls, bill.recall.usd) == (summary.recalls, summary.recalls_usd)
    assert bill.total_usd == pytest.approx(summary.bill_usd)


def test_a_harm_follows_the_message_that_missed_and_a_recall_its_first_need(sample: SessionSource) -> None:
    lines = written(sample, 7_000)
    needs = {"visible": 0, "routed": 0, "lost": 0}
    at: EntryLine | None = None
    for before, line in pairwise(lines):
        if isinstance(line, EntryLine):
            at = line
        if isinstance(line, HarmLine):
            assert at is not None
            assert line.entry == at.entry
            needs[line.verdict] += line.part != "thinking"
        if isinstance(line, RecallLine):
            assert isinstance(before, HarmLine)
            assert (before.verdict, before.route, before.call) == ("routed", line.handle, line.call)
    assert isinstance(lines[-1], SummaryLine)
    assert lines[-1].needs == needs


def test_watching_changes_no_line_of_a_replay_but_the_summary(sample: SessionSource) -> None:
    options = Options(budget=Budget(ceiling=8_000), policy=POLICIES["cwl"])
    plain = [line for line in replay([sample], options, o200k()) if not isinstance(line, SummaryLine)]
    assert [line for line in written(sample, 8_000) if not isinstance(line, HarmLine | RecallLine | SummaryLine)] == plain


def test_a_bill_of_nothing_is_nothing() -> None:
    assert bill_of(()) == Bill()
    assert limit_of(BudgetLine(target=60_000, ceiling=80_000, floor=None, window=180_000)) == 60_000


def test_a_clearing_of_the_recorded_agent_leaves_what_was_brought_back() -> None:
    cleared = msgspec.structs.replace(commit(1, moment="recorded"), edits=(Replace(entry=0, block=0, text="", tokens=1),))
    assert billed(call(0), harm(0, "routed"), cleared, call(1), harm(1, "routed")).recalls == 1
