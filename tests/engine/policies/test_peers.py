"""The published rules of others, case by case."""

from collections.abc import Iterator
from functools import partial

import pytest

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies import PEERS, policy_named
from tenure.engine.policies.peers import CLEARED, DUPLICATE, Peer, clear_tool_uses, opencode_prune
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.view.action import Shorten, Take
from tenure.engine.view.rules import Rules
from tenure.testing.builders import by_words, call, human, reply, result, weigh_words

RULES = Rules(provider="t", dialect="openai-chat")


def words(count: int) -> str:
    return " ".join(["word"] * count)


def used(tool: str, count: int, n: int, **arguments: object) -> list[Draft]:
    return [reply(call(tool, f"c{n}", **arguments)), result(words(count), f"c{n}")]


def opened(policy: Policy, *drafts: Draft, limit: int = 1_000) -> Session:
    entries: dict[int, Entry] = {}
    setup = Setup(budget=Budget(ceiling=limit), rules=RULES, policy=policy)
    session = Session(setup, weigh=weigh_words, count=by_words, read=entries.__getitem__)
    for draft in drafts:
        for entry in session.append(draft).entries:
            entries[entry.n] = entry
    return session


def proposed(policy: Policy, *drafts: Draft, limit: int = 1_000) -> Iterator[tuple[str, str, str]]:
    """How, what, and the text that is to stand for it."""
    session = opened(policy, *drafts, limit=limit)
    for action in policy(session.situation()):
        if isinstance(action, Shorten):
            yield action.how, session.index.spans[action.span].object, action.text
        elif isinstance(action, Take):
            yield action.how, action.object, action.pointer


def objects(policy: Policy, *drafts: Draft, limit: int = 1_000) -> list[str]:
    return [what for _, what, _ in proposed(policy, *drafts, limit=limit)]


def calls(count: int, size: int = 50) -> list[Draft]:
    return [draft for n in range(1, count + 1) for draft in used("read", size, n, path=f"{n}.py")]


LATER = [human("And then?"), *used("bash", 5, 98, command="a"), human("And now?"), *used("bash", 5, 99, command="b")]


def test_opencode_clears_what_is_older_than_the_newest_40k_of_output_before_the_last_two_turns() -> None:
    policy = Peer("opencode", partial(opencode_prune, protect=120, minimum=60))
    said = list(proposed(policy, human("Go."), *calls(6), *LATER))
    assert [what for _, what, _ in said] == ["read:1", "read:2", "read:3", "read:4"]
    assert {text for _, _, text in said} == {CLEARED}
    assert objects(Peer("opencode", partial(opencode_prune, protect=120, minimum=500)), human("Go."), *calls(6), *LATER) == []
    assert objects(policy, human("Go."), *calls(6)) == []


@pytest.mark.parametrize(("name", "half", "quarter"), [("cline", 10, 15), ("cline-75-50", 5, 10)])
def test_cline_keeps_the_shares_of_its_code_or_those_that_the_tiered_text_tells(name: str, half: int, quarter: int) -> None:
    drafts = [human("Go."), *calls(21)]
    assert len(objects(PEERS[name], *drafts, limit=100_000)) == half
    assert len(objects(PEERS[name], *drafts, limit=100)) == quarter


def test_opencode_never_clears_a_skill() -> None:
    drafts = [human("Go."), *used("skill", 200, 1, name="x"), *calls(6), *LATER]
    assert "function:skill:1" not in objects(Peer("opencode", partial(opencode_prune, protect=0, minimum=0)), *drafts)


def test_clearing_of_tool_uses_keeps_the_newest_three_and_waits_for_its_trigger() -> None:
    policy = Peer("clearing", partial(clear_tool_uses, trigger=100))
    assert objects(policy, human("Go."), *calls(9)) == [f"read:{n}" for n in range(1, 6)]  # the fourth newest is in the tail
    assert objects(Peer("clearing", partial(clear_tool_uses, trigger=10_000)), human("Go."), *calls(9)) == []
    assert objects(Peer("clearing", partial(clear_tool_uses, trigger=100, at_least=10_000)), human("Go."), *calls(9)) == []
    assert (
        objects(Peer("clearing", partial(clear_tool_uses, trigger=100, exclude=frozenset({"read"}))), human("Go."), *calls(9))
        == []
    )


