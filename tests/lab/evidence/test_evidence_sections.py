"""Sections made of rows that were never measured: what tables and goals say follows from the rows, and pages look as they did."""

import json
from collections.abc import Callable

import pytest
from made_up_corpus import alone, cut, together

from tenure.engine.policies import COMPAT, PEERS, POLICIES
from tenure.errors import InputError
from tenure.lab.events import AgeBand, Amounts, Caching, Compared, Curves, KindRow, Off, Profile, Reach, Workload
from tenure.lab.evidence.contents import KINDS, NAMES, tables
from tenure.lab.evidence.origins import ALL, SUBJECT, origin
from tenure.lab.evidence.page import Section, Table, cell, change, page, percent, shared, tokens
from tenure.lab.evidence.sections import accumulating, bill, bounds, cuts, detector, sessions, sweep, whole
from tenure.lab.evidence.sections.detector import labels_of
from tenure.lab.evidence.sections.matched import duels
from tenure.lab.protocols import claims
from tenure.lab.protocols.curves import KEPT, STEP_BANDS, TOKEN_BANDS
from tenure.lab.protocols.sweep import SweepRow, accumulated_row, isolated_row

GROUPS = {"coding with edits": frozenset({"a.json"}), "hard": frozenset({"a.json"})}
CUTS = [
    *(cut("oracle-lines", n, pruned=0.46) for n in range(4)),
    *(cut("provenance", n, missed=2 * (n == 0)) for n in range(4)),
    *(cut("cwl", n, missed=3) for n in range(4)),
    *(cut("tool-prune", n, missed=2) for n in range(4)),
    *(cut("opencode-prune", n, pruned=0.0) for n in range(4)),
    *(cut("provenance", n, target=0.3, missed=0) for n in range(4)),
    *(cut("provenance", n, matched="tool-prune", missed=n % 2) for n in range(4)),
]
ALONE = [
    alone("a.json", "none", 10.0),
    alone("b.json", "none", 1.0, peak=30_000),
    alone("a.json", "provenance", 7.0, routed=2),
    alone("b.json", "provenance", 1.0, peak=30_000),
    alone("a.json", "cwl", 8.0, lost=3),
    alone("a.json", "opencode-prune", 9.5, unmet=120),
    alone("a.json", "provenance", 9.0, target=80_000),
    alone("b.json", "provenance", 1.005, target=80_000, peak=30_000),
]
TOGETHER = [
    together("none", 90.0),
    together("compaction", 30.0, ceiling=80_000, variant="brief", lost=20),
    together("compaction", 45.0, ceiling=167_000, variant="brief", lost=9),
    together("provenance", 29.0, routed=4, lost=5),
    together("cwl", 31.0, lost=8),
    together("pi-cwl", 90.0, unmet=190),
]
CLAIMS = [
    claims.Tested(
        claim="3 times cheaper at 50k",
        says="around 50k a session costs up to 3 times less",
        origin="CWL paper, section 6.4",
        protocol=protocol,
        policy=policy,
        verdict="partly" if policy == "cwl" else "does not hold",
        because="1.4 times, and not 3",
        figures=(
            claims.Figure(name="cost at 120k over cost at 50k", value=1.41, unit="times"),
            claims.Figure(name="saved", value=-0.1, unit="share"),
        ),
    )
    for protocol in ("isolated", "accumulating")
    for policy in ("cwl", "sliding-window", "hybrid")
]
LABELS = labels_of(
    b"\n".join(
        json.dumps(each).encode()
        for each in (
            {"round": 1, "label": "needed", "kind": "symbol", "why": "taken", "policy": "cwl"},
            {"round": 1, "label": "not", "kind": "symbol", "why": "known"},
            {"round": 2, "label": "needed", "kind": "locator", "why": "taken"},
            {"round": 2, "label": "step", "why": "seen", "seen": 4, "found": 3},
        )
    ),
    "labels.jsonl",
)


