"""Cases out of recorded sessions: the same cuts as the mechanical replay's, and what the agent would see kept apart from what only a judge may."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from judge_scenes import TICKET, recorded
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.view.rules import Rules
from tenure.lab.cuts import cuts
from tenure.lab.judges.cases import INSERTED, Case, cases, of_edits, of_view
from tenure.lab.loading import load, source
from tenure.testing.builders import by_words, weigh_words
from tenure.testing.transcripts import transcripts

TOKENIZER = o200k()
CHOSEN = {"cwl": POLICIES["cwl"], "tool-prune": PEERS["tool-prune"]}


def made(path: Path, *, pairs: int = 0) -> list[Case]:
    return list(cases(source(str(path)), CHOSEN, TOKENIZER, pairs=pairs))


def test_cases_are_cut_where_the_mechanical_replay_cuts_and_miss_what_it_misses(tmp_path: Path) -> None:
    path = recorded(tmp_path, wanted=2)
    lines = list(cuts(source(str(path)), CHOSEN, TOKENIZER))
    counted = [
        (case.facts.policy, case.facts.cut, case.facts.before_call, case.facts.pruned, [need.stands for need in case.needs])
        for case in made(path)
    ]
    assert [(line.policy, line.cut, line.before_call, line.pruned) for line in lines] == [each[:4] for each in counted]
    assert [(line.visible, line.routed, line.lost) for line in lines] == [
        tuple(stands.count(each) for each in ("visible", "routed", "lost")) for *_, stands in counted
    ]
    assert any("lost" in stands for *_, stands in counted)


def test_what_was_removed_is_not_in_what_the_agent_sees(tmp_path: Path) -> None:
    case = next(case for case in made(recorded(tmp_path, wanted=2)) if case.facts.policy == "tool-prune")
    assert any(TICKET in piece.text for piece in case.removed)
    assert not any(TICKET in piece.text for piece in case.kept)
    assert {piece.at for piece in case.kept}.isdisjoint(piece.at for piece in case.removed)


def test_the_future_is_what_was_recorded_from_the_cut_on(tmp_path: Path) -> None:
    path = recorded(tmp_path, wanted=2)
    entries = load([source(str(path))], TOKENIZER).entries
    for case in made(path):
        assert case.future[0].entry == case.facts.entry
        assert [piece.text for piece in case.future] == [
            block.text for entry in entries[case.facts.entry :] for block in entry.blocks
        ]
        assert case.calls[case.facts.entry] == case.facts.before_call


def test_a_session_too_short_to_be_cut_has_no_cases(tmp_path: Path) -> None:
    assert made(recorded(tmp_path, calls=8)) == []


def test_the_same_session_gives_the_same_cases(tmp_path: Path) -> None:
    path = recorded(tmp_path, wanted=2)
    assert made(path, pairs=2) == made(path, pairs=2)


# --- Controls


def controls(path: Path) -> dict[str, Case]:
    return {case.facts.control: case for case in made(path, pairs=1) if case.facts.control}


def test_a_pair_of_controls_differs_only_in_what_is_needed(tmp_path: Path) -> None:
    pair = controls(recorded(tmp_path, wanted=2))
    extra = [piece for piece in pair["needed"].removed if piece not in pair["unused"].removed]
    assert {piece.name.partition("@")[0] for piece in extra} == {"read:3"}
    assert set(pair["unused"].removed) < set(pair["needed"].removed)
    assert {act.kind for case in pair.values() for act in case.acts} == {"prune"}


def test_what_is_needed_is_lost_with_no_way_back_and_nothing_of_what_is_unused_is_wanted(tmp_path: Path) -> None:
    pair = controls(recorded(tmp_path, wanted=2))
    assert [need.text for need in pair["needed"].needs if need.stands == "lost"] == [f"see {TICKET} for the rest"]
    assert pair["unused"].needs == ()
    assert not any(piece.block == INSERTED for piece in pair["needed"].kept)


def test_no_word_that_later_steps_say_stands_in_what_is_unused_alone(tmp_path: Path) -> None:
    pair = controls(recorded(tmp_path, wanted=2))
    case = pair["unused"]
    kept = {word for piece in case.kept for word in piece.text.split()}
    gone = {word for piece in case.removed for word in piece.text.split()}
    later = {word for piece in case.future if piece.kind in ("call", "words") for word in piece.text.split()}
    assert gone & later <= kept


def test_where_the_future_needs_nothing_exact_no_control_is_made(tmp_path: Path) -> None:
    assert controls(recorded(tmp_path)) == {}


def test_there_are_no_more_pairs_than_asked_for(tmp_path: Path) -> None:
    path = recorded(tmp_path, wanted=2)
    for pairs in (0, 1, 2):
        found = [case.facts.control for case in made(path, pairs=pairs) if case.facts.control]
        assert found == ["unused", "needed"] * pairs


# --- Laws


@given(transcripts(), st.sampled_from([*POLICIES.values(), *PEERS.values()]), st.integers(1, 9))
@settings(max_examples=25)
def test_every_block_is_kept_or_removed_and_nothing_else_is_there(drafts: tuple[Draft, ...], policy: object, tenths: int) -> None:
    kept: dict[int, Entry] = {}
    rules = Rules(provider="t", dialect="openai-chat")
    setup = Setup(budget=Budget(window=10**9), rules=rules, policy=policy)  # type: ignore[arg-type]
    session = Session(setup, weigh=weigh_words, count=by_words, read=kept.__getitem__)
    for draft in drafts:
        kept |= {entry.n: entry for entry in session.append(draft).entries}
    target = session.view.tokens * tenths // 10
    plan = session.rehearse(policy, target, limit=target)  # type: ignore[arg-type]
    after = session.view.copy()
    after.apply(plan.edits)
    shown = [piece for piece in of_view(after.freeze(), session.index, kept.__getitem__) if piece.block != INSERTED]
    removed = of_edits(plan.edits, session.view, session.index, kept.__getitem__, by_words)
    whole = {(entry.n, number) for entry in kept.values() for number in range(len(entry.blocks))}
    assert {piece.at for piece in shown} | {piece.at for piece in removed} == whole
    assert {piece.at for piece in shown} & {piece.at for piece in removed} == {piece.at for piece in removed if piece.is_part}
    assert [piece.at for piece in removed] == sorted(piece.at for piece in removed)
