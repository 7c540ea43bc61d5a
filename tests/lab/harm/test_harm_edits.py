"""Strict edits, names in lists, and content that no model wrote."""

from scenes import messages, session, texts

from tenure.engine.view.edit import Replace
from tenure.lab.harm.edits import spelling
from tenure.lab.harm.names import AnchorForm, facts_of, is_idiom, known_names
from tenure.lab.harm.use import LISTING, authored
from tenure.lab.harm.watch import after_cut, edits_after_cut
from tenure.testing.builders import call, human, reply, result

LISTED = "   1→def area(width):\n   2→\n   3→    w = 2\n   4→    return width * w\n   5→"
OLD = "\n    w = 2\n    return width * w"


def edited(old: str = OLD, *, text: str = LISTED, name: str = "old_string") -> list:
    return [
        human("fix the shop"),
        reply(call("read", file_path="src/area.py")),
        result(text),
        reply("Let me think."),
        reply(call("edit", file_path="src/area.py", **{name: old, "new_string": "    return 0"})),
    ]


def kept(*lines: str) -> Replace:
    return Replace(entry=2, block=0, text="\n".join(lines), tokens=5)


def test_an_edit_finds_its_text_only_where_all_of_it_stands_together() -> None:
    told = session(*edited())
    (whole,) = edits_after_cut(told, 4, (), [kept("[shortened]", *LISTED.split("\n")[1:])])
    assert (whole.whole, whole.lines, whole.held, whole.tool, whole.call) == (True, 2, ((2, 0),), "edit", 2)
    (broken,) = edits_after_cut(told, 4, (), [kept("[shortened]", "   3→    w = 2", "   […]", "   4→    return width * w")])
    assert not broken.whole
    (gone,) = edits_after_cut(told, 4, [(2, 0)])
    assert not gone.whole


def test_an_edit_of_what_nobody_had_read_or_nothing_took_is_no_edit_to_find() -> None:
    assert not list(edits_after_cut(session(*edited("x = unseen")), 4, [(2, 0)]))
    assert not list(edits_after_cut(session(*edited()), 4, [(1, 0)]))


def test_a_search_for_a_word_is_no_edit() -> None:
    drafts = [*edited()[:4], reply(call("web", search="return width * w"))]
    assert not list(edits_after_cut(session(*drafts), 4, [(2, 0)]))


def test_a_patch_has_a_text_to_find_for_each_hunk() -> None:
    patch = "*** Begin Patch\n@@\n     w = 2\n-    return width * w\n+    return 0\n@@\n-def area(width):\n+def area():\n*** End Patch"
    drafts = [*edited()[:4], reply(call("apply_patch", patch=patch))]
    assert [(each.lines, each.whole) for each in edits_after_cut(session(*drafts), 4, [(2, 0)])] == [(2, False), (1, False)]


def test_numbers_of_listings_and_indentation_are_no_part_of_a_text_to_find() -> None:
    assert spelling("   12→\tx = 1\n 13: y\n14\tz") == "x = 1\ny\nz"


def test_a_name_that_stands_only_in_a_list_of_names_is_visible_and_counted_apart() -> None:
    drafts = [*edited(text="def parse_row(text):\n    return RowReader(text)")[:4], reply("I call parse_row with RowReader.")]
    told = session(*drafts)
    listed = after_cut(told, 4, (), [kept("[read:1@3fa9 shortened]", "[names in it: parse_row RowReader]")])
    assert {(harm.text, harm.verdict, harm.listed) for harm in listed} == {
        ("parse_row", "visible", True),
        ("RowReader", "visible", True),
    }
    said = after_cut(told, 4, (), [kept("[read:1@3fa9 shortened]", "def parse_row(text):", "[names in it: RowReader]")])
    assert {(harm.text, harm.listed) for harm in said} == {("parse_row", False), ("RowReader", True)}


def test_a_list_that_the_tool_itself_gave_is_no_list_of_names() -> None:
    drafts = [*edited(text="files: parse_row.py RowReader.py")[:4], reply("I read parse_row.py now.")]
    (harm,) = after_cut(session(*drafts), 4, (), [kept("files: parse_row.py RowReader.py", "…")])
    assert (harm.verdict, harm.listed) == ("visible", False)


def test_a_listing_in_an_assistants_text_is_content_that_a_log_put_there() -> None:
    listing = "\n".join(f"{n:4}→    value_{n} = load_table({n})" for n in range(1, LISTING + 1))
    assert authored(f"The file:\n{listing}\nDone.") == "The file:\nDone."
    assert "value_2" in authored("I saw\n  1→ value_1\n  2→ value_2\nthere.")
    assert authored("so <tool_result>\nsecret_name\n</tool_result> it is") == "so </tool_result> it is"
    drafts = [*edited(text=listing)[:4], reply(f"Here it is again:\n{listing}")]
    assert list(after_cut(session(*drafts), 4, [(2, 0)])) == []


def test_what_aider_must_find_was_sent_with_the_request() -> None:
    said = "shop.py\n<<<<<<< SEARCH\n    total_price = old_rate\n=======\n    total_price = new_rate\n>>>>>>> REPLACE\nOK"
    assert "old_rate" not in authored(said)
    assert "new_rate" in authored(said)
    assert "total" not in authored("shop.py\n```python\ntotal = 1\n```\n")


def test_idioms_and_well_known_names_are_no_needs() -> None:
    for line in ('"github.com/go-git/go-git/v5/plumbing"', "## Architecture Overview", "if err != nil {", "// Delete the row"):
        assert is_idiom(line)
    for line in ("total = compute_total(order, rate)", "## Why the second cache loses its lines after a fork of the session"):
        assert not is_idiom(line)
    assert {"ManyToManyField", "useState", "ValueError", "OrderedDict"} <= known_names()
    assert "parse_row" not in known_names()


def test_figures_and_names_of_several_words_are_facts() -> None:
    said = "The tower of Mara Lindqvist is 1,432 feet, built on June 3, 1931, for $2.75 million.\n## Next Steps And More"
    assert {(anchor.form, anchor.text) for anchor in facts_of(said)} == {
        (AnchorForm.FIGURE, "1,432"),
        (AnchorForm.FIGURE, "June 3, 1931"),
        (AnchorForm.FIGURE, "$2.75"),
        (AnchorForm.PROPER, "Mara Lindqvist"),
    }


def test_a_rare_fact_that_a_tool_said_is_needed_and_one_of_the_model_is_not() -> None:
    page = "The lighthouse of Mara Lindqvist stands 1,432 feet above the sea."
    drafts = [
        human("how high?"),
        reply(call("web", query="tower")),
        result(page),
        reply("Hm."),
        reply("By Mara Lindqvist, 1,432 feet."),
    ]
    assert texts(list(after_cut(session(*drafts), 4, [(2, 0)]))) == {"Mara Lindqvist", "1,432"}
    own = [human("how high?"), reply("By Mara Lindqvist, 1,432 feet."), reply("Hm."), reply("So, by Mara Lindqvist, 1,432 feet.")]
    assert list(after_cut(session(*own), 3, [(1, 0)])) == []


def test_messages_are_numbered_as_they_stand() -> None:
    assert [message.entry for message in messages(*edited())] == [0, 1, 2, 3, 4]
