import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logged import START, Turn, bulk, read, recording, run

from tenure.engine.meter.tokens import FRAMING
from tenure.engine.record.entry import Draft
from tenure.lab.evidence.corpus import Corpus
from tenure.lab.evidence.measure import CorpusEvents
from tenure.lab.evidence.pages import events_of
from tenure.lab.loading import source
from tenure.lab.measured import Curves, KindRow, Needed
from tenure.lab.protocols.curves import KEPT, STEP_BANDS, TOKEN_BANDS, curves
from tenure.lab.source import SessionSource
from tenure.testing.builders import by_words, call, human, reply, result, thinking

TICKET = "docs/tickets/TICKET-90417753.txt"


def of(folder: Path, *turns: Turn, start: datetime = START) -> Curves:
    return curves(source(recording(folder / "s.jsonl", *turns, start=start)), by_words)


def of_drafts(*drafts: Draft) -> Curves:
    return curves(SessionSource("made up", lambda: ("made up", iter(drafts))), by_words)


def kind(found: Curves, name: str) -> KindRow:
    return next(row for row in found.by_kind if row.kind == name)


def missed(found: Curves) -> dict[int, int]:
    return {reach.kept: reach.missed for reach in found.reach}


def test_the_age_of_a_need_is_that_of_the_newest_passage_that_held_it() -> None:
    words = "word " * 1_500
    found = of_drafts(
        human("Go on."),
        reply(call("read", path="notes.md")),
        result(f"see {TICKET}"),
        reply(call("bash", command="sort")),
        result(words),
        reply(call("read", path=TICKET)),
        result("it is stuck"),
    )
    assert found.needs == 1
    # Two words and framing; the call of one word and the result of 1,500, each with framing: what is newer than the start of the holder.
    assert 1_500 + 2 + 3 * FRAMING < 2_000
    assert [missed(found)[kept] for kept in (1_000, 2_000)] == [1, 0]
    assert [(band.start, band.needs) for band in found.by_steps if band.needs] == [(2, 1)]
    assert (kind(found, "results: read").needs, kind(found, "results: read").sole) == (1, 1)


def test_a_need_that_was_repeated_since_is_young() -> None:
    words = "word " * 1_500
    found = of_drafts(
        human("Go on."),
        reply(call("read", path="notes.md")),
        result(f"see {TICKET}"),
        reply(call("bash", command="sort")),
        result(words),
        reply(f"I shall look into {TICKET} now."),
        human("Do."),
        reply(call("read", path=TICKET)),
    )
    (first, second) = (band for band in found.by_steps if band.needs)
    assert (first.start, first.needs, second.start, second.needs) == (1, 1, 2, 1)
    assert kind(found, "model text").needs == 1
    assert missed(found)[1_000] == 1


def test_what_was_only_thought_neither_needs_nor_holds() -> None:
    found = of_drafts(
        human("Go on."),
        reply(call("read", path="notes.md")),
        result(f"see {TICKET}"),
        reply(thinking(f"{TICKET} it is"), "Good."),
        human("Do."),
        reply(call("read", path=TICKET)),
    )
    assert found.needs == 1
    assert kind(found, "results: read").needs == 1
    assert kind(found, "thinking").needs == 0


def test_the_oldest_of_several_strings_that_are_used_together_counts(tmp_path: Path) -> None:
    lines = ("the door of the barn does not open", "the roof of the barn is not tight")
    edit = json.dumps({"file_path": "x.py", "old_string": "\n".join(lines), "new_string": "y"})
    found = of(
        tmp_path,
        ("human", "Go on."),
        read("a.txt", lines[0]),
        run("sort", bulk(200)),
        read("b.txt", lines[1]),
        ("call", "Edit", edit, "done"),
    )
    assert missed(found)[1_000] == 1
    assert kind(found, "results: read").needs == 1


