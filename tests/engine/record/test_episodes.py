import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.record.entry import ToolCall
from tenure.engine.record.episodes import EpisodeType, ToolAnswer
from tenure.engine.record.index import Index
from tenure.testing.builders import call, end_act, end_expl, human, indexed, reply, results, returned, start_act, start_expl
from tenure.testing.transcripts import REFUSED


def answers(*calls: ToolCall) -> list[ToolAnswer]:
    """What the calls of one message get back, in order."""
    return list(indexed(human("go"), reply(*calls)).answers.values())


def last(*calls: ToolCall) -> str:
    """What the last of these calls is refused with."""
    *accepted, answer = answers(*calls)
    assert not any(each.error for each in accepted)
    assert answer.error
    return answer.text


def delimiter(text: str) -> ToolCall:
    return ToolCall(call_id="c", name="delimiter", arguments=text)


FOUND = (start_expl("look"), end_expl("found it"))


def test_all_four_calls_are_accepted() -> None:
    given = answers(start_expl("look"), end_expl("found it"), start_act("change", "look"), end_act())
    assert [answer.text for answer in given] == [
        "started expl 'look'",
        "ended expl 'look'",
        "started act 'change', building on look",
        "ended act 'change'",
    ]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([start_expl("")], "start needs a name"),
        ([start_expl("   ")], "start needs a name"),
        ([start_expl("x" * 101)], "one line of at most 100 characters; yours has 101"),
        ([start_expl("two\nlines")], "a name is one line"),
        (
            [*FOUND, start_act("act", "look"), end_act(), start_expl("act")],
            "an episode 'act' exists already; choose another name, such as 'act-2'",
        ),
        ([call("delimiter", action="start", name="x")], "type is None"),
        ([call("delimiter", action="start", name="x", type="plan")], "type is 'plan'; expected \"expl\" to gather"),
        ([start_expl("look"), start_expl("again")], "the expl episode 'look' is still open and episodes do not nest"),
        ([*FOUND, start_act("change", "look"), start_act("more", "look")], "the act episode 'change' is still open"),
        ([*FOUND, call("delimiter", action="start", name="x", type="expl", dependencies=["look"])], "an expl episode has no dep"),
        (
            [start_act("change")],
            "an act must name at least one ended expl episode in dependencies; no expl episode has ended yet",
        ),
        ([*FOUND, start_act("change")], "ended expl episodes: look"),
        ([*FOUND, start_act("change", "change")], "'change' cannot depend on itself"),
        ([*FOUND, start_act("change", "nowhere")], "there is no episode 'nowhere' to depend on; ended expl episodes: look"),
        ([*FOUND, start_act("one", "look"), end_act(), start_act("two", "one")], "'one' is an act, and an act depends on expl"),
        ([end_act()], "no episode is open; start one first"),
        ([start_expl("look"), end_act()], "ending the expl 'look' needs a description of what was learned"),
        ([start_expl("look"), end_expl("  ")], "needs a description"),
        ([*FOUND, start_act("change", "look"), end_expl("done")], "its effects are in the environment: end it without"),
        ([start_expl("look"), call("delimiter", action="end", name="see", description="d")], "'see' is not the open episode"),
        ([call("delimiter")], "action is None"),
        ([call("delimiter", action="pause")], "action is 'pause'; expected"),
        ([call("delimiter", action=1)], "the arguments cannot be read"),
        ([delimiter("not json")], "the arguments cannot be read"),
        ([delimiter("[]")], "the arguments cannot be read"),
        ([delimiter("")], "action is None"),
    ],
)
def test_a_refusal_says_what_to_do_instead(calls: list[ToolCall], words: str) -> None:
    assert f"delimiter refused: {words}" in last(*calls) or words in last(*calls)


def test_a_start_on_an_ended_expl_answers_with_what_it_found_and_its_handle() -> None:
    index = indexed(
        human("go"), reply(*FOUND), results(returned("ok")), reply(start_expl("look")), reply(start_expl("episode:look"))
    )
    handle = index.handle("episode:look", 1)
    for answer in list(index.answers.values())[2:]:
        assert answer.error
        assert f"an episode 'look' exists already, {handle}, which found: \"found it\"\n" in answer.text
        assert "in the dependencies of an act; to explore anew, choose another name, such as 'look-2'" in answer.text


def test_a_start_on_an_expl_of_the_same_message_answers_with_what_it_found() -> None:
    assert 'exists already, episode:look, which found: "found it"' in last(*FOUND, start_expl("look"))


def test_a_start_with_a_description_is_accepted_and_says_that_it_is_not_kept() -> None:
    index = indexed(human("go"), reply(call("delimiter", action="start", name="x", type="expl", description="d")))
    assert [answer.text for answer in index.answers.values()] == [
        "started expl 'x' (a description counts at the end of an expl: this one is not kept)"
    ]
    assert index.graph.open is not None
    assert index.graph.open.description == ""


@pytest.mark.parametrize("written", ["look", "episode:look", "{handle}", " look ", "look@{hash}"])
def test_a_name_is_accepted_as_a_view_prints_it(written: str) -> None:
    handle = indexed(human("go"), reply(*FOUND)).handle("episode:look", 1)
    name = written.format(handle=handle, hash=handle.partition("@")[2])
    index = indexed(human("go"), reply(*FOUND), reply(start_act("c", name, "look"), end_act()), reply(start_expl(name)))
    assert index.graph.named(name) is index.graph.named("look")
    act = index.graph.named("c")
    assert act is not None
    assert act.dependencies == (0,)
    assert "'look' exists already" in list(index.answers.values())[-1].text
    index = indexed(human("go"), reply(start_expl("episode:look"), call("delimiter", action="end", name=name, description="d")))
    assert [answer.text for answer in index.answers.values()] == ["started expl 'look'", "ended expl 'look'"]


