from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.selfgc.objects import ContextObject, WhyBarred, objects_in
from tenure.engine.planners.selfgc.plan import Screened, actions_of, ask, pointer_to, screened
from tenure.engine.planners.selfgc.prompt import SCHEMA, PromptSpec, Stakes, prompt
from tenure.engine.planners.selfgc.reply import read
from tenure.engine.planners.selfgc.setting import SelfGc
from tenure.engine.policies.cwl import Cwl
from tenure.engine.record.entry import Draft
from tenure.engine.view.action import Take
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, placed, reply, result, session
from tenure.testing.transcripts import transcripts

RULES = Rules(provider="t", dialect="openai-chat")
SETUP = Setup(budget=Budget(window=10**9), rules=RULES, policy=Cwl.paper())  # no tail
LONG = " ".join(["line"] * 150)


def used(tool: str, *, error: bool = False, text: str = LONG, **arguments: object) -> tuple[Draft, Draft]:
    return reply(call(tool, **arguments)), result(text, error=error)


SMALL: tuple[Draft, ...] = (
    human("Why does the nightly import fail? Never touch the header row of the sheet."),
    *used("read", path="AGENTS.md"),
    *used("read", path="import/job.py", text=" ".join(["code"] * 900)),
    *used("bash", command="python -m import.job", error=True, text=" ".join(["trace"] * 400)),
    *used("bash", command="python -m import.job --limit 1", text="ok"),
    reply("The sheet has a second header row."),
    human("Mend it, and write down what you did."),
    *used("Skill", skill="office:tables"),
    *used("edit", path="import/job.py"),
    *used("read", path="import/job.py", text=" ".join(["code"] * 950)),
    *used("Skill", skill="office:tables"),
    *used("bash", command="python -m import.job", text=" ".join(["row"] * 300)),
    *used("write", path="NOTES.md"),
    reply("Mended."),
    human("Now the same for the weekly import."),
    *used("bash", command="ls import"),
)


def small() -> Session:
    return session(SETUP, *SMALL)


def objects(opened: Session | None = None) -> tuple[ContextObject, ...]:
    return objects_in((opened or small()).situation())


def plan(**lists: str | Sequence[str]) -> str:
    tags = (
        f"<{action}>\n{chr(10).join([names] if isinstance(names, str) else names)}\n</{action}>"
        for action, names in lists.items()
    )
    return f"<gc_plan>{''.join(tags)}</gc_plan>"


def outcome(reply_text: str, found: Sequence[ContextObject] | None = None) -> tuple[list[tuple[str, str]], dict[str, str]]:
    done = screened(read(reply_text), found if found is not None else objects())
    return shown(done), {each.object: each.why for each in done.refused}


def shown(done: Screened) -> list[tuple[str, str]]:
    return [(choice.action, choice.object.id) for choice in done.choices]


def test_the_whole_request_for_a_small_session(golden: Callable[[str, str], None]) -> None:
    stakes = Stakes(aim=1_500, calls=12, rewrite=11.5)
    asked = ask(small().situation(), read=placed(*SMALL).__getitem__, stakes=stakes)
    golden("selfgc-request.txt", asked + "\n")


def test_the_requests_fixed_part_is_small() -> None:
    for form in ("tags", "json"):
        for in_words in (False, True):
            assert o200k()(prompt((), PromptSpec(tokens=0, limit=6_000, form=form, in_words=in_words), o200k())) < 2_200


def test_no_planner_is_asked_when_nothing_may_be_named() -> None:
    assert ask(session(SETUP, human("a"), *used("read", path="a")).situation()) == ""


def many(count: int, tools: int = 7) -> tuple[ContextObject, ...]:
    numbers = dict.fromkeys(range(tools), 0)
    made: list[ContextObject] = []
    for n in range(count):
        numbers[n % tools] += 1
        id_ = f"tool_{n % tools}:{numbers[n % tools]}"
        at = (n + 1, 0)
        made.append(
            ContextObject(
                id=id_,
                kind="call",
                handle=f"{id_}@3fa9",
                tokens=(n * 7_919) % 9_000,
                age=count - n,
                start=at,
                turn=1,
                attach=1,
                cue=f"packages/server/src/module_{n}/implementation_of_it.py"[:72],
                places=(at,),
                why=WhyBarred.BODY if n % 11 == 5 else None,
            )
        )
    return tuple(made)


@pytest.mark.parametrize("count", [0, 1, 500, 20_000])
def test_a_request_stays_within_its_limit_whatever_the_number_of_objects(count: int) -> None:
    text = prompt(many(count), PromptSpec(tokens=10**6, limit=6_000, stakes=Stakes(aim=10**5)), o200k())
    assert o200k()(text) <= 6_000
    assert "</gc_plan>" in text