def test_kept_whole_nothing_is_missed_and_less_kept_never_misses_less(tmp_path: Path) -> None:
    rows = [read(f"part_{number}.txt", f"see item-{number}-4411{number} there\n{bulk(60, str(number))}") for number in range(20)]
    asks = [run(f"find item-{number}-4411{number}", "found") for number in range(20)]
    found = of(tmp_path, ("human", "Go on."), *rows, *asks)
    counts = [reach.missed for reach in found.reach]
    assert found.needs >= 20
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 0 == counts[-1]


def test_every_need_is_in_one_band_and_of_one_kind(tmp_path: Path) -> None:
    rows = [read(f"part_{number}.txt", f"see item-{number}-4411{number} there\n{bulk(60, str(number))}") for number in range(20)]
    found = of(tmp_path, ("human", "Go on."), *rows, *(run(f"find item-{number}-4411{number}", "found") for number in range(20)))
    assert sum(band.needs for band in found.by_tokens) == sum(band.needs for band in found.by_steps) == found.needs
    assert sum(row.needs for row in found.by_kind) == found.needs
    assert sum(row.tokens for row in found.by_kind) == found.tokens
    for row in found.by_kind:
        assert sum(band.needs for band in row.bands) == row.needs


def seen(sizes: Sequence[int]) -> list[Draft]:
    """Replies of these many words, each answered by as many."""
    drafts = [human("Go on.")]
    for size in sizes:
        drafts += [reply("word " * size), human("word " * size)]
    return drafts


@given(st.lists(st.integers(min_value=1, max_value=400), min_size=1, max_size=12))
def test_token_steps_are_what_each_reply_saw_of_each_age(sizes: list[int]) -> None:
    drafts = seen(sizes)
    found = of_drafts(*drafts)
    by_tokens, by_steps = dict.fromkeys(TOKEN_BANDS, 0), dict.fromkeys(STEP_BANDS, 0)
    weights = [by_words(draft.blocks[0].text) + FRAMING for draft in drafts]
    steps = [(number + 1) // 2 for number in range(len(drafts))]
    for number, draft in enumerate(drafts):
        if draft.role != "assistant":
            continue
        for earlier in range(number):
            age = steps[number] - steps[earlier]
            by_steps[max(band for band in STEP_BANDS if band <= age)] += weights[earlier]
        before = sum(weights[:number])
        for token in range(before):
            by_tokens[max(band for band in TOKEN_BANDS if band <= token)] += 1
    assert {band.start: band.token_steps for band in found.by_tokens} == by_tokens
    assert {band.start: band.token_steps for band in found.by_steps} == by_steps


def test_curves_of_several_sessions_add_up_in_the_tables_of_the_evidence(tmp_path: Path) -> None:
    one = of(tmp_path / "1", ("human", "Go on."), read("notes.md", f"see {TICKET}"), read(TICKET, "stuck"), ("say", "Ok."))
    two = of(tmp_path / "2", ("human", "Go on."), run("ls", bulk(300)), read("notes.md", f"see {TICKET}"), read(TICKET, "stuck"))
    lines = (Needed(source="1", curves=one), Needed(source="2", curves=two))
    with events_of(CorpusEvents(corpus=Corpus(folder="", members=()), code="", lines=lines)) as events:
        both = events.ask("select sessions, needs, tokens from needed where g = ''").rows
        reach = dict(events.ask("select kept, missed from reach where g = ''").rows)
        kinds = events.ask("select tokens from needed_kinds where kind = 'results: read'").rows
        shares = events.ask("select sum(share_of_tokens) from needed_kinds").rows
    assert both == ((2, one.needs + two.needs, one.tokens + two.tokens),)
    assert reach == {kept: missed(one)[kept] + missed(two)[kept] for kept in KEPT}
    assert kinds == ((kind(one, "results: read").tokens + kind(two, "results: read").tokens,),)
    assert shares[0][0] == pytest.approx(1.0)
