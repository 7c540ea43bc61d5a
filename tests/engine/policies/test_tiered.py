"""The tiers, one by one and in their order."""

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from tenure import Context, Unmet
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies.tiered import Tiered
from tenure.engine.record.entry import Draft, Entry, ToolCall, ToolResult
from tenure.engine.view.action import Shorten, Take
from tenure.engine.view.project import Row
from tenure.engine.view.rules import Rules
from tenure.errors import InputError
from tenure.testing.builders import call, human, reply, result, system
from tenure.testing.store import MemoryStore

COUNT = o200k()
RULES = Rules(provider="t", dialect="openai-chat")
SMALL = Tiered(head=20, tail=60, turns=1, protect=0, minimum=0, steps=2)


def text(lines: int, word: str = "line") -> str:
    return "\n".join(f"{word} {n} of the output that was printed" for n in range(lines))


def used(tool: str, output: str, n: int, *, error: bool = False, **arguments: object) -> list[Draft]:
    return [reply(call(tool, f"c{n}", **arguments)), result(output, f"c{n}", error=error)]


def opened(*drafts: Draft, policy: Tiered = SMALL, limit: int = 1_000) -> tuple[Session, dict[int, Entry]]:
    """A session that knows its texts, weighed exactly."""
    entries: dict[int, Entry] = {}
    setup = Setup(budget=Budget(ceiling=limit), rules=RULES, policy=policy)
    session = Session(setup, weigh=lambda blocks: tuple(COUNT(b.text) + 4 for b in blocks), count=COUNT, read=entries.__getitem__)
    for draft in drafts:
        for entry in session.append(draft).entries:
            entries[entry.n] = entry
    return session, entries


def actions(*drafts: Draft, policy: Tiered = SMALL, limit: int = 1_000) -> list[tuple[str, str]]:
    """What the policy offers of its own accord."""
    session, _ = opened(*drafts, policy=policy, limit=limit)
    spans = session.index.spans
    return [
        (
            each.how,
            spans[each.span].object + (" arguments" if each.part == "arguments" else "")
            if isinstance(each, Shorten)
            else each.object,
        )
        for each in policy(session.situation())
        if isinstance(each, Shorten | Take) and not each.reluctant
    ]


def shown(session: Session, entries: dict[int, Entry]) -> dict[int, str]:
    """The text of each shown result, by entry."""
    found: dict[int, str] = {}
    for line in session.freeze().lines:
        if isinstance(line, Row):
            instead = dict(line.replaced)
            for block in line.blocks:
                if isinstance(entries[line.entry].blocks[block], ToolResult):
                    found[line.entry] = instead[block].text if block in instead else entries[line.entry].blocks[block].text
    return found


END = [
    *used("bash", "done", 98, command="make"),
    *used("bash", "done again", 99, command="make"),
    human("And now?"),
    reply("So."),
]


def test_a_large_old_result_keeps_its_head_and_its_tail_and_says_how_to_see_the_rest() -> None:
    session, entries = opened(human("Go."), *used("bash", text(200), 1, command="make test"), *END)
    rehearsal = session.rehearse(SMALL, target=600)
    assert [(act.kind, act.object) for act in rehearsal.actions] == [("trim", "bash:1")]
    session.view.apply(rehearsal.edits)
    lines = shown(session, entries)[2].splitlines()
    assert lines[0] == "line 0 of the output that was printed"
    assert lines[-1] == "line 199 of the output that was printed"
    assert any("tokens left out here" in line and f"recall {session.index.handle('bash:1', 1)}" in line for line in lines)


