import pytest

from tenure.engine.record.entry import Role
from tenure.engine.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.engine.view.project import Projection, Row, difference, project, shared_prefix
from tenure.errors import LawBroken
from tenure.testing.builders import call, human, indexed, reply, result

INDEX = indexed(human("go on", "now"), reply("ok", call("read")), result("a b c"))


def whole() -> Projection:
    view = Projection(INDEX)
    for entry in range(3):
        view.grow(entry)
    return view


def insert(key: str, before: int, order: int = 0) -> Insert:
    return Insert(before_entry=before, order=order, key=key, role=Role.USER, text="gone", tokens=3)


def commit(*edits: Edit, n: int = 0) -> Commit:
    return Commit(n=n, entries=3, policy="t", moment="manual", reason="t", edits=edits)


def test_a_view_without_commits_shows_everything() -> None:
    assert project(INDEX, 3, ()).tokens == INDEX.tokens
    assert all(isinstance(line, Row) and line.whole for line in project(INDEX, 3, ()).lines)


def test_an_entry_of_which_nothing_is_shown_is_not_in_the_view() -> None:
    view = project(INDEX, 3, [commit(Drop(entry=2, block=0))])
    assert [line.entry for line in view.lines if isinstance(line, Row)] == [0, 1]


def test_what_was_dropped_comes_back_as_it_was() -> None:
    view = whole()
    view.apply([Drop(entry=1, block=0), Replace(entry=1, block=1, text="{}", tokens=1)])
    view.apply([Restore(entry=1, block=0), Restore(entry=1, block=1)])
    assert view.freeze() == project(INDEX, 3, ())


def test_dropping_blocks_at_once_is_dropping_each() -> None:
    one, other = whole(), whole()
    one.drop(1, (0,))
    one.drop(0, (0, 1))
    other.apply([Drop(entry=1, block=0), Drop(entry=0, block=0), Drop(entry=0, block=1)])
    assert one.freeze() == other.freeze()


def test_a_replaced_block_weighs_what_stands_in_its_place() -> None:
    view = whole()
    before = view.tokens
    view.apply([Replace(entry=2, block=0, text="x", tokens=1)])
    assert view.tokens == before - INDEX.weights(2)[0] + 1
    view.drop(2, (0,))
    assert view.tokens == before - INDEX.weights(2)[0]


def test_inserted_entries_stand_before_theirs_by_order() -> None:
    view = whole()
    view.apply([insert("b", 1, 1), insert("z", 3), insert("a", 1, 0)])
    assert [line.key if isinstance(line, Insert) else line.entry for line in view.freeze().lines] == [0, "a", "b", 1, 2, "z"]


@pytest.mark.parametrize(
    "edits",
    [
        [Drop(entry=0, block=9)],
        [Drop(entry=9, block=0)],
        [Drop(entry=0, block=0), Drop(entry=0, block=0)],
        [Drop(entry=0, block=0), Replace(entry=0, block=0, text="x", tokens=1)],
        [Restore(entry=9, block=0)],
        [Remove(key="nobody")],
        [insert("a", 4)],
        [insert("a", 1), insert("a", 2)],
    ],
)
def test_an_edit_of_what_is_not_there_breaks_a_law(edits: list[Edit]) -> None:
    with pytest.raises(LawBroken):
        whole().apply(edits)


def test_a_copy_is_independent() -> None:
    view = whole()
    twin = view.copy()
    twin.apply([Drop(entry=0, block=0), insert("a", 1)])
    assert view.freeze() == project(INDEX, 3, ())


def test_two_views_share_what_is_equal_at_the_start() -> None:
    before, after = project(INDEX, 3, ()), project(INDEX, 3, [commit(Drop(entry=1, block=1), Drop(entry=2, block=0))])
    assert shared_prefix(before, after, INDEX) == sum(INDEX.weights(0)) + INDEX.weights(1)[0]
    assert difference(before, after, INDEX).gone == ((1, 1), (2, 0))


def test_the_tokens_before_an_entry_are_those_of_the_rows_whatever_was_asked_or_changed_before() -> None:
    view = whole()

    def check() -> None:
        for entry in (2, 0, 3, 1, 2, 1, 3):
            assert view.tokens_before(entry) == sum(row.tokens for row in view.rows() if row.entry < entry)

    check()
    for edit in (
        Drop(entry=0, block=0),
        Replace(entry=1, block=0, text="x", tokens=1),
        Drop(entry=2, block=0),
        Restore(entry=0, block=0),
    ):
        view.apply([edit])
        check()
    view.drop(0, [0])
    check()
    view.drop(0, [1])
    check()
