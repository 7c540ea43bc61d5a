"""Why something stands in the window as it does: what is said agrees with what the replay and the policy did."""

from collections.abc import Iterator

import pytest

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import policy_named
from tenure.engine.policies.graph.why import verdicts
from tenure.engine.record.entry import Draft
from tenure.engine.view.action import Shorten
from tenure.engine.view.guard import Hold
from tenure.errors import InputError
from tenure.lab.events import CallLine
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.lab.why.explain import ObjectAccount, explain
from tenure.lab.why.past import Past, kept, moment, replayed
from tenure.lab.why.telling import rows
from tenure.logs.reader import Event, Rewritten
from tenure.store.records import Conversation
from tenure.testing.builders import call, human, picture, reply, result, returned
from tenure.testing.store import MemoryStore


def module(part: int) -> str:
    """A file of which every third line defines something that no other file names."""
    return "\n".join(
        f"def parse_part{part}_{n}(text): return text.skip_comment_{part}_{n}()"
        if n % 3 == 0
        else f"                # the {n}th line of part {part} says in plain words what the code below is there for"
        for n in range(60)
    )


def work(parts: int = 8) -> Iterator[Event]:
    """Files are read one after another; the second is spoken of again much later."""
    yield human("Make every part keep its comments.")
    for part in range(1, parts + 1):
        yield reply(call("read", f"r{part}", path=f"src/part_{part}.py"), model="claude-sonnet-4-5")
        yield result(module(part), f"r{part}")
        yield reply(call("edit", f"e{part}", path=f"src/part_{part}.py", old=f"skip_comment_{part}_3", new="keep"))
        yield result("ok", f"e{part}")
    yield reply("Now parse_part2_30 again, whose body is text.skip_comment_2_30().")


def session(events: Iterator[Event] | None = None) -> SessionSource:
    every = list(work() if events is None else events)
    return SessionSource("session.jsonl", lambda: ("claude-code", iter(every)))


def options(policy: str = "graph", ceiling: int = 6_000) -> Options:
    return Options(budget=Budget(ceiling=ceiling), policy=policy_named(policy))


def past(policy: str = "graph", ceiling: int = 6_000) -> Past:
    return replayed([session()], options(policy, ceiling), o200k())


def why(name: str, *, policy: str = "graph", at_call: int | None = None, ceiling: int = 6_000) -> ObjectAccount:
    return explain(moment(past(policy, ceiling), o200k(), at_call), name)


@pytest.mark.parametrize("policy", ["graph", "cwl", "tiered"])
def test_every_moment_has_the_view_that_the_replay_sent(policy: str) -> None:
    events: list[Event] = [*work(4), human(picture()), *list(work(8))[1:], Rewritten(reason="compaction", drop_before=6)]
    events += [human("Go on."), reply("Gone on.")]
    one = session(iter(events))
    held = replayed([one], options(policy), o200k())
    calls = [line for line in replay([one], options(policy), o200k()) if isinstance(line, CallLine)]
    assert [moment(held, o200k(), line.call).session.view.tokens for line in calls] == [line.view_tokens for line in calls]
    assert len({line.view_tokens for line in calls}) > 10


def test_what_was_shortened_is_told_with_its_commits_and_the_lines_that_stay() -> None:
    every = [why(f"read:{part}") for part in range(1, 9)]
    for part, each in enumerate(every, 1):
        assert set(each.standing.kept) <= set(module(part).split("\n"))
        assert all(name in module(part) for name in each.standing.names)
    found = next(each for each in every if each.standing.kept and each.standing.state == "shortened")
    assert found.touched[0].policy == "graph"
    assert found.touched[0].deed == "shortened"
    assert "over the ceiling of 6,000" in found.touched[0].reason
    assert found.touched[0].gain_usd is not None
    assert [touch.before for touch in found.touched][1:] == [touch.after for touch in found.touched][:-1]
    assert found.touched[-1].after == found.standing.tokens < found.thing.tokens == found.touched[0].before


def test_what_left_says_what_names_it_and_how_to_get_it_back() -> None:
    found = why("read:1", policy="cwl")
    assert (found.standing.state, found.standing.tokens) == ("gone", 0)
    assert found.touched[-1].deed == "dropped"
    assert found.standing.residues
    assert found.order is None
    assert found.recall == f'recall(handle="{found.thing.handle}")'
    assert found.command == f"tenure recall SESSION {found.thing.handle}"


def test_before_the_first_commit_nothing_has_touched_it() -> None:
    found = why("read:1", at_call=3)
    assert (found.standing.state, found.touched, found.later) == ("whole", (), ())
    assert (found.now.call, found.now.is_end, found.thing.age) == (3, False, 2)


@pytest.mark.parametrize(("name", "reason"), [("user:1", "human"), ("read:8", "tail"), ("entry:0/0", "human")])
def test_what_protects_it_is_named(name: str, reason: str) -> None:
    assert reason in [held.reason for held in why(name, ceiling=50_000).protected]


def test_what_may_go_is_not_called_protected() -> None:
    assert why("read:2", ceiling=50_000).protected == ()


def test_the_rank_is_the_order_in_which_the_policy_shortens() -> None:
    situation = moment(past(ceiling=50_000), o200k()).session.situation()
    ranked = [judged.at for judged in verdicts(situation, frozenset()).judged]
    policy = policy_named("graph")
    assert policy is not None
    places = [action.at for action in policy(situation) if isinstance(action, Shorten)]
    last = places[-len(ranked) :]  # of the pass that leaves nothing
    assert len(ranked) > 3
    assert last == ranked
    first = moment(past(ceiling=50_000), o200k()).session.index.objects_of(ranked[0])
    need = why(next(iter(first)), ceiling=50_000).need
    assert need is not None
    assert (need.rank, need.of) == (1, len(ranked))