def test_the_latest_of_equal_and_of_superseded_reads_stays() -> None:
    said = actions(
        human("Go."),
        *used("read", text(20), 1, path="a.py"),
        *used("read", text(20), 2, path="a.py"),
        *used("read", text(20, "changed"), 3, path="a.py"),
        *used("read", text(20, "other"), 4, path="a.py", offset=40),
        *END,
    )
    assert [what for how, what in said if how == "dedupe"] == ["read:1", "read:2", "read:3"]
    assert ("dedupe", "read:4") not in said


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ({"offset": 40, "limit": 20}, "another part of it was read since, at read:2@"),
        ({}, "there is a newer one at read:2@"),
        ({"offset": 1, "limit": 20}, "the same stands again at read:2@"),
    ],
)
def test_a_read_of_the_same_file_says_what_became_of_the_one_before(later: dict[str, Any], words: str) -> None:
    again = text(20) if later.get("offset") == 1 else text(30, "later")
    drafts = [
        human("Go."),
        *used("read", text(20), 1, path="a.py", offset=1, limit=20),
        *used("read", again, 2, path="a.py", **later),
        *END,
    ]
    session, entries = opened(*drafts, limit=300)
    session.view.apply(session.rehearse(replace(SMALL, head=900, middle_above=99.0, placeholders_above=99.0), target=0).edits)
    assert words in shown(session, entries)[2]
    assert shown(session, entries)[4] == again


def test_a_read_that_failed_later_does_not_supersede_one_that_worked() -> None:
    said = actions(human("Go."), *used("read", text(20), 1, path="a.py"), *used("read", "gone", 2, path="a.py", error=True), *END)
    assert ("dedupe", "read:1") not in said


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("read", "Read the file again"),
        ("grep", "Search again"),
        ("bash", "Run it again"),
        ("edit", "read the file to see it"),
        ("sql", "Call it again"),
    ],
)
def test_placeholders_say_what_can_be_done(tool: str, words: str) -> None:
    session, entries = opened(human("Go."), *used(tool, text(30), 1, path="a.py"), *END, limit=100)
    session.view.apply(session.rehearse(replace(SMALL, middle_above=99.0), target=0).edits)
    left = shown(session, entries)[2]
    assert words in left
    assert f"recall {tool}:1@" in left
    assert "a.py" in left


def test_of_a_failed_call_the_first_line_of_its_error_stays() -> None:
    session, entries = opened(
        human("Go."), *used("bash", "No such file\n" + text(30), 1, error=True, command="cat x"), *END, limit=100
    )
    policy = replace(SMALL, middle_above=99.0)
    session.view.apply(session.rehearse(policy, target=0).edits)
    assert 'It failed: "No such file' in shown(session, entries)[2]


def test_essential_tools_stay_in_every_tier() -> None:
    session, entries = opened(
        human("Go."), *used("describe_table", text(60), 1, table="t"), *used("skill", text(60), 2, name="x"), *END, limit=300
    )
    session.view.apply(session.rehearse(SMALL, target=0).edits)
    assert shown(session, entries)[2] == shown(session, entries)[4] == text(60)


def test_of_state_only_the_newest_stays() -> None:
    state = [draft for n in (1, 2, 3) for draft in used("git_status", text(30, f"state {n}"), n)]
    said = actions(human("Go."), *state, *END)
    assert {what for how, what in said if how in ("clear", "dedupe")} >= {"git_status:1", "git_status:2"}
    assert ("clear", "git_status:3") not in said


@pytest.mark.parametrize("limit", [3_000, 1_000, 300])
def test_the_newest_state_stays_whole_in_every_tier_and_under_any_limit(limit: int) -> None:
    drafts: list[Draft] = [human("Go.")]
    for n in range(30):
        drafts += used("git_status" if n < 12 else "bash", text(30, f"state {n}"), n)
    session, entries = opened(*drafts, *END, limit=limit)
    session.view.apply(session.rehearse(SMALL, target=0, limit=0).edits)
    left = shown(session, entries)
    assert left[24] == text(30, "state 11")
    assert text(30, "state 10") not in left.values()


def test_a_state_that_could_not_be_read_again_is_no_newer_state() -> None:
    session, entries = opened(
        human("Go."), *used("git_status", text(60), 1), *used("git_status", "not a repository", 2, error=True), *END, limit=100
    )
    session.view.apply(session.rehearse(SMALL, target=0, limit=0).edits)
    assert shown(session, entries)[2] == text(60)