def test_of_500_objects_every_eligible_one_can_be_found_in_the_request() -> None:
    found = many(500)
    text = prompt(found, PromptSpec(tokens=10**6, limit=6_000), o200k())
    listed = text.partition("Index of what may be named")[2].partition("Not to be named")[0]
    lines = [line for line in listed.splitlines() if line.startswith("  tool_")]
    assert len(lines) > 80
    merged = next(line for line in listed.splitlines() if "smaller ones" in line)
    ids = [line.split(" · ")[0].strip() for line in lines]
    names = read(plan(prune=[*ids, merged.partition("in all: ")[2].partition(" and ")[0]])).targets
    eligible = {each.id for each in found if each.why is None}
    assert {target.name for target in names} <= {each.id for each in found}
    assert len({target.name for target in names} & eligible) > 0.8 * len(eligible)


@given(drafts=transcripts(longest=14), limit=st.integers(2_300, 4_000))
@settings(max_examples=40)
def test_any_sessions_request_is_within_its_limit(drafts: tuple[Draft, ...], limit: int) -> None:
    situation = session(SETUP, *drafts).situation()
    assert situation.count(ask(situation, read=placed(*drafts).__getitem__, limit=limit, setting=SelfGc())) <= limit


def test_eligible_objects_come_through_in_record_order_with_their_action() -> None:
    taken, refused = outcome(plan(prune=["bash:1"], mask="bash:3", fold="read:2 | the job before the repair"))
    assert taken == [("fold", "read:2"), ("prune", "bash:1"), ("mask", "bash:3")]
    assert not refused


def test_what_may_not_be_named_is_refused_with_its_reason() -> None:
    opened = small()
    taken, refused = outcome(plan(prune=["read:1", "edit:1", "user:3", "bash:4", "write:1"]), objects(opened))
    assert taken == []
    assert refused == {
        "read:1": WhyBarred.CONTRACT,
        "edit:1": WhyBarred.BODY,
        "write:1": WhyBarred.BODY,
        "user:3": WhyBarred.CUT,
        "bash:4": WhyBarred.CUT,
    }


def test_unknown_names_and_things_that_are_no_objects_are_refused() -> None:
    taken, refused = outcome(plan(prune=["read:99", "step:3", "assistant:2", "episode:look", "entry:4", "everything old"]))
    assert taken == []
    assert refused == {
        "read:99": "no such object is shown",
        **dict.fromkeys(("step:3", "assistant:2", "episode:look", "entry:4"), "is nothing that a plan may name"),
        "everything old": "no object's name",
    }


def test_names_are_understood_in_long_form_in_any_case_and_with_their_hash() -> None:
    own = next(each.handle for each in objects() if each.id == "read:2")
    assert outcome(plan(fold=f"function:{own}"))[0] == [("fold", "read:2")]
    assert outcome(plan(fold="conversation:user:1"))[0] == [("fold", "user:1")]
    assert outcome(plan(fold="Read:2"))[0] == [("fold", "read:2")]
    assert outcome(plan(fold="read:2@ffffffff"))[1] == {"read:2@ffffffff".partition("@")[0]: "has the hash of another record"}


def test_of_a_turn_and_a_call_inside_it_the_finer_wins() -> None:
    taken, refused = outcome(plan(fold=["user:1", "user:2"], prune="bash:1"))
    assert taken == [("prune", "bash:1"), ("fold", "user:2")]
    assert refused == {"user:1": "something inside it is named, which is finer"}


def test_a_call_that_was_refused_does_not_keep_its_turn_from_being_folded() -> None:
    assert outcome(plan(fold="user:1", prune="read:1"))[0] == [("fold", "user:1")]


def test_an_object_named_twice_gets_the_action_that_leaves_more_of_it() -> None:
    taken, refused = outcome(plan(prune=["read:2", "bash:3"], mask=["read:2", "bash:3"], fold="read:2"))
    assert taken == [("fold", "read:2"), ("mask", "bash:3")]
    assert set(refused) == {"read:2", "bash:3"}


def test_a_turn_is_folded_and_not_pruned_and_never_masked() -> None:
    taken, refused = outcome(plan(prune="user:1", mask="user:2"))
    assert taken == [("fold", "user:1")]
    assert refused["user:1"].startswith("folded instead")
    assert refused["user:2"] == "only a call with a result can be masked"


def test_what_is_hardly_larger_than_a_pointer_is_not_folded() -> None:
    taken, refused = outcome(plan(fold="bash:2"))
    assert taken == []
    assert refused == {"bash:2": "is hardly larger than a pointer to it"}


