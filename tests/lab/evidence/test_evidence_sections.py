"""Sections made of rows that were never measured: what tables and goals say follows from the rows, and pages look as they did."""

import json
from collections.abc import Callable, Sequence

import msgspec
import pytest
from made_up_corpus import alone, cut, together, with_marks
from msgspec.structs import replace

from tenure.engine.policies import COMPAT, PEERS, POLICIES
from tenure.errors import InputError
from tenure.lab.evidence.corpus import Corpus, Member
from tenure.lab.evidence.measure import ALL, SUBJECT, CorpusEvents, Line, labels_of
from tenure.lab.evidence.pages import SECTIONS, EvidenceSection, events_of, page, sections
from tenure.lab.measured import (
    AgeBand,
    Amounts,
    Billed,
    Caching,
    Compared,
    Curves,
    KindRow,
    Measured,
    Needed,
    Off,
    Profile,
    Reach,
    Workload,
)
from tenure.lab.protocols.curves import KEPT, STEP_BANDS, TOKEN_BANDS
from tenure.lab.report.template import FILTERS, cell, table

CUTS = [
    *(cut("oracle-lines", n, pruned=0.46) for n in range(4)),
    *(cut("graph", n, missed=2 * (n == 0)) for n in range(4)),
    *(cut("cwl", n, missed=3) for n in range(4)),
    *(cut("tool-prune", n, missed=2) for n in range(4)),
    *(cut("opencode-prune", n, pruned=0.0) for n in range(4)),
    *(cut("graph", n, target=0.3, missed=0) for n in range(4)),
    *(cut("graph", n, matched="tool-prune", missed=n % 2) for n in range(4)),
]
ALONE = [
    alone("a.json", "none", 10.0),
    alone("b.json", "none", 1.0, peak=30_000),
    alone("a.json", "graph", 7.0, routed=2),
    alone("b.json", "graph", 1.0, peak=30_000),
    alone("a.json", "cwl", 8.0, lost=3),
    alone("a.json", "opencode-prune", 9.5, unmet=120),
    alone("a.json", "graph", 9.0, target=80_000),
    alone("b.json", "graph", 1.005, target=80_000, peak=30_000),
]
MARKED = [
    with_marks(policy, variant, usd, lost)
    for policy, usd, lost in (("none", 20.0, 0), ("cwl", 8.0, 12), ("graph", 7.0, 10), ("sliding-window", 8.0, 20))
    for variant in ("plain", "marked")
]
TOGETHER = [
    together("none", 90.0),
    together("compaction", 30.0, ceiling=80_000, variant="brief", lost=20),
    together("compaction", 45.0, ceiling=167_000, variant="brief", lost=9),
    together("graph", 29.0, routed=4, lost=5),
    together("cwl", 31.0, lost=8),
    together("pi-cwl", 90.0, unmet=190),
]
CLAIMS = [
    {
        "type": "claim",
        "claim": "3 times cheaper at 50k",
        "says": "around 50k a session costs up to 3 times less",
        "origin": "CWL paper, section 6.4",
        "protocol": protocol,
        "policy": policy,
        "verdict": "partly" if policy == "cwl" else "does not hold",
        "because": "1.4 times, and not 3",
        "figures": [
            {"name": "cost at 120k over cost at 50k", "value": 1.41, "unit": "times"},
            {"name": "saved", "value": -0.1, "unit": "share"},
        ],
    }
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
            {"round": 3, "label": "pair", "kind": "locator", "form": "path", "why": "taken", "pair": ["needed", "needed"]},
            {"round": 3, "label": "pair", "kind": "locator", "form": "path", "why": "known", "pair": ["needed", "not"]},
            {"round": 3, "label": "pair", "kind": "fact", "form": "figure", "why": "known", "pair": ["not", "not"]},
            {"round": 3, "label": "string", "why": "taken", "pair": ["needed", "needed"], "found": 1, "weight": 2.0},
            {"round": 3, "label": "string", "why": "taken", "pair": ["needed", "needed"], "found": 0, "weight": 3.0},
            {"round": 3, "label": "string", "why": "wording", "pair": ["not", "not"], "found": 0},
        )
    ),
    "labels.jsonl",
)