def test_long_arguments_give_way_to_a_note_and_stay_json() -> None:
    session, entries = opened(human("Go."), *used("write", "ok", 1, path="a.py", content=text(60)), *END, limit=300)
    policy = replace(SMALL, middle_above=99.0)
    session.view.apply(session.rehearse(policy, target=0).edits)
    row = session.view.row(1)
    assert row is not None
    arguments = json.loads(dict(row.replaced)[0].text)
    assert arguments["path"] == "a.py"
    assert "recall write:1@" in arguments["content"]
    block = entries[1].blocks[0]
    assert isinstance(block, ToolCall)
    assert json.loads(block.arguments)["content"] == text(60)


def test_a_tier_is_tried_only_when_the_one_before_was_not_enough() -> None:
    drafts = [human("Go."), *used("bash", text(100), 1, command="a"), *used("bash", text(12), 2, command="b"), *END]
    session, _ = opened(*drafts, limit=1_400)
    enough = session.rehearse(SMALL, target=900)
    assert {act.kind for act in enough.actions} == {"trim"}
    assert session.rehearse(SMALL, target=0).exhausted
    assert {act.kind for act in session.rehearse(SMALL, target=0).actions} == {"trim"}  # below 70 % of the limit already


def test_what_a_tier_saves_too_little_of_is_not_worth_a_broken_prefix() -> None:
    drafts = [human("Go."), *used("bash", text(40), 1, command="a"), *END]
    assert [how for how, _ in actions(*drafts, policy=replace(SMALL, minimum=100_000, minimum_share=0.9))] == ["clear", "prune"]


def test_the_newest_turns_and_the_system_prompt_are_left_alone() -> None:
    drafts = [
        system("Be brief."),
        human("Go."),
        *used("bash", text(90), 1, command="a"),
        human("On."),
        *used("bash", text(90), 2, command="b"),
    ]
    said = actions(*drafts, policy=replace(SMALL, turns=1))
    assert all(what != "bash:2" for _, what in said)


def busy(turns: int, tool: str = "bash") -> list[Draft]:
    """Each turn with more results than the limit holds."""
    drafts: list[Draft] = []
    for turn in range(turns):
        drafts.append(human(f"Part {turn}."))
        for n in range(12):
            drafts += used(tool, text(30, f"step {n}"), 100 * turn + n, command=f"make {turn} {n}")
    return drafts


@pytest.mark.parametrize("turns", [1, 2, 3, 5])
@pytest.mark.parametrize("tool", ["bash", "todowrite"])
def test_newest_turns_and_essential_tools_do_not_hold_a_window_above_its_ceiling(turns: int, tool: str) -> None:
    """A session of 108k under a ceiling of 40k: two turns were protected, however large."""
    session, _ = opened(*busy(turns, tool), policy=Tiered(), limit=2_500)
    assert session.view.tokens > 1.5 * 2_500
    decision = session.decide()
    assert isinstance(decision, Propose)
    assert decision.commit.tokens_after <= 2_500


def test_of_newest_turns_that_are_too_large_their_newest_part_is_left_alone() -> None:
    session, entries = opened(*busy(3), policy=Tiered(), limit=2_500)
    decision = session.decide()
    assert isinstance(decision, Propose)
    session.commit(decision.commit)
    whole = [place for place, words in shown(session, entries).items() if words.startswith("step")]
    assert whole == list(range(whole[0], len(entries), 2))
    assert 0.3 * 2_500 < sum(sum(entries[place].tokens) for place in whole) <= 0.5 * 2_500


def test_a_target_that_can_wait_takes_nothing_that_is_protected() -> None:
    drafts = busy(1, "todowrite")
    session, _ = opened(*drafts, policy=Tiered(), limit=2_500)
    assert session.rehearse(Tiered(), target=0).edits == ()
    assert session.rehearse(Tiered(), target=0, limit=2_500).edits


