import pytest
from hypothesis import given

from tenure.engine.record.entry import Draft
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.index import Index
from tenure.engine.record.inferred import NO_WORK, CallAim, aim_of
from tenure.testing.builders import call, end_expl, human, indexed, placed, reply, result, start_expl
from tenure.testing.transcripts import transcripts

EXPL, ACT = EpisodeType.EXPL, EpisodeType.ACT


def did(tool: str, **arguments: str) -> tuple[Draft, Draft]:
    return reply(call(tool, **arguments)), result("ok")


def read(path: str) -> tuple[Draft, Draft]:
    return did("read", path=path)


def edit(path: str) -> tuple[Draft, Draft]:
    return did("edit", path=path)


def shape(index: Index) -> list[tuple[EpisodeType, str, tuple[int, ...]]]:
    """Of each inferred episode its type, the step it begins with, and what it depends on."""
    return [(episode.type, episode.name, episode.dependencies) for episode in index.inferred.episodes]


def test_an_act_depends_on_the_expl_that_read_what_it_changes() -> None:
    index = indexed(human("go"), *read("a.py"), *edit("a.py"), human("on"), *read("b.py"), *edit("a.py"), *edit("b.py"))
    assert shape(index) == [(EXPL, "1", ()), (ACT, "2", (0,)), (EXPL, "3", ()), (ACT, "4", (0, 2))]
    assert index.inferred.episodes[0].dependents == (1, 3)
    assert [episode.closed for episode in index.inferred.episodes] == [True, True, True, False]


def test_an_act_on_a_file_that_nobody_read_depends_on_the_expl_before_it() -> None:
    assert shape(indexed(human("go"), *read("a.py"), *edit("new.py")))[-1] == (ACT, "2", (0,))


def test_one_look_elsewhere_does_not_end_an_act_and_two_do() -> None:
    act = (human("go"), *edit("a.py"), *read("b.py"))
    assert shape(indexed(*act, *edit("a.py"), *read("c.py"))) == [(ACT, "1", ())]
    index = indexed(*act, *read("c.py"))
    assert shape(index) == [(ACT, "1", ()), (EXPL, "2", ())]
    assert [index.inferred.of_step(step) for step in (1, 2, 3)] == [0, 1, 1]


def test_a_look_at_what_an_act_works_on_belongs_to_it() -> None:
    assert shape(indexed(human("go"), *edit("a.py"), *read("a.py"), *read("src/a.py"))) == [(ACT, "1", ())]


def test_what_follows_a_commit_is_another_piece_of_work() -> None:
    commit = did("bash", command="cd /repo && git commit -m done")
    assert [each[:2] for each in shape(indexed(human("go"), *edit("a.py"), *commit, *edit("a.py")))] == [(ACT, "1"), (ACT, "3")]


def test_words_belong_to_what_was_done_before_and_at_first_to_nothing() -> None:
    index = indexed(human("go"), reply("Hello."), *read("a.py"), reply("I see."))
    assert [index.inferred.of_step(step) for step in (1, 2, 3)] == [NO_WORK, 0, 0]


def test_what_is_declared_is_not_inferred() -> None:
    index = indexed(human("go"), reply(start_expl("look")), result("ok"), *read("a.py"), reply(end_expl("seen")), result("ok"))
    assert index.inferred.episodes == []


@pytest.mark.parametrize(
    ("tool", "cue", "aim"),
    [
        ("Read", "src/a.py", CallAim.GATHER),
        ("Edit", "src/a.py", CallAim.CHANGE),
        ("bash", "cd /a && FOO=1 grep -rn x .", CallAim.GATHER),
        ("bash", "sed -i s/a/b/ a.py", CallAim.CHANGE),
        ("bash", "git status", CallAim.GATHER),
        ("bash", "git push origin main", CallAim.FINISH),
        ("bash", "pytest -q", CallAim.OTHER),
        ("bash", "", CallAim.OTHER),
        ("todowrite", "", CallAim.OTHER),
    ],
)
def test_what_a_call_is_for(tool: str, cue: str, aim: CallAim) -> None:
    assert aim_of(tool, cue) is aim


@given(transcripts())
def test_the_graph_has_no_cycle_and_grows_alike_however_far_it_is_looked_at(drafts: list[Draft]) -> None:
    entries = placed(*drafts)
    index = Index()
    for entry in entries:
        index.grow(entry)
        episodes = index.inferred.episodes
        assert [episode.ordinal for episode in episodes] == list(range(len(episodes)))
        assert all(episode.closed for episode in episodes[:-1])
        for episode in episodes:
            assert all(each < episode.ordinal and episodes[each].type is EXPL for each in episode.dependencies)
            assert all(episode.ordinal in episodes[each].dependents for each in episode.dependencies)
        assert all(NO_WORK <= index.inferred.of_step(step) < len(episodes) for step in range(len(index.steps) + 2))
