from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from replay_reader import problems

from corpus_sessions import needs_corpus, path_of
from corpus_sessions import sample as sessions_of
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import COMPAT, POLICIES
from tenure.engine.policies.policy import Policy
from tenure.engine.record.recall import raw
from tenure.lab.events import CallLine, CommitLine, SummaryLine
from tenure.lab.loading import load, source
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten
from tenure.testing.builders import call, human, reply, result

EVERY_POLICY = {**POLICIES, **COMPAT, "none": None}


def written(sources: list[SessionSource], budget: Budget, policy: Policy | None) -> Iterator[str]:
    for line in replay(sources, Options(budget=budget, policy=policy), o200k()):
        yield msgspec.json.encode(line).decode()


@pytest.mark.parametrize("name", EVERY_POLICY)
@pytest.mark.parametrize(
    "budget", [Budget(ceiling=8_000), Budget(target=9_000), Budget(window=10_000)], ids=["ceiling", "target", "window"]
)
def test_an_independent_reader_rebuilds_every_request_and_finds_nothing_wrong(
    sample: SessionSource, budget: Budget, name: str
) -> None:
    if name == "none":
        budget = Budget(window=10_000_000)
    assert list(problems(written([sample], budget, EVERY_POLICY[name]))) == []


def test_the_same_replay_gives_the_same_bytes(sample: SessionSource) -> None:
    once = list(written([sample], Budget(ceiling=8_000), POLICIES["cwl"]))
    assert once == list(written([sample], Budget(ceiling=8_000), POLICIES["cwl"]))


def test_what_left_is_recalled_byte_for_byte(sample: SessionSource) -> None:
    loaded = load([sample], o200k())
    shown = {}
    for line in replay([sample], Options(budget=Budget(ceiling=7_000), policy=POLICIES["cwl"]), o200k()):
        if isinstance(line, CommitLine):
            shown |= {route: None for edit in line.edits for route in getattr(edit, "routes", ())}
    assert shown
    for route in shown:
        assert raw(loaded.index, loaded.read, route)
    first = loaded.index.spans[0]
    assert first.result is not None
    assert raw(loaded.index, loaded.read, first.object).decode() == loaded.read(first.result[0]).blocks[first.result[1]].text


def test_several_sessions_run_one_after_another_in_one_conversation(sample: SessionSource) -> None:
    lines = list(replay([sample, sample], Options(budget=Budget(ceiling=12_000), policy=POLICIES["cwl"]), o200k()))
    last = lines[-1]
    assert isinstance(last, SummaryLine)
    assert last.violations == ()
    assert last.recoverable_share == 1.0
    calls = [line for line in lines if isinstance(line, CallLine)]
    assert len(calls) == 2 * 30


def exchange(number: int, text: str) -> list[Event]:
    asked = call("read", path=f"src/{number}.py")
    return [reply(asked), result(asked.call_id, text)]


def test_a_compaction_of_the_recorded_agent_is_a_commit_of_its_own() -> None:
    events: list[Event] = [human("go"), *exchange(1, "one " * 400), *exchange(2, "two " * 400)]
    events += [
        Rewritten(reason="compaction (auto)", drop_before=len(events)),
        human("summary"),
        *exchange(3, "three"),
        reply("done"),
    ]
    session = SessionSource("made", lambda: ("test", iter(events)))
    lines = list(replay([session], Options(budget=Budget(ceiling=40_000), policy=POLICIES["cwl"]), o200k()))
    (commit,) = [line for line in lines if isinstance(line, CommitLine)]
    assert commit.moment == "recorded"
    assert commit.tokens_after == 0
    assert list(problems(msgspec.json.encode(line).decode() for line in lines)) == []


def test_a_call_that_a_compaction_took_is_still_read_where_its_result_is_shown() -> None:
    events: list[Event] = [human("go")]
    for n in range(6):
        asked = call("read", path=f"src/{n}.py")
        events += [reply(asked), result(f"text {n} " * 300, asked.call_id)]
    events += [Rewritten(reason="compaction", drop_before=len(events), kept=tuple(range(2, len(events), 2))), reply("so far")]
    events += [event for n in range(20, 26) for event in exchange(n, f"more {n} " * 300)] + [reply("done")]
    lines = list(
        replay(
            [SessionSource("made", lambda: ("test", iter(events)))],
            Options(budget=Budget(ceiling=2_000), policy=POLICIES["tiered"]),
            o200k(),
        )
    )
    assert isinstance(lines[-1], SummaryLine)


@needs_corpus
@pytest.mark.parametrize("path", [path_of(row) for row in sessions_of()], ids=lambda path: path.name)
def test_recorded_sessions_replay_without_a_fault(path: Path) -> None:
    assert list(problems(written([source(str(path))], Budget(ceiling=30_000), POLICIES["cwl"]))) == []
