import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shaping import COUNT, kept, lawful, notes, shown

from tenure.engine.clip import table
from tenure.engine.clip.shape import weighed
from tenure.engine.clip.table import _is_rule

WORDS = ("alpha", "beta", "gamma", "delta")


def comma(rows: int, odd: int = -1) -> list[str]:
    """CSV with a header; one row differs."""
    return ["id,name,state,note", *(f"{n},{WORDS[n % 4]},{'lost' if n == odd else 'done'},row {n}" for n in range(rows))]


def markdown(rows: int) -> list[str]:
    return ["| id | name | state |", "|----|:-----|-------|", *(f"| {n} | {WORDS[n % 4]} | done |" for n in range(rows))]


def psql(rows: int) -> list[str]:
    return [
        " id | name  | state",
        "----+-------+-------",
        *(f" {n:2} | {WORDS[n % 4]:5} | done" for n in range(rows)),
        f"({rows} rows)",
        "",
    ]


def mysql(rows: int) -> list[str]:
    rule = "+------+-------+"
    return [
        rule,
        "| id   | name  |",
        rule,
        *(f"| {n:4} | {WORDS[n % 4]:5} |" for n in range(rows)),
        rule,
        f"{rows} rows in set (0.00 sec)",
    ]


def kubectl(rows: int, odd: int = -1) -> list[str]:
    states = ("CrashLoopBackOff" if n == odd else "Running" for n in range(rows))
    return [
        f"{'NAME':24}{'READY':8}{'STATUS':19}AGE",
        *(f"{f'pod-{n}':24}{'1/1':8}{state:19}{n}d" for n, state in enumerate(states)),
    ]


def ps(rows: int) -> list[str]:
    return [
        "USER         PID %CPU %MEM COMMAND",
        *(f"dev      {n:7}  0.0  {n % 10}.1 /usr/bin/worker --id {n}" for n in range(rows)),
    ]


TABLES = {
    "csv": comma(30),
    "csv with quotes": ["id,name,note", *(f'{n},"a, b","say ""{n}"""' for n in range(30))],
    "tsv": [line.replace(",", "\t") for line in comma(30)],
    "semicolons": [line.replace(",", ";") for line in comma(30)],
    "markdown": markdown(30),
    "psql": psql(30),
    "mysql": mysql(30),
    "box": [
        "┌────┬───────┐",
        "│ id │ name  │",
        "├────┼───────┤",
        *(f"│ {n:2} │ {WORDS[n % 4]:5} │" for n in range(30)),
        "└────┴───────┘",
    ],
    "kubectl": kubectl(30),
    "docker": ["CONTAINER ID   IMAGE     COMMAND   STATUS", *(f'{n:012x}   redis     "serve"   Up {n} days' for n in range(30))],
    "ps": ps(30),
    "pip list": ["Package    Version", "---------- -------", *(f"{WORDS[n % 4] + str(n):10} 1.{n}" for n in range(30))],
}

