"""What is measured of annotation and exploration, on small records."""

from msgspec.structs import replace

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Draft, ToolCall, Usage
from tenure.engine.view.edit import Commit, Drop
from tenure.lab.bench.measures import Measures, measure
from tenure.testing.builders import (
    by_words,
    call,
    end_act,
    end_expl,
    human,
    indexed,
    placed,
    reply,
    result,
    results,
    returned,
    start_act,
    start_expl,
)


def measures(*drafts: Draft, **settings: object) -> Measures:
    entries = placed(*drafts)
    return measure(indexed(*drafts), entries.__getitem__, by_words, **settings)  # type: ignore[arg-type]


def test_a_reply_that_does_nothing_but_mark_an_episode_is_a_call_made_for_annotation() -> None:
    drafts = (
        human("mend it"),
        reply(start_expl("look", "a")),
        result("started", "a"),
        reply("I read.", end_expl("known", "b"), call("read", "c", path="a.py")),
        results(returned("ended", "b"), returned("text", "c")),
        reply("Now.", end_act("d")),
        result("delimiter refused", "d"),
    )
    entries, index = placed(*drafts), indexed(*drafts)
    spent = {1: Spent(usage=Usage(uncached=100, output=10), usd=0.5), 3: Spent(usage=Usage(uncached=900), usd=9.0)}
    found = measure(index, entries.__getitem__, by_words, spent=spent).overhead
    assert (found.delimiters, found.refused, found.accepted) == (3, 1, 2)
    assert (found.replies, found.replies_tokens, found.replies_usd) == (1, 110, 0.5)
    weights = [entries[n].tokens[k] for n, k in ((1, 0), (2, 0), (3, 1), (4, 0), (5, 1), (6, 0))]
    assert found.tokens == sum(weights)


def test_without_delimiters_and_words_on_them_annotation_costs_nothing() -> None:
    found = measures(human("hi"), reply("hello")).overhead
    assert (found.delimiters, found.tokens, found.standing_tokens) == (0, 0, 0)


def test_what_stands_in_every_request_for_annotation_is_weighed_where_the_agent_annotates() -> None:
    assert measures(human("hi"), reply(start_expl("look"))).overhead.standing_tokens > 100


def test_an_expl_that_wrote_is_mistyped_and_one_that_ran_a_command_is_not() -> None:
    found = measures(
        human("mend it"),
        reply(start_expl("wrote", "a"), call("edit", "b", path="a.py", old="x", new="y")),
        results(returned("started", "a"), returned("edited", "b")),
        reply(end_expl("done", "c"), start_expl("ran", "d"), call("bash", "e", command="make")),
        results(returned("ended", "c"), returned("started", "d"), returned("ok", "e")),
        reply(end_expl("known", "f")),
        result("ended", "f"),
    ).typing
    assert [(wrong.episode, wrong.type.value, wrong.why) for wrong in found.mistyped] == [
        ("wrote", "expl", "edit:1 changed a.py")
    ]
    assert (found.expl, found.act, found.declared) == (2, 0, 2)


def test_an_expl_whose_edit_failed_wrote_nothing() -> None:
    found = measures(
        human("mend it"),
        reply(start_expl("look", "a"), call("edit", "b", path="a.py", old="x", new="y")),
        results(returned("started", "a"), returned("no such text", "b", error=True)),
        reply(end_expl("known", "c")),
        result("ended", "c"),
    ).typing
    assert found.mistyped == ()


def acting(*calls: tuple[str, dict[str, str]], ended: bool = True) -> Measures:
    """An act with these calls, behind an expl."""
    ids = [f"x{n}" for n in range(len(calls))]
    return measures(
        human("mend it"),
        reply(start_expl("look", "a"), end_expl("known", "b"), start_act("do", "look", call_id="c")),
        results(returned("started", "a"), returned("ended", "b"), returned("started", "c")),
        reply("…", *(call(tool, id_, **arguments) for (tool, arguments), id_ in zip(calls, ids, strict=True))),
        results(*(returned("done", id_) for id_ in ids)),
        *([reply(end_act("d")), result("ended", "d")] if ended else []),
    )


def test_an_act_that_only_looked_is_mistyped() -> None:
    found = acting(("read", {"path": "a.py"}), ("bash", {"command": "git status"}), ("grep", {"pattern": "x"})).typing
    assert [(wrong.episode, wrong.why) for wrong in found.mistyped] == [("do", "none of its 3 calls changed anything")]


def test_an_act_that_ran_what_may_change_something_is_taken_at_its_word() -> None:
    assert acting(("bash", {"command": "make install"})).typing.mistyped == ()
    assert acting(("write", {"path": "a.py", "content": "x"})).typing.mistyped == ()


def test_an_act_that_is_still_open_may_yet_change_something() -> None:
    found = acting(("read", {"path": "a.py"}), ended=False).typing
    assert (found.mistyped, found.open) == ((), 1)


def explored_twice(*names: str, used: str = "src/tokens/verify.py", human_words: str = "mend it") -> Measures:
    """Two explorations, of which the first shows a path; then an act that builds on `names` and edits what `used` says."""
    return measures(
        human(human_words),
        reply(start_expl("first", "a"), call("grep", "b", pattern="verify")),
        results(returned("started", "a"), returned("src/tokens/verify.py:12: def verify", "b")),
        reply(end_expl("it is in verify.py", "c"), start_expl("second", "d"), call("grep", "e", pattern="settings")),
        results(returned("ended", "c"), returned("started", "d"), returned("src/settings.py:1: x", "e")),
        reply(end_expl("settings", "f"), start_act("do", *names, call_id="g"), call("edit", "h", path=used, old="x", new="y")),
        results(returned("ended", "f"), returned("started", "g"), returned("edited", "h")),
        reply(end_act("i")),
        result("ended", "i"),
    )


