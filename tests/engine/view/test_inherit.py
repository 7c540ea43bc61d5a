from collections.abc import Iterable, Sequence

from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Entry, Role
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit, Drop, Edit, Insert, Moment, Remove, Replace, Restore
from tenure.engine.view.inherit import Shared, inherited
from tenure.engine.view.project import project
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, reply, result, weigh_words

RULES = Rules(provider="t", dialect="openai-chat", thinking="none")


def work(steps: int) -> list[Draft]:
    """A task, and so many calls with their results: the n-th call is entry 2n - 1, its result entry 2n."""
    drafts = [human("fix it")]
    for n in range(steps):
        drafts += [reply(call("read", f"c{n}", path=f"{n}.py")), result(f"{n} " * 9, f"c{n}")]
    return drafts


def record(drafts: Iterable[Draft]) -> list[Entry]:
    chain = Chain()
    return [chain.place(draft, weigh_words(draft.blocks)) for draft in drafts]


def grown(entries: Iterable[Entry]) -> Index:
    index = Index()
    for entry in entries:
        index.grow(entry)
    return index


def fork(entries: Sequence[Entry], commits: Sequence[Commit], at: int, rules: Rules = RULES) -> tuple[Commit, ...]:
    return inherited(commits, at, lambda: Shared(index=grown(entries[:at]), rules=rules, limit=1_000))


def commit(n: int, *edits: Edit, made_at: int, moment: Moment = "manual") -> Commit:
    return Commit(n=n, entries=made_at, policy="cwl", moment=moment, reason=f"made as {n}", edits=edits)


def cleared(entry: int) -> Replace:
    return Replace(entry=entry, block=0, text="cleared", tokens=1)


def insert(before: int, key: str) -> Insert:
    return Insert(before_entry=before, order=0, key=key, role=Role.USER, text="x", tokens=1)


def kept(commits: Iterable[Commit]) -> list[str]:
    return [each.reason for each in commits]


WORK = record(work(20))  # 41 entries


def test_the_commits_of_the_time_are_all_inherited() -> None:
    log = [commit(0, cleared(2), made_at=9), commit(1, cleared(4), made_at=15)]
    assert fork(WORK, log, 15) == tuple(log)


def test_a_later_commit_that_touches_only_what_is_shared_is_inherited_as_made_at_the_fork() -> None:
    log = [commit(0, cleared(2), made_at=9), commit(1, cleared(4), made_at=41)]
    assert [each.entries for each in fork(WORK, log, 21)] == [9, 21]


def test_no_commit_is_inherited_after_one_that_is_not() -> None:
    log = [commit(0, cleared(2), made_at=41), commit(1, cleared(30), made_at=41), commit(2, cleared(4), made_at=41)]
    assert kept(fork(WORK, log, 21)) == ["made as 0"]


def test_a_commit_between_that_dropped_again_what_was_restored_leaves_a_fork_that_opens() -> None:
    dropped = (Drop(entry=1, block=0), Drop(entry=2, block=0))
    back = (Restore(entry=1, block=0), Restore(entry=2, block=0))
    log = [commit(0, *dropped, made_at=9), commit(1, *back, cleared(30), made_at=41), commit(2, *dropped, made_at=41)]
    project(grown(WORK[:21]), 21, fork(WORK, log, 21))  # would raise LawBroken: dropped twice


def test_what_the_source_shows_again_is_not_hidden_in_the_fork() -> None:
    log = [
        commit(0, cleared(2), made_at=41),
        commit(1, cleared(4), made_at=41),
        commit(2, Restore(entry=4, block=0), Restore(entry=30, block=0), made_at=41),
    ]
    assert kept(fork(WORK, log, 21)) == ["made as 0"]


def test_a_restore_of_the_time_stays() -> None:
    log = [commit(0, cleared(4), made_at=9), commit(1, Restore(entry=4, block=0), made_at=11)]
    assert kept(fork(WORK, log, 11)) == ["made as 0", "made as 1"]


def test_what_the_fork_works_on_is_not_taken_by_what_its_source_did_later() -> None:
    assert fork(WORK, [commit(0, cleared(20), made_at=41)], 21) == ()  # the newest result of the fork


def test_an_invalid_view_is_not_inherited() -> None:
    assert fork(WORK, [commit(0, Drop(entry=2, block=0), made_at=41)], 21) == ()  # a call without its result


def test_of_clips_made_together_those_of_shared_entries_stay() -> None:
    log = [commit(0, cleared(20), cleared(22), made_at=23, moment="admission")]
    assert [each.edits for each in fork(WORK, log, 22)] == [(cleared(20),)]


def test_an_insert_before_the_first_entry_of_the_forks_own_is_shared() -> None:
    assert len(fork(WORK, [commit(0, insert(21, "a"), made_at=41)], 21)) == 1
    assert not fork(WORK, [commit(0, insert(22, "a"), made_at=41)], 21)


def test_a_removal_needs_the_commit_that_inserted() -> None:
    log = [commit(0, insert(1, "b"), made_at=9), commit(1, Remove(key="b"), made_at=41), commit(2, Remove(key="c"), made_at=41)]
    assert kept(fork(WORK, log, 21)) == ["made as 0", "made as 1"]


def test_a_fork_at_the_end_reads_no_entry() -> None:
    def never() -> Shared:
        raise AssertionError("was asked for the record")

    log = [commit(0, cleared(2), made_at=9), commit(1, cleared(4), made_at=41)]
    assert inherited(log, 41, never) == tuple(log)