def test_the_middle_leaves_under_a_pointer_and_human_words_stay() -> None:
    drafts: list[Draft] = [human("Go.")]
    for n in range(40):
        drafts += used("bash", text(20), n, command=f"step {n}")
    session, _ = opened(*drafts, *END, limit=500)
    rehearsal = session.rehearse(SMALL, target=400)
    assert "prune" in {act.kind for act in rehearsal.actions}
    session.view.apply(rehearsal.edits)
    assert session.view.shows(0, 0)
    summary = next(insert.text for insert in session.view.inserts if "steps from the middle" in insert.text)
    assert "of 8 steps" in summary
    assert re.search(r"ran \"step \d+\", .* and 3 more\.", summary)
    assert session.view.tokens == sum(line.tokens for line in session.freeze().lines)


def test_the_middle_says_what_was_read_changed_and_run_and_what_failed() -> None:
    drafts: list[Draft] = [human("Go."), *used("bash", text(20), 1, command="ls")]
    drafts += [
        *used("read", text(20), 2, path="auth.py"),
        *used("edit", text(20), 3, path="auth.py"),
        *used("edit", text(20), 4, path="auth.py"),
    ]
    drafts += [*used("bash", text(20), 5, error=True, command="make test"), *END]
    session, _ = opened(*drafts, limit=400)
    session.view.apply(session.rehearse(replace(SMALL, placeholders_above=99.0), target=0).edits)
    summary = session.view.inserts[0].text
    assert 'read auth.py; changed auth.py 2 times; ran "make test", make; this failed: "make test"' in summary


# --- The text's own cascade, at shares of the window

WINDOW = 4_000
TEXT = replace(Tiered.of_window("60/70/85"), head=20, tail=60, protect=0, minimum=0, steps=2)


def window_of(*drafts: Draft, policy: Tiered = TEXT, target: int = 80_000) -> Session:
    """A session in a window of 4,000 tokens, with the usual target."""
    session, _ = opened(*drafts, policy=policy)
    budget = Budget(window=WINDOW, target=min(target, WINDOW))
    session.setup = replace(session.setup, budget=budget)
    return session


def filled(share: float, *, lines: int = 6, large: int = 0) -> list[Draft]:
    """Results of so many lines up to a share of the window, the first ones of them large, then two turns of a few words."""
    drafts: list[Draft] = [human("Go."), reply("First.")]
    n = tokens = 0
    while tokens < share * WINDOW - 120:
        output = text(60 if n < large else lines, f"step {n}")
        drafts += used("bash", output, n, command=f"make {n}")
        tokens, n = tokens + COUNT(output) + COUNT(f'{{"command":"make {n}"}}') + 8, n + 1
    return [*drafts, human("Thanks."), reply("Yes."), human("And now?")]


def kinds(session: Session) -> set[str]:
    decision = session.decide()
    return {act.kind for act in decision.commit.actions} if isinstance(decision, Propose) else set()


def test_below_60_percent_of_the_window_it_continues_normally() -> None:
    assert kinds(window_of(*filled(0.55, large=2), target=1_000)) == set()  # whatever the budget's target


def test_above_60_percent_old_tool_outputs_are_truncated_to_head_and_tail() -> None:
    session = window_of(*filled(0.69, large=2))
    decision = session.decide()
    assert isinstance(decision, Propose)
    assert {act.kind for act in decision.commit.actions} == {"trim"}
    assert "over the 60% of the window of 2,400" in decision.commit.reason


def test_when_truncating_leaves_more_than_70_percent_results_become_placeholders() -> None:
    assert kinds(window_of(*filled(0.8))) == {"clear"}
    assert kinds(window_of(*filled(0.69))) == set()  # nothing is large, and the next tier has not come


