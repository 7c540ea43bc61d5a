"""What holds of every audit, whatever was recorded."""

import math

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from recordings import SMALL, audited, lines_of, made_up, worked
from tenure.engine.policies import policy_named
from tenure.engine.record.entry import Draft
from tenure.engine.view.edit import Insert, Remove
from tenure.lab.audit.report import Audit, RunLine, WindowTable
from tenure.lab.bill import accounted
from tenure.lab.events import CallLine, CommitLine, EntryLine, HarmLine, SummaryLine
from tenure.lab.replay import Options, replay
from tenure.logs.reader import Event, Rewritten
from tenure.testing.builders import by_words
from tenure.testing.transcripts import transcripts

POLICIES = ("cwl", "tiered", "oldest-turn")
few = settings(max_examples=12)  # each is several replays


@st.composite
def recordings(draw: st.DrawFn) -> tuple[Event, ...]:
    """A conversation in which the recorded agent may have compacted its window itself."""
    events: list[Event] = list(draw(transcripts(longest=10)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(1, len(events)))
        drafts = sum(isinstance(event, Draft) for event in events[:at])
        kept = tuple(sorted(draw(st.sets(st.integers(0, max(0, drafts - 1)), max_size=3))))
        events.insert(at, Rewritten(reason="compaction", drop_before=drafts, kept=kept))
    return tuple(events)


def sums(table: WindowTable) -> tuple[int, int, float]:
    rows = (*table.rows, *([table.rest] if table.rest is not None else []))
    return sum(row.tokens for row in rows), sum(row.paid for row in rows), sum(row.usd for row in rows)


@few
@given(recordings(), st.sampled_from([0, 3_000]))
def test_every_table_sums_to_the_record_and_to_what_its_calls_paid(events: tuple[Event, ...], head: int) -> None:
    lines = lines_of(made_up(*events), head_tokens=head)
    report = lines[-1]
    assert isinstance(report, Audit)
    calls = [line for line in lines if isinstance(line, CallLine)]
    tokens = sum(block.tokens or 0 for line in lines if isinstance(line, EntryLine) for block in line.blocks)
    carried = sum(line.view_tokens - line.head_tokens for line in calls)
    bill, window = report.runs[0].bill, report.window
    prompts_usd = bill.uncached.usd + bill.cache_write.usd + bill.cache_read.usd
    assert report.session.tokens == tokens
    assert window.head.paid == sum(line.head_tokens for line in calls)
    for table in (window.by_kind, window.by_tool, window.by_path, window.by_turn):
        admitted, paid, usd = sums(table)
        assert (admitted, paid) == (tokens, carried)
        assert math.isclose(usd + window.head.usd, prompts_usd, rel_tol=1e-9, abs_tol=1e-12)


@few
@given(recordings())
def test_what_the_recorded_agent_took_away_itself_harms_nobody(events: tuple[Event, ...]) -> None:
    none = audited(*events).runs[0]
    assert (none.harms.visible, none.harms.routed, none.harms.lost, none.commits_made, none.left) == (0, 0, 0, 0, 0)
    watched = list(accounted(replay([made_up(*events)], Options(budget=SMALL, policy=None), by_words)))
    late = {
        line.commit for line in watched if isinstance(line, CommitLine) and line.moment == "admission"
    }  # results of lost calls
    assert {line.commit for line in watched if isinstance(line, HarmLine)} <= late


@few
@given(recordings())
def test_each_run_is_the_replay_of_its_policy_watched_and_billed(events: tuple[Event, ...]) -> None:
    lines = lines_of(made_up(*events), *POLICIES)
    report = lines[-1]
    assert isinstance(report, Audit)
    starts = [n for n, line in enumerate(lines) if isinstance(line, RunLine)]
    assert [run.policy for run in report.runs] == ["none", *POLICIES]
    for run, start, stop in list(zip(report.runs, starts, [*starts[1:], len(lines) - 1], strict=True))[1:]:
        options = Options(budget=SMALL, policy=policy_named(run.policy))
        _, *alone = accounted(replay([made_up(*events)], options, by_words))
        assert lines[start + 1 : stop] == [line for line in alone if not isinstance(line, EntryLine)]
        summary = alone[-1]
        assert isinstance(summary, SummaryLine)
        assert math.isclose(run.bill.total_usd, summary.bill_usd, rel_tol=1e-9, abs_tol=1e-12)
        harms = run.harms
        assert summary.needs == {"visible": harms.visible, "routed": harms.routed, "lost": harms.lost}
        assert len(harms.listed) + harms.more == sum(summary.needs.values())


@few
@given(recordings())
def test_a_series_shows_the_request_of_each_call_by_kind(events: tuple[Event, ...]) -> None:
    lines = lines_of(made_up(*events), *POLICIES)
    report = lines[-1]
    assert isinstance(report, Audit)
    by_run: list[list[CallLine]] = []
    for line in lines:
        if isinstance(line, RunLine):
            by_run.append([])
        elif isinstance(line, CallLine):
            by_run[-1].append(line)
    for run, calls in zip(report.runs, by_run, strict=True):
        assert run.series.every == 1
        assert [(point.call, sum(point.tokens)) for point in run.series.points] == [(c.call, c.view_tokens) for c in calls]


@few
@given(recordings())
def test_what_left_is_what_the_commits_took_and_is_told_by_kind_and_by_object(events: tuple[Event, ...]) -> None:
    lines = lines_of(made_up(*events), "tiered")
    report = lines[-1]
    assert isinstance(report, Audit)
    run = report.runs[1]
    start = max(n for n, line in enumerate(lines) if isinstance(line, RunLine))
    edits = [edit for line in lines[start:] if isinstance(line, CommitLine) for edit in line.edits]
    tokens = {edit.key: edit.tokens for edit in edits if isinstance(edit, Insert)}
    own = {line.commit: line for line in lines[start:] if isinstance(line, CommitLine) and line.moment == "before-call"}
    residues = {number: sum(edit.tokens for edit in line.edits if isinstance(edit, Insert)) for number, line in own.items()}
    removed = {  # an inserted entry that another takes the place of
        number: sum(tokens[edit.key] for edit in line.edits if isinstance(edit, Remove)) for number, line in own.items()
    }
    assert run.commits_made == len(own)
    assert run.left == sum(line.tokens_before - line.tokens_after for line in own.values())
    assert sum(run.evicted.values()) == run.left + sum(residues.values()) - sum(removed.values())
    for removal in run.commits:
        if removal.commit in own and not removal.more:
            net = removal.tokens_before - removal.tokens_after + residues[removal.commit] - removed[removal.commit]
            assert sum(gone.tokens for gone in removal.objects) == net


@few
@given(recordings())
def test_a_report_that_was_kept_is_the_same_to_the_byte(events: tuple[Event, ...]) -> None:
    report = audited(*events, policies=POLICIES)
    written = msgspec.json.encode(report)
    assert msgspec.json.encode(msgspec.json.decode(written, type=Audit)) == written


def test_the_same_session_audited_twice_gives_the_same_lines() -> None:
    assert lines_of(made_up(*worked()), *POLICIES) == lines_of(made_up(*worked()), *POLICIES)
