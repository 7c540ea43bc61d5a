"""What a recorded agent's own window was, and what its provider said of it."""

import random

import pytest

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Usage
from tenure.engine.view.edit import Drop, Replace
from tenure.lab.events import CallLine, CommitLine, SkippedLine
from tenure.lab.loading import Loaded, load
from tenure.lab.recorded import CLEARED
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten, SubAgent
from tenure.testing.builders import call, human, reply, result

OPTIONS = Options(budget=Budget(window=10_000_000), policy=None)


def session(*events: Event) -> SessionSource:
    return SessionSource("made", lambda: ("made", iter(events)))


def loaded(*events: Event) -> Loaded:
    return load([session(*events)], o200k())


def commits(*events: Event) -> list[CommitLine]:
    return [line for line in replay([session(*events)], OPTIONS, o200k()) if isinstance(line, CommitLine)]


def words(count: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(("alpha", "beta", "gamma", "delta"), k=count))


def conversation(ratio: float, head: int, count: int = 12) -> list[Event]:
    """Calls whose provider counts `ratio` tokens for one of ours, and a head that the log leaves out."""
    events: list[Event] = [human("Go.")]
    for n in range(count):
        said = [event for event in events if not isinstance(event, Rewritten | SubAgent)]
        weight = loaded(*said).index.tokens
        usage = Usage(uncached=5, cache_write=100, cache_read=round(ratio * weight) + head - 105, output=7)
        events += [reply(call("read", f"c{n}", path=f"{n}.py"), usage=usage), result(words(800, n), f"c{n}")]
    return events


def test_the_ratio_and_the_head_are_learned_from_what_was_reported() -> None:
    found = loaded(*conversation(1.25, 9_000)).reported
    assert found is not None
    assert found.ratio == pytest.approx(1.25, abs=0.01)
    assert found.head == pytest.approx(9_000, abs=60)
    assert (found.calls, found.uncached, found.cache_write, found.output) == (12, 60, 1200, 84)
    assert found.error_at(0.5) < 0.02
    assert found.error_at(1) < 0.05


def test_without_reports_nothing_is_learned() -> None:
    assert loaded(human("Go."), reply("Done.")).reported is None


def test_a_compaction_leaves_only_what_it_kept() -> None:
    (made,) = commits(human("a"), reply("b"), human("c"), reply("d"), Rewritten(reason="compaction", drop_before=4, kept=(0, 2)))
    assert made.moment == "recorded"
    assert [(edit.entry, edit.block) for edit in made.edits if isinstance(edit, Drop)] == [(1, 0), (3, 0)]


def test_a_cleared_result_is_a_note_unless_it_left() -> None:
    said = (human("a"), reply(call("read", "c1")), result("long", "c1"), reply(call("read", "c2")), result("longer", "c2"))
    (made,) = commits(*said, Rewritten(reason="pruned", drop_before=3, cleared=("c1", "c2", "c3")))
    assert [type(edit).__name__ for edit in made.edits] == ["Drop", "Drop", "Drop", "Replace"]
    assert [edit.text for edit in made.edits if isinstance(edit, Replace)] == [CLEARED]


def test_the_window_without_us_shrinks_where_the_recorded_agents_did() -> None:
    events = (human(words(500, 1)), reply("b"), Rewritten(reason="compaction", drop_before=2), human("on"), reply("c"))
    first, second = [line for line in replay([session(*events)], OPTIONS, o200k()) if isinstance(line, CallLine)]
    assert second.view_tokens < first.view_tokens


def test_a_sub_agents_conversation_is_counted_and_said() -> None:
    lines = replay([session(human("a"), reply("b"), SubAgent(id="x7", line=9, messages=3, bytes=50))], OPTIONS, o200k())
    (skipped,) = [line for line in lines if isinstance(line, SkippedLine)]
    assert (skipped.line, skipped.bytes) == (9, 50)
    assert "SESSION#x7" in skipped.reason