def test_each_reason_has_its_words_and_the_strongest_are_told() -> None:
    held = moment(past(ceiling=50_000), o200k())
    place = held.session.index.spans[2].result
    assert place is not None
    judged = next(each for each in verdicts(held.session.situation(), frozenset({place})).judged if each.at == place)
    names = "length age near source quiet stack turns newer phase habit part indent size copies used names shape edits".split()
    assert sorted(reason.name for reason in judged.reasons) == sorted([*names, "sole names"])
    words = {reason.name: reason.text for reason in judged.reasons}
    assert words["age"].startswith("read 8 to 15 steps ago")
    assert words["edits"].startswith("its file was edited")
    assert words["shape"].startswith("20 of its 60 lines define")
    assert words["size"].startswith("it has 60 lines")
    need = why("read:2", ceiling=50_000).need
    assert need is not None
    assert [reason.name for reason in need.reasons] == [reason.name for reason in judged.reasons[:3]]
    assert abs(need.reasons[0].weight) >= abs(need.reasons[-1].weight)


def test_reasons_of_two_results_that_are_alike_weigh_nothing() -> None:
    events: list[Event] = [human("Read."), *[each for n in (1, 2) for each in (reply(call("read", f"c{n}", path=f"{n}.txt")),)]]
    calls = reply(*[call("read", f"c{n}", path=f"part{n}.txt") for n in range(2)])
    both = Draft(role=result("").role, blocks=tuple(returned(module(1 + n), f"c{n}") for n in range(2)))
    events = [human("Read."), calls, both, *(reply(f"So it is: {n}.") for n in range(9))]
    held = moment(replayed([session(iter(events))], options(ceiling=50_000), o200k()), o200k())
    found = explain(held, "read:1").need
    assert found is not None
    assert [reason.weight for reason in found.reasons] == pytest.approx([0.0] * 3)


def test_what_a_batch_would_do_is_what_it_does() -> None:
    held = past()
    first = next(commit for commit in held.commits if any(act.object == "read:1" for act in commit.actions))
    before = moment(held, o200k(), next(n for n in range(99) if moment(held, o200k(), n).session.length == first.entries))
    assert explain(before, "read:1").touched[-1].commit == first.n
    earlier = why("read:1", at_call=before.call - 1).order
    assert earlier is not None
    assert earlier.coming != "stays as it is"
    assert 0 < earlier.place <= earlier.of


def test_a_step_that_needed_it_later_is_told() -> None:
    found = why("read:2", policy="cwl")
    assert [need.call for need in found.later] == [16]
    assert found.later[0].verdict in ("routed", "lost")
    assert "skip_comment_2_30" in found.later[0].text or "parse_part2_30" in found.later[0].text


def test_a_declared_episode_is_told_with_what_builds_on_it() -> None:
    def delimiter(number: int, **arguments: object) -> list[Event]:
        return [reply(call("delimiter", f"d{number}", **arguments)), result("ok", f"d{number}")]

    events: list[Event] = [human("Go."), *delimiter(1, action="start", name="find", type="expl")]
    events += [reply(call("grep", "g", pattern="x")), result(module(1), "g")]
    events += delimiter(2, action="end", description="x is in part 1")
    events += delimiter(3, action="start", name="change", type="act", dependencies=["find"])
    held = moment(replayed([session(iter(events))], options("cwl", 50_000), o200k()), o200k())
    within = explain(held, "grep:1").within
    assert within is not None
    assert (within.type, within.level, within.is_declared, within.is_open) == ("expl", "bulk", True, False)
    assert [handle.partition("@")[0] for handle in within.dependents] == ["episode:change"]
    assert "built on by episode:change" in " ".join(row.text for row in rows(explain(held, "grep:1"), 80))


def test_a_stored_conversation_tells_its_own_commits_and_holds() -> None:
    held = past("cwl")
    store = MemoryStore()
    store.create(Conversation(id="c", model="claude-sonnet-4-5"))
    store.append("c", held.entries)
    for commit in held.commits:
        store.commit("c", commit)
    store.hold("c", Hold(object="read:7", reason="the contract"))
    own = kept(store, store.conversation("c"), policy_named("cwl"), Budget(ceiling=6_000))
    assert not own.simulated
    found = explain(moment(own, o200k()), "read:2")
    simulated = explain(moment(held, o200k()), "read:2")
    assert (found.touched, found.standing, found.later) == (simulated.touched, simulated.standing, simulated.later)
    pinned = explain(moment(own, o200k()), "read:7").protected
    assert [(each.reason, each.text) for each in pinned] == [("pin", "it is pinned: the contract")]


def test_an_object_that_is_not_there_or_not_yet_is_an_error_that_says_what_is() -> None:
    with pytest.raises(InputError, match="read:1 to read:8"):
        why("read:9")
    with pytest.raises(InputError, match="no read:7 yet, expected more than 12"):
        why("read:7", at_call=2)
    assert why("read:7", at_call=13).standing.state == "whole"
    with pytest.raises(InputError, match="0 to 16"):
        why("read:1", at_call=17)


def test_the_answer_is_the_same_twice() -> None:
    assert why("read:2") == why("read:2")


@pytest.mark.parametrize("name", ["user:1", "step:3", "entry:4", "edit:2", "read:1", "read:2", "read:8"])
@pytest.mark.parametrize("policy", ["graph", "cwl", "tiered", "none", "sliding-window"])
def test_every_object_is_told_in_a_screen(name: str, policy: str) -> None:
    told = list(rows(why(name, policy=policy), 80))
    assert told[0].label == "asked"
    assert told[-1].label == "get back"
    assert sum(1 + len(row.text) // 66 for row in told) <= 32
