from hypothesis import given
from hypothesis import strategies as st

from tenure.record.entry import Role
from tenure.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.view.inherit import inherited

BLOCK = {"entry": st.integers(0, 9), "block": st.integers(0, 2)}
EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.builds(Drop, **BLOCK),
    st.builds(Replace, text=st.just("x"), tokens=st.just(1), **BLOCK),
    st.builds(Restore, **BLOCK),
    st.builds(Remove, key=st.sampled_from("abc")),
    st.integers(0, 9).flatmap(lambda before: st.sampled_from("abc").map(lambda key: insert(before, key))),
)


def insert(before: int, key: str) -> Insert:
    return Insert(before_entry=before, order=0, key=key, role=Role.USER, text="x", tokens=1)


def commit(n: int, *edits: Edit) -> Commit:
    return Commit(n=n, entries=9, policy="cwl", moment="manual", reason=f"made as {n}", edits=edits)


def kept(commits: tuple[Commit, ...]) -> list[str]:
    return [each.reason for each in commits]


def test_a_commit_that_touches_an_unshared_entry_stays_behind() -> None:
    log = [commit(0, Drop(entry=1, block=0)), commit(1, Drop(entry=1, block=1), Restore(entry=2, block=0)), commit(2)]
    assert kept(inherited(log, 2)) == ["made as 0", "made as 2"]


def test_an_insert_before_the_first_entry_of_the_forks_own_is_shared() -> None:
    assert len(inherited([commit(0, insert(2, "a"))], 2)) == 1
    assert not inherited([commit(0, insert(3, "a"))], 2)


def test_a_removal_needs_the_commit_that_inserted() -> None:
    log = [commit(0, insert(5, "a")), commit(1, Remove(key="a")), commit(2, insert(1, "b")), commit(3, Remove(key="b"))]
    assert kept(inherited(log, 2)) == ["made as 2", "made as 3"]


def test_a_commit_may_remove_what_it_inserts() -> None:
    assert inherited([commit(0, insert(1, "a"), Remove(key="a"))], 2)


@given(st.lists(st.lists(EDITS, max_size=3), max_size=8), st.integers(0, 10))
def test_inherited_commits_are_numbered_anew_and_touch_nothing_beyond_the_fork(edits: list[list[Edit]], at: int) -> None:
    log = inherited([commit(n, *some) for n, some in enumerate(edits)], at)
    assert [each.n for each in log] == list(range(len(log)))
    assert all(each.entries <= at for each in log)
    assert all(getattr(edit, "entry", -1) < at and getattr(edit, "before_entry", 0) <= at for each in log for edit in each.edits)
    assert inherited(log, at) == log


@given(st.lists(st.lists(EDITS, max_size=3), max_size=8))
def test_a_fork_at_the_end_inherits_every_commit_whose_keys_exist(edits: list[list[Edit]]) -> None:
    log = [commit(n, *(edit for edit in some if not isinstance(edit, Remove))) for n, some in enumerate(edits)]
    assert inherited(log, 10) == tuple(log)