def test_a_tier_is_carried_out_whole_so_that_it_is_not_back_at_the_next_turn() -> None:
    session = window_of(*filled(0.8))
    decision = session.decide()
    assert isinstance(decision, Propose)
    assert decision.commit.tokens_after < 0.5 * WINDOW


def test_when_placeholders_leave_more_than_85_percent_the_middle_goes_and_the_ends_stay() -> None:
    drafts: list[Draft] = [human("Refactor the auth system."), reply("I look.")]
    for n in range(90):
        drafts += [reply(text(4, f"thought {n}")), human(f"Part {n}.")]
    session = window_of(*drafts, reply("Nearly."), human("And now?"))
    decision = session.decide()
    assert isinstance(decision, Propose)
    assert {act.kind for act in decision.commit.actions} == {"prune"}
    session.commit(decision.commit)
    assert session.view.shows(0, 0)
    assert session.view.shows(1, 0)  # the first message and the first answer
    assert session.view.shows(len(session.index) - 2, 0)
    assert decision.commit.tokens_after <= 0.85 * WINDOW


@pytest.mark.parametrize(("keeps", "stays"), [("75/50", 0.75), ("50/25", 0.5)])
def test_the_middle_keeps_the_share_of_the_messages_that_the_text_or_cline_keeps(keeps: str, stays: float) -> None:
    policy = replace(Tiered.of_window(f"60/70/85,{keeps}"), steps=2, protect=0, minimum=0, protected_share=1.0)
    drafts: list[Draft] = [human("Go."), reply("First.")]
    for n in range(100):
        drafts += used("todowrite", text(3), n, path=f"{n}") if n % 2 else [reply(text(3, f"thought {n}"))]
    session = window_of(*drafts, reply("Nearly."), human("And now?"), policy=replace(policy, essential=frozenset({"todowrite"})))
    takes = [each for each in policy(session.situation()) if isinstance(each, Take) and not each.reluctant]
    gone = {session.index.entries[entry].step for entry, _ in takes[0].places}
    assert len(gone) == pytest.approx((1 - stays) * 103, abs=2)
    assert {1, len(session.index.steps)}.isdisjoint(gone)


@pytest.mark.parametrize(
    "shares", ["", "60", "70/60/85", "0/70/85", "60/70/85,50/75", "60/70/100", "a/b/c", "\u0666\u0660/70/85"]
)
def test_shares_that_make_no_cascade_are_refused_with_the_form(shares: str) -> None:
    with pytest.raises(InputError, match="tiered@60/70/85"):
        Tiered.of_window(shares)


def test_short_turns_do_not_leave_the_newest_work_without_protection() -> None:
    """Two turns of a word each protected nothing of what was done before them."""
    drafts: list[Draft] = [human("Go.")]
    for n in range(12):
        drafts += used("bash", text(30), n, command=f"make {n}")
    drafts += [human("Good."), reply("Yes."), human("On."), reply("I go on.")]
    policy = replace(SMALL, turns=2, steps=8, protected_share=1.0)
    cleared = {what for how, what in actions(*drafts, policy=policy, limit=3_000) if how == "clear"}
    assert cleared == {f"bash:{n}" for n in range(1, 7)}


def test_results_of_essential_tools_leave_one_by_one_as_long_as_the_ceiling_wants_them() -> None:
    context = Context(policy="tiered", budget=Budget(ceiling=10_000), store=MemoryStore(), clip=0)
    context.extend([{"role": "user", "content": "Go."}])
    for n in range(60):
        context.request(model="claude-opus-5", max_tokens=9)
        assert not isinstance(context.decision, Unmet), f"call {n}: {context.decision}"
        call = {"type": "tool_use", "id": f"c{n}", "name": "todowrite", "input": {"path": f"{n}"}}
        context.extend([{"role": "assistant", "content": [call]}])
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"item {n} is done\n" * 80}
        context.extend([{"role": "user", "content": [result]}])
        if n % 2 == 0:
            context.extend([{"role": "assistant", "content": "Done."}, {"role": "user", "content": f"Next, {n}."}])