def test_an_act_that_uses_what_an_expl_it_does_not_name_had_shown_misses_a_dependency() -> None:
    found = explored_twice("second").dependencies
    assert [(gap.act, gap.expl, gap.anchors) for gap in found.missing] == [("do", "first", ("src/tokens/verify.py",))]
    assert (found.declared, found.used) == (1, 1)


def test_a_dependency_that_is_named_is_not_missing() -> None:
    found = explored_twice("second", "first").dependencies
    assert (found.declared, found.used, found.missing) == (2, 1, ())


def test_what_a_person_named_needs_no_dependency() -> None:
    assert explored_twice("second", human_words="mend src/tokens/verify.py").dependencies.used == 0


def test_what_nobody_had_shown_is_no_use_of_anything() -> None:
    assert explored_twice("second", used="src/new/place.py").dependencies.used == 0


def test_one_symbol_alone_is_no_use() -> None:
    drafts = (
        human("mend it"),
        reply(start_expl("first", "a"), call("grep", "b", pattern="x")),
        results(returned("started", "a"), returned("def check_tokens and check_names", "b")),
        reply(
            end_expl("known", "c"), start_expl("second", "d"), end_expl("nothing", "e"), start_act("do", "second", call_id="f")
        ),
        results(*(returned("ok", id_) for id_ in "cdef")),
    )
    one = reply(call("bash", "g", command="echo check_tokens"))
    two = reply(call("bash", "g", command="echo check_tokens check_names"))
    for said, missing in ((one, 0), (two, 1)):
        assert len(measures(*drafts, said).dependencies.missing) == missing


def reading(*texts: tuple[str, dict[str, object], str], between: tuple[Draft, ...] = ()) -> tuple[Draft, ...]:
    """Calls one after another, each with what it gave; `between` stands before the last."""
    drafts: list[Draft] = [human("look")]
    for n, (tool, arguments, text) in enumerate(texts):
        if n == len(texts) - 1:
            drafts += between
        drafts += [reply(call(tool, f"r{n}", **arguments)), result(text, f"r{n}")]
    return tuple(drafts)


LINES = "\n".join(f"line {n}" for n in range(1, 41))
READ = ("read", {"path": "a.py"}, LINES)


def test_a_read_of_the_same_lines_is_repeated_exploration() -> None:
    again = measures(*reading(READ, READ)).explored.again
    assert [(each.object, each.earlier, each.about, each.across, each.gone) for each in again] == [
        ("read:2", "read:1", "a.py", False, False)
    ]


def test_a_read_of_other_lines_is_not() -> None:
    rest = ("read", {"path": "a.py", "offset": 41, "limit": 40}, LINES)
    assert measures(*reading(READ, rest)).explored.again == ()


def test_a_read_after_an_edit_of_the_file_is_not_repeated() -> None:
    edit = (reply(call("edit", "e", path="./a.py", old="x", new="y")), result("edited", "e"))
    assert measures(*reading(READ, READ, between=edit)).explored.again == ()


def test_a_search_that_gives_the_same_is_repeated_and_one_that_gives_more_is_not() -> None:
    search = ("grep", {"pattern": "verify"}, "a.py:1: verify")
    more = ("grep", {"pattern": "verify"}, "a.py:1: verify\nb.py:2: verify")
    assert len(measures(*reading(search, search)).explored.again) == 1
    assert measures(*reading(search, more)).explored.again == ()


def test_what_was_read_for_an_earlier_task_is_told_apart() -> None:
    task = (reply("Done."), human("and another task"))
    again = measures(*reading(READ, READ, between=task)).explored.again
    assert [each.across for each in again] == [True]


def test_what_had_left_the_view_is_told_apart() -> None:
    left = Commit(n=0, entries=3, policy="cwl", moment="before-call", reason="", edits=(Drop(entry=2, block=0),))
    later = replace(left, entries=5)
    assert [each.gone for each in measures(*reading(READ, READ), commits=(left,)).explored.again] == [True]
    assert [each.gone for each in measures(*reading(READ, READ), commits=(later,)).explored.again] == [False]


def test_reading_on_where_a_result_was_clipped_from_its_birth_is_not_repeated() -> None:
    clipped = Commit(n=0, entries=3, policy="clip", moment="admission", reason="", edits=(Drop(entry=2, block=0),))
    assert measures(*reading(READ, READ), commits=(clipped,)).explored.again == ()


def test_a_stretch_counts_its_own_calls_and_knows_what_was_read_before_it() -> None:
    drafts = reading(READ, READ)
    found = measures(*drafts, first=3)
    assert (found.calls, found.replies, found.explored.looks, len(found.explored.again)) == (1, 1, 1, 1)


def test_running_the_tests_again_is_no_exploration() -> None:
    run = ("bash", {"command": "python -m pytest"}, "3 passed")
    found = measures(*reading(run, run)).explored
    assert (found.looks, found.again) == (0, ())


def test_hostile_arguments_are_measured_like_any_others() -> None:
    deep = ToolCall(call_id="b", name="read", arguments='{"path": ' + "[" * 5_000)
    long = call("read", "c", path="a/" * 50_000)
    drafts = (
        human("x"),
        reply(call("bash", "a", command="\x00" * 5), deep, long),
        results(returned("x\x00", "b"), returned("\ufffd", "c")),
    )
    found = measures(*drafts)
    assert (found.calls, found.typing.declared) == (3, 0)
