import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.tail_notes import (
    EPISODE,
    GAUGE,
    OPEN_CALLS,
    OpenEpisode,
    full,
    open_episode,
    reminders,
    tail_note,
)
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Setup
from tenure.engine.meter.gauge import Gauge, severity
from tenure.engine.record.entry import Draft
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, end_expl, human, reply, result, results, returned, session, start_act, start_expl

LIMIT = 10_000
CALM = Gauge(tokens=10, limit=100)


def episode(percent: float = 0, replies: int = 0, type_: EpisodeType = EpisodeType.EXPL) -> OpenEpisode:
    return OpenEpisode(name="locate-auth", type=type_, replies=replies, percent=percent)


def texts(gauge: Gauge, present: OpenEpisode | None = None, **known: bool) -> list[str]:
    return [each.text for each in reminders(gauge, present, **known)]


def test_while_all_is_well_nothing_is_said() -> None:
    assert reminders(CALM, None) == reminders(CALM, episode()) == ()
    assert tail_note("", ()) == ""


@pytest.mark.parametrize("percent", [0, 69, 70, 89, 90, 140])
def test_the_gauge_speaks_at_the_severities_of_every_other_surface(percent: int) -> None:
    said = reminders(Gauge(tokens=percent, limit=100), None)
    assert [each.severity for each in said] == [each for each in [severity(percent)] if each != "ok"]
    assert [each.text for each in said] == [GAUGE[each.severity] for each in said]


def test_the_words_say_the_thresholds_that_the_gauge_has() -> None:
    assert "more than 70 % full" in GAUGE["warn"]
    assert "more than 90 % full" in GAUGE["critical"]


def test_only_when_nothing_more_can_leave_a_handoff_is_spoken_of() -> None:
    at_limit = Gauge(tokens=99, limit=100)
    assert texts(at_limit, unmet=True) == [full(marks=True, alone=False)]
    assert texts(at_limit, unmet=True, alone=True) == [full(marks=True, alone=True)]
    assert "/handoff" in full(marks=True, alone=False)
    assert not any("/handoff" in text for text in (full(marks=True, alone=True), *GAUGE.values(), *EPISODE.values()))


def test_episodes_are_spoken_of_only_where_the_agent_marks_them() -> None:
    at_limit = Gauge(tokens=99, limit=100)
    assert texts(at_limit, episode(95), marks=False) == []  # something is about to leave by itself
    for known in ({"unmet": True}, {"unmet": True, "alone": True}, {"evicts": False}):
        (said,) = texts(at_limit, episode(95), marks=False, **known)
        assert "episode" not in said


def test_without_a_policy_only_the_models_own_window_counts() -> None:
    assert texts(Gauge(tokens=95, limit=100, window=1_000), marks=False, evicts=False) == []
    assert texts(Gauge(tokens=950, limit=100, window=1_000), marks=False, evicts=False) == [full(marks=False, alone=False)]


@pytest.mark.parametrize("type_", EpisodeType)
def test_an_episode_is_spoken_of_by_its_name_when_it_is_large_or_long(type_: EpisodeType) -> None:
    for large, long in ((70, 0), (0, OPEN_CALLS * 7 // 10)):
        assert texts(CALM, episode(large, long, type_)) == [EPISODE[type_, "warn"].format(name="locate-auth")]
    for large, long in ((90, 0), (0, OPEN_CALLS)):
        assert texts(CALM, episode(large, long, type_)) == [EPISODE[type_, "critical"].format(name="locate-auth")]
    assert '"locate-auth"' in EPISODE[type_, "warn"].format(name="locate-auth")


def test_braces_in_a_name_are_a_name() -> None:
    odd = OpenEpisode(name="{0} {name} {", type=EpisodeType.ACT, replies=0, percent=95)
    assert texts(CALM, odd)[0].startswith('[episode "{0} {name} {" has grown too long')


def test_the_most_serious_comes_first_and_the_note_of_git_before_all() -> None:
    said = reminders(Gauge(tokens=75, limit=100), episode(95))
    assert [(each.text.split()[0], each.severity) for each in said] == [("[episode", "critical"), ("[context:", "warn")]
    note = tail_note("[git status now: branch main, clean]", [each.text for each in said])
    assert note.splitlines() == ["[git status now: branch main, clean]", said[0].text, said[1].text]


@given(st.floats(0, 300), st.floats(0, 300), st.integers(0, 200))
def test_the_words_stay_the_same_while_the_same_is_true(percent: float, share: float, replies: int) -> None:
    said = reminders(Gauge(tokens=int(percent), limit=100), episode(share, replies))
    again = reminders(Gauge(tokens=int(percent) * 1_000, limit=100_000), episode(share, replies))
    assert said == again
    assert all("\n" not in each.text and each.text.startswith("[") and each.text.endswith("]") for each in said)


def held(*drafts: Draft) -> OpenEpisode | None:
    found = session(Setup(budget=Budget(ceiling=10_000), rules=Rules(provider="t", dialect="openai-chat")), *drafts)
    return open_episode(found.index, found.view, LIMIT)


def test_the_open_episode_is_measured_in_what_the_view_shows_of_it() -> None:
    read = (reply(call("read", path="a.py")), result("word " * 990))
    opened = (human("go"), reply(start_expl("look")), result("started"))
    first, second = held(*opened, *read), held(*opened, *read, *read)
    assert first is not None
    assert second is not None
    assert (first.name, first.type, first.replies, second.replies) == ("look", EpisodeType.EXPL, 1, 2)
    assert 19 < first.percent < 21  # a thousand of the five thousand that an open episode may keep
    assert 39 < second.percent < 41


def test_without_an_open_episode_there_is_nothing_to_measure() -> None:
    assert held() is None
    assert held(human("go"), reply(start_expl("look")), result("ok"), reply(end_expl("found")), result("ok")) is None
    started = results(returned("ok", "a"), returned("ok", "b"))
    again = held(
        human("go"),
        reply(start_expl("look")),
        result("ok"),
        reply(end_expl("found", "a"), start_act("change", "look", call_id="b")),
        started,
    )
    assert again is not None
    assert (again.name, again.replies) == ("change", 0)


def test_of_no_limit_any_episode_is_too_large() -> None:
    found = session(
        Setup(budget=Budget(ceiling=10_000), rules=Rules(provider="t", dialect="openai-chat")), reply(start_expl("look"))
    )
    present = open_episode(found.index, found.view, 0)
    assert present is not None
    assert present.severity == "critical"