def test_of_a_skill_the_older_loads_leave_and_the_newest_stays() -> None:
    taken, refused = outcome(plan(prune=["skill:office:tables", "function:skill:1"]))
    assert taken == [("prune", "skill:office:tables")]
    assert refused == {"function:skill:1": "is a load of skill:office:tables, which is to be named"}


def test_a_plan_is_held_against_the_objects_as_they_are_when_it_comes() -> None:
    opened = small()
    asked = objects(opened)
    opened.append(reply("ok"))
    opened.append(human("and?"))
    assert outcome(plan(prune="bash:4"), asked)[0] == []
    assert outcome(plan(prune="bash:4"), objects(opened))[0] == [("prune", "bash:4")]


def test_a_folds_pointer_says_what_it_is_when_it_is_wanted_and_how_it_comes_back() -> None:
    text = plan(fold="read:2 | the job before [the] repair; recall to compare").replace("<fold>", '<fold reason="superseded">')
    done = screened(read(text), objects())
    handle = done.choices[0].object.handle
    ((fold,), refused) = actions_of(small().situation(), done.choices)
    assert fold == Take(
        how="fold",
        object="read:2",
        places=done.choices[0].object.places,
        pointer=(
            f'[folded: {handle} import/job.py, 911 tokens: a planner\'s words: "the job before (the) repair; recall to compare" · recall brings it back]'
        ),
        before_entry=3,
        routes=(handle,),
        reason="superseded",
    )
    assert not refused
    ((paper,), _) = actions_of(small().situation(), done.choices, in_place=False)
    assert paper.before_entry == 1  # right after the person's words


def test_a_pointer_is_bounded_and_has_words_of_its_own_when_the_plan_gives_none() -> None:
    turn, call_ = objects()[0], objects()[2]
    assert ": done there: 2 bash, 1 read · recall" in pointer_to(turn, "")
    assert ": its output · recall" in pointer_to(call_, "")
    assert len(pointer_to(call_, "word ] \n" * 4_000)) < 240 + 72 + 80
    assert pointer_to(call_, "word ]]]\n").count("]") == 1


def known(opened: Session, *drafts: Draft) -> dict[str, ContextObject]:
    found = objects_in(opened.situation(), read=placed(*drafts).__getitem__, within_cut=True)
    return {each.id: each for each in found}


def test_the_index_says_what_later_replies_used_what_stands_nowhere_else_and_what_can_be_had_again() -> None:
    drafts = (
        human("Why does it fail?"),
        *used("read", path="src/job.py", text="def run_weekly(): ..." + LONG),
        *used("read", path="src/rows.py", text="rows" + LONG),
        *used("bash", command="start", text="queued as https://ci.test/run/88213, log /var/tmp/88213.log " + LONG),
        *used("grep", pattern="weekly", text="src/job.py" + LONG),
        *used("edit", path="src/rows.py"),
        reply("run_weekly is the culprit.", call("bash", command="python -c 'run_weekly()'")),
        result("ok"),
        reply("so"),
        human("and?"),
    )
    found = known(session(SETUP, *drafts), *drafts)
    assert (found["read:1"].known.uses, found["read:1"].known.again) == (1, "its file is unchanged since")
    assert (found["read:2"].known.edited, found["read:2"].known.again) == ("edit:1", "")
    assert found["bash:1"].known.sole == ("https://ci.test/run/88213", "/var/tmp/88213.log")
    assert found["grep:1"].known.again == "can be run again"
    text = ask(session(SETUP, *drafts).situation(), read=placed(*drafts).__getitem__)
    assert "used by a later reply, last 1 ago" in text
    assert "alone holds https://ci.test/run/88213, /var/tmp/88213.log" in text
    assert "edited since by edit:1" in text
    behind = [each.behind for each in found.values() if each.kind == "call"]
    assert behind == sorted(behind, reverse=True)


def test_a_prune_of_what_alone_holds_something_exact_becomes_a_fold_and_is_refused_where_it_is_too_small_for_one() -> None:
    drafts = (
        human("Run it."),
        *used("bash", command="start", text="log /var/tmp/88213.log " + LONG),
        *used("bash", command="start again", text="job 7741902"),
        *used("bash", command="poll", text="waiting " + LONG),
        reply("so"),
        human("and?"),
    )
    found = tuple(known(session(SETUP, *drafts), *drafts).values())
    taken, refused = outcome(plan(prune="bash:1-3"), found)
    assert taken == [("fold", "bash:1"), ("prune", "bash:3")]
    assert refused["bash:1"] == "folded instead: it alone holds something exact"
    assert refused["bash:2"] == "alone holds 7741902, and is hardly larger than a pointer to it"
    pointer = pointer_to(screened(read(plan(prune="bash:1")), found).choices[0].object, "")
    assert "it alone holds /var/tmp/88213.log" in pointer