def test_a_name_that_only_looks_like_a_handle_is_itself() -> None:
    index = indexed(human("go"), reply(start_expl("fix@beef"), end_expl("A"), start_expl("fix"), end_expl("B")))
    assert [episode.name for episode in index.episodes] == ["fix@beef", "fix"]
    assert index.graph.named("episode:fix@beef") is index.episodes[0]
    assert index.graph.named("fix") is index.episodes[1]


@given(text=st.one_of(st.text(), st.sampled_from(REFUSED)))
def test_whatever_the_arguments_are_a_delimiter_is_answered_and_changes_nothing_when_refused(text: str) -> None:
    index = indexed(human("go"), reply(start_expl("look"), delimiter(text)))
    refused = list(index.answers.values())[1]
    if refused.error:
        assert index.graph.open is index.graph.named("look")
        assert len([episode for episode in index.episodes if episode.declared]) == 1


def test_several_delimiters_in_one_message_are_carried_out_in_order() -> None:
    index = indexed(
        human("go"), reply(start_expl("a")), results(returned("ok")), reply(end_expl("A"), start_expl("b"), end_expl("B"))
    )
    assert [(e.name, e.closed, e.description) for e in index.episodes] == [("a", True, "A"), ("b", True, "B")]


def test_calls_beside_a_delimiter_belong_to_an_episode_by_their_position() -> None:
    index = indexed(
        human("go"),
        reply(call("read", "0"), start_expl("a", "1"), call("read", "2"), end_expl("A", "3"), call("read", "4")),
        results(returned("0", "0"), returned("1", "1"), returned("2", "2"), returned("3", "3"), returned("4", "4")),
    )
    names = ["step:1", "episode:a", "episode:a", "episode:a", "step:1"]
    assert [index.episodes[facts.episode].object for facts in index.entries[1].blocks][:4] == names[:4]
    assert [facts.episode for facts in index.entries[2].blocks] == [facts.episode for facts in index.entries[1].blocks]
    assert index.episodes[index.entries[1].blocks[4].episode].object.startswith("step:1")


def test_an_episode_starts_at_its_call_and_ends_with_the_result_of_the_call_that_ended_it() -> None:
    index = indexed(
        human("go"),
        reply("I look.", start_expl("a")),
        results(returned("started")),
        reply(call("read")),
        results(returned("text")),
        reply(end_expl("A")),
        results(returned("ended")),
        reply("next"),
    )
    episode = index.graph.named("a")
    assert episode is not None
    assert (episode.start, episode.end) == ((1, 1), (5, 0))
    assert index.entries_of(episode) == range(1, 7)
    assert [facts.episode == episode.ordinal for entry in index.entries[1:] for facts in entry.blocks] == [
        False, True, True, True, True, True, True, False,
    ]  # fmt: skip


def test_the_result_of_a_call_belongs_to_the_episode_of_its_call() -> None:
    index = indexed(human("go"), reply(start_expl("a", "1"), call("read", "2"), end_expl("A", "3")), results(returned("x", "3")))
    index_late = indexed(
        human("go"),
        reply(start_expl("a", "1"), call("read", "2")),
        results(returned("ok", "1")),
        reply(end_expl("A", "3")),
        results(returned("ended", "3")),
        results(returned("late", "2")),
    )
    assert index.entries[2].blocks[0].episode == index.graph.named("a").ordinal  # type: ignore[union-attr]
    episode = index_late.graph.named("a")
    assert episode is not None
    assert index_late.entries[5].blocks[0].episode == episode.ordinal
    assert 5 in index_late.entries_of(episode)


def test_dependencies_are_edges_from_acts_to_ended_expls() -> None:
    index = indexed(human("go"), reply(*FOUND, start_expl("b"), end_expl("B"), start_act("c", "look", "b", "look"), end_act()))
    look, b, c = (index.graph.named(name) for name in ("look", "b", "c"))
    assert look and b and c  # noqa: PT018 - all three are there or none
    assert c.type is EpisodeType.ACT
    assert c.dependencies == (look.ordinal, b.ordinal)
    assert look.dependents == b.dependents == (c.ordinal,)


def test_the_first_delimiter_is_the_first_accepted_start() -> None:
    index = indexed(human("go"), reply(call("read"), delimiter("not json")), results(returned("x")), reply(start_expl("a")))
    assert index.first_delimiter == (3, 0)


def test_a_delimiter_behind_a_servers_prefix_counts() -> None:
    index = indexed(human("go"), reply(call("mcp__tenure__delimiter", action="start", name="a", type="expl")))
    assert index.graph.open is not None


def test_what_lies_in_no_episode_is_implicit_expl_episodes_by_step_and_turn() -> None:
    index = indexed(
        human("one"), reply("a"), results(returned("x")), reply("b"), human("two"), results(returned("y")), reply("c")
    )
    implicit = [(e.object, e.type, e.closed, e.turn) for e in index.episodes]
    assert implicit == [
        ("step:1", EpisodeType.EXPL, True, 1),
        ("step:2", EpisodeType.EXPL, True, 1),
        ("step:2.2", EpisodeType.EXPL, True, 2),
        ("step:3", EpisodeType.EXPL, True, 2),
    ]
    for episode in index.episodes:
        assert index.implicit(episode.name) == [episode]


def test_an_index_of_nothing_has_nothing() -> None:
    assert (len(Index()), Index().tokens, Index().waiting) == (0, 0, 0)