def bands(edges: tuple[int, ...], needs: int) -> tuple[AgeBand, ...]:
    return tuple(
        AgeBand(start=start, stop=stop, needs=needs // (n + 1), token_steps=10_000)
        for n, (start, stop) in enumerate(zip(edges, (*edges[1:], None), strict=True))
    )


NEEDS = Curves(
    sessions=1,
    steps=40,
    tokens=9_000,
    needs=100,
    reach=tuple(Reach(kept=kept, missed=60 // (n + 1)) for n, kept in enumerate(KEPT)),
    by_tokens=bands(TOKEN_BANDS, 100),
    by_steps=bands(STEP_BANDS, 100),
    by_kind=(
        KindRow(
            kind="results: read",
            tokens=8_000,
            needs=60,
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


SWEPT = [
    alone("a.json", "none", 10.0),
    *(
        alone("a.json", policy, usd * factor, ceiling=ceiling, lost=lost)
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
LINES: dict[str, list[Line]] = {
    "cuts": [*CUTS],
    "whole": [*ALONE],
    "accumulating": [*TOGETHER, *ALONE],
    "marks": [*MARKED],
    "sweep": [*SWEPT, *TOGETHER],
    "bounds": [Needed(source="a.json", curves=NEEDS)],
    "bill": [Billed(compared=COMPARED)],
    "detector": [],
    "sessions": [],
}


def section(name: str, lines: Sequence[Line]) -> EvidenceSection:
    """A section of these lines; of the sweep with claims that were never tested."""
    corpus = Corpus(folder="", members=(Member(name="a.json", tool="claude-code", sha256=""),))
    with events_of(CorpusEvents(corpus=corpus, code="", profiles=(PROFILE,), lines=tuple(lines), labels=LABELS)) as events:
        events.script("delete from claims; delete from ceilings where policy not in ('cwl', 'sliding-window')")
        columns = dict.fromkeys(("claim", "says", "origin", "protocol", "policy", "verdict", "because"), "varchar")
        events.add(
            "made_up",
            {"n": "int", **columns, "figures": "varchar", "line": "varchar"},
            [claim(*each) for each in enumerate(CLAIMS)],
        )
        events.script("insert into claims select * from made_up")
        (made,) = sections(events, [name])
        return made


def claim(number: int, each: dict[str, object]) -> tuple[object, ...]:
    plain = (each[name] for name in ("claim", "says", "origin", "protocol", "policy", "verdict", "because"))
    return number, *plain, json.dumps(each["figures"]), json.dumps(each)


def row(section: EvidenceSection, title: str, first: str = "") -> dict[str, str]:
    """The row of a table that begins with `first`; without it the last one."""
    lines = section.text.partition(f"### {title}\n\n")[2].partition("\n\n")[0].splitlines()
    head, _, *rows = ([each.strip() for each in line.strip("| ").split(" | ")] for line in lines)
    return dict(zip(head, next((each for each in rows if each[0] == first), rows[-1]), strict=True))


@pytest.mark.parametrize("name", LINES)
def test_a_page_looks_as_it_did_its_rows_are_objects_and_every_figure_is_drawn(
    name: str, golden: Callable[[str, str], None]
) -> None:
    made = section(name, LINES[name])
    golden(f"evidence-{name}.md", page(made).replace(" --out docs/evidence", ""))
    assert all(isinstance(json.loads(line), dict) for line in made.rows.splitlines())
    assert made.text.count("](" + name) >= len(made.figures)
    assert all(drawn.chart["description"] for drawn in made.figures)


def test_every_section_is_tried_here() -> None:
    assert tuple(LINES) == tuple(SECTIONS)


def test_every_policy_cites_its_source_and_no_two_share_a_name() -> None:
    assert len(ALL) == len({**POLICIES}) + len({**PEERS}) + len({**COMPAT})
    assert {name: policy.name for name, policy in ALL.items()} == {name: name for name in ALL}
    with events_of(CorpusEvents(corpus=Corpus(folder="", members=()), code="")) as events:
        known = dict(events.ask("select name, whose from origins").rows)
    assert known.keys() >= ALL.keys()
    assert {name for name in ALL if known[name] == "ours"} == set(POLICIES)
    assert SUBJECT in POLICIES


def test_an_oracle_is_a_bound_and_a_compaction_is_somebodys() -> None:
    with events_of(CorpusEvents(corpus=Corpus(folder="", members=()), code="")) as events:
        assert events.ask("select whose('oracle-objects'), whose('compaction at 80k, brief'), whose('cwl')").rows == (
            ("bound", "peer", "ours"),
        )


def test_goals_at_the_cut_are_counted_at_the_share_that_each_other_took() -> None:
    few, most, near, lost, matched, broken = section("cuts", CUTS).goals
    assert few[1:] == ("0.50 (0.50 to 0.50)", True)
    assert most[1:] == ("75 %", True)
    assert not near[2]
    assert lost[1:] == ("10.0 %", False)  # 1 of 2 a cut visible, 4 times, and 2
    assert matched[1:] == ("worst of 1 other: 0.25 times those of tool-prune", True)
    assert broken[1:] == ("worst of 1 other: 0.00 times those of tool-prune", True)


def test_a_cut_at_which_a_policy_took_nothing_is_idle_and_not_harmless() -> None:
    found = row(section("cuts", CUTS), "45 % to be pruned", "opencode-prune")
    assert (found["cuts"], found["idle"], found["missed per cut (95 %)"], found["nothing missed (95 %)"]) == ("0", "4", "–", "–")


def test_who_loses_is_named_first() -> None:
    better = [cut("tool-prune", n, missed=n % 2) for n in range(4)]
    worse = [cut("graph", n, matched="tool-prune", missed=3) for n in range(4)]
    assert section("cuts", [*better, *worse]).lead.startswith("**At equal shares `graph` misses more than tool-prune.**")
    dear = [together("compaction", 20.0, ceiling=80_000, variant="brief", lost=2), together("graph", 29.0, lost=5)]
    assert section("accumulating", dear).lead.startswith("**`graph` loses to summary compaction at 80k (bill 1.45 times")


def test_two_readers_agree_as_far_as_cohen_says() -> None:
    made = section("detector", [])
    assert row(made, "Two readers", "findings")["kappa (Cohen)"] == "0.40"
    newest = row(made, "By round", "3")
    assert (newest["needed"], newest["findings read"], newest["the same, weighted"]) == ("1", "3", "40 %")
    assert newest["recall of strings (95 %)"].startswith("50 %")


def test_marks_are_judged_by_the_same_sessions_without_them() -> None:
    more = [each for each in MARKED if each.variant == "plain"]
    fewer = [
        replace(each, variant="marked", measured=replace(each.measured, misses=replace(each.measured.misses, lost=4)))
        for each in more
    ]
    (goal,) = section("marks", [*more, *fewer]).goals
    assert goal[1:] == ("0.40 times, bill 1.00 times", True)
    assert "**Marks do not help" in section("marks", MARKED).lead


def test_a_policy_is_compared_at_the_very_share_that_another_took() -> None:
    found = row(section("cuts", CUTS), "graph at the shares that others took", "tool-prune")
    assert (found["cuts"], found["other missed per cut"], found["graph missed per cut"]) == ("4", "2.00", "0.50")
    assert (found["fewer at"], found["more at"], found["other nothing missed (95 %)"][:3]) == ("4", "0", "0 %")


def test_matched_cuts_do_not_count_among_those_at_the_same_target() -> None:
    found = row(section("cuts", CUTS), "45 % to be pruned", "graph")
    assert (found["cuts"], found["routed"], found["lost"], found["missed per cut (95 %)"]) == ("4", "1", "1", "0.50 (0.50–0.50)")


def test_only_sessions_that_the_ceiling_touches_are_added_up() -> None:
    whole = section("whole", ALONE)
    assert whole.lead.startswith("1 of 2 sessions pass 80k tokens")
    found = row(whole, "All sessions that pass it", "graph")
    assert (found["bill"], found["against none"], found["routed"]) == ("$7.02", "−30 %", "2")


def test_with_a_target_a_session_that_costs_more_is_seen_and_judged() -> None:
    whole = section("whole", ALONE)
    assert [is_met for _, _, is_met in whole.goals] == [True]
    assert row(whole, "With a target and no ceiling: every session, short ones too", "graph")["dearest session"] == "±0 %"
    dear = section("whole", [*ALONE[:-1], alone("b.json", "graph", 1.02, target=80_000)])
    assert [is_met for _, _, is_met in dear.goals] == [False]


def test_who_does_not_keep_the_ceiling_comes_last() -> None:
    assert row(section("whole", ALONE), "All sessions that pass it")["policy"] == "opencode-prune"
    assert row(section("accumulating", LINES["accumulating"]), "Bills")["policy"] == "pi-cwl"


def test_goals_of_the_accumulating_session_weigh_bill_and_misses_against_compaction() -> None:
    money, calls = section("accumulating", TOGETHER).goals
    assert money[1:] == ("0.97 times", True)
    assert calls[1:] == ("0.45 times", True)


def test_measures_add_up_kind_by_kind_and_in_order() -> None:
    one, other = alone("a.json", "cwl", 1.0), alone("b.json", "cwl", 2.0)
    kinds = replace(
        other.measured,
        evicted_by_kind={"thinking": 70_000, "results of bulk tools": 1},
        violations=("a law",),
        peak_view_tokens=95_000,
    )
    with events_of(
        CorpusEvents(corpus=Corpus(folder="", members=()), code="", lines=(one, replace(other, measured=kinds)))
    ) as events:
        ((added,),) = events.ask("select added(measured) from runs").rows
    both = msgspec.convert(added, Measured)
    assert list(both.evicted_by_kind.items()) == [("thinking", 70_000), ("results of bulk tools", 60_001)]
    assert (both.sessions, both.calls, both.peak_view_tokens, both.violations) == (2, 400, 95_000, ("a law",))
    assert both.bill.total_usd == pytest.approx(one.measured.bill.total_usd + other.measured.bill.total_usd)


def test_a_label_that_is_none_is_told_with_its_line() -> None:
    with pytest.raises(InputError, match=r"labels.jsonl:2: no label"):
        labels_of(b'{"round":1,"label":"step"}\n{"round":1,"label":"perhaps"}\n', "labels.jsonl")


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("percent1", 0.1234, "12.3 %"),
        ("percent", -0.5, "−50 %"),
        ("change", 0.9, "−10 %"),
        ("change", 10 / 10.01, "±0 %"),
        ("limit", 267_000, "267k"),
        ("limit", None, "uncapped"),
        ("usd", None, "–"),
        ("shared", {"hits": 0, "of": 0}, "–"),
        ("shared", {"hits": 3, "of": 4}, "75 % (30–95)"),
        ("decimal·percent", {"missed": 1.5, "share": None}, "1.50 · –"),
        ("error", -0.0001, "±0.0 %"),
    ],
)
def test_numbers_are_written_one_way(kind: str, value: object, written: str) -> None:
    assert table([f"a|{kind}"], [(value,)]).splitlines()[-1] == f"| {written} |"
    assert set(kind.split("·")) <= FILTERS.keys()


def test_names_end_no_cell_and_are_no_markup() -> None:
    assert cell("a|b<c>\x1b[2J\n") == "a\\|b&lt;c>\ufffd[2J\ufffd"


def test_a_table_that_is_empty_is_still_a_table() -> None:
    assert table(["a|text", "b|count"], []) == "| a | b |\n| --- | ---: |"