def test_a_turns_pointer_says_what_was_done_there_and_whose_words_are_a_models() -> None:
    found = objects_in(small().situation(), read=placed(*SMALL).__getitem__)
    turn = next(each for each in found if each.id == "user:1")
    text = pointer_to(turn, "how the import failed")
    assert (
        'a planner\'s words: "how the import failed"; done there: 2 bash, 1 read; ended: "The sheet has a second header row."'
        in text
    )


def test_the_last_turn_is_out_of_reach_or_not_as_the_setting_says_and_the_rules_say_the_same() -> None:
    one = (human("Mend it."), *used("bash", command="make a"), *used("bash", command="make b"), reply("so"))
    situation, texts = session(SETUP, *one).situation(), placed(*one).__getitem__
    assert ask(situation, read=texts) == ""  # the paper's rule
    text = ask(situation, read=texts, setting=SelfGc())
    assert "bash:1 · " in text
    assert "its older calls may be named where they are spent" in text
    assert "the newest turn with all that was done for it" in prompt((), PromptSpec(tokens=0, limit=6_000), o200k())


def test_a_reply_in_the_json_of_the_schema_is_a_plan_with_reasons() -> None:
    text = (
        '{"above_conversation_summary": "Imports.", "gc_plan": {"fold": [{"id": "read:2", "pointer": "the job", "reason": "stable"}],'
        ' "mask": [{"id": "bash:3", "reason": "repeats"}], "prune": []}}'
    )
    proposed = read(text)
    assert [(each.action, each.name, each.words, each.reason) for each in proposed.targets] == [
        ("fold", "read:2", "the job", "stable"),
        ("mask", "bash:3", "repeats", "repeats"),
    ]
    assert proposed.summary == "Imports."
    assert set(SCHEMA["required"]) == {"above_conversation_summary", "gc_plan"}


def test_the_prompts_own_examples_are_no_plan_of_a_reply() -> None:
    text = prompt((), PromptSpec(tokens=0, limit=6_000), o200k())
    assert not read(text).targets


def test_a_mask_names_the_block_it_shortens() -> None:
    (mask,) = screened(read(plan(mask="bash:3")), objects()).choices
    assert mask.object.result == mask.object.places[1]


NAMES = (
    "user:1 user:2 user:3 read:1 read:2 read:3 bash:1-4 bash:2 edit:1 skill:office:tables function:skill:1 function:read:2 conversation:user:1"
    " read:9 read:1-90 nothing step:2 READ:3 write:1"
).split()


@st.composite
def replies(draw: st.DrawFn) -> str:
    """Plans that name anything, and now and then a text that is none."""
    lists = {
        action: draw(st.lists(st.sampled_from(NAMES), max_size=6)) for action in draw(st.permutations(["fold", "mask", "prune"]))
    }
    text = plan(**lists)
    cut = draw(st.integers(0, len(text)))
    return draw(st.sampled_from([text, text[:cut], text[cut:] + text, str(lists), str({"gc_plan": lists})[: cut + 20]]))


def lawful(done: Screened, found: Sequence[ContextObject]) -> None:
    places = [at for choice in done.choices for at in choice.object.places]
    assert len(places) == len(set(places)), "two actions touch one block"
    assert [choice.object.start for choice in done.choices] == sorted(choice.object.start for choice in done.choices)
    for choice in done.choices:
        assert choice.object in found
        assert choice.object.why is None
        assert not (choice.action == "prune" and choice.object.kind == "turn")
        assert choice.action != "mask" or (choice.object.result is not None and not choice.object.shortened)


@given(reply_text=st.one_of(replies(), st.text(max_size=80)))
@settings(max_examples=200)
def test_only_eligible_objects_come_through_and_never_overlap(reply_text: str) -> None:
    found = objects()
    lawful(screened(read(reply_text), found), found)


@given(drafts=transcripts(longest=12), data=st.data())
@settings(max_examples=60)
def test_a_plan_for_any_session_is_lawful_and_does_not_depend_on_its_order(
    drafts: tuple[Draft, ...], data: st.DataObject
) -> None:
    found = objects_in(session(SETUP, *drafts).situation(), within_cut=True)
    names = [each.id for each in found]
    chosen = data.draw(
        st.lists(st.tuples(st.sampled_from(["fold", "mask", "prune"]), st.sampled_from(names)), unique=True)
        if names
        else st.just([])
    )
    texts = [
        "".join(f"<{action}>{name}</{action}>" for action, name in order)
        for order in (chosen, data.draw(st.permutations(chosen)))
    ]
    done, again = (screened(read(f"<gc_plan>{text}</gc_plan>"), found) for text in texts)
    lawful(done, found)
    assert done == again
    assert {each.object.id for each in done.choices} | {each.object for each in done.refused} >= {name for _, name in chosen}
