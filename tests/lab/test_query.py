"""Events as tables: every field of every event is a column, and a query sees nothing else."""

import re
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from tenure.engine.view.edit import Drop, Insert
from tenure.errors import InputError
from tenure.lab.events import CommitLine, HoldLine, RecallLine
from tenure.lab.measured import EVENTS
from tenure.lab.query import Events, tables
from tenure.lab.query_process import CELL_CHARS, answer

COMMIT = CommitLine(
    commit=0,
    before_call=3,
    entries=7,
    policy="cwl",
    forced=True,
    reason="above the ceiling",
    moment="before-call",
    price=None,
    tokens_before=100,
    tokens_after=40,
    ratio=1.25,
    actions=(),
    edits=(Drop(entry=2, block=0), Insert(before_entry=3, order=0, key="r1", role="user", text="it's gone", tokens=9, routes=("read:1@ab",))),  # type: ignore[arg-type]
)  # fmt: skip
RECALL = RecallLine(call=4, handle="read:1@ab", by="handle", tokens=60)


def test_every_field_of_an_event_is_a_column_also_where_no_such_event_is() -> None:
    columns = tables()
    for name, event in EVENTS.items():
        assert set(columns[name]) == {*event.__struct_fields__, "n"}


def test_events_keep_their_order_types_and_lists() -> None:
    with Events.of([COMMIT, RECALL]) as events:
        assert events.ask("select ratio, forced, price, n from commits").rows == ((1.25, True, None, 1),)
        assert events.ask("select op, entry, text, routes from edits").rows == (
            ("drop", 2, None, None),
            ("insert", None, "it's gone", ["read:1@ab"]),
        )
        assert events.ask("select handle, n from recalls").dicts == [{"handle": "read:1@ab", "n": 2}]
        assert events.ask("select * from holds").rows == ()


def test_what_is_not_known_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"type":"hold","before_call":1,"reason":"later","mood":"good"}\n{"type":"omen","call":[1]}\n')
    with Events([path]) as events:
        assert events.ask("select before_call, reason from holds").rows == ((1, "later"),)


def test_values_are_handed_in_by_name() -> None:
    with Events.of([RECALL]) as events:
        assert events.ask("select tokens from recalls where handle = $handle", handle=RECALL.handle).rows == ((60,),)


def test_a_sealed_set_of_events_reads_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with Events.of([RECALL]) as events:
        events.seal()
        for sql in (
            f"select * from '{tmp_path / 'secret.csv'}'",
            f"copy recalls to '{tmp_path / 'out.csv'}'",
            "set enable_external_access = true",
        ):
            with pytest.raises(InputError):
                events.ask(sql)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("sql", "what"), [("selct 1", 'syntax error at or near "selct"'), ("select nothing from calls", "nothing")]
)
def test_a_query_that_is_wrong_is_one_sentence(sql: str, what: str) -> None:
    with Events([]) as events, pytest.raises(InputError, match=re.escape(what)) as error:
        events.ask(sql)
    assert "\n" not in str(error.value)


def test_the_page_of_tables_names_every_table_and_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "query.md").read_text(encoding="utf-8")
    parts = {part.partition("\n")[0]: part for part in page.split("### ")[1:]}
    documented = {name: tuple(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) for name, part in parts.items()}
    assert documented == tables()


def test_bytes_that_are_no_unicode_are_spelled_out() -> None:
    odd = msgspec.structs.replace(RECALL, handle="a\udcff")
    with Events.of([odd, HoldLine(before_call=0, reason="", price=None)]) as events:
        assert events.ask("select count(*) from recalls").rows == ((1,),)


@pytest.mark.parametrize(
    "sql",
    [
        "select repeat('x', 3000000000)",
        "select list(i) from range(300000000) t(i)",
        "select count(*) from range(1000000000) a, range(1000) b",
        "select * from range(2000000)",
    ],
)
def test_a_query_without_bounds_ends_in_a_sentence(sql: str) -> None:
    """`tenure query FILE "select repeat('x', 3000000000)"` printed nothing within a minute."""
    with pytest.raises(InputError, match=r"no answer within 2 seconds|more than 2 GB of memory|more than 1,000,000 rows"):
        answer([RECALL], sql, seconds=2)


def test_a_users_query_has_the_same_answer_with_long_texts_cut() -> None:
    found = answer(
        [RECALL],
        f"select tokens, 1.5::decimal(3,1) as d, repeat('x', {CELL_CHARS + 1}) as x, nothing.a from recalls, (select null as a) nothing",
    )
    assert found.columns == ("tokens", "d", "x", "a")
    assert found.rows[0] == (60, Decimal("1.5"), f"{'x' * CELL_CHARS}… (1,000,001 characters)", None)


@pytest.mark.parametrize("sql", ["", "  ", ";", "-- nothing"])
def test_a_query_without_a_statement_is_refused_in_a_sentence(sql: str) -> None:
    with Events([]) as events, pytest.raises(InputError, match=r"no statement in .*, expected one, as in"):
        events.ask(sql)
