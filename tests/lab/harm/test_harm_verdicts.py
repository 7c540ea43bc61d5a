from collections.abc import Iterator

import pytest
from scenes import commit_line, drops, missed, replayed, session, texts

from tenure.engine.record.entry import Role
from tenure.engine.view.edit import Drop, Insert, Replace, Restore
from tenure.lab.events import At, Category
from tenure.lab.harm.judge import BlockRemoval, WindowTrace
from tenure.lab.harm.watch import after_cut
from tenure.testing.builders import call, harness, human, indexed, reply, result, thinking

ROW = "the_total = sum(each.price for each in cart)"
FILE = f"def checkout(cart):\n    {ROW}\n    return the_total"


def read_then(*later: object) -> list:
    """A file is read (the call at 1, its text at 2), something is said, and then come the later messages from 4 on."""
    return [
        human("fix the shop"),
        reply(call("read", file_path="src/shop/cart.py")),
        result(FILE),
        reply("Let me think."),
        *later,
    ]


EDIT = reply(call("edit", file_path="src/shop/cart.py", old_string=ROW, new_string="the_total = 0  # free today"))


def test_text_that_an_edit_must_find_is_lost_with_what_held_it() -> None:
    (harm,) = missed(read_then(EDIT), 4, (2, 0))
    assert (harm.text, harm.kind, harm.form, harm.part, harm.verdict) == (ROW, "verbatim", "target", "call", "lost")
    assert (harm.held, harm.objects, harm.call, harm.entry, harm.commit) == (((2, 0),), ("read:1",), 2, 4, 0)
    assert (harm.category, harm.rule) == (Category.VERBATIM, "is a line of a source")


def test_what_is_still_shown_elsewhere_is_visible() -> None:
    told = [*read_then(reply(f"It says `{ROW}`."), EDIT)]
    (harm,) = (harm for harm in after_cut(session(*told), 5, [(2, 0)]) if harm.form == "target")
    assert harm.verdict == "visible"


def test_what_was_had_again_since_does_not_count() -> None:
    again = read_then(reply(call("read", file_path="src/shop/cart.py")), result(FILE), EDIT)
    assert list(after_cut(session(*again), 4, [(2, 0)])) == []


def test_a_need_is_charged_once() -> None:
    twice = read_then(EDIT, result("done"), EDIT)
    assert [harm.entry for harm in missed(twice, 4, (2, 0))] == [4]


def test_a_common_string_does_not_count() -> None:
    seen = [human("go"), *[part for _ in range(7) for part in (reply(call("grep", pattern="x")), result("see total_price here"))]]
    later = reply("I rename total_price.")
    places = [(entry, block) for entry in range(1, 15) for block in (0,)]
    assert missed([*seen, later], 15, *places) == []
    assert texts(missed([seen[0], *seen[1:7], later], 7, *places[:6])) == {"total_price"}


def test_part_of_a_longer_word_or_number_is_not_held() -> None:
    seen = [human("go"), reply(call("run", command="count")), result("482139 rows"), reply("ok"), reply("there are 48213 rows")]
    assert missed(seen, 4, (2, 0)) == []


def test_a_trimmed_result_shows_what_it_still_says() -> None:
    drafts, kept = read_then(EDIT), Replace(entry=2, block=0, text=f"[…]\n{ROW}\n[…]", tokens=9)
    assert [harm.verdict for harm in replayed(drafts, [commit_line(3, 4, kept)])] == ["visible"]
    gone = Replace(entry=2, block=0, text="[…]", tokens=9)
    assert [(harm.verdict, harm.commit) for harm in replayed(drafts, [commit_line(3, 4, gone)])] == [("lost", 3)]


def test_a_placeholder_that_names_the_object_and_a_cue_routes() -> None:
    note = Replace(entry=2, block=0, text="[src/shop/cart.py cleared, recall read:1@3fa9]", tokens=9, routes=("read:1@3fa9",))
    (harm,) = replayed(read_then(EDIT), [commit_line(0, 4, note)])
    assert (harm.verdict, harm.route, harm.category) == ("routed", "read:1@3fa9", Category.VERBATIM)


def test_a_handle_without_a_cue_is_a_failure_of_routing() -> None:
    note = Insert(
        before_entry=4, order=0, key="r0", role=Role.USER, text="[evicted: read:1@3fa9]", tokens=5, routes=("read:1@3fa9",)
    )
    (harm,) = replayed(read_then(EDIT), [commit_line(0, 4, *drops((2, 0)), note)])
    assert (harm.verdict, harm.route, harm.category) == ("lost", "", Category.ROUTING)


def test_a_handle_of_something_else_leads_nowhere() -> None:
    note = Insert(
        before_entry=4, order=0, key="r0", role=Role.USER, text="[cart.py: bash:9@3fa9]", tokens=5, routes=("bash:9@3fa9",)
    )
    (harm,) = replayed(read_then(EDIT), [commit_line(0, 4, *drops((2, 0)), note)])
    assert (harm.verdict, harm.category) == ("lost", Category.VERBATIM)


