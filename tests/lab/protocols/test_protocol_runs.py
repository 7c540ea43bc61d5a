"""Sessions alone and in one conversation, on recordings whose future is known."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from logged import START, bulk, read, recording, run
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES, policy_named
from tenure.engine.record.entry import Draft
from tenure.lab.bill import bill_of
from tenure.lab.events import CallLine, CommitLine, Line
from tenure.lab.loading import source
from tenure.lab.measured import AccumulatingRun, IsolatedRun
from tenure.lab.protocols.accumulating import ConversationTask, accumulating, layout_of
from tenure.lab.protocols.runs import USUAL, budget_of, isolated, measured, options, without_head
from tenure.lab.replay import replay
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten
from tenure.testing.builders import call, human, reply, result, system

TOKENIZER = o200k()
CONDITIONS = replace(USUAL, head_tokens=1_000)
CEILING = budget_of(9_000)
TICKET = "see docs/tickets/TICKET-90417753.txt for the rest"


def many(name: str, rows: int = 90) -> Iterator[tuple[str, ...]]:
    """Calls that fill a window."""
    return (read(f"{name}/{name}_{number}.txt", bulk(rows, f"{name}, part {number},")) for number in range(6))


@pytest.fixture
def tasks(tmp_path: Path) -> tuple[ConversationTask, ...]:
    """A task that reads of a ticket and asks for it later, one that asks for it too, and one of another project that does."""
    asks = read("docs/tickets/TICKET-90417753.txt", "the door is stuck")
    shared = [read(f"src/unit_{number}/core.py", "pass") for number in range(6)]
    recording(
        tmp_path / "p" / "1.jsonl", ("human", "Look."), *shared, run("cat notes", TICKET), *many("first"), asks, ("say", "Ok.")
    )
    recording(
        tmp_path / "p" / "2.jsonl",
        ("human", "Go on."),
        *shared,
        *many("second"),
        asks,
        ("say", "Ok."),
        start=START + timedelta(days=1),
    )
    recording(tmp_path / "q" / "1.jsonl", ("human", "Else."), *many("third"), asks, ("say", "Ok."))
    (found,) = layout_of(map(str, tmp_path.rglob("*.jsonl")), TOKENIZER)
    return found


def ran(tasks: tuple[ConversationTask, ...], name: str = "sliding-window", budget: Budget = CEILING) -> AccumulatingRun:
    return accumulating(tasks, policy_named(name), budget, TOKENIZER, conditions=CONDITIONS)


def alone(task: ConversationTask, name: str = "sliding-window", budget: Budget = CEILING) -> IsolatedRun:
    return isolated(source(task.source), policy_named(name), budget, TOKENIZER, conditions=CONDITIONS)


def lines_of(task: ConversationTask, name: str, budget: Budget = CEILING) -> list[Line]:
    return list(replay([without_head(source(task.source))], options(policy_named(name), budget, CONDITIONS), TOKENIZER))


def test_without_eviction_nothing_is_missed_and_the_bill_is_the_calls(tasks: tuple[ConversationTask, ...]) -> None:
    found = alone(tasks[0], "none", budget_of(None)).measured
    assert (found.commits, found.prefix_breaks, found.evicted_tokens, found.misses.missed) == (0, 0, 0, 0)
    assert found.bill == bill_of(lines_of(tasks[0], "none", budget_of(None)))
    assert found.calls == found.bill.calls == tasks[0].calls


def test_a_break_is_a_request_that_does_not_begin_with_the_whole_one_before_it(tasks: tuple[ConversationTask, ...]) -> None:
    lines = lines_of(tasks[0], "sliding-window")
    calls = [line for line in lines if isinstance(line, CallLine)]
    breaks = sum(after.shared_prefix_tokens < before.view_tokens for before, after in pairwise(calls))
    found = measured(lines)
    assert found.prefix_breaks == breaks > 0
    assert found.commits == sum(isinstance(line, CommitLine) for line in lines)
    assert found.view_tokens == sum(line.view_tokens for line in calls)
    assert found.peak_view_tokens == max(line.view_tokens for line in calls) <= 9_000


def test_a_session_misses_what_its_later_steps_used_of_what_had_left(tasks: tuple[ConversationTask, ...]) -> None:
    found = alone(tasks[0]).measured.misses
    assert (found.lost, found.calls) == (1, 1)
    assert alone(tasks[2]).measured.misses.missed == 0  # nothing in it had named the ticket before


@pytest.mark.parametrize("name", [*POLICIES, *PEERS])
def test_below_its_ceiling_every_policy_does_the_same_as_none(tasks: tuple[ConversationTask, ...], name: str) -> None:
    free = alone(tasks[0], "none", budget_of(None)).measured
    assert alone(tasks[0], name, budget_of(free.peak_view_tokens)).measured == free


def test_needs_are_told_apart_by_the_task_that_held_them(tasks: tuple[ConversationTask, ...]) -> None:
    found = ran(tasks)
    # The ticket; the ticket and the six files that both tasks of the project read; the ticket, in a project of its own.
    assert [(task.own.lost, task.across.lost, task.dependent.lost) for task in found.tasks] == [(1, 0, 0), (0, 7, 7), (0, 1, 0)]
    assert (found.own.lost, found.across.lost, found.dependent.lost) == (1, 8, 7)
    assert found.own.missed + found.across.missed == found.measured.misses.missed


def test_what_tasks_cost_adds_up_to_the_calls_of_the_bill(tasks: tuple[ConversationTask, ...]) -> None:
    found = ran(tasks)
    assert sum(task.usd for task in found.tasks) == pytest.approx(found.measured.bill.calls_usd)


@pytest.mark.parametrize("name", ["none", "cwl", "sliding-window"])
def test_a_conversation_of_one_task_is_that_task_alone(tasks: tuple[ConversationTask, ...], name: str) -> None:
    (task,), *_ = layout_of([tasks[0].source], TOKENIZER)
    budget = budget_of(None) if name == "none" else CEILING
    assert ran((task,), name, budget).measured == alone(task, name, budget).measured


def test_the_same_run_twice_is_the_same_to_the_byte(tasks: tuple[ConversationTask, ...]) -> None:
    assert msgspec.json.encode(ran(tasks, "cwl")) == msgspec.json.encode(ran(tasks, "cwl"))


def test_rows_survive_json(tasks: tuple[ConversationTask, ...]) -> None:
    found = ran(tasks)
    assert msgspec.json.decode(msgspec.json.encode(found), type=AccumulatingRun) == found


def test_system_prompts_and_what_the_recorded_agent_did_to_its_window_are_left_out() -> None:
    events: list[Event] = [system("You are."), human("Hi."), reply(call("read", path="a")), result("x"), Rewritten(reason="r")]
    _, left = without_head(SessionSource("s", lambda: ("made up", iter(events)))).events()
    assert list(left) == [event for event in events if isinstance(event, Draft) and event.role != "system"]
