"""A bill held against what a provider reported: made sessions whose provider does what it is told to."""

import msgspec
import pytest
from msgspec.structs import replace
from reported_sessions import HEAD, cold, made, told, worked

from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Usage
from tenure.lab.evidence.corpus import Corpus
from tenure.lab.evidence.measure import CorpusEvents
from tenure.lab.evidence.pages import events_of
from tenure.lab.measured import Amounts, Billed, Caching, Compared
from tenure.lab.source import SessionSource
from tenure.lab.validation import CAUSES, ComparedCall, compare, places


def compared(source: SessionSource) -> Compared:
    found = compare(source, o200k())
    assert found is not None
    return found


def place(source: SessionSource, number: int) -> ComparedCall:
    (found,) = [each for each in places(source, o200k()) if each.call == number]
    return found


# --- Where everything is as assumed


@pytest.mark.parametrize("ratio", [1.0, 1.4])
def test_a_provider_that_does_as_assumed_leaves_no_error(ratio: float) -> None:
    found = compared(told(worked(), ratio=ratio))
    assert found.caching is Caching.WRITES
    assert found.calls == 12
    assert found.ratio == pytest.approx(ratio, abs=0.02)
    assert found.head == pytest.approx(HEAD, rel=0.02)
    assert abs(found.error) < 0.01
    assert found.off.usd < 0.01 * found.reported.usd
    assert found.by_cache.usd == pytest.approx(found.reported.usd)


def test_a_session_without_reports_cannot_be_compared() -> None:
    assert compare(made(worked()), o200k()) is None
    assert places(made(worked()), o200k()) == ()


def test_calls_without_a_report_are_counted_and_left_out() -> None:
    source = told(worked(), lambda n, usage: Usage() if n in (3, 4) else usage)
    assert (compared(source).calls, compared(source).unreported) == (10, 2)
    assert {each.call for each in places(source, o200k())} == {0, 1, 2, 5, 6, 7, 8, 9, 10, 11}


def test_the_head_is_the_middle_of_what_the_first_reports_leave_over() -> None:
    """The first call of some agents is a small one, before their tools are there."""
    source = told(worked(), lambda n, usage: Usage(uncached=300) if n == 0 else usage)
    assert compared(source).head == pytest.approx(HEAD, rel=0.02)


# --- What a provider may report


def test_a_provider_that_tells_only_what_is_read_is_compared_by_what_is_new() -> None:
    def reads(_: int, usage: Usage) -> Usage:
        return Usage(uncached=usage.cache_write, cache_read=usage.cache_read)

    found = compared(told(worked(models={0: "gpt-5"}), reads))
    assert found.caching is Caching.READS
    assert found.simulated.cache_write == found.by_cache.cache_write == 0
    assert found.simulated.new == pytest.approx(found.reported.new, rel=0.02)


def test_a_provider_that_caches_nothing_is_told_apart() -> None:
    found = compared(told(worked(), lambda _, usage: Usage(uncached=usage.prompt)))
    assert found.caching is Caching.NONE
    assert found.error < -0.5
    assert found.times["not found"] == 11


# --- What an error comes from


def test_a_prefix_that_lived_longer_than_promised_is_named() -> None:
    source = told(worked(pauses={6: 330}))
    assert place(source, 6).cause == "held longer"
    assert place(source, 6).idle_s == 330
    assert compared(source).causes["held longer"] > 0


def test_a_pause_after_which_all_was_written_again_is_no_error() -> None:
    source = told(worked(pauses={6: 600}), lambda n, usage: cold(n, usage) if n == 6 else usage)
    assert place(source, 6).cause == "expired"
    assert compared(source).causes["expired"] == pytest.approx(0, abs=1e-9)


def test_a_prefix_that_was_not_found_is_named() -> None:
    source = told(worked(), lambda n, usage: cold(n, usage) if n == 6 else usage)
    assert place(source, 6).cause == "not found"
    assert compared(source).causes["not found"] < 0
    assert places(source, o200k())[0].call == 6


def test_what_an_agent_took_out_without_a_word_is_told_from_what_was_not_found() -> None:
    def cleared(n: int, usage: Usage) -> Usage:
        return Usage(cache_write=usage.prompt - 5_000) if n == 6 else usage

    assert place(told(worked(), cleared), 6).cause == "cleared unseen"


def test_another_model_finds_nothing_in_the_cache() -> None:
    source = told(worked(models={6: "claude-opus-4-5"}), lambda n, usage: cold(n, usage) if n == 6 else usage)
    assert place(source, 6).cause == "another model"
    assert place(source, 6).by_cache.cache_read == place(source, 6).simulated.cache_read == 0
    assert abs(compared(source).error) < 0.01


def test_a_compaction_that_the_log_tells_of_is_no_mystery() -> None:
    assert place(told(worked(compacted=6)), 6).cause == "compaction"


def test_a_first_call_that_finds_another_sessions_head_is_named() -> None:
    source = told(worked(), lambda n, usage: Usage(cache_write=usage.prompt - HEAD, cache_read=HEAD) if n == 0 else usage)
    assert place(source, 0).cause == "first call"
    assert compared(source).causes["first call"] > 0


def test_causes_come_to_the_whole_error() -> None:
    def tell(n: int, usage: Usage) -> Usage:
        return cold(n, usage) if n in (3, 9) else replace(usage, cache_write=usage.cache_write + 700)

    found = compared(told(worked(pauses={5: 320}, compacted=7), tell))
    assert sum(found.causes.values()) == pytest.approx(found.simulated.usd - found.reported.usd)
    assert sum(found.times.values()) == found.calls
    assert found.causes.keys() <= CAUSES.keys()


def test_errors_that_cancel_in_a_sum_are_seen_call_by_call() -> None:
    """One call reads nothing, and one that should not reads all."""
    source = told(worked(pauses={8: 330}), lambda n, usage: cold(n, usage) if n == 7 else usage)
    found = compared(source)
    assert abs(found.error) < 0.1
    assert found.off.usd > 0.4 * found.reported.usd


def test_several_sessions_together_are_their_sums() -> None:
    one, two = compared(told(worked())), compared(told(worked(8), cold))
    lines = (Billed(compared=one), Billed(compared=two))
    with events_of(CorpusEvents(corpus=Corpus(folder="", members=()), code="", lines=lines)) as events:
        (both,) = events.ask("select sessions, calls, reported, off from billed where what = 'all'").dicts
        assert events.ask("select sum(compared.causes['not found']) from bills").rows == ((two.causes["not found"],),)
    assert (both["sessions"], both["calls"], both["off"]) == (2, 20, one.off.usd + two.off.usd)
    assert msgspec.convert(both["reported"], Amounts) == one.reported + two.reported
