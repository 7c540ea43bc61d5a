"""A session whose server reports usage that cannot be true is held to its limits by our own count."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import httpx
import pytest

from tenure import Budget, Context, Unmet
from tenure.engine.lifecycle.decision import Decision
from tenure.engine.meter.tokens import o200k
from tenure.engine.meter.warmth import Collapse
from tenure.engine.planners.handoff.sections import END, SECTIONS
from tenure.engine.record.entry import Usage
from tenure.testing.model import Line, ScriptedModel
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"{n}: the value of part {n * n} is known" for n in range(120))
BRIEF = "\n\n".join(f"## {section.title}\nPart one was mended in part_one.py; make 3 passed." for section in SECTIONS)
CEILING = 20_000
SPELLING = 1.1  # the server counts the JSON of a message; nobody has taught us so
STEPS = 30
Report = Callable[[Usage], Usage]


def ten_from(call: int) -> Report:
    """Ten tokens, whatever was sent, from a call on; the truth before."""
    numbers = count()
    return lambda usage: usage if next(numbers) < call else Usage(uncached=10, output=usage.output)


REPORTS: dict[str, Callable[[], Report]] = {
    "ten tokens": lambda: ten_from(0),
    "the truth, then ten tokens": lambda: ten_from(9),
    "only what is new": lambda: lambda usage: Usage(uncached=usage.uncached + usage.cache_write, output=usage.output),
    "nothing": lambda: lambda _: Usage(),
    "a billion": lambda: lambda usage: Usage(uncached=10**9, output=usage.output),
}
LYING = pytest.mark.parametrize("report", [pytest.param(report, id=name) for name, report in REPORTS.items()])


class Run:
    """An agent that calls `make` again and again, and a server that reports what it likes."""

    def __init__(self, report: Report, **settings: Any) -> None:
        calls = [Call(name="bash", arguments=json.dumps({"command": f"make {n}"})) for n in range(STEPS)]
        script = Script(replies=tuple(Reply(calls=(call,)) for call in calls))
        self.provider = FakeProvider(script, report=report, tokens=o200k(), clock=lambda: 0.0)
        self.decisions: list[Decision] = []
        self.collapses: list[Collapse | None] = []
        settings = {"budget": Budget(ceiling=CEILING), "policy": "graph", "store": MemoryStore(), "clip": 0} | settings
        self.context = Context(
            dialect="openai-chat",
            model="gpt-5",
            on_decision=self.decisions.append,
            clock=lambda: "2023-11-14T22:13:20Z",  # when the fake provider's replies are made
            **settings,
        )
        self.context.extend([{"role": "user", "content": "Mend it."}])

    def play(self) -> list[int]:
        """What each request weighed, by a count of the server's that it keeps to itself."""
        with serve(self.provider.app) as url, httpx.Client(base_url=url) as client:
            for _ in range(STEPS):
                reply = client.post("/v1/chat/completions", json=self.context.request(model="gpt-5")).raise_for_status().json()
                self.context.append(reply)
                self.collapses.append(self.context.collapse)
                made = reply["choices"][0]["message"]["tool_calls"]
                self.context.extend([{"role": "tool", "tool_call_id": call["id"], "content": LINES} for call in made])
        return [seen.usage.prompt for seen in self.provider.seen if seen.usage is not None]


@LYING
@pytest.mark.parametrize("policy", ["graph", "tiered"])
def test_a_session_keeps_its_ceiling_whatever_its_server_reports(report: Callable[[], Report], policy: str) -> None:
    run = Run(report(), policy=policy)
    sizes = run.play()
    assert len(sizes) == STEPS
    assert max(sizes) <= SPELLING * CEILING
    assert min(sizes[-5:]) > CEILING / 4  # and nothing leaves that need not


@LYING
def test_the_gauge_shows_our_own_count_where_the_report_cannot_be_true(report: Callable[[], Report]) -> None:
    run = Run(report(), policy=None)
    sent = run.play()[-1]
    gauge = run.context.gauge
    assert gauge.estimated
    assert sent / SPELLING < gauge.tokens < SPELLING * (sent + 1_500)


@LYING
def test_a_full_window_is_told_whatever_the_server_reports(report: Callable[[], Report]) -> None:
    run = Run(report(), policy=None)
    run.play()
    assert any(isinstance(each, Unmet) for each in run.decisions)
    assert all(isinstance(each, Unmet) for each in run.decisions[-5:])


@LYING
def test_a_window_is_handed_off_when_it_is_full_and_not_before(report: Callable[[], Report]) -> None:
    summariser = ScriptedModel(then=Line(text=f"{BRIEF}\n{END}"))
    run = Run(report(), policy=None, budget=Budget(window=30_000), summariser=summariser)
    sizes = run.play()
    assert max(sizes) < 30_000
    assert 1 <= len(summariser.questions) <= 3


def test_a_report_that_cannot_be_true_tells_of_no_lost_cache() -> None:
    run = Run(REPORTS["a billion"]())
    run.play()
    assert not any(run.collapses)


def test_the_usage_that_was_reported_is_billed_as_it_was() -> None:
    run = Run(ten_from(0))
    run.play()
    assert run.context.ledger.total.usage.prompt == 10 * STEPS