def test_cline_stops_at_duplicate_reads_when_they_save_thirty_percent() -> None:
    again = [draft for n in range(10, 14) for draft in used("read", 200, n, path="a.py")]
    said = list(proposed(PEERS["cline"], human("Go."), *again, *calls(5, size=10)))
    assert {(how, text) for how, _, text in said} == {("dedupe", DUPLICATE)}
    assert [what for _, what, _ in said] == ["read:1", "read:2", "read:3"]


@pytest.mark.parametrize(("limit", "share"), [(1_000, 0.5), (200, 0.75)])
def test_cline_keeps_a_half_or_a_quarter_and_the_first_two_messages(limit: int, share: float) -> None:
    said = objects(PEERS["cline"], human("Go."), *calls(21), limit=limit)
    assert said == [f"step:{n}" for n in range(2, 2 + int(20 * share))]


def test_observation_masking_keeps_the_newest_ten_and_says_how_many_lines_went() -> None:
    said = list(proposed(PEERS["observation-masking"], human("Go."), *calls(14)))
    assert [what for _, what, _ in said] == ["read:1", "read:2", "read:3", "read:4"]
    assert said[0][2] == "Previous 1 lines omitted for brevity."


def test_discarding_takes_three_quarters_or_all_of_the_calls() -> None:
    assert len(objects(PEERS["discard-75"], human("Go."), *calls(12))) in (8, 9)  # the open exchange is never free
    assert objects(PEERS["discard-all"], human("Go."), *calls(12)) == [f"read:{n}" for n in range(1, 9)]


def test_the_oldest_turn_goes_first_and_the_latest_never() -> None:
    said = objects(
        PEERS["oldest-turn"],
        human("One."),
        *calls(3),
        human("Two."),
        *used("bash", 9, 50, command="x"),
        human("Three."),
        reply("Yes."),
    )
    assert said == ["user:1", "user:2"]


def test_masks_keep_their_ends_and_come_before_prunes() -> None:
    drafts = [human("Go."), *used("grep", 500, 30, pattern="x"), *calls(8)]
    masked, pruned = list(proposed(PEERS["tool-mask-prune"], *drafts))[:2]
    assert (masked[0], pruned[0]) == ("mask", "prune")
    start, mask, end = masked[2].split("\n")
    assert mask == "[output masked]"
    assert start
    assert end


def test_the_hybrid_folds_turns_before_it_prunes_outputs() -> None:
    drafts = [human("Go."), *calls(8), human("On."), *calls(8)]
    assert [how for how, _, _ in proposed(PEERS["hybrid"], *drafts)][:2] == ["fold", "prune"]


def test_a_folded_turn_leaves_a_pointer_that_says_how_it_ended() -> None:
    drafts = [human("One."), *calls(8), reply("The lexer is fixed."), human("Two."), *calls(8)]
    session = opened(PEERS["oldest-turn"], *drafts)
    session.view.apply(session.rehearse(PEERS["oldest-turn"], target=300).edits)
    (pointer,) = (insert.text for insert in session.view.inserts)
    assert pointer.startswith("[folded: user:1@")
    assert "The lexer is fixed." in pointer
    assert session.view.shows(0, 0)


def test_a_window_slides_over_whole_exchanges() -> None:
    session = opened(PEERS["sliding-window"], human("Go."), *calls(12))
    rehearsal = session.rehearse(PEERS["sliding-window"], target=400)
    assert {act.object for act in rehearsal.actions} == {f"step:{n}" for n in range(1, 1 + len(rehearsal.actions))}
    session.view.apply(rehearsal.edits)
    assert session.view.shows(0, 0)


def test_a_rule_that_says_how_much_goes_is_not_stopped_at_a_target() -> None:
    session = opened(PEERS["discard-75"], human("Go."), *calls(12))
    assert len(session.rehearse(PEERS["discard-75"], target=session.view.tokens - 1).actions) > 5
    assert len(session.rehearse(PEERS["sliding-window"], target=session.view.tokens - 1).actions) == 1


@pytest.mark.parametrize("name", PEERS)
def test_every_rule_is_known_by_its_name(name: str) -> None:
    assert policy_named(name) is PEERS[name]
    assert PEERS[name].name == name