OTHERS = {
    "prose": ["It was a bright cold day, in April, and the clocks were striking."] * 40,
    "shell pipes": [f"cat a{n} | sort | uniq" for n in range(40)],
    "json lines": [f'{{"id": {n}, "name": "x", "note": "y"}}' for n in range(40)],
    "test results": [f"ok  \texample.com/pkg/p{n}\t0.{n}s" for n in range(40)],
    "code": [f"call(a{n}, b, c)" for n in range(40)],
    "data without a header": [f"{n},{n + 1},{n + 2}" for n in range(40)],
    "log": [f"2026-01-01 12:00:{n:02} INFO worker started | ok" for n in range(40)],
    "capitals": ["THE QUICK BROWN FOX", *(f"line {n}" for n in range(40))],
    "records between rules": [line for n in range(20) for line in ("├──────┼──────┤", f"│ high │ x{n}   │", "│      │ more │")],
    "go code": [f"\tif x{n} := f(); x{n} != nil {{" for n in range(40)],
    "nothing": [""] * 40,
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_is_recognised(kind: str) -> None:
    assert table.fits(TABLES[kind])


@pytest.mark.parametrize("other", OTHERS)
def test_what_only_looks_like_a_table_is_not_taken_for_one(other: str) -> None:
    assert not table.fits(OTHERS[other])


@pytest.mark.parametrize("make", [comma, markdown, psql, mysql, kubectl, ps])
def test_frame_first_and_last_rows_stay(make) -> None:
    lines = make(900)
    _, text = shown(table, lines, 700)
    assert "\n".join(lines[:2]) in text
    assert "\n".join(lines[-5:]).strip() in text
    assert "900 rows in all" in text


def dpkg(n: int) -> list[str]:
    """As dpkg -l prints it."""
    legend = [
        "Desired=Unknown/Install/Remove/Purge/Hold",
        "| Status=Not/Inst/Conf-files/Unpacked",
        "|/ Err?=(none)/Reinst-required",
    ]
    header = f"||/ {'Name':30}  {'Version':24}  Architecture Description"
    rows = (
        f"ii  {f'lib{k}-dev:amd64':30}  {f'{k}.1-2+deb12u{k}':24}  amd64        the development files of library number {k}"
        for k in range(n)
    )
    return [*legend, header, f"+++-{'=' * 30}--{'=' * 24}-{'=' * 12}-{'=' * 60}", *rows]


def test_a_table_below_a_legend_names_all_rows_and_keeps_both() -> None:
    lines = dpkg(100)
    assert table.fits(lines)
    _, text = shown(table, lines, 1_500)
    assert "\n".join(lines[:6]) in text
    assert f"names: {', '.join(f'lib{k}-dev:amd64' for k in range(100))}\n" in text
    assert lines[-1] in text


def test_the_row_that_differs_stays() -> None:
    lines = comma(900, odd=444)
    _, text = shown(table, lines, 500)
    assert lines[445] in text
    assert "state: done 899, lost 1" in text


def test_the_row_that_speaks_of_a_fault_stays() -> None:
    lines = kubectl(900, odd=700)
    shaped, text = shown(table, lines, 600)
    assert lines[701] in text
    assert shaped.why == "first and last rows, rows that differ"


def test_a_fault_far_inside_a_very_long_table_stays() -> None:
    lines = comma(30_000)
    lines[17_771] = "17770,beta,done,permission denied"
    _, text = shown(table, lines, 600)
    assert lines[17_771] in text


def test_the_room_is_used() -> None:
    lines = comma(5_000)
    shaped, _ = shown(table, lines, 2_000)
    assert 1_700 <= weighed(lines, shaped.pieces, COUNT) <= 2_000


@given(
    rows=st.lists(st.tuples(st.sampled_from(WORDS), st.text("ab é中", max_size=12)), min_size=8, max_size=300),
    sign=st.sampled_from(",\t;"),
    room=st.integers(150, 2_000),
)
def test_laws_of_a_shaped_table(rows: list[tuple[str, str]], sign: str, room: int) -> None:
    lines = [sign.join(("id", "name", "note")), *(sign.join((str(n), *cells)) for n, cells in enumerate(rows))]
    shaped = lawful(table, lines, room)
    if shaped is None:
        return
    out = re.search(r"^([\d,]+) rows? in all, ([\d,]+) left out", notes(shaped))
    assert len(kept(shaped)) + (int(out[2]) if out else 0) == len(lines)


@given(lines=st.lists(st.text(st.sampled_from('aB,|-+ \t"\x00\ud800é│'), max_size=30), max_size=60), room=st.integers(1, 300))
def test_hostile_lines_are_harmless(lines: list[str], room: int) -> None:
    lawful(table, lines, room)


@pytest.mark.parametrize(
    "line", ["a" * 3_000_000, "|" * 3_000_000, "- " * 1_500_000, "a,b" * 1_000_000, '"' * 3_000_000, "\x00" * 3_000_000]
)
def test_gigantic_lines_are_harmless(line: str) -> None:
    lawful(table, [line] * 12, 200)
    lawful(table, ["a,b,c", *["1,2,3"] * 20, line, *["1,2,3"] * 20], 200)


def test_columns_of_right_aligned_numbers_are_not_counted_with_pieces_of_their_neighbours() -> None:
    header = f"{'USER':8} {'PID':>7} {'VSZ':>7} {'RSS':>6} TTY      STAT COMMAND"
    lines = [header, *(f"{'root':8} {n * 37:7} {n % 3 * 52_124:7} {n % 2 * 900:6} ?        S    worker-{n}" for n in range(300))]
    _, text = shown(table, lines, 900)
    assert "USER" not in text.split("\n", 1)[1].split(header)[0]
    assert "VSZ: 0 100, 52124 100, 104248 100" in text


@pytest.mark.parametrize("sign", ["-", "=", "|", "\t", "\u2500"])
def test_a_run_of_one_sign_is_no_rule_and_is_looked_at_in_linear_time(sign: str) -> None:
    assert not _is_rule(sign * 4_900 + "!")  # minutes, were it cubic
    assert _is_rule(sign * 4_900 + "--")