def bands(edges: tuple[int, ...], needs: int) -> tuple[AgeBand, ...]:
    return tuple(
        AgeBand(start=start, stop=stop, needs=needs // (n + 1), token_steps=10_000, per_million=needs / (n + 1) * 100)
        for n, (start, stop) in enumerate(zip(edges, (*edges[1:], None), strict=True))
    )


NEEDS = Curves(
    sessions=1,
    steps=40,
    tokens=9_000,
    needs=100,
    reach=tuple(Reach(kept=kept, missed=60 // (n + 1), share=60 // (n + 1) / 100) for n, kept in enumerate(KEPT)),
    by_tokens=bands(TOKEN_BANDS, 100),
    by_steps=bands(STEP_BANDS, 100),
    by_kind=(
        KindRow(
            kind="results: read",
            tokens=8_000,
            share_of_tokens=0.9,
            needs=60,
            share_of_needs=0.6,
            per_thousand=7.5,
            sole=20,
            bands=bands(STEP_BANDS, 60),
        ),
    ),
)
COMPARED = Compared(
    name="a.json",
    calls=10,
    unreported=1,
    caching=Caching.WRITES,
    reported=Amounts(cache_read=90_000, cache_write=10_000, usd=2.0),
    simulated=Amounts(cache_read=95_000, cache_write=6_000, usd=1.5),
    by_cache=Amounts(cache_read=91_000, cache_write=9_000, usd=1.8),
    plain=Amounts(cache_read=80_000, cache_write=4_000, usd=1.2),
    off=Off(usd=0.6),
    causes={"sizes": -0.3, "expired": -0.2},
    times={"expired": 2},
)
PROFILE = Profile(
    source="a.json",
    format="messages",
    workload=Workload.CODING,
    rule="3 uses",
    is_hard=True,
    entries=80,
    replies=40,
    human_turns=2,
    tokens=9_000,
    result_tokens=6_000,
    result_share=0.67,
    peak_tokens=8_500,
    pressure_tokens=3_000.0,
    uses={"edits": 4},
)


def swept() -> list[SweepRow]:
    runs = [
        [alone("a.json", "none", 10.0)],
        *(
            [alone("a.json", policy, usd * factor, ceiling=ceiling, lost=lost)]
            for policy, factor in (("cwl", 1.0), ("sliding-window", 1.1))
            for ceiling, usd, lost in (
                (50_000, 4.0, 20),
                (80_000, 5.0, 9),
                (120_000, 6.0, 5),
                (160_000, 9.0, 3),
                (267_000, 10.0, 1),
            )
        ),
    ]
    rows = [isolated_row(found, found[0].budget.ceiling) for found in runs]
    return [*rows, *(accumulated_row([run]) for run in TOGETHER)]


MADE = {
    "cuts": lambda: cuts.section(CUTS, GROUPS),
    "whole": lambda: whole.section(ALONE, GROUPS),
    "accumulating": lambda: accumulating.section(TOGETHER, [run for run in ALONE if run.policy == "none"]),
    "sweep": lambda: sweep.section(swept(), CLAIMS, ("cwl", "sliding-window")),
    "bounds": lambda: bounds.section({"a.json": NEEDS}, GROUPS),
    "bill": lambda: bill.section([COMPARED], {"a.json": "claude-code"}),
    "detector": lambda: detector.section(LABELS),
    "sessions": lambda: sessions.section([PROFILE], {"a.json": "claude-code"}),
}


def row(section: Section, title: str, first: str) -> dict[str, str]:
    table = next(each for each in tables(section) if each.title == title)
    found = next(line for line in table.rows if line[0] == first)
    return {name.removeprefix(":"): words for name, words in zip(table.head, found, strict=True)}


@pytest.mark.parametrize("name", MADE)
def test_a_page_looks_as_it_did(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"evidence-{name}.md", page(MADE[name](), f"tenure evidence FOLDER --only {name}"))


def test_every_section_is_tried_here() -> None:
    assert tuple(MADE) == NAMES == tuple(kind.name for kind in KINDS)


@pytest.mark.parametrize("name", MADE)
def test_rows_are_objects_a_line_and_tables_have_a_cell_for_each_head(name: str) -> None:
    section = MADE[name]()
    assert all(isinstance(json.loads(line), dict) for line in section.rows.splitlines())
    assert {len(line) - len(table.head) for table in tables(section) for line in table.rows} == {0}


def test_every_policy_cites_its_source_and_no_two_share_a_name() -> None:
    assert len(ALL) == len({**POLICIES}) + len({**PEERS}) + len({**COMPAT})
    assert {name: policy.name for name, policy in ALL.items()} == {name: name for name in ALL}
    assert [name for name in ALL if origin(name).source == "knows the future"] == []
    assert {name for name in ALL if origin(name).whose == "ours"} == set(POLICIES)
    assert SUBJECT in POLICIES
    assert origin("oracle-objects").whose == "bound"
    assert origin("compaction at 80k, brief").whose == "peer"


def test_goals_at_the_cut_are_counted_against_the_best_of_those_that_took_their_share() -> None:
    section = cuts.section(CUTS, GROUPS)
    half, near, same, lost, matched = section.goals
    assert half.found == "0.50 a cut against 2.00 of tool-prune"  # not opencode-prune, which took nothing
    assert (half.is_met, near.is_met, same.is_met, lost.is_met) == (True, False, False, False)
    assert same.found == "75 % against 100 %"
    assert lost.found == "10.0 %"  # 1 of 2 a cut visible, 4 times, and 2
    assert (matched.found, matched.is_met) == ("worst of 1 other: 0.25 times those of tool-prune", True)


def test_a_policy_is_compared_at_the_very_share_that_another_took() -> None:
    (duel,) = duels(CUTS)
    assert (duel.policy, duel.other, duel.cuts) == ("provenance", "tool-prune", 4)
    assert (duel.own_missed, duel.other_missed) == (2, 8)
    assert (duel.own_untouched, duel.other_untouched) == (2, 0)
    assert (duel.better, duel.worse) == (4, 0)


def test_matched_cuts_do_not_count_among_those_at_the_same_target() -> None:
    found = row(cuts.section(CUTS, GROUPS), "45 % to be pruned", "provenance")
    assert (found["cuts"], found["routed"], found["lost"], found["missed per cut"]) == ("4", "1", "1", "0.50")


def test_only_sessions_that_the_ceiling_touches_are_added_up() -> None:
    section = whole.section(ALONE, GROUPS)
    assert section.lead.startswith("1 of 2 sessions pass 80k tokens")
    found = row(section, "All sessions that pass it", "provenance")
    assert (found["bill"], found["against none"], found["routed"]) == ("$7.02", "−30 %", "2")


def test_with_a_target_a_session_that_costs_more_is_seen_and_judged() -> None:
    section = whole.section(ALONE, GROUPS)
    assert [goal.is_met for goal in section.goals] == [True]
    assert row(section, "With a target and no ceiling: every session, short ones too", "provenance")["dearest session"] == "±0 %"
    dear = whole.section([*ALONE[:-1], alone("b.json", "provenance", 1.02, target=80_000)], GROUPS)
    assert [goal.is_met for goal in dear.goals] == [False]


def test_who_does_not_keep_the_ceiling_comes_last() -> None:
    for section in (MADE["whole"](), MADE["accumulating"]()):
        assert tables(section)[0].rows[-1][0] in ("opencode-prune", "pi-cwl")


def test_goals_of_the_accumulating_session_weigh_bill_and_misses_against_compaction() -> None:
    half, stretched = accumulating.section(TOGETHER, []).goals
    assert half.found == "bill 0.97 times, misses 0.45 times"
    assert stretched.found == "bill 0.97 times, misses 1.00 times"
    assert half.is_met
    assert stretched.is_met


def test_a_label_that_is_none_is_told_with_its_line() -> None:
    with pytest.raises(InputError, match=r"labels.jsonl:2: no label"):
        labels_of(b'{"round":1,"label":"step"}\n{"round":1,"label":"perhaps"}\n', "labels.jsonl")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (percent(0.1234, 1), "12.3 %"),
        (percent(-0.5), "−50 %"),
        (change(9.0, 10.0), "−10 %"),
        (change(10.0, 10.01), "±0 %"),
        (change(1.0, 0.0), "–"),
        (tokens(267_000), "267k"),
        (tokens(None), "uncapped"),
        (shared(0, 0), "–"),
        (shared(3, 4), "75 % (30–95)"),
        (cell("a|b<c>\x1b[2J\n"), "a\\|b&lt;c>\ufffd[2J\ufffd"),
    ],
)
def test_numbers_and_names_are_written_one_way(said: str, expected: str) -> None:
    assert said == expected


def test_a_table_that_is_empty_is_still_a_table() -> None:
    section = Section(name="x", title="X", lead="", shows="", parts=(Table(title="None", head=(":a", "b"), rows=()),))
    assert "| a | b |\n| --- | ---: |\n" in page(section, "make x")