def test_a_residue_that_says_it_all_keeps_it_visible_until_it_goes() -> None:
    note = Insert(before_entry=4, order=0, key="r0", role=Role.USER, text=f"it had {ROW}", tokens=5)
    first = commit_line(0, 4, *drops((2, 0)), note)
    assert [harm.verdict for harm in replayed(read_then(EDIT), [first])] == ["visible"]


def test_what_is_restored_is_not_missed() -> None:
    drafts = read_then(EDIT)
    assert replayed(drafts, [commit_line(0, 4, *drops((2, 0))), commit_line(1, 4, Restore(entry=2, block=0))]) == []


def test_what_the_recorded_agent_no_longer_saw_itself_is_no_need() -> None:
    drafts = read_then(reply("still here"), EDIT)
    ours, theirs = commit_line(0, 4, *drops((2, 0))), commit_line(1, 5, *drops((1, 0), (3, 0)), moment="recorded")
    assert texts(replayed(drafts, [ours])) >= {ROW}
    assert replayed(drafts, [ours, theirs]) == []


def test_reasoning_is_counted_apart_and_is_no_source() -> None:
    drafts = read_then(reply(thinking(f"I must change\n{ROW}")), EDIT)
    assert [(harm.part, harm.entry) for harm in missed(drafts, 4, (2, 0))] == [("thinking", 4), ("call", 5)]


def test_a_whole_path_is_visible_when_its_parts_are() -> None:
    drafts = [
        human("the code is in /srv/code"),
        reply(call("run", command="list")),
        result("/srv/code/src/shop/cart.py"),
        reply("I look into src/shop/cart.py now."),
        reply(call("read", file_path="/srv/code/src/shop/cart.py")),
    ]
    assert missed(drafts, 4, (2, 0)) == []
    assert texts(missed(drafts, 4, (2, 0), (3, 0))) == {"/srv/code/src/shop/cart.py"}


def test_a_path_is_needed_as_far_as_it_was_held() -> None:
    drafts = [
        human("go"),
        reply(call("ls")),
        result("src/shop/cart.py"),
        reply("ok"),
        reply(call("read", path="/srv/src/shop/cart.py")),
    ]
    assert texts(missed(drafts, 4, (2, 0))) == {"src/shop/cart.py"}


def test_names_that_a_library_gave_are_known() -> None:
    drafts = [
        human("go"),
        reply(call("cat")),
        result("x = strconv.ParseUint(y)"),
        reply("ok"),
        reply("use strconv.ParseUint here"),
    ]
    assert missed(drafts, 4, (2, 0)) == []


@pytest.mark.parametrize("what", ["description", "activeForm"])
def test_what_an_agent_remarks_of_its_call_is_no_need(what: str) -> None:
    one = reply(call("bash", command="true", **{what: "Check that the whole shop still works"}))
    assert missed([human("go"), one, result(""), reply("ok"), one], 4, (1, 0), (2, 0)) == []


def test_commands_repeat_commands_but_name_what_they_are_about() -> None:
    one = reply(call("bash", command="pytest --quiet --maxfail=3 tests/shop/test_cart.py"))
    assert texts(missed([human("go"), one, result(""), reply("ok"), one], 4, (1, 0), (2, 0))) == {"tests/shop/test_cart.py"}


@pytest.mark.parametrize(
    ("held", "category", "rule"),
    [
        ([reply(call("bash", command="x")), result("Traceback: no table_of_prices")], Category.LIVE, "held by a failure"),
        ([reply(call("bash", command="x")), result("ok table_of_prices")], Category.EVIDENCE, "is a detail"),
        ([reply(call("bash", command="x")), result("ok var/prices/table.csv")], Category.LOCATOR, "is a locator"),
        ([reply("x"), harness("never touch table_of_prices")], Category.CONTRACT, "held by instructions"),
        ([reply(call("TodoWrite", todos=["fill table_of_prices"])), result("ok")], Category.LIVE, "held by a task list"),
    ],
)
def test_the_category_follows_from_where_it_was_held_and_what_it_is(held: list, category: Category, rule: str) -> None:
    later = reply("Next: table_of_prices" if category is not Category.LOCATOR else "Next: var/prices/table.csv")
    (harm,) = missed([human("go"), *held, reply("ok"), later], 4, (1, 0), (2, 0))
    assert (harm.category, harm.rule) == (category, rule)


def test_the_objects_are_those_of_the_index() -> None:
    drafts = read_then(EDIT)
    assert next(iter(indexed(*drafts).objects_of((2, 0)))) == missed(drafts, 4, (2, 0))[0].objects[0]


def test_commits_of_the_recorded_agent_cost_what_they_take_and_not_what_had_left() -> None:
    class Walked(dict[At, BlockRemoval]):
        walks = 0

        def __iter__(self) -> Iterator[At]:
            Walked.walks += 1
            return super().__iter__()

    window = WindowTrace()
    window.taken = Walked()
    for number in range(200):
        window.commit(number, 2 * number, (Drop(entry=2 * number + 1, block=0),))
        window.commit(number, 2 * number, (Drop(entry=2 * number, block=0),), recorded=True)
    assert Walked.walks == 0
    assert window.unseen == {(entry, 0) for entry in range(399)}
